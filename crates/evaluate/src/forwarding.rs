//! Figures 5.2–5.5: how much passes through links that do nothing (no rate, no delay, no loss), by
//! packet size. The original's axis is the share of its line rate, so ours is too and goes beyond
//! 100 %.
//!
//! ```text
//!  source ═veth═ engine or bridge ═veth═ host that counts       figures 5.2 and 5.4: two such pairs, both directions
//!                                                               figure 5.5: one pair
//!  memory port ─▶ engine's work ─▶ memory port                  figure 5.3: the emulation without its way in and out
//! ```
//!
//! Every pair is offered as much as one core can send, to an address nobody has; the receiving
//! kernel counts. Ours is with AF_XDP ports (`port = "xdp:eth1"`), or with packet sockets where
//! those are not to be had; the other is beside it.

use super::field::{Between, Field, interface, received};
use super::rattan::{self, Treatment};
use super::{Context, Needs, Outcome, Part, PartError, Rule, SEED, testpmd};
use fastpath_engine::port::{AfPacket, AfXdp, BURST, Port};
use fastpath_lab::Host;
use fastpath_lab::audit::{AuditError, SocketError};
use fastpath_link::PipeSpec;
use fastpath_measure::{EmulationQuestion, LinkKind, LinkWeight, emulate};
use fastpath_model::publications::linkem::{
    DUMMYNET_SHARES, DUMMYNET_TWO_PORT_SHARES, LINKEM_SHARES, LINKEM_SHARES_BEFORE_EGRESS,
};
use fastpath_net::{Frame, FramePool};
use fastpath_units::Time;
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

/// Frames with FCS, bytes.
const SIZES: [u32; 6] = [64, 128, 256, 512, 1024, 1518];
const FCS: u32 = 4;
/// Preamble and gap between frames on Ethernet, bytes.
const AROUND: u32 = 20;
const UNIT: &str = "% of line rate";
/// How much slower than the bridge, or three times rattan, we may be: such figures vary by that
/// from run to run.
const TOLERANCE: f64 = 0.05;
/// It emulates nothing.
const DPDK_TOLERANCE: f64 = 0.1;
/// How many times what rattan carries.
const TIMES_RATTAN: f64 = 3.0;
/// Odd, so that one is in the middle.
const ROUNDS: usize = 5;
/// What the source has sent arrives within this.
const SETTLE: Duration = Duration::from_millis(20);

pub(super) const VETH: Part = Part {
    step: "throughput over veth",
    needs: Needs::Namespaces,
    ids: |_| ids(&["figure-5.2", "figure-5.4", "figure-5.5"]),
    seconds: [130.0, 310.0],
    rattan_seconds: [24.0, 60.0],
    run: over_veth,
};

pub(super) const MEMORY: Part = Part {
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

/// Frames per second that fill `ports` ports of 100 Mbit/s.
fn line_rate(size: u32, ports: u32) -> f64 {
    f64::from(ports) * 1e8 / f64::from(8 * (size + AROUND))
}

fn printed(shares: &[(u32, f64)], size: u32) -> Option<f64> {
    shares.iter().find(|row| row.0 == size).map(|row| row.1)
}

fn over_veth(context: &Context<'_>) -> Result<Vec<Outcome>, PartError> {
    let mut outcomes = Vec::new();
    for size in SIZES {
        let four = ["figure-5.2", "figure-5.4"].map(|figure| format!("{figure}/{size}"));
        if four.iter().any(|id| context.wants(id)) {
            let seen = Seen::of(size, 2, context)?;
            let [linkem, dummynet] = [LINKEM_SHARES, DUMMYNET_SHARES].map(|shares| printed(shares, size));
            let [first, second] = four;
            outcomes.push(seen.outcome(first, linkem));
            outcomes.push(seen.outcome(second, dummynet));
        }
        let two = format!("figure-5.5/{size}");
        if context.wants(&two) {
            let seen = Seen::of(size, 1, context)?;
            outcomes.push(seen.outcome(two, printed(DUMMYNET_TWO_PORT_SHARES, size)));
        }
    }
    // By figure, then by size.
    outcomes.sort_by(|a, b| a.id.split('/').next().cmp(&b.id.split('/').next()));
    Ok(outcomes)
}

/// Frames received per second with each thing in the path.
struct Seen {
    size: u32,
    ports: u32,
    ours: Rate,
    /// Ours by packet sockets.
    packet: f64,
    bridge: f64,
    control: f64,
    /// DPDK's testpmd and rattan, where they are installed and work.
    dpdk: Option<f64>,
    rattan: Option<f64>,
}

/// Frames sent and received per second, and how many were received.
struct Rate {
    /// The ports of our engine; empty without it.
    kind: String,
    sent: f64,
    received: f64,
    n: u64,
}

impl Seen {
    /// All take turns. This machine may change its speed from one round to the next, so what others
    /// carry is told by the middle of their rounds' ratios to ours.
    fn of(size: u32, pairs: u32, context: &Context<'_>) -> Result<Seen, PartError> {
        let ours = |kind| Between::Veths(PipeSpec::default(), kind);
        let rattan = Between::Rattan(Treatment::Delay(fastpath_units::Duration::ZERO));
        let others = [ours("packet"), Between::Bridge, Between::Nothing, Between::Testpmd, rattan];
        let (mut ours, mut others) = (Path::new(ours("xdp")), others.map(Path::new));
        for _ in 0..ROUNDS {
            for path in std::iter::once(&mut ours).chain(&mut others) {
                path.blast(size, pairs, context)?;
            }
        }
        let ratios = others.map(|path| path.ratio_to(&ours));
        let ours = ours.middle().expect("every round of ours has a rate");
        let [packet, bridge, control, dpdk, rattan] = ratios.map(|ratio| Some(ratio? * ours.received));
        let sure = |carried: Option<f64>| carried.expect("every round of all but a peer has a rate");
        let [packet, bridge, control] = [packet, bridge, control].map(sure);
        Ok(Seen { size, ports: 2 * pairs, ours, packet, bridge, control, dpdk, rattan })
    }

    fn outcome(&self, id: String, original: Option<f64>) -> Outcome {
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
        let rule = Rule::AtLeast { bound, tolerance, of };
        Outcome::new(id, UNIT, percent(self.ours.received), self.ours.n, rule)
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
                "ours with {}; others by the middle of their ratios to ours, round by round; the originals of figures 5.4 \
                 and 5.5 are Dummynet's",
                self.ours.kind
            ))
    }
}

/// What may lie in between, and what passed in each round.
struct Path {
    between: Between,
    /// The hosts, as long as nothing between them polls while others are measured.
    standing: Option<Stand>,
    rounds: Vec<Option<Rate>>,
}

/// Hosts, and who sends from them.
struct Stand {
    field: Field,
    sources: Vec<Source>,
}

impl Stand {
    fn new(between: &Between, size: u32, pairs: u32, context: &Context<'_>) -> Result<Stand, PartError> {
        let all: Vec<Between> = (0..pairs).map(|_| between.clone()).collect();
        let field = Field::new(&all)?;
        let sources = hosts(&field).map(|host| Source::new(host, size)).collect::<Result<Vec<_>, _>>()?;
        let mut stand = Stand { field, sources };
        // The engine's or the kernel's caches, and the bridge's table, fill first.
        send(&mut stand.sources, duration(context) / 4, context)?;
        context.stop.sleep(SETTLE)?;
        Ok(stand)
    }

    fn received(&self) -> Result<u64, PartError> {
        hosts(&self.field).map(received).sum()
    }

    fn sent(&mut self) -> u64 {
        self.sources.iter_mut().map(|source| source.port.counters().tx_frames).sum()
    }
}

impl Path {
    fn new(between: Between) -> Path {
        Path { between, standing: None, rounds: Vec::new() }
    }

    /// One more round.
    fn blast(&mut self, size: u32, pairs: u32, context: &Context<'_>) -> Result<(), PartError> {
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

    /// Sends between the hosts of every pair, in both directions, as fast as one thread can.
    fn round(&mut self, size: u32, pairs: u32, context: &Context<'_>) -> Result<Rate, PartError> {
        let mut stand = match self.standing.take() {
            Some(stand) => stand,
            None => Stand::new(&self.between, size, pairs, context)?,
        };
        stand.field.pause(false);
        let (before, sent_before) = (stand.received()?, stand.sent());
        let began = Instant::now();
        send(&mut stand.sources, duration(context), context)?;
        let elapsed = began.elapsed().as_secs_f64();
        context.stop.sleep(SETTLE)?;
        let n = stand.received()? - before;
        let sent = (stand.sent() - sent_before) as f64 / elapsed;
        let report = stand.field.report();
        let kind =
            report.as_ref().and_then(|report| Some(report.ports.first()?.kind.clone())).unwrap_or_default();
        if report.is_none() {
            stand.field.pause(true);
            self.standing = Some(stand);
        }
        Ok(Rate { kind, sent, received: n as f64 / elapsed, n })
    }

    /// How much more is received than over another path: the middle round's; `None` without rounds.
    fn ratio_to(&self, other: &Path) -> Option<f64> {
        let rounds = self.rounds.iter().zip(&other.rounds);
        let rounds = rounds.filter_map(|(own, its)| Some((own.as_ref()?, its.as_ref()?)));
        let mut ratios: Vec<f64> = rounds.map(|(own, its)| own.received / its.received).collect();
        ratios.sort_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied()
    }

    /// The round in which the middle number of frames was received.
    fn middle(self) -> Option<Rate> {
        let mut rounds: Vec<Rate> = self.rounds.into_iter().flatten().collect();
        rounds.sort_by(|a, b| a.received.total_cmp(&b.received));
        let middle = rounds.len() / 2;
        (!rounds.is_empty()).then(|| rounds.swap_remove(middle))
    }
}

/// How long a round takes.
fn duration(context: &Context<'_>) -> Duration {
    context.either(Duration::from_millis(200), Duration::from_secs(1))
}

fn hosts(field: &Field) -> impl Iterator<Item = &Host> {
    (0..field.pairs()).flat_map(|pair| [field.pair(pair).0, field.pair(pair).1])
}

/// A socket in a host, and the frame it sends.
struct Source {
    port: Box<dyn Port>,
    pool: FramePool,
    frame: Vec<u8>,
    waiting: VecDeque<Frame>,
}

impl Source {
    fn new(host: &Host, size: u32) -> Result<Source, PartError> {
        let open = || -> io::Result<Box<dyn Port>> {
            let interface = interface()?;
            match AfXdp::sender(&interface) {
                Ok(port) => Ok(Box::new(port)),
                Err(_) => Ok(Box::new(AfPacket::open(&interface).map_err(io::Error::other)?)),
            }
        };
        let port = host.open("a socket to send from", open)?;
        let mut frame = vec![0; (size - FCS) as usize];
        // To a station nobody is, from one nobody is, of a protocol nobody speaks (IEEE 802, local
        // experiments).
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

fn send(sources: &mut [Source], duration: Duration, context: &Context<'_>) -> Result<(), PartError> {
    let began = Instant::now();
    while began.elapsed() < duration {
        context.stop.check()?;
        for source in sources.iter_mut() {
            source.burst()?;
        }
    }
    Ok(())
}

fn in_memory(context: &Context<'_>) -> Result<Vec<Outcome>, PartError> {
    let mut outcomes = Vec::new();
    for size in SIZES {
        let question = EmulationQuestion {
            size: (size - FCS) as usize,
            links: 1,
            burst: BURST,
            packets: context.either(300_000, 3_000_000),
            seed: SEED,
            link: LinkKind::Ideal,
            cores: 1,
        };
        let weight = LinkWeight { running: 0.0, description: 0.0 };
        let seen = emulate(&question, weight, &|_, _, _| {});
        context.stop.check()?;
        let percent = |rate: f64| 100.0 * rate / line_rate(size, 4);
        let original = printed(LINKEM_SHARES_BEFORE_EGRESS, size);
        let rule = Rule::AtLeast { bound: original.unwrap_or(0.0), tolerance: 0.0, of: "the original" };
        let outcome = Outcome::new(
            format!("figure-5.3/{size}"),
            UNIT,
            percent(seen.packets_per_second),
            seen.entered,
            rule,
        )
        .original(original)
        .control(percent(seen.ceiling_packets_per_second))
        .detail("packets_per_second", seen.packets_per_second)
        .detail("control_packets_per_second", seen.ceiling_packets_per_second)
        .note("one core, classification and an ideal link; the control copies frames in and out alike");
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_rate_is_the_thesis_one() {
        assert!((line_rate(64, 4) / 1000.0 - 595.238).abs() < 0.001);
        assert!((line_rate(1518, 4) / 1000.0 - 32.51).abs() < 0.01);
    }
}
