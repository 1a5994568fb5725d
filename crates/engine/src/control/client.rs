//! The client: one HTTP/1.1 request over the Unix socket of an engine, then the connection closes.

use super::{Changes, Failure, Request, Response};
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest answer that is read, in bytes: a report of a hundred thousand links.
const RESPONSE_MAX: u64 = 256 << 20;
/// How long to wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No engine listens there.
    #[error("{}: no engine listens there: {source}", path.display())]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The connection broke, or the answer took too long.
    #[error("{}: the engine did not answer: {source}", path.display())]
    NoAnswer {
        /// The socket.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// This version does not understand the answer.
    #[error("{}: unexpected answer (another version of fastpath?): {what}", path.display())]
    BadAnswer {
        /// The socket.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

/// Sends a request to the engine that listens at `path`.
pub fn call(path: &Path, request: &Request) -> Result<Response, CallError> {
    let json = |changes: &Changes| serde_json::to_vec(changes).expect("changes are plain data");
    let (method, target, body) = match request {
        Request::Report => ("GET", "/report".to_owned(), Vec::new()),
        Request::Groups => ("GET", "/groups".to_owned(), Vec::new()),
        Request::Set(changes) => ("POST", "/set".to_owned(), json(changes)),
        Request::Start { group } => ("POST", format!("/groups/{}/start", encode(group)), Vec::new()),
        Request::Stop => ("POST", "/stop".to_owned(), Vec::new()),
    };
    let (status, answer) = exchange(path, method, &target, &body)?;
    let bad = |what: String| CallError::BadAnswer { path: path.to_owned(), what };
    if status != 200 {
        return Ok(Response::Error(read::<Failure>(&answer).map_err(bad)?.error));
    }
    Ok(match request {
        Request::Report => Response::Report(Box::new(read(&answer).map_err(bad)?)),
        Request::Groups => Response::Groups(read(&answer).map_err(bad)?),
        _ => Response::Done(read(&answer).map_err(bad)?),
    })
}

/// A capture under way: pcapng, of which each read returns what has come. A read without bytes for
/// [`CaptureStream::PATIENCE`] fails with [`io::ErrorKind::WouldBlock`].
pub struct CaptureStream {
    stream: UnixStream,
    /// Bytes that have come and have not been returned.
    received: VecDeque<u8>,
    /// Bytes left in the current part (RFC 9112 §7.1).
    left: usize,
    has_ended: bool,
}

/// Starts a capture at the engine that listens at `path`. `query` is that of `GET /capture`, as
/// names and values.
///
/// # Errors
/// Without an answer, [`CallError`]; if the engine refuses, its reason as the inner error.
pub fn capture(path: &Path, query: &[(&str, String)]) -> Result<Result<CaptureStream, String>, CallError> {
    let no_answer = |source| CallError::NoAnswer { path: path.to_owned(), source };
    let query: Vec<String> = query.iter().map(|(key, value)| format!("{key}={}", encode(value))).collect();
    let mut stream = connect(path)?;
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
    let bad = |what: &str| CallError::BadAnswer { path: path.to_owned(), what: what.to_owned() };
    let (status, _) = parse(&head).ok_or_else(|| bad("not HTTP"))?;
    if status != 200 {
        let mut answer = Vec::new();
        stream.take(RESPONSE_MAX).read_to_end(&mut answer).map_err(no_answer)?;
        let failure = read::<Failure>(&answer).map_err(|what| bad(&what))?;
        return Ok(Err(failure.error));
    }
    stream.set_read_timeout(Some(CaptureStream::PATIENCE)).map_err(no_answer)?;
    Ok(Ok(CaptureStream { stream, received: VecDeque::new(), left: 0, has_ended: false }))
}

impl CaptureStream {
    /// The longest wait of a read.
    pub const PATIENCE: Duration = Duration::from_millis(50);

    /// Asks the engine to end the capture. What has been captured up to now follows.
    ///
    /// # Errors
    /// The connection broke.
    pub fn end(&mut self) -> io::Result<()> {
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

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

/// Returns the status and the body of the answer.
fn exchange(path: &Path, method: &str, target: &str, body: &[u8]) -> Result<(u16, Vec<u8>), CallError> {
    let no_answer = |source| CallError::NoAnswer { path: path.to_owned(), source };
    let mut stream = connect(path)?;
    let head = format!(
        "{method} {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat()).map_err(no_answer)?;
    let mut answer = Vec::new();
    stream.take(RESPONSE_MAX).read_to_end(&mut answer).map_err(no_answer)?;
    if answer.is_empty() {
        return Err(no_answer(io::ErrorKind::UnexpectedEof.into()));
    }
    parse(&answer).ok_or_else(|| CallError::BadAnswer { path: path.to_owned(), what: "not HTTP".to_owned() })
}

fn connect(path: &Path) -> Result<UnixStream, CallError> {
    let unreachable = |source| CallError::Unreachable { path: path.to_owned(), source };
    let stream = UnixStream::connect(path).map_err(unreachable)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(unreachable)?;
    stream.set_write_timeout(Some(TIMEOUT)).map_err(unreachable)?;
    Ok(stream)
}

/// Splits an answer. The server sends the length and closes, so that the body is everything after
/// the head.
fn parse(answer: &[u8]) -> Option<(u16, Vec<u8>)> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some((status, answer[end + 4..].to_vec()))
}

/// Encodes a name as part of a path.
fn encode(name: &str) -> String {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encoded =
        |byte: u8| if is_unreserved(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(encoded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_its_status_and_what_follows_the_head() {
        let answer = b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(parse(answer), Some((404, b"{}".to_vec())));
        for broken in [&b"HTTP/1.1 200 OK\r\n"[..], b"\r\n\r\n", b"HTTP/1.1 x\r\n\r\n", b"SSH-2.0\r\n\r\n"] {
            assert_eq!(parse(broken), None);
        }
        assert_eq!(encode("a b/c"), "a%20b%2Fc");
    }
}
