//! The neighbour tables of hosts at start: the MAC address of each IP address on their segments.
//! With them the first packet to a neighbour is not preceded by its resolution (ARP, RFC 826;
//! Neighbor Discovery, RFC 4861), and a large segment is not flooded with requests.

use fastpath_spec::segment::{Segment, Segments};
use fastpath_spec::{NodeId, Topology};
use std::net::IpAddr;

/// The entries that the tables of all hosts of a lab may have: 64 MiB of the kernel's memory. The
/// number grows with the square of the hosts of a segment, and about 250 hosts on one reach it.
const ENTRIES_MAX: usize = 1 << 17;

/// The neighbours of the interfaces of a topology: all stations of the segment, or its routers only
/// if the lab is so large that all would be more than 131,072 entries.
#[derive(Debug)]
pub struct KnownNeighbors<'t> {
    topology: &'t Topology,
    segments: Segments,
    has_all: bool,
}

impl<'t> KnownNeighbors<'t> {
    /// Finds them.
    pub fn in_topology(topology: &'t Topology) -> KnownNeighbors<'t> {
        KnownNeighbors::limited(topology, ENTRIES_MAX)
    }

    fn limited(topology: &'t Topology, entries_max: usize) -> KnownNeighbors<'t> {
        let segments = Segments::of(topology);
        let entries = |segment: &Segment| {
            let is_host = |node: &NodeId| topology.node(*node).kind.is_edge();
            let hosts = segment.stations.iter().filter(|(node, _)| is_host(node)).count();
            let addresses = segment
                .stations
                .iter()
                .map(|&(node, place)| topology.node(node).interfaces[place].addresses.len());
            hosts * addresses.sum::<usize>()
        };
        let all: usize = segments.all.iter().map(entries).sum();
        KnownNeighbors { topology, segments, has_all: all <= entries_max }
    }

    /// Returns the IP and MAC addresses of the neighbours of an interface of a host.
    pub fn of(&self, node: NodeId, interface: usize) -> Vec<(IpAddr, [u8; 6])> {
        let segment = &self.segments.all[self.segments.at(node, interface)];
        let stations = if self.has_all { &segment.stations } else { &segment.routers };
        let others = stations.iter().filter(|&&(station, place)| (station, place) != (node, interface));
        let known = others.filter_map(|&(station, place)| {
            let there = &self.topology.node(station).interfaces[place];
            Some((there.mac?.0, &there.addresses))
        });
        known.flat_map(|(mac, all)| all.iter().map(move |address| (address.addr(), mac))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_knows_its_segment_and_of_a_large_one_the_routers() {
        let text = "[switch.s]\n[router.r]\n[host.a]\n[host.b]\n[host.far]\n\
                    [[link]]\nbetween = ['a', 's']\n[[link]]\nbetween = ['b', 's']\n\
                    [[link]]\nbetween = ['r', 's']\n[[link]]\nbetween = ['far', 'r']";
        let (topology, _) = fastpath_spec::parse(text).expect("a valid spec");
        let known = |neighbors: &KnownNeighbors| {
            let all = neighbors.of(NodeId(2), 0);
            all.iter().map(|(address, _)| address.to_string()).collect::<Vec<_>>().join(" ")
        };
        // Three hosts: two with the six addresses of the first segment, one with four.
        assert_eq!(
            known(&KnownNeighbors::limited(&topology, 16)),
            "10.1.1.3 fd00:0:0:1::3 10.1.1.4 fd00:0:0:1::4"
        );
        assert_eq!(known(&KnownNeighbors::limited(&topology, 15)), "10.1.1.4 fd00:0:0:1::4");
    }
}
