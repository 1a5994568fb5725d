//! Ports of a bridge and their interfaces.

use super::qos::{self, QosSpec};
use super::{parse_hw_addr, references, refused_columns, text, wrong_name};
use crate::replica::{DbRow, Replica};
use crate::value::Uuid;
use std::collections::{BTreeMap, BTreeSet};

/// A port of a bridge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortSpec {
    /// Its row.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// Its interfaces, in the order of their names: one, unless the port is refused.
    pub interfaces: Vec<InterfaceSpec>,
    /// Its VLANs.
    pub vlans: PortVlans,
    /// Its queues.
    pub qos: Option<QosSpec>,
    /// What is written and not done.
    pub notes: Vec<String>,
}

/// The VLANs that a port carries where the bridge forwards by addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortVlans {
    /// How frames of the VLANs look on the port.
    pub mode: VlanMode,
    /// The VLAN of frames without a tag; not that of a trunk port.
    pub tag: u16,
    /// The VLANs of a port other than an access port; empty for all.
    pub trunks: BTreeSet<u16>,
}

/// How frames of VLANs look on a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VlanMode {
    /// One VLAN, without tags.
    Access,
    /// Several VLANs, with tags.
    Trunk,
    /// As [`VlanMode::Trunk`]; frames that arrive without a tag are of the VLAN `tag`.
    NativeTagged,
    /// As [`VlanMode::NativeTagged`]; frames of the VLAN `tag` leave without a tag.
    NativeUntagged,
}

/// An interface of a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InterfaceSpec {
    /// Its row.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// What it is, or why it cannot be had.
    pub kind: Result<InterfaceKind, String>,
    /// Whether it is the local port of the bridge: the one with the bridge's name.
    pub is_local: bool,
    /// The number that is asked for.
    pub ofport_request: Option<u32>,
    /// The number that the database holds.
    pub ofport: Option<u32>,
    /// The hardware address that is asked for.
    pub hw_addr: Option<[u8; 6]>,
    /// The MTU that is asked for.
    pub mtu: Option<u32>,
    /// What it may receive at most: rate in kbit/s, and burst in kbit.
    pub policing: Option<(u64, u64)>,
    /// What is written and not done.
    pub notes: Vec<String>,
}

/// What an interface is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum InterfaceKind {
    /// An interface of this machine that exists.
    System,
    /// An interface that is made for the bridge.
    Internal,
    /// One end of a pair, the other of which is in this or another bridge.
    Patch {
        /// The interface at the other end.
        peer: String,
    },
}

/// Columns of Port that say something unless they are empty. Without bonds the other columns of
/// bonds mean nothing, here as in Open vSwitch.
const PORT_COLUMNS: &[&str] = &["mac", "other_config"];

/// Columns of Interface that say something unless they are empty, false or 0.
const INTERFACE_COLUMNS: &[&str] = &[
    "ingress_policing_kpkts_rate",
    "ingress_policing_kpkts_burst",
    "cfm_mpid",
    "bfd",
    "lldp",
    "other_config",
];

/// The burst of a policer without one, kbit, as in Open vSwitch.
const BURST_USUAL: u64 = 8000;

/// Describes a port of a bridge. `taken` are the interfaces of the ports before it.
pub(super) fn describe(
    replica: &Replica,
    bridge: &str,
    uuid: Uuid,
    row: &DbRow,
    taken: &mut BTreeMap<(&'static str, Uuid), String>,
) -> PortSpec {
    let name = text(row, "name").to_owned();
    let mut notes = refused_columns(row, PORT_COLUMNS);
    let refused = refusal(row);
    let mut interfaces: Vec<InterfaceSpec> = Vec::new();
    for (uuid, row) in references(replica, row, "interfaces", "Interface") {
        if let Some(other) = taken.get(&("Interface", uuid)) {
            notes.push(format!("interfaces: interface {} is in port {other}", text(row, "name")));
            continue;
        }
        taken.insert(("Interface", uuid), name.clone());
        let mut interface = interface(bridge, uuid, row);
        if let Some(why) = &refused {
            interface.kind = Err(format!("port {name}: {why}"));
        }
        interfaces.push(interface);
    }
    if interfaces.is_empty() {
        notes.push("interfaces: there is none".to_owned());
    }
    interfaces.sort_by(|a, b| (&a.name, a.uuid).cmp(&(&b.name, b.uuid)));
    let qos = qos::describe(replica, row);
    if let Some(qos) = &qos {
        let all = qos.error.iter().chain(&qos.notes);
        notes.extend(all.map(|note| format!("qos: {note}")));
    }
    PortSpec { uuid, name, interfaces, vlans: vlans(row), qos, notes }
}

/// Returns why a port cannot be had: without this, it would connect what has to be apart.
fn refusal(row: &DbRow) -> Option<String> {
    let many = row.column("interfaces").uuids().count() > 1;
    let lacp = row.column("lacp").text().filter(|lacp| *lacp != "off");
    let mode = row.column("vlan_mode").text();
    match () {
        () if many => Some("interfaces: bonds are not supported".to_owned()),
        () if lacp.is_some() => Some("lacp is not supported".to_owned()),
        () if mode == Some("dot1q-tunnel") => Some("vlan_mode dot1q-tunnel is not supported".to_owned()),
        () if row.column("protected").is_true() => Some("protected is not supported".to_owned()),
        () => None,
    }
}

/// Reads the VLANs of a port. Without a mode, a port with a tag is an access port.
fn vlans(row: &DbRow) -> PortVlans {
    let vlan = |number: i64| u16::try_from(number).ok().filter(|vlan| *vlan < 4096);
    let tag = row.column("tag").integer().and_then(vlan);
    let mode = match row.column("vlan_mode").text() {
        Some("access") => VlanMode::Access,
        Some("native-tagged") => VlanMode::NativeTagged,
        Some("native-untagged") => VlanMode::NativeUntagged,
        Some(_) => VlanMode::Trunk,
        None if tag.is_some() => VlanMode::Access,
        None => VlanMode::Trunk,
    };
    let tag = if mode == VlanMode::Trunk { 0 } else { tag.unwrap_or(0) };
    PortVlans { mode, tag, trunks: super::vlans(row, "trunks") }
}

fn interface(bridge: &str, uuid: Uuid, row: &DbRow) -> InterfaceSpec {
    let name = text(row, "name").to_owned();
    let is_local = name == bridge;
    let mut notes = refused_columns(row, INTERFACE_COLUMNS);
    let kind = kind(row, &name, is_local);
    let is_patch = matches!(kind, Ok(InterfaceKind::Patch { .. }));
    let options = row.column("options").texts().map(|(key, _)| key);
    let others = options.filter(|key| kind.is_ok() && !(is_patch && *key == "peer"));
    notes.extend(others.map(|key| format!("options:{key} is not supported")));
    let hw_addr = row.column("mac").text().and_then(|text| match parse_hw_addr(text) {
        Some(_) if kind != Ok(InterfaceKind::Internal) => {
            notes.push("mac: only an internal interface gets another address".to_owned());
            None
        }
        Some(parsed) => Some(parsed),
        None => {
            notes.push(format!("mac {text}: write the address of one station, as in 02:00:00:00:00:01"));
            None
        }
    });
    let number = |name| {
        let number = row.column(name).integer().and_then(|number| u32::try_from(number).ok());
        number.filter(|number| (1..=65_279).contains(number))
    };
    let mtu = row.column("mtu_request").integer().and_then(|mtu| u32::try_from(mtu).ok());
    if is_patch && mtu.is_some() {
        notes.push("mtu_request: a patch port has no MTU".to_owned());
    }
    let positive = |name| row.column(name).integer().and_then(|number| u64::try_from(number).ok());
    let rate = positive("ingress_policing_rate").filter(|rate| *rate > 0);
    let burst = positive("ingress_policing_burst").filter(|burst| *burst > 0);
    InterfaceSpec {
        uuid,
        policing: rate.map(|rate| (rate, burst.unwrap_or(BURST_USUAL))),
        kind,
        is_local,
        ofport_request: number("ofport_request"),
        ofport: number("ofport"),
        hw_addr,
        mtu: mtu.filter(|_| !is_patch),
        notes,
        name,
    }
}

/// Returns what an interface is. The one with the name of its bridge is internal, whatever its type
/// says, as in Open vSwitch.
fn kind(row: &DbRow, name: &str, is_local: bool) -> Result<InterfaceKind, String> {
    let kind = match text(row, "type") {
        _ if is_local => InterfaceKind::Internal,
        "" | "system" => InterfaceKind::System,
        "internal" | "tap" => InterfaceKind::Internal,
        "patch" => {
            let peer = row.column("options").get("peer").filter(|peer| !peer.is_empty());
            let peer = peer.ok_or("options:peer: name the patch port at the other end")?;
            if peer == name {
                return Err("options:peer: a patch port cannot be its own peer".to_owned());
            }
            return Ok(InterfaceKind::Patch { peer: peer.to_owned() });
        }
        other => {
            return Err(format!("type {other} is not supported: write system, internal or patch"));
        }
    };
    wrong_name(name).map_or(Ok(kind), Err)
}
