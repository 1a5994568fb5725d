//! Points of the plane, in pixels; y grows downward. Sines come from the crate `libm`, whose
//! results are the same on every machine.

/// A point, or a width and a height.
pub(super) type Pixels = [f64; 2];

/// Returns the direction from one point to another, radians, clockwise from the right.
pub(super) fn angle(from: Pixels, to: Pixels) -> f64 {
    libm::atan2(to[1] - from[1], to[0] - from[0])
}

/// Returns the point in this direction and distance.
pub(super) fn polar(from: Pixels, angle: f64, distance: f64) -> Pixels {
    [from[0] + distance * libm::cos(angle), from[1] + distance * libm::sin(angle)]
}

/// Returns the distance of two points.
pub(super) fn distance(a: Pixels, b: Pixels) -> f64 {
    ((a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)).sqrt()
}

/// A node's box: its centre and its width and height.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Block {
    pub(super) centre: Pixels,
    pub(super) size: Pixels,
}

impl Block {
    /// Whether a part of the line from `a` to `b` is in the box, or nearer to it than `margin`.
    pub(super) fn is_hit(&self, a: Pixels, b: Pixels, margin: f64) -> bool {
        let half = self.size.map(|x| x / 2.0 + margin);
        let middle = [0, 1].map(|axis| (a[axis] + b[axis]) / 2.0 - self.centre[axis]);
        let reach = [0, 1].map(|axis| (b[axis] - a[axis]) / 2.0);
        (0..2).all(|axis| middle[axis].abs() < half[axis] + reach[axis].abs())
            && (middle[0] * reach[1] - middle[1] * reach[0]).abs()
                <= half[0] * reach[1].abs() + half[1] * reach[0].abs()
    }

    /// Where a line from a point in the box leaves it toward another point.
    pub(super) fn exit(&self, from: Pixels, to: Pixels) -> Pixels {
        let share = |axis: usize| {
            let way = to[axis] - from[axis];
            let edge = self.centre[axis] + (self.size[axis] / 2.0).copysign(way);
            if way == 0.0 { f64::INFINITY } else { (edge - from[axis]) / way }
        };
        between(from, to, share(0).min(share(1)).clamp(0.0, 1.0))
    }

    /// The corners of the box and of a margin around it, clockwise from the upper left.
    pub(super) fn corners(&self, margin: f64) -> [Pixels; 4] {
        let half = self.size.map(|x| x / 2.0 + margin);
        [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]
            .map(|sign: Pixels| [0, 1].map(|axis| self.centre[axis] + sign[axis] * half[axis]))
    }
}

/// Returns the point at a share of the way from one point to another.
pub(super) fn between(a: Pixels, b: Pixels, share: f64) -> Pixels {
    [0, 1].map(|axis| a[axis] + share * (b[axis] - a[axis]))
}

/// Whether two lines cross, apart from their ends.
pub(super) fn is_crossing([a, b]: [Pixels; 2], [c, d]: [Pixels; 2]) -> bool {
    let side =
        |p: Pixels, q: Pixels, r: Pixels| (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]);
    side(a, b, c) * side(a, b, d) < -1e-9 && side(c, d, a) * side(c, d, b) < -1e-9
}
