//! A component in layers (Sugiyama, Tagawa and Toda 1981): hosts lowest, spines above.
//!
//! 1. The layer of a node is the length of its shortest path to a host. Without hosts, the nodes
//!    with one link, or with the fewest, are the lowest.
//! 2. Nodes of a layer are ordered by the means of their neighbours, then by exchanging two that
//!    are side by side, as long as links cross less. The first order is that of the description.
//! 3. Each node is as near to the mean of its neighbours as its layer has room.
//!
//! Links between two layers leave a node at its bottom and reach one at its top, so that no box is
//! in between.

use super::geometry::{NodeBlock, Pixels};
use super::graph::{GAP, Graph, Neighbors};
use std::collections::BTreeMap;

const SWEEPS: usize = 17;
/// Layers with more nodes are ordered by means only.
const EXCHANGE_MAX: usize = 120;
/// Hosts of one node are put below each other in drawings that would be wider, pixels.
const WIDE: f64 = 2000.0;
/// The distance of two layers, pixels: at least, at most.
const APART: [f64; 2] = [64.0, 150.0];
/// Nodes of a narrow layer are at most this far apart.
const SPREAD: f64 = 200.0;
/// The share of links within a layer, and of nodes below the top without a link upward, that a
/// component in layers may have.
const WITHIN_MAX: f64 = 0.15;
const ENDS_MAX: f64 = 0.1;
/// The share of nodes between the lowest and the highest layer that have two links upward.
const REDUNDANT_MIN: f64 = 0.45;

/// The layer of a node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Level {
    rank: usize,
    /// Half of the height of the layer.
    half: f64,
}

/// A component with a rank for each node.
pub(super) struct Layers<'g> {
    neighbors: &'g Neighbors,
    part: &'g [usize],
    ranks: BTreeMap<usize, usize>,
    /// Whether the lowest layer is of hosts or of nodes with one link.
    has_leaves: bool,
    /// The room of the longest label.
    room: f64,
    /// Whether the component is built in these layers.
    pub(super) is_natural: bool,
}

impl<'g> Layers<'g> {
    /// Finds the layers of a component. None if it is a single node.
    pub(super) fn of(graph: &Graph, neighbors: &'g Neighbors, part: &'g [usize]) -> Option<Layers<'g>> {
        let all = |is_lowest: &dyn Fn(usize) -> bool| -> Vec<usize> {
            part.iter().copied().filter(|node| is_lowest(*node)).collect()
        };
        let fewest = part.iter().map(|node| neighbors[*node].len()).min()?;
        let room = graph.edges.iter().filter(|(ends, _)| part.binary_search(&ends[0]).is_ok());
        let room = room.map(|(_, room)| *room).fold(0.0, f64::max);
        let starts = [
            (all(&|node| graph.hosts[node] && neighbors[node].len() <= 2), true),
            (all(&|node| neighbors[node].len() == 1), true),
            (all(&|node| fewest > 1 && neighbors[node].len() == fewest), false),
            (vec![part[0]], true),
        ];
        let found = starts.into_iter().filter(|(start, _)| !start.is_empty() && start.len() < part.len());
        let found = found.map(|(start, has_leaves)| {
            let ranks = ranks(neighbors, &start);
            Layers { neighbors, part, ranks, has_leaves, room, is_natural: false }
        });
        let mut found: Vec<Layers> = found.collect();
        let natural = found.iter().position(Layers::are_natural);
        let fewest = || (0..found.len()).min_by(|a, b| found[*a].within().total_cmp(&found[*b].within()));
        let best = natural.or_else(fewest)?;
        let mut best = found.swap_remove(best);
        best.is_natural = natural.is_some();
        Some(if best.is_natural { best.topped() } else { best })
    }

    fn height(&self) -> usize {
        self.ranks.values().copied().max().unwrap_or_default()
    }

    /// The neighbours of a node that are above it.
    fn above(&self, node: usize) -> impl Iterator<Item = usize> {
        let rank = self.ranks[&node];
        self.neighbors[node].iter().map(|(to, _)| *to).filter(move |to| self.ranks[to] > rank)
    }

    /// The share of links within a layer.
    fn within(&self) -> f64 {
        let (mut within, mut all) = (0, 0);
        for node in self.part {
            all += self.neighbors[*node].len();
            let is_within = |(to, _): &&(usize, f64)| self.ranks[to] == self.ranks[node];
            within += self.neighbors[*node].iter().filter(is_within).count();
        }
        within as f64 / all.max(1) as f64
    }

    /// Whether the component is built in layers: a fat tree, a Clos network, a tree whose leaves
    /// are all as deep.
    fn are_natural(&self) -> bool {
        let height = self.top();
        if height + usize::from(!self.has_leaves) < 2 || self.within() > WITHIN_MAX {
            return false;
        }
        let lowest = usize::from(self.has_leaves);
        let middle = self.part.iter().filter(|node| (lowest..height).contains(&self.ranks[*node]));
        let above: Vec<usize> = middle.map(|node| self.above(*node).count()).collect();
        let share = |is_one: &dyn Fn(usize) -> bool| {
            above.iter().filter(|count| is_one(**count)).count() as f64 / above.len().max(1) as f64
        };
        if share(&|count| count == 0) > ENDS_MAX {
            return false;
        }
        let inner = self.part.iter().filter(|node| self.ranks[*node] > 0).count();
        // A tree that hardly branches is a line.
        let branches = self.has_leaves && (self.part.len() - 1) as f64 >= 1.9 * inner as f64;
        match self.is_tree() {
            true => branches && self.count(height) == 1 && share(&|count| count == 1) > 0.99,
            false => self.count(height) > 1 && share(&|count| count > 1) >= REDUNDANT_MIN,
        }
    }

    fn is_tree(&self) -> bool {
        let links: usize = self.part.iter().map(|node| self.neighbors[*node].len()).sum();
        links / 2 + 1 == self.part.len()
    }

    /// How many nodes have a rank.
    fn count(&self, rank: usize) -> usize {
        self.ranks.values().filter(|other| **other == rank).count()
    }

    /// The highest layer. A single node above several of a network with loops, such as the router
    /// to the outside, is beside them: it makes no layer of its own.
    fn top(&self) -> usize {
        let mut top = self.height();
        while top > 1 && self.count(top) == 1 && !self.is_tree() {
            top -= 1;
        }
        top
    }

    /// The same layers without those above the top.
    fn topped(mut self) -> Layers<'g> {
        let top = self.top();
        self.ranks.values_mut().for_each(|rank| *rank = (*rank).min(top));
        self
    }

    /// Places the nodes, and tells their layers.
    pub(super) fn place(&self, sizes: &[Pixels], centres: &mut [Pixels], levels: &mut [Option<Level>]) {
        let mut rows = LayerRows::new(self, sizes);
        rows.order();
        let x = rows.spread();
        let widest = rows.width();
        let apart = (APART[0] + 0.05 * widest).max(self.room + GAP).min(APART[1]);
        let mut y = 0.0;
        for rank in (0..rows.rows.len()).rev() {
            let height = rows.rows[rank].iter().map(|unit| rows.units[*unit].size[1]).fold(0.0, f64::max);
            let stacked = rows.rows[rank].iter().any(|unit| rows.units[*unit].nodes.len() > 1);
            for &unit in &rows.rows[rank] {
                let unit_x = x[unit];
                let unit = &rows.units[unit];
                let top = if stacked { y } else { y + (height - unit.size[1]) / 2.0 };
                for (index, &node) in unit.nodes.iter().enumerate() {
                    centres[node] = unit.place(index, [unit_x, top]);
                    let half = if stacked { sizes[node][1] / 2.0 } else { height / 2.0 };
                    levels[node] = (index < unit.columns).then_some(Level { rank, half });
                }
            }
            y += height + apart;
        }
    }
}

/// The length of the shortest path to one of some nodes, for each node that they reach.
fn ranks(neighbors: &Neighbors, start: &[usize]) -> BTreeMap<usize, usize> {
    let mut ranks: BTreeMap<usize, usize> = start.iter().map(|node| (*node, 0)).collect();
    let (mut order, mut next) = (start.to_vec(), 0);
    while next < order.len() {
        let node = order[next];
        for (to, _) in &neighbors[node] {
            if !ranks.contains_key(to) {
                ranks.insert(*to, ranks[&node] + 1);
                order.push(*to);
            }
        }
        next += 1;
    }
    ranks
}

/// The bends of a link between two layers: at the bottom of the upper node and at the top of the
/// lower one. `aside` moves a link beside others of the same nodes.
pub(super) fn between_layers(
    ends: [usize; 2],
    aside: f64,
    blocks: &[NodeBlock],
    levels: &[Option<Level>],
) -> Vec<Pixels> {
    let [Some(a), Some(b)] = ends.map(|node| levels[node]) else { return Vec::new() };
    if a.rank.abs_diff(b.rank) != 1 {
        return Vec::new();
    }
    let bend = |node: usize, level: Level, is_upper: bool| {
        let NodeBlock { centre, size } = blocks[node];
        let most = (size[0] / 2.0 - 6.0).max(0.0);
        let side = if is_upper { 1.0 } else { -1.0 };
        [centre[0] + aside.clamp(-most, most), centre[1] + side * level.half]
    };
    let is_upper = a.rank > b.rank;
    vec![bend(ends[0], a, is_upper), bend(ends[1], b, !is_upper)]
}

/// A node of a layer, or the leaves of one node together.
struct LayerUnit {
    nodes: Vec<usize>,
    columns: usize,
    /// The width and height of a place in it.
    pitch: Pixels,
    size: Pixels,
    /// Units of the next lower and the next higher layer to which it has links.
    links: [Vec<usize>; 2],
}

impl LayerUnit {
    fn new(nodes: Vec<usize>, sizes: &[Pixels], columns: usize) -> LayerUnit {
        let pitch = [0, 1].map(|axis| nodes.iter().map(|node| sizes[*node][axis]).fold(0.0, f64::max) + GAP);
        let lines = nodes.len().div_ceil(columns);
        let size = [columns as f64 * pitch[0] - GAP, lines as f64 * pitch[1] - GAP];
        LayerUnit { nodes, columns, pitch, size, links: [Vec::new(), Vec::new()] }
    }

    /// The centre of one of its nodes, if its upper side has this middle.
    fn place(&self, index: usize, [x, top]: Pixels) -> Pixels {
        let (column, line) = (index % self.columns, index / self.columns);
        let left = x - self.size[0] / 2.0;
        [
            left + column as f64 * self.pitch[0] + (self.pitch[0] - GAP) / 2.0,
            top + line as f64 * self.pitch[1] + (self.pitch[1] - GAP) / 2.0,
        ]
    }
}

/// The layers from the lowest on, each with its units from the left.
struct LayerRows {
    units: Vec<LayerUnit>,
    rows: Vec<Vec<usize>>,
    /// The place of each unit in its row.
    index: Vec<usize>,
}

impl LayerRows {
    fn new(layers: &Layers, sizes: &[Pixels]) -> LayerRows {
        // Leaves of one node are a unit.
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for node in layers.part.iter().filter(|node| layers.ranks[*node] == 0) {
            if let [(hub, _)] = layers.neighbors[*node][..] {
                groups.entry(hub).or_default().push(*node);
            }
        }
        let width: f64 = layers
            .part
            .iter()
            .filter(|node| layers.ranks[*node] == 0)
            .map(|node| sizes[*node][0] + GAP)
            .sum();
        let is_wide = width > WIDE;
        let mut rows =
            LayerRows { units: Vec::new(), rows: vec![Vec::new(); layers.height() + 1], index: Vec::new() };
        let mut unit_of: BTreeMap<usize, usize> = BTreeMap::new();
        for &node in layers.part {
            if unit_of.contains_key(&node) {
                continue;
            }
            let group = match layers.neighbors[node][..] {
                [(hub, _)] if layers.ranks[&node] == 0 => groups.remove(&hub).unwrap_or(vec![node]),
                _ => vec![node],
            };
            unit_of.extend(group.iter().map(|node| (*node, rows.units.len())));
            let columns = match group.len() {
                count if is_wide && count > 2 => (count as f64 / 4.0).sqrt().ceil() as usize,
                count => count,
            };
            rows.rows[layers.ranks[&node]].push(rows.units.len());
            rows.units.push(LayerUnit::new(group, sizes, columns));
        }
        for (&node, &unit) in &unit_of {
            for (to, _) in &layers.neighbors[node] {
                let (here, there) = (layers.ranks[&node], layers.ranks[to]);
                if here != there {
                    rows.units[unit].links[usize::from(there > here)].push(unit_of[to]);
                }
            }
        }
        rows.index = vec![0; rows.units.len()];
        (0..rows.rows.len()).for_each(|rank| rows.number(rank));
        rows
    }

    fn number(&mut self, rank: usize) {
        for (place, unit) in self.rows[rank].iter().enumerate() {
            self.index[*unit] = place;
        }
    }

    /// Orders the units of each row so that few links cross.
    fn order(&mut self) {
        let mut best = (self.crossings(), self.rows.clone());
        for sweep in 0..SWEEPS {
            let count = self.rows.len();
            for step in 1..count {
                let (rank, side) = if sweep % 2 == 0 { (step, 0) } else { (count - 1 - step, 1) };
                self.order_by_means(rank, side);
            }
            if self.rows.iter().all(|row| row.len() <= EXCHANGE_MAX) {
                (0..count).for_each(|rank| self.exchange(rank));
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.rows.clone());
            }
        }
        self.rows = best.1;
        (0..self.rows.len()).for_each(|rank| self.number(rank));
    }

    fn order_by_means(&mut self, rank: usize, side: usize) {
        let mean = |unit: &usize| {
            let links = &self.units[*unit].links[side];
            let sum: usize = links.iter().map(|to| self.index[*to]).sum();
            (!links.is_empty()).then(|| sum as f64 / links.len() as f64)
        };
        let means: Vec<Option<f64>> = self.rows[rank].iter().map(mean).collect();
        // A unit without links on this side stays where it is.
        let mut sorted: Vec<(f64, usize)> = Vec::new();
        let mut fixed: Vec<(usize, usize)> = Vec::new();
        for (place, (unit, mean)) in self.rows[rank].iter().zip(&means).enumerate() {
            match mean {
                Some(mean) => sorted.push((*mean, *unit)),
                None => fixed.push((place, *unit)),
            }
        }
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut row: Vec<usize> = sorted.into_iter().map(|(_, unit)| unit).collect();
        fixed.into_iter().for_each(|(place, unit)| row.insert(place.min(row.len()), unit));
        self.rows[rank] = row;
        self.number(rank);
    }

    /// Exchanges neighbours in a row as long as that saves crossings.
    fn exchange(&mut self, rank: usize) {
        for _ in 0..8 {
            let mut is_better = false;
            for place in 1..self.rows[rank].len() {
                let [a, b] = [self.rows[rank][place - 1], self.rows[rank][place]];
                if self.pair_crossings(b, a) < self.pair_crossings(a, b) {
                    self.rows[rank].swap(place - 1, place);
                    (self.index[a], self.index[b]) = (place, place - 1);
                    is_better = true;
                }
            }
            if !is_better {
                return;
            }
        }
    }

    /// The crossings of the links of two units if the first is left of the second.
    fn pair_crossings(&self, left: usize, right: usize) -> usize {
        (0..2)
            .map(|side| {
                let to = |unit: usize| self.units[unit].links[side].iter().map(|to| self.index[*to]);
                to(left).map(|l| to(right).filter(|r| *r < l).count()).sum::<usize>()
            })
            .sum()
    }

    /// The crossings of all links between neighbouring rows.
    fn crossings(&self) -> usize {
        self.rows.iter().map(|row| self.row_crossings(row)).sum()
    }

    /// The crossings above a row: inversions, counted in a Fenwick tree.
    fn row_crossings(&self, row: &[usize]) -> usize {
        let above = |unit: &usize| self.units[*unit].links[1].iter().map(|to| self.index[*to]);
        let widest = row.iter().flat_map(above).max().map_or(0, |most| most + 2);
        let (mut tree, mut seen, mut crossings) = (vec![0usize; widest + 1], 0, 0);
        for unit in row {
            let to: Vec<usize> = above(unit).collect();
            for place in &to {
                let (mut at, mut lower) = (place + 1, 0);
                while at > 0 {
                    lower += tree[at];
                    at -= at & at.wrapping_neg();
                }
                crossings += seen - lower;
            }
            for place in &to {
                let mut at = place + 1;
                while at < tree.len() {
                    tree[at] += 1;
                    at += at & at.wrapping_neg();
                }
                seen += 1;
            }
        }
        crossings
    }

    fn row_width(&self, rank: usize) -> f64 {
        self.rows[rank].iter().map(|unit| self.units[*unit].size[0] + GAP).sum::<f64>() - GAP
    }

    fn width(&self) -> f64 {
        (0..self.rows.len()).map(|rank| self.row_width(rank)).fold(0.0, f64::max)
    }

    /// Returns the middle of each unit: near the mean of its neighbours, in the order of its row.
    fn spread(&self) -> Vec<f64> {
        let widest = self.width();
        let gap = |rank: usize| {
            let room = (0.6 * widest - self.row_width(rank)) / self.rows[rank].len() as f64;
            GAP + room.clamp(0.0, SPREAD)
        };
        let gaps: Vec<f64> = (0..self.rows.len()).map(gap).collect();
        let mut x = vec![0.0; self.units.len()];
        for (rank, gap) in gaps.iter().enumerate() {
            let wanted = vec![0.0; self.rows[rank].len()];
            self.place_row(rank, *gap, &wanted, &mut x);
        }
        for sweep in 0..SWEEPS {
            for step in 0..self.rows.len() {
                let rank = if sweep % 2 == 0 { step } else { self.rows.len() - 1 - step };
                let wanted: Vec<f64> =
                    self.rows[rank].iter().map(|unit| self.wanted(*unit, sweep, &x)).collect();
                self.place_row(rank, gaps[rank], &wanted, &mut x);
            }
        }
        x
    }

    /// The mean of the neighbours of a unit: of one side, or of both.
    fn wanted(&self, unit: usize, sweep: usize, x: &[f64]) -> f64 {
        // At last, each node is above the middle of those below it.
        let sides = match SWEEPS - sweep {
            2 | 3 => [0, 1],
            _ => [sweep % 2, sweep % 2],
        };
        let links = sides.iter().flat_map(|side| self.units[unit].links[*side].iter());
        let (sum, count) = links.fold((0.0, 0u32), |(sum, count), to| (sum + x[*to], count + 1));
        if count == 0 { x[unit] } else { sum / f64::from(count) }
    }

    /// Places the units of a row as near as possible to wanted places, in their order (pool
    /// adjacent violators).
    fn place_row(&self, rank: usize, gap: f64, wanted: &[f64], x: &mut [f64]) {
        let row = &self.rows[rank];
        let mut offsets = Vec::new();
        let mut offset = 0.0;
        for (place, unit) in row.iter().enumerate() {
            if place > 0 {
                offset += (self.units[row[place - 1]].size[0] + self.units[*unit].size[0]) / 2.0 + gap;
            }
            offsets.push(offset);
        }
        // Blocks of units that touch: the sum of what is wanted, and how many.
        let mut blocks: Vec<(f64, usize)> = Vec::new();
        for (wanted, offset) in wanted.iter().zip(&offsets) {
            blocks.push((wanted - offset, 1));
            while let [.., (a, m), (b, n)] = blocks[..] {
                if a / m as f64 <= b / n as f64 {
                    break;
                }
                blocks.pop();
                blocks.pop();
                blocks.push((a + b, m + n));
            }
        }
        let mut place = 0;
        for (sum, count) in blocks {
            for _ in 0..count {
                x[row[place]] = sum / count as f64 + offsets[place];
                place += 1;
            }
        }
    }
}
