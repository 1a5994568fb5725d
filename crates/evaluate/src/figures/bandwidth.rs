//! Table 5.1: a link is offered more than its rate; the rate of what arrives is measured.
//!
//! Joglekar filled the links with TCP and counted at the receiver. Here full-sized datagrams are
//! offered 5 % above the rate, so that the link is never idle. The arrival times are the kernel's,
//! so that no tool's buffers take part. Arrivals are divided into intervals, and the median of
//! their rates is the result: a host stall affects only some intervals.

use super::{Figure, Measurement, Needs};
use crate::testbed::rattan::{self, RattanLink};
use crate::testbed::{Between, Shaper, ShaperKind, Testbed};
use crate::{MeasurementError, Round, Rounds, RunContext, SEED};
use fastpath_audit::core_time::CoreTime;
use fastpath_audit::flood::{self, LatePolicy, Stream};
use fastpath_engine::Report;
use fastpath_engine::priority::with_high_priority;
use fastpath_link::{Limit, PipeSpec, QueueSpec};
use fastpath_model::dist::normal_quantile;
use fastpath_model::publications::linkem::TABLE_5_1;
use fastpath_net::{EdgeId, Network};
use fastpath_report::{Criterion, EvaluatedFigure, Scale};
use fastpath_spec::{NodeKind, Topology};
use fastpath_units::stats::{quantile, sorted};
use fastpath_units::{Bytes, Duration, Fraction, Rate, Time};
use std::thread;
use std::time;

/// Rates beyond those of the publication, kbit/s. Links from the first of them on are measured one
/// after the other.
const FASTER_KBIT: [f64; 2] = [100_000.0, 1_000_000.0];
/// Payload of a datagram that fills a frame, and the size of that frame without FCS, bytes.
const PAYLOAD: usize = 1472;
const FRAME: u32 = 1514;
const ETHERNET: u32 = 14;
/// The accuracy that the publication claims for LinkEM.
const TOLERANCE: f64 = 0.01;
const OFFERED: f64 = 1.05;
/// Minimum queue of a link, frames (Dummynet's default), and its length in seconds. A source that
/// stalls for less does not let the link idle.
const QUEUE_MIN: u32 = 50;
const QUEUE_SPAN: f64 = 0.05;
/// Minimum number of frames of an interval, and maximum number of intervals.
const INTERVAL_FRAMES_MIN: usize = 200;
const INTERVALS_MAX: usize = 100;
/// Number of rounds into which the time of a measurement is divided, so that ours, the control and
/// the peers are measured in turns.
const ROUNDS: usize = 3;
/// Number of frames with exit times that are compared with the exact ones: quick, full.
const VIRTUAL_FRAMES: [u64; 2] = [10_000, 100_000];

pub(super) const FIGURES: &[Figure] = &[Figure {
    id: "table-5.1",
    title: "Table 5.1: bandwidth emulation accuracy",
    original: "LinkEM, Joglekar 2004, Table 5.1",
    x: Some(("configured rate, kbit/s", Scale::Log10)),
    y: Some(("observed rate, kbit/s", Scale::Log10)),
    note: "",
    variants: &[("virtual", "in virtual time")],
}];

pub(super) const MEASUREMENTS: &[Measurement] = &[VIRTUAL, REAL];

const REAL: Measurement = Measurement {
    step: "bandwidth",
    needs: Needs::Namespaces,
    ids: |_| rates().map(id).collect(),
    seconds: [45.0, 640.0],
    rattan_seconds: [13.0, 160.0],
    run: real,
};

const VIRTUAL: Measurement = Measurement {
    step: "bandwidth in virtual time",
    needs: Needs::Nothing,
    ids: |_| rates().map(|kbit| id(kbit) + "/virtual").collect(),
    seconds: [0.2, 1.0],
    rattan_seconds: [0.0; 2],
    run: in_virtual_time,
};

fn rates() -> impl Iterator<Item = f64> {
    TABLE_5_1.iter().map(|row| row.0).chain(FASTER_KBIT)
}

fn id(kbit: f64) -> String {
    format!("table-5.1/{kbit}")
}

fn original(kbit: f64) -> Option<f64> {
    TABLE_5_1.iter().find(|row| row.0 == kbit).map(|row| row.1)
}

fn bps(kbit: f64) -> u64 {
    (kbit * 1000.0) as u64
}

/// The queue of a link, frames.
fn queue(kbit: f64) -> u32 {
    QUEUE_MIN.max((kbit * 1000.0 * QUEUE_SPAN / f64::from(FRAME * 8)) as u32)
}

fn pipe(kbit: f64) -> PipeSpec {
    let queue = QueueSpec::DropTail(Limit::Packets(queue(kbit)));
    PipeSpec { rate: Rate::from_bps(bps(kbit)), queue, ..PipeSpec::default() }
}

/// The same link for rattan, which does not count the Ethernet header.
fn treatment(kbit: f64) -> RattanLink {
    let bps = bps(kbit) * u64::from(FRAME - ETHERNET) / u64::from(FRAME);
    RattanLink::Rate { bps, queue: queue(kbit) }
}

/// The rates of the intervals of one or several rounds, kbit/s in order, and the number of frames.
#[derive(Clone, Default)]
struct Observed {
    rates: Vec<f64>,
    frames: u64,
}

/// Returns the rates of every link over all quiet rounds, and what disturbed them if none was.
fn merged(rounds: Rounds<Vec<Observed>>) -> (Vec<Observed>, Option<String>) {
    let (rounds, disturbed) = rounds.finish();
    let links = rounds.first().map_or(0, Vec::len);
    let of_link = |i: usize| Observed {
        rates: sorted(rounds.iter().flat_map(|round| round[i].rates.iter().copied())),
        frames: rounds.iter().map(|round| round[i].frames).sum(),
    };
    ((0..links).map(of_link).collect(), disturbed)
}

fn real(context: &RunContext<'_>) -> Result<Vec<EvaluatedFigure>, MeasurementError> {
    let slow: Vec<f64> = TABLE_5_1.iter().map(|row| row.0).filter(|&kbit| context.wants(&id(kbit))).collect();
    let fast = FASTER_KBIT.iter().copied().filter(|&kbit| context.wants(&id(kbit)));
    // The slow links are measured together: their sum does not load a core.
    let groups = [slow].into_iter().chain(fast.map(|kbit| vec![kbit])).filter(|group| !group.is_empty());
    let mut results = Vec::new();
    for group in groups {
        let window = match group[0] {
            kbit if kbit < FASTER_KBIT[0] => context.either(6.0, 120.0),
            _ => context.either(2.0, 20.0),
        };
        let measure = |between: &dyn Fn(f64) -> Between| {
            let all: Vec<Between> = group.iter().map(|&kbit| between(kbit)).collect();
            context.round(|watch| measure(&all, &group, window / ROUNDS as f64, (context, watch)))
        };
        let shaper = |kind, kbit| Between::Shaped(Shaper { kind, rate: bps(kbit), queue: queue(kbit) });
        let tbf = |kbit: f64| shaper(ShaperKind::Tbf, kbit);
        let htb = |kbit: f64| shaper(ShaperKind::Htb, kbit);
        let of_rattan = |kbit: f64| Between::Rattan(treatment(kbit));
        let paths: [(&str, &dyn Fn(f64) -> Between); 3] =
            [(ShaperKind::Tbf.name(), &tbf), (ShaperKind::Htb.name(), &htb), (rattan::PROGRAM, &of_rattan)];
        let (mut ours, mut control, mut peers): (Rounds<_>, Rounds<_>, [Rounds<_>; 3]) = Default::default();
        for _ in 0..ROUNDS {
            ours.add(measure(&|kbit| Between::Taps(pipe(kbit)))?);
            control.add(measure(&|_| Between::Nothing)?);
            for ((name, between), rounds) in paths.iter().zip(&mut peers) {
                let carried = |round: &Round<Vec<Observed>>| round.seen.iter().all(|seen| seen.frames > 0);
                let found = context.peer(name, || measure(*between), carried)?;
                found.into_iter().for_each(|round| rounds.add(round));
            }
        }
        let (ours, disturbed) = merged(ours);
        let (control, _) = merged(control);
        let peers = paths.iter().map(|(name, _)| *name).zip(peers.map(|rounds| merged(rounds).0));
        let peers: Vec<(&str, Vec<Observed>)> = peers.collect();
        for (i, &kbit) in group.iter().enumerate() {
            let seen = ours[i].kbit();
            let (interval, frames) = (ours[i].interval(), ours[i].frames);
            let criterion = Criterion::Within { target: kbit, tolerance: TOLERANCE };
            let mut result = EvaluatedFigure::new(id(kbit), "kbit/s", seen, frames, criterion)
                .original(original(kbit))
                .control(control[i].kbit())
                .interval(interval)
                .detail("error_percent", 100.0 * (seen / kbit - 1.0))
                .detail("offered_kbit_s", OFFERED * kbit);
            for (name, seen) in &peers {
                result = result.peer(name, seen.get(i).map(Observed::kbit));
            }
            results.push(result.disturbed(disturbed.clone()));
        }
    }
    Ok(results)
}

/// Offers all pairs more than their rate for `window` seconds, at the same time.
fn measure(
    between: &[Between],
    kbits: &[f64],
    window: f64,
    (context, watch): (&RunContext<'_>, &CoreTime),
) -> Result<(Vec<Observed>, Option<Report>), MeasurementError> {
    let testbed = Testbed::new(between)?;
    let seconds = time::Duration::from_secs_f64;
    let observed: Result<Vec<Observed>, MeasurementError> = thread::scope(|scope| {
        let running: Vec<_> = kbits
            .iter()
            .enumerate()
            .map(|(i, kbit)| {
                let (from, to, address) = testbed.pair(i);
                let stream = Stream {
                    payload: PAYLOAD,
                    per_second: OFFERED * kbit * 1000.0 / f64::from(FRAME * 8),
                    duration: seconds(window),
                    late: LatePolicy::CatchUp,
                    patience: seconds(0.3),
                };
                scope.spawn(move || {
                    let flood = || flood::run(from, to, address, stream, &context.stop);
                    with_high_priority(|| watch.of_thread(flood))
                })
            })
            .collect();
        let observed = running.into_iter().map(|thread| {
            let result = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok(Observed::of(&result.arrivals))
        });
        observed.collect()
    });
    Ok((observed?, testbed.report()))
}

impl Observed {
    /// Takes the rates of intervals. The first tenth of the arrivals is left out: the source
    /// starts.
    fn of(arrivals: &[time::Duration]) -> Observed {
        let steady = &arrivals[arrivals.len() / 10..];
        let gaps = steady.len().saturating_sub(1);
        if gaps == 0 {
            return Observed::default();
        }
        let frames = (gaps / INTERVALS_MAX).max(INTERVAL_FRAMES_MIN).min(gaps);
        let rate = |start: usize| {
            let span = steady[start + frames].saturating_sub(steady[start]).as_secs_f64();
            frames as f64 * f64::from(FRAME * 8) / span / 1000.0
        };
        let rates = sorted((0..gaps / frames).map(|i| rate(i * frames)));
        Observed { rates, frames: gaps as u64 + 1 }
    }

    /// Returns the median of the rates of the intervals; 0 without arrivals.
    fn kbit(&self) -> f64 {
        if self.rates.is_empty() { 0.0 } else { median_with_interval(&self.rates).0 }
    }

    /// Returns the interval of the order statistics around the median.
    fn interval(&self) -> Option<[f64; 2]> {
        (!self.rates.is_empty()).then(|| median_with_interval(&self.rates).1).flatten()
    }
}

/// Returns the median of sorted numbers, and the order statistics that enclose it in 95 % of cases:
/// ranks n/2 ± 0.98 √n, where there are enough.
fn median_with_interval(sorted: &[f64]) -> (f64, Option<[f64; 2]>) {
    let n = sorted.len();
    let reach = (normal_quantile(0.975) / 2.0 * (n as f64).sqrt()).ceil() as usize;
    let interval = (n / 2).checked_sub(reach).map(|low| [sorted[low], sorted[n - 1 - low]]);
    (quantile(sorted, 0.5), interval)
}

/// Counts the frames that do not leave a saturated link at their exact time, to the picosecond: the
/// k-th frame leaves when k frames have been transmitted.
fn in_virtual_time(context: &RunContext<'_>) -> Result<Vec<EvaluatedFigure>, MeasurementError> {
    let frames = context.either(VIRTUAL_FRAMES[0], VIRTUAL_FRAMES[1]);
    let exact = |kbit: f64| {
        let mut left = Vec::new();
        saturate(pipe(kbit), frames, &mut |at| left.push(at));
        let bits = u128::from(Bytes(u64::from(FRAME)).bits());
        let due = |count: usize| bits * count as u128 * 1_000_000_000_000 / u128::from(bps(kbit));
        let wrong = left.iter().zip(1..).filter(|(at, count)| u128::from(at.as_ps()) != due(*count)).count();
        let span = left.last().map_or(f64::NAN, |at| at.as_secs_f64());
        let criterion = Criterion::Within { target: 0.0, tolerance: 0.0 };
        EvaluatedFigure::new(
            id(kbit) + "/virtual",
            "frames not at their exact time",
            wrong as f64,
            left.len() as u64,
            criterion,
        )
        .detail("kbit_s", left.len() as f64 * f64::from(FRAME * 8) / span / 1000.0)
    };
    Ok(rates().map(exact).collect())
}

/// Keeps a link full until `frames` have left, and calls `left` with the time of each.
fn saturate(pipe: PipeSpec, frames: u64, left: &mut dyn FnMut(Time)) {
    let rate = pipe.rate.expect("a link to fill has a rate");
    let mut topology = Topology::default();
    let ends = ["a", "b"].map(|name| topology.add_node(name, NodeKind::host()));
    topology.connect("a-b", ends[0], ends[1], [pipe.clone(), pipe]);
    let mut network = Network::new(topology, fastpath_net::Options::with_seed(SEED));
    let (gap, _) = rate.transmission(Bytes(u64::from(FRAME)), Fraction::ZERO);
    // The source is a little faster than the link and stops while 40 frames are queued: the link
    // never idles, and no frame is dropped.
    let gap = Duration::from_ps(gap.as_ps() / 100 * 95);
    let (mut now, mut sent, mut out) = (Time::ZERO, 0, 0);
    loop {
        while let Some(delivery) = network.pop(now) {
            left(delivery.at);
            network.pool_mut().free(delivery.frame);
            out += 1;
        }
        if out == frames {
            return;
        }
        if sent < frames && sent - out < 40 {
            let frame = network.pool_mut().insert(&[0; FRAME as usize]).expect("40 frames fit");
            network.push(now, EdgeId(0), frame);
            sent += 1;
            now += gap;
        } else {
            now = network.next_at().expect("frames are in flight");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rate_of_the_table_is_exact_in_virtual_time() {
        let stop = std::sync::atomic::AtomicBool::new(false);
        let context = RunContext::new(crate::Effort::Quick, &stop, &[]);
        let results = in_virtual_time(&context).unwrap();
        assert_eq!(results.len(), 9);
        assert!(results.iter().all(|o| o.pass && o.n == VIRTUAL_FRAMES[0]), "{results:?}");
    }

    #[test]
    fn a_rate_is_that_of_the_gaps() {
        let arrivals: Vec<time::Duration> =
            (0..200).map(|i| time::Duration::from_micros(i * 12_112)).collect();
        let seen = Observed::of(&arrivals);
        assert!((seen.kbit() - 1000.0).abs() < 1e-6 && seen.frames == 180, "{}", seen.kbit());
        assert_eq!(Observed::of(&[]).frames, 0);
    }
}
