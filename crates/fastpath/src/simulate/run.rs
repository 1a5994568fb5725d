//! One run of a simulation, and what is reported of it.

use super::parallel::{in_two_parts, side_by_side};
use crate::error::{Error, Result};
use crate::replay::WorkerCount;
use fastpath_sim::case::Input;
use fastpath_sim::run::{RunError, TraceError, trace};
use fastpath_sim::{Machine, Outcome, Remedy, Visit, find_bottleneck_by, observe, remedy_by};
use fastpath_units::Time;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::Instant;

/// Visits between two reports of progress.
const VISITS_PER_REPORT: u64 = 1 << 16;

/// A finished run.
#[derive(Clone, Debug)]
pub struct SimulationRun {
    /// The machine.
    pub machine: String,
    /// The program.
    pub program: String,
    /// The results.
    pub outcome: Outcome,
    /// Duration of the run, real seconds.
    pub elapsed: f64,
    /// The effect of widening the bottleneck, if it was tried.
    pub remedy: Option<Remedy>,
}

/// Runs a simulation and finds its bottleneck. The results do not depend on the number of workers.
/// Writes a trace (Chrome trace format) to `traced` if one is named, with one worker. Otherwise
/// `progress` is called with the simulated time now and then; it costs a little.
///
/// # Errors
/// A program that does not fit the machine; a trace that cannot be written.
pub fn run(
    input: &Input,
    traced: Option<&Path>,
    workers: WorkerCount,
    progress: Option<&mut dyn FnMut(Time)>,
) -> Result<SimulationRun> {
    let Input { machine, program, workload, seed } = input;
    let start = Instant::now();
    let mut outcome = match traced {
        Some(path) => {
            let file = BufWriter::new(File::create(path).map_err(Error::file(path))?);
            trace(machine, program, workload, *seed, file).map_err(|error| match error {
                TraceError::Run(error) => Error::from(error),
                TraceError::Io(error) => Error::file(path)(error),
            })?
        }
        None => one_run(input, machine, workers, progress)?,
    };
    let elapsed = start.elapsed().as_secs_f64();
    find_bottleneck_by(machine, program, &|machines| trials(input, machines, workers), &mut outcome)?;
    let (machine, program) = (machine.name.clone(), program.name().to_owned());
    Ok(SimulationRun { machine, program, outcome, elapsed, remedy: None })
}

/// Runs `input` on `machine`: in two parts, if there are two workers and that pays off.
fn one_run(
    input: &Input,
    machine: &Machine,
    workers: WorkerCount,
    mut progress: Option<&mut dyn FnMut(Time)>,
) -> std::result::Result<Outcome, RunError> {
    let Input { program, workload, seed, .. } = input;
    if workers != WorkerCount::ONE && workers.count().get() > 1 {
        let mut report = |now| progress.as_mut().map_or((), |progress| progress(now));
        if let Some(outcome) = in_two_parts((machine, program), workload, *seed, &mut report)? {
            return Ok(outcome);
        }
    }
    let Some(progress) = progress else { return fastpath_sim::run(machine, program, workload, *seed) };
    let mut visits = 0;
    let mut count = |visit: Visit| {
        visits += 1;
        if visits % VISITS_PER_REPORT == 0 {
            progress(visit.end);
        }
    };
    observe(machine, program, workload, *seed, &mut count)
}

/// Runs `input` on each of `machines`, side by side.
fn trials(
    input: &Input,
    machines: &[Machine],
    workers: WorkerCount,
) -> std::result::Result<Vec<Outcome>, RunError> {
    // With one machine its run has all workers.
    let each = if machines.len() > 1 { WorkerCount::ONE } else { workers };
    let outcomes =
        side_by_side(machines, workers.count().get(), |machine| one_run(input, machine, each, None));
    outcomes.into_iter().collect()
}

impl SimulationRun {
    /// Events per second of real time.
    pub fn events_per_second(&self) -> f64 {
        self.outcome.events as f64 / self.elapsed.max(1e-9)
    }

    /// Widens the bottleneck and runs again.
    ///
    /// # Errors
    /// As for [`run`].
    pub fn find_remedy(&mut self, input: &Input, workers: WorkerCount) -> Result<()> {
        let Input { machine, program, .. } = input;
        let runs = |machines: &[Machine]| trials(input, machines, workers);
        self.remedy = remedy_by(machine, program, &runs, &self.outcome)?;
        Ok(())
    }

    /// Returns the parameters and results of the run, for records and plots.
    pub fn row(&self, mut parameters: Map<String, Value>) -> (Map<String, Value>, Map<String, Value>) {
        parameters.insert("machine".to_owned(), json!(self.machine));
        let outcome = &self.outcome;
        let mut found = Map::from_iter([
            ("offered_pps".to_owned(), json!(outcome.offered_pps)),
            ("forwarded_pps".to_owned(), json!(outcome.forwarded_pps)),
            ("share".to_owned(), json!(outcome.share())),
            ("bottleneck".to_owned(), json!(outcome.bottleneck)),
        ]);
        if let Some(l) = &outcome.latency_us {
            for (name, us) in [("mean", l.mean), ("p50", l.p50), ("p99", l.p99), ("max", l.max)] {
                found.insert(format!("latency_{name}_us"), json!(us));
            }
        }
        for (name, unit) in &outcome.units {
            found.insert(format!("busy {name}"), json!(unit.busy));
        }
        (parameters, found)
    }

    /// Returns the outcome, machine, program, utilisation, speed and remedy as one JSON object.
    pub fn json(&self) -> Value {
        let mut value = serde_json::to_value(&self.outcome).expect("an outcome is JSON");
        let busy = |(name, unit): (&String, &fastpath_sim::outcome::Use)| (name.clone(), json!(unit.busy));
        let utilisation: Map<String, Value> = self.outcome.units.iter().map(busy).collect();
        value["machine"] = json!(self.machine);
        value["program"] = json!(self.program);
        value["utilisation"] = Value::Object(utilisation);
        value["elapsed_s"] = json!(self.elapsed);
        value["events_per_second"] = json!(self.events_per_second());
        value["remedy"] = json!(self.remedy);
        value
    }
}
