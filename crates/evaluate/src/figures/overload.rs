//! Many links are offered 150 % of the engine's capacity, with a lateness tolerance. The engine has
//! to name the links that exceed the tolerance, and frame accounting has to balance. The control
//! offers 50 % of the capacity with the same tolerance.

use super::{Figure, Measurement, Needs};
use crate::paced_links::{Links, OfferedPace, PacedFrames};
use crate::{MeasurementError, RunContext};
use fastpath_engine::Report;
use fastpath_engine::port::BURST;
use fastpath_link::PipeSpec;
use fastpath_report::{Criterion, EvaluatedFigure};
use fastpath_units::Duration;
use std::time;

/// Number of links. Frames flow in both directions of each.
const LINKS: usize = 16;
/// The offered load, and that of the control, as a share of the capacity.
const OFFERED: f64 = 1.5;
const CONTROL: f64 = 0.5;
/// An iteration over full ports takes longer than this, one over half-empty ports does not.
const TOLERANCE: Duration = Duration::from_us(50);
const DELAY: Duration = Duration::from_us(10);

pub(super) const FIGURES: &[Figure] = &[Figure {
    id: "overload",
    title: "Overload: late links are named and all frames are accounted for",
    original: "none published",
    x: None,
    y: None,
    note: "",
    variants: &[("150%", "150 % of the capacity offered")],
}];

pub(super) const MEASUREMENTS: &[Measurement] = &[PART];

const PART: Measurement = Measurement {
    step: "overload",
    needs: Needs::Nothing,
    ids: |_| vec!["overload/150%".to_owned()],
    seconds: [2.0, 10.0],
    rattan_seconds: [0.0; 2],
    run,
};

fn run(context: &RunContext<'_>) -> Result<Vec<EvaluatedFigure>, MeasurementError> {
    let duration = context.either(time::Duration::from_millis(500), time::Duration::from_secs(3));
    let offer = |per_second: f64, tolerance| {
        let pipe = PipeSpec { delay: DELAY, ..PipeSpec::default() };
        Links::new(LINKS, &pipe).run(
            OfferedPace { per_second, together: BURST, duration },
            tolerance,
            context,
        )
    };
    // Offer more than any machine forwards: the output is the capacity of this one.
    let (most, _) = offer(1e9, None)?;
    let capacity = most.received as f64 / duration.as_secs_f64();
    let (calm, calm_report) = offer(CONTROL * capacity, Some(TOLERANCE))?;
    let (paced, report) = offer(OFFERED * capacity, Some(TOLERANCE))?;
    Ok(vec![result(capacity, (&calm, &calm_report), (&paced, &report))])
}

fn result(
    capacity: f64,
    (calm, calm_report): (&PacedFrames, &Report),
    (paced, report): (&PacedFrames, &Report),
) -> EvaluatedFigure {
    let criterion = Criterion::at_least(1.0, 0.0, "one named link");
    let broken = report.broken();
    let mut result = EvaluatedFigure::new(
        "overload/150%".to_owned(),
        "link directions late",
        broken.len() as f64,
        paced.wanted,
        criterion,
    )
    .control(calm_report.broken().len() as f64)
    .detail("capacity_packets_per_second", capacity)
    .detail("frames_offered", paced.wanted as f64)
    .detail("frames_taken_by_the_ports", paced.taken as f64)
    .detail("frames_delivered", report.accounting.delivered as f64)
    .detail("frames_dropped", report.accounting.dropped.values().sum::<u64>() as f64)
    .detail("frames_held", report.accounting.held as f64)
    .detail("late_frames", report.lateness.late as f64)
    .detail("control_late_frames", calm_report.lateness.late as f64)
    .detail("control_frames_offered", calm.wanted as f64);
    let balances = report.accounting.balances() && calm_report.accounting.balances();
    result.pass &= balances && report.is_broken();
    let accounting = if balances { "frame accounting balances" } else { "FRAME ACCOUNTING DOES NOT BALANCE" };
    let first = broken.first().map_or(String::new(), |first| format!("; the first of them: {first}"));
    result.note(format!(
        "tolerance {TOLERANCE}, {} directions; {accounting}; frames that the ports' rings did not take were lost before the engine{first}",
        2 * LINKS
    ))
}
