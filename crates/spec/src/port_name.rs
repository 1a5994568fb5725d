//! How a port is attached to the world outside, as specs and command lines write it.
//!
//! ```text
//!   eth1            the interface eth1, by the default kind (a packet socket)
//!   xdp:eth1        the interface eth1, by the kind "xdp"
//!   tap:t0          the kind "tap", interface t0
//!   memory          a kind without an interface
//! ```
//!
//! The kinds are listed in [`port_kinds!`](crate::port_kinds). The list is here so that `check`
//! knows the kinds on every system; `fastpath_engine::port` opens them on Linux.

use std::fmt;
use std::str::FromStr;

/// Passes the list of port kinds to the macro `$then`.
///
/// To add a kind: one line here and the file `crates/port/src/FILE.rs`. A line is `FILE:
/// ["KIND:INTERFACE"]`, or `["KIND"]` for a kind without an interface. One file may implement
/// several kinds.
#[doc(hidden)]
#[macro_export]
macro_rules! port_kinds {
    ($then:ident) => {
        $then! {
            af_packet: ["packet:IFACE"],
            af_xdp: ["xdp:IFACE", "xdp-native:IFACE", "xdp-generic:IFACE"],
            tap: ["tap:IFACE"],
            null: ["memory"],
        }
    };
}

macro_rules! patterns {
    ($($file:ident: [$($pattern:literal),+],)+) => {
        /// How each kind is written.
        const PATTERNS: &[&str] = &[$($($pattern),+),+];
    };
}

port_kinds!(patterns);

/// The kind of a name without one.
const DEFAULT_KIND: &str = "packet";

/// A kind of port, and the interface that it attaches to.
///
/// ```
/// use fastpath_spec::PortName;
///
/// let port: PortName = "xdp:eth1".parse()?;
/// assert_eq!((port.kind(), port.interface()), ("xdp", Some("eth1")));
/// let port: PortName = "eth1".parse()?;
/// assert_eq!((port.kind(), port.interface()), ("packet", Some("eth1")));
/// assert!("dpdk:eth1".parse::<PortName>().is_err());
/// # Ok::<(), fastpath_spec::ParsePortNameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortName {
    kind: &'static str,
    /// Empty for a kind without an interface.
    interface: String,
}

/// Why a text is not the name of a port.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ParsePortNameError {
    /// There is no such kind of port.
    UnknownKind(String),
    /// Linux does not accept the name of the interface.
    BadInterface(String),
    /// The kind attaches to no interface.
    NoInterface(&'static str),
}

impl PortName {
    /// The name of a port of this kind on this interface, which is empty for a kind without one.
    ///
    /// # Errors
    /// As for parsing.
    pub fn new(kind: &str, interface: &str) -> Result<PortName, ParsePortNameError> {
        let found = PATTERNS.iter().map(|pattern| parts(pattern)).find(|(name, _)| *name == kind);
        match found {
            None => Err(ParsePortNameError::UnknownKind(kind.to_owned())),
            Some((kind, false)) if interface.is_empty() => Ok(PortName { kind, interface: String::new() }),
            Some((kind, false)) => Err(ParsePortNameError::NoInterface(kind)),
            Some((kind, true)) if is_interface_name(interface) => {
                Ok(PortName { kind, interface: interface.to_owned() })
            }
            Some((_, true)) => Err(ParsePortNameError::BadInterface(interface.to_owned())),
        }
    }

    /// The kind: `packet`, `xdp`, …
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The interface, unless the kind has none.
    pub fn interface(&self) -> Option<&str> {
        (!self.interface.is_empty()).then_some(self.interface.as_str())
    }

    /// The kinds of ports, each as it is written: `xdp:IFACE`, `memory`.
    pub fn patterns() -> impl Iterator<Item = &'static str> {
        PATTERNS.iter().copied()
    }

    /// The names of the kinds.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        PATTERNS.iter().map(|pattern| parts(pattern).0)
    }
}

/// The name of the kind, and whether an interface follows.
fn parts(pattern: &'static str) -> (&'static str, bool) {
    pattern.split_once(':').map_or((pattern, false), |(kind, _)| (kind, true))
}

/// What Linux accepts (dev_valid_name): 1 to 15 bytes without '/', ':' or white space, and neither
/// "." nor "..".
fn is_interface_name(name: &str) -> bool {
    let is_odd = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
    !name.is_empty() && name.len() <= 15 && !name.chars().any(is_odd) && !matches!(name, "." | "..")
}

impl FromStr for PortName {
    type Err = ParsePortNameError;

    fn from_str(text: &str) -> Result<PortName, ParsePortNameError> {
        match text.split_once(':') {
            Some((kind, interface)) => PortName::new(kind, interface),
            None => PortName::new(text, "").or_else(|error| match error {
                // A kind alone that needs an interface is the name of an interface.
                ParsePortNameError::UnknownKind(_) | ParsePortNameError::BadInterface(_) => {
                    PortName::new(DEFAULT_KIND, text)
                }
                other => Err(other),
            }),
        }
    }
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.interface() {
            None => f.write_str(self.kind),
            Some(interface) if self.kind == DEFAULT_KIND => f.write_str(interface),
            Some(interface) => write!(f, "{}:{interface}", self.kind),
        }
    }
}

impl ParsePortNameError {
    /// What to write instead.
    pub fn instead(&self) -> String {
        match self {
            ParsePortNameError::UnknownKind(_) => {
                let patterns: Vec<&str> = PortName::patterns().collect();
                format!("write IFACE, {}", patterns.join(", "))
            }
            ParsePortNameError::BadInterface(_) => "write one that `ip link` shows".to_owned(),
            ParsePortNameError::NoInterface(kind) => format!("write {kind}"),
        }
    }
}

impl fmt::Display for ParsePortNameError {
    /// What is wrong. [`ParsePortNameError::instead`] has the rest.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParsePortNameError::UnknownKind(kind) => {
                write!(f, "'{}' is not a kind of port", kind.escape_debug())
            }
            ParsePortNameError::BadInterface(name) => {
                write!(f, "'{}' cannot be the name of an interface", name.escape_debug())
            }
            ParsePortNameError::NoInterface(kind) => write!(f, "a port of the kind {kind} has no interface"),
        }
    }
}

impl std::error::Error for ParsePortNameError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_a_kind_and_an_interface() {
        for (text, kind, interface, shown) in [
            ("eth1", "packet", Some("eth1"), "eth1"),
            ("packet:eth1", "packet", Some("eth1"), "eth1"),
            ("xdp:eth1.5", "xdp", Some("eth1.5"), "xdp:eth1.5"),
            ("xdp-native:a", "xdp-native", Some("a"), "xdp-native:a"),
            ("tap:t0", "tap", Some("t0"), "tap:t0"),
            ("memory", "memory", None, "memory"),
            // An interface may be called like a kind that needs one.
            ("tap", "packet", Some("tap"), "tap"),
        ] {
            let port: PortName = text.parse().unwrap();
            assert_eq!((port.kind(), port.interface(), port.to_string().as_str()), (kind, interface, shown));
            assert_eq!(port.to_string().parse(), Ok(port), "{text}");
        }
    }

    #[test]
    fn an_unknown_kind_lists_the_kinds() {
        let error = "dpdk:eth1".parse::<PortName>().unwrap_err();
        assert_eq!(error.to_string(), "'dpdk' is not a kind of port");
        let kinds =
            "write IFACE, packet:IFACE, xdp:IFACE, xdp-native:IFACE, xdp-generic:IFACE, tap:IFACE, memory";
        assert_eq!(error.instead(), kinds);
    }

    #[test]
    fn an_interface_has_a_name_that_linux_accepts() {
        for text in ["", "xdp:", "a b", "xdp:a/b", "tap:.", "..", "packet:a:b", "an-interface-too-long"] {
            let error = text.parse::<PortName>().unwrap_err();
            assert_eq!(error.instead(), "write one that `ip link` shows", "{text}");
        }
        let error = "memory:x".parse::<PortName>().unwrap_err();
        assert_eq!(error.to_string(), "a port of the kind memory has no interface");
    }
}
