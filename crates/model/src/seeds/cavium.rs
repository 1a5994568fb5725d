//! Seed 000, the CN6880 measurements: t_in = t_out = ½(0.0018 µs/B · size + 1.036 µs), and the time
//! a 64-byte packet leaves a processor at 100 Gbit/s.

use super::{Ours, number};
use crate::cores::wire_rate;
use crate::regime::FRAMING_BYTES;

/// Slope of input plus output, µs/B.
const SLOPE_US_PER_BYTE: f64 = 0.0018;
/// Constant of input plus output, µs.
const CONSTANT_US: f64 = 1.036;
const SIZES: [u32; 6] = [64, 128, 256, 512, 1024, 1500];

/// Input (or output) phase of a packet of `bytes`, µs.
pub fn phase_us(bytes: f64) -> f64 {
    0.5 * (SLOPE_US_PER_BYTE * bytes + CONSTANT_US)
}

pub(super) fn results() -> Vec<(String, Ours)> {
    let mut all: Vec<(String, Ours)> =
        SIZES.iter().map(|size| (format!("000-tin-{size}"), number(phase_us(f64::from(*size))))).collect();
    all.push(("000-6.7ns".to_owned(), number(1e9 / wire_rate(100.0, 64.0, FRAMING_BYTES))));
    all
}
