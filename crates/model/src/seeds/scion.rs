//! Seed 002, SCION's router benchmark: three platforms, their index in three variants, and the
//! times the document works out on the way.

use super::{Ours, number};
use crate::index::{LENGTH_BYTES, Variant, index};
use crate::platform::{Platform, ScoreKind, Wire, bits_from_mib};

/// The APU2's and the laptop's wire, from their iperf tests with 1520-byte packets. The document
/// takes the laptop's 17 Gbit/s from the same test, so its overhead is nothing by construction.
const APU2_WIRE: Wire = Wire { packets_per_s: 70e3, frame_bytes: 1520.0, bits_per_s: 1e9 };
const LAPTOP_WIRE_BPS: f64 = 17e9;

fn platform(name: &str, coremark: f64, copy_bits_per_s: f64, rate: f64, wire: Option<Wire>) -> Platform {
    Platform {
        name: name.to_owned(),
        score: coremark,
        score_kind: ScoreKind::Coremark,
        copy_bits_per_s,
        rate_pps: Some(rate),
        wire,
    }
}

/// The platforms as the worked figures use them: copy rates rounded and taken as decimal Gbit/s;
/// the laptop's CoreMark is 29851 there (29861 in the list).
pub fn platforms() -> [Platform; 3] {
    [
        platform("APU2", 3044.0, 1.9e9, 45377.0, Some(APU2_WIRE)),
        platform("laptop", 29851.0, 31e9, 639_764.0, None),
        platform("CI", 28659.0, 64e9, 736_357.0, None),
    ]
}

/// The same platforms with the copy rates as measured, in MiB/s.
pub fn platforms_exact() -> [Platform; 3] {
    [
        platform("APU2", 3044.0, bits_from_mib(248.0), 45377.0, Some(APU2_WIRE)),
        platform("laptop", 29851.0, bits_from_mib(3928.0), 639_764.0, None),
        platform("CI", 28659.0, bits_from_mib(8102.0), 736_357.0, None),
    ]
}

fn indices(platforms: &[Platform; 3], variant: Variant, suffix: &str) -> Vec<(String, Ours)> {
    let found = index(platforms, LENGTH_BYTES, variant).expect("three measured platforms");
    found.platforms.iter().map(|p| (format!("002-I-{}-{suffix}", p.name), number(p.index))).collect()
}

/// ro = bm(b) − 8·L/C, seconds: what the router adds beside copying.
fn router_overhead_s(p: &Platform) -> f64 {
    1.0 / p.rate_pps.expect("measured") - 8.0 * LENGTH_BYTES / p.copy_bits_per_s
}

pub(super) fn results() -> Vec<(String, Ours)> {
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
    all.extend(times.map(|(name, seconds)| (format!("002-{name}"), number(seconds))));
    all
}
