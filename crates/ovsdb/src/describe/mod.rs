//! From rows to bridges: a pure function.
//!
//! ```text
//!  Open_vSwitch ─ bridges ─▶ Bridge ─┬─ ports ─▶ Port ─┬─ interfaces ─▶ Interface      port.rs
//!                                    │                 └─ qos ─▶ QoS ─ queues ─▶ Queue   qos.rs
//!                                    ├─ controller ─▶ Controller                         controller.rs
//!                                    └─ mirrors ─▶ Mirror                                mirror.rs
//! ```
//!
//! Everything that is written in a row and not done by these switches has a text: in `error` where
//! the thing cannot exist without it, in `notes` where it can. The texts name the column.

mod controller;
mod mirror;
mod port;
mod qos;

pub use controller::ControllerSpec;
pub use mirror::{MirrorDestination, MirrorSpec};
pub use port::{InterfaceKind, InterfaceSpec, PortSpec, PortVlans, VlanMode};
pub use qos::{QosSpec, QueueRate};

use crate::replica::{DbRow, Replica};
use crate::value::{Atom, Uuid};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// Most bridges.
const BRIDGES_MAX: usize = 256;
/// The shortest interval of statistics, which is also the usual one.
const STATISTICS_EVERY: Duration = Duration::from_secs(5);
/// The longest name of an interface of Linux, bytes.
const NAME_MAX: usize = 15;

/// What a database describes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Configuration {
    /// The row of table Open_vSwitch.
    pub root: Uuid,
    /// The number of this configuration, which is written to `cur_cfg` once it is in force.
    pub next_cfg: i64,
    /// The interval at which statistics are written.
    pub statistics_every: Duration,
    /// Private key, certificate and CA certificate for controllers.
    pub tls: Option<[PathBuf; 3]>,
    /// The bridges, in the order of their names.
    pub bridges: Vec<BridgeSpec>,
    /// What is written and not done.
    pub notes: Vec<String>,
}

/// A bridge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BridgeSpec {
    /// Its row.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// Why it cannot exist.
    pub error: Option<String>,
    /// `system` or `netdev`, or empty: all of them are this program.
    pub datapath_type: String,
    /// The datapath id that is asked for.
    pub datapath_id: Option<u64>,
    /// The hardware address that is asked for.
    pub hw_addr: Option<[u8; 6]>,
    /// What it does without a controller.
    pub fail_mode: FailureMode,
    /// Versions of OpenFlow that are allowed, as in `OpenFlow13`; empty for the default.
    pub protocols: BTreeSet<String>,
    /// Its controllers, in the order of their targets.
    pub controllers: Vec<ControllerSpec>,
    /// Its ports, in the order of their names.
    pub ports: Vec<PortSpec>,
    /// The VLANs in which it learns no addresses.
    pub flood_vlans: BTreeSet<u16>,
    /// Its mirrors, in the order of their names.
    pub mirrors: Vec<MirrorSpec>,
    /// What is written and not done.
    pub notes: Vec<String>,
}

/// What a bridge does without a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureMode {
    /// It forwards by learned addresses.
    Standalone,
    /// It forwards by its flows alone.
    Secure,
}

/// The versions of OpenFlow that a bridge may name.
const PROTOCOLS: [&str; 4] = ["OpenFlow10", "OpenFlow13", "OpenFlow14", "OpenFlow15"];
/// Columns of Bridge that say something unless they are empty or false.
const BRIDGE_COLUMNS: &[&str] = &[
    "stp_enable",
    "rstp_enable",
    "mcast_snooping_enable",
    "netflow",
    "sflow",
    "ipfix",
    "flow_tables",
    "auto_attach",
];

/// Returns what the rows describe; `None` if table Open_vSwitch is empty.
pub fn describe(replica: &Replica) -> Option<Configuration> {
    let (root, row) = replica.rows("Open_vSwitch").next()?;
    let mut notes = Vec::new();
    let mut rows: Vec<(Uuid, &DbRow)> = references(replica, row, "bridges", "Bridge").collect();
    rows.sort_by_key(|(uuid, row)| (text(row, "name"), *uuid));
    if rows.len() > BRIDGES_MAX {
        notes.push(format!("bridges: {} of them: only {BRIDGES_MAX} are made", rows.len()));
        rows.truncate(BRIDGES_MAX);
    }
    if references(replica, row, "ssl", "SSL").any(|(_, ssl)| ssl.column("bootstrap_ca_cert").is_true()) {
        let instead = "copy the certificate of the authority to the file ca_cert";
        notes.push(format!("table SSL: bootstrap_ca_cert is not supported: {instead}"));
    }
    let mut taken = BTreeMap::new();
    let bridges = rows.into_iter().map(|(uuid, row)| bridge(replica, uuid, row, &mut taken)).collect();
    Some(Configuration {
        root,
        next_cfg: row.column("next_cfg").integer().unwrap_or(0),
        statistics_every: statistics_every(row),
        tls: tls(replica, row),
        bridges,
        notes,
    })
}

fn statistics_every(row: &DbRow) -> Duration {
    let asked = row.column("other_config").get("stats-update-interval").and_then(|text| text.parse().ok());
    asked.map_or(STATISTICS_EVERY, Duration::from_millis).max(STATISTICS_EVERY)
}

fn tls(replica: &Replica, row: &DbRow) -> Option<[PathBuf; 3]> {
    let (_, ssl) = references(replica, row, "ssl", "SSL").next()?;
    let files = ["private_key", "certificate", "ca_cert"].map(|name| text(ssl, name));
    files.iter().all(|file| !file.is_empty()).then(|| files.map(PathBuf::from))
}

/// Describes a bridge. `taken` are the ports and interfaces of the bridges before it.
fn bridge(
    replica: &Replica,
    uuid: Uuid,
    row: &DbRow,
    taken: &mut BTreeMap<(&'static str, Uuid), String>,
) -> BridgeSpec {
    let name = text(row, "name").to_owned();
    let mut notes = refused_columns(row, BRIDGE_COLUMNS);
    let (datapath_id, hw_addr) = bridge_config(row, &mut notes);
    let datapath_type = text(row, "datapath_type").to_owned();
    let others = texts(row, "protocols").filter(|name| !PROTOCOLS.contains(name));
    notes.extend(
        others.map(|name| format!("protocols: {name} is not supported; write {}", PROTOCOLS.join(","))),
    );
    let mut error = wrong_name(&name);
    if !["", "system", "netdev"].contains(&&*datapath_type) {
        error = error.or(Some(format!("datapath_type {datapath_type}: write system or netdev")));
    }
    let mut ports: Vec<PortSpec> = Vec::new();
    for (port, row) in references(replica, row, "ports", "Port") {
        if let Some(other) = taken.get(&("Port", port)) {
            notes.push(format!("ports: port {} is in bridge {other}", text(row, "name")));
            continue;
        }
        taken.insert(("Port", port), name.clone());
        ports.push(port::describe(replica, &name, port, row, taken));
    }
    let is_missing = |port: &Uuid| replica.row("Port", *port).is_none();
    let missing = row.column("ports").uuids().filter(is_missing);
    notes.extend(missing.map(|port| format!("ports: there is no port {port}")));
    ports.sort_by(|a, b| (&a.name, a.uuid).cmp(&(&b.name, b.uuid)));
    let mirrors = mirror::describe(replica, row, &ports);
    // A mirror has no column for it.
    notes.extend(mirrors.iter().flat_map(|one| {
        let texts = one.output.as_ref().err().into_iter().chain(&one.notes);
        texts.map(move |why| format!("mirror {}: {why}", one.name))
    }));
    BridgeSpec {
        uuid,
        name,
        error,
        datapath_type,
        datapath_id,
        hw_addr,
        fail_mode: match row.column("fail_mode").text() {
            Some("secure") => FailureMode::Secure,
            _ => FailureMode::Standalone,
        },
        protocols: texts(row, "protocols").map(str::to_owned).collect(),
        controllers: controller::describe(replica, row),
        ports,
        flood_vlans: vlans(row, "flood_vlans"),
        mirrors,
        notes,
    }
}

/// Reads the datapath id and the hardware address of `other_config`. Everything else in it is
/// noted.
fn bridge_config(row: &DbRow, notes: &mut Vec<String>) -> (Option<u64>, Option<[u8; 6]>) {
    let (mut id, mut hw_addr) = (None, None);
    for (key, value) in row.column("other_config").texts() {
        match key {
            "datapath-id" => match parse_datapath_id(value) {
                Some(parsed) => id = Some(parsed),
                None => notes.push(format!(
                    "other_config:datapath-id {value}: write 16 hexadecimal digits that are not all 0"
                )),
            },
            "hwaddr" => match parse_hw_addr(value) {
                Some(parsed) => hw_addr = Some(parsed),
                None => notes.push(format!(
                    "other_config:hwaddr {value}: write an Ethernet address of one station, as in 02:00:00:00:00:01"
                )),
            },
            // There is no in-band control to disable.
            "disable-in-band" if value == "true" => {}
            _ => notes.push(format!("other_config:{key} is not supported")),
        }
    }
    (id, hw_addr)
}

/// Open vSwitch reads 16 digits, or up to 16 after `0x`.
fn parse_datapath_id(text: &str) -> Option<u64> {
    let digits = match text.strip_prefix("0x") {
        Some(digits) => (1..=16).contains(&digits.len()).then_some(digits)?,
        None => (text.len() == 16).then_some(text)?,
    };
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|id| is_hex && *id != 0)
}

/// An Ethernet address of one station.
fn parse_hw_addr(text: &str) -> Option<[u8; 6]> {
    let mut groups = text.split(':');
    let mut bytes = [0; 6];
    for byte in &mut bytes {
        let group = groups.next().filter(|group| group.len() == 2)?;
        let is_hex = group.bytes().all(|byte| byte.is_ascii_hexdigit());
        *byte = u8::from_str_radix(group, 16).ok().filter(|_| is_hex)?;
    }
    (groups.next().is_none() && bytes[0] & 1 == 0 && bytes != [0; 6]).then_some(bytes)
}

/// Returns why a name is not one of an interface of Linux (dev_valid_name).
fn wrong_name(name: &str) -> Option<String> {
    let is_wrong = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
    match name {
        "" => Some("name: it is empty".to_owned()),
        "." | ".." => Some(format!("name: '{name}' cannot be an interface")),
        _ if name.len() > NAME_MAX => {
            Some(format!("name: {} bytes: an interface has at most {NAME_MAX}", name.len()))
        }
        _ if name.contains(is_wrong) => {
            Some("name: an interface has no '/', ':' or white space in its name".to_owned())
        }
        _ => None,
    }
}

/// Returns a note for each of these columns that is neither empty nor false.
fn refused_columns(row: &DbRow, columns: &[&str]) -> Vec<String> {
    let is_set = |name: &&&str| {
        let datum = row.column(name);
        !datum.is_empty() && datum.only() != Some(&false.into()) && datum.integer() != Some(0)
    };
    columns.iter().filter(is_set).map(|name| format!("{name} is not supported")).collect()
}

/// The VLAN ids of a column.
fn vlans(row: &DbRow, column: &str) -> BTreeSet<u16> {
    let vlan = |atom: &Atom| match atom {
        Atom::Integer(number) => u16::try_from(*number).ok().filter(|vlan| *vlan < 4096),
        _ => None,
    };
    row.column(column).atoms().filter_map(vlan).collect()
}

/// The string of a column, or an empty one.
fn text<'a>(row: &'a DbRow, column: &str) -> &'a str {
    row.column(column).text().unwrap_or_default()
}

/// The strings of a column.
fn texts<'a>(row: &'a DbRow, column: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    row.column(column).atoms().filter_map(|atom| match atom {
        Atom::Text(text) => Some(text.as_str()),
        _ => None,
    })
}

/// The rows that a column refers to. A reference to a row that is missing is left out.
fn references<'a>(
    replica: &'a Replica,
    row: &'a DbRow,
    column: &str,
    table: &'static str,
) -> impl Iterator<Item = (Uuid, &'a DbRow)> + use<'a> {
    row.column(column).uuids().filter_map(move |uuid| Some((uuid, replica.row(table, uuid)?)))
}

#[cfg(test)]
mod tests;
