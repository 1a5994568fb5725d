//! Which finished runs belong to the experiment as it is now: a run whose network, inputs or
//! condition has changed since does not. Metrics of the others are computed again from what was
//! kept if the file has changed.

use super::files::Directory;
use super::inputs::{Contents, Inputs, difference};
use super::plan::Experiment;
use super::read;
use fastpath::{Error, Result};
use fastpath_record::Repetition;
use fastpath_spec::NetworkSpec;
use fastpath_text::mistake::Remarks;
use serde_json::Value;
use std::fmt::Write;

/// How many runs a message names.
const NAMED_MAX: usize = 5;

/// What to do with finished runs that have changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Changed {
    /// The experiment is refused, with what has changed.
    #[default]
    Refuse,
    /// The runs are done again.
    Retry,
}

/// Prepares a directory for an experiment: refuses or forgets runs that have changed, and measures
/// the others again if the file has.
///
/// # Errors
/// Runs that have changed, unless they are done again; a directory that cannot be read or written.
pub(super) fn prepare(plan: &Experiment, directory: &Directory, changed: Changed) -> Result<()> {
    let kept = directory.plan()?;
    let is_same_file = kept.as_deref() == Some(plan.text());
    let runs = directory.finished()?;
    if let Some(kept) = kept.filter(|_| !is_same_file && !runs.is_empty() && changed == Changed::Refuse) {
        check_matrix(plan, &kept, directory)?;
    }
    let changes = changes(plan, directory, &runs, is_same_file)?;
    match changed {
        Changed::Refuse if !changes.is_empty() => return Err(refusal(directory, &runs, &changes)),
        Changed::Refuse => {}
        Changed::Retry => changes.iter().try_for_each(|(run, _)| directory.forget(*run))?,
    }
    if is_same_file {
        return Ok(());
    }
    for mut run in directory.finished()? {
        if let Some(evidence) = directory.evidence(run.run)? {
            let before = run.clone();
            plan.measure(&mut run, &evidence);
            if run != before {
                directory.keep_record(&run)?;
            }
        }
    }
    directory.keep_plan(plan)
}

/// Refuses results that changed while the experiment ran.
///
/// # Errors
/// Runs that have changed; a directory that cannot be read.
pub(super) fn check(plan: &Experiment, directory: &Directory, runs: &[Repetition]) -> Result<()> {
    let changes = changes(plan, directory, runs, true)?;
    if changes.is_empty() { Ok(()) } else { Err(refusal(directory, runs, &changes)) }
}

/// Refuses the results of another matrix: their numbers are those of other conditions.
fn check_matrix(plan: &Experiment, kept: &str, directory: &Directory) -> Result<()> {
    let former = read::experiment(kept, &plan.path, &mut Remarks::new(kept)).map(|(former, _)| former);
    let axes = |plan: &Experiment| -> Vec<_> {
        plan.axes.iter().map(|axis| (axis.name.clone(), axis.values.clone())).collect()
    };
    let what = match &former {
        None => "its file cannot be read",
        Some(former) if axes(former) != axes(plan) => "[matrix] differs",
        Some(former) if former.seeds != plan.seeds => "seeds differs",
        Some(_) => return Ok(()),
    };
    Err(Error::Argument(format!(
        "{}: results of another experiment, or of this one before its file was changed: {what}; write \
         --retry-changed to keep the runs that stay the same, or --output with another directory",
        directory.path().display()
    )))
}

/// Returns the finished runs that are not those of the experiment as it is now, and why.
fn changes(
    plan: &Experiment,
    directory: &Directory,
    runs: &[Repetition],
    is_same_file: bool,
) -> Result<Vec<(u64, String)>> {
    // The runs of a condition have one network.
    let mut order: Vec<&Repetition> = runs.iter().collect();
    order.sort_by_key(|run| (run.run % plan.conditions(), run.run));
    let contents = Contents::default();
    let mut network: Option<(u64, NetworkSpec, Value)> = None;
    let mut changes = Vec::new();
    for run in order {
        if run.run >= plan.runs() || run.condition != plan.place(run.run) {
            changes.push((run.run, "it has another condition".to_owned()));
            continue;
        }
        let condition = run.run % plan.conditions();
        if network.as_ref().is_none_or(|(of, ..)| *of != condition) {
            let spec = plan.network(run.run)?.spec;
            let description = fastpath_spec::describe(&spec.topology).to_json();
            network = Some((condition, spec, description));
        }
        let (_, spec, description) = network.as_ref().expect("it was read");
        let why = change(plan, directory, run, (spec, description), &contents, is_same_file)?;
        changes.extend(why.map(|why| (run.run, why)));
    }
    changes.sort();
    Ok(changes)
}

/// Returns why a finished run is not that of the experiment as it is now, if so.
fn change(
    plan: &Experiment,
    directory: &Directory,
    run: &Repetition,
    (network, description): (&NetworkSpec, &Value),
    contents: &Contents,
    is_same_file: bool,
) -> Result<Option<String>> {
    if let Some(what) = directory.description(run.run)?.and_then(|was| difference(&was, description)) {
        return Ok(Some(format!("its network: {what}")));
    }
    let is = Inputs::of(plan, run.run, network, contents)?;
    let Some(was) = directory.inputs(run.run)? else {
        // Runs of former versions have no inputs.
        let why = "it was kept without its inputs, and the file has changed";
        return Ok((!is_same_file).then(|| why.to_owned()));
    };
    let differences = is.differences(&was);
    if !differences.is_empty() {
        return Ok(Some(differences.join("; ")));
    }
    if is_same_file {
        return Ok(None);
    }
    let Some(evidence) = directory.evidence(run.run)? else { return Ok(None) };
    Ok(plan.metrics.iter().find_map(|metric| metric.lacks(&evidence)))
}

fn refusal(directory: &Directory, runs: &[Repetition], changes: &[(u64, String)]) -> Error {
    let mut words = format!(
        "{}: {} of {} finished runs are not of this experiment any more:",
        directory.path().display(),
        changes.len(),
        runs.len()
    );
    for (run, why) in changes.iter().take(NAMED_MAX) {
        let of = runs.iter().find(|known| known.run == *run).map(Repetition::condition_words);
        let of = of.filter(|words| !words.is_empty()).map_or(String::new(), |words| format!(" ({words})"));
        let _ = write!(words, "\n  run {run}{of}: {why}");
    }
    if changes.len() > NAMED_MAX {
        let _ = write!(words, "\n  and {} more", changes.len() - NAMED_MAX);
    }
    words.push_str("\nwrite --retry-changed to do them again, or --output with another directory");
    Error::Argument(words)
}
