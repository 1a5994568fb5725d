//! A run in virtual time.

use super::evidence::Evidence;
use super::files::SPEC;
use super::plan::Experiment;
use super::step::ReplayInputs;
use fastpath::Replay;
use fastpath::replay::CaptureAt;
use fastpath::{Error, Result};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

/// Does a run. The same experiment gives the same numbers on every machine.
pub(super) fn run(
    plan: &Experiment,
    inputs: &ReplayInputs,
    number: u64,
    directory: &Path,
) -> Result<Evidence> {
    let (spec, ..) = plan.network(number)?;
    let kept = directory.join(SPEC);
    let description = fastpath_spec::describe(&spec.topology).to_json();
    fs::write(&kept, format!("{description:#}\n")).map_err(Error::file(&kept))?;
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
        Replay::through(spec.topology).inputs(captures).outputs(arrivals).seed(plan.seed(number));
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
    let times = columns
        .in_ps
        .iter()
        .zip(&columns.out_ps)
        .filter(|(_, out)| **out != fastpath::replay::TimeColumns::NEVER);
    let delays_ms = times.map(|(entered, left)| (left - entered) as f64 / 1e9).collect();
    Ok(Evidence { frames, delays_ms, flows: summary.traffic, ..Evidence::default() })
}

fn capture(at: &str, file: &Path) -> Result<CaptureAt> {
    format!("{at}={}", file.display()).parse().map_err(Error::Argument)
}
