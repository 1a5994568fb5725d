//! Seed 003, Netcope's whitepaper: T = C + P·p + H·h with its three constants, and the cores they
//! need.

use super::{Ours, number};
use crate::cores::wire_rate;
use crate::fcs::Fcs;
use crate::model::Model;
use crate::regime::FRAMING_BYTES;

/// ns·core per packet.
pub const C_NS: f64 = 38.6;
/// ns·core per byte (the text drops "per byte").
pub const P_NS: f64 = 0.101;
/// ns·core per step (the text drops "per step").
pub const H_NS: f64 = 4.07;
/// The document's rounding of 6.72 ns between 64-byte packets at 100 Gbit/s.
const ROUNDED_NS: f64 = 6.7;

/// The whitepaper's model: time in ns over packet length `p` and steps `h`.
pub fn model() -> Model {
    let terms = "const,p,h".parse().expect("three terms");
    let model = Model::from_constants(terms, &[C_NS, P_NS, H_NS], 1e-9).expect("three constants");
    // Its 64 bytes leave every 6.7 ns at 100 Gbit/s: 84 of line time.
    Model { fcs: Some(Fcs::With), ..model }
}

fn cost_ns(p: f64) -> f64 {
    let at = |name: &str| Some(if name == "p" { p } else { 0.0 });
    model().predict(at).expect("both columns given").mean.value
}

pub(super) fn results() -> Vec<(String, Ours)> {
    let between_1518_ns = 1e9 / wire_rate(100.0, 1518.0, FRAMING_BYTES);
    vec![
        ("003-c0".to_owned(), number(cost_ns(0.0) / ROUNDED_NS)),
        ("003-c64".to_owned(), number(cost_ns(64.0) / ROUNDED_NS)),
        ("003-c1518".to_owned(), number(cost_ns(1518.0) / between_1518_ns)),
    ]
}
