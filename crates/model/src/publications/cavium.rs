//! Hartikainen, "Packet Processing Systems", a chapter of a thesis (draft `thesis-hartikainen`, no
//! date; its latest reference is of 2016). Measurements of a Cavium OCTEON II CN6880.
//!
//! Recomputed: the input and output phases, t_in = t_out = ½(0.0018 µs/B · size + 1.036 µs), and
//! the time of a 64-byte frame at 100 Gbit/s.

use super::figure::{Computed, Publication, number};
use crate::cores::wire_rate;
use crate::fcs::FRAMING_BYTES;

/// The document.
pub const PUBLICATION: Publication = Publication {
    short: "Hartikainen 2016",
    citation: "Hartikainen, \"Packet Processing Systems\", chapter of a thesis, draft without date; the year is that of its latest reference",
    key: "000",
};

/// Slope of input plus output, µs/B.
const SLOPE_US_PER_BYTE: f64 = 0.0018;
/// Constant of input plus output, µs.
const CONSTANT_US: f64 = 1.036;
const SIZES: [u32; 6] = [64, 128, 256, 512, 1024, 1500];

/// Returns the time of the input (or output) phase of a packet of `bytes`, in µs.
pub fn phase_us(bytes: f64) -> f64 {
    0.5 * (SLOPE_US_PER_BYTE * bytes + CONSTANT_US)
}

pub(super) fn results() -> Computed {
    let mut all: Computed =
        SIZES.iter().map(|size| (format!("tin-{size}"), number(phase_us(f64::from(*size))))).collect();
    all.push(("6.7ns".to_owned(), number(1e9 / wire_rate(100.0, 64.0, FRAMING_BYTES))));
    all
}
