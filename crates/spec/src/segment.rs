//! The broadcast domains (layer-2 segments) of a topology, and the spanning tree of its switches.

use crate::topology::{LinkId, NodeId, Topology};
use ipnet::IpNet;
use std::collections::{BTreeSet, VecDeque};

/// Returns the interfaces of hosts and routers in the broadcast domain of `(node, interface)`,
/// itself included: the other end of the link, or every interface reachable through switches.
pub fn stations(topology: &Topology, node: NodeId, interface: usize) -> BTreeSet<(NodeId, usize)> {
    stations_over(topology, &|_| true, node, interface)
}

/// Returns the stations that are reached over links that `is_up` accepts.
fn stations_over(
    topology: &Topology,
    is_up: &dyn Fn(LinkId) -> bool,
    node: NodeId,
    interface: usize,
) -> BTreeSet<(NodeId, usize)> {
    let mut seen = BTreeSet::from([(node, interface)]);
    let mut crossed = BTreeSet::new();
    let mut waiting = VecDeque::from([(node, interface)]);
    while let Some((node, interface)) = waiting.pop_front() {
        let here = &topology.node(node).interfaces[interface];
        let far = is_up(here.link).then(|| topology.link(here.link).ends[1 - here.end]);
        // A switch reaches all its interfaces. It is crossed once.
        let switch = topology.node(node).kind.is_switch();
        let ports = if switch && crossed.insert(node) { topology.node(node).interfaces.len() } else { 0 };
        for next in (0..ports).map(|i| (node, i)).chain(far) {
            if seen.insert(next) {
                waiting.push_back(next);
            }
        }
    }
    seen.retain(|(node, _)| !topology.node(*node).kind.is_switch());
    seen
}

/// All segments of a topology, each once.
#[derive(Debug)]
pub struct Segments {
    /// In the order of the first link of each.
    pub all: Vec<Segment>,
    /// By node and interface: the index into `all`. Not meaningful for switches.
    places: Vec<Vec<usize>>,
}

/// The interfaces, as `(node, interface)`, of one broadcast domain.
#[derive(Debug, Default)]
pub struct Segment {
    /// The interfaces of hosts and routers, in the order of the links.
    pub stations: Vec<(NodeId, usize)>,
    /// The interfaces of routers among them.
    pub routers: Vec<(NodeId, usize)>,
    /// The subnets of their addresses.
    pub subnets: BTreeSet<IpNet>,
}

impl Segments {
    /// Finds the segments of a topology.
    pub fn of(topology: &Topology) -> Segments {
        Segments::over(topology, &|_| true)
    }

    /// Finds the segments of a topology without the links that `is_up` refuses. Both ends of such a
    /// link are on segments of their own.
    pub fn over(topology: &Topology, is_up: &dyn Fn(LinkId) -> bool) -> Segments {
        let places = topology.nodes.iter().map(|node| vec![usize::MAX; node.interfaces.len()]).collect();
        let mut segments = Segments { all: Vec::new(), places };
        for (id, index) in topology.links.iter().flat_map(|link| link.ends) {
            let node = topology.node(id);
            if node.kind.is_switch() {
                continue;
            }
            if segments.at(id, index) == usize::MAX {
                for (node, interface) in stations_over(topology, is_up, id, index) {
                    segments.places[node.0 as usize][interface] = segments.all.len();
                }
                segments.all.push(Segment::default());
            }
            let place = segments.at(id, index);
            let segment = &mut segments.all[place];
            segment.stations.push((id, index));
            if node.kind.is_router() {
                segment.routers.push((id, index));
            }
            segment.subnets.extend(node.interfaces[index].addresses.iter().map(IpNet::trunc));
        }
        segments
    }

    /// Returns the segment of an interface of a host or router, as an index into `all`.
    pub fn at(&self, node: NodeId, interface: usize) -> usize {
        self.places[node.0 as usize][interface]
    }
}
