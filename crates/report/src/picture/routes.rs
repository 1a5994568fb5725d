//! The ways of links between placed nodes: straight where nothing is in between, and with bends
//! around the boxes of other nodes. No link is behind a node that it does not join.
//!
//! A way passes each box in it at the corner nearest to the straight line. Where that leads to
//! more and more boxes, a way is searched among the corners of all boxes (`obstacles.rs`). A node
//! keeps a gap around it, so there is always one.

use super::geometry::{Block, Pixels, between, distance};
use super::obstacles::{CORNER, Corners, Obstacles};
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// Links that bend at one corner lie beside each other, pixels.
const BESIDE: f64 = 3.0;
const BESIDE_MAX: usize = 4;
/// The distance of parallel links, and how wide they are together, pixels.
const PARALLEL: f64 = 24.0;
const PARALLEL_ALL: f64 = 220.0;
/// How often a way is halved at a box before the corners of all boxes are searched.
const DEPTH: usize = 5;
/// How many bends further a way is tried without those in between.
const LOOK_AHEAD: usize = 12;

/// Links between boxes.
pub(super) struct Links<'l> {
    blocks: &'l [Block],
    ends: &'l [[usize; 2]],
    obstacles: Obstacles<'l>,
    corners: OnceCell<Corners>,
}

impl<'l> Links<'l> {
    /// Links with these pairs of nodes.
    pub(super) fn new(blocks: &'l [Block], ends: &'l [[usize; 2]]) -> Links<'l> {
        Links { blocks, ends, obstacles: Obstacles::new(blocks), corners: OnceCell::new() }
    }

    /// Returns the points of each link: the centres of its nodes and the bends between them, where
    /// `via` proposes the bends. A link of a node to itself is a loop around a corner.
    pub(super) fn routes(&self, via: impl Fn(usize, f64) -> Vec<Pixels>) -> Vec<Vec<Pixels>> {
        let aside = self.asides();
        let mut corners: BTreeMap<[i64; 2], usize> = BTreeMap::new();
        let route = |number: usize| {
            let ends = self.ends[number];
            if ends[0] == ends[1] {
                return loop_around(self.blocks[ends[0]]);
            }
            let [a, b] = ends.map(|node| self.blocks[node].centre);
            let mut way = vec![a];
            way.extend(via(number, aside[number]));
            way.push(b);
            if way.len() == 2 && aside[number] != 0.0 {
                way = parallel(a, b, aside[number]);
            }
            if self.is_clear(&way, ends) {
                return way;
            }
            let way = match self.is_clear(&[a, b], ends) && aside[number] == 0.0 {
                true => vec![a, b],
                false => self.around(ends),
            };
            self.beside(way, ends, &mut corners)
        };
        (0..self.ends.len()).map(route).collect()
    }

    /// How far each link lies aside of the straight line: parallel links are apart.
    fn asides(&self) -> Vec<f64> {
        let pair = |ends: [usize; 2]| [ends[0].min(ends[1]), ends[0].max(ends[1])];
        let mut counts: BTreeMap<[usize; 2], usize> = BTreeMap::new();
        self.ends.iter().for_each(|ends| *counts.entry(pair(*ends)).or_default() += 1);
        let mut seen: BTreeMap<[usize; 2], usize> = BTreeMap::new();
        let aside = |ends: &[usize; 2]| {
            let count = counts[&pair(*ends)] as f64;
            let number = seen.entry(pair(*ends)).or_default();
            *number += 1;
            let side = if ends[0] <= ends[1] { 1.0 } else { -1.0 };
            side * (*number as f64 - (count + 1.0) / 2.0) * PARALLEL.min(PARALLEL_ALL / count)
        };
        self.ends.iter().map(aside).collect()
    }

    /// Whether no node but the ends is in the way.
    fn is_clear(&self, way: &[Pixels], ends: [usize; 2]) -> bool {
        way.windows(2).all(|pair| self.obstacles.is_free(pair[0], pair[1], ends))
    }

    /// Returns a short way around the boxes between two nodes.
    fn around(&self, ends: [usize; 2]) -> Vec<Pixels> {
        let [from, to] = ends.map(|node| self.blocks[node].centre);
        let mut way = vec![from];
        let way = match self.bend(from, to, ends, DEPTH, &mut way) {
            true => way,
            false => {
                let corners = self.corners.get_or_init(|| self.obstacles.corners());
                corners.way(ends[0], ends[1], [from, to]).unwrap_or_else(|| vec![from, to])
            }
        };
        self.straightened(&way, ends)
    }

    /// Adds the points from `a` to `b`: past the box in the middle at the corner nearest to the
    /// line, and so on for both halves. Returns whether that leads there.
    fn bend(&self, a: Pixels, b: Pixels, ends: [usize; 2], depth: usize, way: &mut Vec<Pixels>) -> bool {
        let Some(block) = self.obstacles.in_the_middle(a, b, ends) else {
            way.push(b);
            return true;
        };
        if depth == 0 {
            return false;
        }
        let length = distance(a, b).max(1e-9);
        let side = |c: &Pixels| ((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])) / length;
        let corners = block.corners(CORNER);
        // The corners farthest from the line on each side; the nearer of the two first.
        let left = corners.into_iter().max_by(|c, d| side(c).total_cmp(&side(d)));
        let right = corners.into_iter().min_by(|c, d| side(c).total_cmp(&side(d)));
        let mut sides = [left.unwrap_or(a), right.unwrap_or(a)];
        if side(&sides[1]).abs() < side(&sides[0]).abs() {
            sides.swap(0, 1);
        }
        let known = way.len();
        for corner in sides {
            if distance(a, corner) > 1.0
                && distance(corner, b) > 1.0
                && self.bend(a, corner, ends, depth - 1, way)
                && self.bend(corner, b, ends, depth - 1, way)
            {
                return true;
            }
            way.truncate(known);
        }
        false
    }

    /// Leaves out the bends of a way that it does not need.
    fn straightened(&self, way: &[Pixels], ends: [usize; 2]) -> Vec<Pixels> {
        let mut straight = vec![way[0]];
        let mut at = 0;
        while at + 1 < way.len() {
            let farthest = (at + 2..way.len().min(at + 2 + LOOK_AHEAD)).rev();
            let mut seen = farthest.filter(|to| self.obstacles.is_free(way[at], way[*to], ends));
            at = seen.next().unwrap_or(at + 1);
            straight.push(way[at]);
        }
        straight
    }

    /// Moves the bends of a way aside where another link bends.
    fn beside(
        &self,
        mut way: Vec<Pixels>,
        ends: [usize; 2],
        corners: &mut BTreeMap<[i64; 2], usize>,
    ) -> Vec<Pixels> {
        for bend in 1..way.len().saturating_sub(1) {
            let count = corners.entry(key(way[bend])).or_default();
            *count += 1;
            let (before, here, after) = (way[bend - 1], way[bend], way[bend + 1]);
            // Away from the box around which it bends.
            let inward = between(before, after, 0.5);
            let far = distance(inward, here);
            let steps = (*count - 1).min(BESIDE_MAX) as f64;
            if far < 1.0 || steps == 0.0 {
                continue;
            }
            let moved = between(inward, here, 1.0 + steps * BESIDE / far);
            if self.is_clear(&[before, moved, after], ends) {
                way[bend] = moved;
            }
        }
        way
    }
}

/// A place in whole sixteenths of a pixel.
fn key(place: Pixels) -> [i64; 2] {
    place.map(|x| (x * 16.0).round() as i64)
}

/// A link beside the straight line between two points.
fn parallel(a: Pixels, b: Pixels, aside: f64) -> Vec<Pixels> {
    let length = distance(a, b).max(1.0);
    let across = [(a[1] - b[1]) / length, (b[0] - a[0]) / length];
    let moved = |share: f64| {
        let on_line = between(a, b, share);
        [0, 1].map(|axis| on_line[axis] + aside * across[axis])
    };
    vec![a, moved(0.3), moved(0.7), b]
}

/// A link of a node to itself, around its upper right corner.
fn loop_around(block: Block) -> Vec<Pixels> {
    let [x, y] = block.centre;
    let [right, top] = [x + block.size[0] / 2.0, y - block.size[1] / 2.0];
    let (inner, outer) = (right - 14.0, right + 9.0);
    vec![[inner, y], [inner, top - 9.0], [outer, top - 9.0], [outer, y], [x, y]]
}
