//! The pipes that a packet takes from one host to another.

use fastpath_link::PipeSpec;
use fastpath_net::{Fib, Routes};
use fastpath_spec::{LinkId, NodeId, Topology};
use std::collections::VecDeque;
use std::net::IpAddr;

/// A pipe of the topology: a link, and 0 for its forward or 1 for its backward direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PathHop {
    pub(crate) link: LinkId,
    pub(crate) pipe: usize,
}

/// The path from a host to an address.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Path {
    pub(crate) hops: Vec<PathHop>,
    /// The smallest MTU of the interfaces that send along it.
    pub(crate) mtu: u32,
}

impl Path {
    /// The path that packets from `from` to the address `to` take; `None` if there is no route.
    pub(crate) fn find(topology: &Topology, routes: &Routes, from: NodeId, to: IpAddr) -> Option<Path> {
        let mut path = Path { hops: Vec::new(), mtu: u32::MAX };
        let mut at = from;
        // Routes have no loops, so a packet passes a node at most once.
        for _ in 0..topology.nodes.len() {
            if owner(topology, at, to).is_some() {
                return Some(path);
            }
            let next = Fib::new(routes.of(at)).lookup(to)?;
            path.mtu = path.mtu.min(topology.node(at).interfaces[next.interface].mtu);
            at = cross_segment(topology, at, next.interface, next.via.unwrap_or(to), &mut path.hops)?;
        }
        owner(topology, at, to).map(|()| path)
    }

    /// Returns the parameters of its pipes, in the order of the hops.
    pub(crate) fn pipes<'t>(&'t self, topology: &'t Topology) -> impl Iterator<Item = &'t PipeSpec> {
        self.hops.iter().map(|hop| &topology.link(hop.link).pipes[hop.pipe])
    }
}

/// Adds the hops from an interface to the node on the same segment that has the address `to`: one
/// link, or several with switches between, and then the fewest.
fn cross_segment(
    topology: &Topology,
    from: NodeId,
    interface: usize,
    to: IpAddr,
    hops: &mut Vec<PathHop>,
) -> Option<NodeId> {
    let mut seen = vec![false; topology.nodes.len()];
    seen[from.0 as usize] = true;
    let mut waiting: VecDeque<(NodeId, usize, Vec<PathHop>)> =
        VecDeque::from([(from, interface, Vec::new())]);
    while let Some((node, leaving, mut way)) = waiting.pop_front() {
        let leaving = &topology.node(node).interfaces[leaving];
        let (far, _) = topology.peer(leaving);
        way.push(PathHop { link: leaving.link, pipe: leaving.end });
        if owner(topology, far, to).is_some() {
            hops.append(&mut way);
            return Some(far);
        }
        let is_switch = topology.node(far).kind.is_switch();
        if is_switch && !std::mem::replace(&mut seen[far.0 as usize], true) {
            let ports = 0..topology.node(far).interfaces.len();
            waiting.extend(ports.map(|port| (far, port, way.clone())));
        }
    }
    None
}

fn owner(topology: &Topology, node: NodeId, address: IpAddr) -> Option<()> {
    let mut own = topology.node(node).interfaces.iter().flat_map(|interface| &interface.addresses);
    own.any(|net| net.addr() == address).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::dumbbell;

    fn path(from: &str, to: &str) -> Vec<(String, usize)> {
        let topology = dumbbell();
        let routes = Routes::compute(&topology);
        let to = topology.node(topology.node_named(to).unwrap()).interfaces[0].addresses[0].addr();
        let path = Path::find(&topology, &routes, topology.node_named(from).unwrap(), to).unwrap();
        path.hops.iter().map(|hop| (topology.link(hop.link).name.clone(), hop.pipe)).collect()
    }

    #[test]
    fn a_path_goes_over_routers_and_each_direction_has_its_own_pipes() {
        let named = |hops: &[(&str, usize)]| -> Vec<(String, usize)> {
            hops.iter().map(|&(name, pipe)| (name.to_owned(), pipe)).collect()
        };
        assert_eq!(path("n0", "n1"), named(&[("n0-r0", 0), ("n1-r0", 1)]));
        assert_eq!(path("n0", "n3"), named(&[("n0-r0", 0), ("r0-r1", 0), ("n3-r1", 1)]));
        assert_eq!(path("n3", "n0"), named(&[("n3-r1", 0), ("r0-r1", 1), ("n0-r0", 1)]));
    }
}
