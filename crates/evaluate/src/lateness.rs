//! How late frames are released, beside a bare loop that spins to the same deadlines. The two take
//! turns on the same machine within the same seconds, each beside a source at the same pace;
//! medians over the turns count. Pauses of the machine hit both and are told apart by what both see
//! of the clock: gaps in which nothing ran. Once at a pace that leaves the engine mostly idle, and
//! once at the pace that should keep it busy for seven tenths of the time.

use super::pace::{Links, Pace};
use super::{Context, Needs, Outcome, Part, PartError, Rule};
use fastpath_engine::Clock;
use fastpath_link::PipeSpec;
use fastpath_units::{Duration, Time};
use std::thread;
use std::time;

/// Frames per second that are little for any machine, and the delay of the link.
const PER_SECOND: f64 = 50_000.0;
/// How busy the engine is to be with more of them, which the load at the first pace tells; and at
/// most how many.
const LOAD: f64 = 0.7;
const PER_SECOND_MAX: f64 = 500_000.0;
const DELAY: Duration = Duration::from_us(100);
/// What the issue allows at the median, µs, and as a share of the control beyond.
const MEDIAN_ALLOWED_US: f64 = 1.0;
const TAIL_ALLOWED: f64 = 0.5;
/// A gap in a loop that only reads the clock which is none of its own: the engine's measure too.
const GAP: Duration = Duration::from_us(100);

pub(super) const PART: Part = Part {
    step: "lateness",
    needs: Needs::Nothing,
    ids: |_| {
        PREFIXES.iter().flat_map(|prefix| QUANTILES.map(|(name, _)| format!("{prefix}{name}"))).collect()
    },
    seconds: [15.0, 84.0],
    rattan_seconds: [0.0; 2],
    run,
};

/// Of the ids at the two paces.
const PREFIXES: [&str; 2] = ["lateness/", "lateness/loaded/"];
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)];

/// One turn: its quantiles in µs, what it released, the gaps it saw, and how busy it was.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Turn {
    quantiles_us: [f64; 3],
    max_us: f64,
    released: u64,
    pauses: u64,
    paused_ms: f64,
    load: f64,
}

fn run(context: &Context<'_>) -> Result<Vec<Outcome>, PartError> {
    let calm = Turns::at(PER_SECOND, context)?;
    let mut outcomes = calm.outcomes(PREFIXES[0]);
    if QUANTILES.iter().any(|(name, _)| context.wants(&format!("{}{name}", PREFIXES[1]))) {
        let per_second = (PER_SECOND * LOAD / median(&calm.ours, &|turn| turn.load)).min(PER_SECOND_MAX);
        outcomes.extend(Turns::at(per_second, context)?.outcomes(PREFIXES[1]));
    }
    Ok(outcomes)
}

fn median(turns: &[Turn], of: &dyn Fn(&Turn) -> f64) -> f64 {
    let mut values: Vec<f64> = turns.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    fastpath_lab::audit::judge::quantile(&values, 0.5).unwrap_or(f64::NAN)
}

/// Turns at one pace.
struct Turns {
    per_second: f64,
    ours: Vec<Turn>,
    control: Vec<Turn>,
}

impl Turns {
    fn at(per_second: f64, context: &Context<'_>) -> Result<Turns, PartError> {
        let (turns, duration) =
            context.either((7, time::Duration::from_millis(500)), (20, time::Duration::from_secs(1)));
        let pace = Pace { per_second, together: 1, duration };
        let pipe = PipeSpec { delay: DELAY, ..PipeSpec::default() };
        let (mut ours, mut control) = (Vec::new(), Vec::new());
        for _ in 0..turns {
            ours.push(engine(Links::new(1, &pipe), pace, context)?);
            control.push(bare(Links::new(1, &pipe), pace, context)?);
        }
        Ok(Turns { per_second, ours, control })
    }

    fn outcomes(&self, prefix: &str) -> Vec<Outcome> {
        let Turns { per_second, ours, control } = self;
        let sum = |turns: &[Turn], of: &dyn Fn(&Turn) -> f64| turns.iter().map(of).sum::<f64>();
        let n = ours.iter().map(|turn| turn.released).sum();
        let outcome = |(i, (name, _)): (usize, &(&str, f64))| {
            let [us, reference] = [ours, control].map(|turns| median(turns, &|turn| turn.quantiles_us[i]));
            let rule = match i {
                0 => {
                    let of = "the control and 1 µs";
                    Rule::AtMost { bound: reference + MEDIAN_ALLOWED_US, tolerance: 0.0, of }
                }
                _ => Rule::AtMost { bound: reference, tolerance: TAIL_ALLOWED, of: "the control" },
            };
            Outcome::new(format!("{prefix}{name}"), "µs", us, n, rule)
                .control(reference)
                .detail("frames_per_second", *per_second)
                .detail("load", median(ours, &|turn| turn.load))
                .detail("turns", ours.len() as f64)
                .detail("max_us", ours.iter().map(|turn| turn.max_us).fold(0.0, f64::max))
                .detail("control_max_us", control.iter().map(|turn| turn.max_us).fold(0.0, f64::max))
                .detail("pauses", sum(ours, &|turn| turn.pauses as f64))
                .detail("paused_ms", sum(ours, &|turn| turn.paused_ms))
                .detail("control_pauses", sum(control, &|turn| turn.pauses as f64))
                .detail("control_paused_ms", sum(control, &|turn| turn.paused_ms))
                .note("medians over turns; pauses are gaps of more than 0.1 ms in which the thread did not run, whoever took its core")
        };
        QUANTILES.iter().enumerate().map(outcome).collect()
    }
}

/// The engine releases frames that come at the pace.
fn engine(links: Links, pace: Pace, context: &Context<'_>) -> Result<Turn, PartError> {
    let (_, report) = links.run(pace, None, context)?;
    let lateness = report.ports[1].lateness;
    let worker = report.workers.first().cloned().unwrap_or_default();
    Ok(Turn {
        quantiles_us: [lateness.p50_us, lateness.p99_us, lateness.p999_us],
        max_us: lateness.max_us,
        released: lateness.frames,
        pauses: worker.stalled.count + worker.preempted.count,
        paused_ms: worker.stalled.total_ms + worker.preempted.total_ms,
        load: worker.load,
    })
}

/// A loop reads the clock until each deadline, beside a source whose frames nobody takes.
fn bare(links: Links, pace: Pace, context: &Context<'_>) -> Result<Turn, PartError> {
    let ends = links.unattended();
    thread::scope(|scope| {
        let spinning = scope.spawn(move || spin(pace));
        pace.drive(&ends, context)?;
        Ok(spinning.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn spin(pace: Pace) -> Turn {
    let clock = Clock::start();
    let gap = Duration::from_secs_f64(1.0 / pace.per_second);
    let deadlines = (pace.duration.as_secs_f64() * pace.per_second) as usize;
    let (mut late_us, mut turn) = (Vec::with_capacity(deadlines), Turn::default());
    let (mut last, mut deadline) = (clock.now(), Time::ZERO + gap);
    while late_us.len() < deadlines {
        let now = clock.now();
        if now.since(last) > GAP {
            turn.pauses += 1;
            turn.paused_ms += now.since(last).as_ms_f64();
        }
        last = now;
        // After a pause several are due, as frames would be.
        if now >= deadline {
            late_us.push(now.since(deadline).as_secs_f64() * 1e6);
            deadline = deadline.saturating_add(gap);
        }
    }
    late_us.sort_by(f64::total_cmp);
    let at = |p| fastpath_lab::audit::judge::quantile(&late_us, p).unwrap_or(f64::NAN);
    let quantiles_us = QUANTILES.map(|(_, p)| at(p));
    Turn { quantiles_us, max_us: at(1.0), released: late_us.len() as u64, load: 1.0, ..turn }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_loop_meets_every_deadline_once_and_never_early() {
        let pace = Pace { per_second: 100_000.0, together: 1, duration: time::Duration::from_millis(5) };
        let turn = spin(pace);
        assert_eq!(turn.released, 500);
        let [p50, p99, p999] = turn.quantiles_us;
        assert!(0.0 <= p50 && p50 <= p99 && p99 <= p999 && p999 <= turn.max_us, "{turn:?}");
    }
}
