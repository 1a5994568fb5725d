//! Link multiplexing (Joglekar 2004, §5.3): the number of links of one rate that an emulator
//! carries, each within 2 % of its bandwidth.
//!
//! The links are full of TCP-like flows ([`Arrivals::Links`](crate::workload::Arrivals::Links)),
//! the ideal is 94 Mbit/s of them per pair of ports. TCP's reaction to a loss is not simulated but
//! estimated: a flow of 128 kbit/s sends 53 frames in one of the thesis' 24 intervals of 5 s. One
//! lost frame is retransmitted from the queue before the link. A second loss in the same interval
//! makes the flow miss its 2 %.

use super::check::{Effort, FOUR, Kind, TWO, ValidationCheck, check, go, shipped};
use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::program::Program;
use crate::unit::UnitSpec;
use crate::workload::{Arrivals, Sizes, Workload};
use fastpath_units::{Duration, Rate};

/// TCP goodput of a port of 100 Mbit/s (§5.3.2, footnote 2), in kbit/s.
const PORT_KBIT: u64 = 94_000;
/// The number of intervals of a measurement, and their length.
const INTERVALS: f64 = 24.0;
const INTERVAL_S: f64 = 5.0;

/// An emulator under test.
struct Emulator {
    machine: Machine,
    program: Program,
    duration: Duration,
}

impl Emulator {
    fn run(&self, kbit: u64, links: u32, ports: &[u32]) -> Outcome {
        let rate = Rate::from_bps(kbit * 1000).expect("a rate");
        let workload = Workload {
            arrivals: Arrivals::Links { rate, count: links },
            sizes: Sizes::Fixed(1518),
            ports: ports.to_vec(),
            flows: links,
            duration: self.duration,
            ..Workload::default()
        };
        go(&self.machine, &self.program, &workload)
    }

    /// True if a measurement of all links more likely than not finds each of them within 2 %: no
    /// flow loses two frames in one interval, if losses are independent.
    fn carries(&self, kbit: u64, links: u32, ports: &[u32]) -> bool {
        let outcome = self.run(kbit, links, ports);
        let lost = 1.0 - outcome.forwarded as f64 / outcome.offered as f64;
        let frames = INTERVAL_S * kbit as f64 * 1000.0 / 12_000.0;
        // At 10 Mbit/s an interval has thousands of frames: then 2 % of them may be lost.
        let tolerated = (0.02 * frames).max(1.0).floor();
        lost < 0.02 && f64::from(links) / 2.0 * INTERVALS * poisson_tail(lost * frames, tolerated) < 0.69
    }

    /// The most links carried, at most the ideal number; by bisection to a fortieth.
    fn most(&self, kbit: u64, ports: &[u32]) -> f64 {
        let ideal = ideal(kbit, ports);
        if self.carries(kbit, ideal, ports) {
            return f64::from(ideal);
        }
        let (mut good, mut bad) = (0, ideal);
        while bad - good > (good / 40).max(2) {
            let middle = (good + bad) / 4 * 2;
            if self.carries(kbit, middle, ports) { good = middle } else { bad = middle }
        }
        f64::from(good)
    }
}

/// The number of links that fit the ports: two for each flow.
fn ideal(kbit: u64, ports: &[u32]) -> u32 {
    2 * (PORT_KBIT / kbit) as u32 * (ports.len() / 2) as u32
}

/// P(X > k) of a Poisson distribution of this mean.
fn poisson_tail(mean: f64, k: f64) -> f64 {
    let (mut term, mut sum, mut i) = ((-mean).exp(), 0.0, 0.0);
    while i <= k {
        sum += term;
        i += 1.0;
        term *= mean / i;
    }
    (1.0 - sum).max(0.0)
}

pub(super) fn ixp1200(effort: Effort) -> Vec<ValidationCheck> {
    let (mut machine, program) = shipped("ixp1200", "linkem");
    // At a tenth of the load polling threads have no effect, and they are most of the events.
    for unit in &mut machine.units {
        if let UnitSpec::Microengine(spec) = &mut unit.spec {
            spec.poll = None;
        }
    }
    let emulator = Emulator { machine, program, duration: effort.ms(5000) };
    let two = "links on two ports: no frame underflows and no unit is busy, so the simulated value is the ideal (94 Mbit/s of TCP); the thesis stayed \
               5 to 10 % below it, probably because of TCP";
    let four = "links on four ports: limited by underflow, as in the thesis; the simulated value follows from the rate of underflows and the losses that TCP can repair";
    [
        ("ixp1200-links-128k-two-ports", 128, &TWO[..], 1320.0, (1188.0, 1500.0), two),
        ("ixp1200-links-256k-two-ports", 256, &TWO, 680.0, (612.0, 748.0), two),
        ("ixp1200-links-128k-four-ports", 128, &FOUR, 840.0, (420.0, 1680.0), four),
        ("ixp1200-links-2m-four-ports", 2000, &FOUR, 172.0, (150.0, 190.0), four),
        ("ixp1200-links-10m-four-ports", 10_000, &FOUR, 36.0, (34.0, 38.0), four),
    ]
    .into_iter()
    .map(|(id, kbit, ports, original, range, note)| {
        check(id, Kind::Prediction, original, emulator.most(kbit, ports), range, note)
    })
    .collect()
}

pub(super) fn dummynet(effort: Effort) -> Vec<ValidationCheck> {
    let (machine, program) = shipped("pc-850mhz-dummynet", "dummynet");
    let emulator = Emulator { machine, program, duration: effort.ms(5000) };
    let set = "links on two ports; sets the cost of a tick per link";
    let note = "links; limited by the cost of ticks and not of packets, so the number is the same for two and four ports, and for 128 and 256 kbit/s";
    let line = "links; the ideal, because the cost of this number of links is small";
    [
        ("dummynet-links-128k-two-ports", Kind::Calibration, 128, &TWO[..], 500.0, (475.0, 525.0), set),
        ("dummynet-links-128k-four-ports", Kind::Prediction, 128, &FOUR, 480.0, (456.0, 528.0), note),
        ("dummynet-links-256k-two-ports", Kind::Prediction, 256, &TWO, 500.0, (450.0, 550.0), note),
        ("dummynet-links-512k-two-ports", Kind::Prediction, 512, &TWO, 366.0, (355.0, 366.0), line),
        ("dummynet-links-2m-four-ports", Kind::Prediction, 2000, &FOUR, 180.0, (170.0, 190.0), line),
        ("dummynet-links-10m-four-ports", Kind::Prediction, 10_000, &FOUR, 36.0, (34.0, 38.0), line),
    ]
    .into_iter()
    .map(|(id, kind, kbit, ports, original, range, note)| {
        check(id, kind, original, emulator.most(kbit, ports), range, note)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ideal_is_the_thesis() {
        let all = [ideal(128, &TWO), ideal(256, &TWO), ideal(10_000, &FOUR), ideal(2000, &FOUR)];
        assert_eq!(all, [1468, 734, 36, 188]);
    }

    #[test]
    fn a_poisson_tail_is_what_the_tables_say() {
        assert!((poisson_tail(1.0, 1.0) - 0.264_241).abs() < 1e-6);
        assert!((poisson_tail(10.0, 12.0) - 0.208_444).abs() < 1e-6);
        assert_eq!(poisson_tail(0.0, 1.0), 0.0);
    }
}
