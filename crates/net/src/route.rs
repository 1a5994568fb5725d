//! Static shortest-path routes, and the forwarding table of a router.
//!
//! The metric is the number of routers on the path. Ties go to the lowest interface, then to the
//! router whose link comes first in the topology, so a topology always has the same routes. Hosts
//! do not forward, not even with several links. Each hop reduces the distance, so there are no
//! loops.

use fastpath_spec::segment::Segments;
use fastpath_spec::{HostOrigin, Interface, NodeId, Topology};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;

/// One entry of the routing table of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// The destination prefix.
    pub prefix: IpNet,
    /// The address of the next router, or `None` for a connected subnet.
    pub via: Option<IpAddr>,
    /// The index of the output interface.
    pub interface: usize,
}

/// The routes of every host and router of a topology.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Routes {
    nodes: Vec<Vec<Route>>,
}

/// The next hop of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextHop {
    /// The index of the output interface.
    pub interface: usize,
    /// The address of the next router, or `None` if the destination is on a connected subnet.
    pub via: Option<IpAddr>,
}

/// A forwarding table with longest-prefix match (RFC 1812 §5.2.4.3).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fib {
    /// IPv4, then IPv6; each has a table per prefix length, the longest first.
    families: [Vec<PrefixTable>; 2],
}

/// The entries of one prefix length.
#[derive(Clone, PartialEq, Eq, Debug)]
struct PrefixTable {
    mask: u128,
    /// Network address and next hop, sorted by network address.
    entries: Vec<(u128, NextHop)>,
}

impl Routes {
    /// Computes the routes of a topology. An unreachable subnet has no route.
    pub fn compute(topology: &Topology) -> Routes {
        let segments = Segments::of(topology);
        let nodes = (0..topology.nodes.len() as u32).map(|id| routes_of(topology, &segments, NodeId(id)));
        Routes { nodes: nodes.collect() }
    }

    /// Returns the routes of a node: connected subnets first, then the others in order of distance.
    /// Empty for switches. A host with exactly one adjacent router has a default route instead of
    /// the others, unless it is attached to a namespace that exists.
    pub fn of(&self, node: NodeId) -> &[Route] {
        &self.nodes[node.0 as usize]
    }
}

fn routes_of(topology: &Topology, segments: &Segments, node: NodeId) -> Vec<Route> {
    let (kind, is_router) = (&topology.node(node).kind, topology.node(node).is_router());
    if kind.is_switch() {
        return Vec::new();
    }
    // The namespace of an attached host may have a default route of its own.
    let is_attached = matches!(topology.node(node).host.origin, HostOrigin::Attached(_));
    let mut routes = configured_routes(topology, node);
    let given = routes.len();
    for family in [Family::V4, Family::V6] {
        let found = search(topology, segments, node, family);
        match found.gateways.as_slice() {
            [(interface, via)] if !is_router && !is_attached => {
                routes.extend(found.routes.iter().filter(|route| route.via.is_none()));
                routes.push(Route { prefix: family.default(), via: Some(*via), interface: *interface });
            }
            _ => routes.extend(found.routes),
        }
    }
    // A configured route replaces the computed route of the same prefix.
    let taken: BTreeSet<IpNet> = routes[..given].iter().map(|route| route.prefix).collect();
    let (mut first, computed) = (routes[..given].to_vec(), &routes[given..]);
    first.extend(computed.iter().filter(|route| !taken.contains(&route.prefix)));
    first.sort_by_key(|route| route.via.is_some());
    first
}

/// Returns the configured routes whose next router is on a connected subnet.
fn configured_routes(topology: &Topology, node: NodeId) -> Vec<Route> {
    let node = topology.node(node);
    let subnets = node.interfaces.iter().enumerate().flat_map(|(interface, i)| {
        i.addresses.iter().map(move |address| Route { prefix: address.trunc(), via: None, interface })
    });
    // A router can have as many routes as links. A table avoids a linear search of the interfaces
    // for each route.
    let connected = Fib::new(&subnets.collect::<Vec<_>>());
    let route = |&(prefix, via): &(IpNet, IpAddr)| {
        let interface = connected.lookup(via)?.interface;
        Some(Route { prefix: prefix.trunc(), via: Some(via), interface })
    };
    node.routes.iter().filter_map(route).collect()
}

/// The routes found from one node.
struct FoundRoutes {
    routes: Vec<Route>,
    /// The adjacent routers, each by interface and address.
    gateways: Vec<(usize, IpAddr)>,
}

/// Searches routers breadth-first from one node. Nodes enter the queue in the order of the first
/// hop that leads to them, so the first router to reach a segment wins ties.
fn search(topology: &Topology, segments: &Segments, from: NodeId, family: Family) -> FoundRoutes {
    let mut found = FoundRoutes { routes: Vec::new(), gateways: Vec::new() };
    // Sets are faster than arrays of flags: among a million links most nodes reach only a few.
    let mut segments_seen = BTreeSet::new();
    let mut routers_seen = BTreeSet::from([from]);
    let mut waiting: VecDeque<(NodeId, Option<(NextHop, usize)>)> = VecDeque::from([(from, None)]);
    let mut has_default = false;
    while let Some((at, reached)) = waiting.pop_front() {
        let first = reached.map(|(hop, _)| hop);
        let node = topology.node(at);
        // What is not in the topology is behind the nearest uplink.
        if let Some(hop) = first.filter(|_| node.uplink.is_some() && !has_default) {
            has_default = true;
            found.routes.push(Route { prefix: family.default(), via: hop.via, interface: hop.interface });
        }
        // The IPv4 addresses inside a NAT are not known outside.
        let hidden = |index: usize| {
            let nat = node.nat.as_deref().filter(|_| matches!(family, Family::V4));
            let entered = reached.map(|(_, index)| index);
            nat.zip(entered)
                .is_some_and(|(nat, entered)| nat.inside.contains(&index) && !nat.inside.contains(&entered))
        };
        for (index, interface) in node.interfaces.iter().enumerate() {
            if hidden(index) {
                continue;
            }
            let place = segments.at(at, index);
            if !segments_seen.insert(place) {
                continue;
            }
            let segment = &segments.all[place];
            let hop = first.unwrap_or(NextHop { interface: index, via: None });
            let subnets = segment.subnets.iter().filter(|subnet| family.has(&subnet.addr()));
            found.routes.extend(subnets.map(|&prefix| Route {
                prefix,
                via: hop.via,
                interface: hop.interface,
            }));
            for &(neighbor, far) in &segment.routers {
                if routers_seen.contains(&neighbor) {
                    continue;
                }
                let there = &topology.node(neighbor).interfaces[far];
                let Some(via) = gateway(interface, there, family) else { continue };
                routers_seen.insert(neighbor);
                if first.is_none() {
                    found.gateways.push((index, via));
                }
                let hop = first.unwrap_or(NextHop { interface: index, via: Some(via) });
                waiting.push_back((neighbor, Some((hop, far))));
            }
        }
    }
    found
}

/// Returns the address of the interface `there` on a subnet that it shares with the interface
/// `here`. An address without a subnet (/32) is on the link for all.
fn gateway(here: &Interface, there: &Interface, family: Family) -> Option<IpAddr> {
    let of_family = |net: &&IpNet| family.has(&net.addr());
    let stands_alone = |net: &IpNet| net.prefix_len() == net.max_prefix_len();
    let is_on_link = |net: &&IpNet| {
        let own = here.addresses.iter().filter(of_family);
        stands_alone(net) || own.into_iter().any(|own| own.contains(&net.addr()) || stands_alone(own))
    };
    there.addresses.iter().filter(of_family).find(is_on_link).map(IpNet::addr)
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
    /// Creates the table of these routes. Of several routes with the same prefix the first is used.
    pub fn new(routes: &[Route]) -> Fib {
        let mut fib = Fib::default();
        let mut sorted: Vec<&Route> = routes.iter().collect();
        sorted.sort_by_key(|route| std::cmp::Reverse(route.prefix.prefix_len()));
        for route in sorted {
            let (family, network) = key(route.prefix.network());
            let mask = key(route.prefix.netmask()).1;
            let lengths = &mut fib.families[family];
            if lengths.last().is_none_or(|length| length.mask != mask) {
                lengths.push(PrefixTable { mask, entries: Vec::new() });
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

    /// Returns the next hop of the longest prefix that contains `destination`.
    pub fn lookup(&self, destination: IpAddr) -> Option<NextHop> {
        let (family, bits) = key(destination);
        self.families[family].iter().find_map(|length| {
            let at =
                length.entries.binary_search_by_key(&(bits & length.mask), |(network, _)| *network).ok()?;
            Some(length.entries[at].1)
        })
    }
}

/// Returns the index of the address family and the address as a number.
fn key(address: IpAddr) -> (usize, u128) {
    match address {
        IpAddr::V4(address) => (0, u128::from(address.to_bits())),
        IpAddr::V6(address) => (1, address.to_bits()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_spec as spec;
    use proptest::prelude::*;

    fn network(text: &str) -> Topology {
        spec::parse(text).expect("a valid spec").0
    }

    fn table(topology: &Topology, name: &str) -> Vec<String> {
        let id = topology.node_named(name).expect("a node");
        let v4 = |route: &&Route| route.prefix.addr().is_ipv4();
        let line = |route: &Route| {
            let interface = &topology.node(id).interfaces[route.interface].name;
            match route.via {
                Some(via) => format!("{} via {via} {interface}", route.prefix),
                None => format!("{} {interface}", route.prefix),
            }
        };
        Routes::compute(topology).of(id).iter().filter(v4).map(line).collect()
    }

    /// a ─ r ─ q ─ b, and a shortcut r ─ p ─ b of the same length.
    const SQUARE: &str = "[host.a]\n[router.r]\n[router.q]\n[router.p]\n[router.t]\n[host.b]\n\
        [[link]]\nbetween = ['a', 'r']\n[[link]]\nbetween = ['r', 'q']\n[[link]]\nbetween = ['r', 'p']\n\
        [[link]]\nbetween = ['q', 't']\n[[link]]\nbetween = ['p', 't']\n[[link]]\nbetween = ['t', 'b']";

    #[test]
    fn the_shortest_path_wins_and_ties_go_to_the_first_interface() {
        let net = network(SQUARE);
        assert_eq!(table(&net, "a"), ["10.1.1.0/24 eth0", "0.0.0.0/0 via 10.1.1.3 eth0"]);
        assert_eq!(
            table(&net, "r"),
            [
                "10.1.1.0/24 eth0",
                "10.1.2.0/24 eth1",
                "10.1.3.0/24 eth2",
                "10.1.4.0/24 via 10.1.2.3 eth1",
                "10.1.5.0/24 via 10.1.3.3 eth2",
                "10.1.6.0/24 via 10.1.2.3 eth1",
            ]
        );
        assert_eq!(Routes::compute(&net).of(NodeId(1)).len(), 12, "IPv6 has as many routes as IPv4");
    }

    #[test]
    fn addresses_that_stand_alone_have_routes_of_their_own() {
        // Two subnets on the first link, and the second of them on the other link too.
        let net = network(
            "[host.a]\naddress = '10.1.1.2/32'\n[router.r]\n\
             addresses = { a-r = '10.1.2.3/32', r-b = '10.1.2.4/32' }\n[host.b]\naddress = '10.1.2.5/32'\n\
             [[link]]\nbetween = ['a', 'r']\n[[link]]\nbetween = ['r', 'b']",
        );
        let routes = ["10.1.1.2/32 eth0", "10.1.2.3/32 eth0", "10.1.2.4/32 eth1", "10.1.2.5/32 eth1"];
        assert_eq!(table(&net, "r"), routes);
        assert_eq!(table(&net, "a"), ["10.1.1.2/32 eth0", "10.1.2.3/32 eth0", "0.0.0.0/0 via 10.1.2.3 eth0"]);
        // One end has a subnet that the other is not in.
        let net = network(
            "[host.a]\naddress = '10.1.1.2/32'\n[router.r]\naddresses = { a-r = '10.1.7.1/24' }\n[host.b]\n\
             [[link]]\nbetween = ['a', 'r']\n[[link]]\nbetween = ['r', 'b']",
        );
        assert_eq!(table(&net, "a"), ["10.1.1.2/32 eth0", "10.1.7.0/24 eth0", "0.0.0.0/0 via 10.1.7.1 eth0"]);
    }

    #[test]
    fn hosts_with_several_links_do_not_forward() {
        let net = network(
            "[host.a]\n[host.m]\n[host.b]\n[[link]]\nbetween = ['a', 'm']\n[[link]]\nbetween = ['m', 'b']",
        );
        assert_eq!(table(&net, "a"), ["10.1.1.0/24 eth0"]);
        assert_eq!(table(&net, "m"), ["10.1.1.0/24 eth0", "10.1.2.0/24 eth1"]);
    }

    #[test]
    fn a_host_between_two_routers_gets_the_routes_of_both() {
        let net = network(
            "[host.h]\n[host.x]\n[host.y]\n[switch.s]\n[router.r]\n[router.q]\n[[link]]\nbetween = ['h', 's']\n\
             [[link]]\nbetween = ['r', 's']\n[[link]]\nbetween = ['q', 's']\n[[link]]\nbetween = ['r', 'x']\n\
             [[link]]\nbetween = ['q', 'y']",
        );
        assert_eq!(
            table(&net, "h"),
            ["10.1.1.0/24 eth0", "10.1.2.0/24 via 10.1.1.3 eth0", "10.1.3.0/24 via 10.1.1.4 eth0"]
        );
        assert_eq!(table(&net, "s"), Vec::<String>::new());
    }

    #[test]
    fn a_configured_route_replaces_the_computed_one() {
        let net = network(&SQUARE.replace(
            "[router.r]",
            "[router.r]\nroutes = { '10.1.6.0/24' = '10.1.3.3', default = '10.1.2.3' }",
        ));
        let routes = table(&net, "r");
        assert!(routes.contains(&"10.1.6.0/24 via 10.1.3.3 eth2".to_owned()), "{routes:?}");
        assert!(!routes.contains(&"10.1.6.0/24 via 10.1.2.3 eth1".to_owned()), "{routes:?}");
        assert!(routes.contains(&"0.0.0.0/0 via 10.1.2.3 eth1".to_owned()), "{routes:?}");
    }

    #[test]
    fn every_packet_between_hosts_of_a_grid_arrives_without_a_loop() {
        let mut text = String::new();
        for i in 0..36 {
            text += &format!("[router.r{i}]\n[host.h{i}]\n");
        }
        for i in 0..36 {
            text += &format!("[[link]]\nbetween = ['r{i}', 'h{i}']\n");
            for j in [i + 1, i + 6] {
                if j < 36 && (j != i + 1 || j % 6 != 0) {
                    text += &format!("[[link]]\nbetween = ['r{i}', 'r{j}']\n");
                }
            }
        }
        let net = network(&text);
        let routes = Routes::compute(&net);
        let fibs: Vec<Fib> = (0..net.nodes.len() as u32).map(|id| Fib::new(routes.of(NodeId(id)))).collect();
        let owner = |ip: IpAddr| {
            net.nodes
                .iter()
                .position(|n| n.interfaces.iter().any(|i| i.addresses.iter().any(|a| a.addr() == ip)))
        };
        for (from, _) in net.hosts() {
            for (to, target) in net.hosts().filter(|(to, _)| *to != from) {
                for address in target.interfaces[0].addresses.iter().map(IpNet::addr) {
                    let mut at = from;
                    let mut hops = 0;
                    while at != to {
                        let hop = fibs[at.0 as usize].lookup(address).expect("a route");
                        at = NodeId(owner(hop.via.unwrap_or(address)).expect("an owner") as u32);
                        hops += 1;
                        assert!(hops <= 12, "{from:?} to {to:?} loops");
                    }
                }
            }
        }
    }

    #[test]
    fn an_empty_table_and_the_default_route() {
        assert_eq!(Fib::new(&[]).lookup("10.0.0.1".parse().unwrap()), None);
        let route = Route { prefix: "0.0.0.0/0".parse().unwrap(), via: None, interface: 3 };
        let fib = Fib::new(&[route]);
        assert_eq!(fib.lookup("203.0.113.9".parse().unwrap()), Some(NextHop { interface: 3, via: None }));
        assert_eq!(fib.lookup("::1".parse().unwrap()), None);
    }

    fn prefixes() -> impl Strategy<Value = IpNet> {
        // Few bits are set, so that prefixes nest and contain the addresses.
        let v4 = (any::<u32>(), 0u8..=32)
            .prop_map(|(bits, n)| Ipv4Net::new((bits & 0x8181_0181).into(), n).unwrap().trunc().into());
        let v6 = (any::<u128>(), 0u8..=128).prop_map(|(bits, n)| {
            Ipv6Net::new((bits & 0x8001_0000_0000_0001_8000_0000_0000_0001).into(), n).unwrap().trunc().into()
        });
        prop_oneof![v4, v6]
    }

    proptest! {
        #[test]
        fn lookup_is_the_longest_prefix_of_a_linear_scan(nets in proptest::collection::vec(prefixes(), 0..60), asked in proptest::collection::vec(prefixes(), 20)) {
            let routes: Vec<Route> = nets.iter().enumerate().map(|(i, &prefix)| Route { prefix, via: None, interface: i }).collect();
            let fib = Fib::new(&routes);
            for address in asked.iter().map(IpNet::addr) {
                let mut best: Option<&Route> = None;
                for route in routes.iter().filter(|route| route.prefix.contains(&address)) {
                    if best.is_none_or(|best| route.prefix.prefix_len() > best.prefix.prefix_len()) {
                        best = Some(route);
                    }
                }
                prop_assert_eq!(fib.lookup(address).map(|hop| hop.interface), best.map(|route| route.interface));
            }
        }
    }
}
