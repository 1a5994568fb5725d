//! What a topology takes over from the one that runs, so that a change of a description does not
//! renumber what stays: assigned addresses, hardware addresses and random streams. Interfaces are
//! named as in a fresh start.
//!
//! Numbers are assigned in the order of nodes and links. Without this, a link that is added first
//! would give every other link another subnet. Values that the description gives come first, and a
//! new subnet that they demand is taken over by all stations of its segment.

use crate::address::IPV6_MTU_MIN;
use crate::segment::Segments;
use crate::topology::{Family, Interface, NodeId, Topology};
use ipnet::IpNet;
use std::collections::{BTreeMap, BTreeSet};

/// The interfaces of a topology that was resolved before, by the names of their nodes and links.
struct Known<'t> {
    interfaces: BTreeMap<(&'t str, &'t str), &'t Interface>,
}

/// Takes over what `running` has assigned. The hardware addresses of the interfaces in `macs` are
/// given or, afterwards, taken over. `is_fixed` returns whether a node has the given addresses
/// only.
pub(super) fn take_over(
    topology: &mut Topology,
    macs: &mut BTreeSet<(NodeId, usize)>,
    running: &Topology,
    is_fixed: &dyn Fn(NodeId) -> bool,
) -> TakenOver {
    let known = Known::of(running);
    let names: Vec<String> = topology.links.iter().map(|link| link.name.clone()).collect();
    take_over_streams(topology, running);
    let mut taken: BTreeSet<_> =
        macs.iter().filter_map(|&(node, index)| topology.node(node).interfaces[index].mac).collect();
    for (id, node) in topology.nodes.iter_mut().enumerate() {
        for (index, interface) in node.interfaces.iter_mut().enumerate() {
            let before = known.get(&node.name, &names[interface.link.0 as usize]);
            let Some(mac) = before.and_then(|before| before.mac) else { continue };
            let place = (NodeId(id as u32), index);
            if !macs.contains(&place) && taken.insert(mac) {
                interface.mac = Some(mac);
                macs.insert(place);
            }
        }
    }
    let given = topology.nodes.iter().map(|node| node.interfaces.iter().map(|i| i.addresses.len()).collect());
    let given = TakenOver { given: given.collect() };
    take_over_addresses(topology, &names, &known, is_fixed);
    given
}

/// A topology that has taken over addresses and gets the others next.
pub(super) struct TakenOver {
    /// By node and interface: the number of addresses that were given.
    given: Vec<Vec<usize>>,
}

impl TakenOver {
    /// Puts assigned addresses in the usual order: IPv4 first.
    pub(super) fn sort(self, topology: &mut Topology) {
        let given = self.given.into_iter().flatten();
        let interfaces = topology.nodes.iter_mut().flat_map(|node| &mut node.interfaces);
        for (interface, given) in interfaces.zip(given) {
            interface.addresses[given..].sort_by_key(|address| address.addr().is_ipv6());
        }
    }
}

/// Each link that was there keeps its random stream; the others get the lowest that are unused.
fn take_over_streams(topology: &mut Topology, running: &Topology) {
    let streams: BTreeMap<&str, u32> =
        running.links.iter().map(|link| (link.name.as_str(), link.stream)).collect();
    let mut unused = BTreeSet::from_iter(0..topology.links.len() as u32);
    let kept: Vec<Option<u32>> =
        topology.links.iter().map(|link| streams.get(link.name.as_str()).copied()).collect();
    kept.iter().flatten().for_each(|stream| _ = unused.remove(stream));
    for (link, stream) in topology.links.iter_mut().zip(kept) {
        link.stream = stream.or_else(|| unused.pop_first()).expect("as many numbers as links");
    }
}

/// Each interface that was there and for which no address of a family is given keeps the one it
/// had, if its segment still has that subnet.
fn take_over_addresses(
    topology: &mut Topology,
    links: &[String],
    known: &Known,
    is_fixed: &dyn Fn(NodeId) -> bool,
) {
    let segments = Segments::of(topology);
    let given = topology.nodes.iter().flat_map(|node| &node.interfaces).flat_map(|i| &i.addresses);
    let (mut used, mut subnets) = (BTreeSet::new(), BTreeSet::new());
    for address in given {
        used.insert(address.addr());
        subnets.insert(address.trunc());
    }
    for segment in &segments.all {
        let mtu = |&(node, index): &(NodeId, usize)| topology.node(node).interfaces[index].mtu;
        let carries_v6 = segment.stations.iter().all(|station| mtu(station) >= IPV6_MTU_MIN);
        for family in Family::ALL.into_iter().filter(|family| *family == Family::V4 || carries_v6) {
            let of_family = |address: &&IpNet| Family::of(address.addr()) == family;
            let mut own = BTreeSet::new();
            let mut kept: Vec<(NodeId, usize, IpNet)> = Vec::new();
            for &(node, index) in &segment.stations {
                let (name, interface) = (&topology.node(node).name, &topology.node(node).interfaces[index]);
                let before = known.get(name, &links[interface.link.0 as usize]);
                if let Some(address) = interface.addresses.iter().find(of_family) {
                    own.insert(address.trunc());
                } else if let Some(address) = before.and_then(|i| i.addresses.iter().find(of_family))
                    && !is_fixed(node)
                {
                    kept.push((node, index, *address));
                }
            }
            // The subnet that is given; or else the one that the first station had, if no other
            // segment has it and it is large enough.
            let room = |subnet: &IpNet| {
                let bits = u32::from(subnet.max_prefix_len() - subnet.prefix_len());
                1u64.checked_shl(bits).unwrap_or(u64::MAX) > segment.stations.len() as u64 + 2 || bits < 2
            };
            let wanted = match own.len() {
                0 => kept
                    .first()
                    .map(|(.., address)| address.trunc())
                    .filter(|subnet| room(subnet) && !subnets.iter().any(|taken| overlap(taken, subnet))),
                _ => own.pop_first(),
            };
            let Some(subnet) = wanted.filter(|_| topology.family.is_none_or(|only| only == family)) else {
                continue;
            };
            subnets.insert(subnet);
            for (node, index, address) in kept {
                if address.trunc() == subnet && used.insert(address.addr()) {
                    topology.nodes[node.0 as usize].interfaces[index].addresses.push(address);
                }
            }
        }
    }
}

fn overlap(a: &IpNet, b: &IpNet) -> bool {
    a.contains(b) || b.contains(a)
}

impl<'t> Known<'t> {
    fn of(topology: &'t Topology) -> Known<'t> {
        let of_node = |node: &'t crate::topology::Node| {
            node.interfaces.iter().map(|interface| {
                ((node.name.as_str(), topology.link(interface.link).name.as_str()), interface)
            })
        };
        Known { interfaces: topology.nodes.iter().flat_map(of_node).collect() }
    }

    fn get(&self, node: &str, link: &str) -> Option<&'t Interface> {
        self.interfaces.get(&(node, link)).copied()
    }
}
