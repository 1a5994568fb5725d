//! The address of a control interface as text: `127.0.0.1:8080`, `[::1]:8080`,
//! `unix:/run/net.sock`, `open:127.0.0.1:8080` without a token, or `public:0.0.0.0:8080` for all
//! hosts.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// An address for the control interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HttpAddress {
    /// A TCP address. Clients need the token of the engine.
    Tcp(SocketAddr),
    /// A TCP address. Every client that reaches it may change the network.
    Open(SocketAddr),
    /// A socket in the file system, for its owner and root.
    Unix(PathBuf),
}

/// Why a text is not an address to listen on.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadAddress {
    /// The text is not an address.
    #[error("'{0}' is not an address: write 127.0.0.1:8080, [::1]:8080 or unix:PATH")]
    Malformed(String),
    /// Other hosts reach it.
    #[error(
        "other hosts reach {0}, and a client may change the network: write 127.0.0.1:{port}, or public:{0} to allow that",
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
        let (mut address, mut public, mut open) = (text, false, false);
        while let Some((word @ ("public" | "open"), rest)) = address.split_once(':') {
            *if word == "public" { &mut public } else { &mut open } = true;
            address = rest;
        }
        let numbers = address.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
        let parsed: Result<SocketAddr, _> = numbers.as_deref().unwrap_or(address).parse();
        let address = parsed.map_err(|_| BadAddress::Malformed(text.to_owned()))?;
        if !public && !address.ip().is_loopback() {
            return Err(BadAddress::Public(address));
        }
        Ok(if open { HttpAddress::Open(address) } else { HttpAddress::Tcp(address) })
    }
}

impl fmt::Display for HttpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HttpAddress::Tcp(address) | HttpAddress::Open(address) => write!(f, "http://{address}"),
            HttpAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_served_unless_the_address_says_public() {
        let read = |text: &str| text.parse::<HttpAddress>();
        assert_eq!(read("localhost:80").unwrap().to_string(), "http://127.0.0.1:80");
        assert_eq!(read("[::1]:80").unwrap().to_string(), "http://[::1]:80");
        assert_eq!(read("unix:/a/b"), Ok(HttpAddress::Unix("/a/b".into())));
        assert_eq!(read("public:0.0.0.0:80").unwrap().to_string(), "http://0.0.0.0:80");
        let open = HttpAddress::Open("0.0.0.0:80".parse().unwrap());
        assert_eq!(read("open:public:0.0.0.0:80"), Ok(open.clone()));
        assert_eq!(read("public:open:0.0.0.0:80"), Ok(open));
        for (text, said) in [
            ("open:0.0.0.0:80", "other hosts reach 0.0.0.0:80"),
            ("0.0.0.0:80", "other hosts reach 0.0.0.0:80"),
            ("[::]:80", "other hosts reach [::]:80"),
            ("192.168.1.1:80", "write 127.0.0.1:80, or public:192.168.1.1:80"),
            ("8080", "'8080' is not an address: write 127.0.0.1:8080"),
            ("unix:", "'unix:' is not an address"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
