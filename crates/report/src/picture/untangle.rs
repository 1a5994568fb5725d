//! Less crossings in a drawing by distances: single nodes move to better places.

use super::geometry::{NodeBlock, Pixels, between, distance, is_crossing, polar};
use super::graph::{GAP, Graph, Neighbors};
use std::f64::consts::{FRAC_PI_4, FRAC_PI_6};

/// Larger drawings stay as they are.
const NODES_MAX: usize = 150;
const LINKS_MAX: usize = 400;
const ROUNDS: usize = 4;
/// Rounds in which nodes leave the links that are in front of them.
const CLEARING_ROUNDS: usize = 24;
/// The margin between a node and a link, pixels.
const MARGIN: f64 = 9.0;

/// Moves nodes whose links cross others to places near their neighbours where they cross less.
/// `room` is the half of the room that each node needs.
pub(super) fn untangle(links: &[Vec<(usize, f64)>], room: &[f64], positions: &mut [Pixels]) {
    let pairs = pairs(links);
    if positions.len() > NODES_MAX || pairs.len() > LINKS_MAX {
        return;
    }
    for _ in 0..ROUNDS {
        let mut is_better = false;
        for node in 0..positions.len() {
            let now = crossings(links, &pairs, node, positions[node], positions);
            if now == 0 {
                continue;
            }
            let old = positions[node];
            let is_free = |place: &Pixels| {
                (0..positions.len())
                    .filter(|other| *other != node)
                    .all(|other| distance(positions[other], *place) > room[other] + room[node])
            };
            let cost =
                |place: Pixels| (crossings(links, &pairs, node, place, positions), distance(place, old));
            let found =
                places(links, node, positions).into_iter().filter(is_free).map(|place| (cost(place), place));
            let best = found.min_by(|a, b| a.0.0.cmp(&b.0.0).then(a.0.1.total_cmp(&b.0.1)));
            if let Some(((count, _), place)) = best
                && count < now
            {
                positions[node] = place;
                is_better = true;
            }
        }
        if !is_better {
            return;
        }
    }
}

/// Places that a node may have: around the middle of its neighbours, and beyond each of them.
fn places(links: &[Vec<(usize, f64)>], node: usize, positions: &[Pixels]) -> Vec<Pixels> {
    let near = &links[node];
    let count = near.len().max(1) as f64;
    let middle = [0, 1].map(|axis| near.iter().map(|(to, _)| positions[*to][axis]).sum::<f64>() / count);
    let length = near.iter().map(|(_, length)| *length).sum::<f64>() / count;
    let mut places = vec![middle];
    for ring in [0.4, 0.8, 1.2, 1.8] {
        places.extend((0..12).map(|step| polar(middle, f64::from(step) * FRAC_PI_6, ring * length)));
    }
    for (to, length) in near {
        places.extend((0..8).map(|step| polar(positions[*to], f64::from(step) * FRAC_PI_4, *length)));
    }
    if let [(a, _), (b, _)] = near[..] {
        // The mirror image at the line between two neighbours.
        let (a, b, here) = (positions[a], positions[b], positions[node]);
        let along = [b[0] - a[0], b[1] - a[1]];
        let square = (along[0] * along[0] + along[1] * along[1]).max(1e-9);
        let share = ((here[0] - a[0]) * along[0] + (here[1] - a[1]) * along[1]) / square;
        places.push(between(here, between(a, b, share), 2.0));
    }
    places
}

/// How many links cross those of a node if it has this place.
fn crossings(
    links: &[Vec<(usize, f64)>],
    pairs: &[[usize; 2]],
    node: usize,
    place: Pixels,
    positions: &[Pixels],
) -> usize {
    let of = |to: usize| {
        let line = [place, positions[to]];
        let others = pairs.iter().filter(|[a, b]| ![node, to].iter().any(|end| end == a || end == b));
        others.filter(|[a, b]| is_crossing(line, [positions[*a], positions[*b]])).count()
    };
    links[node].iter().map(|(to, _)| of(*to)).sum()
}

fn pairs(links: &[Vec<(usize, f64)>]) -> Vec<[usize; 2]> {
    let of = |(node, list): (usize, &Vec<(usize, f64)>)| {
        list.iter().filter(|(to, _)| *to > node).map(|(to, _)| [node, *to]).collect::<Vec<_>>()
    };
    links.iter().enumerate().flat_map(of).collect()
}

/// Moves nodes of a component off the straight links that are in front of them, as long as that
/// helps; the last of them are left to the routes. `apart` separates nodes that overlap.
pub(super) fn clear_links(
    graph: &Graph,
    neighbors: &Neighbors,
    part: &[usize],
    centres: &mut [Pixels],
    apart: impl Fn(&mut [Pixels]),
) {
    let links: Vec<[usize; 2]> = part
        .iter()
        .flat_map(|node| neighbors[*node].iter().filter(|(to, _)| to > node).map(|(to, _)| [*node, *to]))
        .collect();
    if part.len() > NODES_MAX || links.len() > LINKS_MAX {
        return;
    }
    let mut best = (hidden(graph, part, &links, centres).len(), centres.to_vec());
    for _ in 0..CLEARING_ROUNDS {
        let found = hidden(graph, part, &links, centres);
        if found.is_empty() {
            break;
        }
        for (node, [a, b]) in found {
            step_aside(graph.sizes[node], centres, node, [a, b]);
        }
        apart(centres);
        let left = hidden(graph, part, &links, centres).len();
        if left < best.0 {
            best = (left, centres.to_vec());
        }
    }
    centres.copy_from_slice(&best.1);
}

/// Each node with a link in front of it.
fn hidden(
    graph: &Graph,
    part: &[usize],
    links: &[[usize; 2]],
    centres: &[Pixels],
) -> Vec<(usize, [usize; 2])> {
    let mut found = Vec::new();
    for &[a, b] in links {
        for &node in part.iter().filter(|node| **node != a && **node != b) {
            let block = NodeBlock { centre: centres[node], size: graph.sizes[node] };
            if block.is_hit(centres[a], centres[b], MARGIN) {
                found.push((node, [a, b]));
            }
        }
    }
    found
}

/// Moves a node across a link until it does not touch it, and the link a little the other way.
fn step_aside(size: Pixels, centres: &mut [Pixels], node: usize, [a, b]: [usize; 2]) {
    let length = distance(centres[a], centres[b]).max(1e-9);
    let across = [(centres[a][1] - centres[b][1]) / length, (centres[b][0] - centres[a][0]) / length];
    let far: f64 = (0..2).map(|axis| across[axis] * (centres[node][axis] - centres[a][axis])).sum();
    let side = if far < 0.0 { -1.0 } else { 1.0 };
    let reach = (0..2).map(|axis| across[axis].abs() * (size[axis] / 2.0 + MARGIN)).sum::<f64>();
    let missing = reach - far.abs() + GAP / 8.0;
    if missing > 0.0 {
        for axis in 0..2 {
            centres[node][axis] += 0.7 * side * missing * across[axis];
            for end in [a, b] {
                centres[end][axis] -= 0.3 * side * missing * across[axis];
            }
        }
    }
}
