//! The first hop of packets from one host to another.

use crate::route::{Fib, NextHop, Routes};
use fastpath_spec::segment::stations;
use fastpath_spec::{NodeId, Topology};
use fastpath_wire::MacAddr;
use std::net::IpAddr;

/// How packets leave a host for another: as the kernel of the host would send them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostPath {
    /// The index of the interface by which they leave.
    pub interface: usize,
    /// The MAC and the IP address of that interface.
    pub from: (MacAddr, IpAddr),
    /// The MAC address of the next hop, and the IP address of the destination.
    pub to: (MacAddr, IpAddr),
}

/// Why a host cannot send to an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoPath {
    /// It has no route to it, or no address of its family on that interface.
    NoRoute,
    /// Nobody on the link has the address of the next hop.
    NoNeighbor,
}

impl HostPath {
    /// Returns the path to the first address of `to` to which `from` has a route, IPv4 before IPv6.
    /// `None` without a route.
    pub fn find(topology: &Topology, routes: &Routes, from: NodeId, to: NodeId) -> Option<HostPath> {
        let fib = Fib::new(routes.of(from));
        let addresses = topology.node(to).interfaces.iter().flat_map(|interface| &interface.addresses);
        let mut targets: Vec<IpAddr> = addresses.map(|net| net.addr()).collect();
        targets.sort_by_key(IpAddr::is_ipv6);
        targets.into_iter().find_map(|target| Self::to_address(topology, &fib, from, target).ok())
    }

    /// Returns the path from a host, with its routes, to an address, whoever has it.
    ///
    /// # Errors
    /// There is no route, or nobody has the address of the next hop.
    pub fn to_address(
        topology: &Topology,
        fib: &Fib,
        from: NodeId,
        target: IpAddr,
    ) -> Result<HostPath, NoPath> {
        let NextHop { interface, via } = fib.lookup(target).ok_or(NoPath::NoRoute)?;
        let next = via.unwrap_or(target);
        let out = &topology.node(from).interfaces[interface];
        let own = || out.addresses.iter().filter(|net| net.addr().is_ipv4() == target.is_ipv4());
        // The kernel prefers the address whose subnet the next hop is on.
        let source = own().find(|net| net.contains(&next)).or_else(|| own().next());
        let source = source.ok_or(NoPath::NoRoute)?;
        let neighbor = stations(topology, from, interface).into_iter().find_map(|(node, index)| {
            let there = &topology.node(node).interfaces[index];
            there.addresses.iter().any(|net| net.addr() == next).then_some(there.mac?)
        });
        let macs = out.mac.zip(neighbor).ok_or(NoPath::NoNeighbor)?;
        Ok(HostPath { interface, from: (macs.0, source.addr()), to: (macs.1, target) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_over_the_gateway_or_directly() {
        let text = "[host.a]\n[host.b]\n[host.c]\n[router.r]\n[switch.s]\n\
            [[link]]\nbetween = ['a', 's']\n[[link]]\nbetween = ['b', 's']\n[[link]]\nbetween = ['s', 'r']\n\
            [[link]]\nbetween = ['r', 'c']\n";
        let (topology, _) = fastpath_spec::parse(text).expect("a spec");
        let routes = Routes::compute(&topology);
        let [a, b, c, r] = ["a", "b", "c", "r"].map(|name| topology.node_named(name).expect("a node"));
        let mac =
            |node: NodeId, index: usize| topology.node(node).interfaces[index].mac.expect("a MAC address");
        let address = |node: NodeId, index: usize| topology.node(node).interfaces[index].addresses[0].addr();
        let path = |from, to| HostPath::find(&topology, &routes, from, to).expect("a path");
        let direct = path(a, b);
        assert_eq!((direct.from, direct.to), ((mac(a, 0), address(a, 0)), (mac(b, 0), address(b, 0))));
        assert_eq!(path(a, c).to, (mac(r, 0), address(c, 0)));
        let at_router = address(r, 1);
        assert_eq!(path(c, r).to.0, mac(r, 1));
        assert!([at_router, address(r, 0)].contains(&path(c, r).to.1));
    }
}
