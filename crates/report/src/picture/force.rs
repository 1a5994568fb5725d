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
use super::graph::{GAP, Graph, Neighbors};
use super::untangle::{clear_links, untangle};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::f64::consts::{PI, TAU};

/// Up to this many nodes all distances count.
const DENSE_MAX: usize = 500;
const PIVOTS: usize = 60;
/// Steps of all sweeps together: a large graph takes at most some tenths of a second.
const STEPS: usize = 8_000_000;
const SWEEPS_MAX: usize = 1000;
/// Sweeps each time that nodes are added, and how many nodes decide the directions.
const GROWING_SWEEPS: usize = 40;
const GROWING_SWEEPS_LARGE: usize = 8;
const ORIENTED: usize = 16;
/// Sweeps end when no node moves farther, pixels.
const SETTLED: f64 = 0.02;
/// Half of the angle around a link of a hub that stays free of leaves.
const FREE_ANGLE: f64 = 0.5;
/// Leaves on an arc that is a whole circle, at most.
const ARC_MAX: f64 = 36.0;
/// A little less than half of the circle, radians.
const HALF: f64 = 2.8;
/// A shape longer than this many times its width lies along the horizontal axis.
const LONG: f64 = 1.15;
/// An upright shape longer than this many times its width is laid down.
const UPRIGHT: f64 = 1.6;
const PUSHES: usize = 400;
/// The least area of a drawing, as a multiple of the area of its nodes.
const ROOM: f64 = 2.5;

/// Places the nodes of a component.
pub(super) fn place_component(graph: &Graph, neighbors: &Neighbors, part: &[usize], centres: &mut [Pixels]) {
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
    let mut positions = majorized(&links, &core);
    lay_down(&links, &core, &mut positions);
    let room = |(node, fan): (&usize, &Fan)| {
        graph.sizes[*node][0].max(graph.sizes[*node][1]) / 2.0 + GAP / 2.0 + 0.5 * fan.reach
    };
    let rooms: Vec<f64> = core.iter().zip(&fans).map(room).collect();
    untangle(&links, &rooms, &mut positions);
    for (node, position) in core.iter().zip(&positions) {
        centres[*node] = *position;
    }
    for (i, fan) in fans.iter().enumerate() {
        let directions: Vec<f64> =
            links[i].iter().map(|(to, _)| angle(positions[i], positions[*to])).collect();
        fan.place(&directions, positions[i], centres);
    }
    push_apart(graph.sizes, part, centres);
    clear_links(graph, neighbors, part, centres, |centres| push_apart(graph.sizes, part, centres));
}

/// The leaves of a hub, on arcs around it.
struct Fan {
    leaves: Vec<usize>,
    /// The larger side of the largest leaf.
    side: f64,
    /// The least radius of the innermost arc.
    radius: f64,
    /// How far the leaves extend from the hub.
    reach: f64,
}

/// Arcs of equally many leaves.
struct Arcs {
    count: usize,
    leaves: usize,
    /// The radius of the innermost arc.
    radius: f64,
}

impl Fan {
    fn new(sizes: &[Pixels], neighbors: &Neighbors, leaves: Vec<usize>) -> Fan {
        let side = leaves.iter().map(|leaf| sizes[*leaf][0].max(sizes[*leaf][1])).fold(0.0, f64::max);
        let radius = leaves.iter().map(|leaf| neighbors[*leaf][0].1).fold(0.0, f64::max);
        let mut fan = Fan { leaves, side, radius, reach: 0.0 };
        if !fan.leaves.is_empty() {
            let arcs = fan.arcs(TAU - 2.0 * FREE_ANGLE);
            fan.reach = arcs.radius + arcs.count as f64 * (side + GAP);
        }
        fan
    }

    /// The length that the other links of the hub have in addition. A few leaves find room beside
    /// them.
    fn room(&self) -> f64 {
        0.7 * self.reach * (self.leaves.len() as f64 / 8.0).min(1.0)
    }

    /// Returns the arcs if they have this angle. Links to outer leaves pass between inner ones.
    fn arcs(&self, open: f64) -> Arcs {
        let most = ARC_MAX * open / TAU;
        let count = (self.leaves.len() as f64 / most).ceil().max(1.0);
        let leaves = (self.leaves.len() as f64 / count).ceil();
        let pitch = (self.side + GAP).max(count * (self.side / 2.0 + GAP / 2.0));
        let radius = self.radius.max(leaves * pitch / open);
        Arcs { count: count as usize, leaves: leaves as usize, radius }
    }

    /// Puts the leaves into the widest angle between the other links of the hub, which have these
    /// directions.
    fn place(&self, directions: &[f64], hub: Pixels, centres: &mut [Pixels]) {
        let (from, free) = widest_gap(directions);
        let is_circle = directions.is_empty();
        // A fan is no wider than its leaves need, or a little less than half of the circle.
        let needed = 1.15 * (self.side + GAP) * self.leaves.len() as f64 / self.radius.max(1.0);
        let open = if is_circle { free } else { free.min(needed.max(HALF)) };
        let from = from + (free - open) / 2.0;
        // Leaves are in the order of reading: from the top.
        let is_left = libm::cos(from + open / 2.0) < -1e-6 && !is_circle;
        let arcs = self.arcs(open);
        for (number, leaf) in self.leaves.iter().enumerate() {
            let (slot, arc) = (number / arcs.count, number % arcs.count);
            // Arcs begin later in turn, so that links pass between inner leaves.
            let half = if is_circle { 0.0 } else { 0.5 };
            let place = slot as f64 + (arc as f64 + half) / arcs.count as f64;
            let share = place / arcs.leaves as f64;
            let share = if is_left { 1.0 - share } else { share };
            let radius = arcs.radius + arc as f64 * (self.side + GAP);
            centres[*leaf] = polar(hub, from + open * share, radius);
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

/// Places nodes so that their distances approach the lengths of shortest paths.
fn majorized(links: &[Vec<(usize, f64)>], order: &[usize]) -> Vec<Pixels> {
    let is_dense = links.len() <= DENSE_MAX;
    let pulls = if is_dense { all_pulls(links) } else { pulls_to_pivots(links) };
    let mut positions = if is_dense { grown(&pulls, links, order) } else { radial(links) };
    let steps: usize = pulls.iter().map(Vec::len).sum();
    settle(&pulls, &mut positions, (STEPS / steps.max(1)).clamp(20, SWEEPS_MAX));
    positions
}

/// Places nodes in their order: half as many again at a time, each near those that are placed. So
/// a node more finds the others where they are without it.
fn grown(pulls: &[Vec<Pull>], links: &[Vec<(usize, f64)>], order: &[usize]) -> Vec<Pixels> {
    let mut positions: Vec<Pixels> = Vec::with_capacity(pulls.len());
    let mut is_oriented = false;
    while positions.len() < pulls.len() {
        let next = (positions.len() * 3 / 2).clamp(positions.len() + 1, pulls.len());
        let first = positions.len();
        for (node, pulls) in pulls.iter().enumerate().take(next).skip(first) {
            let place = beside_placed(pulls, &positions, node);
            positions.push(place);
        }
        let is_large = pulls.len() > DENSE_MAX / 3;
        settle(pulls, &mut positions, if is_large { GROWING_SWEEPS_LARGE } else { GROWING_SWEEPS });
        if !is_oriented && next >= ORIENTED.min(pulls.len()) {
            orient(links, order, &mut positions);
            is_oriented = true;
        }
    }
    positions
}

/// A place for a node: outward of the nearest node that is placed, then where these pull it.
fn beside_placed(pulls: &[Pull], positions: &[Pixels], node: usize) -> Pixels {
    let count = positions.len().max(1) as f64;
    let middle = [0, 1].map(|axis| positions.iter().map(|p| p[axis]).sum::<f64>() / count);
    let placed = || pulls.iter().filter(|(to, _, _)| *to < positions.len());
    let Some((nearest, far, _)) = placed().min_by(|a, b| a.1.total_cmp(&b.1)) else { return [0.0; 2] };
    let outward = match positions.len() {
        1 => 0.0,
        _ => angle(middle, positions[*nearest]) + 0.02 * libm::sin(node as f64 * 2.4),
    };
    let mut place = polar(positions[*nearest], outward, *far);
    for _ in 0..GROWING_SWEEPS {
        place = pulled(place, placed(), positions);
    }
    place
}

/// Where a node is pulled to.
fn pulled<'p>(old: Pixels, pulls: impl Iterator<Item = &'p Pull>, positions: &[Pixels]) -> Pixels {
    let (mut sum, mut weights) = ([0.0; 2], 0.0);
    for &(to, wanted, weight) in pulls {
        let other = positions[to];
        let apart = [old[0] - other[0], old[1] - other[1]];
        let length = (apart[0] * apart[0] + apart[1] * apart[1]).sqrt().max(1e-3);
        for axis in 0..2 {
            sum[axis] += weight * (other[axis] + wanted * apart[axis] / length);
        }
        weights += weight;
    }
    if weights > 0.0 { sum.map(|x| x / weights) } else { old }
}

/// Moves the nodes that are placed until they do not move, `sweeps` times at most.
fn settle(pulls: &[Vec<Pull>], positions: &mut [Pixels], sweeps: usize) {
    let count = positions.len();
    for _ in 0..sweeps {
        let mut farthest: f64 = 0.0;
        for node in 0..count {
            let old = positions[node];
            // The pulls are in the order of their nodes, or all nodes are placed.
            let placed = pulls[node].iter().filter(|(to, _, _)| *to < count);
            let new = pulled(old, placed, positions);
            farthest = farthest.max((new[0] - old[0]).abs()).max((new[1] - old[1]).abs());
            positions[node] = new;
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
fn orient(links: &[Vec<(usize, f64)>], order: &[usize], positions: &mut [Pixels]) {
    let Some((mut turn, long, wide)) = axis(positions) else { return };
    let count = positions.len() as f64;
    if long <= LONG * LONG * wide.max(0.0) {
        let to = links[0].iter().map(|(to, _)| *to).find(|to| *to < positions.len());
        turn = angle(positions[0], positions[to.unwrap_or(1)]);
    }
    rotate(positions, turn);
    for axis in 0..2 {
        let middle = order[..positions.len()].iter().sum::<usize>() as f64 / count;
        let sides = positions.iter().zip(order);
        let side: f64 = sides.map(|(p, number)| (*number as f64 - middle) * p[axis]).sum();
        // Where that decides nothing, the first node does.
        let is_even = side.abs() < 1e-3 * count * (long / count).sqrt();
        if if is_even { positions[0][axis] > 0.0 } else { side < 0.0 } {
            positions.iter_mut().for_each(|p| p[axis] = -p[axis]);
        }
    }
}

/// Turns a drawing whose nodes are in place as little as needed: a long one lies along the
/// horizontal axis, and one that is high is turned by a quarter.
fn lay_down(links: &[Vec<(usize, f64)>], order: &[usize], positions: &mut [Pixels]) {
    if links.len() > DENSE_MAX {
        return orient(links, order, positions);
    }
    let Some((turn, long, wide)) = axis(positions) else { return };
    let ratio = (long / wide.max(1e-9)).sqrt();
    // A direction and its opposite are one: of an upright shape the upper end is at the left.
    let turn = if turn < -PI / 4.0 { turn + PI } else { turn };
    let quarter = if turn > PI / 4.0 && ratio > UPRIGHT { PI / 2.0 } else { 0.0 };
    // A shape that is hardly longer than wide keeps its direction.
    let share = ((ratio - 1.8) / 1.2).clamp(0.0, 1.0);
    let turn = quarter + share * (turn - quarter);
    rotate(positions, turn);
}

/// The direction of the longer axis of points around their middle, which becomes the origin, and
/// the moments along and across it.
fn axis(positions: &mut [Pixels]) -> Option<(f64, f64, f64)> {
    let count = positions.len() as f64;
    if positions.len() < 2 {
        return None;
    }
    let mean = [0, 1].map(|axis| positions.iter().map(|p| p[axis]).sum::<f64>() / count);
    positions.iter_mut().for_each(|p| *p = [p[0] - mean[0], p[1] - mean[1]]);
    let moment = |i: usize, j: usize| positions.iter().map(|p| p[i] * p[j]).sum::<f64>();
    let (xx, xy, yy) = (moment(0, 0), moment(0, 1), moment(1, 1));
    let spread = (((xx - yy) / 2.0).powi(2) + xy * xy).sqrt();
    let half = f64::midpoint(xx, yy);
    Some((libm::atan2(2.0 * xy, xx - yy) / 2.0, half + spread, half - spread))
}

/// Turns points around the origin so that this direction becomes the horizontal axis.
fn rotate(positions: &mut [Pixels], turn: f64) {
    let (sin, cos) = (libm::sin(turn), libm::cos(turn));
    positions.iter_mut().for_each(|p| *p = [p[0] * cos + p[1] * sin, p[1] * cos - p[0] * sin]);
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
