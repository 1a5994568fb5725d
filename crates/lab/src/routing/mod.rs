//! Routing daemons in the namespaces of kernel routers: their configuration, files and processes.
//!
//! ```text
//!  topology ─▶ frr.rs, bird.rs: configuration ─┐
//!  author's file ──────────────────────────────┴▶ <lab>/routers/<router>/ ─▶ daemons (daemon.rs)
//! ```
//!
//! A daemon sees its own /etc/frr, /run/frr and /run/bird, so that `vtysh` and `birdc` in the
//! router reach it. Its processes are in the scope of the lab and end with it.

mod bird;
mod daemon;
mod frr;

pub use daemon::DaemonError;
pub(crate) use daemon::{places, require, start};

use fastpath_spec::segment::Segments;
use fastpath_spec::{
    DaemonProgram, Interface, NodeId, ProtocolKind, ProtocolSettings, RoutingDaemon, Topology,
};
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr};

/// The first number of the autonomous systems of routers that give none: private use (RFC 6996).
const ASN_FIRST: u32 = 4_200_000_000;

/// A router with a daemon, as the generators of configurations see it.
struct Speaker<'t> {
    name: &'t str,
    daemon: &'t RoutingDaemon,
    id: Ipv4Addr,
    asn: u32,
    links: Vec<SpeakerLink<'t>>,
}

/// An interface of a router with a daemon.
struct SpeakerLink<'t> {
    /// The name of the link.
    link: &'t str,
    interface: &'t Interface,
    /// Whether one other station is on the segment.
    is_point_to_point: bool,
    /// The other routers with a daemon there.
    neighbors: Vec<SpeakerNeighbor<'t>>,
}

/// A router with a daemon on the same segment.
struct SpeakerNeighbor<'t> {
    daemon: &'t RoutingDaemon,
    asn: u32,
    interface: &'t Interface,
}

impl<'t> Speaker<'t> {
    /// Returns the router, if it has a daemon.
    fn of(topology: &'t Topology, segments: &Segments, id: NodeId) -> Option<Speaker<'t>> {
        let node = topology.node(id);
        let daemon = daemon_of(topology, id)?;
        let link = |(place, interface): (usize, &'t Interface)| {
            let stations = &segments.all[segments.at(id, place)].stations;
            let others = stations.iter().filter(|station| **station != (id, place));
            let neighbor = |&(node, place): &(NodeId, usize)| {
                let interface = &topology.node(node).interfaces[place];
                Some(SpeakerNeighbor {
                    daemon: daemon_of(topology, node)?,
                    asn: asn(topology, node),
                    interface,
                })
            };
            SpeakerLink {
                link: &topology.link(interface.link).name,
                interface,
                is_point_to_point: stations.len() == 2,
                neighbors: others.filter_map(neighbor).collect(),
            }
        };
        Some(Speaker {
            name: &node.name,
            daemon,
            id: router_id(topology, id),
            asn: asn(topology, id),
            links: node.interfaces.iter().enumerate().map(link).collect(),
        })
    }

    fn settings(&self, kind: ProtocolKind) -> Option<&'t ProtocolSettings> {
        self.daemon.protocols.get(&kind)
    }

    /// Returns the configuration of its daemon: the author's, or that of the topology.
    fn config(&self) -> String {
        match (&self.daemon.config, self.daemon.program) {
            (Some(text), _) => text.clone(),
            (None, DaemonProgram::Frr) => frr::config(self),
            (None, DaemonProgram::Bird) => bird::config(self),
        }
    }
}

impl SpeakerLink<'_> {
    fn has_v4(&self) -> bool {
        self.interface.addresses.iter().any(|net| net.addr().is_ipv4())
    }

    fn has_v6(&self) -> bool {
        self.interface.addresses.iter().any(|net| net.addr().is_ipv6())
    }

    /// Whether a neighbor speaks the protocol. Its messages disturb other stations only.
    fn is_spoken(&self, kind: ProtocolKind) -> bool {
        // A daemon with the author's configuration may speak anything.
        let speaks = |daemon: &RoutingDaemon| daemon.config.is_some() || daemon.protocols.contains_key(&kind);
        self.neighbors.iter().any(|neighbor| speaks(neighbor.daemon))
    }

    /// Returns the BGP neighbors: their numbers, and their addresses in the subnets of the
    /// interface, one of each family.
    fn bgp_neighbors(&self) -> impl Iterator<Item = (u32, &Interface, Vec<IpAddr>)> {
        let own = &self.interface.addresses;
        let speakers = self.neighbors.iter().filter(|n| n.daemon.protocols.contains_key(&ProtocolKind::Bgp));
        speakers.map(move |neighbor| {
            let shared = |is_v4: bool| {
                let all = neighbor.interface.addresses.iter().map(IpNet::addr);
                all.filter(|address| address.is_ipv4() == is_v4)
                    .find(|address| own.iter().any(|net| net.contains(address)))
            };
            (neighbor.asn, neighbor.interface, [true, false].into_iter().filter_map(shared).collect())
        })
    }
}

/// Returns the configuration of the daemon of a router, if it has one.
pub(crate) fn config(topology: &Topology, segments: &Segments, id: NodeId) -> Option<String> {
    Speaker::of(topology, segments, id).map(|speaker| speaker.config())
}

fn daemon_of(topology: &Topology, id: NodeId) -> Option<&RoutingDaemon> {
    topology.node(id).kind.daemon()
}

/// Returns the number of the autonomous system of a router.
fn asn(topology: &Topology, id: NodeId) -> u32 {
    let given = daemon_of(topology, id).and_then(|daemon| daemon.protocols.get(&ProtocolKind::Bgp)?.asn);
    given.unwrap_or(ASN_FIRST + id.0)
}

/// Returns the identifier of a router: the one given, its first IPv4 address, or one of its number.
fn router_id(topology: &Topology, id: NodeId) -> Ipv4Addr {
    let mut addresses = topology.node(id).interfaces.iter().flat_map(|interface| &interface.addresses);
    let first = addresses.find_map(|net| match net {
        IpNet::V4(net) => Some(net.addr()),
        IpNet::V6(_) => None,
    });
    let given = daemon_of(topology, id).and_then(|daemon| daemon.router_id);
    given.or(first).unwrap_or_else(|| Ipv4Addr::from(0x0aff_0000 + id.0 + 1))
}

/// Returns how often hello messages are sent and when a neighbor is dead, with the protocol's
/// defaults and the ratio of the defaults where only one is given.
fn timers(settings: &ProtocolSettings, defaults: (u16, u16)) -> (u16, u16) {
    let ratio = (defaults.1 / defaults.0).max(1);
    match (settings.hello, settings.dead) {
        (Some(hello), Some(dead)) => (hello, dead.max(hello)),
        (Some(hello), None) => (hello, hello.saturating_mul(ratio)),
        (None, Some(dead)) => ((dead / ratio).max(1), dead),
        (None, None) => defaults,
    }
}
