//! The points of the evaluation: a network, predicted first and then measured twice.
//!
//! | kind | the network | its speed |
//! |---|---|---|
//! | `in-memory` | ports in memory that send as much as they can | packets/s of the worker |
//! | `tap` | namespaces at TAP ports, all links in the engine | datagrams/s that arrive |
//! | `lab` | half of the hosts at switches in the kernel, as `fastpath lab` | datagrams/s that arrive |
//! | `tcp` | a TCP transfer between two namespaces of a lab | payload per second |

use fastpath_measure::capacity::{
    CalibrationError, DemandError, DemandOptions, EngineWorkers, FirstLink, LabRun, Offered, RandomNetwork,
    demand, offer, run_lab, saturate,
};
use fastpath_model::Estimate;
use fastpath_model::capacity::{
    CapacityVerdict, Demand, EngineCosts, PacketShape, Predicted, TCP_GOODPUT, judge, predict,
};
use fastpath_spec::{DataPathChoice, Topology};
use fastpath_units::Rng;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroUsize;
use std::time::Duration;

/// Loads as factors of the predicted capacity: even in their logarithm.
const LOADS: [f64; 2] = [0.1, 4.0];
/// Share of the offered packets that a carried load delivers. Those in the network at the end are
/// less.
const DELIVERED_MIN: f64 = 0.98;
/// Share of the slowest link's rate, less headers, that a carried connection reaches.
const REACHED_MIN: f64 = 0.95;
/// How often a load is offered until it is carried: other work on the machine only makes it worse.
const ATTEMPTS: usize = 3;
/// Measured time of a saturated run, and of one at a load.
const SPAN: Duration = Duration::from_millis(80);
const LOAD_SPAN: Duration = Duration::from_millis(200);
/// Measured time of a lab.
const LAB_SPAN: Duration = Duration::from_millis(320);
/// More packets per second than the hosts of a lab send.
const ENDLESS: f64 = 1.5e6;

/// What a point is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PointKind {
    /// Ports in memory.
    InMemory,
    /// Namespaces at TAP ports that send datagrams.
    Tap,
    /// A whole lab, part of which runs in the kernel.
    Lab,
    /// A TCP transfer in a lab.
    Tcp,
}

impl PointKind {
    /// All kinds.
    pub const ALL: [PointKind; 4] = [PointKind::InMemory, PointKind::Tap, PointKind::Lab, PointKind::Tcp];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            PointKind::InMemory => "in-memory",
            PointKind::Tap => "tap",
            PointKind::Lab => "lab",
            PointKind::Tcp => "tcp",
        }
    }
}

impl fmt::Display for PointKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A quantity of a point.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct PredictedQuantity {
    /// What was predicted.
    pub predicted: Estimate,
    /// What was measured.
    pub measured: f64,
    /// Whether the interval has the measured value.
    pub covered: bool,
}

impl PredictedQuantity {
    /// Compares a prediction with a measurement.
    pub(super) fn new(predicted: Estimate, measured: f64) -> PredictedQuantity {
        PredictedQuantity { predicted, measured, covered: predicted.covers(measured) }
    }
}

/// A network, predicted and measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CapacityPoint {
    /// What it is.
    pub kind: PointKind,
    /// The seed of the network.
    pub seed: u64,
    /// What a packet passes.
    pub shape: PacketShape,
    /// Packets per second, of `tcp` bits of payload per second: predicted, and measured first.
    pub speed: PredictedQuantity,
    /// The same, measured again.
    pub again: f64,
    /// The offered load, in the unit of the speed.
    pub load: f64,
    /// The verdict on it.
    pub verdict: CapacityVerdict,
    /// Whether the load was carried.
    pub carried: bool,
    /// 99th percentile of the lateness at the load, in microseconds, of loads below the capacity.
    pub lateness_p99_us: Option<PredictedQuantity>,
    /// Resident memory of the program, bytes.
    pub memory_bytes: Option<PredictedQuantity>,
    /// Seconds until it ran.
    pub start_s: Option<PredictedQuantity>,
}

impl CapacityPoint {
    /// Predicts and measures the network of a seed.
    ///
    /// # Errors
    /// A network without a demand, or a run that fails.
    pub(super) fn measure(
        kind: PointKind,
        costs: &EngineCosts,
        seed: u64,
        rng: &mut Rng,
    ) -> Result<CapacityPoint, CalibrationError> {
        match kind {
            PointKind::InMemory => in_memory(costs, seed, rng),
            PointKind::Tap => in_lab(costs, &LabPoint::of_taps(seed), rng),
            PointKind::Lab => in_lab(costs, &LabPoint::whole(seed), rng),
            PointKind::Tcp => over_tcp(costs, seed),
        }
    }
}

/// A random load, and what is predicted of a network with it.
struct Asked {
    demand: Demand,
    capacity: Predicted,
    at_load: Predicted,
    load: f64,
    verdict: CapacityVerdict,
}

impl Asked {
    /// Draws a load for a demand without one.
    fn new(costs: &EngineCosts, mut demand: Demand, rng: &mut Rng) -> Result<Asked, CalibrationError> {
        demand.packets_per_second = 0.0;
        let capacity = predict(costs, &demand)?;
        let [low, high] = LOADS.map(f64::ln);
        let most = capacity.packets_per_second.value;
        let load = most * (low + rng.unit_f64() * (high - low)).exp();
        demand.packets_per_second = load;
        let at_load = predict(costs, &demand)?;
        let (verdict, _) = judge(&demand, &at_load);
        Ok(Asked { demand, capacity, at_load, load, verdict })
    }

    /// The lateness of a load below the capacity; above it there is none in the long run.
    fn lateness(&self, p99_us: f64) -> Option<PredictedQuantity> {
        let is_below = self.at_load.busiest.value < 0.9;
        is_below.then(|| PredictedQuantity::new(self.at_load.lateness_p99_us, p99_us))
    }
}

fn in_memory(costs: &EngineCosts, seed: u64, rng: &mut Rng) -> Result<CapacityPoint, CalibrationError> {
    let network = RandomNetwork::new(seed);
    let options = options("memory", DataPathChoice::User, Some(network.bytes as f64));
    // Before anything is measured.
    let asked = Asked::new(costs, demand(&network.topology, &options)?, rng)?;
    let runs = [(); 2].map(|()| saturate(&network, SPAN, None).map_err(CalibrationError::Run));
    let [first, second] = runs;
    let (first, second) = (first?, second?);
    let (carried, offered) = is_carried(&network, asked.load)?;
    let memory = costs.memory.program_bytes.value + first.grown_bytes.max(second.grown_bytes);
    let Predicted { packets_per_second, memory_bytes, start_s, .. } = asked.capacity;
    Ok(CapacityPoint {
        kind: PointKind::InMemory,
        seed,
        speed: PredictedQuantity::new(packets_per_second, first.packets_per_second),
        again: second.packets_per_second,
        load: asked.load,
        verdict: asked.verdict,
        carried,
        lateness_p99_us: asked.lateness(offered.p99_us),
        memory_bytes: Some(PredictedQuantity::new(memory_bytes, memory)),
        start_s: start_s.map(|start| PredictedQuantity::new(start, first.start_s)),
        shape: asked.demand.packet,
    })
}

/// Offers a load until it is carried.
fn is_carried(network: &RandomNetwork, load: f64) -> Result<(bool, Offered), CalibrationError> {
    let mut best: Option<Offered> = None;
    for _ in 0..ATTEMPTS {
        let offered = offer(network, load, LOAD_SPAN).map_err(CalibrationError::Run)?;
        let first = *best.get_or_insert(offered);
        if offered.delivered >= DELIVERED_MIN {
            return Ok((true, first));
        }
    }
    Ok((false, best.expect("there is an attempt")))
}

/// A lab with datagrams.
struct LabPoint {
    kind: PointKind,
    seed: u64,
    network: RandomNetwork,
    data_path: DataPathChoice,
}

impl LabPoint {
    fn of_taps(seed: u64) -> LabPoint {
        let network = RandomNetwork::lab(seed, FirstLink::Fast);
        LabPoint { kind: PointKind::Tap, seed, network, data_path: DataPathChoice::User }
    }

    fn whole(seed: u64) -> LabPoint {
        let network = RandomNetwork::half_switched_lab(seed);
        LabPoint { kind: PointKind::Lab, seed, network, data_path: DataPathChoice::Auto }
    }

    fn run(&self, packets_per_second: f64) -> Result<LabRun, CalibrationError> {
        let topology = self.network.with_datagrams(packets_per_second);
        run_lab(topology, self.data_path, LAB_SPAN).map_err(CalibrationError::Run)
    }

    fn demand(&self, topology: &Topology) -> Result<Demand, DemandError> {
        demand(topology, &options("tap", self.data_path, None))
    }
}

fn in_lab(costs: &EngineCosts, point: &LabPoint, rng: &mut Rng) -> Result<CapacityPoint, CalibrationError> {
    let asked = Asked::new(costs, point.demand(&point.network.with_datagrams(ENDLESS))?, rng)?;
    let (first, second) = (point.run(ENDLESS)?, point.run(ENDLESS)?);
    let speed = |run: &LabRun| run.packets_per_second;
    let mut offered: Option<LabRun> = None;
    let mut carried = false;
    for _ in 0..ATTEMPTS {
        let run = point.run(asked.load)?;
        offered.get_or_insert(run);
        carried = run.mean_packets_per_second >= DELIVERED_MIN * asked.load;
        if carried {
            break;
        }
    }
    let p99_us = offered.expect("there is an attempt").p99_us;
    let Predicted { packets_per_second, start_s, .. } = asked.capacity;
    Ok(CapacityPoint {
        kind: point.kind,
        seed: point.seed,
        speed: PredictedQuantity::new(packets_per_second, speed(&first)),
        again: speed(&second),
        load: asked.load,
        verdict: asked.verdict,
        carried,
        lateness_p99_us: asked.lateness(p99_us),
        memory_bytes: None,
        start_s: start_s.map(|start| PredictedQuantity::new(start, first.start_s)),
        shape: asked.demand.packet,
    })
}

/// A transfer. Half of them have a slow link, which they fill or not.
fn over_tcp(costs: &EngineCosts, seed: u64) -> Result<CapacityPoint, CalibrationError> {
    let is_slow = Rng::new(seed).below(2) == 1;
    let first_link = if is_slow { FirstLink::Slow } else { FirstLink::Fast };
    let topology = RandomNetwork::lab(seed, first_link).with_tcp();
    let asked = demand(&topology, &options("tap", DataPathChoice::User, None))?;
    let predicted = predict(costs, &asked)?;
    let (verdict, _) = judge(&asked, &predicted);
    let run = || run_lab(topology.clone(), DataPathChoice::User, LAB_SPAN).map_err(CalibrationError::Run);
    let (first, second) = (run()?, run()?);
    let missing = || CalibrationError::Run("the costs of TCP were not measured".to_owned());
    let load = asked.tcp_bottleneck_bps * TCP_GOODPUT;
    let best = first.tcp_bits_per_second.max(second.tcp_bits_per_second);
    Ok(CapacityPoint {
        kind: PointKind::Tcp,
        seed,
        speed: PredictedQuantity::new(
            predicted.tcp_bits_per_second.ok_or_else(missing)?,
            first.tcp_bits_per_second,
        ),
        again: second.tcp_bits_per_second,
        load,
        verdict,
        carried: best >= REACHED_MIN * load,
        lateness_p99_us: None,
        memory_bytes: None,
        start_s: predicted.start_s.map(|start| PredictedQuantity::new(start, first.start_s)),
        shape: asked.packet,
    })
}

/// A network on one worker.
fn options(port: &str, data_path: DataPathChoice, frame_bytes: Option<f64>) -> DemandOptions {
    DemandOptions {
        port: port.to_owned(),
        workers: EngineWorkers::AtMost(NonZeroUsize::MIN),
        data_path,
        has_log: false,
        memory_limit: fastpath_engine::memory_default().get() as f64,
        // No run is broken by lateness, whose coverage is a figure of its own.
        tolerance_us: f64::INFINITY,
        frame_bytes,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
    }
}
