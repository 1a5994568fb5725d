//! Figures 5.2–5.5: throughput over links without rate, delay and loss, by frame size. The
//! published unit is the share of the line rate of ports of 100 Mbit/s. Ours is too, so it exceeds
//! 100 %.
//!
//! ```text
//!  source ═veth═ engine or bridge ═veth═ host that counts   figures 5.2, 5.4: two pairs
//!                                                           figure 5.5: one pair
//!  memory port ─▶ engine's work ─▶ memory port              figure 5.3: the emulation alone
//! ```
//!
//! Every pair is offered as much as one core can send, to an unused address; the receiving kernel
//! counts. Our engine uses AF_XDP ports (`port = "xdp:eth1"`), or packet sockets where AF_XDP is
//! not available. The value with packet sockets is reported too.

use super::{Figure, Measurement, Needs};
use crate::testbed::rattan::{self, RattanLink};
use crate::testbed::testpmd;
use crate::testbed::{Between, Testbed, interface, received};
use crate::{MeasurementError, RunContext, SEED};
use fastpath_audit::core_time::CoreTime;
use fastpath_audit::{AuditError, SocketError, open_in};
use fastpath_engine::port::{AfPacket, AfXdp, BURST, Port};
use fastpath_lab::Host;
use fastpath_link::PipeSpec;
use fastpath_measure::{EmulationQuestion, LinkKind, LinkWeight, emulate};
use fastpath_net::{Frame, FramePool};
use fastpath_report::{Criterion, EvaluatedFigure, Scale};
use fastpath_units::Time;
use fastpath_units::stats::median;
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

/// Frames with FCS, bytes.
const SIZES: [u32; 6] = [64, 128, 256, 512, 1024, 1518];
const FCS: u32 = 4;
/// Preamble and gap between frames on Ethernet, bytes.
const AROUND: u32 = 20;
/// How much slower than the bridge, or than three times rattan, we may be: such values vary by that
/// much from run to run.
const TOLERANCE: f64 = 0.05;
/// Testpmd emulates nothing.
const DPDK_TOLERANCE: f64 = 0.1;
/// The required multiple of rattan's throughput.
const TIMES_RATTAN: f64 = 3.0;
/// An odd number, so that there is a median.
const ROUNDS: usize = 5;
/// Time for the last frames to arrive.
const SETTLE: Duration = Duration::from_millis(20);

/// About the unit.
const NOTE: &str = "100 % is the line rate of the published ports, of 100 Mbit/s each. The ports here are faster, so values exceed 100 %; \
    the table of further numbers has packets/s.";

// Published values of Joglekar 2004.
/// Figure 5.2, LinkEM: packet size, and share of the line rate of four ports in % where the text
/// prints one.
const LINKEM_SHARES: &[(u32, f64)] = &[(64, 83.0)];
/// Figure 5.3, LinkEM before egress: line rate from 128 bytes on. At 64 bytes the text prints only
/// the share of Figure 5.2.
const LINKEM_SHARES_BEFORE_EGRESS: &[(u32, f64)] =
    &[(64, 83.0), (128, 100.0), (256, 100.0), (512, 100.0), (1024, 100.0), (1518, 100.0)];
/// Figure 5.4, Dummynet: packet size, and share of the line rate of four ports in % where the text
/// prints one.
const DUMMYNET_SHARES: &[(u32, f64)] = &[(64, 18.0), (1518, 81.0)];
/// Figure 5.5, Dummynet: packet size, and share of the line rate of two ports in %. It is line rate
/// from 256 bytes on.
const DUMMYNET_TWO_PORT_SHARES: &[(u32, f64)] =
    &[(64, 42.0), (128, 62.0), (256, 100.0), (512, 100.0), (1024, 100.0), (1518, 100.0)];

pub(super) const FIGURES: &[Figure] = &[
    Figure {
        id: "figure-5.2",
        title: "Figure 5.2: throughput of four ports over veth pairs",
        original: "LinkEM, Joglekar 2004, Figure 5.2",
        x: Some(("frame size with FCS, bytes", Scale::Log2)),
        y: Some(("throughput, % of the line rate of four ports of 100 Mbit/s", Scale::Log10)),
        note: NOTE,
        variants: &[],
    },
    Figure {
        id: "figure-5.3",
        title: "Figure 5.3: throughput of the emulation alone, in memory",
        original: "LinkEM, Joglekar 2004, Figure 5.3",
        x: Some(("frame size with FCS, bytes", Scale::Log2)),
        y: Some(("throughput, % of the line rate of four ports of 100 Mbit/s", Scale::Log10)),
        note: NOTE,
        variants: &[],
    },
    Figure {
        id: "figure-5.4",
        title: "Figure 5.4: throughput of four ports, compared with Dummynet",
        original: "Dummynet, Joglekar 2004, Figure 5.4",
        x: Some(("frame size with FCS, bytes", Scale::Log2)),
        y: Some(("throughput, % of the line rate of four ports of 100 Mbit/s", Scale::Log10)),
        note: NOTE,
        variants: &[],
    },
    Figure {
        id: "figure-5.5",
        title: "Figure 5.5: throughput of two ports, compared with Dummynet",
        original: "Dummynet, Joglekar 2004, Figure 5.5",
        x: Some(("frame size with FCS, bytes", Scale::Log2)),
        y: Some(("throughput, % of the line rate of two ports of 100 Mbit/s", Scale::Log10)),
        note: NOTE,
        variants: &[],
    },
];

pub(super) const MEASUREMENTS: &[Measurement] = &[VETH, MEMORY];

const VETH: Measurement = Measurement {
    step: "throughput over veth",
    needs: Needs::Namespaces,
    ids: |_| ids(&["figure-5.2", "figure-5.4", "figure-5.5"]),
    seconds: [130.0, 310.0],
    rattan_seconds: [24.0, 60.0],
    run: over_veth,
};

const MEMORY: Measurement = Measurement {
    step: "throughput in memory",
    needs: Needs::Nothing,
    ids: |_| ids(&["figure-5.3"]),
    seconds: [4.0, 20.0],
    rattan_seconds: [0.0; 2],
    run: in_memory,
};

fn ids(figures: &[&str]) -> Vec<String> {
    figures.iter().flat_map(|figure| SIZES.map(|size| format!("{figure}/{size}"))).collect()
}

/// The unit of a throughput over `ports` ports.
fn unit(ports: u32) -> String {
    format!("% of the line rate of {ports} ports of 100 Mbit/s")
}

/// Frames per second that fill `ports` ports of 100 Mbit/s.
fn line_rate(size: u32, ports: u32) -> f64 {
    f64::from(ports) * 1e8 / f64::from(8 * (size + AROUND))
}

fn printed(shares: &[(u32, f64)], size: u32) -> Option<f64> {
    shares.iter().find(|row| row.0 == size).map(|row| row.1)
}

fn over_veth(context: &RunContext<'_>) -> Result<Vec<EvaluatedFigure>, MeasurementError> {
    let mut results = Vec::new();
    for size in SIZES {
        let four = ["figure-5.2", "figure-5.4"].map(|figure| format!("{figure}/{size}"));
        if four.iter().any(|id| context.wants(id)) {
            let seen = Throughput::of(size, 2, context)?;
            let [linkem, dummynet] = [LINKEM_SHARES, DUMMYNET_SHARES].map(|shares| printed(shares, size));
            let [first, second] = four;
            results.push(seen.result(first, linkem));
            results.push(seen.result(second, dummynet));
        }
        let two = format!("figure-5.5/{size}");
        if context.wants(&two) {
            let seen = Throughput::of(size, 1, context)?;
            results.push(seen.result(two, printed(DUMMYNET_TWO_PORT_SHARES, size)));
        }
    }
    // Sort by figure; sizes stay in order.
    results.sort_by(|a, b| a.id.split('/').next().cmp(&b.id.split('/').next()));
    Ok(results)
}

/// Frames received per second with each alternative in the path.
struct Throughput {
    size: u32,
    ports: u32,
    ours: Carried,
    /// Our engine with packet sockets.
    packet: f64,
    bridge: f64,
    control: f64,
    /// DPDK's testpmd and rattan, where they are installed and work.
    dpdk: Option<f64>,
    rattan: Option<f64>,
}

/// Frames sent and received per second, and how many were received.
struct Carried {
    /// The kind of our engine's ports; empty without our engine.
    kind: String,
    sent: f64,
    received: f64,
    n: u64,
}

impl Throughput {
    /// Measures all in turns. The machine may change its speed between rounds, so the throughput of
    /// another program is ours times the median of the rounds' ratios.
    fn of(size: u32, pairs: u32, context: &RunContext<'_>) -> Result<Throughput, MeasurementError> {
        let ours = |kind| Between::Veths(PipeSpec::default(), kind);
        let rattan = Between::Rattan(RattanLink::Delay(fastpath_units::Duration::ZERO));
        let others = [ours("packet"), Between::Bridge, Between::Nothing, Between::Testpmd, rattan];
        let (mut ours, mut others) = (MeasuredPath::new(ours("xdp")), others.map(MeasuredPath::new));
        for _ in 0..ROUNDS {
            for path in std::iter::once(&mut ours).chain(&mut others) {
                path.blast(size, pairs, context)?;
            }
        }
        let ratios = others.map(|path| path.ratio_to(&ours));
        let ours = ours.middle().expect("every round of the engine has a rate");
        let [packet, bridge, control, dpdk, rattan] = ratios.map(|ratio| Some(ratio? * ours.received));
        let sure = |carried: Option<f64>| carried.expect("every round of all but a peer has a rate");
        let [packet, bridge, control] = [packet, bridge, control].map(sure);
        Ok(Throughput { size, ports: 2 * pairs, ours, packet, bridge, control, dpdk, rattan })
    }

    fn result(&self, id: String, original: Option<f64>) -> EvaluatedFigure {
        let percent = |received: f64| 100.0 * received / line_rate(self.size, self.ports);
        let bridge = percent(self.bridge);
        let (dpdk, rattan) = (self.dpdk.map(percent), self.rattan.map(percent));
        let bounds = [
            Some((bridge, TOLERANCE, "the kernel bridge")),
            original.map(|original| (original, 0.0, "the original")),
            dpdk.map(|dpdk| (dpdk, DPDK_TOLERANCE, "DPDK's AF_XDP ports")),
            rattan.map(|rattan| (TIMES_RATTAN * rattan, TOLERANCE, "three times rattan")),
        ];
        let least = |&(bound, tolerance, _): &(f64, f64, &str)| bound * (1.0 - tolerance);
        let highest = bounds.into_iter().flatten().max_by(|a, b| least(a).total_cmp(&least(b)));
        let (bound, tolerance, of) = highest.expect("the bridge is there");
        let criterion = Criterion::at_least(bound, tolerance, of);
        EvaluatedFigure::new(id, &unit(self.ports), percent(self.ours.received), self.ours.n, criterion)
            .original(original)
            .control(percent(self.control))
            .peer("kernel bridge", bridge)
            .peer(testpmd::NAME, dpdk)
            .peer(rattan::PROGRAM, rattan)
            .detail("packets_per_second", self.ours.received)
            .detail("packet_socket_packets_per_second", self.packet)
            .detail("offered_packets_per_second", self.ours.sent)
            .detail("bridge_packets_per_second", self.bridge)
            .detail("control_packets_per_second", self.control)
            .note(format!(
                "fastpath with {}; other programs: median over the rounds of their ratio to fastpath; the published values of figures 5.4 \
                 and 5.5 are Dummynet's",
                self.ours.kind
            ))
    }
}

/// A path between the hosts, and its throughput in each round.
struct MeasuredPath {
    between: Between,
    /// The hosts, kept between rounds unless our engine polls between them.
    kept: Option<RunningTestbed>,
    rounds: Vec<Option<Carried>>,
}

/// Hosts, and the sources in them.
struct RunningTestbed {
    testbed: Testbed,
    sources: Vec<Source>,
}

impl RunningTestbed {
    fn new(
        between: &Between,
        size: u32,
        pairs: u32,
        context: &RunContext<'_>,
    ) -> Result<RunningTestbed, MeasurementError> {
        let all: Vec<Between> = (0..pairs).map(|_| between.clone()).collect();
        let testbed = Testbed::new(&all)?;
        let sources = hosts(&testbed).map(|host| Source::new(host, size)).collect::<Result<Vec<_>, _>>()?;
        let mut running = RunningTestbed { testbed, sources };
        // Fill the caches and the bridge's table first.
        send(&mut running.sources, duration(context) / 4, context)?;
        context.stop.sleep(SETTLE)?;
        Ok(running)
    }

    fn received(&self) -> Result<u64, MeasurementError> {
        hosts(&self.testbed).map(received).sum()
    }

    fn sent(&mut self) -> u64 {
        self.sources.iter_mut().map(|source| source.port.counters().tx_frames).sum()
    }
}

impl MeasuredPath {
    fn new(between: Between) -> MeasuredPath {
        MeasuredPath { between, kept: None, rounds: Vec::new() }
    }

    /// Measures one more round.
    fn blast(&mut self, size: u32, pairs: u32, context: &RunContext<'_>) -> Result<(), MeasurementError> {
        let peer = match self.between {
            Between::Testpmd => Some(testpmd::NAME),
            Between::Rattan(_) => Some(rattan::PROGRAM),
            _ => None,
        };
        let rate = match peer {
            None => Some(self.round(size, pairs, context)?),
            Some(name) => context.peer(name, || self.round(size, pairs, context), |rate| rate.n > 0)?,
        };
        self.rounds.push(rate);
        Ok(())
    }

    /// Sends between the hosts of every pair in both directions, as fast as one thread can.
    fn round(
        &mut self,
        size: u32,
        pairs: u32,
        context: &RunContext<'_>,
    ) -> Result<Carried, MeasurementError> {
        let mut running = match self.kept.take() {
            Some(running) => running,
            None => RunningTestbed::new(&self.between, size, pairs, context)?,
        };
        running.testbed.pause(false);
        let (before, sent_before) = (running.received()?, running.sent());
        let before_report = running.testbed.report();
        let watch = CoreTime::start(before_report.as_ref());
        let began = Instant::now();
        watch.of_thread(|| send(&mut running.sources, duration(context), context))?;
        let elapsed = began.elapsed().as_secs_f64();
        context.note(watch.finish(running.testbed.report().as_ref()));
        context.stop.sleep(SETTLE)?;
        let n = running.received()? - before;
        let sent = (running.sent() - sent_before) as f64 / elapsed;
        let report = running.testbed.report();
        let kind =
            report.as_ref().and_then(|report| Some(report.ports.first()?.kind.clone())).unwrap_or_default();
        if report.is_none() {
            running.testbed.pause(true);
            self.kept = Some(running);
        }
        Ok(Carried { kind, sent, received: n as f64 / elapsed, n })
    }

    /// Returns the median of the rounds' ratios to another path; `None` without rounds.
    fn ratio_to(&self, other: &MeasuredPath) -> Option<f64> {
        let rounds = self.rounds.iter().zip(&other.rounds);
        let rounds = rounds.filter_map(|(own, its)| Some((own.as_ref()?, its.as_ref()?)));
        let ratios: Vec<f64> = rounds.map(|(own, its)| own.received / its.received).collect();
        (!ratios.is_empty()).then(|| median(ratios))
    }

    /// Returns the round with the median throughput.
    fn middle(self) -> Option<Carried> {
        let mut rounds: Vec<Carried> = self.rounds.into_iter().flatten().collect();
        rounds.sort_by(|a, b| a.received.total_cmp(&b.received));
        let middle = rounds.len() / 2;
        (!rounds.is_empty()).then(|| rounds.swap_remove(middle))
    }
}

/// The duration of a round.
fn duration(context: &RunContext<'_>) -> Duration {
    context.either(Duration::from_millis(200), Duration::from_secs(1))
}

fn hosts(testbed: &Testbed) -> impl Iterator<Item = &Host> {
    (0..testbed.pairs()).flat_map(|pair| [testbed.pair(pair).0, testbed.pair(pair).1])
}

/// A socket in a host, and the frame it sends.
struct Source {
    port: Box<dyn Port>,
    pool: FramePool,
    frame: Vec<u8>,
    waiting: VecDeque<Frame>,
}

impl Source {
    fn new(host: &Host, size: u32) -> Result<Source, MeasurementError> {
        let open = || -> io::Result<Box<dyn Port>> {
            let interface = interface()?;
            match AfXdp::sender(&interface) {
                Ok(port) => Ok(Box::new(port)),
                Err(_) => Ok(Box::new(AfPacket::open(&interface).map_err(io::Error::other)?)),
            }
        };
        let port = open_in(host, "a socket to send from", open)?;
        let mut frame = vec![0; (size - FCS) as usize];
        // Unused locally administered addresses, and the EtherType of local experiments (IEEE 802).
        frame[..14].copy_from_slice(&[2, 9, 9, 9, 9, 1, 2, 9, 9, 9, 9, 2, 0x88, 0xb5]);
        Ok(Source { port, pool: FramePool::default(), frame, waiting: VecDeque::with_capacity(BURST) })
    }

    fn burst(&mut self) -> Result<(), AuditError> {
        while self.waiting.len() < BURST {
            self.waiting.push_back(self.pool.insert(&self.frame).expect("a burst fits"));
        }
        let sent = self.port.tx_burst(Time::ZERO, &mut self.pool, &mut self.waiting);
        sent.map_err(|error| SocketError { what: "sending frames", source: io::Error::other(error) }.into())
    }
}

fn send(
    sources: &mut [Source],
    duration: Duration,
    context: &RunContext<'_>,
) -> Result<(), MeasurementError> {
    let began = Instant::now();
    while began.elapsed() < duration {
        context.stop.check()?;
        for source in sources.iter_mut() {
            source.burst()?;
        }
    }
    Ok(())
}

fn in_memory(context: &RunContext<'_>) -> Result<Vec<EvaluatedFigure>, MeasurementError> {
    let mut results = Vec::new();
    for size in SIZES {
        let load = EmulationQuestion {
            size: (size - FCS) as usize,
            links: 1,
            burst: BURST,
            packets: context.either(300_000, 3_000_000),
            seed: SEED,
            link: LinkKind::Ideal,
            cores: 1,
        };
        let weight = LinkWeight { running: 0.0, description: 0.0 };
        let seen = emulate(&load, weight, &|_, _, _| {});
        context.stop.check()?;
        let percent = |rate: f64| 100.0 * rate / line_rate(size, 4);
        let original = printed(LINKEM_SHARES_BEFORE_EGRESS, size);
        let criterion = Criterion::at_least(original.unwrap_or(0.0), 0.0, "the original");
        let result = EvaluatedFigure::new(
            format!("figure-5.3/{size}"),
            &unit(4),
            percent(seen.packets_per_second),
            seen.entered,
            criterion,
        )
        .original(original)
        .control(percent(seen.ceiling_packets_per_second))
        .detail("packets_per_second", seen.packets_per_second)
        .detail("control_packets_per_second", seen.ceiling_packets_per_second)
        .note("one core: classification and an ideal link; the control copies frames in and out in the same way");
        results.push(result);
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_rate_is_the_published_one() {
        assert!((line_rate(64, 4) / 1000.0 - 595.238).abs() < 0.001);
        assert!((line_rate(1518, 4) / 1000.0 - 32.51).abs() < 0.01);
    }
}
