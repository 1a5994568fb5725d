//! Addresses of database servers, in the syntax of Open vSwitch.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The port of OVSDB assigned by IANA.
const PORT: u16 = 6640;

/// A database server to connect to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Remote {
    /// `unix:PATH`.
    Unix(PathBuf),
    /// `tcp:HOST:PORT`.
    Tcp {
        /// A name or an address.
        host: String,
        /// TCP port.
        port: u16,
    },
    /// `ssl:HOST:PORT`: TLS over TCP.
    Ssl {
        /// The name or address that the certificate of the server is for.
        host: String,
        /// TCP port.
        port: u16,
    },
}

/// A text is not the address of a database server.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{0}' is not a database server: write unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT")]
pub struct ParseRemoteError(String);

impl FromStr for Remote {
    type Err = ParseRemoteError;

    fn from_str(text: &str) -> Result<Remote, ParseRemoteError> {
        let parse = || match text.split_once(':')? {
            ("unix", path) => (!path.is_empty()).then(|| Remote::Unix(path.into())),
            (kind @ ("tcp" | "ssl"), rest) => {
                // An IPv6 address stands in brackets, or alone.
                let (host, port) = match rest.rsplit_once(':') {
                    Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                        (host, port.parse().ok()?)
                    }
                    _ => (rest, PORT),
                };
                let host = host.trim_start_matches('[').trim_end_matches(']');
                let host = (!host.is_empty()).then(|| host.to_owned())?;
                Some(if kind == "ssl" { Remote::Ssl { host, port } } else { Remote::Tcp { host, port } })
            }
            _ => None,
        };
        parse().ok_or_else(|| ParseRemoteError(text.to_owned()))
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remote::Unix(path) => write!(f, "unix:{}", path.display()),
            Remote::Tcp { host, port } => write_tcp(f, "tcp", host, *port),
            Remote::Ssl { host, port } => write_tcp(f, "ssl", host, *port),
        }
    }
}

fn write_tcp(f: &mut fmt::Formatter<'_>, kind: &str, host: &str, port: u16) -> fmt::Result {
    // An IPv6 address.
    if host.contains(':') { write!(f, "{kind}:[{host}]:{port}") } else { write!(f, "{kind}:{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for text in
            ["unix:/run/db.sock", "tcp:127.0.0.1:6640", "tcp:db.example:1", "tcp:[::1]:6640", "ssl:[::1]:1"]
        {
            assert_eq!(text.parse::<Remote>().unwrap().to_string(), text);
        }
        assert_eq!("tcp:127.0.0.1".parse::<Remote>().unwrap().to_string(), "tcp:127.0.0.1:6640");
        assert_eq!("tcp:::1".parse::<Remote>().unwrap().to_string(), "tcp:[::1]:6640");
        for text in
            ["", "unix:", "tcp:", "tcp:a:b", "ssl:", "tls:a:1", "/run/db.sock", "punix:/x", "tcp:a:65536"]
        {
            let error = text.parse::<Remote>().unwrap_err().to_string();
            assert!(error.contains("write unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT"), "{error}");
        }
    }
}
