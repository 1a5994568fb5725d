//! Addresses of controllers in the syntax of Open vSwitch: `tcp:HOST:PORT`, `ptcp:PORT:ADDRESS` and
//! so on.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// The port of OpenFlow assigned by IANA.
const PORT: u16 = 6653;

/// Whether a connection is encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Security {
    /// Plain TCP.
    Plain,
    /// TLS.
    Tls,
}

/// A controller to dial.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Plain or TLS.
    pub security: Security,
    /// A name or an address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// The address on which to listen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listen {
    /// Plain or TLS.
    pub security: Security,
    /// Address and TCP port; 0 for any free one.
    pub at: SocketAddr,
}

/// Why a text is not such an address.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{text}' is not {what}; write {example}")]
pub struct ParseAddressError {
    text: String,
    what: &'static str,
    example: &'static str,
}

impl FromStr for Target {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Target, ParseAddressError> {
        let parse = || {
            let (kind, rest) = text.split_once(':')?;
            let security = match kind {
                "tcp" => Security::Plain,
                "tls" | "ssl" => Security::Tls,
                _ => return None,
            };
            // An IPv6 address stands in brackets, or alone.
            let (host, port) = match rest.rsplit_once(':') {
                Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                    (host, port.parse().ok()?)
                }
                _ => (rest, PORT),
            };
            let host = host.trim_start_matches('[').trim_end_matches(']');
            (!host.is_empty()).then(|| Target { security, host: host.to_owned(), port })
        };
        parse().ok_or_else(|| ParseAddressError {
            text: text.to_owned(),
            what: "a controller's address",
            example: "tcp:ADDRESS:PORT or tls:ADDRESS:PORT",
        })
    }
}

impl Listen {
    /// Returns whether other hosts may connect without authentication.
    pub fn is_exposed(&self) -> bool {
        self.security == Security::Plain && !self.at.ip().is_loopback()
    }
}

impl FromStr for Listen {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Listen, ParseAddressError> {
        let parse = || {
            let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
            let security = match kind {
                "ptcp" => Security::Plain,
                "ptls" | "pssl" => Security::Tls,
                _ => return None,
            };
            let (port, address) = rest.split_once(':').unwrap_or((rest, ""));
            let port = if port.is_empty() { PORT } else { port.parse().ok()? };
            let address = address.trim_start_matches('[').trim_end_matches(']');
            let address = match address {
                "" => IpAddr::V4(Ipv4Addr::LOCALHOST),
                _ => address.parse().ok()?,
            };
            Some(Listen { security, at: SocketAddr::new(address, port) })
        };
        parse().ok_or_else(|| ParseAddressError {
            text: text.to_owned(),
            what: "an address to listen on",
            example: "ptcp:PORT:ADDRESS or ptls:PORT:ADDRESS",
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.security == Security::Plain { "tcp" } else { "tls" };
        // Without brackets the port of an IPv6 address is read as its last group.
        match self.host.contains(':') {
            true => write!(f, "{kind}:[{}]:{}", self.host, self.port),
            false => write!(f, "{kind}:{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.security == Security::Plain { "ptcp" } else { "ptls" };
        write!(f, "{kind}:{}:{}", self.at.port(), self.at.ip())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_open_vswitch_writes_them() {
        for (text, shown) in [
            ("tcp:127.0.0.1:6633", "tcp:127.0.0.1:6633"),
            ("tcp:c1.example", "tcp:c1.example:6653"),
            ("ssl:[::1]:6640", "tls:[::1]:6640"),
            ("tcp:::1", "tcp:[::1]:6653"),
        ] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), shown, "{text}");
        }
        for (text, shown) in [
            ("ptcp:6634:127.0.0.1", "ptcp:6634:127.0.0.1"),
            ("ptcp:", "ptcp:6653:127.0.0.1"),
            ("pssl:0:[::1]", "ptls:0:::1"),
            ("ptls:7:0.0.0.0", "ptls:7:0.0.0.0"),
        ] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), shown, "{text}");
        }
        for text in ["", "udp:1.2.3.4:1", "tcp:", "tcp::5", "tcp:h:x"] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
        let exposed = |text: &str| text.parse::<Listen>().unwrap().is_exposed();
        assert!(exposed("ptcp:6634:0.0.0.0") && exposed("ptcp:6634:[::]") && exposed("ptcp:6634:192.0.2.1"));
        assert!(!exposed("ptcp:") && !exposed("ptcp:1:::1") && !exposed("ptls:6653:0.0.0.0"));
        for text in ["", "tcp:1", "ptcp:x", "ptcp:1:host", "ptcp:70000"] {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
    }
}
