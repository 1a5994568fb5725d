//! The names that programs in hosts resolve: the files that they see as /etc/hosts and
//! /etc/resolv.conf.

use crate::uplink;
use fastpath_spec::Topology;
use std::fmt::Write;

/// Returns /etc/hosts of the lab: this machine's, then every node's addresses.
pub(crate) fn hosts(topology: &Topology) -> String {
    let mut text = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    for node in &topology.nodes {
        for address in node.interfaces.iter().flat_map(|interface| &interface.addresses) {
            writeln!(text, "{}\t{}", address.addr(), node.name).expect("writing to a string");
        }
    }
    text
}

/// Returns /etc/resolv.conf of the hosts of a lab.
///
/// Hosts of a lab with an uplink ask the uplink. A lab without one has no name server. The servers
/// of the machine cannot be reached from a host, and a program would wait for each of them. Without
/// one the resolver asks 127.0.0.1 (resolv.conf(5)), which refuses at once.
pub(crate) fn resolv_conf(topology: &Topology) -> String {
    let machine = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    uplink::resolv_conf(topology, &machine).unwrap_or_else(none)
}

fn none() -> String {
    "# Names of the lab are in /etc/hosts. There is no way to a name server.\n".to_owned()
}
