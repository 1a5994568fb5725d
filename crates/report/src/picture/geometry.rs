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
