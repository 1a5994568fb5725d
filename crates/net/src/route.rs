//! Static shortest-path routes, and the table a router looks them up in.
//!
//! The metric is the number of routers passed. Ties go to the lowest interface, then to the router whose link
//! comes first in the spec, so the same topology always gets the same routes. Only routers forward: a host with
//! several links is not a way through. Every hop brings a packet nearer, so there are no loops.

use crate::segment::Segments;
use crate::topology::{Interface, NodeId, NodeKind, Topology};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::collections::VecDeque;
use std::net::IpAddr;

/// One line of a node's routing table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// The destinations.
    pub prefix: IpNet,
    /// The next router, or `None` where the destination is on the link itself.
    pub via: Option<IpAddr>,
    /// The index of the interface it leaves by.
    pub interface: usize,
}

/// The routes of every host and router of a topology.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Routes {
    nodes: Vec<Vec<Route>>,
}

/// Where a packet goes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextHop {
    /// The index of the interface it leaves by.
    pub interface: usize,
    /// The next router, or `None` where the destination is on the link itself.
    pub via: Option<IpAddr>,
}

/// A forwarding table with longest-prefix match (RFC 1812 §5.2.4.3).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fib {
    /// IPv4 and IPv6; each a table per prefix length, the longest first, sorted by network.
    families: [Vec<Length>; 2],
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Length {
    mask: u128,
    entries: Vec<(u128, NextHop)>,
}

impl Routes {
    /// All routes of the topology. A subnet that cannot be reached has none.
    pub fn compute(topology: &Topology) -> Routes {
        let segments = Segments::of(topology);
        let nodes = (0..topology.nodes.len() as u32).map(|id| routes_of(topology, &segments, NodeId(id)));
        Routes { nodes: nodes.collect() }
    }

    /// The routes of one node: connected subnets first, then the others from near to far. Empty for switches.
    /// A host behind exactly one router has a default route in place of the others.
    pub fn of(&self, node: NodeId) -> &[Route] {
        &self.nodes[node.0 as usize]
    }
}

fn routes_of(topology: &Topology, segments: &Segments, node: NodeId) -> Vec<Route> {
    let kind = &topology.node(node).kind;
    if matches!(kind, NodeKind::Switch) {
        return Vec::new();
    }
    let mut routes = given_routes(topology, node);
    let given = routes.len();
    for family in [Family::V4, Family::V6] {
        let found = search(topology, segments, node, family);
        match found.gateways.as_slice() {
            [(interface, via)] if matches!(kind, NodeKind::Host { .. }) => {
                routes.extend(found.routes.iter().filter(|route| route.via.is_none()));
                routes.push(Route { prefix: family.default(), via: Some(*via), interface: *interface });
            }
            _ => routes.extend(found.routes),
        }
    }
    // What the author gave comes before what was computed for the same destinations.
    let taken: std::collections::BTreeSet<IpNet> = routes[..given].iter().map(|route| route.prefix).collect();
    let (mut first, computed) = (routes[..given].to_vec(), &routes[given..]);
    first.extend(computed.iter().filter(|route| !taken.contains(&route.prefix)));
    first.sort_by_key(|route| route.via.is_some());
    first
}

/// The routes written in the spec whose next router is on one of the node's subnets.
fn given_routes(topology: &Topology, node: NodeId) -> Vec<Route> {
    let node = topology.node(node);
    let leaving =
        |via: IpAddr| node.interfaces.iter().position(|i| i.addresses.iter().any(|a| a.contains(&via)));
    let route = |&(prefix, via): &(IpNet, IpAddr)| {
        Some(Route { prefix: prefix.trunc(), via: Some(via), interface: leaving(via)? })
    };
    node.routes.iter().filter_map(route).collect()
}

struct Found {
    routes: Vec<Route>,
    /// The routers next door, as the interface and their address.
    gateways: Vec<(usize, IpAddr)>,
}

/// Breadth-first over routers from one node. Nodes enter the queue in the order of the first hop that leads to
/// them, so the first to reach a segment is the one that wins ties.
fn search(topology: &Topology, segments: &Segments, from: NodeId, family: Family) -> Found {
    let mut found = Found { routes: Vec::new(), gateways: Vec::new() };
    let mut segment_seen = vec![false; segments.len()];
    let mut router_seen = vec![false; topology.nodes.len()];
    router_seen[from.0 as usize] = true;
    let mut waiting: VecDeque<(NodeId, Option<NextHop>)> = VecDeque::from([(from, None)]);
    while let Some((at, first)) = waiting.pop_front() {
        for (index, interface) in topology.node(at).interfaces.iter().enumerate() {
            let segment = segments.at(at, index);
            if std::mem::replace(&mut segment_seen[segment], true) {
                continue;
            }
            let hop = first.unwrap_or(NextHop { interface: index, via: None });
            let subnets = segments.subnets(segment).iter().filter(|subnet| family.has(&subnet.addr()));
            found.routes.extend(subnets.map(|&prefix| Route {
                prefix,
                via: hop.via,
                interface: hop.interface,
            }));
            for &(neighbour, far) in segments.stations(segment) {
                let router = matches!(topology.node(neighbour).kind, NodeKind::Router);
                if !router || router_seen[neighbour.0 as usize] {
                    continue;
                }
                let there = &topology.node(neighbour).interfaces[far];
                let Some(via) = gateway(interface, there, family) else { continue };
                router_seen[neighbour.0 as usize] = true;
                if first.is_none() {
                    found.gateways.push((index, via));
                }
                waiting.push_back((
                    neighbour,
                    Some(first.unwrap_or(NextHop { interface: index, via: Some(via) })),
                ));
            }
        }
    }
    found
}

/// The address by which the owner of `here` reaches the router behind `there`, on the same segment.
fn gateway(here: &Interface, there: &Interface, family: Family) -> Option<IpAddr> {
    let shared = |address: &IpAddr| here.addresses.iter().any(|own| own.contains(address));
    there.addresses.iter().map(IpNet::addr).find(|address| family.has(address) && shared(address))
}

#[derive(Clone, Copy)]
enum Family {
    V4,
    V6,
}

impl Family {
    fn has(self, address: &IpAddr) -> bool {
        matches!((self, address), (Family::V4, IpAddr::V4(_)) | (Family::V6, IpAddr::V6(_)))
    }

    fn default(self) -> IpNet {
        match self {
            Family::V4 => IpNet::V4(Ipv4Net::default()),
            Family::V6 => IpNet::V6(Ipv6Net::default()),
        }
    }
}

impl Fib {
    /// The table of these routes; of several for one prefix the first counts.
    pub fn new(routes: &[Route]) -> Fib {
        let mut fib = Fib::default();
        let mut sorted: Vec<&Route> = routes.iter().collect();
        sorted.sort_by_key(|route| std::cmp::Reverse(route.prefix.prefix_len()));
        for route in sorted {
            let (family, network) = key(route.prefix.network());
            let mask = key(route.prefix.netmask()).1;
            let lengths = &mut fib.families[family];
            if lengths.last().is_none_or(|length| length.mask != mask) {
                lengths.push(Length { mask, entries: Vec::new() });
            }
            let hop = NextHop { interface: route.interface, via: route.via };
            lengths.last_mut().expect("just pushed").entries.push((network, hop));
        }
        for length in fib.families.iter_mut().flatten() {
            length.entries.sort_by_key(|(network, _)| *network);
            length.entries.dedup_by_key(|(network, _)| *network);
        }
        fib
    }

    /// The next hop of the longest prefix that holds `destination`.
    pub fn lookup(&self, destination: IpAddr) -> Option<NextHop> {
        let (family, bits) = key(destination);
        self.families[family].iter().find_map(|length| {
            let at =
                length.entries.binary_search_by_key(&(bits & length.mask), |(network, _)| *network).ok()?;
            Some(length.entries[at].1)
        })
    }
}

/// The family's index and the address as a number.
fn key(address: IpAddr) -> (usize, u128) {
    match address {
        IpAddr::V4(address) => (0, u128::from(address.to_bits())),
        IpAddr::V6(address) => (1, address.to_bits()),
    }
}
