//! A capture under way at an engine: one HTTP/1.1 request over its Unix socket, whose answer has no
//! end, and whose body ends the capture.

use crate::{Error, Result};
use fastpath_engine::control::{CallError, Failure};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long to wait for the start of an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Reads pcapng as it comes. A read without bytes for [`CaptureStream::PATIENCE`] fails with
/// [`io::ErrorKind::WouldBlock`].
pub(crate) struct CaptureStream {
    stream: UnixStream,
    /// Bytes that have come and have not been returned.
    received: VecDeque<u8>,
    /// Bytes left in the current part (RFC 9112 §7.1).
    left: usize,
    has_ended: bool,
}

impl CaptureStream {
    /// The longest wait of a read.
    pub(crate) const PATIENCE: Duration = Duration::from_millis(50);

    /// Starts a capture at the engine that listens at `path`. `query` is that of `GET /capture`, as
    /// names and values.
    ///
    /// # Errors
    /// [`Error::Argument`] without an answer, and with the reason of the engine if it refuses.
    pub(crate) fn start(path: &Path, query: &[(&str, String)]) -> Result<CaptureStream> {
        let call = |error: CallError| Error::argument(error.to_string());
        let no_answer = |source| call(CallError::NoAnswer { path: path.to_owned(), source });
        let unreachable = |source| call(CallError::Unreachable { path: path.to_owned(), source });
        let mut stream = UnixStream::connect(path).map_err(unreachable)?;
        stream.set_read_timeout(Some(TIMEOUT)).map_err(no_answer)?;
        let query: Vec<String> =
            query.iter().map(|(key, value)| format!("{key}={}", percent_encoded(value))).collect();
        // The end of the body ends the capture.
        let head = format!(
            "POST /capture?{} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n",
            query.join("&")
        );
        stream.write_all(head.as_bytes()).map_err(no_answer)?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).map_err(no_answer)?;
            head.push(byte[0]);
        }
        if !head.starts_with(b"HTTP/1.1 200 ") {
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).map_err(no_answer)?;
            let bad = |error: serde_json::Error| {
                call(CallError::BadAnswer { path: path.to_owned(), what: error.to_string() })
            };
            return Err(Error::Argument(serde_json::from_slice::<Failure>(&answer).map_err(bad)?.error));
        }
        stream.set_read_timeout(Some(CaptureStream::PATIENCE)).map_err(no_answer)?;
        Ok(CaptureStream { stream, received: VecDeque::new(), left: 0, has_ended: false })
    }

    /// Asks the engine to end the capture. What has been captured up to now follows.
    ///
    /// # Errors
    /// The connection broke.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.stream.write_all(b"0\r\n\r\n")
    }

    /// Returns the length of the next part, when its line has come.
    fn next_part(&mut self) -> io::Result<Option<usize>> {
        let Some(end) = self.received.iter().skip(2).position(|byte| *byte == b'\n') else { return Ok(None) };
        // The line of a part follows the end of the line of the part before.
        let line: Vec<u8> = self.received.drain(..end + 3).collect();
        let digits = std::str::from_utf8(&line).ok().map(str::trim);
        let len = digits.and_then(|digits| usize::from_str_radix(digits, 16).ok());
        len.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

impl Read for CaptureStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.has_ended {
                return Ok(0);
            }
            if self.left > 0 && !self.received.is_empty() {
                let wanted = buffer.len().min(self.left);
                let count = self.received.read(&mut buffer[..wanted])?;
                self.left -= count;
                return Ok(count);
            }
            if self.left == 0
                && let Some(len) = self.next_part()?
            {
                self.left = len;
                self.has_ended = len == 0;
                continue;
            }
            let mut part = vec![0; 1 << 16];
            let count = self.stream.read(&mut part)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.received.extend(&part[..count]);
        }
    }
}

/// Encodes a text with letters, digits, '-', '_', '.' and '%' only.
pub fn percent_encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.bytes().fold(String::new(), |mut text, byte| {
        if is_plain(byte) {
            text.push(byte.into());
        } else {
            _ = write!(text, "%{byte:02x}");
        }
        text
    })
}
