//! What labs cost: random small labs with TAP ports, their datagrams, TCP, lateness and start.
//!
//! As for ports in memory the time per packet is fitted to what the network asks for. Here that is
//! above all the time that the same packet takes between ports in memory, which is predicted.

use super::calibration_error::CalibrationError;
use super::demand::{DemandOptions, EngineWorkers, demand};
use super::lab_run::{LabRun, run_lab};
use super::lateness::seen_lateness;
use super::networks::{FirstLink, RandomNetwork};
use super::run::spread;
use crate::{Effort, Progress};
use fastpath_model::capacity::{ENGINE_NS, EngineCosts, LabCosts, PacketShape, TCP_GOODPUT, predict};
use fastpath_model::fit::{FitOptions, Method, Regimes, Weighting, fit};
use fastpath_model::model::Model;
use fastpath_model::{Estimate, Table};
use fastpath_spec::{DataPathChoice, Topology};
use std::num::NonZeroUsize;
use std::time::Duration;

/// The first seed of the labs. Evaluations use others.
const SEED: u64 = 2_000_000;
/// Labs with datagrams, and as many with a connection; then those with a connection over a slow
/// link.
const LABS: [u64; 2] = [8, 24];
const SLOW_LABS: [u64; 2] = [4, 10];
/// Measured time of a lab.
const SPAN: [Duration; 2] = [Duration::from_millis(160), Duration::from_millis(320)];
/// Labs for lateness at each load.
const LATENESS_LABS: [u64; 2] = [4, 8];
/// Loads at which lateness is measured, as shares of the predicted capacity.
const LITTLE: f64 = 0.02;
const MUCH: f64 = 0.5;
/// More packets per second than the hosts of a lab send.
const ENDLESS: f64 = 1.5e6;

/// A lab that ran.
struct LabPoint {
    shape: PacketShape,
    run: LabRun,
}

/// Labs that ran, before the costs of the engine are known.
pub(super) struct LabRuns {
    datagrams: Vec<LabPoint>,
    tcp: Vec<LabPoint>,
    fills: Vec<f64>,
    /// Hosts, and seconds until the lab was up.
    starts: Vec<[f64; 2]>,
}

/// How a lab is run whose links are all in the engine.
fn options() -> DemandOptions {
    DemandOptions {
        port: "tap".to_owned(),
        workers: EngineWorkers::AtMost(NonZeroUsize::MIN),
        data_path: DataPathChoice::User,
        has_log: false,
        memory_limit: 1e9,
        tolerance_us: f64::INFINITY,
        frame_bytes: None,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
    }
}

/// Runs small labs.
///
/// # Errors
/// Why there can be no lab here.
pub(super) fn run_labs(effort: Effort, progress: Progress<'_>) -> Result<LabRuns, String> {
    let full = usize::from(effort == Effort::Full);
    let (count, slow) = (LABS[full], SLOW_LABS[full]);
    let mut runs = LabRuns { datagrams: Vec::new(), tcp: Vec::new(), fills: Vec::new(), starts: Vec::new() };
    let run = |topology: Topology| run_lab(topology, DataPathChoice::User, SPAN[full]);
    let asked = |topology: &Topology| demand(topology, &options()).map_err(|error| error.to_string());
    for place in 0..count {
        progress("labs", place as usize, (count + slow) as usize);
        let network = RandomNetwork::lab(SEED + place, FirstLink::Fast);
        let topology = network.with_datagrams(ENDLESS);
        let (shape, hosts) = (asked(&topology)?.packet, topology.hosts().count() as f64);
        let datagrams = run(topology)?;
        runs.starts.push([hosts, datagrams.start_s]);
        runs.datagrams.push(LabPoint { shape, run: datagrams });
        let topology = network.with_tcp();
        runs.tcp.push(LabPoint { shape: asked(&topology)?.tcp_packet, run: run(topology)? });
    }
    for place in 0..slow {
        progress("labs", (count + place) as usize, (count + slow) as usize);
        let topology = RandomNetwork::lab(SEED + count + place, FirstLink::Slow).with_tcp();
        let most = asked(&topology)?.tcp_bottleneck_bps * TCP_GOODPUT;
        runs.fills.push(run(topology)?.tcp_bits_per_second / most);
    }
    Ok(runs)
}

impl LabRuns {
    /// Explains them by the costs between ports in memory.
    pub(super) fn costs(&self, costs: &EngineCosts) -> Result<LabCosts, CalibrationError> {
        let packet =
            fit_lab(costs, &self.datagrams, &["bytes"], |run| 1e9 / run.packets_per_second.max(1.0))?;
        let tcp_bit = fit_lab(costs, &self.tcp, &[], |run| 1e9 / run.tcp_bits_per_second.max(1.0))?;
        // Where the machine is the limit the link is not filled.
        let fills: Vec<f64> = self.fills.iter().copied().filter(|fill| *fill > FILLED).collect();
        Ok(LabCosts {
            packet,
            lateness: costs.lateness,
            tcp_bit,
            tcp_fill: if fills.len() > 1 { spread(&fills) } else { UNKNOWN_FILL },
        })
    }

    /// Seconds to start a lab, and each of its hosts. What differs between labs of as many hosts is
    /// in the interval of the first.
    pub(super) fn start(&self) -> [Estimate; 2] {
        let mean = |place: usize| {
            self.starts.iter().map(|start| start[place]).sum::<f64>() / self.starts.len().max(1) as f64
        };
        let [hosts, seconds] = [mean(0), mean(1)];
        let sum = |of: &dyn Fn(f64, f64) -> f64| {
            self.starts.iter().map(|start| of(start[0] - hosts, start[1] - seconds)).sum::<f64>()
        };
        let host_s = sum(&|x, y| x * y) / sum(&|x, _| x * x).max(1e-12);
        let host_s = host_s.clamp(1e-5, seconds / hosts.max(1.0));
        let rest: Vec<f64> =
            self.starts.iter().map(|[hosts, seconds]| (seconds - host_s * hosts).max(1e-4)).collect();
        [spread(&rest), Estimate::around(host_s, 0.3 * host_s)]
    }
}

/// Where no slow link was measured.
const UNKNOWN_FILL: Estimate = Estimate { value: 0.97, low: 0.9, high: 1.01 };
/// A connection that reaches this share of a link is limited by the link.
const FILLED: f64 = 0.85;

/// Fits what labs took to the time between ports in memory, and to other counts.
fn fit_lab(
    costs: &EngineCosts,
    labs: &[LabPoint],
    counts: &[&str],
    y: fn(&LabRun) -> f64,
) -> Result<Model, CalibrationError> {
    let in_memory = |shape: &PacketShape| {
        let shape = PacketShape { port: "memory".to_owned(), ..shape.clone() };
        costs.packet_ns(&shape).map(|ns| ns.value)
    };
    let engine = labs.iter().map(|point| in_memory(&point.shape)).collect::<Result<Vec<f64>, _>>()?;
    let of_count = |name: &&str| -> Vec<f64> {
        labs.iter().map(|point| point.shape.column(name).unwrap_or(0.0)).collect()
    };
    let counted: Vec<Vec<f64>> = counts.iter().map(of_count).collect();
    let ys: Vec<f64> = labs.iter().map(|point| y(&point.run).max(1e-9)).collect();
    let mut columns: Vec<(&str, &[f64])> = vec![("T_ns", &ys), (ENGINE_NS, &engine)];
    columns.extend(counts.iter().zip(&counted).map(|(name, values)| (*name, values.as_slice())));
    let terms = columns[1..].iter().map(|(name, _)| *name);
    let terms = std::iter::once("const").chain(terms).collect::<Vec<_>>().join(",");
    let options = FitOptions {
        method: Method::Huber,
        weighting: Weighting::Relative,
        regimes: Regimes::Off,
        ..FitOptions::default()
    };
    Ok(fit(&Table::from_columns(&columns)?, "T_ns", &terms, &options)?.model())
}

/// Measures how late the frames of labs are, whose other costs are known.
pub(super) fn lateness(
    costs: &mut EngineCosts,
    effort: Effort,
    progress: Progress<'_>,
) -> Result<(), CalibrationError> {
    let full = usize::from(effort == Effort::Full);
    let mut seen: [Vec<[f64; 2]>; 2] = Default::default();
    for place in 0..LATENESS_LABS[full] {
        let network = RandomNetwork::lab(SEED / 2 + place, FirstLink::Fast);
        let mut asked = demand(&network.with_datagrams(1.0), &options())?;
        asked.packets_per_second = 1.0;
        let capacity = predict(costs, &asked)?.packets_per_second.value;
        for (seen, load) in seen.iter_mut().zip([LITTLE, MUCH]) {
            progress("lateness of labs", place as usize, LATENESS_LABS[full] as usize);
            let run = run_lab(network.with_datagrams(load * capacity), DataPathChoice::User, SPAN[full]);
            let run = run.map_err(CalibrationError::Run)?;
            seen.push([run.p50_us, run.p99_us]);
        }
    }
    if let Some(lab) = &mut costs.lab {
        lab.lateness = seen_lateness(&seen);
    }
    Ok(())
}
