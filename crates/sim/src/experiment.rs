//! The set-ups of published measurements, as experiments to run by name.
//!
//! ```text
//! two-units      generator ─▶ forward ─▶ swap ─▶ forward ─▶ generator, a probe at every hop
//! sixteen-hosts  8 senders ─▶ 4 ports │ emulator │ 4 ports ─▶ 8 consumers, 8 links, line rate
//! ```
//!
//! The first is from Hartikainen 2016 (CN6880, §Communication Latencies),
//! the second from Joglekar 2004, Figure 5.1.

use crate::machine::Machine;
use crate::program::Program;
use crate::run::{observe, run};
use crate::shipped;
use crate::trace::Visit;
use crate::workload::Workload;
use fastpath_units::Duration;
use fastpath_units::stats::{quantile, sorted};
use serde::Serialize;
use std::collections::BTreeMap;

/// The experiments: name and description.
pub const EXPERIMENTS: [(&str, &str); 2] = [
    (
        "two-units",
        "Hartikainen 2016, §Communication Latencies: packets of six sizes go from a generator through a forwarding CN6880, a swapping CN6880 and the forwarding one again; four probes give t_f, the time of one input and one output",
    ),
    (
        "sixteen-hosts",
        "Joglekar 2004, Figure 5.1: eight senders at line rate send through four ports to eight consumers, with LinkEM, Intel's bridging code, \
         LinkEM with two egress engines, and Dummynet",
    ),
];

/// Frame sizes of the first experiment.
pub(crate) const UNIT_SIZES: [u32; 6] = [64, 128, 256, 512, 1024, 1500];
/// Frame sizes of the second.
const HOST_SIZES: [u32; 6] = [64, 128, 256, 512, 1024, 1518];
/// The emulators of the second.
const EMULATORS: [(&str, &str); 4] = [
    ("ixp1200", "linkem"),
    ("ixp1200", "ixp-bridge"),
    ("ixp1200-egress2", "linkem"),
    ("pc-850mhz-dummynet", "dummynet"),
];

/// The results of an experiment at one point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The machine.
    pub machine: String,
    /// Its program.
    pub program: String,
    /// Frame size, bytes with FCS.
    pub size: u32,
    /// The results, by name with the unit last.
    pub found: BTreeMap<&'static str, f64>,
}

/// A point of an experiment, to be run. Points are independent of each other.
#[derive(Clone, Debug)]
pub struct PlannedPoint {
    machine: &'static str,
    program: &'static str,
    size: u32,
    duration: Duration,
    seed: u64,
    run: fn(&PlannedPoint) -> BTreeMap<&'static str, f64>,
}

impl PlannedPoint {
    /// Runs the point.
    pub fn run(&self) -> Point {
        let (machine, program) = (self.machine.to_owned(), self.program.to_owned());
        Point { machine, program, size: self.size, found: (self.run)(self) }
    }
}

/// The points of the experiment `name`, for `duration` each; `None` for an unknown name.
pub fn points(name: &str, duration: Option<Duration>, seed: u64) -> Option<Vec<PlannedPoint>> {
    match name {
        "two-units" => {
            let duration = duration.unwrap_or(Duration::from_ms(1000));
            let (machine, program) = ("cn6880-pair", "comm-latency");
            let point = |size| PlannedPoint { machine, program, size, duration, seed, run: two_units };
            Some(UNIT_SIZES.map(point).to_vec())
        }
        "sixteen-hosts" => {
            let duration = duration.unwrap_or(Duration::from_ms(200));
            let of_size = |(machine, program), size| PlannedPoint {
                machine,
                program,
                size,
                duration,
                seed,
                run: sixteen_hosts,
            };
            Some(EMULATORS.iter().flat_map(|&e| HOST_SIZES.map(|size| of_size(e, size))).collect())
        }
        _ => None,
    }
}

/// Runs the experiment `name`, for `duration` at each point; `None` for an unknown name.
pub fn experiment(name: &str, duration: Option<Duration>, seed: u64) -> Option<Vec<Point>> {
    Some(points(name, duration, seed)?.iter().map(PlannedPoint::run).collect())
}

fn shipped(machine: &str, program: &str) -> (Machine, Program) {
    let machine = shipped::machine(machine).expect("a shipped machine");
    (machine, shipped::program(program).expect("a shipped program"))
}

/// Measures t_f = ½ [(t_r11 − t_d10) − (t_d2 − t_r2)] of every packet in µs, one packet at a time,
/// 10 000 a second.
pub fn t_f(size: u32, duration: Duration, seed: u64) -> Vec<f64> {
    let (machine, program) = shipped("cn6880-pair", "comm-latency");
    let text = format!("constant,rate=10kpps,size={size}");
    let workload = Workload { duration, ..text.parse().expect("a workload") };
    let mut probes: BTreeMap<u64, [i64; 4]> = BTreeMap::new();
    // Legs 1, 4 and 7 are forwarding, swapping, and forwarding again.
    let mut probe = |visit: Visit| {
        let times = probes.entry(visit.packet).or_default();
        let (start, end) = (visit.start.as_ps() as i64, visit.end.as_ps() as i64);
        match visit.leg {
            1 => times[0] = end,
            4 => (times[1], times[2]) = (start, end),
            7 => times[3] = start,
            _ => {}
        }
    };
    observe(&machine, &program, &workload, seed, &mut probe).expect("shipped files fit each other");
    probes.values().map(|t| 0.5 * ((t[3] - t[0]) - (t[2] - t[1])) as f64 / 1e6).collect()
}

fn two_units(point: &PlannedPoint) -> BTreeMap<&'static str, f64> {
    let all = sorted(t_f(point.size, point.duration, point.seed));
    let at = |p: f64| quantile(&all, p);
    let published = 0.5 * (0.0018 * f64::from(point.size) + 1.036);
    // t_f is input and output of both units; the published line is one of them.
    BTreeMap::from([
        ("packets", all.len() as f64),
        ("t_f_mean_us", all.iter().sum::<f64>() / all.len() as f64),
        ("t_f_p50_us", at(0.5)),
        ("t_f_p99_us", at(0.99)),
        ("t_f_max_us", at(1.0)),
        ("published_t_in_plus_t_out_us", 2.0 * published),
    ])
}

fn sixteen_hosts(point: &PlannedPoint) -> BTreeMap<&'static str, f64> {
    let (machine, program) = shipped(point.machine, point.program);
    // Two senders per port, each with its own consumer and link: eight flows.
    let text = format!("line-rate,size={},ports=4,flows=8", point.size);
    let workload = Workload { duration: point.duration, ..text.parse().expect("a workload") };
    let outcome = run(&machine, &program, &workload, point.seed).expect("shipped files fit each other");
    BTreeMap::from([
        ("offered_pps", outcome.offered_pps),
        ("forwarded_pps", outcome.forwarded_pps),
        ("share_of_line_rate_pct", 100.0 * outcome.share()),
        ("worst_consumer_pct", 100.0 * outcome.worst_flow_share),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_experiment_runs_and_is_repeatable() {
        for (name, _) in EXPERIMENTS {
            let points = experiment(name, Some(Duration::from_ms(2)), 1).unwrap();
            assert!(points.len() >= 6 && points.iter().all(|p| p.found.values().all(|x| x.is_finite())));
            assert_eq!(points, experiment(name, Some(Duration::from_ms(2)), 1).unwrap());
        }
        assert_eq!(experiment("three-units", None, 1), None);
    }

    #[test]
    fn two_units_give_the_published_line() {
        for point in experiment("two-units", Some(Duration::from_ms(20)), 1).unwrap() {
            let (ours, published) = (point.found["t_f_p50_us"], point.found["published_t_in_plus_t_out_us"]);
            assert!((ours / published - 1.0).abs() < 0.01, "{point:?}");
        }
    }
}
