//! A long chain of nodes, in rows that are read to and fro.

use super::geometry::Pixels;
use super::graph::{GAP, Graph, Neighbors};

/// A chain up to this length is one straight line, pixels.
const LINE_MAX: f64 = 2400.0;
/// The length of a row of a longer one, and the distance of two rows.
const ROW: f64 = 1500.0;
const APART: f64 = 48.0;

/// Places a component that is one chain and too long for a line. Returns whether it is.
pub(super) fn place(graph: &Graph, neighbors: &Neighbors, part: &[usize], centres: &mut [Pixels]) -> bool {
    let Some(chain) = chain(neighbors, part) else { return false };
    let steps: Vec<f64> = chain.windows(2).map(|pair| step(graph, neighbors, [pair[0], pair[1]])).collect();
    if steps.iter().sum::<f64>() <= LINE_MAX {
        return false;
    }
    let height = chain.iter().map(|node| graph.sizes[*node][1]).fold(0.0, f64::max) + APART;
    let [mut x, mut y, mut direction] = [0.0, 0.0, 1.0];
    for (place, &node) in chain.iter().enumerate() {
        centres[node] = [x, y];
        let Some(step) = steps.get(place) else { break };
        let ahead = x + direction * step;
        if (0.0..=ROW).contains(&ahead) {
            x = ahead;
        } else {
            y += height;
            direction = -direction;
        }
    }
    true
}

/// The nodes in their order from the end with the lower number, if they are a chain.
fn chain(neighbors: &Neighbors, part: &[usize]) -> Option<Vec<usize>> {
    let first = part.iter().copied().find(|node| neighbors[*node].len() == 1)?;
    let mut chain = vec![first];
    while let Some(&last) = chain.last() {
        let before = chain.len().checked_sub(2).map(|place| chain[place]);
        let next: Vec<usize> =
            neighbors[last].iter().map(|(to, _)| *to).filter(|to| Some(*to) != before).collect();
        match next[..] {
            [] => break,
            [next] => chain.push(next),
            _ => return None,
        }
    }
    (chain.len() == part.len()).then_some(chain)
}

/// The distance of two nodes of a row.
fn step(graph: &Graph, neighbors: &Neighbors, [a, b]: [usize; 2]) -> f64 {
    let wanted = neighbors[a].iter().find(|(to, _)| *to == b).map_or(0.0, |(_, length)| *length);
    wanted.max((graph.sizes[a][0] + graph.sizes[b][0]) / 2.0 + GAP)
}
