//! Bounded reading and writing of big-endian numbers.

use super::fault::Fault;

/// The most lists of actions inside each other.
const DEPTH_MAX: u8 = 16;

/// Bytes not yet read, and the fault to report when they do not suffice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteReader<'a> {
    bytes: &'a [u8],
    short: Fault,
    /// In how many lists of actions it is.
    depth: u8,
}

impl<'a> ByteReader<'a> {
    pub(crate) fn new(bytes: &'a [u8], short: Fault) -> ByteReader<'a> {
        ByteReader { bytes, short, depth: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.bytes.split_at_checked(len).ok_or(self.short)?;
        self.bytes = rest;
        Ok(taken)
    }

    /// Returns a reader of the next `len` bytes with its own fault.
    pub(crate) fn part(&mut self, len: usize, short: Fault) -> Result<ByteReader<'a>, Fault> {
        let depth = self.depth;
        self.take(len).map(|bytes| ByteReader { bytes, short, depth })
    }

    /// Returns a reader of the rest, one list of actions deeper; `None` if that is too deep.
    pub(crate) fn deeper(self) -> Option<ByteReader<'a>> {
        (self.depth < DEPTH_MAX).then(|| ByteReader { depth: self.depth + 1, ..self })
    }

    /// Takes all remaining bytes.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    pub(crate) fn skip(&mut self, len: usize) -> Result<(), Fault> {
        self.take(len).map(drop)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(self.short)?;
        self.bytes = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Fault> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Fault> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads a number of at most 16 bytes.
    pub(crate) fn number(&mut self, len: usize) -> Result<u128, Fault> {
        let bytes = self.take(len)?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
    }

    /// Reads text in a field of `len` bytes, ended by a zero.
    pub(crate) fn text(&mut self, len: usize) -> Result<String, Fault> {
        let bytes = self.take(len)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(len);
        let mut text = String::from_utf8_lossy(&bytes[..end]).into_owned();
        // Bytes that are not UTF-8 grew. A text that was read must fit when it is written.
        text.truncate(text_end(&text, len));
        Ok(text)
    }

    /// Checks that no bytes remain.
    pub(crate) fn end(&self) -> Result<(), Fault> {
        if self.is_empty() { Ok(()) } else { Err(self.short) }
    }
}

/// Returns the part of `r` that its first 16 bits measure, including themselves. The returned
/// reader stands after them.
pub(crate) fn measured<'a>(r: &mut ByteReader<'a>) -> Result<ByteReader<'a>, Fault> {
    let len = usize::from(r.u16()?).checked_sub(2).ok_or(Fault::BadLen)?;
    r.part(len, Fault::BadLen)
}

/// Returns where to cut a text between characters for a field of `len` bytes with a zero at its
/// end.
fn text_end(text: &str, len: usize) -> usize {
    let mut end = text.len().min(len - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}

/// Writes numbers and text. Everything fits, because the values are bounded.
pub(crate) trait Write {
    fn u8(&mut self, value: u8);
    fn u16(&mut self, value: u16);
    fn u32(&mut self, value: u32);
    fn u64(&mut self, value: u64);
    /// Writes the lowest `len` bytes of a number.
    fn number(&mut self, value: u128, len: usize);
    fn zeros(&mut self, len: usize);
    /// Writes text in a field of `len` bytes, cut so that a zero follows.
    fn text(&mut self, text: &str, len: usize);
    /// Writes zeros until the bytes from `start` are a multiple of 8.
    fn pad(&mut self, start: usize);
    /// Writes the number of bytes since `start` as the 16-bit number at `at`.
    fn length(&mut self, start: usize, at: usize);
}

impl Write for Vec<u8> {
    fn u8(&mut self, value: u8) {
        self.push(value);
    }

    fn u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn number(&mut self, value: u128, len: usize) {
        self.extend_from_slice(&value.to_be_bytes()[16 - len..]);
    }

    fn zeros(&mut self, len: usize) {
        self.resize(self.len() + len, 0);
    }

    fn text(&mut self, text: &str, len: usize) {
        let end = text_end(text, len);
        self.extend_from_slice(&text.as_bytes()[..end]);
        self.zeros(len - end);
    }

    fn pad(&mut self, start: usize) {
        self.zeros((self.len() - start).next_multiple_of(8) - (self.len() - start));
    }

    fn length(&mut self, start: usize, at: usize) {
        let len = (self.len() - start) as u16;
        self[at..at + 2].copy_from_slice(&len.to_be_bytes());
    }
}
