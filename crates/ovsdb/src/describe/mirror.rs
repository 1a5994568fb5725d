//! Mirrors of a bridge: copies of chosen packets to a port.

use super::port::PortSpec;
use super::{references, text};
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
    /// Why it cannot exist.
    pub error: Option<String>,
    /// All packets are copied.
    pub select_all: bool,
    /// Packets that arrive by these ports are copied.
    pub from: BTreeSet<String>,
    /// Packets that leave by these ports are copied.
    pub to: BTreeSet<String>,
    /// The port that gets the copies.
    pub output: String,
}

/// Columns of which a mirror that ignored them would copy something else.
const COLUMNS: &[&str] = &["select_vlan", "output_vlan", "snaplen"];

/// Describes the mirrors of a bridge with these ports, in the order of their names.
pub(super) fn describe(replica: &Replica, bridge: &DbRow, ports: &[PortSpec]) -> Vec<MirrorSpec> {
    let name_of = |uuid: Uuid| ports.iter().find(|port| port.uuid == uuid).map(|port| port.name.clone());
    let one = |(uuid, row): (Uuid, &DbRow)| {
        let selected = |column| row.column(column).uuids().filter_map(name_of).collect::<BTreeSet<_>>();
        let select_all = row.column("select_all").is_true();
        let (from, to) = (selected("select_src_port"), selected("select_dst_port"));
        let output = row.column("output_port").uuids().next().and_then(name_of);
        let refused = COLUMNS.iter().find(|column| !row.column(column).is_empty());
        let error = match (refused, &output) {
            (Some(column), _) => Some(format!("{column} is not supported")),
            (None, None) => Some("output_port: name a port of this bridge".to_owned()),
            (None, Some(_)) => None,
        };
        let name = text(row, "name").to_owned();
        let output = output.unwrap_or_default();
        MirrorSpec { uuid, name, error, select_all, from, to, output }
    };
    let mut mirrors: Vec<MirrorSpec> = references(replica, bridge, "mirrors", "Mirror").map(one).collect();
    mirrors.sort_by(|a, b| (&a.name, a.uuid).cmp(&(&b.name, b.uuid)));
    mirrors
}
