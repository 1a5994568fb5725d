//! The input of a reader. It counts packets and bytes, so that every error names its position.

use super::{Damage, PACKET_BYTES_MAX, ReadError};
use std::io::{BufReader, ErrorKind, Read};

/// A buffered input that counts bytes and packets.
pub(super) struct Source<R> {
    input: BufReader<R>,
    /// Number of bytes read so far.
    offset: u64,
    /// Offset of the current record.
    record: u64,
    /// Number of the next packet, from 1.
    packet: u64,
}

impl<R: Read> Source<R> {
    pub(super) fn new(input: R) -> Source<R> {
        Source { input: BufReader::with_capacity(1 << 16, input), offset: 0, record: 0, packet: 1 }
    }

    /// Reads the next `N` bytes of the file header.
    pub(super) fn header_bytes<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        self.bytes().map_err(|error| match error {
            ReadError::Cut { .. } if self.offset == 0 => ReadError::Empty,
            ReadError::Cut { .. } => ReadError::CutHeader,
            other => other,
        })
    }

    /// Reads the first `N` bytes of a record. Returns `None` if the file ends before the record.
    pub(super) fn start_record<const N: usize>(&mut self) -> Result<Option<[u8; N]>, ReadError> {
        self.record = self.offset;
        match self.bytes() {
            Err(ReadError::Cut { .. }) if self.offset == self.record => Ok(None),
            other => other.map(Some),
        }
    }

    /// Reads the next `N` bytes of a record.
    pub(super) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads the next `len` bytes of a record into `data`, at most [`PACKET_BYTES_MAX`].
    pub(super) fn data(&mut self, len: u32, data: &mut Vec<u8>) -> Result<(), ReadError> {
        if len > PACKET_BYTES_MAX {
            return Err(self.damaged(Damage::PacketTooLong(len)));
        }
        data.resize(len as usize, 0);
        self.fill(data)
    }

    /// Skips `len` bytes of a record.
    pub(super) fn skip(&mut self, len: u32) -> Result<(), ReadError> {
        let copied = std::io::copy(&mut (&mut self.input).take(len.into()), &mut std::io::sink());
        let copied = copied.map_err(|error| self.failed(error))?;
        self.offset += copied;
        if copied == u64::from(len) { Ok(()) } else { Err(self.cut()) }
    }

    /// Counts a packet that was read completely.
    pub(super) fn end_packet(&mut self) {
        self.packet += 1;
    }

    pub(super) fn damaged(&self, damage: Damage) -> ReadError {
        ReadError::Damaged { packet: self.packet, offset: self.record, damage }
    }

    fn cut(&self) -> ReadError {
        ReadError::Cut { packet: self.packet, offset: self.record }
    }

    fn failed(&self, error: std::io::Error) -> ReadError {
        ReadError::Io { packet: self.packet, offset: self.record, error }
    }

    /// Like `read_exact`, but keeps `offset` correct if the input ends early.
    fn fill(&mut self, mut bytes: &mut [u8]) -> Result<(), ReadError> {
        while !bytes.is_empty() {
            match self.input.read(bytes) {
                Ok(0) => return Err(self.cut()),
                Ok(n) => {
                    self.offset += n as u64;
                    bytes = &mut bytes[n..];
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(())
    }
}
