//! What of an experiment is not done yet, and the files that another machine needs to do it.

use super::ExperimentOptions;
use super::files::Directory;
use super::inputs::{Contents, Inputs};
use super::plan::Experiment;
use super::resume;
use super::step::RunKind;
use fastpath::{Error, Result};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The runs of an experiment that are not done yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MissingRuns {
    /// Their numbers.
    pub runs: Vec<u64>,
    /// Whether they need labs of this machine; otherwise they are in virtual time.
    pub in_labs: bool,
    /// The files that they are made of, as absolute paths: the experiment, descriptions, traces,
    /// captures, and what commands name relative to the directory of work. Programs are not among
    /// them, and neither are images and root file systems of hosts.
    pub files: BTreeSet<PathBuf>,
}

impl MissingRuns {
    /// As JSON: `runs`, `labs`, `files`.
    pub fn json(&self) -> Value {
        json!({ "runs": self.runs, "labs": self.in_labs, "files": self.files })
    }
}

/// Returns what of an experiment is not done yet.
///
/// # Errors
/// As [`run`](super::run), before it does any run.
pub fn missing(plan: &Experiment, options: &ExperimentOptions) -> Result<MissingRuns> {
    let directory = Directory::open(&options.directory)?;
    let runs = prepare(plan, options, &directory)?;
    let mut files = BTreeSet::from([absolute(&plan.path)?]);
    let contents = Contents::default();
    // The runs of a condition have one network.
    let mut order = runs.clone();
    order.sort_by_key(|run| (run % plan.conditions(), *run));
    let mut network = None;
    for run in order {
        let condition = run % plan.conditions();
        if network.as_ref().is_none_or(|(of, _)| *of != condition) {
            let found = plan.network(run)?;
            for path in found.files.iter().chain([&found.path]) {
                files.insert(absolute(path)?);
            }
            network = Some((condition, found.spec));
        }
        let (_, spec) = network.as_ref().expect("it was read");
        let inputs = Inputs::of(plan, run, spec, &contents)?;
        for path in inputs.relative_files() {
            files.insert(absolute(path)?);
        }
    }
    if let RunKind::Replay(replay) = &plan.mode {
        for (_, capture) in &replay.inputs {
            files.insert(absolute(&plan.base.join(&**capture))?);
        }
    }
    // A guest needs no rights and no quiet machine.
    let in_labs = matches!(plan.mode, RunKind::Lab(_)) && !plan.is_virtual;
    Ok(MissingRuns { runs, in_labs, files })
}

/// Prepares the directory of results and returns the runs to do.
///
/// # Errors
/// A directory of another experiment, runs that have changed, a run that the experiment lacks.
pub(super) fn prepare(
    plan: &Experiment,
    options: &ExperimentOptions,
    directory: &Directory,
) -> Result<Vec<u64>> {
    let all = plan.runs();
    if let Some(run) = options.only.iter().flatten().find(|run| **run >= all) {
        let what = format!("--only {run}: {} has {all} runs; write 0 to {}", plan.name, all - 1);
        return Err(Error::Argument(what));
    }
    resume::prepare(plan, directory, options.changed)?;
    let is_asked = |run: u64| options.only.as_ref().is_none_or(|only| only.contains(&run));
    if options.retry {
        let left_out = directory.finished()?.into_iter().filter(|run| is_asked(run.run) && !run.is_usable());
        left_out.map(|run| run.run).try_for_each(|run| directory.forget(run))?;
    }
    let is_missing = |run: &u64| options.shard.has(*run) && is_asked(*run) && !directory.has(*run);
    Ok((0..all).filter(is_missing).collect())
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(Error::file(path))
}
