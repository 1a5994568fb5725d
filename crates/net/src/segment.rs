//! Layer-2 segments of a topology: which interfaces hear each other's broadcasts, and where loops of
//! switches are cut.

use crate::topology::{NodeId, NodeKind, Topology};
use ipnet::IpNet;
use std::collections::{BTreeSet, VecDeque};

/// The routed interfaces (of hosts and routers) on the same segment as `(node, interface)`, itself included:
/// the other end of the link, or everything reachable through switches.
pub(crate) fn stations(topology: &Topology, node: NodeId, interface: usize) -> BTreeSet<(NodeId, usize)> {
    let mut seen = BTreeSet::from([(node, interface)]);
    let mut waiting = VecDeque::from([(node, interface)]);
    while let Some((node, interface)) = waiting.pop_front() {
        let here = &topology.node(node).interfaces[interface];
        let far = topology.link(here.link).ends[1 - here.end];
        let through: Vec<(NodeId, usize)> = match topology.node(node).kind {
            NodeKind::Switch => (0..topology.node(node).interfaces.len()).map(|i| (node, i)).collect(),
            NodeKind::Host { .. } | NodeKind::Router => Vec::new(),
        };
        for next in through.into_iter().chain([far]) {
            if seen.insert(next) {
                waiting.push_back(next);
            }
        }
    }
    seen.retain(|(node, _)| !matches!(topology.node(*node).kind, NodeKind::Switch));
    seen
}

/// All segments of a topology, each once, in the order in which their first station appears.
#[derive(Debug)]
pub(crate) struct Segments {
    stations: Vec<Vec<(NodeId, usize)>>,
    subnets: Vec<Vec<IpNet>>,
    /// Per node and interface; meaningless for switches.
    places: Vec<Vec<usize>>,
}

impl Segments {
    pub(crate) fn of(topology: &Topology) -> Segments {
        let places = topology.nodes.iter().map(|node| vec![usize::MAX; node.interfaces.len()]).collect();
        let mut segments = Segments { stations: Vec::new(), subnets: Vec::new(), places };
        // In the order of the links, so that what is numbered by segment follows the spec.
        for (id, index) in topology.links.iter().flat_map(|link| link.ends) {
            let switch = matches!(topology.node(id).kind, NodeKind::Switch);
            if switch || segments.places[id.0 as usize][index] != usize::MAX {
                continue;
            }
            for (node, interface) in stations(topology, id, index) {
                segments.places[node.0 as usize][interface] = segments.stations.len();
            }
            segments.stations.push(Vec::new());
        }
        segments.subnets = vec![Vec::new(); segments.stations.len()];
        for (id, index) in topology.links.iter().flat_map(|link| link.ends) {
            let Some(stations) = segments.stations.get_mut(segments.places[id.0 as usize][index]) else {
                continue;
            };
            stations.push((id, index));
        }
        for (stations, subnets) in segments.stations.iter().zip(&mut segments.subnets) {
            let addresses = |&(id, index): &(NodeId, usize)| &topology.node(id).interfaces[index].addresses;
            let all: BTreeSet<IpNet> = stations.iter().flat_map(addresses).map(IpNet::trunc).collect();
            subnets.extend(all);
        }
        segments
    }

    pub(crate) fn len(&self) -> usize {
        self.stations.len()
    }

    /// The interfaces of hosts and routers on a segment, in the order of the links.
    pub(crate) fn stations(&self, segment: usize) -> &[(NodeId, usize)] {
        &self.stations[segment]
    }

    /// The subnets of a segment's addresses.
    pub(crate) fn subnets(&self, segment: usize) -> &[IpNet] {
        &self.subnets[segment]
    }

    /// The segment of a host's or router's interface.
    pub(crate) fn at(&self, node: NodeId, interface: usize) -> usize {
        self.places[node.0 as usize][interface]
    }
}

/// For every node, which of its interfaces forward. Only links between two switches are ever cut: those that
/// close a loop, seen from the switch that comes first in the spec, nearest first (the tree that IEEE 802.1D
/// would settle on with equal costs and bridge priorities in the order of the spec).
pub(crate) fn forwarding(topology: &Topology) -> Vec<Vec<bool>> {
    let is_switch = |id: NodeId| matches!(topology.node(id).kind, NodeKind::Switch);
    let mut forwarding: Vec<Vec<bool>> =
        topology.nodes.iter().map(|node| vec![true; node.interfaces.len()]).collect();
    let mut reached = vec![false; topology.nodes.len()];
    let mut in_tree = BTreeSet::new();
    for root in (0..topology.nodes.len() as u32).map(NodeId).filter(|&id| is_switch(id)) {
        let mut waiting = VecDeque::from([root]);
        while let Some(node) = waiting.pop_front() {
            reached[node.0 as usize] = true;
            for interface in &topology.node(node).interfaces {
                let (far, _) = topology.peer(interface);
                if is_switch(far) && !reached[far.0 as usize] {
                    reached[far.0 as usize] = true;
                    in_tree.insert(interface.link);
                    waiting.push_back(far);
                }
            }
        }
    }
    for (id, node) in topology.nodes.iter().enumerate() {
        for (i, interface) in node.interfaces.iter().enumerate() {
            let (far, _) = topology.peer(interface);
            if is_switch(NodeId(id as u32)) && is_switch(far) && !in_tree.contains(&interface.link) {
                forwarding[id][i] = false;
            }
        }
    }
    forwarding
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_link::PipeSpec;

    fn ideal() -> [PipeSpec; 2] {
        [PipeSpec::default(), PipeSpec::default()]
    }

    #[test]
    fn a_triangle_of_switches_is_cut_once_and_stays_one_segment() {
        let mut topology = Topology::default();
        let switches: Vec<NodeId> =
            (0..3).map(|i| topology.add_node(format!("s{i}"), NodeKind::Switch)).collect();
        for (a, b) in [(0, 1), (1, 2), (2, 0)] {
            topology.connect(format!("{a}{b}"), switches[a], switches[b], ideal());
        }
        let hosts: Vec<NodeId> = (0..3)
            .map(|i| {
                let host = topology.add_node(format!("h{i}"), NodeKind::Host { port: None });
                topology.connect(format!("h{i}"), host, switches[i], ideal());
                host
            })
            .collect();
        assert_eq!(
            forwarding(&topology)[..3],
            [vec![true, true, true], vec![true, false, true], vec![false, true, true]]
        );
        let expected: BTreeSet<_> = hosts.iter().map(|&host| (host, 0)).collect();
        assert_eq!(stations(&topology, hosts[1], 0), expected);
    }
}
