//! The difference of two topologies. Nodes and links are identified by their names.
//!
//! A link stays if a link of its name joins the same two nodes, in the same order. A node stays if
//! a node of its name is of the same kind with the same settings. A link can stay while a node at
//! its end is replaced: its frames then reach the new node.

use fastpath_link::Change;
use fastpath_spec::{Direction, LinkId, Node, NodeId, Topology};
use std::collections::BTreeMap;

/// What stays of a topology in another one.
#[derive(Clone, PartialEq, Debug)]
pub struct Difference {
    /// By node of the new topology: the same node in the old one; `None` if it is added.
    pub nodes: Vec<Option<NodeId>>,
    /// By link of the new topology: the same link in the old one; `None` if it is added.
    pub links: Vec<Option<LinkId>>,
    /// The nodes of the old topology that are removed.
    pub nodes_removed: Vec<NodeId>,
    /// The links of the old topology that are removed.
    pub links_removed: Vec<LinkId>,
}

impl Difference {
    /// Compares two topologies.
    pub fn of(old: &Topology, new: &Topology) -> Difference {
        let nodes_before: BTreeMap<&str, NodeId> =
            old.nodes.iter().zip(0..).map(|(node, id)| (node.name.as_str(), NodeId(id))).collect();
        let links_before: BTreeMap<&str, LinkId> =
            old.links.iter().zip(0..).map(|(link, id)| (link.name.as_str(), LinkId(id))).collect();
        let nodes: Vec<Option<NodeId>> = new
            .nodes
            .iter()
            .map(|node| {
                let before = nodes_before.get(node.name.as_str()).copied();
                before.filter(|&before| is_same(old.node(before), node))
            })
            .collect();
        let links: Vec<Option<LinkId>> = new
            .links
            .iter()
            .map(|link| {
                let before = links_before.get(link.name.as_str()).copied();
                let is_same = |end: usize, before: LinkId| {
                    new.node(link.ends[end].0).name == old.node(old.link(before).ends[end].0).name
                };
                before.filter(|&before| is_same(0, before) && is_same(1, before))
            })
            .collect();
        let nodes_removed = (0..old.nodes.len() as u32).map(NodeId);
        let links_removed = (0..old.links.len() as u32).map(LinkId);
        let index = |node: &Option<NodeId>| node.map(|id| id.0 as usize);
        let stay = inverse(nodes.iter().map(index), old.nodes.len());
        let index = |link: &Option<LinkId>| link.map(|id| id.0 as usize);
        let links_stay = inverse(links.iter().map(index), old.links.len());
        Difference {
            nodes_removed: nodes_removed.filter(|id| stay[id.0 as usize].is_none()).collect(),
            links_removed: links_removed.filter(|id| links_stay[id.0 as usize].is_none()).collect(),
            nodes,
            links,
        }
    }

    /// Returns the changes of pipes that stay, in the order of the new links. Values that differ
    /// between the descriptions change; others stay as they are now, whatever has set them.
    pub fn values(&self, old: &Topology, new: &Topology) -> Vec<(LinkId, Direction, Change)> {
        let mut all = Vec::new();
        for (id, before) in self.links.iter().enumerate() {
            let Some(before) = before else { continue };
            for (pipe, direction) in [Direction::Forward, Direction::Backward].into_iter().enumerate() {
                let (from, to) = (&old.link(*before).pipes[pipe], &new.links[id].pipes[pipe]);
                if from != to {
                    all.push((LinkId(id as u32), direction, Change::between(from, to)));
                }
            }
        }
        all
    }
}

/// Returns whether a node stays: it differs at most in its interfaces, routes and commands.
fn is_same(old: &Node, new: &Node) -> bool {
    let what = |node: &Node| {
        let mut kind = node.kind.clone();
        kind.routes_mut().into_iter().for_each(|routes| routes.clear());
        kind.setup_mut().into_iter().for_each(|setup| setup.exec.clear());
        kind
    };
    old.name == new.name && what(old) == what(new)
}

/// Returns by old index the new one, given by new index the old one, for `count` old ones.
pub(crate) fn inverse(from: impl Iterator<Item = Option<usize>>, count: usize) -> Vec<Option<usize>> {
    let mut to = vec![None; count];
    for (new, old) in from.enumerate() {
        if let Some(old) = old {
            to[old] = Some(new);
        }
    }
    to
}
