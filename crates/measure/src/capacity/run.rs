//! Runs a network in memory on the engine's workers: saturated, or at a given load.

use super::demand::{DemandOptions, EngineWorkers, FRAMES_PER_LOOK};
use super::networks::RandomNetwork;
use crate::emulate::resident;
use crate::station::{Pace, Station};
use fastpath_engine::port::{Burst, Port};
use fastpath_engine::{
    BOUNDS_NS, EdgePorts, Idle, Notice, Options, Report, Running, Workers, release_heap, start,
};
use fastpath_model::Estimate;
use fastpath_model::dist::t_quantile;
use fastpath_net::{EdgeId, HostPath, Routes};
use fastpath_spec::{DataPathChoice, NodeId, Topology};
use fastpath_units::stats::{median, quantile, sorted};
use fastpath_wire::build::Ip;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A run before it is measured.
const WARM_UP: Duration = Duration::from_millis(30);
/// Parts of a measured run. This quantile of their rates is its rate: other work on the machine
/// only makes a part slower.
const WINDOWS: u32 = 8;
const UNDISTURBED: f64 = 0.75;
/// Parts of a run at a load.
const LATENESS_WINDOWS: u32 = 5;
/// Headers of Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;
/// Most frames that a port at a constant rate sends at a time, as a full socket buffer holds.
const BACKLOG: usize = 256;

/// What a saturated run carried.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Carried {
    /// Delivered packets per second for which the worker had its core.
    pub packets_per_second: f64,
    /// Seconds until the engine ran.
    pub start_s: f64,
    /// Growth of this process's memory, in bytes.
    pub grown_bytes: f64,
    /// Bytes of memory for each byte of a frame in the network.
    pub per_held_byte: f64,
    /// Dropped frames per delivered one.
    pub dropped: f64,
}

/// What a run at a given load carried.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Offered {
    /// Delivered packets as a share of the offered ones.
    pub delivered: f64,
    /// Share of a core that the worker used while it moved frames.
    pub busy: f64,
    /// Median lateness, in microseconds. As the percentile, that of the median part of the run: a
    /// spell of other work spoils a part.
    pub p50_us: f64,
    /// 99th percentile of the lateness.
    pub p99_us: f64,
}

/// The options of a run in memory, on one worker.
pub(super) fn in_memory(network: &RandomNetwork, has_log: bool) -> DemandOptions {
    DemandOptions {
        port: "memory".to_owned(),
        workers: EngineWorkers::AtMost(NonZeroUsize::MIN),
        data_path: DataPathChoice::User,
        has_log,
        memory_limit: 1e9,
        tolerance_us: 1000.0,
        frame_bytes: Some(network.bytes as f64),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
    }
}

/// Runs a network with all that its ports can send, on one worker. `log` is where to write a
/// per-packet log.
///
/// # Errors
/// The engine did not start, or a worker failed.
pub fn saturate(network: &RandomNetwork, span: Duration, log: Option<PathBuf>) -> Result<Carried, String> {
    let hosts = network.topology.hosts().count();
    let burst = FRAMES_PER_LOOK.div_ceil(hosts).min(Burst::MAX);
    let started = start_network(network, burst, &Pace::Saturating, (Idle::Busy, log))?;
    let report = || started.running.report().ok_or("a worker has ended");
    let cpu = |report: &Report| report.workers.iter().map(|worker| worker.cpu_s).sum::<f64>();
    sleep(WARM_UP);
    let first = report()?;
    let mut reports = vec![first.clone()];
    for _ in 0..WINDOWS {
        sleep(span / WINDOWS);
        reports.push(report()?);
    }
    let rate = |pair: &[Report]| {
        let delivered = pair[1].accounting.delivered - pair[0].accounting.delivered;
        delivered as f64 / (cpu(&pair[1]) - cpu(&pair[0])).max(1e-9)
    };
    let rates = sorted(reports.windows(2).map(rate));
    let packets_per_second = quantile(&rates, UNDISTURBED);
    let (before, after) = (first, reports.pop().expect("there is a window"));
    let grown_bytes = started.grown_bytes();
    let delivered = (after.accounting.delivered - before.accounting.delivered) as f64;
    let dropped = |report: &Report| report.accounting.dropped.values().sum::<u64>();
    let held = after.accounting.held.max(1) as f64 * network.bytes as f64;
    let pool: usize = after.workers.iter().map(|worker| worker.pool_bytes).sum();
    started.running.stop().map_err(|error| error.to_string())?;
    Ok(Carried {
        packets_per_second,
        start_s: started.start_s,
        grown_bytes,
        per_held_byte: pool as f64 / held,
        dropped: (dropped(&after) - dropped(&before)) as f64 / delivered.max(1.0),
    })
}

/// Runs a network at a load of `packets_per_second` of all hosts together, on one worker that
/// sleeps when nothing is due.
///
/// # Errors
/// The engine did not start, or a worker failed.
pub fn offer(network: &RandomNetwork, packets_per_second: f64, span: Duration) -> Result<Offered, String> {
    let each = packets_per_second / network.topology.hosts().count() as f64;
    let started = start_network(network, BACKLOG.min(Burst::MAX), &Pace::Constant(each), (Idle::Save, None))?;
    let report =
        || started.running.report().map(|report| (report, Instant::now())).ok_or("a worker has ended");
    sleep(WARM_UP);
    let mut reports = vec![report()?];
    for _ in 0..LATENESS_WINDOWS {
        sleep(span / LATENESS_WINDOWS);
        reports.push(report()?);
    }
    started.running.stop().map_err(|error| error.to_string())?;
    let late = |q| {
        let parts = reports.windows(2).map(|pair| between(&pair[0].0, &pair[1].0));
        median(parts.map(|(within, frames)| quantile_us(&within, frames, q)))
    };
    let (p50_us, p99_us) = (late(0.5), late(0.99));
    let (after, to) = reports.pop().expect("there is a part");
    let (before, from) = reports.swap_remove(0);
    let seconds = (to - from).as_secs_f64();
    let busy = |report: &Report| report.workers.iter().map(|worker| worker.busy_s).sum::<f64>();
    let delivered = (after.accounting.delivered - before.accounting.delivered) as f64;
    Ok(Offered {
        delivered: delivered / (packets_per_second * seconds),
        busy: (busy(&after) - busy(&before)) / seconds,
        p50_us,
        p99_us,
    })
}

/// The frames released between two reports, in all and within each of [`BOUNDS_NS`].
pub(super) fn between(before: &Report, after: &Report) -> ([u64; BOUNDS_NS.len()], u64) {
    let mut within = [0; BOUNDS_NS.len()];
    let mut frames = 0;
    for (before, after) in before.ports.iter().zip(&after.ports) {
        frames += after.lateness.frames - before.lateness.frames;
        let pairs = before.lateness.within.iter().zip(&after.lateness.within);
        within.iter_mut().zip(pairs).for_each(|(sum, (before, after))| *sum += after - before);
    }
    (within, frames)
}

/// A quantile of counts by [`BOUNDS_NS`], in microseconds, interpolated.
pub(super) fn quantile_us(within: &[u64; BOUNDS_NS.len()], frames: u64, q: f64) -> f64 {
    let wanted = q * frames as f64;
    let (mut below, mut bound) = (0.0, 0.0);
    for (&count, &next) in within.iter().zip(&BOUNDS_NS) {
        let (count, next) = (count as f64, next as f64 / 1e3);
        if count >= wanted {
            return bound + (wanted - below) / (count - below).max(1.0) * (next - bound);
        }
        (below, bound) = (count, next);
    }
    bound
}

struct StartedNetwork {
    running: Running,
    start_s: f64,
    before_bytes: f64,
}

impl StartedNetwork {
    fn grown_bytes(&self) -> f64 {
        (resident() - self.before_bytes).max(0.0)
    }
}

fn start_network(
    network: &RandomNetwork,
    burst: usize,
    pace: &Pace,
    (idle, packet_log): (Idle, Option<PathBuf>),
) -> Result<StartedNetwork, String> {
    let frames = frames(&network.topology, network.bytes);
    release_heap();
    let before_bytes = resident();
    let began = Instant::now();
    let ports: EdgePorts = frames
        .into_iter()
        .zip(0..)
        .map(|(frame, edge)| {
            let port = Station::new(vec![frame], 0, burst, pace.clone());
            (EdgeId(edge), Box::new(port) as Box<dyn Port>)
        })
        .collect();
    let options = Options {
        idle: Some(idle),
        workers: Some(Workers::Count(NonZeroUsize::MIN)),
        notice: Notice::none(),
        packet_log,
        ..Options::new(fastpath_net::Options::with_seed(1))
    };
    let running = start(network.topology.clone(), ports, options).map_err(|error| error.to_string())?;
    Ok(StartedNetwork { running, start_s: began.elapsed().as_secs_f64(), before_bytes })
}

/// By host: the frame that it sends to the host that is half of all hosts further.
fn frames(topology: &Topology, bytes: usize) -> Vec<Vec<u8>> {
    let hosts: Vec<NodeId> = topology.hosts().map(|(id, _)| id).collect();
    let routes = Routes::compute(topology);
    let frame = |(place, &from): (usize, &NodeId)| {
        let to = hosts[(place + hosts.len() / 2) % hosts.len()];
        let path = HostPath::find(topology, &routes, from, to).expect("a connected network");
        Ip::between(path.from, path.to).udp(9, 9, &vec![0; bytes.saturating_sub(HEADERS)])
    };
    hosts.iter().enumerate().map(frame).collect()
}

/// Returns the median of positive values with the 95 % interval of one further value, whose
/// logarithm is taken as normal. Without spread the interval is 5 % wide to each side.
pub fn spread(values: &[f64]) -> Estimate {
    let logs: Vec<f64> = values.iter().map(|value| value.max(1e-12).ln()).collect();
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n.max(1.0);
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    let width = t_quantile(0.975, (n - 1.0).max(1.0)) * (variance * (1.0 + 1.0 / n)).sqrt();
    let value = median(values.iter().copied());
    let width = width.clamp(0.05, 20.0);
    Estimate { value, low: value * (-width).exp(), high: value * width.exp() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saturated_network_delivers_and_drops_nothing() {
        for seed in 0..6 {
            let network = RandomNetwork::new(seed);
            let found = saturate(&network, Duration::from_millis(40), None).unwrap();
            assert!(
                found.packets_per_second > 1000.0 && found.dropped < 0.01,
                "{seed}: {found:?} {:?}",
                network.queues
            );
        }
    }

    #[test]
    fn a_small_load_is_delivered_whole() {
        let found = offer(&RandomNetwork::star(4), 4000.0, Duration::from_millis(200)).unwrap();
        assert!((0.8..1.2).contains(&found.delivered), "{found:?}");
        assert!(found.p50_us <= found.p99_us, "{found:?}");
    }

    #[test]
    fn quantiles_are_interpolated() {
        let mut within = [100; BOUNDS_NS.len()];
        (within[0], within[1]) = (0, 50);
        // Half within 1 to 2 µs, half within 2 to 5 µs.
        assert_eq!(quantile_us(&within, 100, 0.5), 2.0);
        assert_eq!(quantile_us(&within, 100, 0.75), 3.5);
    }

    #[test]
    fn the_interval_of_a_further_value_has_the_spread_of_those_seen() {
        let narrow = spread(&[100.0, 101.0, 99.0, 100.0]);
        assert!(narrow.value == 100.0 && (narrow.low - 95.1).abs() < 0.1, "{narrow:?}");
        let wide = spread(&[50.0, 100.0, 200.0]);
        assert!(wide.value == 100.0 && wide.low < 30.0 && wide.high > 400.0, "{wide:?}");
    }
}
