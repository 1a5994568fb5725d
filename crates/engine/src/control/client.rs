//! The client: one HTTP/1.1 request over the Unix socket of an engine, then the connection closes.

use super::{Changes, Failure, Request, Response};
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest answer that is read, in bytes: a report of a hundred thousand links.
const RESPONSE_MAX: u64 = 256 << 20;
/// How long to wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(10);
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
        /// What is wrong with it.
        what: String,
    },
}

/// Sends a request to the engine that listens at `path`.
pub fn call(path: &Path, request: &Request) -> Result<Response, CallError> {
    let json = |changes: &Changes| serde_json::to_vec(changes).expect("changes are plain data");
    let mut timeout = TIMEOUT;
    let (method, target, body) = match request {
        Request::Report => ("GET", "/report".to_owned(), Vec::new()),
        Request::Groups => ("GET", "/groups".to_owned(), Vec::new()),
        Request::Topology => ("GET", "/topology".to_owned(), Vec::new()),
        Request::Set(changes) => ("POST", "/set".to_owned(), json(changes)),
        Request::Start { group } => ("POST", format!("/groups/{}/start", encode(group)), Vec::new()),
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
    let no_answer = |source| CallError::NoAnswer { path: path.to_owned(), source };
    let mut stream = connect(path)?;
    stream.set_read_timeout(Some(timeout)).map_err(no_answer)?;
    stream.set_write_timeout(Some(timeout)).map_err(no_answer)?;
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
