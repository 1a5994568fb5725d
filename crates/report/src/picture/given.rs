//! Nodes at the positions that their author gave.

use super::geometry::{Pixels, distance, polar};
use super::graph::{GAP, Graph, neighbors};

/// Positions in units of a map (degrees, metres) are drawn at most this many times larger.
const SCALE_MAX: f64 = 1e4;

/// Puts nodes at their positions, in pixels from the upper left corner of the drawing. Positions
/// that are too near for the boxes of most nodes are another unit: all are scaled. A node
/// without a position is near its neighbours that have one, or below all.
pub(super) fn place(graph: &Graph, centres: &mut [Pixels]) {
    let known: Vec<usize> = (0..centres.len()).filter(|node| graph.given[*node].is_some()).collect();
    let factor = scale(graph, &known);
    for &node in &known {
        centres[node] = graph.given[node].unwrap_or_default().map(|x| x * factor);
    }
    let neighbors = neighbors(graph);
    let mut placed: Vec<usize> = known;
    let bottom = placed.iter().map(|node| centres[*node][1]).fold(f64::NEG_INFINITY, f64::max);
    let mut waiting: Vec<usize> = (0..centres.len()).filter(|node| graph.given[*node].is_none()).collect();
    while !waiting.is_empty() {
        // The one with most neighbours that have their place.
        let is_near = |node: &usize| neighbors[*node].iter().filter(|(to, _)| placed.contains(to)).count();
        let index = (0..waiting.len()).max_by_key(|i| (is_near(&waiting[*i]), waiting.len() - i));
        let node = waiting.remove(index.unwrap_or_default());
        let near: Vec<Pixels> = neighbors[node]
            .iter()
            .filter(|(to, _)| placed.contains(to))
            .map(|(to, _)| centres[*to])
            .collect();
        let start = match near.len() {
            0 => [0.0, if bottom.is_finite() { bottom + 100.0 } else { 0.0 }],
            count => [0, 1].map(|axis| near.iter().map(|p| p[axis]).sum::<f64>() / count as f64),
        };
        centres[node] = free_place(graph, &placed, centres, node, start);
        placed.push(node);
    }
    move_to_origin(graph.sizes, centres);
}

/// The first place on a spiral around a point where a node overlaps no other.
fn free_place(graph: &Graph, placed: &[usize], centres: &[Pixels], node: usize, start: Pixels) -> Pixels {
    let is_free = |place: Pixels| {
        placed.iter().all(|&other| {
            (0..2).any(|axis| {
                (centres[other][axis] - place[axis]).abs()
                    >= (graph.sizes[other][axis] + graph.sizes[node][axis]) / 2.0 + GAP
            })
        })
    };
    let turn = |step: u32| polar(start, f64::from(step) * 2.4, 12.0 * f64::from(step).sqrt());
    (0..20_000).map(turn).find(|place| is_free(*place)).unwrap_or(start)
}

/// The factor that makes room for the boxes: 1 unless the positions of most nodes are too near.
fn scale(graph: &Graph, known: &[usize]) -> f64 {
    let position = |node: usize| graph.given[node].unwrap_or_default();
    let mut needed: Vec<f64> = Vec::new();
    for &a in known {
        let others = known.iter().filter(|b| position(**b) != position(a));
        let nearest = others.min_by(|b, c| {
            let far = |node: usize| distance(position(node), position(a));
            far(**b).total_cmp(&far(**c))
        });
        let Some(&b) = nearest else { continue };
        let apart = [0, 1].map(|axis| (position(a)[axis] - position(b)[axis]).abs());
        let wanted = [0, 1].map(|axis| (graph.sizes[a][axis] + graph.sizes[b][axis]) / 2.0 + GAP);
        needed.push((0..2).map(|axis| wanted[axis] / apart[axis].max(1e-9)).fold(f64::INFINITY, f64::min));
    }
    needed.sort_by(f64::total_cmp);
    let usual = needed.get(needed.len() / 2).copied().unwrap_or(1.0);
    if usual <= 1.0 { 1.0 } else { needed[needed.len() - 1].min(4.0 * usual).min(SCALE_MAX) }
}

fn move_to_origin(sizes: &[Pixels], centres: &mut [Pixels]) {
    let least = [0, 1].map(|axis| {
        centres.iter().zip(sizes).map(|(c, size)| c[axis] - size[axis] / 2.0).fold(f64::INFINITY, f64::min)
    });
    centres.iter_mut().for_each(|c| *c = [0, 1].map(|axis| c[axis] - least[axis] + GAP));
}
