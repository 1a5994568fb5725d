//! Shortest-path routes, and the forwarding table of a router.
//!
//! The metric is the number of routers on the path. Ties go to the lowest interface, then to the
//! router whose link comes first in the topology, so a topology always has the same routes. Hosts
//! do not forward, not even with several links. Each hop reduces the distance, so there are no
//! loops.
//!
//! With `ecmp` a router has all next hops of shortest paths, and each flow takes one by its hash.
//! With dynamic routes a link with a direction that is down is not there, and neither are the
//! subnets of an interface on it. A router recomputes its table when it forwards the first packet
//! after a change: the table is a function of the states of links, so the result is as if it had
//! been recomputed at the change, and routers without traffic cost nothing.

mod search;

use crate::spanning_tree;
use fastpath_spec::segment::Segments;
use fastpath_spec::{LinkId, NodeId, Topology};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use search::Search;
use std::collections::BTreeSet;
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
        let network = LiveLinks::all_up(topology);
        let nodes = (0..topology.nodes.len() as u32).map(|id| network.routes_of(topology, NodeId(id)));
        Routes { nodes: nodes.collect() }
    }

    /// Returns the routes of a node: connected subnets first, then the others in order of distance.
    /// With `ecmp` a router has several with one prefix. Empty for switches. A host with exactly
    /// one adjacent router has a default route instead of the others, unless it is attached to a
    /// namespace that exists.
    pub fn of(&self, node: NodeId) -> &[Route] {
        &self.nodes[node.0 as usize]
    }
}

/// The links of a topology that carry packets in both directions, and what they join.
#[derive(Debug)]
pub(crate) struct LiveLinks {
    /// Whether each link is up.
    is_up: Vec<bool>,
    segments: Segments,
}

impl LiveLinks {
    fn all_up(topology: &Topology) -> LiveLinks {
        LiveLinks { is_up: vec![true; topology.links.len()], segments: Segments::of(topology) }
    }

    /// Takes the links that are up. A spanning tree does not change: links that it blocks stay out.
    pub(crate) fn new(topology: &Topology, is_up: &dyn Fn(LinkId) -> bool) -> LiveLinks {
        let mut up: Vec<bool> = (0..topology.links.len() as u32).map(|link| is_up(LinkId(link))).collect();
        for (node, forwards) in topology.nodes.iter().zip(spanning_tree::forwarding(topology)) {
            let blocked = node.interfaces.iter().zip(forwards).filter(|(_, forwards)| !forwards);
            blocked.for_each(|(interface, _)| up[interface.link.0 as usize] = false);
        }
        let segments = Segments::over(topology, &|link| up[link.0 as usize]);
        LiveLinks { is_up: up, segments }
    }

    /// Returns the table of a router.
    pub(crate) fn fib(&self, topology: &Topology, node: NodeId) -> Fib {
        Fib::of_router(topology, &self.routes_of(topology, node))
    }

    fn routes_of(&self, topology: &Topology, node: NodeId) -> Vec<Route> {
        let is_router = topology.node(node).kind.is_router();
        if topology.node(node).kind.is_switch() {
            return Vec::new();
        }
        // The namespace of an attached host may have a default route of its own.
        let is_attached = topology.node(node).kind.is_attached();
        let mut routes = configured_routes(topology, node);
        routes.retain(|route| self.has_interface(topology, node, route.interface));
        let given = routes.len();
        for family in [Family::V4, Family::V6] {
            let found = Search::new(topology, self, node, family).run();
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
        // Of configured routes with the same prefix the first counts.
        first.dedup_by_key(|route| route.prefix);
        first.extend(computed.iter().filter(|route| !taken.contains(&route.prefix)));
        first.sort_by_key(|route| route.via.is_some());
        first
    }

    fn has_interface(&self, topology: &Topology, node: NodeId, interface: usize) -> bool {
        self.is_up[topology.node(node).interfaces[interface].link.0 as usize]
    }
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
    node.kind.routes().iter().filter_map(route).collect()
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
    /// Creates the table of a router: with `ecmp` all routes of a prefix are used.
    pub fn of_router(topology: &Topology, routes: &[Route]) -> Fib {
        Fib::build(routes, topology.routing.is_multipath)
    }

    /// Creates the table of these routes. Of several routes with the same prefix the first is used.
    pub fn new(routes: &[Route]) -> Fib {
        Fib::build(routes, false)
    }

    fn build(routes: &[Route], is_multipath: bool) -> Fib {
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
            if !is_multipath {
                length.entries.dedup_by_key(|(network, _)| *network);
            }
        }
        fib
    }

    /// Returns the first next hop of the longest prefix that contains `destination`.
    pub fn lookup(&self, destination: IpAddr) -> Option<NextHop> {
        self.hops(destination).first().map(|(_, hop)| *hop)
    }

    /// Returns the next hop of a flow. Of several, the hash of the flow chooses by thresholds (RFC
    /// 2992 §2): each has an equal region of the hashes, so if one of n disappears, at most half of
    /// the flows of the others move.
    pub fn lookup_flow(&self, destination: IpAddr, hash: impl FnOnce() -> u32) -> Option<NextHop> {
        match self.hops(destination) {
            [] => None,
            [(_, hop)] => Some(*hop),
            several => {
                let place = (u64::from(hash()) * several.len() as u64) >> 32;
                Some(several[place as usize].1)
            }
        }
    }

    /// Returns whether all flows to an address have the same next hop.
    pub(crate) fn has_one_hop(&self, destination: IpAddr) -> bool {
        self.hops(destination).len() == 1
    }

    /// Returns the entries of the longest prefix that contains `destination`.
    fn hops(&self, destination: IpAddr) -> &[(u128, NextHop)] {
        let (family, bits) = key(destination);
        let found = self.families[family].iter().find_map(|length| {
            let network = bits & length.mask;
            let entries = &length.entries;
            let at = entries.binary_search_by_key(&network, |(network, _)| *network).ok()?;
            let is_its = |place: &usize| entries[*place].0 == network;
            let first = (0..at).rev().take_while(is_its).last().unwrap_or(at);
            let end = (at + 1..entries.len()).take_while(is_its).last().unwrap_or(at) + 1;
            Some(&entries[first..end])
        });
        found.unwrap_or_default()
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
    use super::search::gateway;
    use super::*;
    use fastpath_spec as spec;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

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

    /// A random network: four to eight routers, two switches, a host at each router.
    fn random_text(routers: usize, ends: &[(usize, usize)], routing: &str) -> String {
        let name = |node: usize| match node.checked_sub(routers) {
            None => format!("r{node}"),
            Some(switch) => format!("s{}", switch % 2),
        };
        let mut text = format!("{routing}\n[switch.s0]\n[switch.s1]\n");
        let mut links = String::new();
        for router in 0..routers {
            text += &format!("[router.r{router}]\n[host.h{router}]\n");
            links += &format!("[[link]]\nbetween = ['r{router}', 'h{router}']\n");
        }
        for (a, b) in ends.iter().map(|(a, b)| (a % (routers + 2), b % (routers + 2))) {
            if name(a) != name(b) {
                links += &format!("[[link]]\nbetween = ['{}', '{}']\n", name(a), name(b));
            }
        }
        text + &links
    }

    /// What joins the interfaces of a network, from its links and nothing else.
    struct Connected {
        leader: BTreeMap<(u32, usize), (u32, usize)>,
    }

    impl Connected {
        fn of(net: &Topology, is_up: &dyn Fn(LinkId) -> bool) -> Connected {
            let ends = || net.links.iter().flat_map(|link| link.ends.map(|(node, index)| (node.0, index)));
            let mut joined = Connected { leader: ends().map(|end| (end, end)).collect() };
            let forwarding = spanning_tree::forwarding(net);
            for (number, link) in net.links.iter().enumerate() {
                let [a, b] = link.ends.map(|(node, index)| (node.0, index));
                let forwards = [a, b].iter().all(|(node, index)| forwarding[*node as usize][*index]);
                if is_up(LinkId(number as u32)) && forwards {
                    joined.join(a, b);
                }
            }
            for (id, node) in net.nodes.iter().enumerate().filter(|(_, node)| node.kind.is_switch()) {
                (1..node.interfaces.len()).for_each(|index| joined.join((id as u32, 0), (id as u32, index)));
            }
            joined
        }

        fn join(&mut self, a: (u32, usize), b: (u32, usize)) {
            let (from, to) = (self.leader[&a], self.leader[&b]);
            self.leader.values_mut().filter(|leader| **leader == from).for_each(|leader| *leader = to);
        }
    }

    /// The next hops of all shortest paths from a router to the nearest segments with a prefix, a
    /// set for each of these segments, by relaxation over all pairs of routers.
    fn all_next_hops(
        net: &Topology,
        is_up: &dyn Fn(LinkId) -> bool,
        from: u32,
        prefix: IpNet,
    ) -> Vec<BTreeSet<(usize, Option<IpAddr>)>> {
        let joined = Connected::of(net, is_up);
        let usable = |node: u32| {
            let interfaces = net.nodes[node as usize].interfaces.iter().enumerate();
            interfaces.filter(|(_, interface)| is_up(interface.link)).map(|(index, _)| index)
        };
        let routers: Vec<u32> =
            (0..net.nodes.len() as u32).filter(|id| net.nodes[*id as usize].kind.is_router()).collect();
        let mut distance: BTreeMap<(u32, u32), u32> = routers.iter().map(|r| ((*r, *r), 0)).collect();
        let adjacent = |a: u32, b: u32| {
            let pairs = usable(a).flat_map(|i| usable(b).map(move |j| (i, j)));
            pairs
                .filter(|(i, j)| a != b && joined.leader[&(a, *i)] == joined.leader[&(b, *j)])
                .collect::<Vec<_>>()
        };
        for _ in &routers {
            for (a, b, c) in
                routers.iter().flat_map(|a| routers.iter().flat_map(|b| routers.iter().map(|c| (*a, *b, *c))))
            {
                if let Some(d) = distance.get(&(b, c)).copied().filter(|_| !adjacent(a, b).is_empty()) {
                    let known = distance.entry((a, c)).or_insert(u32::MAX);
                    *known = (*known).min(d + 1);
                }
            }
        }
        let on = |node: u32, index: usize| {
            net.nodes[node as usize].interfaces[index].addresses.iter().any(|net| net.trunc() == prefix)
        };
        // By segment: its distance, and the routers on it at that distance. Hosts make a segment
        // have the subnet too.
        let mut segments: BTreeMap<(u32, usize), BTreeSet<u32>> = BTreeMap::new();
        for router in &routers {
            for index in usable(*router).filter(|_| distance.contains_key(&(from, *router))) {
                let place = joined.leader[&(*router, index)];
                let has = joined.leader.iter().any(|((node, index), leader)| {
                    *leader == place && !net.nodes[*node as usize].kind.is_switch() && on(*node, *index)
                });
                if has {
                    segments.entry(place).or_default().insert(*router);
                }
            }
        }
        let cost = |routers: &BTreeSet<u32>| routers.iter().map(|router| distance[&(from, *router)]).min();
        let nearest = segments.values().filter_map(cost).min();
        let mut sets = Vec::new();
        for (place, there) in segments.iter().filter(|(_, there)| cost(there) == nearest) {
            if nearest == Some(0) {
                let own = usable(from).filter(|index| joined.leader[&(from, *index)] == *place);
                sets.push(own.take(1).map(|index| (index, None)).collect());
                continue;
            }
            let mut hops = BTreeSet::new();
            for last in there.iter().filter(|last| Some(distance[&(from, **last)]) == nearest) {
                for next in &routers {
                    if distance.get(&(*next, *last)).map(|d| d + 1) != nearest {
                        continue;
                    }
                    // Of several interfaces on one segment a router uses the first.
                    let segment = |index: usize| joined.leader[&(from, index)];
                    let is_first =
                        |index: usize| usable(from).find(|i| segment(*i) == segment(index)) == Some(index);
                    for (index, far) in
                        adjacent(from, *next).into_iter().filter(|(index, _)| is_first(*index))
                    {
                        let addresses =
                            net.nodes[*next as usize].interfaces[far].addresses.iter().map(IpNet::addr);
                        let via = addresses.into_iter().find(|via| via.is_ipv4() == prefix.addr().is_ipv4());
                        hops.insert((index, via));
                    }
                }
            }
            sets.push(hops);
        }
        sets
    }

    proptest! {
        #[test]
        fn next_hops_are_those_of_all_shortest_paths_over_the_links_that_are_up(
            routers in 2usize..7,
            ends in proptest::collection::vec((0usize..9, 0usize..9), 1..12),
            down in proptest::collection::vec(any::<bool>(), 24),
            is_multipath in any::<bool>(),
        ) {
            let routing = format!("routes = 'dynamic'\necmp = {is_multipath}");
            let net = network(&random_text(routers, &ends, &routing));
            // A third of the links are down.
            let is_up = |link: LinkId| !down[link.0 as usize % 24] || link.0.is_multiple_of(3);
            let live = LiveLinks::new(&net, &is_up);
            let prefixes: BTreeSet<IpNet> = net.nodes.iter().flat_map(|node| &node.interfaces)
                .flat_map(|interface| interface.addresses.iter().map(IpNet::trunc)).collect();
            for from in (0..net.nodes.len() as u32).filter(|id| net.nodes[*id as usize].kind.is_router()) {
                let fib = live.fib(&net, NodeId(from));
                for prefix in &prefixes {
                    let found: Vec<_> = fib.hops(prefix.addr()).iter().map(|(_, hop)| (hop.interface, hop.via)).collect();
                    let sets = all_next_hops(&net, &is_up, from, *prefix);
                    let unique: BTreeSet<_> = found.iter().copied().collect();
                    prop_assert_eq!(unique.len(), found.len());
                    match is_multipath {
                        _ if sets.is_empty() => prop_assert!(found.is_empty(), "{:?} to {}", found, prefix),
                        true => prop_assert!(sets.contains(&unique), "r{from} to {prefix}: {found:?}, not {sets:?}"),
                        false => prop_assert!(found.len() == 1 && sets.iter().any(|set| set.contains(&found[0])),
                            "r{from} to {prefix}: {found:?}, not of {sets:?}"),
                    }
                }
            }
        }

        #[test]
        fn without_multipath_routes_are_those_of_a_queue(
            routers in 2usize..7,
            ends in proptest::collection::vec((0usize..9, 0usize..9), 1..12),
        ) {
            let net = network(&random_text(routers, &ends, ""));
            let segments = Segments::of(&net);
            for node in (0..net.nodes.len() as u32).map(NodeId).filter(|id| net.node(*id).kind.is_router()) {
                let expected = [Family::V4, Family::V6].into_iter().flat_map(|family| by_queue(&net, &segments, node, family));
                let mut expected: Vec<Route> = expected.collect();
                expected.sort_by_key(|route| route.via.is_some());
                prop_assert_eq!(Routes::compute(&net).of(node).to_vec(), expected);
            }
        }
    }

    /// The search with one queue, as it was before equal costs were distinguished.
    fn by_queue(topology: &Topology, segments: &Segments, from: NodeId, family: Family) -> Vec<Route> {
        let mut routes = Vec::new();
        let (mut segments_seen, mut routers_seen) = (BTreeSet::new(), BTreeSet::from([from]));
        let mut waiting = std::collections::VecDeque::from([(from, None::<NextHop>)]);
        while let Some((at, first)) = waiting.pop_front() {
            for (index, interface) in topology.node(at).interfaces.iter().enumerate() {
                let place = segments.at(at, index);
                if !segments_seen.insert(place) {
                    continue;
                }
                let hop = first.unwrap_or(NextHop { interface: index, via: None });
                let subnets = segments.all[place].subnets.iter().filter(|subnet| family.has(&subnet.addr()));
                routes.extend(subnets.map(|&prefix| Route {
                    prefix,
                    via: hop.via,
                    interface: hop.interface,
                }));
                for &(neighbor, far) in &segments.all[place].routers {
                    let there = &topology.node(neighbor).interfaces[far];
                    let Some(via) = gateway(interface, there, family) else { continue };
                    if routers_seen.insert(neighbor) {
                        waiting.push_back((
                            neighbor,
                            Some(first.unwrap_or(NextHop { interface: index, via: Some(via) })),
                        ));
                    }
                }
            }
        }
        routes
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
