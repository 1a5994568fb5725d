//! Published evaluations of packet processing, measured again on this machine: each published value
//! next to ours, to a control without an emulator, and to other programs in the path.
//!
//! | module | contents |
//! |---|---|
//! | `figures/` | the figures of Joglekar 2004 (LinkEM), chapter 5, and our own: one file each |
//! | `testbed/` | pairs of hosts, and what lies between: our engine, a bridge, rattan, testpmd |
//! | `load_generator.rs`, `paced_links.rs` | links in memory, their source and their sink |
//! | `prediction/` | how well fitted models predict this machine and others |
//!
//! A result that cannot be measured here is listed with the reason. A measurement removes what it
//! made when it ends. Read first: this file, then `figures/mod.rs` and any figure.

#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod figures;
mod load_generator;
mod paced_links;
mod prediction;
mod testbed;

pub use fastpath_measure::Effort;
pub use prediction::{
    PredictionError, PredictionFigure, PredictionOptions, RestrictedPlatform, predict, predict_from_records,
    prediction_remarks,
};

use fastpath_audit::{AuditError, Stop};
use fastpath_engine::{AttachError, Panicked, StartError};
use fastpath_lab::HostError;
use fastpath_lab::namespace::{NotPermitted, gain_privilege};
use fastpath_measure::Watch;
use fastpath_record::Tool;
use fastpath_report::{Evaluation, SkippedFigure};
use figures::{FIGURES, Measurement, Needs, measurements};
use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use testbed::{rattan, testpmd};

/// The heading of the report.
const TITLE: &str = "Joglekar 2004 (LinkEM), chapter 5, measured on this machine";
/// The programs measured next to ours where they are installed, and their usual names.
const PEERS: [(&str, &str); 3] = [
    (rattan::PROGRAM, "rattan (cargo install rattan)"),
    (testpmd::PROGRAM, "DPDK testpmd (dpdk-dev)"),
    ("tc", "tc"),
];
/// Emulators that are not measured, because there is no tested adapter: they are neither in the
/// distribution that this is tested on nor in a package registry.
const UNMEASURED: [(&str, &str); 2] = [("mm-delay", "Mahimahi"), ("click-install", "Click")];
/// The seed of the random generator.
const SEED: u64 = 1;

/// Selects what is measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// The time to spend.
    pub effort: Effort,
    /// Prefixes of the ids to measure; all if empty.
    pub only: Vec<String>,
}

/// The progress of an evaluation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress {
    /// The current measurement.
    pub step: &'static str,
    /// Estimated seconds of the measurements done.
    pub done_s: f64,
    /// Estimated seconds of all measurements.
    pub total_s: f64,
}

/// Why there is no evaluation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluateError {
    /// The `stop` flag was set.
    #[error("interrupted; interfaces and namespaces of the measurement were removed")]
    Interrupted,
    /// No id begins with a prefix.
    #[error("no figure begins with '{prefix}': write one of {}", have.join(", "))]
    NothingChosen {
        /// The prefix.
        prefix: String,
        /// The tables and figures there are.
        have: Vec<String>,
    },
}

/// Why a measurement could not run.
#[derive(Debug, thiserror::Error)]
enum MeasurementError {
    #[error(transparent)]
    NotPermitted(#[from] NotPermitted),
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error(transparent)]
    Engine(#[from] StartError),
    #[error(transparent)]
    Panicked(#[from] Panicked),
    #[error("{0}")]
    Measurement(#[from] AuditError),
    #[error("{what}: {source}")]
    Kernel { what: &'static str, source: io::Error },
    #[error("{0} is not installed")]
    NotInstalled(&'static str),
    /// Another program failed.
    #[error("{0}")]
    Peer(String),
}

/// The arguments of a measurement.
struct RunContext<'a> {
    effort: Effort,
    stop: Stop<'a>,
    only: &'a [String],
    /// The programs that do not work here, and why.
    broken: Mutex<BTreeMap<&'static str, String>>,
}

impl<'a> RunContext<'a> {
    fn new(effort: Effort, stop: &'a AtomicBool, only: &'a [String]) -> RunContext<'a> {
        RunContext { effort, stop: Stop(stop), only, broken: Mutex::default() }
    }

    /// Measures another program. Returns `None` where it is not installed or does not work; the
    /// report names the reason. A program that failed once is not tried again. `carried` says
    /// whether any frame passed: if none did, the program has ended or hangs.
    fn peer<T>(
        &self,
        name: &'static str,
        measure: impl FnOnce() -> Result<T, MeasurementError>,
        carried: impl FnOnce(&T) -> bool,
    ) -> Result<Option<T>, MeasurementError> {
        if self.broken.lock().expect("no thread panics while it holds the lock").contains_key(name) {
            return Ok(None);
        }
        let why = match measure() {
            Ok(seen) if carried(&seen) => return Ok(Some(seen)),
            Ok(_) => "no frame passes".to_owned(),
            Err(MeasurementError::NotInstalled(_)) => return Ok(None),
            Err(error @ MeasurementError::Measurement(AuditError::Interrupted)) => return Err(error),
            Err(error) => error.to_string(),
        };
        self.broken.lock().expect("no thread panics while it holds the lock").insert(name, why);
        Ok(None)
    }

    fn wants(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|prefix| id.starts_with(prefix))
    }

    /// Returns one of two values, by the time to spend.
    fn either<T>(&self, quick: T, full: T) -> T {
        match self.effort {
            Effort::Quick => quick,
            Effort::Full => full,
        }
    }
}

/// Estimates the duration of an evaluation, seconds, from a machine of two shared cores.
pub fn estimate_s(options: &Options) -> Result<f64, EvaluateError> {
    Ok(chosen(options)?.iter().map(|one| one.estimate_s(options.effort)).sum())
}

/// Measures the chosen figures. Setting `stop` ends it early, for example from a signal handler.
/// `progress` is called before each measurement.
///
/// Without the privilege for network namespaces the process first becomes root in its own user
/// namespace, for which it must be single-threaded.
pub fn evaluate(
    options: &Options,
    tool: &Tool,
    stop: &AtomicBool,
    progress: &dyn Fn(Progress),
) -> Result<Evaluation, EvaluateError> {
    let chosen = chosen(options)?;
    let watch = Watch::start();
    let context = RunContext::new(options.effort, stop, &options.only);
    let refused = gain_privilege().err().map(|why| why.to_string());
    let total_s = estimate_s(options)?;
    let (mut results, mut skipped, mut done_s) = (Vec::new(), Vec::new(), 0.0);
    for measurement in chosen {
        progress(Progress { step: measurement.step, done_s, total_s });
        let ids = || (measurement.ids)(options.effort).into_iter().filter(|id| context.wants(id));
        let mut skip = |reason: String| {
            skipped.extend(ids().map(|id| SkippedFigure { id, reason: reason.clone() }));
        };
        match (&refused, measurement.needs) {
            (Some(why), Needs::Namespaces) => skip(why.clone()),
            _ => match (measurement.run)(&context) {
                Ok(outcomes) => results.extend(outcomes.into_iter().filter(|o| context.wants(&o.id))),
                Err(MeasurementError::Measurement(AuditError::Interrupted)) => {
                    return Err(EvaluateError::Interrupted);
                }
                Err(error) => skip(error.to_string()),
            },
        }
        if context.stop.check().is_err() {
            return Err(EvaluateError::Interrupted);
        }
        done_s += measurement.estimate_s(options.effort);
    }
    let passed = results.iter().filter(|outcome| outcome.pass).count();
    let n = results.iter().map(|outcome| outcome.n).sum();
    let total = results.len();
    Ok(Evaluation {
        title: TITLE.to_owned(),
        figures: FIGURES.iter().copied().flatten().map(figures::Figure::describe).collect(),
        results,
        skipped,
        passed,
        total,
        notes: notes(context.broken.into_inner().expect("no thread panicked while it held the lock")),
        provenance: watch.provenance(tool, SEED, n),
    })
}

impl Measurement {
    fn estimate_s(&self, effort: Effort) -> f64 {
        let rattan = testbed::program(rattan::PROGRAM).map_or(0.0, |_| self.rattan_seconds[effort as usize]);
        self.seconds[effort as usize] + rattan
    }
}

/// The measurements of at least one chosen result. Fails if no id begins with a chosen prefix.
fn chosen(options: &Options) -> Result<Vec<&'static Measurement>, EvaluateError> {
    let begins = |one: &Measurement, prefix: &String| {
        (one.ids)(options.effort).iter().any(|id| id.starts_with(prefix.as_str()))
    };
    let is_unknown = |prefix: &&String| measurements().all(|one| !begins(one, prefix));
    if let Some(unknown) = options.only.iter().find(is_unknown) {
        return Err(EvaluateError::NothingChosen {
            prefix: unknown.clone(),
            have: FIGURES.iter().copied().flatten().map(|figure| figure.id.to_owned()).collect(),
        });
    }
    let wanted = |one: &&'static Measurement| {
        options.only.is_empty() || options.only.iter().any(|prefix| begins(one, prefix))
    };
    Ok(measurements().filter(wanted).collect())
}

/// Notes on several results.
fn notes(broken: BTreeMap<&str, String>) -> Vec<String> {
    let original = "original values are those of Joglekar 2004; Table 5.4 at 64 bytes is 60.366 − 0.330 = 60.036 ms (printed: 60.006)";
    let is_present = |(file, _): &&(&str, &str)| testbed::program(file).is_some();
    let names = |peers: Vec<&(&str, &'static str)>| {
        peers.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
    };
    let (without, absent): (Vec<_>, Vec<_>) = UNMEASURED.iter().partition(is_present);
    let absent = PEERS.iter().filter(|peer| !is_present(peer)).chain(absent).collect::<Vec<_>>();
    let lists = [
        ("installed here but not measured, because there is no adapter", without),
        ("other programs that are not installed here", absent),
    ];
    let lists = lists.into_iter().filter(|(_, peers)| !peers.is_empty());
    let lists = lists.map(|(what, peers)| format!("{what}: {}", names(peers)));
    let broken = broken.into_iter().map(|(name, why)| format!("{name} does not work here: {why}"));
    std::iter::once(original.to_owned()).chain(lists).chain(broken).collect()
}

/// Reports that a test could not run here, on stderr and in the file that the test command reads.
#[cfg(test)]
fn skip(test: &str, why: &str) {
    let line = format!("SKIPPED: {test}: {why}\n");
    eprint!("{line}");
    if let Some(log) = std::env::var_os("FASTPATH_SKIP_LOG") {
        use std::io::Write;
        let file = std::fs::OpenOptions::new().create(true).append(true).open(log);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("writing the log of skipped tests");
    }
}
