//! Subnets and addresses: checks those given and assigns the others.
//!
//! A segment without a given subnet gets 10.1.1.0/24, 10.1.2.0/24, … in the order of the links, and
//! its interfaces get .2, .3, …, as on Emulab. It also gets an IPv6 unique local subnet
//! (RFC 4193), fd00:0:0:1::/64, fd00:0:0:2::/64, …, with the same last numbers. A segment with more
//! interfaces than a /24 holds gets a larger subnet.

use crate::segment::Segments;
use crate::topology::{Family, NodeId, Topology};
use fastpath_wire::MacAddr;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The smallest MTU for IPv6 (RFC 8200 §5). Segments below it get no IPv6 addresses.
pub(crate) const IPV6_MTU_MIN: u32 = 1280;

/// Why a given address is invalid, or why none could be assigned.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum AddressError {
    #[error("{0} is already the address of {1}")]
    Duplicate(IpAddr, String),
    #[error("{0} is not a unicast address of a host ({1})")]
    NotAStation(IpAddr, &'static str),
    #[error("{0} is outside {1}, the subnet of its link")]
    Outside(IpNet, IpNet),
    #[error("{} is already the subnet of link {}", .0.trunc(), .1)]
    SubnetTwice(IpNet, String),
    #[error("{0} has no address left for this interface")]
    Full(IpNet),
    #[error("no subnet of 10.0.0.0/8 is left for this link")]
    NoSubnet,
    #[error("{0} is already the hardware address of {1}")]
    DuplicateMac(MacAddr, String),
    #[error("{0} is not a unicast hardware address")]
    NotAStationMac(MacAddr),
    #[error("{0} is not on a subnet of this node")]
    NoGateway(IpAddr),
    #[error("{0} is not an address of family {word}, the only one of the spec", word = .1.word())]
    OtherFamily(IpAddr, Family),
    #[error("an MTU below {IPV6_MTU_MIN} carries no IPv6 (RFC 8200 §5), and family is \"v6\"")]
    Narrow,
}

impl AddressError {
    /// Returns what to write instead.
    pub(crate) fn instead(&self) -> String {
        match self {
            AddressError::Duplicate(..) => {
                "write an address of its own, or none to have one assigned".to_owned()
            }
            AddressError::NotAStation(..) => "write a unicast address such as 10.0.1.2/24".to_owned(),
            AddressError::Outside(_, subnet) => format!("write an address in {subnet}"),
            AddressError::SubnetTwice(..) => "write another subnet: each link has its own".to_owned(),
            AddressError::Full(_) => "write a shorter prefix length".to_owned(),
            AddressError::NoSubnet => "write addresses for some links".to_owned(),
            AddressError::DuplicateMac(..) => "write one of its own, or none to have one assigned".to_owned(),
            AddressError::NotAStationMac(_) => "write a unicast address such as 02:00:00:00:00:2a".to_owned(),
            AddressError::NoGateway(_) => "write the address of a neighbour".to_owned(),
            AddressError::OtherFamily(..) => "write an address of that family, or no family".to_owned(),
            AddressError::Narrow => format!("write mtu = {IPV6_MTU_MIN}, or family = \"v4\""),
        }
    }
}

impl AddressError {
    /// Returns the IP address of the error, if it has one.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        match self {
            AddressError::Duplicate(ip, _)
            | AddressError::NotAStation(ip, _)
            | AddressError::OtherFamily(ip, _)
            | AddressError::NoGateway(ip) => Some(*ip),
            AddressError::Outside(net, _) | AddressError::SubnetTwice(net, _) => Some(net.addr()),
            _ => None,
        }
    }
}

/// An error with the node and the index of the interface.
pub(crate) type Misaddressed = (NodeId, usize, AddressError);

/// Checks the given addresses and assigns one of each family, or of the only one, to every
/// interface of a host or router that has none, except those of the nodes in `fixed`. After an
/// error only some interfaces have addresses.
pub(crate) fn assign(topology: &mut Topology, fixed: &BTreeSet<NodeId>) -> Vec<Misaddressed> {
    let segments = Segments::of(topology);
    let mut problems = check_addresses(topology);
    problems.extend(check_subnets(topology, &segments));
    if problems.is_empty() {
        problems.extend(Numbering::new(topology).fill(topology, &segments, fixed));
    }
    problems.extend(check_gateways(topology));
    problems
}

fn check_addresses(topology: &Topology) -> Vec<Misaddressed> {
    let mut problems = Vec::new();
    let mut owners: BTreeMap<IpAddr, NodeId> = BTreeMap::new();
    for (node, index, address) in given(topology) {
        if let Some(family) = topology.family.filter(|family| *family != Family::of(address.addr())) {
            problems.push((node, index, AddressError::OtherFamily(address.addr(), family)));
        } else if let Some(reason) = not_a_station(address) {
            problems.push((node, index, AddressError::NotAStation(address.addr(), reason)));
        } else if let Some(owner) = owners.insert(address.addr(), node) {
            let owner = topology.node(owner).name.clone();
            problems.push((node, index, AddressError::Duplicate(address.addr(), owner)));
        }
    }
    problems
}

fn given(topology: &Topology) -> impl Iterator<Item = (NodeId, usize, IpNet)> {
    topology.nodes.iter().enumerate().flat_map(|(id, node)| {
        node.interfaces.iter().enumerate().flat_map(move |(index, interface)| {
            interface.addresses.iter().map(move |&address| (NodeId(id as u32), index, address))
        })
    })
}

fn not_a_station(address: IpNet) -> Option<&'static str> {
    let ip = address.addr();
    // A /31 has neither network nor broadcast address (RFC 3021); IPv6 has no broadcast.
    let has_edges = ip.is_ipv4() && address.prefix_len() < 31;
    match ip {
        _ if ip.is_unspecified() => Some("unspecified"),
        _ if ip.is_loopback() => Some("loopback"),
        _ if ip.is_multicast() => Some("multicast"),
        _ if has_edges && ip == address.network() => Some("the network itself"),
        _ if has_edges && ip == address.broadcast() => Some("broadcast"),
        IpAddr::V4(ip) if ip.is_broadcast() => Some("broadcast"),
        IpAddr::V6(ip) if ip.is_unicast_link_local() => Some("link-local"),
        _ => None,
    }
}

/// The first given address of a segment decides the subnet of its family. Every interface with
/// addresses of that family must have one in the subnet, and no other segment may use it.
fn check_subnets(topology: &Topology, segments: &Segments) -> Vec<Misaddressed> {
    let mut problems = Vec::new();
    let mut owners: BTreeMap<IpNet, (usize, String)> = BTreeMap::new();
    for (place, segment) in segments.all.iter().enumerate() {
        for v4 in [true, false] {
            let mut subnet: Option<IpNet> = None;
            for &(node, index) in &segment.stations {
                let interface = &topology.node(node).interfaces[index];
                let is_own = |address: &&IpNet| address.addr().is_ipv4() == v4 && !stands_alone(address);
                let own: Vec<IpNet> = interface.addresses.iter().filter(is_own).copied().collect();
                let Some(&first) = own.first() else { continue };
                let subnet = *subnet.get_or_insert(first.trunc());
                if !own.iter().any(|address| address.trunc() == subnet) {
                    problems.push((node, index, AddressError::Outside(first, subnet)));
                    continue;
                }
                for address in own {
                    let link = &topology.link(interface.link).name;
                    let owner = owners.entry(address.trunc()).or_insert_with(|| (place, link.clone()));
                    if owner.0 != place {
                        let twice = AddressError::SubnetTwice(address, owner.1.clone());
                        problems.push((node, index, twice));
                    }
                }
            }
        }
    }
    problems
}

/// Whether an address is in no subnet (/32, /128). It has a route of its own, and any segment may
/// have it beside others.
fn stands_alone(address: &IpNet) -> bool {
    address.prefix_len() == address.max_prefix_len()
}

fn check_gateways(topology: &Topology) -> Vec<Misaddressed> {
    let mut problems = Vec::new();
    for (id, node) in topology.nodes.iter().enumerate() {
        let near = |via: &IpAddr| {
            node.interfaces.iter().flat_map(|i| &i.addresses).any(|a| a.contains(via) && a.addr() != *via)
        };
        for (_, via) in node.kind.routes().iter().filter(|(_, via)| !near(via)) {
            problems.push((NodeId(id as u32), usize::MAX, AddressError::NoGateway(*via)));
        }
    }
    problems
}

/// Checks the given MAC addresses (of the interfaces in `given`). An interface whose numbered
/// address was given to another gets a new one.
pub(crate) fn settle_macs(topology: &mut Topology, given: &BTreeSet<(NodeId, usize)>) -> Vec<Misaddressed> {
    let mut problems = Vec::new();
    let mut owners: BTreeMap<MacAddr, NodeId> = BTreeMap::new();
    for &(node, index) in given {
        let Some(mac) = topology.node(node).interfaces[index].mac else { continue };
        if mac.is_multicast() || mac == MacAddr::ZERO {
            problems.push((node, index, AddressError::NotAStationMac(mac)));
        } else if let Some(owner) = owners.insert(mac, node) {
            problems.push((node, index, AddressError::DuplicateMac(mac, topology.node(owner).name.clone())));
        }
    }
    let mut next = 2 * topology.links.len() as u32;
    for (id, node) in topology.nodes.iter_mut().enumerate() {
        for (index, interface) in node.interfaces.iter_mut().enumerate() {
            if given.contains(&(NodeId(id as u32), index)) {
                continue;
            }
            while interface.mac.is_some_and(|mac| owners.contains_key(&mac)) {
                interface.mac = Some(MacAddr::from_index(next));
                next += 1;
            }
        }
    }
    problems
}

/// Assigns subnets that overlap no other.
struct Numbering {
    /// IPv4 ranges in use, first to last address.
    taken: BTreeMap<u32, u32>,
    /// By prefix length: the address at which the next search begins.
    next: [u32; 33],
    subnets6: BTreeSet<IpNet>,
    next6: u32,
    used: BTreeSet<IpAddr>,
}

impl Numbering {
    fn new(topology: &Topology) -> Numbering {
        let mut numbering = Numbering {
            taken: BTreeMap::new(),
            next: [u32::from(Ipv4Addr::new(10, 1, 0, 0)); 33],
            subnets6: BTreeSet::new(),
            next6: 1,
            used: BTreeSet::new(),
        };
        for (_, _, address) in given(topology) {
            numbering.used.insert(address.addr());
            match address {
                IpNet::V4(net) => numbering.take(net),
                IpNet::V6(_) => _ = numbering.subnets6.insert(address.trunc()),
            }
        }
        numbering
    }

    fn fill(
        &mut self,
        topology: &mut Topology,
        segments: &Segments,
        fixed: &BTreeSet<NodeId>,
    ) -> Vec<Misaddressed> {
        let mut problems = Vec::new();
        for segment in &segments.all {
            let stations: Vec<(NodeId, usize)> =
                segment.stations.iter().filter(|(node, _)| !fixed.contains(node)).copied().collect();
            if stations.is_empty() {
                continue;
            }
            let narrow = stations.iter().any(|&(n, i)| topology.node(n).interfaces[i].mtu < IPV6_MTU_MIN);
            for family in Family::ALL {
                let v4 = family == Family::V4;
                if topology.family.is_some_and(|only| only != family) {
                    continue;
                }
                if narrow && !v4 {
                    let only = topology.family.map(|_| (stations[0].0, stations[0].1, AddressError::Narrow));
                    problems.extend(only);
                    continue;
                }
                let addresses =
                    |&(node, index): &(NodeId, usize)| &topology.node(node).interfaces[index].addresses;
                let is_subnet = |a: &&IpNet| a.addr().is_ipv4() == v4 && !stands_alone(a);
                let subnet = match segment.stations.iter().flat_map(addresses).find(is_subnet) {
                    Some(address) => Some(address.trunc()),
                    None if v4 => self.subnet4(segment.stations.len()).map(IpNet::V4),
                    None => Some(IpNet::V6(self.subnet6())),
                };
                let Some(subnet) = subnet else {
                    problems.push((stations[0].0, stations[0].1, AddressError::NoSubnet));
                    return problems;
                };
                let mut hosts = host_numbers(subnet);
                for &(node, index) in &stations {
                    let interface = &mut topology.nodes[node.0 as usize].interfaces[index];
                    if interface.addresses.iter().any(|a| a.addr().is_ipv4() == v4) {
                        continue;
                    }
                    match hosts.find(|address| !self.used.contains(address)) {
                        Some(address) => {
                            self.used.insert(address);
                            let net =
                                IpNet::new(address, subnet.prefix_len()).expect("the subnet's own length");
                            interface.addresses.push(net);
                        }
                        None => problems.push((node, index, AddressError::Full(subnet))),
                    }
                }
            }
        }
        problems
    }

    /// Returns the next free subnet of 10/8 for `stations` interfaces: a /24, or larger.
    fn subnet4(&mut self, stations: usize) -> Option<Ipv4Net> {
        // The network, the broadcast address, and .1, which Emulab leaves free.
        let bits = (stations as u64 + 3).next_power_of_two().ilog2().max(8);
        let length = 32 - u8::try_from(bits).ok()?;
        if length < 9 {
            return None;
        }
        loop {
            let start = self.next[usize::from(length)].next_multiple_of(1 << bits);
            let net = Ipv4Net::new(Ipv4Addr::from(start), length).expect("a length of 9 to 24");
            if net.network().octets()[0] != 10 {
                return None;
            }
            let last = u32::from(net.broadcast());
            let before = self.taken.range(..=last).next_back().filter(|(_, end)| **end >= start);
            if let Some((_, &end)) = before {
                self.next[usize::from(length)] = end.checked_add(1)?;
                continue;
            }
            self.next[usize::from(length)] = last.checked_add(1)?;
            // Emulab counts 10.B.1.0 … 10.B.254.0.
            if length < 24 || !matches!(net.network().octets()[2], 0 | 255) {
                self.take(net);
                return Some(net);
            }
        }
    }

    fn subnet6(&mut self) -> Ipv6Net {
        loop {
            let number = self.next6;
            self.next6 += 1;
            let (high, low) = ((number >> 16) as u16, number as u16);
            let net =
                Ipv6Net::new(Ipv6Addr::new(0xfd00, 0, high, low, 0, 0, 0, 0), 64).expect("64 is a length");
            let subnet = IpNet::V6(net);
            let overlaps = |other: &IpNet| other.contains(&subnet) || subnet.contains(other);
            if !self.subnets6.iter().any(overlaps) {
                return net;
            }
        }
    }

    /// Prefixes are nested or disjoint; only the outermost are kept.
    fn take(&mut self, net: Ipv4Net) {
        let (start, end) = (u32::from(net.network()), u32::from(net.broadcast()));
        if self.taken.range(..=start).next_back().is_some_and(|(_, &last)| last >= end) {
            return;
        }
        let inside: Vec<u32> = self.taken.range(start..=end).map(|(&first, _)| first).collect();
        inside.iter().for_each(|first| _ = self.taken.remove(first));
        self.taken.insert(start, end);
    }
}

/// Returns the addresses of a subnet in the order of assignment: .2, .3, …, and .1 last.
fn host_numbers(subnet: IpNet) -> impl Iterator<Item = IpAddr> {
    let base = match subnet.network() {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    let v4 = subnet.addr().is_ipv4();
    let bits = u32::from(subnet.max_prefix_len() - subnet.prefix_len());
    let size = 1u128.checked_shl(bits).unwrap_or(u128::MAX);
    // A /31 or /127 has two stations and neither network nor broadcast address (RFC 3021, RFC
    // 6164).
    let hosts = match (bits, v4) {
        (0 | 1, _) => (0..size).chain(0..0),
        (_, true) => (2..size - 1).chain(1..2),
        (_, false) => (2..size).chain(1..2),
    };
    hosts.map(move |host| match v4 {
        true => IpAddr::V4(Ipv4Addr::from_bits((base + host) as u32)),
        false => IpAddr::V6(Ipv6Addr::from_bits(base + host)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate as spec;

    /// A switch with `stations` hosts, of which the first has `given`.
    fn lan(stations: usize, given: &str) -> Topology {
        let mut text = format!("[switch.s]\n[host.h0]\n{given}\n");
        (1..stations).for_each(|i| text += &format!("[host.h{i}]\n"));
        (0..stations).for_each(|i| text += &format!("[[link]]\nbetween = ['h{i}', 's']\n"));
        spec::parse(&text).expect("a valid spec").0
    }

    fn addresses(topology: &Topology) -> Vec<IpNet> {
        given(topology).map(|(.., address)| address).collect()
    }

    #[test]
    fn a_large_lan_gets_a_large_subnet() {
        for (stations, length) in [(1, 24), (253, 24), (254, 23), (600, 22)] {
            let all = addresses(&lan(stations, ""));
            let v4: BTreeSet<IpNet> = all.iter().filter(|a| a.addr().is_ipv4()).copied().collect();
            assert_eq!(v4.len(), stations, "each its own");
            assert!(v4.iter().all(|a| a.prefix_len() == length), "{stations}: {:?}", v4.first());
            assert!(v4.iter().all(|a| not_a_station(*a).is_none()));
        }
    }

    #[test]
    fn the_rest_is_numbered_in_the_subnet_that_was_given() {
        let all = addresses(&lan(4, "addresses = ['172.16.5.3/29', 'fd77::1/64']"));
        let text: Vec<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(
            text,
            [
                "172.16.5.3/29",
                "fd77::1/64",
                "172.16.5.2/29",
                "fd77::2/64",
                "172.16.5.4/29",
                "fd77::3/64",
                "172.16.5.5/29",
                "fd77::4/64",
            ]
        );
        let pair = addresses(&lan(2, "address = '192.0.2.1/31'"));
        assert_eq!(pair[2].to_string(), "192.0.2.0/31", "a /31 has two stations");
    }

    #[test]
    fn a_family_leaves_the_other_one_out() {
        for (family, expected) in
            [("v4", ["10.1.1.2/24", "10.1.1.3/24"]), ("v6", ["fd00:0:0:1::2/64", "fd00:0:0:1::3/64"])]
        {
            let spec = |rest: &str| {
                spec::parse(&format!(
                    "family = '{family}'\n[host.a]\n{rest}\n[host.b]\n[[link]]\nbetween = ['a', 'b']"
                ))
            };
            let topology = spec("").expect("a valid spec").0;
            let text: Vec<String> = addresses(&topology).iter().map(ToString::to_string).collect();
            assert_eq!(text, expected);
            let (again, _) =
                spec::resolve(&spec::describe(&topology), spec::NO_FILES).expect("a valid description");
            assert_eq!(again, topology, "a description says the family");
            let other = if family == "v4" { "fd77::1/64" } else { "172.16.5.3/29" };
            let mistakes = spec(&format!("address = '{other}'")).expect_err("of the other family");
            assert_eq!((mistakes.len(), mistakes[0].line), (1, 3), "{mistakes:?}");
        }
        let narrow = "family = 'v6'\n[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nmtu = 1000";
        let mistakes = spec::parse(narrow).expect_err("no address is possible");
        assert!(mistakes[0].what.contains("1280"), "{mistakes:?}");
        let unknown = spec::parse(&narrow.replace("'v6'", "'ipv4'")).expect_err("not a family");
        assert!(unknown[0].instead.contains("v4"), "{unknown:?}");
    }

    #[test]
    fn assigned_subnets_avoid_those_given() {
        let text = "[host.a]\n[router.r]\n[host.b]\naddress = '10.1.0.9/22'\n[[link]]\nbetween = ['a', 'r']\n\
                    [[link]]\nbetween = ['b', 'r']";
        let topology = spec::parse(text).expect("a valid spec").0;
        assert_eq!(topology.nodes[0].interfaces[0].addresses[0].to_string(), "10.1.4.2/24");
    }

    #[test]
    fn emulab_counts_from_1_to_254_and_goes_on_in_the_next_byte() {
        let mut numbering = Numbering::new(&Topology::default());
        let subnets: Vec<String> =
            (0..600).map(|_| numbering.subnet4(2).expect("a subnet").to_string()).collect();
        assert_eq!((subnets[0].as_str(), subnets[253].as_str()), ("10.1.1.0/24", "10.1.254.0/24"));
        assert_eq!((subnets[254].as_str(), subnets[599].as_str()), ("10.2.1.0/24", "10.3.92.0/24"));
        while numbering.subnet4(2).is_some() {}
        assert_eq!(numbering.subnet4(2000), None, "10/8 is full, and says so");
    }
}
