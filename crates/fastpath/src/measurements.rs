//! Measurements as records (Linux): this machine, latency of units, costs of operations, the
//! switch, and the simulator's kernel. `fastpath_measure` measures; this module sets what a record
//! says.

use crate::error::{Error, Result};
use fastpath_measure::{
    Between, EXTRAS, Effort, ExecutorCost, FlowChanges, Host, LATENCY_SIZES, OperationCost, Progress, Rules,
    Slowdown, SwitchCost, SwitchExecutor, SwitchQuestion, UnitLatency, Watch, WorkerScaling, undisturbed,
};
use fastpath_record::{Measurement, Tool, fields};
use fastpath_sim::classic::{RunCounts, mm1, pipe32};
use fastpath_sim::experiment::t_f;
use fastpath_units::Duration;
use serde_json::{Map, Value, json};
use std::fmt::Display;
use std::num::NonZeroUsize;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Instant;

/// One in this many customers is served before the measurement, as warm-up.
const WARM_UP: u64 = 20;
/// Interval between two reports of progress of a run that reports none itself.
const TICK: std::time::Duration = std::time::Duration::from_millis(200);
/// Frame sizes that the simulated ports take, bytes with FCS.
const SIMULATED_SIZES: std::ops::RangeInclusive<usize> = 64..=1518;

/// A measurement and its record.
#[derive(Clone, Debug)]
pub struct Recorded<T> {
    /// The results.
    pub found: T,
    /// The record.
    pub record: Measurement,
}

/// The ports between the units of a latency measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnitsBetween {
    /// Memory ports, on one core.
    Memory,
    /// Namespaces, with the engine on another core.
    Namespaces,
    /// The simulated CN6880s of Hartikainen 2016, in virtual time.
    Simulator,
}

/// Which latencies to measure.
#[derive(Clone, Debug)]
pub struct LatencyQuestion {
    /// The ports between the units.
    pub between: Vec<UnitsBetween>,
    /// Frame lengths in bytes. If there are none: [`fastpath_measure::LATENCY_SIZES`].
    pub sizes: Vec<u32>,
    /// Packets per size.
    pub packets: u32,
    /// Whether to measure the costs of operations too.
    pub operations: bool,
}

/// Latencies of units and costs of operations.
pub struct UnitLatencies {
    /// A latency for each place and size.
    pub latencies: Vec<Recorded<UnitLatency>>,
    /// The costs of operations.
    pub costs: Vec<Recorded<OperationCost>>,
}

impl LatencyQuestion {
    /// Measures the latencies, then the operations.
    ///
    /// # Errors
    /// As [`latency`] and [`operations`].
    pub fn measure(&self, tool: &Tool, progress: Progress<'_>) -> Result<UnitLatencies> {
        let sizes: Vec<usize> = match self.sizes.len() {
            0 => LATENCY_SIZES.to_vec(),
            _ => self.sizes.iter().map(|&size| size as usize).collect(),
        };
        let points = self.between.iter().flat_map(|&place| sizes.iter().map(move |&size| (place, size)));
        let latencies = points.map(|(place, size)| latency(place, size, self.packets, tool, progress));
        let latencies = latencies.collect::<Result<Vec<_>>>()?;
        let costs = match self.operations {
            true => operations(u64::from(self.packets), tool, progress)?,
            false => Vec::new(),
        };
        Ok(UnitLatencies { latencies, costs })
    }
}

/// A textbook model on which simulators are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextbookModel {
    /// One server, Poisson arrivals, 80 % load.
    Mm1,
    /// A closed ring of 32 exponential servers and 64 customers.
    Pipe32,
}

/// The speed of the simulator's kernel on a textbook model.
#[derive(Clone, Copy, Debug)]
pub struct EventRate {
    /// The model.
    pub model: TextbookModel,
    /// Counts of the run.
    pub counts: RunCounts,
    /// Duration of the run.
    pub seconds: f64,
}

fn refuse(error: impl Display) -> Error {
    Error::Argument(error.to_string())
}

/// Measures cores, memory, clocks and system calls of this machine. `coremark` is an official score
/// to record; `name` replaces the host name.
///
/// # Errors
/// The system's reason.
pub fn host(
    effort: Effort,
    coremark: Option<f64>,
    name: Option<&str>,
    slowdown: Slowdown,
    seed: u64,
    tool: &Tool,
    progress: Progress<'_>,
) -> Result<Recorded<Host>> {
    let measure = || fastpath_measure::host(effort, coremark, slowdown, seed, progress).map_err(refuse);
    let (found, watch) = undisturbed(measure)?;
    let mut provenance = watch.provenance(tool, seed, 1);
    provenance.disturbance.disturbed |= !found.timing.implausible().is_empty();
    let platform = found.platform(name.unwrap_or(&provenance.machine.name));
    let effort = if effort == Effort::Quick { "quick" } else { "full" };
    let parameters = Map::from_iter([
        ("effort".to_owned(), json!(effort)),
        ("slowdown".to_owned(), json!(slowdown.factor())),
    ]);
    let (kind, results) = ("host".to_owned(), fields(&found));
    let record = Measurement { kind, provenance, parameters, results, platform: Some(platform) };
    Ok(Recorded { found, record })
}

/// Measures the latency of a unit for frames of `size` bytes.
///
/// # Errors
/// Namespaces that are not permitted, too few samples, a size that the simulated ports do not take.
pub fn latency(
    between: UnitsBetween,
    size: usize,
    packets: u32,
    tool: &Tool,
    progress: Progress<'_>,
) -> Result<Recorded<UnitLatency>> {
    let count = packets as usize;
    let measured =
        |between| undisturbed(|| fastpath_measure::latency(between, size, count, progress).map_err(refuse));
    let (name, (found, watch)) = match between {
        UnitsBetween::Memory => ("memory", measured(Between::Memory)?),
        UnitsBetween::Namespaces => ("namespaces", measured(Between::Namespaces)?),
        UnitsBetween::Simulator if !SIMULATED_SIZES.contains(&size) => {
            return Err(refuse(format!("--size {size}: the simulated ports take 64 to 1518 bytes")));
        }
        UnitsBetween::Simulator => {
            // One packet at a time, 10,000 per second, with seed 1.
            let watch = Watch::start();
            let us = t_f(size as u32, Duration::from_us(100) * u64::from(packets), 1);
            let ns: Vec<f64> = us.into_iter().map(|us| 1000.0 * us).collect();
            ("simulator", (UnitLatency::of(&ns).map_err(refuse)?, watch))
        }
    };
    let parameters = Map::from_iter([("size".to_owned(), json!(size)), ("between".to_owned(), json!(name))]);
    // No random choice is made: the seed is 0.
    let provenance = watch.provenance(tool, 0, u64::from(packets));
    let (kind, results) = ("latency".to_owned(), fields(&found));
    Ok(Recorded { record: Measurement { kind, provenance, parameters, results, platform: None }, found })
}

/// Measures what each operation on a packet costs, in the order of [`EXTRAS`].
///
/// # Errors
/// Too few packets for a regression.
pub fn operations(packets: u64, tool: &Tool, progress: Progress<'_>) -> Result<Vec<Recorded<OperationCost>>> {
    let one = |extra| {
        let measure = || fastpath_measure::operation(extra, packets, progress).map_err(refuse);
        let (found, watch) = undisturbed(measure)?;
        let parameters = Map::from_iter([("operation".to_owned(), json!(extra))]);
        let (provenance, results) = (watch.provenance(tool, 0, packets), fields(&found));
        let record =
            Measurement { kind: "operations".to_owned(), provenance, parameters, results, platform: None };
        Ok(Recorded { found, record })
    };
    EXTRAS.into_iter().map(one).collect()
}

/// Measures lookups, forwarding rate and rule changes of a switch with these tables.
///
/// # Errors
/// Tables that cannot be made.
pub fn switch(
    rules: Rules,
    flows: usize,
    effort: Effort,
    seed: u64,
    tool: &Tool,
    progress: Progress<'_>,
) -> Result<Recorded<SwitchCost>> {
    let question = SwitchQuestion { rules, flows, seed, effort };
    let measure = || fastpath_measure::switch_cost(&question, progress).map_err(refuse);
    let (found, watch) = undisturbed(measure)?;
    let provenance = watch.provenance(tool, seed, found.updates.packets);
    let parameters = Map::from_iter([
        ("table".to_owned(), json!(question.rules.to_string())),
        ("flows".to_owned(), json!(flows)),
        ("frame_bytes".to_owned(), json!(64)),
    ]);
    let (kind, results) = ("switch".to_owned(), fields(&found));
    Ok(Recorded { record: Measurement { kind, provenance, parameters, results, platform: None }, found })
}

/// Measures what a packet costs in these tables by one executor.
///
/// # Errors
/// Tables that cannot be made, or that do not run in the kernel.
pub fn switch_executor(
    rules: Rules,
    executor: SwitchExecutor,
    flows: usize,
    effort: Effort,
    seed: u64,
    tool: &Tool,
    progress: Progress<'_>,
) -> Result<Recorded<ExecutorCost>> {
    let question = SwitchQuestion { rules, flows, seed, effort };
    let measure = || fastpath_measure::executor_cost(&question, executor, progress).map_err(refuse);
    let (found, watch) = undisturbed(measure)?;
    let provenance = watch.provenance(tool, seed, flows as u64);
    let parameters = Map::from_iter([
        ("table".to_owned(), json!(question.rules.to_string())),
        ("flows".to_owned(), json!(flows)),
        ("frame_bytes".to_owned(), json!(64)),
        ("executor".to_owned(), json!(executor)),
    ]);
    let (kind, results) = ("switch-executor".to_owned(), fields(&found));
    Ok(Recorded { record: Measurement { kind, provenance, parameters, results, platform: None }, found })
}

/// Measures how fast a controller changes this many flows beside these tables.
///
/// # Errors
/// Tables that cannot be made, or the operating system refuses a thread or a socket.
pub fn flow_changes(
    rules: Rules,
    updates: usize,
    flows: usize,
    effort: Effort,
    seed: u64,
    tool: &Tool,
    progress: Progress<'_>,
) -> Result<Recorded<FlowChanges>> {
    let question = SwitchQuestion { rules, flows, seed, effort };
    let barriers = if effort == Effort::Quick { 1000 } else { 10_000 };
    let measure = || fastpath_measure::flow_changes(&question, updates, barriers, progress).map_err(refuse);
    let (found, watch) = undisturbed(measure)?;
    let provenance = watch.provenance(tool, seed, found.flows as u64);
    let parameters = Map::from_iter([
        ("table".to_owned(), json!(question.rules.to_string())),
        ("flows".to_owned(), json!(flows)),
        ("updates".to_owned(), json!(updates)),
        ("frame_bytes".to_owned(), json!(64)),
    ]);
    let (kind, results) = ("switch-changes".to_owned(), fields(&found));
    Ok(Recorded { record: Measurement { kind, provenance, parameters, results, platform: None }, found })
}

/// Measures how much more several workers of a switch with these tables pass than one.
///
/// # Errors
/// Tables that cannot be made, or the operating system refuses a descriptor.
pub fn switch_workers(
    rules: Rules,
    workers: NonZeroUsize,
    flows: usize,
    effort: Effort,
    seed: u64,
    tool: &Tool,
    progress: Progress<'_>,
) -> Result<Recorded<WorkerScaling>> {
    let question = SwitchQuestion { rules, flows, seed, effort };
    let measure = || fastpath_measure::worker_scaling(&question, workers, progress).map_err(refuse);
    let (found, watch) = undisturbed(measure)?;
    let provenance = watch.provenance(tool, seed, found.rounds as u64);
    let parameters = Map::from_iter([
        ("table".to_owned(), json!(question.rules.to_string())),
        ("flows".to_owned(), json!(flows)),
        ("workers".to_owned(), json!(workers)),
        ("frame_bytes".to_owned(), json!(64)),
    ]);
    let (kind, results) = ("switch-workers".to_owned(), fields(&found));
    Ok(Recorded { record: Measurement { kind, provenance, parameters, results, platform: None }, found })
}

/// Measures the events per second of the simulator's kernel on a textbook model. Without
/// `customers` the run takes about a second.
pub fn events(
    model: TextbookModel,
    customers: Option<u64>,
    seed: u64,
    tool: &Tool,
    progress: Progress<'_>,
) -> Recorded<EventRate> {
    let (run, usual): (fn(u64, u64) -> RunCounts, _) = match model {
        TextbookModel::Mm1 => (mm1, 10_000_000),
        TextbookModel::Pipe32 => (pipe32, 300_000),
    };
    let customers = customers.unwrap_or(usual);
    progress("warming up", 0, 1);
    // The warm-up touches the memory, and shows how long the run will take.
    let start = Instant::now();
    run(customers.div_ceil(WARM_UP), seed);
    let expected = start.elapsed() * WARM_UP as u32;
    let watch = Watch::start();
    let (counts, seconds) = with_progress(progress, expected, || {
        let start = Instant::now();
        let counts = run(customers, seed);
        (counts, start.elapsed().as_secs_f64().max(1e-9))
    });
    let found = EventRate { model, counts, seconds };
    let parameters =
        Map::from_iter([("model".to_owned(), json!(model.name())), ("seed".to_owned(), json!(seed))]);
    let provenance = watch.provenance(tool, seed, found.counts.events);
    let (kind, results) = ("events".to_owned(), found.results());
    Recorded { record: Measurement { kind, provenance, parameters, results, platform: None }, found }
}

impl TextbookModel {
    /// The name in records and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            TextbookModel::Mm1 => "mm1",
            TextbookModel::Pipe32 => "pipe32",
        }
    }
}

impl EventRate {
    fn results(&self) -> Map<String, Value> {
        let EventRate { counts, seconds, .. } = self;
        let per_second = |count: u64| json!(count as f64 / seconds);
        Map::from_iter([
            ("events".to_owned(), json!(counts.events)),
            ("customers".to_owned(), json!(counts.customers)),
            ("seconds".to_owned(), json!(seconds)),
            ("events_per_second".to_owned(), per_second(counts.events)),
            ("customers_per_second".to_owned(), per_second(counts.customers)),
            ("trace_hash".to_owned(), json!(format!("{:016x}", counts.trace_hash))),
        ])
    }
}

/// Does `work`, which reports no progress and takes about as long as `expected`; reports how far it
/// should be.
fn with_progress<T>(progress: Progress<'_>, expected: std::time::Duration, work: impl FnOnce() -> T) -> T {
    let (done, waiting) = mpsc::channel::<()>();
    let ms = |time: std::time::Duration| time.as_millis() as usize;
    std::thread::scope(|scope| {
        let start = Instant::now();
        scope.spawn(move || {
            // The channel is closed when the work is done.
            while waiting.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                progress("ms", ms(start.elapsed()), ms(expected));
            }
        });
        let found = work();
        drop(done);
        found
    })
}
