//! Where to listen, in words: `127.0.0.1:8080`, `[::1]:8080`, `unix:/run/net.sock`, or, in the
//! open, `public:0.0.0.0:8080`.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// An address for the control interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HttpAddress {
    /// A TCP port. Whoever reaches it may change the network: there are no passwords.
    Tcp(SocketAddr),
    /// A socket in the file system, for its owner and root.
    Unix(PathBuf),
}

/// Why a text is no address to listen at.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadAddress {
    /// It is none.
    #[error("'{0}' is not an address: write 127.0.0.1:8080, [::1]:8080 or unix:PATH")]
    Malformed(String),
    /// Others reach it.
    #[error(
        "{0} is not only this machine's, and whoever reaches it may change the network: write 127.0.0.1:{port}, or public:{0} \
         if that is what you want",
        port = .0.port()
    )]
    Public(SocketAddr),
}

impl FromStr for HttpAddress {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<HttpAddress, BadAddress> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(HttpAddress::Unix(path.into()));
        }
        let (public, address) = match text.strip_prefix("public:") {
            Some(address) => (true, address),
            None => (false, text),
        };
        let numbers = address.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
        let parsed: Result<SocketAddr, _> = numbers.as_deref().unwrap_or(address).parse();
        let address = parsed.map_err(|_| BadAddress::Malformed(text.to_owned()))?;
        if !public && !address.ip().is_loopback() {
            return Err(BadAddress::Public(address));
        }
        Ok(HttpAddress::Tcp(address))
    }
}

impl fmt::Display for HttpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HttpAddress::Tcp(address) => write!(f, "http://{address}"),
            HttpAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_listened_to_unless_asked_otherwise() {
        let read = |text: &str| text.parse::<HttpAddress>();
        assert_eq!(read("localhost:80").unwrap().to_string(), "http://127.0.0.1:80");
        assert_eq!(read("[::1]:80").unwrap().to_string(), "http://[::1]:80");
        assert_eq!(read("unix:/a/b"), Ok(HttpAddress::Unix("/a/b".into())));
        assert_eq!(read("public:0.0.0.0:80").unwrap().to_string(), "http://0.0.0.0:80");
        for (text, said) in [
            ("0.0.0.0:80", "0.0.0.0:80 is not only this machine's"),
            ("[::]:80", "[::]:80 is not only this machine's"),
            ("192.168.1.1:80", "write 127.0.0.1:80, or public:192.168.1.1:80"),
            ("8080", "'8080' is not an address: write 127.0.0.1:8080"),
            ("unix:", "'unix:' is not an address"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
