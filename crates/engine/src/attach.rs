//! Opening the ports that a spec names for its hosts.

use crate::Notice;
use crate::engine::EdgePorts;
use crate::port::{self, OpenContext, OpenError, Port};
use fastpath_net::EdgeId;
use fastpath_spec::{NodeId, NodeKind, Topology};
use std::collections::BTreeMap;

/// Opens the port that the spec names for each host: `port = "eth1"`, or with a kind before the
/// name (`xdp:eth1`, `tap:t0`). Where AF_XDP is unavailable a packet socket takes its place, and
/// `notice` receives the reason.
///
/// # Errors
/// See [`AttachError`].
pub fn attach(topology: &Topology, notice: &Notice) -> Result<EdgePorts, AttachError> {
    attach_with(topology, notice, |_| Vec::new())
}

/// Opens ports as [`attach`] does, for hosts without a name of one those of `others`: one for each
/// interface, or none.
///
/// # Errors
/// See [`AttachError`].
pub fn attach_with(
    topology: &Topology,
    notice: &Notice,
    mut others: impl FnMut(NodeId) -> Vec<Box<dyn Port>>,
) -> Result<EdgePorts, AttachError> {
    if let Some((_, node)) = topology.hosts().find(|(_, host)| matches!(host.kind, NodeKind::Uplink { .. })) {
        return Err(AttachError::Uplink { uplink: node.name.clone() });
    }
    let mut unnamed = BTreeMap::new();
    for (id, host) in topology.hosts().filter(|(_, host)| host.kind.port_name().is_none()) {
        let ports = others(id);
        if ports.is_empty() {
            return Err(AttachError::NoPort { host: host.name.clone() });
        }
        unnamed.insert(id, ports);
    }
    let mut named = attach_named(topology, |_| true, notice)?;
    let ports = topology
        .hosts()
        .flat_map(|(id, _)| named.remove(&id).into_iter().chain(unnamed.remove(&id).into_iter().flatten()));
    // Edges are numbered in this order too: hosts, then their interfaces.
    Ok((0..).map(EdgeId).zip(ports).collect())
}

/// Opens the ports of the hosts for which the spec names one.
///
/// # Errors
/// See [`AttachError`].
pub fn attach_named(
    topology: &Topology,
    wanted: impl Fn(NodeId) -> bool,
    notice: &Notice,
) -> Result<BTreeMap<NodeId, Box<dyn Port>>, AttachError> {
    let names = topology.hosts().filter_map(|(_, host)| host.kind.port_name().cloned());
    let mut context = OpenContext::new(names, notice);
    let (mut ports, mut hosts_on) = (BTreeMap::new(), BTreeMap::new());
    for (id, host) in topology.hosts() {
        let Some(name) = host.kind.port_name() else { continue };
        if let Some(interface) = name.interface()
            && let Some(other) = hosts_on.insert(interface, &host.name)
        {
            let hosts = [other.clone(), host.name.clone()];
            return Err(AttachError::Shared { hosts, port: interface.to_owned() });
        }
        if host.interfaces.len() != 1 {
            let (host, links) = (host.name.clone(), host.interfaces.len());
            return Err(AttachError::Links { host, port: name.to_string(), links });
        }
        if wanted(id) {
            ports.insert(id, port::open(name, &mut context)?);
        }
    }
    Ok(ports)
}

/// Why the hosts of a spec cannot be attached to interfaces of this machine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// An uplink needs a lab.
    #[error(
        "{uplink} is an uplink, which only a lab has: use `fastpath lab up`, or write [host.{uplink}] with a port"
    )]
    Uplink {
        /// Its name.
        uplink: String,
    },
    /// A host names no interface.
    #[error("host {host}: no port: write port = \"eth1\" (an interface of this machine) in [host.{host}]")]
    NoPort {
        /// The host.
        host: String,
    },
    /// Two hosts name the same interface.
    #[error("hosts {} and {}: both have port {port}: give each its own interface", hosts[0], hosts[1])]
    Shared {
        /// The hosts.
        hosts: [String; 2],
        /// The interface.
        port: String,
    },
    /// An interface is one end of one link.
    #[error("host {host}: port {port} can be the end of one link, not of {links}: make a host for each link")]
    Links {
        /// The host.
        host: String,
        /// Its interface.
        port: String,
        /// Links of the host.
        links: usize,
    },
    /// The interface cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
}
