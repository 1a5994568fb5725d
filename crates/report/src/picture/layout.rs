//! Where the nodes of a picture are: the layout of a graph.
//!
//! 1. Each connected component is laid out alone.
//! 2. Leaves (nodes with one neighbour) are taken off. Each hub keeps room for its leaves.
//! 3. The rest is placed by stress majorization (Gansner, Koren and North 2004): distances in the
//!    plane approach the lengths of shortest paths. It starts from a radial drawing of the
//!    breadth-first tree. Large graphs use shortest paths to a few pivots only (Ortmann, Klimenta
//!    and Brandes 2017).
//! 4. Leaves are put on arcs around their hub, away from its other links.
//! 5. Nodes that overlap are pushed apart, and the components are packed into rows.
//!
//! No step is random: a graph has one layout, on every machine. A node more moves the others
//! little.

use super::geometry::{Pixels, angle, polar};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::f64::consts::{PI, TAU};

/// Between the boxes of two nodes, pixels.
const GAP: f64 = 16.0;
/// The free length of a link between two nodes, pixels.
const FREE: f64 = 64.0;
/// Up to this many nodes all distances count.
const DENSE_MAX: usize = 500;
const PIVOTS: usize = 60;
/// Steps of all sweeps together: a large graph takes at most some tenths of a second.
const STEPS: usize = 20_000_000;
const SWEEPS_MAX: usize = 1000;
/// Sweeps end when no node moves farther, pixels.
const SETTLED: f64 = 0.02;
/// Half of the angle around a link of a hub that stays free of leaves.
const FREE_ANGLE: f64 = 0.5;
/// A little less than half of the circle, radians.
const HALF: f64 = 2.8;
/// A shape longer than this many times its width lies along the horizontal axis.
const LONG: f64 = 1.15;
const PUSHES: usize = 400;
/// The least area of a drawing, as a multiple of the area of its nodes.
const ROOM: f64 = 2.5;

/// A graph to lay out.
pub(super) struct Graph<'g> {
    /// Width and height of each node, pixels.
    pub(super) sizes: &'g [Pixels],
    /// Pairs of nodes, and the room that their label needs, pixels.
    pub(super) edges: &'g [([usize; 2], f64)],
}

/// Returns the centre of each node; the upper left corner of the drawing is the origin.
pub(super) fn layout(graph: &Graph) -> Vec<Pixels> {
    let neighbors = neighbors(graph);
    let mut centres = vec![[0.0; 2]; graph.sizes.len()];
    let mut parts = components(&neighbors);
    parts.sort_by_key(|part| (Reverse(part.len()), part[0]));
    for part in &parts {
        place_component(graph, &neighbors, part, &mut centres);
    }
    pack(graph.sizes, &parts, &mut centres);
    centres
}

/// The neighbours of each node, each once, in the order of their numbers, with the length that a
/// link to them should have.
fn neighbors(graph: &Graph) -> Vec<Vec<(usize, f64)>> {
    let mut all: Vec<Vec<(usize, f64)>> = vec![Vec::new(); graph.sizes.len()];
    for &([a, b], label) in graph.edges.iter().filter(|([a, b], _)| a != b) {
        let extent = |node: usize| match graph.sizes[node] {
            // A label may lie along a horizontal link, between the sides of its nodes.
            [width, _] if label > 0.0 => width / 2.0,
            [width, height] => (width + height) / 4.0,
        };
        let length = extent(a) + extent(b) + FREE.max(label + GAP);
        all[a].push((b, length));
        all[b].push((a, length));
    }
    for list in &mut all {
        list.sort_by(|x, y| x.0.cmp(&y.0).then(y.1.total_cmp(&x.1)));
        list.dedup_by_key(|(node, _)| *node);
    }
    all
}

fn components(neighbors: &[Vec<(usize, f64)>]) -> Vec<Vec<usize>> {
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

fn place_component(graph: &Graph, neighbors: &[Vec<(usize, f64)>], part: &[usize], centres: &mut [Pixels]) {
    let is_core = |node: usize| neighbors[node].len() != 1 || (part.len() == 2 && node == part[1]);
    let core: Vec<usize> = part.iter().copied().filter(|node| is_core(*node)).collect();
    let leaves_of = |hub: usize| -> Vec<usize> {
        neighbors[hub].iter().map(|(node, _)| *node).filter(|node| !is_core(*node)).collect()
    };
    let fans: Vec<Fan> = core.iter().map(|&hub| Fan::new(graph.sizes, neighbors, leaves_of(hub))).collect();
    let within: BTreeMap<usize, usize> = core.iter().enumerate().map(|(i, node)| (*node, i)).collect();
    let links: Vec<Vec<(usize, f64)>> = core
        .iter()
        .zip(&fans)
        .map(|(node, fan)| {
            let to_core =
                neighbors[*node].iter().filter_map(|(to, length)| Some((*within.get(to)?, *length)));
            to_core.map(|(to, length)| (to, length + fan.room() + fans[to].room())).collect()
        })
        .collect();
    let mut positions = radial(&links);
    majorize(&links, &mut positions);
    orient(&links, &mut positions);
    for (node, position) in core.iter().zip(&positions) {
        centres[*node] = *position;
    }
    for (i, fan) in fans.iter().enumerate() {
        let directions: Vec<f64> =
            links[i].iter().map(|(to, _)| angle(positions[i], positions[*to])).collect();
        fan.place(&directions, positions[i], centres);
    }
    push_apart(graph.sizes, part, centres);
}

/// The leaves of a hub, on arcs around it.
struct Fan {
    leaves: Vec<usize>,
    /// The distance of two leaves on an arc and of two arcs.
    pitch: f64,
    /// The radius of the innermost arc.
    radius: f64,
    /// How far the leaves extend from the hub.
    reach: f64,
}

impl Fan {
    fn new(sizes: &[Pixels], neighbors: &[Vec<(usize, f64)>], leaves: Vec<usize>) -> Fan {
        let pitch = leaves.iter().map(|leaf| sizes[*leaf][0].max(sizes[*leaf][1]) + GAP).fold(0.0, f64::max);
        let radius = leaves.iter().map(|leaf| neighbors[*leaf][0].1).fold(0.0, f64::max);
        let mut fan = Fan { leaves, pitch, radius, reach: 0.0 };
        if !fan.leaves.is_empty() {
            let arcs = fan.arcs(TAU - 2.0 * FREE_ANGLE).len();
            fan.reach = fan.radius + arcs as f64 * pitch;
        }
        fan
    }

    /// The length that the other links of the hub have in addition. A few leaves find room beside
    /// them.
    fn room(&self) -> f64 {
        0.7 * self.reach * (self.leaves.len() as f64 / 8.0).min(1.0)
    }

    /// Returns the number of leaves on each arc, from the inside, if the arcs have this angle.
    fn arcs(&self, open: f64) -> Vec<usize> {
        let (mut left, mut arcs) = (self.leaves.len(), Vec::new());
        while left > 0 {
            let radius = self.radius + arcs.len() as f64 * self.pitch;
            let fit = ((open * radius / self.pitch) as usize).max(1).min(left);
            arcs.push(fit);
            left -= fit;
        }
        arcs
    }

    /// Puts the leaves into the widest angle between the other links of the hub, which have these
    /// directions.
    fn place(&self, directions: &[f64], hub: Pixels, centres: &mut [Pixels]) {
        let (from, free) = widest_gap(directions);
        let is_circle = directions.is_empty();
        // A fan is no wider than its leaves need, or a little less than half of the circle.
        let needed = 1.15 * self.pitch * self.leaves.len() as f64 / self.radius.max(1.0);
        let open = if is_circle { free } else { free.min(needed.max(HALF)) };
        let from = from + (free - open) / 2.0;
        // Leaves are in the order of reading: from the top.
        let is_left = libm::cos(from + open / 2.0) < -1e-6 && !is_circle;
        let mut leaves = self.leaves.iter();
        for (arc, count) in self.arcs(open).into_iter().enumerate() {
            let radius = self.radius + arc as f64 * self.pitch;
            // Arcs begin half a step later in turn, so that links pass between inner leaves.
            let shift = if arc % 2 == 1 { 0.5 } else { 0.0 };
            for (i, leaf) in leaves.by_ref().take(count).enumerate() {
                let place = if is_circle { i as f64 + shift } else { i as f64 + 0.5 };
                let share = place / count as f64;
                let share = if is_left { 1.0 - share } else { share };
                centres[*leaf] = polar(hub, from + open * share, radius);
            }
        }
    }
}

/// Returns where the widest angle between these directions begins and how wide it is. Without
/// directions it is the circle, from the left.
fn widest_gap(directions: &[f64]) -> (f64, f64) {
    let mut sorted = directions.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(&first) = sorted.first() else { return (PI, TAU) };
    let next = sorted.iter().skip(1).copied().chain([first + TAU]);
    let gaps = sorted.iter().zip(next).map(|(from, to)| (*from, to - from));
    // Of two that are equally wide but for rounding, the first.
    let (from, wide) = gaps.fold((first, 0.0), |best, gap| if gap.1 > best.1 + 1e-6 { gap } else { best });
    let margin = FREE_ANGLE.min(wide / 4.0);
    (from + margin, wide - 2.0 * margin)
}

/// Places nodes on circles around the node with most links: the breadth-first tree, where each
/// branch has an angle in proportion to its leaves.
fn radial(links: &[Vec<(usize, f64)>]) -> Vec<Pixels> {
    let Some(root) = (0..links.len()).min_by_key(|node| (Reverse(links[*node].len()), *node)) else {
        return Vec::new();
    };
    let mut parent = vec![usize::MAX; links.len()];
    parent[root] = root;
    let (mut order, mut next) = (vec![root], 0);
    while next < order.len() {
        let node = order[next];
        for &(to, _) in &links[node] {
            if parent[to] == usize::MAX {
                parent[to] = node;
                order.push(to);
            }
        }
        next += 1;
    }
    let mut leaves = vec![0usize; links.len()];
    for &node in order.iter().rev() {
        leaves[node] = leaves[node].max(1);
        if node != root {
            leaves[parent[node]] += leaves[node];
        }
    }
    let distance = distances(links, root);
    // The angle of each branch, and where the next branch below a node begins.
    let mut positions = vec![[0.0; 2]; links.len()];
    let mut wide = vec![TAU; links.len()];
    let mut begin = vec![PI; links.len()];
    let mut used = vec![0.0; links.len()];
    for &node in order.iter().skip(1) {
        let above = parent[node];
        wide[node] = wide[above] * leaves[node] as f64 / leaves[above] as f64;
        begin[node] = begin[above] + used[above];
        used[above] += wide[node];
        positions[node] = polar([0.0; 2], begin[node] + wide[node] / 2.0, distance[node]);
        // Nodes on one line would stay on it: each is moved a little, in a direction of its own.
        positions[node] = polar(positions[node], node as f64 * 2.4, 0.01 * distance[node]);
    }
    positions
}

/// Returns the lengths of the shortest paths from a node (Dijkstra).
fn distances(links: &[Vec<(usize, f64)>], from: usize) -> Vec<f64> {
    let mut shortest = vec![f64::INFINITY; links.len()];
    shortest[from] = 0.0;
    // Lengths in whole units of 1/16 pixel have a total order.
    let mut open = BinaryHeap::from([(Reverse(0u64), from)]);
    while let Some((Reverse(far), node)) = open.pop() {
        if far as f64 / 16.0 > shortest[node] {
            continue;
        }
        for &(to, length) in &links[node] {
            let there = far + (length * 16.0) as u64;
            if (there as f64 / 16.0) < shortest[to] {
                shortest[to] = there as f64 / 16.0;
                open.push((Reverse(there), to));
            }
        }
    }
    shortest
}

/// What pulls a node: another node, the distance wanted, and the weight.
type Pull = (usize, f64, f64);

/// Moves nodes until their distances approach the lengths of shortest paths.
fn majorize(links: &[Vec<(usize, f64)>], positions: &mut [Pixels]) {
    let pulls: Vec<Vec<Pull>> =
        if links.len() <= DENSE_MAX { all_pulls(links) } else { pulls_to_pivots(links) };
    let steps: usize = pulls.iter().map(Vec::len).sum();
    for _ in 0..(STEPS / steps.max(1)).clamp(20, SWEEPS_MAX) {
        let mut farthest: f64 = 0.0;
        for node in 0..positions.len() {
            let old = positions[node];
            let (mut sum, mut weights) = ([0.0; 2], 0.0);
            for &(to, wanted, weight) in &pulls[node] {
                let other = positions[to];
                let apart = [old[0] - other[0], old[1] - other[1]];
                let length = (apart[0] * apart[0] + apart[1] * apart[1]).sqrt().max(1e-3);
                for axis in 0..2 {
                    sum[axis] += weight * (other[axis] + wanted * apart[axis] / length);
                }
                weights += weight;
            }
            if weights > 0.0 {
                positions[node] = sum.map(|x| x / weights);
                let moved = (positions[node][0] - old[0]).abs().max((positions[node][1] - old[1]).abs());
                farthest = farthest.max(moved);
            }
        }
        if farthest < SETTLED {
            break;
        }
    }
}

fn all_pulls(links: &[Vec<(usize, f64)>]) -> Vec<Vec<Pull>> {
    let of = |node: usize| {
        let far = distances(links, node).into_iter().enumerate().filter(|(to, _)| *to != node);
        far.map(|(to, far)| (to, far, 1.0 / (far * far))).collect()
    };
    (0..links.len()).map(of).collect()
}

/// Pulls of the neighbours, and of pivots: each stands for the nodes that are nearest to it.
fn pulls_to_pivots(links: &[Vec<(usize, f64)>]) -> Vec<Vec<Pull>> {
    let mut pulls: Vec<Vec<Pull>> = links
        .iter()
        .map(|list| list.iter().map(|&(to, far)| (to, far, 1.0 / (far * far))).collect())
        .collect();
    let mut nearest = vec![(f64::INFINITY, 0usize); links.len()];
    let mut pivots: Vec<(usize, Vec<f64>)> = Vec::new();
    let mut pivot = 0;
    for number in 0..PIVOTS {
        let far = distances(links, pivot);
        for (node, far) in far.iter().enumerate() {
            if *far < nearest[node].0 {
                nearest[node] = (*far, number);
            }
        }
        pivots.push((pivot, far));
        // The next one is the farthest from all so far.
        let next = (0..links.len())
            .fold(0, |best, node| if nearest[node].0 > nearest[best].0 { node } else { best });
        pivot = next;
    }
    let mut stands_for = vec![0.0; PIVOTS];
    nearest.iter().for_each(|(_, number)| stands_for[*number] += 1.0);
    for (number, (pivot, far)) in pivots.iter().enumerate() {
        for (node, far) in far.iter().enumerate().filter(|(node, _)| node != pivot) {
            if links[node].iter().all(|(to, _)| to != pivot) {
                pulls[node].push((*pivot, *far, stands_for[number] / (far * far)));
            }
        }
    }
    pulls
}

/// Turns a drawing: a long one lies along the horizontal axis; any other has its first link
/// there. The nodes with the smallest numbers are at the left and at the top.
fn orient(links: &[Vec<(usize, f64)>], positions: &mut [Pixels]) {
    let count = positions.len() as f64;
    if positions.len() < 2 {
        return;
    }
    let mean = [0, 1].map(|axis| positions.iter().map(|p| p[axis]).sum::<f64>() / count);
    positions.iter_mut().for_each(|p| *p = [p[0] - mean[0], p[1] - mean[1]]);
    let moment = |i: usize, j: usize| positions.iter().map(|p| p[i] * p[j]).sum::<f64>();
    let (xx, xy, yy) = (moment(0, 0), moment(0, 1), moment(1, 1));
    let spread = (((xx - yy) / 2.0).powi(2) + xy * xy).sqrt();
    let (long, wide) = ((xx + yy) / 2.0 + spread, (xx + yy) / 2.0 - spread);
    let turn = if long > LONG * LONG * wide.max(0.0) {
        libm::atan2(2.0 * xy, xx - yy) / 2.0
    } else {
        let to = links[0].first().map_or(1, |(to, _)| *to);
        angle(positions[0], positions[to])
    };
    let (sin, cos) = (libm::sin(turn), libm::cos(turn));
    positions.iter_mut().for_each(|p| *p = [p[0] * cos + p[1] * sin, p[1] * cos - p[0] * sin]);
    for axis in 0..2 {
        let middle = (count - 1.0) / 2.0;
        let order: f64 = positions.iter().enumerate().map(|(i, p)| (i as f64 - middle) * p[axis]).sum();
        // Where that decides nothing, the first node does.
        let is_even = order.abs() < 1e-3 * count * (long / count).sqrt();
        if if is_even { positions[0][axis] > 0.0 } else { order < 0.0 } {
            positions.iter_mut().for_each(|p| p[axis] = -p[axis]);
        }
    }
}

/// Pushes overlapping nodes of a part apart. If pushing does not end, the drawing grows a little.
fn push_apart(sizes: &[Pixels], part: &[usize], centres: &mut [Pixels]) {
    let cell = part.iter().map(|node| sizes[*node][0].max(sizes[*node][1]) + GAP).fold(1.0, f64::max);
    for round in 0.. {
        let mut grid: BTreeMap<[i64; 2], Vec<usize>> = BTreeMap::new();
        for &node in part {
            grid.entry(centres[node].map(|x| (x / cell).floor() as i64)).or_default().push(node);
        }
        let mut pushes = 0;
        for &node in part {
            let [column, row] = centres[node].map(|x| (x / cell).floor() as i64);
            for place in (-1..=1).flat_map(|x| (-1..=1).map(move |y| [column + x, row + y])) {
                for &other in grid.get(&place).into_iter().flatten().filter(|other| **other > node) {
                    pushes += usize::from(push(sizes, [node, other], centres));
                }
            }
        }
        if pushes == 0 {
            return;
        }
        if round == 0 && pushes > part.len() {
            spread_out(sizes, part, centres);
        }
        if round >= PUSHES {
            part.iter().for_each(|node| centres[*node] = centres[*node].map(|x| x * 1.05));
        }
    }
}

/// Scales a drawing up that has less area than its nodes need.
fn spread_out(sizes: &[Pixels], part: &[usize], centres: &mut [Pixels]) {
    let needed: f64 = part.iter().map(|node| (sizes[*node][0] + GAP) * (sizes[*node][1] + GAP)).sum();
    let count = part.len() as f64;
    let mean = [0, 1].map(|axis| part.iter().map(|node| centres[*node][axis]).sum::<f64>() / count);
    let variance = [0, 1]
        .map(|axis| part.iter().map(|node| (centres[*node][axis] - mean[axis]).powi(2)).sum::<f64>() / count);
    // An ellipse that is filled evenly has half axes of two standard deviations.
    let area = 4.0 * PI * (variance[0] * variance[1]).sqrt();
    if area > 1.0 && area < ROOM * needed {
        let scale = (ROOM * needed / area).sqrt().min(10.0);
        part.iter().for_each(|node| centres[*node] = centres[*node].map(|x| x * scale));
    }
}

/// Pushes two nodes apart in the direction between them. Returns whether they overlapped.
fn push(sizes: &[Pixels], [a, b]: [usize; 2], centres: &mut [Pixels]) -> bool {
    let wanted = [0, 1].map(|axis| (sizes[a][axis] + sizes[b][axis]) / 2.0 + GAP);
    let mut apart = [0, 1].map(|axis| centres[b][axis] - centres[a][axis]);
    if (0..2).any(|axis| apart[axis].abs() >= wanted[axis] - 1e-6) {
        return false;
    }
    if apart[0].abs().max(apart[1].abs()) < 1.0 {
        // At one place: each pair has a direction of its own.
        apart = polar([0.0; 2], b as f64 * 2.4, 1.0);
    }
    let factor = (0..2).map(|axis| wanted[axis] / apart[axis].abs().max(1e-9)).fold(f64::INFINITY, f64::min);
    for axis in 0..2 {
        let middle = (centres[a][axis] + centres[b][axis]) / 2.0;
        let half = apart[axis] * (factor / 2.0 + 1e-4);
        (centres[a][axis], centres[b][axis]) = (middle - half, middle + half);
    }
    true
}

/// Packs components into rows from the upper left corner.
fn pack(sizes: &[Pixels], parts: &[Vec<usize>], centres: &mut [Pixels]) {
    let bounds = |part: &[usize], centres: &[Pixels]| -> [Pixels; 2] {
        let edge = |axis: usize, sign: f64| {
            part.iter().map(move |node| sign * (centres[*node][axis] + sign * sizes[*node][axis] / 2.0))
        };
        let least = [0, 1].map(|axis| -edge(axis, -1.0).fold(f64::NEG_INFINITY, f64::max));
        let most = [0, 1].map(|axis| edge(axis, 1.0).fold(f64::NEG_INFINITY, f64::max));
        [least, most]
    };
    let boxes: Vec<[Pixels; 2]> = parts.iter().map(|part| bounds(part, centres)).collect();
    let extent =
        |[least, most]: &[Pixels; 2]| [most[0] - least[0] + 2.0 * GAP, most[1] - least[1] + 2.0 * GAP];
    let area: f64 = boxes.iter().map(|b| extent(b)[0] * extent(b)[1]).sum();
    let widest = boxes.iter().map(|b| extent(b)[0]).fold(0.0, f64::max);
    let row_width = widest.max((area * 1.6).sqrt());
    let (mut x, mut y, mut row_height) = (0.0, 0.0, 0.0f64);
    for (part, bounds) in parts.iter().zip(&boxes) {
        let [width, height] = extent(bounds);
        if x > 0.0 && x + width > row_width {
            (x, y, row_height) = (0.0, y + row_height, 0.0);
        }
        let shift = [x + GAP - bounds[0][0], y + GAP - bounds[0][1]];
        for &node in part {
            centres[node] = [centres[node][0] + shift[0], centres[node][1] + shift[1]];
        }
        x += width;
        row_height = row_height.max(height);
    }
}
