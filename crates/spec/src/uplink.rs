//! The settings of an uplink, which joins a lab to the network of its machine.
//!
//! ```toml
//! [uplink.internet]
//! # ports of this machine and the hosts' ports that they lead to; TCP, or udp:PORT
//! forward = { "8080" = "web:80", "127.0.0.1:2222" = "web:22", "udp:5353" = "dns:53" }
//! ```

use crate::fields::{Field, Fields};
use crate::mistake::Remarks;
use crate::name::is_name;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An uplink: its hosts reach what this machine reaches.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Uplink {
    /// Ports of this machine that lead to hosts, in the order of the spec.
    pub forwards: Vec<Forward>,
}

/// A port of this machine that leads to a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forward {
    /// Where this machine listens.
    pub listen: ListenAt,
    /// The name of the host.
    pub host: String,
    /// The port of the host.
    pub port: u16,
}

/// A port of this machine. Prints as `PORT`, `ADDRESS:PORT` or `[ADDRESS]:PORT`, with `udp:` before
/// it if it is one of UDP.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ListenAt {
    /// Its protocol.
    pub protocol: PortProtocol,
    /// The only address; `None`: all addresses.
    pub address: Option<IpAddr>,
    /// The port.
    pub port: u16,
}

/// A protocol with ports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PortProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// What [`ListenAt`] and [`Forward`] cannot be read from.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{0}' is not a port to forward")]
pub struct ParsePortError(String);

const EXAMPLE: &str = "{ \"8080\" = \"web:80\" }";

impl FromStr for ListenAt {
    type Err = ParsePortError;

    fn from_str(text: &str) -> Result<ListenAt, ParsePortError> {
        let (protocol, rest) = match text.split_once(':') {
            Some(("udp", rest)) => (PortProtocol::Udp, rest),
            Some(("tcp", rest)) => (PortProtocol::Tcp, rest),
            _ => (PortProtocol::Tcp, text),
        };
        let (address, port) = match rest.rsplit_once(':') {
            None => (None, rest),
            Some((address, port)) => {
                let v6 = address.strip_prefix('[').and_then(|address| address.strip_suffix(']'));
                let address = match v6 {
                    Some(v6) => v6.parse().map(IpAddr::V6),
                    None => address.parse().map(IpAddr::V4),
                };
                (Some(address.map_err(|_| ParsePortError(text.to_owned()))?), port)
            }
        };
        let port = port_of(port).ok_or_else(|| ParsePortError(text.to_owned()))?;
        Ok(ListenAt { protocol, address, port })
    }
}

impl fmt::Display for ListenAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.protocol == PortProtocol::Udp {
            f.write_str("udp:")?;
        }
        match self.address {
            Some(IpAddr::V4(address)) => write!(f, "{address}:{}", self.port),
            Some(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
            None => write!(f, "{}", self.port),
        }
    }
}

/// A number from 1 to 65535, in digits only.
fn port_of(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port > 0)
}

/// Reads the keys of an uplink.
pub(crate) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Uplink {
    let forwards = fields.get("forward").map(|field| forwards(&field, remarks));
    Uplink { forwards: forwards.unwrap_or_default() }
}

fn forwards(field: &Field, remarks: &mut Remarks) -> Vec<Forward> {
    let Some(mut table) = field.table("forward", EXAMPLE, remarks) else { return Vec::new() };
    let mut forwards = Vec::new();
    let mut seen: BTreeSet<ListenAt> = BTreeSet::new();
    for (key_at, to) in table.all() {
        let Ok(listen) = to.key.parse::<ListenAt>() else {
            let what = format!("'{}' is not a port of this machine", to.key);
            remarks.mistake(key_at, what, "write \"8080\", \"udp:53\" or \"127.0.0.1:8080\"");
            continue;
        };
        let clashes = |other: &&ListenAt| {
            let same = (other.protocol, other.port) == (listen.protocol, listen.port);
            same && (other.address == listen.address || other.address.is_none() || listen.address.is_none())
        };
        if let Some(other) = seen.iter().find(clashes) {
            let what = format!("port {listen} is forwarded already, by \"{other}\"");
            remarks.mistake(key_at, what, "write another port");
            continue;
        }
        seen.insert(listen);
        let Some(text) = to.text("web:80", remarks) else { continue };
        match text.rsplit_once(':').and_then(|(host, port)| Some((host, port_of(port)?))) {
            Some((host, port)) if is_name(host) => {
                forwards.push(Forward { listen, host: host.to_owned(), port });
            }
            _ => {
                let what = format!("'{text}' is not a host and its port");
                remarks.mistake(to.at, what, "write for example \"web:80\"");
            }
        }
    }
    forwards
}

/// Writes the keys of an uplink.
pub(crate) fn write(uplink: &Uplink, table: &mut Map<String, Value>) {
    if uplink.forwards.is_empty() {
        return;
    }
    let entries = uplink.forwards.iter().map(|forward| {
        let Forward { listen, host, port } = forward;
        (listen.to_string(), json!(format!("{host}:{port}")))
    });
    table.insert("forward".to_owned(), Value::Object(entries.collect()));
}

/// The schemas of the keys of an uplink.
pub(crate) fn properties() -> Map<String, Value> {
    crate::schema_parts::properties([(
        "forward",
        "Ports of this machine, udp:PORT or ADDRESS:PORT too, and the HOST:PORT that each leads to.",
        json!({ "type": "object", "additionalProperties": { "type": "string" } }),
    )])
}
