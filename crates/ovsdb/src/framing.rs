//! Cuts a stream of bytes into JSON objects (RFC 7047 §4: messages follow each other without a
//! separator).
//!
//! A message is found by counting brackets outside of strings, so that each byte is looked at once,
//! however slowly a long message arrives.

/// The longest message: the rows of a database of the largest size that is accepted.
const LEN_MAX: usize = 64 << 20;

/// Why a stream cannot be cut into messages.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FramingError {
    /// Something other than an object.
    #[error("byte {0:#04x} where a message begins: the peer does not speak JSON-RPC")]
    NotAnObject(u8),
    /// A message of more than [`LEN_MAX`] bytes.
    #[error("a message of more than {LEN_MAX} bytes")]
    TooLong,
}

/// The bytes that have arrived, and how far they were looked at.
#[derive(Debug, Default)]
pub(crate) struct Framer {
    bytes: Vec<u8>,
    /// Bytes that belong to messages already taken.
    taken: usize,
    looked: usize,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Framer {
    /// Adds bytes that have arrived.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.bytes.drain(..self.taken);
            self.looked -= self.taken;
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next complete message.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, FramingError> {
        while let Some(byte) = self.bytes.get(self.looked).copied() {
            self.looked += 1;
            if self.depth == 0 {
                match byte {
                    b'{' => self.depth = 1,
                    b' ' | b'\t' | b'\r' | b'\n' => self.taken = self.looked,
                    _ => return Err(FramingError::NotAnObject(byte)),
                }
            } else if self.ends(byte) {
                let start = std::mem::replace(&mut self.taken, self.looked);
                return Ok(Some(&self.bytes[start..self.looked]));
            }
        }
        if self.looked - self.taken > LEN_MAX { Err(FramingError::TooLong) } else { Ok(None) }
    }

    /// Looks at a byte of a message. Returns whether it is the last.
    fn ends(&mut self, byte: u8) -> bool {
        if self.in_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth -= 1,
            _ => {}
        }
        self.depth == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(chunks: &[&[u8]]) -> Result<Vec<String>, FramingError> {
        let (mut framer, mut messages) = (Framer::default(), Vec::new());
        for chunk in chunks {
            framer.push(chunk);
            while let Some(message) = framer.next()? {
                messages.push(String::from_utf8_lossy(message).trim().to_owned());
            }
        }
        Ok(messages)
    }

    #[test]
    fn messages_are_found_wherever_the_stream_is_cut() {
        let all = br#" {"a":[1,{"b":"}]\"\\"}]}{"c":"\u007b"}
            {}"#;
        let want = [r#"{"a":[1,{"b":"}]\"\\"}]}"#, r#"{"c":"\u007b"}"#, "{}"];
        for first in 0..all.len() {
            for second in first..all.len() {
                let chunks = [&all[..first], &all[first..second], &all[second..]];
                assert_eq!(cut(&chunks).unwrap(), want, "{first} {second}");
            }
        }
    }

    #[test]
    fn a_peer_of_another_protocol_and_one_that_never_ends_are_refused() {
        assert_eq!(cut(&[b"SSH-2.0"]), Err(FramingError::NotAnObject(b'S')));
        assert_eq!(cut(&[b"{}]"]), Err(FramingError::NotAnObject(b']')));
        let endless = vec![b'['; 1 << 20];
        let mut framer = Framer::default();
        framer.push(b"{");
        let refused = (0..100).find_map(|_| {
            framer.push(&endless);
            framer.next().err()
        });
        assert_eq!(refused, Some(FramingError::TooLong));
    }
}
