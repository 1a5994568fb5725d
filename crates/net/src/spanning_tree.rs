//! The spanning tree of the switches of a topology: which interfaces forward (decision 021).

use fastpath_spec::{NodeId, NodeKind, Topology};
use std::collections::{BTreeSet, VecDeque};

/// Returns for every node which of its interfaces forward. Only links between two switches that
/// close a loop are blocked. The tree is that of IEEE 802.1D with equal costs and bridge priorities
/// in the order of the spec: rooted at the first switch, shortest paths first.
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
    use fastpath_spec::segment::stations;

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
                let host = topology.add_node(format!("h{i}"), NodeKind::host());
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
