//! Mirrors of a bridge: copies of chosen packets to a port or into a VLAN.

use super::port::PortSpec;
use super::{references, text, vlans};
use crate::replica::{DbRow, Replica};
use crate::value::Uuid;
use std::collections::BTreeSet;

/// A mirror. Ports are named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MirrorSpec {
    /// Its row.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// All packets are copied.
    pub select_all: bool,
    /// Packets that arrive by these ports are copied.
    pub from: BTreeSet<String>,
    /// Packets that leave by these ports are copied.
    pub to: BTreeSet<String>,
    /// Of these, packets of these VLANs; empty for all.
    pub vlans: BTreeSet<u16>,
    /// Where the copies go, or why the mirror cannot exist.
    pub output: Result<MirrorDestination, String>,
    /// Most bytes of a copy.
    pub snap_len: Option<u16>,
    /// What is written and not done.
    pub notes: Vec<String>,
}

/// Most mirrors of a bridge (Open vSwitch has as many).
const MIRRORS_MAX: usize = 32;

/// Where the copies of a mirror go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MirrorDestination {
    /// To this port.
    Port(String),
    /// Into this VLAN.
    Vlan(u16),
}

/// Describes the mirrors of a bridge with these ports, in the order of their names.
pub(super) fn describe(replica: &Replica, bridge: &DbRow, ports: &[PortSpec]) -> Vec<MirrorSpec> {
    let name_of = |uuid: Uuid| ports.iter().find(|port| port.uuid == uuid).map(|port| port.name.clone());
    let one = |(uuid, row): (Uuid, &DbRow)| {
        let selected = |column| row.column(column).uuids().filter_map(name_of).collect::<BTreeSet<_>>();
        let elsewhere = ["select_src_port", "select_dst_port"].into_iter().flat_map(|column| {
            let missing = row.column(column).uuids().filter(|port| name_of(*port).is_none());
            missing.filter_map(move |port| {
                let name = text(replica.row("Port", port)?, "name");
                Some(format!("{column}: port {name} is not in this bridge"))
            })
        });
        let output_port = row.column("output_port").uuids().next();
        let output_vlan = vlans(row, "output_vlan").into_iter().next();
        // A filter that was ignored would copy more.
        let output = match (row.column("filter").text(), output_port, output_vlan) {
            (Some(filter), ..) if !filter.is_empty() => Err("filter is not supported".to_owned()),
            (_, Some(_), Some(_)) => Err("output_port and output_vlan: write one of them".to_owned()),
            (_, Some(port), None) => name_of(port)
                .map(MirrorDestination::Port)
                .ok_or_else(|| "output_port: name a port of this bridge".to_owned()),
            (_, None, Some(vlan)) => Ok(MirrorDestination::Vlan(vlan)),
            (_, None, None) => Err("write output_port or output_vlan".to_owned()),
        };
        let snap_len = row.column("snaplen").integer().and_then(|len| u16::try_from(len).ok());
        MirrorSpec {
            uuid,
            name: text(row, "name").to_owned(),
            select_all: row.column("select_all").is_true(),
            from: selected("select_src_port"),
            to: selected("select_dst_port"),
            vlans: vlans(row, "select_vlan"),
            output,
            snap_len: snap_len.filter(|len| *len > 0),
            notes: elsewhere.collect(),
        }
    };
    let mut mirrors: Vec<MirrorSpec> = references(replica, bridge, "mirrors", "Mirror").map(one).collect();
    mirrors.sort_by(|a, b| (&a.name, a.uuid).cmp(&(&b.name, b.uuid)));
    for beyond in mirrors.iter_mut().skip(MIRRORS_MAX) {
        beyond.output = Err(format!("a bridge has at most {MIRRORS_MAX} mirrors"));
    }
    mirrors
}
