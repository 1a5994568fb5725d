//! The directory of an experiment: one directory for each run, and tables of all.
//!
//! ```text
//!  DIR/experiment.toml        the file of the experiment, as it was
//!      runs/0042/run.json     the record of the run: its condition, its metrics with all numbers
//!      runs/0042/spec.json    the description of the run
//!      runs/0042/inputs.json  what the run was made of beside its description
//!      runs/0042/evidence.json  what its metrics are computed from, beside the outputs
//!      runs/0042/STEP.out     what a command printed; STEP.err
//!      results.csv            a row for each run
//!      results.parquet        the same
//!      report.html            tables and charts
//! ```

use super::evidence::Evidence;
use super::inputs::Inputs;
use super::plan::Experiment;
use super::{Findings, page, table};
use fastpath::{Error, Result};
use fastpath_record::{Origin, Repetition};
use fastpath_spec::Topology;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const PLAN: &str = "experiment.toml";
const RUNS: &str = "runs";
const RECORD: &str = "run.json";
const INPUTS: &str = "inputs.json";
const EVIDENCE: &str = "evidence.json";
/// The description of a run in its directory.
const SPEC: &str = "spec.json";

impl Experiment {
    /// The record of a run.
    pub(super) fn repetition(&self, run: u64, attempts: u32, evidence: &Evidence) -> Repetition {
        let mut repetition = Repetition {
            run,
            condition: self.place(run),
            attempts,
            disturbed: None,
            problem: None,
            samples: BTreeMap::new(),
            values: BTreeMap::new(),
            origin: origin(self.seed(run)),
        };
        self.measure(&mut repetition, evidence);
        repetition
    }

    /// Computes the metrics of a run.
    pub(super) fn measure(&self, repetition: &mut Repetition, evidence: &Evidence) {
        repetition.disturbed.clone_from(&evidence.disturbed);
        repetition.problem.clone_from(&evidence.problem);
        repetition.samples.clear();
        repetition.values.clear();
        for metric in &self.metrics {
            match metric.samples(evidence) {
                Ok(samples) => {
                    repetition.values.insert(metric.name.clone(), metric.reduce.of(&samples));
                    repetition.samples.insert(metric.name.clone(), samples);
                }
                Err(what) if repetition.problem.is_none() => repetition.problem = Some(what),
                Err(_) => {}
            }
        }
    }
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
    pub(super) fn open(path: &Path) -> Result<Directory> {
        fs::create_dir_all(path.join(RUNS)).map_err(Error::file(path))?;
        Ok(Directory { path: path.to_owned() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file of the experiment of which the results are.
    pub(super) fn plan(&self) -> Result<Option<String>> {
        text_of(&self.path.join(PLAN))
    }

    /// Keeps the file of the experiment.
    pub(super) fn keep_plan(&self, plan: &Experiment) -> Result<()> {
        write_whole(&self.path.join(PLAN), plan.text().as_bytes())
    }

    /// What a run was made of; `None`: a former version did not keep it.
    pub(super) fn inputs(&self, run: u64) -> Result<Option<BTreeMap<String, String>>> {
        json_of(&self.of(run).join(INPUTS))
    }

    /// The description of a run.
    pub(super) fn description(&self, run: u64) -> Result<Option<Value>> {
        json_of(&self.of(run).join(SPEC))
    }

    /// What the metrics of a run are computed from; `None`: a former version did not keep it.
    pub(super) fn evidence(&self, run: u64) -> Result<Option<Evidence>> {
        let evidence: Option<Evidence> = json_of(&self.of(run).join(EVIDENCE))?;
        Ok(evidence.map(|evidence| Evidence { directory: self.of(run), ..evidence }))
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

    /// Keeps a run: its record, whole or not at all, after all else.
    pub(super) fn keep(&self, run: &Repetition, evidence: &Evidence, inputs: &Inputs) -> Result<()> {
        let directory = self.of(run.run);
        let json = |value: serde_json::Result<String>| value.expect("plain data");
        write_whole(&directory.join(EVIDENCE), json(serde_json::to_string(evidence)).as_bytes())?;
        write_whole(&directory.join(INPUTS), json(serde_json::to_string_pretty(&inputs.values)).as_bytes())?;
        self.keep_record(run)
    }

    /// Keeps the record of a run, whole or not at all.
    pub(super) fn keep_record(&self, run: &Repetition) -> Result<()> {
        write_whole(&self.of(run.run).join(RECORD), run.to_run_json().as_bytes())
    }

    /// Removes the record of a run, which is done again.
    pub(super) fn forget(&self, run: u64) -> Result<()> {
        let path = self.of(run).join(RECORD);
        fs::remove_file(&path).map_err(Error::file(&path))
    }

    /// Returns the record of a run; `None` before its end.
    pub(super) fn record(&self, run: u64) -> Result<Option<Repetition>> {
        record_in(&self.of(run))
    }

    /// Returns the finished runs in the order of their numbers.
    pub(super) fn finished(&self) -> Result<Vec<Repetition>> {
        let runs = self.path.join(RUNS);
        let mut finished = Vec::new();
        for entry in fs::read_dir(&runs).map_err(Error::file(&runs))? {
            finished.extend(record_in(&entry.map_err(Error::file(&runs))?.path())?);
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

/// Returns the record in the directory of a run, if there is one.
fn record_in(directory: &Path) -> Result<Option<Repetition>> {
    let path = directory.join(RECORD);
    let Some(text) = text_of(&path)? else { return Ok(None) };
    Repetition::from_run_json(&text).map(Some).map_err(|what| {
        Error::Argument(format!("{}: {what}; remove the file to repeat the run", path.display()))
    })
}

/// Returns the text of a file; `None`: it is not there.
fn text_of(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file(path)(error)),
    }
}

/// Returns the value of a JSON file; `None`: it is not there.
fn json_of<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let read = |text: String| {
        serde_json::from_str(&text).map_err(|error| {
            Error::Argument(format!(
                "{}: {error}; remove run.json beside it to repeat the run",
                path.display()
            ))
        })
    };
    text_of(path)?.map(read).transpose()
}

/// Writes the description of a run to its directory.
pub(super) fn keep_description(directory: &Path, topology: &Topology) -> Result<()> {
    let path = directory.join(SPEC);
    let description = fastpath_spec::describe(topology).to_json();
    fs::write(&path, format!("{description:#}\n")).map_err(Error::file(&path))
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
