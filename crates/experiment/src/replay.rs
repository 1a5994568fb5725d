//! A run in virtual time.

use super::evidence::Evidence;
use super::plan::Experiment;
use super::step::ReplayInputs;
use fastpath::Replay;
use fastpath::replay::CaptureAt;
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
    let delays_ps = plan.metrics.iter().any(super::metric::Metric::is_delay).then(|| {
        let times = columns.in_ps.iter().zip(&columns.out_ps);
        let delivered = times.filter(|(_, out)| **out != fastpath::replay::TimeColumns::NEVER);
        delivered.map(|(entered, left)| left - entered).collect()
    });
    Ok(Evidence {
        frames,
        delays_ps,
        flows: summary.traffic,
        transfers: summary.transfers,
        ..Evidence::default()
    })
}

fn capture(at: &str, file: &Path) -> Result<CaptureAt> {
    format!("{at}={}", file.display()).parse().map_err(Error::Argument)
}
