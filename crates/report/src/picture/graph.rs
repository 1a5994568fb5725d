//! The graph of a picture: what its layouts read.

use super::geometry::Pixels;

/// Between the boxes of two nodes, pixels.
pub(super) const GAP: f64 = 16.0;

/// The free length of a link between two nodes, pixels.
const FREE: f64 = 64.0;

/// A graph to lay out.
pub(super) struct Graph<'g> {
    /// Width and height of each node, pixels.
    pub(super) sizes: &'g [Pixels],
    /// Pairs of nodes, and the room that their label needs, pixels.
    pub(super) edges: &'g [([usize; 2], f64)],
    /// Whether each node is a host: hosts are the lowest layer.
    pub(super) hosts: &'g [bool],
    /// The positions that are given.
    pub(super) given: &'g [Option<Pixels>],
}

/// The neighbours of each node, each once, in the order of their numbers, with the length that a
/// link to them should have.
pub(super) type Neighbors = Vec<Vec<(usize, f64)>>;

/// Returns the neighbours of each node.
pub(super) fn neighbors(graph: &Graph) -> Neighbors {
    let mut all: Neighbors = vec![Vec::new(); graph.sizes.len()];
    for &([a, b], label) in graph.edges.iter().filter(|([a, b], _)| a != b) {
        let extent = |node: usize| match graph.sizes[node] {
            // A label may lie along a horizontal link, between the sides of its nodes.
            [width, _] if label > 0.0 => width / 2.0,
            [width, height] => (width + height) / 4.0,
        };
        let length = extent(a) + extent(b) + FREE.max(label + 2.0 * GAP);
        all[a].push((b, length));
        all[b].push((a, length));
    }
    for list in &mut all {
        list.sort_by(|x, y| x.0.cmp(&y.0).then(y.1.total_cmp(&x.1)));
        list.dedup_by_key(|(node, _)| *node);
    }
    all
}

/// Returns the connected components, each in the order of its nodes.
pub(super) fn components(neighbors: &Neighbors) -> Vec<Vec<usize>> {
    let mut seen = vec![false; neighbors.len()];
    let mut parts = Vec::new();
    for start in 0..neighbors.len() {
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        let (mut part, mut next) = (vec![start], 0);
        while next < part.len() {
            for &(to, _) in &neighbors[part[next]] {
                if !std::mem::replace(&mut seen[to], true) {
                    part.push(to);
                }
            }
            next += 1;
        }
        part.sort_unstable();
        parts.push(part);
    }
    parts
}
