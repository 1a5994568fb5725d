//! Half again as much as the engine carries, on many links, under a stated tolerance: it has to say
//! which links broke it, and every frame has to be in the books. Half of what it carries, under the
//! same tolerance, is the control.

use super::pace::{Links, Pace, Paced};
use super::{Context, Needs, Outcome, Part, PartError, Rule};
use fastpath_engine::Report;
use fastpath_engine::port::BURST;
use fastpath_link::PipeSpec;
use fastpath_units::Duration;
use std::time;

/// Links, in both directions of each of which frames go.
const LINKS: usize = 16;
/// As in the issue.
const OFFERED: f64 = 1.5;
const CONTROL: f64 = 0.5;
/// A turn over full ports takes longer, one over half-empty ones does not.
const TOLERANCE: Duration = Duration::from_us(50);
const DELAY: Duration = Duration::from_us(10);

pub(super) const PART: Part = Part {
    step: "overload",
    needs: Needs::Nothing,
    ids: |_| vec!["overload/150%".to_owned()],
    seconds: [2.0, 10.0],
    rattan_seconds: [0.0; 2],
    run,
};

fn run(context: &Context<'_>) -> Result<Vec<Outcome>, PartError> {
    let duration = context.either(time::Duration::from_millis(500), time::Duration::from_secs(3));
    let offer = |per_second: f64, tolerance| {
        let pipe = PipeSpec { delay: DELAY, ..PipeSpec::default() };
        Links::new(LINKS, &pipe).run(Pace { per_second, together: BURST, duration }, tolerance, context)
    };
    // More than any machine carries: what comes out is what this one does.
    let (most, _) = offer(1e9, None)?;
    let capacity = most.received as f64 / duration.as_secs_f64();
    let (calm, calm_report) = offer(CONTROL * capacity, Some(TOLERANCE))?;
    let (paced, report) = offer(OFFERED * capacity, Some(TOLERANCE))?;
    Ok(vec![told(capacity, (&calm, &calm_report), (&paced, &report))])
}

fn told(
    capacity: f64,
    (calm, calm_report): (&Paced, &Report),
    (paced, report): (&Paced, &Report),
) -> Outcome {
    let rule = Rule::AtLeast { bound: 1.0, tolerance: 0.0, of: "one link that is named" };
    let broken = report.broken();
    let mut outcome = Outcome::new(
        "overload/150%".to_owned(),
        "link directions late",
        broken.len() as f64,
        paced.wanted,
        rule,
    )
    .control(calm_report.broken().len() as f64)
    .detail("capacity_packets_per_second", capacity)
    .detail("frames_offered", paced.wanted as f64)
    .detail("frames_taken_by_the_ports", paced.taken as f64)
    .detail("frames_delivered", report.conservation.delivered as f64)
    .detail("frames_dropped", report.conservation.dropped.values().sum::<u64>() as f64)
    .detail("frames_held", report.conservation.held as f64)
    .detail("late_frames", report.lateness.late as f64)
    .detail("control_late_frames", calm_report.lateness.late as f64)
    .detail("control_frames_offered", calm.wanted as f64);
    let books = report.conservation.balances() && calm_report.conservation.balances();
    outcome.pass &= books && report.is_broken();
    let balance = if books { "every frame is in the books" } else { "THE BOOKS DO NOT BALANCE" };
    let first = broken.first().map_or(String::new(), |first| format!("; the first of them: {first}"));
    outcome.note(format!(
        "tolerance {TOLERANCE}, {} directions; {balance}; what the ports' rings did not take was lost before the engine{first}",
        2 * LINKS
    ))
}
