//! Chapter 5 of the LinkEM thesis (seed 004), measured on this machine: the original figures beside
//! ours, beside a control without an emulator and beside what else this machine has to put in the
//! path.
//!
//! | part | ids | needs |
//! |---|---|---|
//! | `bandwidth.rs` | `table-5.1/512`, `table-5.1/512/virtual` | namespaces; nothing |
//! | `delay.rs` | `table-5.2/64` … `table-5.5/1518` | namespaces |
//! | `loss.rs` | `table-5.6/3`, `table-5.6/3/virtual` | namespaces; nothing |
//! | `forwarding.rs` | `figure-5.2/64`, `figure-5.4/64`, `figure-5.5/64` over veth, `figure-5.3/64` in memory | namespaces; nothing |
//! | `multiplex.rs` | `figure-5.6/128`, `figure-5.8/128`, each also `/0.1%` and `/virtual` | nothing |
//! | `lateness.rs` | `lateness/p50`, `lateness/p99`, `lateness/p99.9`, each also `lateness/loaded/…` | nothing |
//! | `overload.rs` | `overload/150%` | nothing |
//! | `overhead.rs` | `rtt-overhead/10ms`, `rtt-overhead/10ms/save`, `tcp/tap` | namespaces |
//!
//! Where a part cannot run, its ids are listed with the reason. Everything a part makes is gone
//! when it ends. Read first: this file, then `outcome.rs` and `field.rs`.

#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod bandwidth;
mod copier;
mod delay;
mod field;
mod forwarding;
mod lateness;
mod loss;
mod multiplex;
mod outcome;
mod overhead;
mod overload;
mod pace;
mod rattan;
mod rig;
mod show;
mod testpmd;

pub use fastpath_measure::Effort;
pub use outcome::{Outcome, Rule};

use fastpath_engine::{AttachError, Panicked, StartError};
use fastpath_lab::HostError;
use fastpath_lab::audit::{AuditError, Stop};
use fastpath_lab::namespace::{NotPermitted, gain_privilege};
use fastpath_measure::Watch;
use fastpath_report::{Provenance, Tool};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// What is measured beside ours where it is installed: programs, and how people call them.
const PEERS: [(&str, &str); 3] = [
    (rattan::PROGRAM, "rattan (cargo install rattan)"),
    (testpmd::PROGRAM, "DPDK testpmd (dpdk-dev)"),
    ("tc", "tc"),
];
/// Emulators that are not measured: they are neither in the distribution this is tested on nor in a
/// package registry, so there is no adapter that anybody has seen work.
const UNMEASURED: [(&str, &str); 2] = [("mm-delay", "Mahimahi"), ("click-install", "Click")];
/// The seed of every random choice.
const SEED: u64 = 1;

/// What to measure.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// How long to take.
    pub effort: Effort,
    /// Only figures whose id begins with one of these; all if empty.
    pub only: Vec<String>,
}

/// How far an evaluation is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress {
    /// What is being measured.
    pub step: &'static str,
    /// Seconds of measuring done, as they were estimated.
    pub done_s: f64,
    /// Seconds in all, estimated.
    pub total_s: f64,
}

/// The figures, and where they come from.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Evaluation {
    /// In the order of the thesis.
    pub results: Vec<Outcome>,
    /// Figures that could not be measured here.
    pub skipped: Vec<Skipped>,
    /// Figures that pass.
    pub passed: usize,
    /// Figures measured.
    pub total: usize,
    /// What is true of several figures.
    pub notes: Vec<String>,
    /// Machine, commit, command line, how quiet it was.
    pub provenance: Provenance,
}

/// A figure that could not be measured here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Skipped {
    /// Its name.
    pub id: String,
    /// Why.
    pub reason: String,
}

/// Why there is no evaluation.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    /// It was told to stop.
    #[error("interrupted; everything it had made is removed")]
    Interrupted,
    /// Nothing has such an id.
    #[error("no figure begins with '{prefix}': say one of {}", have.join(", "))]
    NothingChosen {
        /// What was asked for.
        prefix: String,
        /// The beginnings there are.
        have: Vec<String>,
    },
}

/// Why a part could not run.
#[derive(Debug, thiserror::Error)]
enum PartError {
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
    /// A peer's program.
    #[error("{0}")]
    Peer(String),
}

/// What a part is given.
struct Context<'a> {
    effort: Effort,
    stop: Stop<'a>,
    only: &'a [String],
    /// Peers that do not work here, and why.
    broken: Mutex<BTreeMap<&'static str, String>>,
}

impl<'a> Context<'a> {
    fn new(effort: Effort, stop: &'a AtomicBool, only: &'a [String]) -> Context<'a> {
        Context { effort, stop: Stop(stop), only, broken: Mutex::default() }
    }

    /// What is seen of a peer; nothing where it is not installed, or does not work, which is told
    /// beside the figures: they are ours. What has not worked once is left alone. `came` says
    /// whether something came through: where nothing did, the peer has ended, or stands still.
    fn peer<T>(
        &self,
        name: &'static str,
        measure: impl FnOnce() -> Result<T, PartError>,
        came: impl FnOnce(&T) -> bool,
    ) -> Result<Option<T>, PartError> {
        if self.broken.lock().expect("nobody panics with it").contains_key(name) {
            return Ok(None);
        }
        let why = match measure() {
            Ok(seen) if came(&seen) => return Ok(Some(seen)),
            Ok(_) => "nothing comes through".to_owned(),
            Err(PartError::NotInstalled(_)) => return Ok(None),
            Err(error @ PartError::Measurement(AuditError::Interrupted)) => return Err(error),
            Err(error) => error.to_string(),
        };
        self.broken.lock().expect("nobody panics with it").insert(name, why);
        Ok(None)
    }

    fn wants(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|prefix| id.starts_with(prefix))
    }

    /// The one or the other, by how much time there is.
    fn either<T>(&self, quick: T, full: T) -> T {
        match self.effort {
            Effort::Quick => quick,
            Effort::Full => full,
        }
    }
}

/// Figures measured together.
struct Part {
    /// What is being measured, for people who wait.
    step: &'static str,
    needs: Needs,
    /// The ids it gives.
    ids: fn(Effort) -> Vec<String>,
    /// How long it takes, quick and full.
    seconds: [f64; 2],
    /// How much longer with rattan beside it.
    rattan_seconds: [f64; 2],
    run: fn(&Context<'_>) -> Result<Vec<Outcome>, PartError>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    Namespaces,
}

/// In the order of the thesis.
const PARTS: &[Part] = &[
    bandwidth::VIRTUAL,
    bandwidth::REAL,
    delay::PART,
    loss::VIRTUAL,
    loss::REAL,
    forwarding::VETH,
    forwarding::MEMORY,
    multiplex::VIRTUAL,
    multiplex::REAL,
    lateness::PART,
    overload::PART,
    overhead::PART,
];

/// How long an evaluation takes, in seconds, as it was on a machine of two shared cores.
pub fn estimate_s(options: &Options) -> Result<f64, EvaluateError> {
    Ok(chosen(options)?.iter().map(|part| part.estimate_s(options.effort)).sum())
}

/// Measures what was chosen. `stop` ends it early, from a signal handler for example; `progress`
/// hears of every part.
///
/// Without the privilege for namespaces the process first becomes root in a user namespace of its
/// own, for which it must still be single-threaded.
pub fn evaluate(
    options: &Options,
    tool: &Tool,
    stop: &AtomicBool,
    progress: &dyn Fn(Progress),
) -> Result<Evaluation, EvaluateError> {
    let parts = chosen(options)?;
    let watch = Watch::start();
    let context = Context::new(options.effort, stop, &options.only);
    let refused = gain_privilege().err().map(|why| why.to_string());
    let total_s = estimate_s(options)?;
    let (mut results, mut skipped, mut done_s) = (Vec::new(), Vec::new(), 0.0);
    for part in parts {
        progress(Progress { step: part.step, done_s, total_s });
        let ids = || (part.ids)(options.effort).into_iter().filter(|id| context.wants(id));
        let mut skip = |reason: String| {
            skipped.extend(ids().map(|id| Skipped { id, reason: reason.clone() }));
        };
        match (&refused, part.needs) {
            (Some(why), Needs::Namespaces) => skip(why.clone()),
            _ => match (part.run)(&context) {
                Ok(outcomes) => results.extend(outcomes.into_iter().filter(|o| context.wants(&o.id))),
                Err(PartError::Measurement(AuditError::Interrupted)) => {
                    return Err(EvaluateError::Interrupted);
                }
                Err(error) => skip(error.to_string()),
            },
        }
        if context.stop.check().is_err() {
            return Err(EvaluateError::Interrupted);
        }
        done_s += part.estimate_s(options.effort);
    }
    let passed = results.iter().filter(|outcome| outcome.pass).count();
    let n = results.iter().map(|outcome| outcome.n).sum();
    let total = results.len();
    Ok(Evaluation {
        results,
        skipped,
        passed,
        total,
        notes: notes(context.broken.into_inner().expect("nobody panicked with it")),
        provenance: watch.provenance(tool, SEED, n),
    })
}

impl Part {
    fn estimate_s(&self, effort: Effort) -> f64 {
        let rattan = field::program(rattan::PROGRAM).map_or(0.0, |_| self.rattan_seconds[effort as usize]);
        self.seconds[effort as usize] + rattan
    }
}

/// The parts that give at least one of the figures asked for; an error if something that was asked
/// for is none.
fn chosen(options: &Options) -> Result<Vec<&'static Part>, EvaluateError> {
    let begins = |part: &Part, prefix: &String| {
        (part.ids)(options.effort).iter().any(|id| id.starts_with(prefix.as_str()))
    };
    let is_unknown = |prefix: &&String| PARTS.iter().all(|part| !begins(part, prefix));
    if let Some(unknown) = options.only.iter().find(is_unknown) {
        return Err(EvaluateError::NothingChosen { prefix: unknown.clone(), have: beginnings() });
    }
    let wanted = |part: &&Part| options.only.is_empty() || options.only.iter().any(|p| begins(part, p));
    Ok(PARTS.iter().filter(wanted).collect())
}

/// The tables and figures there are: what stands before the first slash of an id.
fn beginnings() -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for id in PARTS.iter().flat_map(|part| (part.ids)(Effort::Full)) {
        let beginning = id.split('/').next().unwrap_or_default();
        if all.iter().all(|known| known != beginning) {
            all.push(beginning.to_owned());
        }
    }
    all
}

/// What is true of several figures.
fn notes(broken: BTreeMap<&str, String>) -> Vec<String> {
    let original = "originals are those of the LinkEM thesis; Table 5.4 at 64 bytes is 60.366 − 0.330 = 60.036 ms (printed: 60.006)";
    let is_present = |(file, _): &&(&str, &str)| field::program(file).is_some();
    let names = |peers: Vec<&(&str, &'static str)>| {
        peers.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
    };
    let (without, absent): (Vec<_>, Vec<_>) = UNMEASURED.iter().partition(is_present);
    let absent = PEERS.iter().filter(|peer| !is_present(peer)).chain(absent).collect::<Vec<_>>();
    let told = [
        ("installed here but not measured, for want of an adapter", without),
        ("peers that are not installed here", absent),
    ];
    let told = told.into_iter().filter(|(_, peers)| !peers.is_empty());
    let told = told.map(|(what, peers)| format!("{what}: {}", names(peers)));
    let broken = broken.into_iter().map(|(name, why)| format!("{name} does not work here: {why}"));
    std::iter::once(original.to_owned()).chain(told).chain(broken).collect()
}

/// Says visibly that a test could not run here, on stderr and in the file that the test command
/// reads.
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
