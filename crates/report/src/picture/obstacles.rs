//! The boxes in the way of lines: a grid of the boxes, and the corners that see each other.

use super::geometry::{NodeBlock, Pixels, distance};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How near a link comes to the box of a node that it does not join, pixels.
pub(super) const CLEAR: f64 = 5.0;
/// Where links bend: at a corner and this margin.
pub(super) const CORNER: f64 = 7.0;
/// The least side of a cell of the grid, pixels, and the most cells on a side.
const CELL: f64 = 48.0;
const CELLS_MAX: f64 = 400.0;
/// What a bend costs, as a length.
const BEND: f64 = 12.0;
/// The search prefers corners toward the end by this factor. It meets fewer corners then.
const EAGER: f64 = 1.3;

/// The boxes of a picture.
pub(super) struct Obstacles<'b> {
    blocks: &'b [NodeBlock],
    origin: Pixels,
    cell: f64,
    columns: usize,
    rows: usize,
    /// The boxes that reach into each cell.
    cells: Vec<Vec<u32>>,
}

impl<'b> Obstacles<'b> {
    pub(super) fn new(blocks: &'b [NodeBlock]) -> Obstacles<'b> {
        let corners = || blocks.iter().flat_map(|block| block.corners(CLEAR));
        let origin = corners().fold([0.0f64; 2], |a, b| [a[0].min(b[0]), a[1].min(b[1])]);
        let end = corners().fold([1.0f64; 2], |a, b| [a[0].max(b[0]), a[1].max(b[1])]);
        let cell = CELL.max((end[0] - origin[0]).max(end[1] - origin[1]) / CELLS_MAX);
        let count = |axis: usize| ((end[axis] - origin[axis]) / cell) as usize + 1;
        let (columns, rows) = (count(0), count(1));
        let mut all =
            Obstacles { blocks, origin, cell, columns, rows, cells: vec![Vec::new(); columns * rows] };
        for (number, block) in blocks.iter().enumerate() {
            let [from, _, to, _] = block.corners(CLEAR);
            for column in all.cell_of(from[0], 0)..=all.cell_of(to[0], 0) {
                for row in all.cell_of(from[1], 1)..=all.cell_of(to[1], 1) {
                    all.cells[column * rows + row].push(number as u32);
                }
            }
        }
        all
    }

    /// The column (axis 0) or row of a place.
    fn cell_of(&self, x: f64, axis: usize) -> usize {
        let most = if axis == 0 { self.columns } else { self.rows } - 1;
        (((x - self.origin[axis]) / self.cell).max(0.0) as usize).min(most)
    }

    /// Calls `found` for the boxes but those of `ends` that the line hits, some of them twice,
    /// until it returns true.
    fn visit(&self, a: Pixels, b: Pixels, ends: [usize; 2], mut found: impl FnMut(usize) -> bool) -> bool {
        let (left, right) = if a[0] <= b[0] { (a, b) } else { (b, a) };
        let slope = (right[1] - left[1]) / (right[0] - left[0]).max(1e-9);
        let y_at = |x: f64| left[1] + slope * (x.clamp(left[0], right[0]) - left[0]);
        let [first, last] = [left, right].map(|p| self.cell_of(p[0], 0));
        for column in first..=last {
            let start = self.origin[0] + column as f64 * self.cell;
            let (top, bottom) = match first == last {
                true => (left[1], right[1]),
                false => (y_at(start), y_at(start + self.cell)),
            };
            let [top, bottom] = [top.min(bottom), top.max(bottom)].map(|y| self.cell_of(y, 1));
            for cell in &self.cells[column * self.rows + top..=column * self.rows + bottom] {
                for &number in cell {
                    let number = number as usize;
                    if !ends.contains(&number) && self.blocks[number].is_hit(a, b, CLEAR) && found(number) {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// Whether nothing but the ends is in the way from `a` to `b`.
    pub(super) fn is_free(&self, a: Pixels, b: Pixels, ends: [usize; 2]) -> bool {
        !self.visit(a, b, ends, |_| true)
    }

    /// The box in the way from `a` to `b` that is nearest to the middle between them.
    pub(super) fn in_the_middle(&self, a: Pixels, b: Pixels, ends: [usize; 2]) -> Option<NodeBlock> {
        let middle = [0, 1].map(|axis| f64::midpoint(a[axis], b[axis]));
        let mut best: Option<(f64, usize)> = None;
        self.visit(a, b, ends, |number| {
            let far = distance(self.blocks[number].centre, middle);
            if best.is_none_or(|found| (far, number) < found) {
                best = Some((far, number));
            }
            false
        });
        best.map(|(_, number)| self.blocks[number])
    }

    /// Which corners see each other: of a box, and of the next boxes in eight directions.
    pub(super) fn corners(&self) -> Corners {
        let count = self.blocks.len();
        let places: Vec<Pixels> = self.blocks.iter().flat_map(|block| block.corners(CORNER)).collect();
        let mut seen = vec![Vec::new(); places.len()];
        for number in 0..count {
            for other in self.next_to(number).into_iter().chain([number]) {
                for from in 4 * number..4 * number + 4 {
                    for to in 4 * other..4 * other + 4 {
                        // No box is an end: lines run around all of them.
                        if from != to && self.is_free(places[from], places[to], [usize::MAX; 2]) {
                            seen[from].push(to as u32);
                            seen[to].push(from as u32);
                        }
                    }
                }
            }
        }
        for list in &mut seen {
            list.sort_unstable();
            list.dedup();
        }
        Corners { places, seen }
    }

    /// The nearest box in each of eight directions.
    fn next_to(&self, number: usize) -> Vec<usize> {
        let here = self.blocks[number].centre;
        let mut nearest = [(f64::INFINITY, 0); 8];
        for (other, block) in self.blocks.iter().enumerate().filter(|(other, _)| *other != number) {
            let [x, y] = [block.centre[0] - here[0], block.centre[1] - here[1]];
            let octant = usize::from(x < 0.0) + 2 * usize::from(y < 0.0) + 4 * usize::from(x.abs() < y.abs());
            let far = x * x + y * y;
            if far < nearest[octant].0 {
                nearest[octant] = (far, other);
            }
        }
        nearest.into_iter().filter(|(far, _)| far.is_finite()).map(|(_, other)| other).collect()
    }
}

/// The corners of all boxes, four for each, and which of them see each other.
pub(super) struct Corners {
    places: Vec<Pixels>,
    seen: Vec<Vec<u32>>,
}

impl Corners {
    /// Returns the corners on a short way from one box to another (A*). None without a way.
    pub(super) fn way(&self, from: usize, to: usize, [start, end]: [Pixels; 2]) -> Option<Vec<Pixels>> {
        let mut length = vec![f64::INFINITY; self.places.len()];
        let mut before = vec![usize::MAX; self.places.len()];
        let mut open = BinaryHeap::new();
        let whole = |length: f64, corner: usize| {
            Reverse(((length + EAGER * distance(self.places[corner], end)) * 16.0) as u64)
        };
        for (corner, length) in length.iter_mut().enumerate().skip(4 * from).take(4) {
            *length = distance(start, self.places[corner]);
            open.push((whole(*length, corner), corner));
        }
        while let Some((Reverse(wanted), corner)) = open.pop() {
            if wanted > whole(length[corner], corner).0 {
                continue;
            }
            if corner / 4 == to {
                let mut way = vec![end];
                let mut at = corner;
                while at != usize::MAX {
                    way.push(self.places[at]);
                    at = before[at];
                }
                way.push(start);
                way.reverse();
                return Some(way);
            }
            for &next in &self.seen[corner] {
                let next = next as usize;
                let there = length[corner] + distance(self.places[corner], self.places[next]) + BEND;
                if there < length[next] {
                    length[next] = there;
                    before[next] = corner;
                    open.push((whole(there, next), next));
                }
            }
        }
        None
    }
}
