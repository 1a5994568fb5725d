//! The client: one HTTP/1.1 request over the Unix socket of an engine, then the connection closes.
//! `capture_client.rs` has the request whose answer has no end.

use super::{Changes, Failure, Request, Response};
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest answer that is read, in bytes: a report of a hundred thousand links.
const RESPONSE_MAX: u64 = 256 << 20;
/// The longest head of an answer, in bytes.
const HEAD_MAX: u64 = 1 << 16;
/// How long to wait for an answer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for a lab with other hosts.
const APPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
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
        /// The defect of the answer.
        what: String,
    },
    /// The engine refuses, for this reason.
    #[error("{0}")]
    Refused(String),
}

/// Sends a request to the engine that listens at `path`.
pub fn call(path: &Path, request: &Request) -> Result<Response, CallError> {
    let json = |changes: &Changes| serde_json::to_vec(changes).expect("changes are plain data");
    let mut timeout = TIMEOUT;
    let (method, target, body) = match request {
        Request::Report => ("GET", "/report".to_owned(), Vec::new()),
        Request::Groups => ("GET", "/groups".to_owned(), Vec::new()),
        Request::Topology => ("GET", "/topology".to_owned(), Vec::new()),
        Request::Connections => ("GET", "/connections".to_owned(), Vec::new()),
        Request::Flush(flush) => {
            let body = serde_json::to_vec(flush).expect("a request is plain data");
            ("POST", "/connections/flush".to_owned(), body)
        }
        Request::Set(changes) => ("POST", "/set".to_owned(), json(changes)),
        Request::Start { group } => ("POST", format!("/groups/{}/start", percent_encoded(group)), Vec::new()),
        Request::Apply(apply) => {
            timeout = APPLY_TIMEOUT;
            ("POST", "/apply".to_owned(), serde_json::to_vec(apply).expect("a request is plain data"))
        }
        Request::Stop => ("POST", "/stop".to_owned(), Vec::new()),
    };
    let (status, answer) = exchange(path, (method, &target, &body), timeout)?;
    let bad = |what: String| CallError::BadAnswer { path: path.to_owned(), what };
    if status != 200 {
        return Ok(Response::Error(read::<Failure>(&answer).map_err(bad)?.error));
    }
    Ok(match request {
        Request::Report => Response::Report(Box::new(read(&answer).map_err(bad)?)),
        Request::Groups => Response::Groups(read(&answer).map_err(bad)?),
        Request::Topology => Response::Topology(read(&answer).map_err(bad)?),
        Request::Connections => Response::Connections(read(&answer).map_err(bad)?),
        Request::Flush(_) => Response::Flushed(read(&answer).map_err(bad)?),
        Request::Apply(_) => Response::Applied(read(&answer).map_err(bad)?),
        _ => Response::Done(read(&answer).map_err(bad)?),
    })
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

/// Returns the status and the body of the answer.
fn exchange(
    path: &Path,
    (method, target, body): (&str, &str, &[u8]),
    timeout: Duration,
) -> Result<(u16, Vec<u8>), CallError> {
    let headers = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    let Answer { status, body } = ask(path, (method, target, &headers), body, timeout)?;
    let no_answer = |source| CallError::NoAnswer { path: path.to_owned(), source };
    let mut answer = Vec::new();
    // The server sends the length and closes.
    body.take(RESPONSE_MAX).read_to_end(&mut answer).map_err(no_answer)?;
    Ok((status, answer))
}

/// An answer whose body has not been read.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: BufReader<UnixStream>,
}

/// Sends a request to the engine that listens at `path`, and reads the head of the answer.
pub(super) fn ask(
    path: &Path,
    (method, target, headers): (&str, &str, &str),
    body: &[u8],
    timeout: Duration,
) -> Result<Answer, CallError> {
    let no_answer = |source| CallError::NoAnswer { path: path.to_owned(), source };
    let unreachable = |source| CallError::Unreachable { path: path.to_owned(), source };
    let mut stream = UnixStream::connect(path).map_err(unreachable)?;
    stream.set_read_timeout(Some(timeout)).map_err(unreachable)?;
    stream.set_write_timeout(Some(timeout)).map_err(unreachable)?;
    let head = format!("{method} {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(&[head.as_bytes(), body].concat()).map_err(no_answer)?;
    let mut body = BufReader::new(stream);
    match status(&mut body).map_err(no_answer)? {
        Some(status) => Ok(Answer { status, body }),
        None => Err(CallError::BadAnswer { path: path.to_owned(), what: "not HTTP".to_owned() }),
    }
}

/// Reads the head of an answer up to the empty line after it, and returns its status. Returns
/// `None` for something else than HTTP.
fn status(answer: &mut impl BufRead) -> io::Result<Option<u16>> {
    let mut head = Vec::new();
    let mut rest = answer.take(HEAD_MAX);
    while !head.ends_with(b"\r\n\r\n") {
        let count = rest.read_until(b'\n', &mut head)?;
        if head.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if count == 0 || !head.starts_with(b"HTTP/1.1 ") {
            return Ok(None);
        }
    }
    let digits = head.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
    Ok(digits.and_then(|digits| digits.parse().ok()))
}

/// Encodes a name as part of a path or a query (RFC 3986, §2.1).
pub fn percent_encoded(name: &str) -> String {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encoded =
        |byte: u8| if is_unreserved(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(encoded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_read_with_the_head_and_what_follows_stays() {
        let mut answer = &b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}"[..];
        assert_eq!(status(&mut answer).unwrap(), Some(404));
        assert_eq!(answer, b"{}");
        let cut = &b"HTTP/1.1 200 OK\r\n"[..];
        for mut broken in [cut, b"\r\n\r\n", b"HTTP/1.1 x\r\n\r\n", b"HTTP/1.1\r\n\r\n", b"SSH-2.0\r\n\r\n"] {
            assert_eq!(status(&mut broken).unwrap(), None, "{broken:?}");
        }
        assert_eq!(status(&mut &b""[..]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let endless = [&b"HTTP/1.1 200 OK\r\n"[..], &vec![b'x'; 1 << 17]].concat();
        assert_eq!(status(&mut &endless[..]).unwrap(), None);
        assert_eq!(percent_encoded("a b/c"), "a%20b%2Fc");
    }
}
