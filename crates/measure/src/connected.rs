//! Measures how much faster several workers run one connected network than one does.
//!
//! ```text
//!  host ports that make frames ─▶ workers of the engine, which cut the network ─▶ host ports that count them
//! ```
//!
//! Every host has a port in memory whose frames the worker of the host makes itself, as it would
//! read them from a kernel. Three of ten packets go to hosts at the other side of the network, the
//! others stay near. Runs with one worker and with several take turns, so that a slow spell of the
//! machine meets both.

use crate::Progress;
use crate::station::{Pace, Station};
use fastpath_engine::port::{Burst, Port};
use fastpath_engine::{EdgePorts, Idle, Notice, Options, Report, Workers, start};
use fastpath_model::Estimate;
use fastpath_model::scaling::{PartLoad, ScalingCosts};
use fastpath_net::{EdgeId, HostPath, Partition, Routes};
use fastpath_spec::{NodeId, Topology};
use fastpath_units::stats::median;
use fastpath_wire::build::Ip;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread::sleep;
use std::time::Instant;

/// Rate and delay of every link: none loses anything, and all may be cut.
const RATE: &str = "100Gbit";
const DELAY: &str = "200us";
const QUEUE: &str = "100000p";
/// Of ten frames of a host, this number go to the other side.
const FAR_OF_TEN: usize = 3;
/// Frames that all ports of a run make between two looks at what is due.
const FRAMES_PER_LOOK: usize = 256;
/// Frames in the network at most: hosts wait, as programs do whose packets are not answered. Six
/// hops take at least 1.2 ms, so this bounds the rate at 7 million per second.
const IN_FLIGHT_MAX: usize = 8_192;
/// Rounds, each with one worker and with several.
const ROUNDS: usize = 5;
/// A run before it is measured, and while it is.
const WARM_UP: std::time::Duration = std::time::Duration::from_millis(150);
const MEASURED: std::time::Duration = std::time::Duration::from_millis(500);
/// Numbers of workers for which a speed-up is predicted.
const PREDICTED: [usize; 4] = [2, 4, 16, 64];
/// Headers of Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;

/// The shape of a connected network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkShape {
    /// Two routers with the same number of hosts each.
    Dumbbell,
    /// One router, and a link to each host.
    Star,
    /// A fat tree of switches with k ports: k³/4 hosts and k³/2 links between routers (Al-Fares et
    /// al., SIGCOMM 2008).
    FatTree,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ConnectedQuestion {
    /// The shape.
    pub topology: NetworkShape,
    /// Links at most.
    pub links: usize,
    /// Workers at most, compared with one.
    pub workers: usize,
    /// Frame length in bytes, without FCS.
    pub size: usize,
    /// The seed.
    pub seed: u64,
}

/// What was found.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Connected {
    /// Links of the network.
    pub links_built: usize,
    /// Workers that ran it.
    pub workers_run: usize,
    /// Delivered packets per second.
    pub packets_per_second: f64,
    /// The same with one worker.
    pub one_worker_packets_per_second: f64,
    /// The ratio, the median of rounds.
    pub speedup: f64,
    /// The ratio that the model of scaling gives before anything is measured.
    pub expected_speedup: Estimate,
    /// The ratios that it gives for more workers, each with a core, from the costs measured here.
    pub predicted: Vec<PredictedSpeedup>,
    /// Packets times pipes per second.
    pub packet_hops_per_second: f64,
    /// Nanoseconds of both workers for a frame that passes from one to another.
    pub handover_ns: f64,
    /// Frames that passed from one worker to another, per delivered packet.
    pub cut_share: f64,
    /// Frames of other workers that came after they were due, in the measured runs.
    pub late: u64,
    /// Frames dropped in the measured runs.
    pub dropped: u64,
}

/// What is expected of more workers.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct PredictedSpeedup {
    /// Workers, each with a core. There may be fewer parts.
    pub workers: usize,
    /// Parts of the network.
    pub parts: usize,
    /// How many times as fast as one worker they are.
    pub speedup: Estimate,
}

/// A run in one round.
struct RoundCost {
    packets_per_second: f64,
    hops_per_second: f64,
    passed_on: u64,
    handover_s: f64,
    packets: u64,
    workers: usize,
    late: u64,
    dropped: u64,
}

/// Measures a network on the engine's workers, one for each core.
///
/// # Errors
/// The engine did not start or a worker failed.
pub fn connected(question: &ConnectedQuestion, progress: Progress<'_>) -> Result<Connected, String> {
    let topology = question.topology.build(question.links);
    let most = NonZeroUsize::new(question.workers).unwrap_or(NonZeroUsize::MIN);
    let loads = |workers| part_loads(&topology, workers);
    let expected_speedup = ScalingCosts::UNMEASURED.speedup(&loads(most));
    let hosts = topology.hosts().count();
    let neighborhood = match question.topology {
        NetworkShape::Dumbbell | NetworkShape::Star => hosts / 2,
        NetworkShape::FatTree => arity(question.links).pow(2) / 4,
    };
    let frames = frames(&topology, neighborhood.max(1), question.size);
    let mut rounds = Vec::new();
    for round in 0..ROUNDS {
        progress("connected network", round, ROUNDS);
        let one = run(&topology, &frames, NonZeroUsize::MIN, question.seed)?;
        rounds.push([one, run(&topology, &frames, most, question.seed)?]);
    }
    let middle = |of: fn(&[RoundCost; 2]) -> f64| median(rounds.iter().map(of));
    let sum = |of: fn(&RoundCost) -> u64| rounds.iter().map(|[_, several]| of(several)).sum::<u64>();
    let handover_s: f64 = rounds.iter().map(|[_, several]| several.handover_s).sum();
    let handover_ns = handover_s * 1e9 / sum(|run| run.passed_on).max(1) as f64;
    let speedups = || rounds.iter().map(|[one, several]| several.packets_per_second / one.packets_per_second);
    let speedup = Estimate {
        value: median(speedups()),
        low: speedups().fold(f64::INFINITY, f64::min),
        high: speedups().fold(0.0, f64::max),
    };
    // A frame that passes on costs two workers half of it each.
    let hop_ns = 1e9 / middle(|[one, _]| one.hops_per_second);
    let handover = Estimate::around(handover_ns / 2.0 / hop_ns, handover_ns / 4.0 / hop_ns);
    let costs = ScalingCosts::calibrated(&loads(most), speedup, handover);
    let predicted = PREDICTED.iter().filter_map(|workers| {
        let loads = loads(NonZeroUsize::new(*workers)?);
        Some(PredictedSpeedup { workers: *workers, parts: loads.len(), speedup: costs.speedup(&loads) })
    });
    Ok(Connected {
        links_built: topology.links.len(),
        workers_run: rounds[0][1].workers,
        packets_per_second: middle(|[_, several]| several.packets_per_second),
        one_worker_packets_per_second: middle(|[one, _]| one.packets_per_second),
        speedup: speedup.value,
        expected_speedup,
        predicted: predicted.collect(),
        packet_hops_per_second: middle(|[_, several]| several.hops_per_second),
        handover_ns,
        cut_share: sum(|run| run.passed_on) as f64 / sum(|run| run.packets).max(1) as f64,
        late: sum(|run| run.late),
        dropped: sum(|run| run.dropped),
    })
}

/// What the model of scaling needs of the parts for a number of workers.
fn part_loads(topology: &Topology, workers: NonZeroUsize) -> Vec<PartLoad> {
    let loads = Partition::new(topology, workers).loads();
    loads.into_iter().map(|[work, crossings]| PartLoad { work, crossings }).collect()
}

/// Runs the network, and measures after a warm-up.
fn run(
    topology: &Topology,
    frames: &[Vec<Vec<u8>>],
    workers: NonZeroUsize,
    seed: u64,
) -> Result<RoundCost, String> {
    let in_flight = Arc::new(AtomicUsize::new(0));
    let burst = (FRAMES_PER_LOOK * workers.get()).div_ceil(frames.len()).min(Burst::MAX);
    let ports: EdgePorts = frames
        .iter()
        .zip(0..)
        .map(|(frames, edge)| {
            let pace = Pace::Closed { in_flight: Arc::clone(&in_flight), most: IN_FLIGHT_MAX };
            let port = Station::new(frames.clone(), edge as usize, burst, pace);
            (EdgeId(edge), Box::new(port) as Box<dyn Port>)
        })
        .collect();
    let network = fastpath_net::Options::with_seed(seed);
    let options = Options {
        idle: Some(Idle::Busy),
        workers: Some(Workers::Count(workers)),
        notice: Notice::none(),
        ..Options::new(network)
    };
    let running = start(topology.clone(), ports, options).map_err(|error| error.to_string())?;
    let look = || running.report().map(|report| (report, Instant::now()));
    sleep(WARM_UP);
    let before = look();
    sleep(MEASURED);
    let after = look();
    running.stop().map_err(|error| error.to_string())?;
    let (Some((before, began)), Some((after, ended))) = (before, after) else {
        return Err("a worker has ended".to_owned());
    };
    Ok(RoundCost::between(&before, &after, (ended - began).as_secs_f64()))
}

impl RoundCost {
    fn between(before: &Report, after: &Report, seconds: f64) -> RoundCost {
        let grown = |of: fn(&Report) -> u64| of(after) - of(before);
        let packets = grown(|report| report.accounting.delivered);
        let pipes = |report: &Report| {
            report.links.iter().flat_map(|link| &link.directions).map(|pipe| pipe.frames_out).sum::<u64>()
        };
        let late = |report: &Report| {
            let pipes = report.links.iter().flat_map(|link| &link.directions);
            pipes.filter_map(|pipe| pipe.lateness).map(|lateness| lateness.late).sum()
        };
        let handover = |report: &Report| report.workers.iter().map(|worker| worker.handover_s).sum::<f64>();
        RoundCost {
            packets_per_second: packets as f64 / seconds,
            hops_per_second: grown(pipes) as f64 / seconds,
            passed_on: grown(|report| report.workers.iter().map(|worker| worker.passed_on).sum()),
            handover_s: handover(after) - handover(before),
            packets,
            workers: after.workers.len(),
            late: grown(late),
            dropped: grown(|report| report.accounting.dropped.values().sum()),
        }
    }
}

/// By host: the frames that it sends in turn, three of ten to the other side, and the others to
/// hosts of the same neighborhood.
fn frames(topology: &Topology, neighborhood: usize, size: usize) -> Vec<Vec<Vec<u8>>> {
    let hosts: Vec<NodeId> = topology.hosts().map(|(id, _)| id).collect();
    let routes = Routes::compute(topology);
    let (count, half) = (hosts.len(), hosts.len() / 2);
    let frame = |from: usize, to: usize| {
        let path = HostPath::find(topology, &routes, hosts[from], hosts[to]).expect("a connected network");
        Ip::between(path.from, path.to).udp(9, 9, &vec![0; size.saturating_sub(HEADERS)])
    };
    let of_host = |from: usize| {
        let turn = |turn: usize| {
            let is_far = turn * FAR_OF_TEN % 10 < FAR_OF_TEN;
            let first = from / neighborhood * neighborhood;
            let others = neighborhood.min(count - first).max(2) - 1;
            let near = first + (from - first + 1 + turn % others) % (others + 1);
            let to = if is_far { from + half + turn % neighborhood } else { near };
            let to = to % count;
            frame(from, if to == from { (from + 1) % count } else { to })
        };
        (0..10).map(turn).collect()
    };
    (0..count).map(of_host).collect()
}

impl NetworkShape {
    /// Builds the largest network of this shape with at most `links` links, but at least its
    /// smallest.
    pub fn build(self, links: usize) -> Topology {
        let mut text = "family = 'v4'\n".to_owned();
        let mut ends: Vec<[String; 2]> = Vec::new();
        let hosts = match self {
            NetworkShape::Dumbbell => {
                let side = (links.saturating_sub(1) / 2).max(1);
                ends.push(["r0".to_owned(), "r1".to_owned()]);
                (0..2 * side).map(|host| format!("r{}", host / side)).collect()
            }
            NetworkShape::Star => vec!["r0".to_owned(); links.max(2)],
            NetworkShape::FatTree => fat_tree(arity(links), &mut ends),
        };
        let routers = hosts.iter().chain(ends.iter().flatten());
        let routers: std::collections::BTreeSet<&String> = routers.collect();
        routers.iter().for_each(|router| _ = writeln!(text, "[router.{router}]"));
        (0..hosts.len()).for_each(|host| _ = writeln!(text, "[host.h{host}]"));
        let access = hosts.iter().enumerate().map(|(host, router)| [format!("h{host}"), router.clone()]);
        for [a, b] in access.chain(ends.iter().cloned()) {
            let _ = writeln!(
                text,
                "[[link]]\nbetween = ['{a}', '{b}']\nrate = '{RATE}'\ndelay = '{DELAY}'\nqueue = '{QUEUE}'"
            );
        }
        fastpath_spec::parse(&text).unwrap_or_else(|mistakes| panic!("{}", mistakes[0])).0
    }
}

/// The ports of each switch of the largest fat tree with at most `links` links: it has 3k³/4.
fn arity(links: usize) -> usize {
    (2..).step_by(2).take_while(|k| 3 * k * k * k / 4 <= links).last().unwrap_or(2)
}

/// The links between the routers of a fat tree, and the router of each host.
fn fat_tree(k: usize, ends: &mut Vec<[String; 2]>) -> Vec<String> {
    let half = k / 2;
    let mut hosts = Vec::new();
    for pod in 0..k {
        for edge in 0..half {
            hosts.extend((0..half).map(|_| format!("e{pod}x{edge}")));
            ends.extend((0..half).map(|upper| [format!("e{pod}x{edge}"), format!("a{pod}x{upper}")]));
        }
        for upper in 0..half {
            let core = |port: usize| [format!("a{pod}x{upper}"), format!("c{}", upper * half + port)];
            ends.extend((0..half).map(core));
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_their_links_and_are_cut_with_little_between_the_parts() {
        for (shape, links, built) in [
            (NetworkShape::Dumbbell, 9, 9),
            (NetworkShape::Dumbbell, 2, 3),
            (NetworkShape::Star, 200, 200),
            (NetworkShape::FatTree, 48, 48),
            (NetworkShape::FatTree, 100, 48),
        ] {
            let topology = shape.build(links);
            assert_eq!(topology.links.len(), built, "{shape:?}");
            let cut = Partition::new(&topology, NonZeroUsize::new(2).expect("2"));
            assert_eq!(cut.count(), 2, "{shape:?}");
        }
    }

    #[test]
    fn the_speedups_of_the_page_are_those_of_the_model() {
        // For two workers.
        let page = include_str!("../../../docs/concepts/parallel.md");
        for (shape, links, row) in [
            (NetworkShape::Dumbbell, 48, "dumbbell of 47 links"),
            (NetworkShape::Star, 200, "star of 200 links"),
            (NetworkShape::FatTree, 48, "fat tree with k = 4, 48 links"),
        ] {
            let two = NonZeroUsize::new(2).expect("2");
            let topology = shape.build(links);
            let Estimate { value, low, high } = ScalingCosts::UNMEASURED.speedup(&part_loads(&topology, two));
            let found = format!(" | {value:.2} ({low:.2} to {high:.2}) | ");
            let line = page.lines().find(|line| line.starts_with(&format!("| {row} |"))).expect(row);
            assert!(line.contains(&found), "{line}: {found}");
            // The partition decides by the same costs.
            assert!((value - Partition::new(&topology, two).expected_speedup()).abs() < 1e-9, "{row}");
        }
    }

    #[test]
    fn every_packet_of_a_measured_network_is_delivered_or_counted() {
        let question =
            ConnectedQuestion { topology: NetworkShape::Dumbbell, links: 5, workers: 2, size: 64, seed: 1 };
        let found = connected(&question, &|_, _, _| {}).expect("it runs");
        assert_eq!((found.workers_run, found.links_built), (2, 5));
        assert!(found.packets_per_second > 0.0 && found.speedup > 0.0, "{found:?}");
        assert!(found.handover_ns > 0.0, "{found:?}");
        // Three of ten packets cross, and some are on their way.
        assert!((found.cut_share - 0.3).abs() < 0.05, "{found:?}");
        assert!(found.packet_hops_per_second > 2.0 * found.packets_per_second, "{found:?}");
    }
}
