//! A capture under way at an engine: one request whose answer has no end, and whose body ends the
//! capture.

use super::Failure;
use super::client::{Answer, CallError, TIMEOUT, ask, percent_encoded};
use std::collections::VecDeque;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The longest refusal that is read, in bytes.
const REFUSAL_MAX: u64 = 1 << 16;

/// Reads pcapng as it comes. A read without bytes for [`CaptureStream::PATIENCE`] fails with
/// [`io::ErrorKind::WouldBlock`].
pub struct CaptureStream {
    stream: BufReader<UnixStream>,
    /// Bytes that have come and have not been returned.
    received: VecDeque<u8>,
    /// Bytes left in the current part (RFC 9112 §7.1).
    left: usize,
    has_ended: bool,
}

impl CaptureStream {
    /// The longest wait of a read.
    pub const PATIENCE: Duration = Duration::from_millis(50);

    /// Starts a capture at the engine that listens at `path`. `query` is that of `GET /capture`, as
    /// names and values.
    ///
    /// # Errors
    /// [`CallError::Refused`] with the reason of the engine; without an answer as for [`call`].
    ///
    /// [`call`]: super::call
    pub fn start(path: &Path, query: &[(&str, String)]) -> Result<CaptureStream, CallError> {
        let query: Vec<String> =
            query.iter().map(|(key, value)| format!("{key}={}", percent_encoded(value))).collect();
        let target = format!("/capture?{}", query.join("&"));
        // The end of the body ends the capture.
        let Answer { status, mut body } =
            ask(path, ("POST", &target, "transfer-encoding: chunked\r\n"), b"", TIMEOUT)?;
        let no_answer = |source| CallError::NoAnswer { path: path.to_owned(), source };
        if status != 200 {
            let mut answer = Vec::new();
            body.take(REFUSAL_MAX).read_to_end(&mut answer).map_err(no_answer)?;
            return Err(match serde_json::from_slice::<Failure>(&answer) {
                Ok(failure) => CallError::Refused(failure.error),
                Err(error) => CallError::BadAnswer { path: path.to_owned(), what: error.to_string() },
            });
        }
        body.get_mut().set_read_timeout(Some(CaptureStream::PATIENCE)).map_err(no_answer)?;
        Ok(CaptureStream { stream: body, received: VecDeque::new(), left: 0, has_ended: false })
    }

    /// Asks the engine to end the capture. What has been captured up to now follows.
    ///
    /// # Errors
    /// The connection broke.
    pub fn end(&mut self) -> io::Result<()> {
        self.stream.get_mut().write_all(b"0\r\n\r\n")
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
