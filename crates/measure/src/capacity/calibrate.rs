//! Measures [`EngineCosts`]: random networks are run, and the time of a worker for a packet is
//! fitted to the counts of `demand.rs`. So the intervals contain both the spread of measurements
//! and what the counts do not explain.

use super::calibration_error::CalibrationError;
use super::demand::demand;
use super::labs;
use super::lateness::seen_lateness;
use super::networks::{QUEUES, RandomNetwork};
use super::run::{Carried, Offered, in_memory, offer, saturate, spread};
use crate::{Effort, Progress};
use fastpath_model::capacity::{EngineCosts, LatenessCosts, MemoryCosts, PacketShape, StartCosts, predict};
use fastpath_model::fit::{FitOptions, Method, Regimes, Weighting, fit};
use fastpath_model::scaling::ScalingCosts;
use fastpath_model::{Estimate, Table};
use fastpath_units::stats::{median, quantile, sorted};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// Networks whose links have two disciplines, for each discipline.
const MIXED: [usize; 2] = [4, 8];
/// Networks with drop-tail alone.
const PLAIN: usize = 9;
/// Networks with a per-packet log.
const LOGGED: usize = 3;
/// The first seed of the networks. Evaluations use others.
const SEED: u64 = 1_000_000;
/// Measured time of a saturated run.
const SPAN: Duration = Duration::from_millis(60);
/// Runs for lateness at each load, and their time.
const LATENESS_RUNS: u64 = 10;
const LATENESS_SPAN: Duration = Duration::from_millis(100);
/// Loads at which lateness is measured, as shares of the predicted capacity.
const LITTLE: f64 = 0.02;
const MUCH: f64 = 0.5;
/// Networks that show the memory and the start time of ports and links.
const STAR_HOSTS: usize = 500;
const ROW_ROUTERS: usize = 300;
const FEW_HOSTS: usize = 100;
/// Which share of the starts that were seen the interval of another one leaves out at each end.
const STARTS_LEFT_OUT: f64 = 0.025;
/// How much further another start may be than those.
const START_MARGIN: f64 = 1.1;
/// Most frames that a saturated run may drop per delivered one: others were not of this load.
const DROPPED_MAX: f64 = 0.02;

/// What was measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Calibration {
    /// The costs.
    pub costs: EngineCosts,
    /// The saturated runs.
    pub points: Vec<CalibrationPoint>,
    /// What could not be measured, and why.
    pub missing: Vec<String>,
}

/// A saturated run of a calibration.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CalibrationPoint {
    /// The seed of its network.
    pub seed: u64,
    /// Measured nanoseconds of the worker per packet.
    #[serde(rename = "T_ns")]
    pub ns: f64,
    /// What the costs give for it.
    pub fitted_ns: f64,
    /// The counts of a packet.
    #[serde(flatten)]
    pub shape: PacketShape,
}

/// Measures what the engine costs on this machine: in about twenty seconds, or a minute.
///
/// # Errors
/// [`CalibrationError`].
pub fn calibrate(effort: Effort, progress: Progress<'_>) -> Result<Calibration, CalibrationError> {
    // First: without the privilege for namespaces this process must have one thread.
    let labs = labs::run_labs(effort, progress);
    let runs = saturated_runs(effort, progress)?;
    let log = runs.iter().any(|run| run.shape.log > 0.0);
    let fitted = fit_packets(&runs)?;
    let point = |run: &SaturatedRun| CalibrationPoint {
        seed: run.seed,
        ns: run.ns(),
        fitted_ns: fitted_ns(&fitted, run),
        shape: run.shape.clone(),
    };
    let points = runs.iter().map(point).collect();
    let (memory, start) = memory_and_start(&runs)?;
    let mut costs = EngineCosts {
        packet: fitted,
        queues: QUEUES.iter().map(|(name, _)| (*name).to_owned()).collect(),
        scaling: ScalingCosts::UNMEASURED,
        // Not read before it is measured.
        lateness: LatenessCosts {
            idle_p50_us: Estimate::exact(0.0),
            idle_p99_us: Estimate::exact(0.0),
            waiting_p50_us: Estimate::exact(0.0),
            waiting_p99_us: Estimate::exact(0.0),
        },
        memory,
        start,
        lab: None,
    };
    costs.lateness = lateness(&costs, progress)?;
    let mut missing = Vec::new();
    if !log {
        missing.push("the per-packet log: no temporary file could be written".to_owned());
    }
    match labs {
        Ok(labs) => {
            costs.lab = Some(labs.costs(&costs)?);
            let [lab_s, host_s] = labs.start();
            (costs.start.lab_s, costs.start.host_s) = (Some(lab_s), Some(host_s));
            labs::lateness(&mut costs, effort, progress)?;
        }
        Err(why) => missing.push(format!("ports, TCP and start of labs: {why}")),
    }
    Ok(Calibration { costs, points, missing })
}

/// A saturated run.
struct SaturatedRun {
    seed: u64,
    shape: PacketShape,
    carried: Carried,
}

impl SaturatedRun {
    /// Nanoseconds of the worker per packet.
    fn ns(&self) -> f64 {
        1e9 / self.carried.packets_per_second
    }
}

/// The networks of a calibration: seed, disciplines, and whether there is a log.
fn plan(effort: Effort) -> Vec<(u64, [Option<usize>; 2], bool)> {
    let mut networks = Vec::new();
    let mixed = MIXED[usize::from(effort == Effort::Full)];
    for round in 0..mixed {
        for place in 0..QUEUES.len() {
            // Each with another one, and with drop-tail.
            let other = (place + 1 + 3 * round) % (QUEUES.len() + 1);
            networks.push(([Some(place), other.checked_sub(1)], false));
        }
    }
    networks.extend((0..PLAIN * mixed / 2).map(|_| ([None; 2], false)));
    networks.extend((0..LOGGED).map(|_| ([None; 2], true)));
    let seeds = SEED..;
    seeds.zip(networks).map(|(seed, (queues, has_log))| (seed, queues, has_log)).collect()
}

fn saturated_runs(effort: Effort, progress: Progress<'_>) -> Result<Vec<SaturatedRun>, CalibrationError> {
    let plan = plan(effort);
    let mut runs = Vec::new();
    let total = plan.len();
    for (step, (seed, queues, has_log)) in plan.into_iter().enumerate() {
        progress("the engine", step, total);
        let network = RandomNetwork::with_queues(seed, queues);
        let shape = demand(&network.topology, &in_memory(&network, has_log))?.packet;
        let log = has_log.then(LogFile::new);
        let path = log.as_ref().map(|log| log.0.clone());
        let carried = saturate(&network, SPAN, path);
        // Without a place for the log its cost stays unknown.
        let carried = match carried {
            Err(_) if has_log => continue,
            carried => carried.map_err(CalibrationError::Run)?,
        };
        if carried.dropped <= DROPPED_MAX && carried.packets_per_second > 0.0 {
            runs.push(SaturatedRun { seed, shape, carried });
        }
    }
    Ok(runs)
}

/// A temporary per-packet log, removed on drop.
struct LogFile(PathBuf);

impl LogFile {
    fn new() -> LogFile {
        LogFile(std::env::temp_dir().join(format!("fastpath-capacity-{}.pcapng", std::process::id())))
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        // It may never have been written.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Fits the time per packet to the counts. Relative errors are minimised; runs that other work
/// disturbed count less.
fn fit_packets(runs: &[SaturatedRun]) -> Result<fastpath_model::model::Model, CalibrationError> {
    let mut columns = vec![("T_ns".to_owned(), runs.iter().map(SaturatedRun::ns).collect::<Vec<f64>>())];
    let queues = QUEUES.iter().map(|(name, _)| format!("q_{}", name.replace('-', "_")));
    let has_log = runs.iter().any(|run| run.shape.log > 0.0);
    // A packet passes a router between any two pipes: their number determines that of routers.
    let plain = ["bytes", "pipes", "spread", "calls"].map(str::to_owned);
    let names = plain.into_iter().chain(has_log.then(|| "log".to_owned())).chain(queues);
    for name in names {
        let values = runs.iter().map(|run| run.shape.column(&name).unwrap_or(0.0)).collect();
        columns.push((name, values));
    }
    let terms = columns[1..].iter().map(|(name, _)| name.as_str());
    let terms = std::iter::once("const").chain(terms).collect::<Vec<_>>().join(",");
    let table: Vec<(&str, &[f64])> =
        columns.iter().map(|(name, values)| (name.as_str(), values.as_slice())).collect();
    let options = FitOptions {
        method: Method::Huber,
        weighting: Weighting::Relative,
        regimes: Regimes::Off,
        ..FitOptions::default()
    };
    Ok(fit(&Table::from_columns(&table)?, "T_ns", &terms, &options)?.model())
}

fn fitted_ns(model: &fastpath_model::model::Model, run: &SaturatedRun) -> f64 {
    model.predict(|name| run.shape.column(name)).map_or(f64::NAN, |found| found.mean.value)
}

/// What memory and start cost, from a star of hosts and a row of routers.
fn memory_and_start(runs: &[SaturatedRun]) -> Result<(MemoryCosts, StartCosts), CalibrationError> {
    let run = |network: &RandomNetwork| {
        saturate(network, Duration::from_millis(10), None).map_err(CalibrationError::Run)
    };
    let (star, row) = (RandomNetwork::star(STAR_HOSTS), RandomNetwork::row(ROW_ROUTERS));
    let program_bytes = crate::emulate::resident();
    let [of_star, of_row] = [run(&star)?, run(&row)?];
    let small = median(runs.iter().map(|run| run.carried.grown_bytes));
    let links = row.topology.links.len() as f64;
    let link_bytes = ((of_row.grown_bytes - small).max(0.0) / links).max(1.0);
    let port_bytes = ((of_star.grown_bytes - small).max(0.0) / STAR_HOSTS as f64 - link_bytes).max(1.0);
    let starts: Vec<f64> = runs.iter().map(|run| run.carried.start_s).collect();
    let per_link = |start_s: f64, links: f64| ((start_s - median(starts.iter().copied())) / links).max(0.0);
    let few = per_link(run(&RandomNetwork::star(FEW_HOSTS))?.start_s, FEW_HOSTS as f64);
    let many = per_link(of_star.start_s, STAR_HOSTS as f64);
    let pair_s = ((many - few) / (STAR_HOSTS - FEW_HOSTS) as f64).max(0.0);
    let link_s = (few - pair_s * FEW_HOSTS as f64).max(0.0);
    // Threads, stacks and the frames of a small network belong to the program.
    let grown: Vec<f64> = runs.iter().map(|run| run.carried.grown_bytes.max(1.0)).collect();
    let grown = spread(&grown);
    let around = |value: f64, part: f64| Estimate::around(value, part * value);
    let memory = MemoryCosts {
        program_bytes: around(program_bytes, 0.05),
        engine_bytes: grown,
        link_bytes: around(link_bytes, 0.3),
        port_bytes: around(port_bytes, 0.3),
        per_held_byte: spread(&runs.iter().map(|run| run.carried.per_held_byte.max(1.0)).collect::<Vec<_>>()),
    };
    Ok((
        memory,
        StartCosts {
            engine_s: usual(starts),
            link_s: around(link_s, 0.5),
            pair_s: around(pair_s, 0.5),
            lab_s: None,
            host_s: None,
        },
    ))
}

/// The median of values with the interval that has most of them.
fn usual(values: Vec<f64>) -> Estimate {
    let values = sorted(values);
    let at = |q: f64| quantile(&values, q);
    let low = at(STARTS_LEFT_OUT) / START_MARGIN;
    Estimate { value: at(0.5), low, high: START_MARGIN * at(1.0 - STARTS_LEFT_OUT) }
}

/// How late frames are, idle and at half of the capacity.
fn lateness(costs: &EngineCosts, progress: Progress<'_>) -> Result<LatenessCosts, CalibrationError> {
    let mut seen: [Vec<Offered>; 2] = Default::default();
    for run in 0..LATENESS_RUNS {
        let network = RandomNetwork::new(SEED / 2 + run);
        let mut asked = demand(&network.topology, &in_memory(&network, false))?;
        asked.packets_per_second = 1.0;
        let capacity = predict(costs, &asked)?.packets_per_second.value;
        for (seen, load) in seen.iter_mut().zip([LITTLE, MUCH]) {
            progress("lateness", run as usize, LATENESS_RUNS as usize);
            let offered = offer(&network, load * capacity, LATENESS_SPAN);
            seen.push(offered.map_err(CalibrationError::Run)?);
        }
    }
    let of_load = |runs: &[Offered]| runs.iter().map(|run| [run.p50_us, run.p99_us]).collect::<Vec<_>>();
    Ok(seen_lateness(&seen.each_ref().map(|runs| of_load(runs))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_discipline_is_in_two_networks_and_no_seed_twice() {
        let plan = plan(Effort::Quick);
        for (place, (name, _)) in QUEUES.iter().enumerate() {
            let count = plan.iter().filter(|(_, queues, _)| queues.contains(&Some(place))).count();
            assert!(count >= 2, "{name} in {count}");
        }
        let seeds: std::collections::BTreeSet<u64> = plan.iter().map(|(seed, ..)| *seed).collect();
        assert_eq!(seeds.len(), plan.len());
        assert!(plan.len() > QUEUES.len() + 10, "more networks than terms");
    }

    #[test]
    fn the_costs_of_this_machine_are_plausible() {
        let found = calibrate(Effort::Quick, &|_, _, _| {}).expect("costs");
        let shape = PacketShape {
            port: "memory".to_owned(),
            bytes: 200.0,
            pipes: 3.0,
            routers: 2.0,
            spread: 3.0,
            calls: 0.05,
            ..PacketShape::default()
        };
        let ns = found.costs.packet_ns(&shape).expect("measured");
        assert!((10.0..1e6).contains(&ns.value) && ns.low <= ns.value && ns.value <= ns.high, "{ns:?}");
        let memory = found.costs.memory;
        // What a port takes is hardly seen beside other programs: at least the floor of a byte.
        assert!(memory.program_bytes.value > 1e6 && memory.port_bytes.value >= 1.0, "{memory:?}");
        let text = serde_json::to_string(&found.costs).unwrap();
        let read: EngineCosts = serde_json::from_str(&text).unwrap();
        let again = read.packet_ns(&shape).expect("measured");
        let is_near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
        assert!(is_near(again.value, ns.value), "{again:?}");
        assert!(is_near(read.memory.link_bytes.value, memory.link_bytes.value), "{memory:?}");
        assert!(found.costs.lab.is_some() || !found.missing.is_empty(), "{:?}", found.missing);
    }
}
