//! Jean-Christophe Hugly, "Router benchmark observations and predictive model", SCION design
//! document, 2024.
//!
//! Recomputed: the performance index of three platforms in three variants, and the transmission and
//! processing times that lead to it.

use super::figure::{Computed, Publication, number};
use crate::index::{LENGTH_BYTES, Variant, index};
use crate::platform::{LineRateTest, Platform, ScoreKind, bits_from_mib};

/// The document.
pub const PUBLICATION: Publication = Publication {
    short: "Hugly 2024",
    citation: "Jean-Christophe Hugly, \"Router benchmark observations and predictive model\", SCION design document, last updated 2024-04-22",
    key: "002",
};

/// The APU2's iperf test with 1520-byte packets.
const APU2_WIRE: LineRateTest = LineRateTest { packets_per_s: 70e3, frame_bytes: 1520.0, bits_per_s: 1e9 };
/// The laptop's rate, from its iperf test. The document derives it from that same test, so the
/// per-packet overhead is zero by construction.
const LAPTOP_WIRE_BPS: f64 = 17e9;

fn platform(
    name: &str,
    coremark: f64,
    copy_bits_per_s: f64,
    rate: f64,
    wire: Option<LineRateTest>,
) -> Platform {
    Platform {
        name: name.to_owned(),
        score: coremark,
        score_kind: ScoreKind::Coremark,
        copy_bits_per_s,
        rate_pps: Some(rate),
        packet_bytes: None,
        wire,
    }
}

/// Returns the platforms as the worked figures use them: copy rates are rounded and taken as
/// decimal Gbit/s, and the laptop's CoreMark is 29851 (29861 in the document's list).
pub fn platforms() -> [Platform; 3] {
    [
        platform("APU2", 3044.0, 1.9e9, 45377.0, Some(APU2_WIRE)),
        platform("laptop", 29851.0, 31e9, 639_764.0, None),
        platform("CI", 28659.0, 64e9, 736_357.0, None),
    ]
}

/// Returns the same platforms with the copy rates as measured, in MiB/s.
pub fn platforms_exact() -> [Platform; 3] {
    [
        platform("APU2", 3044.0, bits_from_mib(248.0), 45377.0, Some(APU2_WIRE)),
        platform("laptop", 29851.0, bits_from_mib(3928.0), 639_764.0, None),
        platform("CI", 28659.0, bits_from_mib(8102.0), 736_357.0, None),
    ]
}

fn indices(platforms: &[Platform; 3], variant: Variant, suffix: &str) -> Computed {
    let found = index(platforms, LENGTH_BYTES, variant).expect("three measured platforms");
    found.platforms.iter().map(|p| (format!("I-{}-{suffix}", p.name), number(p.index))).collect()
}

/// Returns ro = bm(b) − 8·L/C, in seconds: the router's time without copying.
fn router_overhead_s(p: &Platform) -> f64 {
    1.0 / p.rate_pps.expect("measured") - 8.0 * LENGTH_BYTES / p.copy_bits_per_s
}

pub(super) fn results() -> Computed {
    let [apu2, laptop, _] = platforms();
    let mut all = indices(&platforms(), Variant::Plain, "M1");
    all.extend(indices(&platforms(), Variant::Tuned, "M400"));
    all.extend(indices(&platforms_exact(), Variant::Program, "code"));
    let times = [
        ("po-APU2", APU2_WIRE.overhead_s()),
        ("tb-APU2", APU2_WIRE.transmission_s(LENGTH_BYTES)),
        ("bm-APU2", 1.0 / apu2.rate_pps.expect("measured")),
        ("ro-APU2", router_overhead_s(&apu2)),
        ("tb-laptop", 8.0 * LENGTH_BYTES / LAPTOP_WIRE_BPS),
        ("ro-laptop", router_overhead_s(&laptop)),
    ];
    all.extend(times.map(|(name, seconds)| (name.to_owned(), number(seconds))));
    all
}
