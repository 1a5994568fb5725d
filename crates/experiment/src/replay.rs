//! A run in virtual time.

use super::evidence::{DirectionCounts, Evidence, Readings, SAMPLE};
use super::metric::{GAUGES, Metric};
use super::plan::Experiment;
use super::step::ReplayInputs;
use fastpath::Replay;
use fastpath::link::QueueState;
use fastpath::replay::{CaptureAt, DirectionResults};
use fastpath::{Error, Result};
use fastpath_spec::NetworkSpec;
use std::ops::ControlFlow;
use std::path::Path;

/// Does a run. The same experiment gives the same numbers on every machine.
pub(super) fn run(
    plan: &Experiment,
    inputs: &ReplayInputs,
    number: u64,
    network: NetworkSpec,
    directory: &Path,
) -> Result<Evidence> {
    let captures: Vec<CaptureAt> = inputs
        .inputs
        .iter()
        .map(|(at, file)| capture(at, &plan.base.join(&**file)))
        .collect::<Result<_>>()?;
    let arrivals: Vec<CaptureAt> = inputs
        .outputs
        .iter()
        .map(|at| capture(at, &directory.join(format!("{}.pcap", at.replace(':', "-")))))
        .collect::<Result<_>>()?;
    let mut replay =
        Replay::through(network.topology).inputs(captures).outputs(arrivals).seed(plan.seed(number));
    if let Some(end) = inputs.until {
        replay = replay.until(end);
    }
    let is_sampled = plan.metrics.iter().any(Metric::is_sampled);
    if is_sampled {
        replay = replay.sample_queues(SAMPLE.into());
    }
    let (summary, columns) = replay.run_columns(&[], &mut |_| ControlFlow::Continue(()))?;
    if let Some(problem) = summary.problems.first() {
        return Err(Error::argument(problem.to_string()));
    }
    let mut frames = summary
        .accounting
        .dropped
        .iter()
        .map(|(why, n)| (why.to_string(), *n))
        .collect::<std::collections::BTreeMap<_, _>>();
    frames.insert("delivered".to_owned(), summary.accounting.delivered);
    let delays_ps = plan.metrics.iter().any(Metric::is_delay).then(|| {
        let times = columns.in_ps.iter().zip(&columns.out_ps);
        let delivered = times.filter(|(_, out)| **out != fastpath::replay::TimeColumns::NEVER);
        delivered.map(|(entered, left)| left - entered).collect()
    });
    Ok(Evidence {
        frames,
        delays_ps,
        counters: summary.links.iter().flat_map(counters).collect(),
        samples: is_sampled.then(|| summary.links.iter().flat_map(samples).collect()),
        flows: summary.traffic,
        transfers: summary.transfers,
        ..Evidence::default()
    })
}

fn capture(at: &str, file: &Path) -> Result<CaptureAt> {
    format!("{at}={}", file.display()).parse().map_err(Error::Argument)
}

/// The counters of a direction at the end of a run.
fn counters(direction: &DirectionResults) -> Vec<Readings> {
    let DirectionResults { link, from, dropped, .. } = direction;
    let counts = DirectionCounts {
        frames: [direction.frames_in, direction.frames_out],
        bytes: [direction.bytes_in, direction.bytes_out],
        marked: direction.marked,
        duplicated: direction.duplicated,
        corrupted: direction.corrupted,
    };
    counts.readings((link, from), dropped)
}

/// The queue of a direction over time.
fn samples(direction: &DirectionResults) -> Vec<Readings> {
    let of = |name: &str, value: fn(&QueueState) -> f64| Readings {
        link: direction.link.clone(),
        from: direction.from.clone(),
        name: name.to_owned(),
        values: direction.queue.iter().map(value).collect(),
    };
    let [delay, frames, bytes] = GAUGES;
    vec![
        of(delay, |queue| queue.delay.as_ms_f64()),
        of(frames, |queue| queue.volume.packets as f64),
        of(bytes, |queue| queue.volume.bytes as f64),
    ]
}
