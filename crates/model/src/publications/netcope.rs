//! Netcope Technologies, "Modelling of High Bandwidth Systems", white paper, no date. It calls the
//! standard of 400-Gbit/s Ethernet (IEEE 802.3bs, December 2017) "just before finalization".
//!
//! Recomputed: the cores that the model T = C + P·p + H·h needs at 100 Gbit/s.

use super::figure::{Computed, Publication, number};
use crate::cores::wire_rate;
use crate::fcs::{FRAMING_BYTES, Fcs};
use crate::model::Model;

/// The document.
pub const PUBLICATION: Publication = Publication {
    short: "Netcope 2017",
    citation: "Netcope Technologies, \"Modelling of High Bandwidth Systems\", white paper without date, before December 2017",
    key: "003",
};

/// C, ns·core per packet.
pub const C_NS: f64 = 38.6;
/// P, ns·core per byte (the text omits "per byte").
pub const P_NS: f64 = 0.101;
/// H, ns·core per parse-and-hash step (the text omits "per step").
pub const H_NS: f64 = 4.07;
/// The document's rounding of the 6.72 ns between 64-byte packets at 100 Gbit/s.
const ROUNDED_NS: f64 = 6.7;

/// Returns the white paper's model: time in ns by packet length `p` and steps `h`.
pub fn model() -> Model {
    let terms = "const,p,h".parse().expect("three terms");
    let model = Model::from_constants(terms, &[C_NS, P_NS, H_NS], 1e-9).expect("three constants");
    // A 64-byte packet every 6.7 ns at 100 Gbit/s is 84 bytes of line time: sizes include the FCS.
    Model { fcs: Some(Fcs::With), ..model }
}

fn cost_ns(p: f64) -> f64 {
    let at = |name: &str| Some(if name == "p" { p } else { 0.0 });
    model().predict(at).expect("both columns given").mean.value
}

pub(super) fn results() -> Computed {
    let between_1518_ns = 1e9 / wire_rate(100.0, 1518.0, FRAMING_BYTES);
    vec![
        ("c0".to_owned(), number(cost_ns(0.0) / ROUNDED_NS)),
        ("c64".to_owned(), number(cost_ns(64.0) / ROUNDED_NS)),
        ("c1518".to_owned(), number(cost_ns(1518.0) / between_1518_ns)),
    ]
}
