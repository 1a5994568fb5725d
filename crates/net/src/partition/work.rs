//! The work that a topology is expected to be: packets at its nodes and on its links, as far as the
//! description tells.

use fastpath_spec::{NodeId, Topology};
use std::collections::{BTreeMap, VecDeque};

/// The expected packets at each node and on each link, in any unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ExpectedWork {
    pub(super) nodes: Vec<u64>,
    pub(super) links: Vec<u64>,
    /// Packets per second that all nodes handle together; 0 if unknown.
    pub(super) hops_per_s: u64,
}

/// Units of work of one packet per second. What no traffic passes counts one unit per interface.
const PER_PACKET: u64 = 16;

impl ExpectedWork {
    /// Expects the traffic of the description on shortest paths; without any, the same on each
    /// link.
    pub(super) fn of(topology: &Topology) -> ExpectedWork {
        let mut work = ExpectedWork {
            nodes: topology.nodes.iter().map(|node| node.interfaces.len().max(1) as u64).collect(),
            links: vec![1; topology.links.len()],
            hops_per_s: 0,
        };
        let mut flows: BTreeMap<NodeId, Vec<(NodeId, u64)>> = BTreeMap::new();
        for traffic in &topology.traffic {
            let per_s = traffic.model.mean_bps() / 8.0 / f64::from(traffic.model.size.max(1));
            flows.entry(traffic.from).or_default().push((traffic.to, (per_s as u64).clamp(1, 1 << 40)));
        }
        for (from, flows) in flows {
            let back = previous_hops(topology, from);
            for (to, per_s) in flows {
                work.add_path(topology, (from, to), per_s, &back);
            }
        }
        work
    }

    fn add_path(
        &mut self,
        topology: &Topology,
        (from, to): (NodeId, NodeId),
        per_s: u64,
        back: &[Option<(u32, NodeId)>],
    ) {
        let mut at = to;
        loop {
            let node = &mut self.nodes[at.0 as usize];
            *node = node.saturating_add(per_s * PER_PACKET);
            self.hops_per_s = self.hops_per_s.saturating_add(per_s);
            let Some((link, before)) = back[at.0 as usize].filter(|_| at != from) else { return };
            let link = &mut self.links[link as usize];
            *link = link.saturating_add(per_s * PER_PACKET);
            debug_assert!((before.0 as usize) < topology.nodes.len());
            at = before;
        }
    }
}

/// Returns by node: the link and the node before it on a shortest path from `from`. Hosts do not
/// forward.
pub fn previous_hops(topology: &Topology, from: NodeId) -> Vec<Option<(u32, NodeId)>> {
    let mut back = vec![None; topology.nodes.len()];
    let mut queue = VecDeque::from([from]);
    while let Some(at) = queue.pop_front() {
        let node = topology.node(at);
        if at != from && node.kind.is_edge() {
            continue;
        }
        for interface in &node.interfaces {
            let (far, _) = topology.peer(interface);
            let place = &mut back[far.0 as usize];
            if far != from && place.is_none() {
                *place = Some((interface.link.0, at));
                queue.push_back(far);
            }
        }
    }
    back
}
