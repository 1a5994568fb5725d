//! Where the labels of links are: along a piece of the link, over no node and no other label.

use super::geometry::{Block, Pixels, between, distance, is_crossing};

/// Half of the height of a label with its margin, pixels.
const HALF: f64 = 6.5;
/// A picture of at most this many labels shows all of them.
const FEW: usize = 30;
/// Where on a piece of a link a label is tried, as shares of its length.
const SHARES: [f64; 7] = [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8];

/// A label with its place.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Place {
    pub(super) middle: Pixels,
    /// Its direction, degrees: text is never upside down.
    pub(super) degrees: f64,
    ends: [Pixels; 2],
}

/// The links whose labels are placed.
pub(super) struct Labels<'l> {
    pub(super) routes: &'l [Vec<Pixels>],
    /// The nodes of each link.
    pub(super) ends: Vec<[usize; 2]>,
    /// The width of each label, 0 if there is none.
    pub(super) widths: Vec<f64>,
    pub(super) blocks: Vec<Block>,
}

impl Labels<'_> {
    /// Returns a place for each label that has one. In a picture of few labels all have.
    pub(super) fn place(&self) -> Vec<Option<Place>> {
        let mut taken: Vec<[Pixels; 2]> = Vec::new();
        let is_needed = self.widths.iter().filter(|width| **width > 0.0).count() <= FEW;
        let mut places = Vec::new();
        for (link, width) in self.widths.iter().enumerate() {
            let found = if *width > 0.0 { self.free(link, &taken, is_needed) } else { None };
            taken.extend(found.map(|place| place.ends));
            places.push(found);
        }
        places
    }

    /// The pieces of a link that are seen: outside of the boxes of its nodes.
    fn pieces(&self, link: usize) -> Vec<[Pixels; 2]> {
        let mut pieces = Vec::new();
        for pair in self.routes[link].windows(2) {
            let [mut from, mut to] = [pair[0], pair[1]];
            let mut is_seen = true;
            for block in self.ends[link].map(|node| self.blocks[node]) {
                let inside = [from, to].map(|point| block.is_hit(point, point, 0.0));
                match inside {
                    [true, true] => is_seen = false,
                    [true, false] => from = block.exit(from, to),
                    [false, true] => to = block.exit(to, from),
                    [false, false] => {}
                }
            }
            if is_seen && distance(from, to) >= 1.0 {
                pieces.push([from, to]);
            }
        }
        pieces.sort_by(|a, b| distance(b[0], b[1]).total_cmp(&distance(a[0], a[1])));
        pieces
    }

    fn free(&self, link: usize, taken: &[[Pixels; 2]], is_needed: bool) -> Option<Place> {
        let pieces = self.pieces(link);
        let all = || pieces.iter().flat_map(|piece| SHARES.map(|share| (*piece, share)));
        let place = |(piece, share): ([Pixels; 2], f64)| Place::on(piece, share, self.widths[link]);
        let is_free = |place: &Place| {
            let [from, to] = place.ends;
            !self.blocks.iter().any(|block| block.is_hit(from, to, HALF))
                && !taken.iter().any(|other| is_near(&place.ends, other))
        };
        let found = all().map(place).find(is_free);
        found.or_else(|| all().map(place).next().filter(|_| is_needed))
    }
}

impl Place {
    /// A label of this width at a share of a piece of a link.
    fn on([from, to]: [Pixels; 2], share: f64, width: f64) -> Place {
        let length = distance(from, to).max(1e-9);
        let along = [(to[0] - from[0]) / length, (to[1] - from[1]) / length];
        // The text stands above the line: the middle of its height is there.
        let is_left = along[0] < 0.0 || (along[0] == 0.0 && along[1] > 0.0);
        let up = if is_left { [-along[1], along[0]] } else { [along[1], -along[0]] };
        let middle = between(from, to, share);
        let raised = [0, 1].map(|axis| middle[axis] + 8.0 * up[axis]);
        let ends = [-0.5, 0.5].map(|s| [0, 1].map(|axis| raised[axis] + s * width * along[axis]));
        let mut degrees = libm::atan2(along[1], along[0]).to_degrees();
        if is_left {
            degrees -= 180.0f64.copysign(degrees);
        }
        Place { middle, degrees, ends }
    }
}

/// Whether two labels overlap, given the ends of each.
fn is_near(a: &[Pixels; 2], b: &[Pixels; 2]) -> bool {
    is_crossing(*a, *b)
        || a.iter().any(|p| to_line(*p, *b) < 2.0 * HALF)
        || b.iter().any(|p| to_line(*p, *a) < 2.0 * HALF)
}

/// The distance of a point from a line.
fn to_line(p: Pixels, [a, b]: [Pixels; 2]) -> f64 {
    let along = [b[0] - a[0], b[1] - a[1]];
    let square = along[0] * along[0] + along[1] * along[1];
    let share = ((p[0] - a[0]) * along[0] + (p[1] - a[1]) * along[1]) / square.max(1e-9);
    distance(p, between(a, b, share.clamp(0.0, 1.0)))
}
