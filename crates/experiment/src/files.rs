//! The directory of an experiment: one directory for each run, and tables of all.
//!
//! ```text
//!  DIR/experiment.toml        the file of the experiment, as it was
//!      runs/0042/run.json     the record of the run: its condition, its metrics with all numbers
//!      runs/0042/spec.json    the description of the run
//!      runs/0042/STEP.out     what a command printed; STEP.err
//!      results.csv            a row for each run
//!      results.parquet        the same
//!      report.html            tables and charts
//! ```

use super::evidence::Evidence;
use super::plan::Experiment;
use super::{Findings, page, table};
use fastpath::{Error, Result};
use fastpath_record::{Origin, Repetition};
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const PLAN: &str = "experiment.toml";
const RUNS: &str = "runs";
const RECORD: &str = "run.json";
/// The description of a run in its directory.
pub(super) const SPEC: &str = "spec.json";

/// Computes the metrics of a run. A run that could not be done has its error as problem.
pub(super) fn repetition(
    plan: &Experiment,
    run: u64,
    attempts: u32,
    evidence: Result<Evidence>,
) -> Result<Repetition> {
    let evidence = match evidence {
        Ok(evidence) => evidence,
        // The next runs would fail in the same way.
        Err(error @ (Error::File { .. } | Error::Accounting(_))) => return Err(error),
        Err(error) => Evidence { problem: Some(error.to_string()), ..Evidence::default() },
    };
    let mut repetition = Repetition {
        run,
        condition: plan.place(run),
        attempts,
        disturbed: evidence.disturbed.clone(),
        problem: evidence.problem.clone(),
        samples: BTreeMap::new(),
        values: BTreeMap::new(),
        origin: origin(plan.seed(run)),
    };
    for metric in &plan.metrics {
        match metric.samples(&evidence) {
            Ok(samples) => {
                repetition.values.insert(metric.name.clone(), metric.reduce.of(&samples));
                repetition.samples.insert(metric.name.clone(), samples);
            }
            Err(what) if repetition.problem.is_none() => repetition.problem = Some(what),
            Err(_) => {}
        }
    }
    Ok(repetition)
}

/// Where a run comes from. Its description is beside it.
fn origin(seed: u64) -> Origin {
    #[cfg(target_os = "linux")]
    let machine = Some(fastpath_measure::this_machine());
    #[cfg(not(target_os = "linux"))]
    let machine = None;
    Origin { version: env!("CARGO_PKG_VERSION").to_owned(), seed, spec: None, machine }
}

/// The directory of results.
pub(super) struct Directory {
    path: PathBuf,
}

/// The directory of a run in progress, locked: another process leaves the run out.
pub(super) struct RunPlace {
    pub(super) path: PathBuf,
    /// The lock ends with the descriptor.
    _lock: File,
}

impl Directory {
    /// Opens the directory of results; makes it if it is not there.
    pub(super) fn open(path: &Path, plan: &Experiment) -> Result<Directory> {
        fs::create_dir_all(path.join(RUNS)).map_err(Error::file(path))?;
        let kept = path.join(PLAN);
        match fs::read_to_string(&kept) {
            Ok(text) if text == plan.text() => {}
            Ok(_) => {
                return Err(Error::Argument(format!(
                    "{}: results of another experiment, or of this one before its file was changed; \
                     write --output with another directory",
                    path.display()
                )));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                write_whole(&kept, plan.text().as_bytes())?;
            }
            Err(error) => return Err(Error::file(&kept)(error)),
        }
        Ok(Directory { path: path.to_owned() })
    }

    /// Whether a run is finished.
    pub(super) fn has(&self, run: u64) -> bool {
        self.of(run).join(RECORD).is_file()
    }

    fn of(&self, run: u64) -> PathBuf {
        self.path.join(RUNS).join(format!("{run:04}"))
    }

    /// Makes the directory of a run, empty. Returns `None` if another process does the run or has
    /// done it.
    pub(super) fn claim(&self, run: u64) -> Result<Option<RunPlace>> {
        let path = self.of(run);
        let failed = Error::file(&path);
        fs::create_dir_all(&path).map_err(&failed)?;
        let lock = File::open(&path).map_err(&failed)?;
        match lock.try_lock() {
            Ok(()) if self.has(run) => return Ok(None),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        for entry in fs::read_dir(&path).map_err(&failed)? {
            fs::remove_file(entry.map_err(&failed)?.path()).map_err(&failed)?;
        }
        drop(failed);
        Ok(Some(RunPlace { path, _lock: lock }))
    }

    /// Keeps the record of a run, whole or not at all.
    pub(super) fn keep(&self, run: u64, repetition: &Repetition) -> Result<()> {
        write_whole(&self.of(run).join(RECORD), repetition.to_run_json().as_bytes())
    }

    /// Removes the record of a run, which is done again.
    pub(super) fn forget(&self, run: u64) -> Result<()> {
        let path = self.of(run).join(RECORD);
        fs::remove_file(&path).map_err(Error::file(&path))
    }

    /// Returns the finished runs in the order of their numbers.
    pub(super) fn finished(&self) -> Result<Vec<Repetition>> {
        let runs = self.path.join(RUNS);
        let mut finished = Vec::new();
        for entry in fs::read_dir(&runs).map_err(Error::file(&runs))? {
            let path = entry.map_err(Error::file(&runs))?.path().join(RECORD);
            let text = match fs::read_to_string(&path) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::file(&path)(error)),
            };
            let repetition = Repetition::from_run_json(&text).map_err(|what| {
                Error::Argument(format!("{}: {what}; remove the file to repeat the run", path.display()))
            })?;
            finished.push(repetition);
        }
        finished.sort_by_key(|repetition| repetition.run);
        Ok(finished)
    }

    /// Writes the tables and the page of all finished runs.
    pub(super) fn write_tables(&self, plan: &Experiment, findings: &Findings) -> Result<()> {
        write_whole(&self.path.join("results.csv"), &table::csv(plan, &findings.runs))?;
        #[cfg(feature = "parquet")]
        {
            let parquet = crate::parquet_table::bytes(plan, &findings.runs)
                .map_err(|error| Error::Argument(format!("results.parquet: {error}")))?;
            write_whole(&self.path.join("results.parquet"), &parquet)?;
        }
        write_whole(&self.path.join("report.html"), page::html(plan, findings).as_bytes())
    }
}

/// Writes a file beside its place and renames it: a reader sees all of it or nothing.
fn write_whole(path: &Path, content: &[u8]) -> Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let temporary = PathBuf::from(name);
    let write = || {
        let mut file = File::create(&temporary)?;
        file.write_all(content)?;
        file.sync_all()
    };
    write().map_err(Error::file(&temporary))?;
    fs::rename(&temporary, path).map_err(Error::file(path))
}
