//! The lateness of releases, compared with a bare loop that spins until the same deadlines. Engine
//! and loop are measured in turns within the same seconds, each next to a source of the same rate;
//! the medians over the rounds are the result. Host stalls hit both. They show as gaps in the clock
//! during which the thread did not run. Two rates are measured: one that leaves the engine mostly
//! idle, and one that should load it to 70 %.

use super::{Figure, Measurement, Needs};
use crate::paced_links::{Links, OfferedPace};
use crate::{MeasurementError, RunContext};
use fastpath_engine::Clock;
use fastpath_link::PipeSpec;
use fastpath_report::{Criterion, EvaluatedFigure};
use fastpath_units::stats::{median, quantile, sorted};
use fastpath_units::{Duration, Time};
use std::thread;
use std::time;

/// A rate that is low for any machine, frames per second.
const PER_SECOND: f64 = 50_000.0;
/// The load of the second rate, which is computed from the load at the first; and its maximum,
/// frames per second.
const LOAD: f64 = 0.7;
const PER_SECOND_MAX: f64 = 500_000.0;
const DELAY: Duration = Duration::from_us(100);
/// Allowed excess over the control: at the median in µs, at the tail as a share.
const MEDIAN_ALLOWED_US: f64 = 1.0;
const TAIL_ALLOWED: f64 = 0.5;
/// A gap in a loop that only reads the clock, above which the thread did not run. The engine uses
/// the same threshold.
const GAP: Duration = Duration::from_us(100);

pub(super) const FIGURES: &[Figure] = &[Figure {
    id: "lateness",
    title: "Lateness of releases below 80 % load",
    original: "none published",
    x: None,
    y: None,
    note: "",
    variants: &[
        ("p50", "median"),
        ("p99", "99th percentile"),
        ("p99.9", "99.9th percentile"),
        ("loaded", "at 70 % load"),
    ],
}];

pub(super) const MEASUREMENTS: &[Measurement] = &[PART];

const PART: Measurement = Measurement {
    step: "lateness",
    needs: Needs::Nothing,
    ids: |_| {
        PREFIXES.iter().flat_map(|prefix| QUANTILES.map(|(name, _)| format!("{prefix}{name}"))).collect()
    },
    seconds: [15.0, 84.0],
    rattan_seconds: [0.0; 2],
    run,
};

/// What the ids begin with, at the two rates.
const PREFIXES: [&str; 2] = ["lateness/", "lateness/loaded/"];
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)];

/// One round: quantiles in µs, number of releases, gaps, and load.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Round {
    quantiles_us: [f64; 3],
    max_us: f64,
    released: u64,
    stalls: u64,
    stalled_ms: f64,
    load: f64,
}

fn run(context: &RunContext<'_>) -> Result<Vec<EvaluatedFigure>, MeasurementError> {
    let calm = Rounds::at(PER_SECOND, context)?;
    let mut results = calm.results(PREFIXES[0]);
    if QUANTILES.iter().any(|(name, _)| context.wants(&format!("{}{name}", PREFIXES[1]))) {
        let per_second =
            (PER_SECOND * LOAD / median(calm.ours.iter().map(|round| round.load))).min(PER_SECOND_MAX);
        results.extend(Rounds::at(per_second, context)?.results(PREFIXES[1]));
    }
    Ok(results)
}

/// The rounds at one rate.
struct Rounds {
    per_second: f64,
    ours: Vec<Round>,
    control: Vec<Round>,
}

impl Rounds {
    fn at(per_second: f64, context: &RunContext<'_>) -> Result<Rounds, MeasurementError> {
        let (rounds, duration) =
            context.either((7, time::Duration::from_millis(500)), (20, time::Duration::from_secs(1)));
        let pace = OfferedPace { per_second, together: 1, duration };
        let pipe = PipeSpec { delay: DELAY, ..PipeSpec::default() };
        let (mut ours, mut control) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.push(engine(Links::new(1, &pipe), pace, context)?);
            control.push(bare(Links::new(1, &pipe), pace, context)?);
        }
        Ok(Rounds { per_second, ours, control })
    }

    fn results(&self, prefix: &str) -> Vec<EvaluatedFigure> {
        let Rounds { per_second, ours, control } = self;
        let sum = |rounds: &[Round], of: &dyn Fn(&Round) -> f64| rounds.iter().map(of).sum::<f64>();
        let n = ours.iter().map(|round| round.released).sum();
        let result = |(i, (name, _)): (usize, &(&str, f64))| {
            let [us, reference] =
                [ours, control].map(|rounds| median(rounds.iter().map(|round| round.quantiles_us[i])));
            let criterion = match i {
                0 => {
                    let of = "the control and 1 µs";
                    Criterion::at_most(reference + MEDIAN_ALLOWED_US, 0.0, of)
                }
                _ => Criterion::at_most(reference, TAIL_ALLOWED, "the control"),
            };
            EvaluatedFigure::new(format!("{prefix}{name}"), "µs", us, n, criterion)
                .control(reference)
                .detail("frames_per_second", *per_second)
                .detail("load", median(ours.iter().map(|round| round.load)))
                .detail("rounds", ours.len() as f64)
                .detail("max_us", ours.iter().map(|round| round.max_us).fold(0.0, f64::max))
                .detail("control_max_us", control.iter().map(|round| round.max_us).fold(0.0, f64::max))
                .detail("stalls", sum(ours, &|round| round.stalls as f64))
                .detail("stalled_ms", sum(ours, &|round| round.stalled_ms))
                .detail("control_stalls", sum(control, &|round| round.stalls as f64))
                .detail("control_stalled_ms", sum(control, &|round| round.stalled_ms))
                .note("medians over rounds; stalls are gaps of more than 0.1 ms in which the thread did not run, by host stall or preemption")
        };
        QUANTILES.iter().enumerate().map(result).collect()
    }
}

/// Measures a round of the engine.
fn engine(links: Links, pace: OfferedPace, context: &RunContext<'_>) -> Result<Round, MeasurementError> {
    let (_, report) = links.run(pace, None, context)?;
    let lateness = report.ports[1].lateness;
    let worker = report.workers.first().cloned().unwrap_or_default();
    Ok(Round {
        quantiles_us: [lateness.p50_us, lateness.p99_us, lateness.p999_us],
        max_us: lateness.max_us,
        released: lateness.frames,
        stalls: worker.stalled.count + worker.preempted.count,
        stalled_ms: worker.stalled.total_ms + worker.preempted.total_ms,
        load: worker.load,
    })
}

/// Measures a round of a loop that reads the clock until each deadline. A source next to it sends
/// frames that are not received.
fn bare(links: Links, pace: OfferedPace, context: &RunContext<'_>) -> Result<Round, MeasurementError> {
    let ends = links.unattended();
    thread::scope(|scope| {
        let spinning = scope.spawn(move || spin(pace));
        pace.drive(&ends, context)?;
        Ok(spinning.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn spin(pace: OfferedPace) -> Round {
    let clock = Clock::start();
    let gap = Duration::from_secs_f64(1.0 / pace.per_second);
    let deadlines = (pace.duration.as_secs_f64() * pace.per_second) as usize;
    let (mut late_us, mut round) = (Vec::with_capacity(deadlines), Round::default());
    let (mut last, mut deadline) = (clock.now(), Time::ZERO + gap);
    while late_us.len() < deadlines {
        let now = clock.now();
        if now.since(last) > GAP {
            round.stalls += 1;
            round.stalled_ms += now.since(last).as_ms_f64();
        }
        last = now;
        // After a stall several deadlines are due, as frames would be.
        if now >= deadline {
            late_us.push(now.since(deadline).as_secs_f64() * 1e6);
            deadline = deadline.saturating_add(gap);
        }
    }
    let late_us = sorted(late_us);
    let at = |p| quantile(&late_us, p);
    let quantiles_us = QUANTILES.map(|(_, p)| at(p));
    Round { quantiles_us, max_us: at(1.0), released: late_us.len() as u64, load: 1.0, ..round }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_loop_meets_every_deadline_once_and_never_early() {
        let pace =
            OfferedPace { per_second: 100_000.0, together: 1, duration: time::Duration::from_millis(5) };
        let round = spin(pace);
        assert_eq!(round.released, 500);
        let [p50, p99, p999] = round.quantiles_us;
        assert!(0.0 <= p50 && p50 <= p99 && p99 <= p999 && p999 <= round.max_us, "{round:?}");
    }
}
