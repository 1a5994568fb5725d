//! Talking to a running engine: one JSON object a line over a Unix socket, one answer a line.
//!
//! ```text
//!  {"request":"report"}                                             {"report":{…}}
//!  {"request":"set","link":"a-b","from":"a","rate":"1Mbit"}   ──▶   "done"
//!  {"request":"stop"}                                               {"error":"…"}
//! ```
//!
//! Read first: this file is the protocol; `server.rs` answers it.

mod server;

pub(crate) use server::Server;

use crate::report::Report;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest request line, bytes.
pub const REQUEST_MAX: u64 = 64 << 10;
/// The longest answer a client reads, bytes: a report of a hundred thousand links.
const RESPONSE_MAX: u64 = 256 << 20;
/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What can be asked of a running engine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// How everything stands: links with their parameters and counters, ports with theirs, where all frames are.
    Report,
    /// New values for some parameters of a link, all at one instant. Frames the link holds stay.
    Set(Box<Setting>),
    /// Ends the engine.
    Stop,
}

/// New values for a link. Texts are written as in a spec; a parameter that is absent keeps its value.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// The link's name.
    pub link: String,
    /// Only the direction that leads from this node; both if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// `10Mbit`, or `unlimited`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// `25ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
    /// `1%`, or a table as in a spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<String>,
    /// `50p`, `64KiB`, `20ms`, `unlimited`, or a table as in a spec: `{ kind = "codel" }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Bytes on the wire beyond the frame: a number, or `ethernet` (24).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<String>,
    /// A table as in a spec, or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<String>,
    /// `25%`, or a table as in a spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder: Option<String>,
    /// `1%`, or a table as in a spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<String>,
    /// `0.1%`, or a table as in a spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrupt: Option<String>,
}

/// What an engine answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// To `report`.
    Report(Box<Report>),
    /// To `set` and `stop`.
    Done,
    /// Nothing was done, for this reason.
    Error(String),
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Nobody listens there.
    #[error("{}: no engine answers there: {source}", path.display())]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The connection broke, or the answer took too long.
    #[error("{}: the engine did not answer: {source}", path.display())]
    NoAnswer {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The answer is in no language this version knows.
    #[error("{}: the engine's answer makes no sense (another version of fastpath?): {source}", path.display())]
    BadAnswer {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
}

/// Asks the engine that listens at `path`.
pub fn call(path: &Path, request: &Request) -> Result<Response, CallError> {
    let unreachable = |source| CallError::Unreachable { path: path.to_owned(), source };
    let no_answer = |source| CallError::NoAnswer { path: path.to_owned(), source };
    let bad_answer = |source| CallError::BadAnswer { path: path.to_owned(), source };
    let mut stream = UnixStream::connect(path).map_err(unreachable)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(no_answer)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(no_answer)?;
    stream.write_all(&line(request)).map_err(no_answer)?;
    let mut answer = String::new();
    BufReader::new(stream).take(RESPONSE_MAX).read_line(&mut answer).map_err(no_answer)?;
    if answer.is_empty() {
        return Err(no_answer(io::ErrorKind::UnexpectedEof.into()));
    }
    serde_json::from_str(&answer).map_err(bad_answer)
}

fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("messages are plain data");
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_is_frozen() {
        let set = Setting {
            link: "a-b".to_owned(),
            from: Some("a".to_owned()),
            rate: Some("1Mbit".to_owned()),
            ..Setting::default()
        };
        for (request, text) in [
            (Request::Report, r#"{"request":"report"}"#),
            (Request::Set(Box::new(set)), r#"{"request":"set","link":"a-b","from":"a","rate":"1Mbit"}"#),
            (Request::Stop, r#"{"request":"stop"}"#),
        ] {
            assert_eq!(serde_json::to_string(&request).unwrap(), text);
            assert_eq!(serde_json::from_str::<Request>(text).unwrap(), request);
        }
        assert_eq!(line(&Response::Done), b"\"done\"\n");
        assert_eq!(line(&Response::Error("no".to_owned())), b"{\"error\":\"no\"}\n");
    }

    #[test]
    fn unknown_requests_and_keys_are_refused() {
        for text in [
            r#"{"request":"dance"}"#,
            r#"{"request":"set"}"#,
            r#"{"request":"set","link":"l","dleay":"1ms"}"#,
            "[]",
        ] {
            assert!(serde_json::from_str::<Request>(text).is_err(), "{text}");
        }
    }
}
