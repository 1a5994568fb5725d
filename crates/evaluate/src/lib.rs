//! Published evaluations of packet processing, measured again on this machine: each published value
//! next to ours, to a control without an emulator, and to other programs in the path.
//!
//! | module | contents |
//! |---|---|
//! | `figures/` | the figures of Joglekar 2004 (LinkEM), chapter 5, and our own: one file each |
//! | `testbed/` | pairs of hosts, and what lies between: our engine, a bridge, rattan, testpmd |
//! | `load_generator.rs`, `paced_links.rs` | links in memory, their source and their sink |
//! | `capacity.rs` | how well the machine's capacity is predicted |
//! | `prediction/` | how well fitted models predict this machine and others |
//! | `registered/` | predictions that were stated before they were measured |
//!
//! A result that cannot be measured here is listed with the reason. A measurement removes what it
//! made when it ends. Read first: this file, then `figures/mod.rs` and any figure.

#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod capacity;
mod figures;
mod load_generator;
mod paced_links;
mod prediction;
mod registered;
mod temporary;
mod testbed;

pub use capacity::{
    CapacityEvaluation, CapacityFigure, CapacityPoint, PointKind, PredictedQuantity, SpeedAccuracy,
    evaluate_capacity,
};
pub use fastpath_measure::Effort;
pub use prediction::{
    PredictionError, PredictionFigure, PredictionOptions, RestrictedPlatform, predict, predict_families,
    predict_from_records, prediction_remarks,
};
pub use registered::{
    RegisteredComparison, RegisteredError, RegisteredPrediction, RegisteredResult, RegisteredVerdict,
    measure_registered, registered,
};

use fastpath_audit::core_time::CoreTime;
use fastpath_audit::{AuditError, Stop};
use fastpath_engine::{AttachError, Panicked, Report, StartError};
use fastpath_lab::namespace::{NotPermitted, gain_privilege};
use fastpath_lab::{HostError, UpError};
use fastpath_measure::Watch;
use fastpath_record::Tool;
use fastpath_report::{EvaluatedFigure, Evaluation, SkippedFigure};
use figures::{FIGURES, Measurement, Needs, measurements};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
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
/// How often a round is measured that the machine disturbs.
const ROUNDS_MAX: usize = 3;

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
    Lab(#[from] UpError),
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
    /// What disturbed trials that have no rounds of their own.
    noted: Mutex<Vec<String>>,
    /// Whether the current measurement watches its rounds itself.
    has_rounds: AtomicBool,
    /// The ids that are measured again.
    narrowed: Mutex<Option<Vec<String>>>,
}

/// The rounds of one path, and what disturbed them.
struct Rounds<T> {
    quiet: Vec<T>,
    disturbed: Vec<(T, String)>,
}

impl<T> Rounds<T> {
    fn add(&mut self, Round { seen, disturbed }: Round<T>) {
        match disturbed {
            Some(reason) => self.disturbed.push((seen, reason)),
            None => self.quiet.push(seen),
        }
    }

    /// Returns the quiet rounds; if there is none, all of them and what disturbed the first.
    fn finish(self) -> (Vec<T>, Option<String>) {
        let reason = self.disturbed.first().map(|(_, reason)| reason.clone());
        match self.quiet.is_empty() {
            true => (self.disturbed.into_iter().map(|(seen, _)| seen).collect(), reason),
            false => (self.quiet, None),
        }
    }
}

impl<T> Default for Rounds<T> {
    fn default() -> Rounds<T> {
        Rounds { quiet: Vec::new(), disturbed: Vec::new() }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics while it holds the lock")
}

/// The result of a round, and what disturbed it in every attempt.
struct Round<T> {
    seen: T,
    disturbed: Option<String>,
}

impl<'a> RunContext<'a> {
    fn new(effort: Effort, stop: &'a AtomicBool, only: &'a [String]) -> RunContext<'a> {
        RunContext {
            effort,
            stop: Stop(stop),
            only,
            broken: Mutex::default(),
            noted: Mutex::default(),
            has_rounds: AtomicBool::new(false),
            narrowed: Mutex::default(),
        }
    }

    /// Measures a round, and again while the machine takes the core away, at most [`ROUNDS_MAX`]
    /// times. `measure` returns its result and the last report of our engine, if one is in the
    /// path.
    fn round<T>(
        &self,
        mut measure: impl FnMut(&CoreTime) -> Result<(T, Option<Report>), MeasurementError>,
    ) -> Result<Round<T>, MeasurementError> {
        self.has_rounds.store(true, Ordering::Relaxed);
        let mut attempt = 1;
        loop {
            let watch = CoreTime::start(None);
            let (seen, engine) = measure(&watch)?;
            let disturbed = watch.finish(engine.as_ref());
            if disturbed.is_none() || attempt == ROUNDS_MAX {
                return Ok(Round { seen, disturbed });
            }
            attempt += 1;
        }
    }

    /// Notes what disturbed a trial.
    fn note(&self, disturbed: Option<String>) {
        lock(&self.noted).extend(disturbed);
    }

    /// Runs a measurement. Results that miss their criterion in trials that the machine disturbed
    /// are measured again, and in the end marked. What is computed in virtual time cannot be
    /// disturbed.
    fn run(&self, measurement: &Measurement) -> Result<Vec<EvaluatedFigure>, MeasurementError> {
        let mut results: Vec<EvaluatedFigure> = Vec::new();
        let mut again: Option<Vec<String>> = None;
        for _ in 0..ROUNDS_MAX {
            lock(&self.noted).clear();
            self.has_rounds.store(false, Ordering::Relaxed);
            lock(&self.narrowed).clone_from(&again);
            let watch = CoreTime::start(None);
            let outcomes = watch.of_thread(|| (measurement.run)(self));
            *lock(&self.narrowed) = None;
            let outcomes = outcomes?;
            let outcomes = outcomes.into_iter().filter(|outcome| self.wants(&outcome.id));
            let outcomes =
                outcomes.filter(|outcome| again.as_ref().is_none_or(|ids| ids.contains(&outcome.id)));
            if !self.has_rounds.load(Ordering::Relaxed) {
                self.note(watch.finish(None));
            }
            let noted = lock(&self.noted).first().cloned();
            let mut missed = Vec::new();
            for mut outcome in outcomes {
                if !outcome.pass && outcome.disturbed.is_none() && !outcome.id.ends_with("/virtual") {
                    outcome = outcome.disturbed(noted.clone());
                    missed.extend(outcome.disturbed.is_some().then(|| outcome.id.clone()));
                }
                match results.iter_mut().find(|result| result.id == outcome.id) {
                    Some(before) => *before = outcome,
                    None => results.push(outcome),
                }
            }
            if missed.is_empty() {
                break;
            }
            again = Some(missed);
        }
        Ok(results)
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
        if lock(&self.broken).contains_key(name) {
            return Ok(None);
        }
        let why = match measure() {
            Ok(seen) if carried(&seen) => return Ok(Some(seen)),
            Ok(_) => "no frame passes".to_owned(),
            Err(MeasurementError::NotInstalled(_)) => return Ok(None),
            Err(error @ MeasurementError::Measurement(AuditError::Interrupted)) => return Err(error),
            Err(error) => error.to_string(),
        };
        lock(&self.broken).insert(name, why);
        Ok(None)
    }

    fn wants(&self, id: &str) -> bool {
        let is_narrowed_out = |ids: &Vec<String>| {
            ids.iter().all(|wanted| wanted != id && !wanted.starts_with(&format!("{id}/")))
        };
        if lock(&self.narrowed).as_ref().is_some_and(is_narrowed_out) {
            return false;
        }
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
            _ => match context.run(measurement) {
                Ok(outcomes) => results.extend(outcomes),
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
    let disturbed = results.iter().filter(|outcome| outcome.disturbed.is_some()).count();
    let n = results.iter().map(|outcome| outcome.n).sum();
    let total = results.len();
    Ok(Evaluation {
        title: TITLE.to_owned(),
        figures: FIGURES.iter().copied().flatten().map(figures::Figure::describe).collect(),
        results,
        skipped,
        passed,
        disturbed,
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

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_report::Criterion;
    use std::sync::atomic::AtomicUsize;

    static RUNS: AtomicUsize = AtomicUsize::new(0);

    /// Three results, of which two miss; the second one passes when it is measured again.
    fn measured(context: &RunContext<'_>) -> Result<Vec<EvaluatedFigure>, MeasurementError> {
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let result = |id: &str, ours| {
            EvaluatedFigure::new(
                id.to_owned(),
                "ms",
                ours,
                5,
                Criterion::Within { target: 1.0, tolerance: 0.1 },
            )
        };
        let ours = if run == 0 { 55.8 } else { 1.0 };
        let all = [result("t/1", 1.0), result("t/2", ours), result("t/3", 55.8), result("t/3/virtual", 9.0)];
        context.note((!(2..=5).contains(&run)).then(|| "a stall".to_owned()));
        Ok(all.into_iter().filter(|result| context.wants(&result.id)).collect())
    }

    const MEASUREMENT: Measurement = Measurement {
        step: "a test",
        needs: Needs::Nothing,
        ids: |_| ["t/1", "t/2", "t/3", "t/3/virtual"].map(str::to_owned).to_vec(),
        seconds: [0.0; 2],
        rattan_seconds: [0.0; 2],
        run: measured,
    };

    #[test]
    fn a_disturbed_miss_is_measured_again_and_in_the_end_disturbed_and_a_quiet_one_is_a_miss() {
        let stop = AtomicBool::new(false);
        let context = RunContext::new(Effort::Quick, &stop, &[]);
        // The trials watch themselves, so that the load of this machine does not matter.
        let verdicts = |context: &RunContext<'_>| -> Vec<(String, &'static str)> {
            let results = context.run(&MEASUREMENT).unwrap();
            results.iter().map(|result| (result.id.clone(), result.verdict())).collect()
        };
        let found = verdicts(&context);
        let runs = RUNS.load(Ordering::Relaxed);
        let of = |id: &str| found.iter().find(|(known, _)| known == id).map(|(_, verdict)| *verdict);
        assert_eq!([of("t/1"), of("t/2"), of("t/3/virtual")], [Some("ok"), Some("ok"), Some("MISS")]);
        // Disturbed twice. The third run is quiet unless this machine is busy.
        assert!(matches!(of("t/3"), Some("MISS" | "disturbed")) && runs == 3, "{found:?} {runs}");
        RUNS.store(6, Ordering::Relaxed);
        let found = verdicts(&context);
        assert_eq!(found[2], ("t/3".to_owned(), "disturbed"), "{found:?}");
        assert_eq!(RUNS.load(Ordering::Relaxed), 9, "a bound of three");
    }

    #[test]
    fn a_round_is_repeated_only_while_it_is_disturbed() {
        let stop = AtomicBool::new(false);
        let context = RunContext::new(Effort::Quick, &stop, &[]);
        let stalled = |ms: f64| {
            let interruptions = fastpath_engine::Interruptions { count: 1, total_ms: ms, longest_ms: ms };
            let worker = fastpath_engine::WorkerReport { stalled: interruptions, ..Default::default() };
            report_with(worker)
        };
        // The engine stalls in the first `count` attempts.
        let round = |count: usize| {
            let mut tries = 0;
            let round = context.round(|_| {
                tries += 1;
                Ok((tries, Some(stalled(if tries <= count { 500.0 } else { 0.0 }))))
            });
            let Round { seen, disturbed } = round.unwrap();
            (seen, disturbed)
        };
        // A hypervisor may take the core away in a round too, but not in all of them.
        for (count, attempts) in [(0, 1), (1, 2), (2, 3)] {
            let found: Vec<_> = (0..20).map(|_| round(count)).collect();
            assert!(found.contains(&(attempts, None)), "{count}: {found:?}");
            assert!(found.iter().all(|(seen, _)| *seen >= attempts), "{count}: {found:?}");
        }
        let (seen, disturbed) = round(3);
        assert!(seen == 3 && disturbed.unwrap().contains("500.0 ms from the engine"));
    }

    fn report_with(worker: fastpath_engine::WorkerReport) -> Report {
        let empty = serde_json::json!({
            "uptime_s": 1.0, "conservation": { "in": 0, "delivered": 0, "dropped": {}, "held": 0 },
            "links": [], "ports": [],
        });
        let report: Report = serde_json::from_value(empty).unwrap();
        Report { workers: vec![worker], ..report }
    }
}
