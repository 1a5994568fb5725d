//! Experiments: a matrix of conditions, repeated with seeds, run in labs or in virtual time,
//! measured, judged and kept.
//!
//! ```text
//!  FILE.toml ─▶ read.rs ─▶ Experiment { axes, seeds, steps, metrics, expectations }
//!                 │ vary.rs: condition → description; check.rs   (every one before anything starts)
//!                 ▼
//!  run n ─▶ live.rs (lab) or replay.rs ─▶ Evidence ─▶ metric.rs ─▶ samples ─▶ DIR/runs/n/run.json
//!                                                                    │
//!  DIR/results.csv, results.parquet, report.html ◀─ table.rs ◀─ summary.rs ◀─┘
//! ```
//!
//! A run is done when its `run.json` exists, which is renamed into place as the last step. A killed
//! experiment therefore continues where it stopped. `resume.rs` compares finished runs with what
//! the experiment says now: a table never mixes runs of different networks, captures or programs.

#![forbid(unsafe_code)]

mod axis;
mod braces;
mod check;
#[cfg(test)]
mod every_word_tests;
mod evidence;
mod expect;
mod files;
mod inputs;
#[cfg(target_os = "linux")]
mod live;
mod metric;
mod missing;
mod page;
#[cfg(feature = "parquet")]
mod parquet_table;
mod plan;
mod read;
mod replay;
mod resume;
mod step;
mod summary;
mod table;
mod vary;
mod verdict;
#[cfg(target_os = "linux")]
mod virtual_run;

use evidence::Evidence;
pub use expect::Judged;
use fastpath::{Error, Result};
use fastpath_record::Repetition;
use fastpath_text::mistake::Remarks;
use fastpath_units::matrix::Shard;
use files::Directory;
use inputs::{Contents, Inputs};
pub use missing::{MissingRuns, missing};
pub use plan::Experiment;
pub use resume::Changed;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use step::RunKind;
pub use summary::{Comparison, Summary};
use vary::ConditionNetwork;
pub use verdict::tests;

/// How an experiment is carried out.
#[derive(Debug, Default)]
pub struct ExperimentOptions {
    /// The directory of results.
    pub directory: PathBuf,
    /// The part of the runs to do.
    pub shard: Shard,
    /// The only runs to do, by number; all by default.
    pub only: Option<BTreeSet<u64>>,
    /// Number of runs at a time in virtual time; one per core by default. Labs run one at a time.
    pub threads: Option<NonZeroUsize>,
    /// Do the runs again that were left out: disturbed, or not come to their end.
    pub retry: bool,
    /// What to do with finished runs whose network, steps, captures, traces or programs have
    /// changed.
    pub changed: Changed,
}

/// What an experiment has found.
#[derive(Debug)]
pub struct Findings {
    /// The finished runs, by number.
    pub runs: Vec<Repetition>,
    /// The number of runs of the whole experiment.
    pub all: u64,
    /// The medians of the metrics by condition.
    pub summaries: Vec<Summary>,
    /// The differences between conditions that differ in one value.
    pub comparisons: Vec<Comparison>,
    /// The expectations, judged on the finished runs.
    pub judged: Vec<Judged>,
}

impl Findings {
    /// Whether every expectation holds, and every finished run came to its end undisturbed.
    pub fn is_good(&self) -> bool {
        self.judged.iter().all(|judged| judged.holds()) && self.runs.iter().all(Repetition::is_usable)
    }

    /// Returns all findings as JSON.
    pub fn json(&self, plan: &Experiment) -> Value {
        json!({
            "experiment": plan.name,
            "configuration": plan.configuration(),
            "finished": self.runs.len(),
            "of": self.all,
            "runs": self.runs,
            "summary": self.summaries,
            "comparisons": self.comparisons,
            "expectations": self.judged,
        })
    }

    /// Returns the tables of a terminal.
    pub fn text(&self, plan: &Experiment) -> String {
        table::text(plan, self)
    }
}

/// Carries an experiment out: does the runs that are missing and writes the tables. `progress` is
/// called with the number of finished runs and of all runs to do; `stop` ends the experiment after
/// the steps in progress.
///
/// # Errors
/// A directory of another experiment, runs that have changed, a disk that is full,
/// [`Error::Interrupted`] after `stop`. A run that fails is not an error: its record has the
/// reason.
pub fn run(
    plan: &Experiment,
    options: &ExperimentOptions,
    stop: &AtomicBool,
    progress: &dyn Fn(usize, usize),
) -> Result<Findings> {
    let directory = Directory::open(&options.directory)?;
    let todo = missing::prepare(plan, options, &directory)?;
    progress(0, todo.len());
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = match plan.mode {
        // The runs share one clock: that of the machine.
        RunKind::Lab(_) if !plan.is_in_guests() => 1,
        _ => options.threads.map_or(cores, NonZeroUsize::get),
    };
    work(plan, &directory, &todo, threads.min(todo.len()), stop, progress)?;
    if stop.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    let finished = directory.finished()?;
    resume::check(plan, &directory, &finished)?;
    let findings = find(plan, finished);
    directory.write_tables(plan, &findings)?;
    Ok(findings)
}

/// Judges and summarises finished runs.
pub fn find(plan: &Experiment, runs: Vec<Repetition>) -> Findings {
    let judged =
        plan.expectations.iter().map(|expectation| expectation.judge(&plan.metrics, &runs)).collect();
    let summaries = summary::summaries(plan, &runs);
    let comparisons = summary::comparisons(plan, &runs);
    Findings { runs, all: plan.runs(), summaries, comparisons, judged }
}

fn work(
    plan: &Experiment,
    directory: &Directory,
    todo: &[u64],
    threads: usize,
    stop: &AtomicBool,
    progress: &dyn Fn(usize, usize),
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let contents = &Contents::default();
    let (to_writer, from_threads) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (to_writer, next) = (to_writer.clone(), &next);
            scope.spawn(move || {
                while let Some(&number) = todo.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let done = one(plan, directory, number, contents, stop);
                    // The receiver has met an error and is gone, or the experiment is stopped.
                    if stop.load(Ordering::Relaxed) || to_writer.send(done).is_err() {
                        return;
                    }
                }
            });
        }
        drop(to_writer);
        for (done, result) in (1..).zip(from_threads) {
            result?;
            progress(done, todo.len());
        }
        Ok(())
    })
}

/// Returns what to write to look at a run that was left out, if it can be the same again.
pub fn again(plan: &Experiment, findings: &Findings, options: &ExperimentOptions) -> Option<String> {
    let run = findings.runs.iter().find(|run| !run.is_usable()).filter(|_| plan.is_virtual)?;
    let path = options.directory.join(format!("runs/{:04}", run.run));
    Some(format!("fastpath lab again {} --capture packets.pcapng", path.display()))
}

/// Does one run, again if the machine disturbed it, and keeps its record.
fn one(
    plan: &Experiment,
    directory: &Directory,
    number: u64,
    contents: &Contents,
    stop: &AtomicBool,
) -> Result<()> {
    let Some(place) = directory.claim(number)? else { return Ok(()) };
    #[cfg(target_os = "linux")]
    if plan.is_in_guests() {
        let ConditionNetwork { spec: network, .. } = plan.network(number)?;
        let run = (number, &network.topology);
        let problem = virtual_run::run(plan, directory, run, &place.path, stop)?;
        if problem.is_none() || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let evidence = Evidence { problem, directory: place.path.clone(), ..Evidence::default() };
        let inputs = Inputs::of(plan, number, &network, contents)?.without_results();
        return directory.keep(&plan.repetition(number, 1, &evidence), &evidence, &inputs);
    }
    for attempt in 1.. {
        let (evidence, inputs) = attempt_run(plan, number, &place.path, contents, stop)?;
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let repetition = plan.repetition(number, attempt, &evidence);
        if repetition.disturbed.is_none() || attempt >= plan.attempts {
            return directory.keep(&repetition, &evidence, &inputs);
        }
    }
    unreachable!("attempts end")
}

/// Does one run in its directory. A run that could not be done has its error as problem.
fn attempt_run(
    plan: &Experiment,
    number: u64,
    directory: &Path,
    contents: &Contents,
    stop: &AtomicBool,
) -> Result<(Evidence, Inputs)> {
    let ConditionNetwork { spec: network, path, .. } = plan.network(number)?;
    let inputs = Inputs::of(plan, number, &network, contents)?;
    files::keep_description(directory, &network.topology)?;
    let evidence = match &plan.mode {
        #[cfg(target_os = "linux")]
        RunKind::Lab(steps) => live::run(plan, steps, number, (network, &path), directory, stop),
        #[cfg(not(target_os = "linux"))]
        RunKind::Lab(_) => {
            let _ = (path, stop);
            Err(Error::argument("labs need Linux; write a [replay] table instead of steps"))
        }
        RunKind::Replay(replay) => replay::run(plan, replay, number, network, directory),
    };
    let evidence = match evidence {
        Ok(evidence) => Evidence { directory: directory.to_owned(), ..evidence },
        // The next runs would fail in the same way.
        Err(error @ (Error::File { .. } | Error::Accounting(_))) => return Err(error),
        Err(error) => Evidence { problem: Some(error.to_string()), ..Evidence::default() },
    };
    Ok((evidence, inputs.without_results()))
}

/// Reads the file of an experiment and checks all it says: every description of the matrix is
/// resolved, every name and file that it uses is there.
///
/// # Errors
/// [`Error::Mistakes`] with every mistake; [`Error::File`] if the file cannot be read.
pub fn load(path: &Path) -> Result<Experiment> {
    let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
    let mut remarks = Remarks::new(&text);
    let mut read = read::experiment(&text, path, &mut remarks);
    let others = match &mut read {
        Some((plan, true)) => plan.check_networks(&mut remarks)?,
        _ => Vec::new(),
    };
    let mistakes = remarks.finish().err().map_or_else(Vec::new, |mistakes| mistakes.0);
    let mistakes: Vec<String> =
        mistakes.iter().map(|mistake| fastpath::at(path, mistake)).chain(others).collect();
    match read {
        Some((plan, _)) if mistakes.is_empty() => Ok(plan),
        _ => Err(Error::Mistakes(mistakes)),
    }
}
