//! Many links over few ports, with a source and a sink of our own, in memory: the arrangement of
//! figures 5.7 and 5.9.
//!
//! ```text
//!                            ┌─ link 0 ─┐
//!  source ─▶ port ─▶ router ─┼─ link 1 ─┼─ router ─▶ port ─▶ sink         and the same the other way
//!                            └─ …       ┘
//! ```
//!
//! A router picks the link by the destination address, as LinkEM did. One thread feeds and reads
//! all ports: frames carry their flow, their number and the time they were sent, so nothing is lost
//! or reordered unseen. What one pipe carries is a flow; the thesis counts those as links.

use super::{Context, PartError, field};
use fastpath_engine::port::{BURST, Burst, Memory, MemoryEnd, Port};
use fastpath_engine::{EdgePorts, Report};
use fastpath_link::{Limit, PipeSpec, QueueSpec};
use fastpath_net::{EdgeId, FramePool};
use fastpath_spec::{LinkId, NodeId, NodeKind, Topology};
use fastpath_units::{Rate, Time};
use fastpath_wire::checksum;
use ipnet::{IpNet, Ipv4Net};
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Frames without FCS, bytes: TCP's fill them too.
pub(super) const FRAME: usize = 1514;
/// Flows of one end that follow each other and go to its ring together, where there are as many.
const CHUNK: usize = 32;
/// Duplex links between a pair of ports: their destinations are a /16.
pub(super) const LINKS_MAX: usize = 1 << 16;
/// Bytes that may wait at a port.
const RING: usize = 4 << 20;
/// What a link queues at least, frames, and for how long: enough for it not to idle when the source
/// is held up.
const QUEUE_MIN: u32 = 3;
const QUEUE_SPAN: f64 = 0.05;
/// How much more than asked is offered at the start, so that queues are full when the window
/// begins.
const START: f64 = 1.5;
/// A source that is further behind gives up what it missed.
const BEHIND_MAX: u64 = 8192;
pub(super) const POOL_LIMIT: NonZeroUsize = NonZeroUsize::new(4 << 30).unwrap();
/// Where in a frame the flow, its number and its time lie: behind Ethernet, IPv4 and UDP.
const PAYLOAD: usize = 14 + 20 + 8;

/// What is asked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Question {
    /// Pairs of ports.
    pub(super) pairs: usize,
    /// Flows over all of them, as [`Question::round`] gives.
    pub(super) flows: usize,
    /// Rate of each, bits per second.
    pub(super) rate: u64,
    /// Offered to each, as a multiple of its rate.
    pub(super) offered: f64,
    /// How long, after the start.
    pub(super) window: Duration,
}

/// What was found.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Trial {
    /// Relative error of each flow's rate; of one that hardly came through 1.
    pub(super) errors: Vec<f64>,
    /// Frames that overtook others of their flow.
    pub(super) disordered: u64,
    /// Frames received in the window.
    pub(super) received: u64,
    /// Frames the source offered of those it should have, 0 … 1.
    pub(super) offered_share: f64,
    /// How the engine stood in the end.
    pub(super) report: Report,
}

impl Question {
    /// The nearest number of flows there can be that is not larger; 0 below the least.
    pub(super) fn round(flows: usize, pairs: usize) -> usize {
        let step = 2 * pairs;
        let of_an_end = flows / step;
        let of_an_end = if of_an_end > CHUNK { of_an_end / CHUNK * CHUNK } else { of_an_end };
        of_an_end.min(LINKS_MAX) * step
    }

    /// Flows of a chunk.
    fn chunk(&self) -> usize {
        self.links_per_pair().min(CHUNK)
    }

    /// The most flows there can be.
    pub(super) fn most(pairs: usize) -> usize {
        2 * pairs * LINKS_MAX
    }

    fn links_per_pair(&self) -> usize {
        self.flows / (2 * self.pairs)
    }

    /// Frames per second offered to all flows.
    fn per_second(&self) -> f64 {
        self.flows as f64 * self.offered * self.rate as f64 / (8 * FRAME) as f64
    }

    /// Frames that a link queues.
    fn queue(&self) -> u32 {
        ((self.rate as f64 * QUEUE_SPAN / (8 * FRAME) as f64) as u32).max(QUEUE_MIN)
    }

    /// Until every queue is full: it gains what is offered beyond the rate.
    fn settle(&self) -> Duration {
        let frame = (8 * FRAME) as f64 / self.rate as f64;
        Duration::from_secs_f64(f64::from(self.queue()) * frame / (START * self.offered - 1.0) + frame)
    }
}

impl Trial {
    /// Flows whose rate is further off than this, or that were not in order.
    pub(super) fn outside(&self, tolerance: f64) -> usize {
        self.errors.iter().filter(|error| error.abs() > tolerance).count() + self.disordered as usize
    }

    /// The largest error.
    pub(super) fn worst(&self) -> f64 {
        self.errors.iter().map(|error| error.abs()).fold(0.0, f64::max)
    }
}

/// Runs the links on the engine, offers what is asked, and measures every flow.
pub(super) fn run(question: &Question, context: &Context<'_>) -> Result<Trial, PartError> {
    let (ports, ends) = ports(question.pairs);
    let options = field::options();
    let network = fastpath_net::Options { pool_limit: POOL_LIMIT, ..options.network };
    let options = fastpath_engine::Options { network, ..options };
    let running = fastpath_engine::start(topology(question), ports, options)?;
    let mut traffic = Traffic::new(question, ends);
    let driven = traffic.drive(context, question.per_second(), question.settle(), question.window);
    let report = running.stop()?;
    driven?;
    Ok(Trial {
        errors: traffic.flows.iter().map(|flow| flow.error(question.rate)).collect(),
        disordered: traffic.flows.iter().map(|flow| u64::from(flow.disordered)).sum(),
        received: traffic.flows.iter().map(|flow| u64::from(flow.count)).sum(),
        offered_share: traffic.sent as f64 / traffic.wanted.max(1) as f64,
        report,
    })
}

/// Frames per second that the same source and sink exchange with nothing but a copy between the
/// ports.
pub(super) fn bare(pairs: usize, window: Duration, context: &Context<'_>) -> Result<f64, PartError> {
    let (ports, ends) = ports(pairs);
    let question = Question { pairs, flows: 2 * pairs * CHUNK * 8, rate: 1, offered: 1.0, window };
    let mut traffic = Traffic::new(&question, ends);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| forward(ports, &done));
        let driven = traffic.drive(context, 1e9, Duration::from_millis(50), window);
        done.store(true, Ordering::Relaxed);
        driven
    })?;
    let received: u64 = traffic.flows.iter().map(|flow| u64::from(flow.count)).sum();
    Ok(received as f64 / window.as_secs_f64())
}

/// Carries frames between the ports of each pair.
fn forward(ports: EdgePorts, done: &AtomicBool) {
    let mut ports: Vec<Box<dyn Port>> = ports.into_iter().map(|(_, port)| port).collect();
    let (mut pool, mut burst) = (FramePool::new(POOL_LIMIT), Burst::new());
    let mut waiting: Vec<VecDeque<_>> = ports.iter().map(|_| VecDeque::new()).collect();
    while !done.load(Ordering::Relaxed) {
        for index in 0..ports.len() {
            // A memory port does not fail.
            let _ = ports[index].rx_burst(Time::ZERO, &mut pool, &mut burst);
            let other = index ^ 1;
            waiting[other].extend(burst.drain());
            let _ = ports[other].tx_burst(Time::ZERO, &mut pool, &mut waiting[other]);
            // What the sink has no room for is lost, as it would be at the engine's port.
            if waiting[other].len() > 16 * BURST {
                waiting[other].drain(..).for_each(|frame| pool.free(frame));
            }
        }
    }
}

/// A memory port for each host, left and right of each pair in turn.
fn ports(pairs: usize) -> (EdgePorts, Vec<MemoryEnd>) {
    let made = (0..2 * pairs).map(|i| {
        let (port, end) = Memory::new(&format!("port{i}"), RING);
        ((EdgeId(i as u32), Box::new(port) as Box<dyn Port>), end)
    });
    made.unzip()
}

/// Routers and links as in the drawing at the head of this file.
fn topology(question: &Question) -> Topology {
    let pipe = PipeSpec {
        rate: Rate::from_bps(question.rate),
        queue: QueueSpec::DropTail(Limit::Packets(question.queue())),
        ..PipeSpec::default()
    };
    let mut topology = Topology::default();
    let sides: Vec<[NodeId; 4]> = (0..question.pairs)
        .map(|pair| {
            let mut host = |side| topology.add_node(format!("{side}{pair}"), NodeKind::Host { port: None });
            let [left, right] = [host("left"), host("right")];
            let mut router = |side| topology.add_node(format!("{side}-router{pair}"), NodeKind::Router);
            [left, router("left"), router("right"), right]
        })
        .collect();
    for (pair, &[left, near, far, right]) in sides.iter().enumerate() {
        for (side, host, router) in [(0, left, near), (1, right, far)] {
            let ideal = [PipeSpec::default(), PipeSpec::default()];
            let access = topology.connect(format!("access{pair}-{side}"), host, router, ideal);
            let address = |end: u8| Ipv4Addr::new(172, 16 + side as u8, pair as u8, end + 1);
            give_addresses(&mut topology, access, [address(0), address(1)], 24);
            // What comes back over the links goes to the host.
            route(&mut topology, router, destination(1 - side, 0), 16, address(0));
        }
        for i in 0..question.links_per_pair() {
            let link = topology.connect(format!("link{pair}-{i}"), near, far, [pipe.clone(), pipe.clone()]);
            let first = u32::from(Ipv4Addr::new(10, 0, 0, 0)) + 4 * (pair * LINKS_MAX + i) as u32;
            let ends = [first + 1, first + 2].map(Ipv4Addr::from);
            give_addresses(&mut topology, link, ends, 30);
            route(&mut topology, near, destination(0, i), 32, ends[1]);
            route(&mut topology, far, destination(1, i), 32, ends[0]);
        }
    }
    topology
}

/// RFC 2544's addresses for measurements: a /16 for each direction.
fn destination(side: usize, link: usize) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18 + side as u8, 0, 0)) + link as u32)
}

fn net(address: Ipv4Addr, prefix: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new(address, prefix).expect("a prefix of at most 32"))
}

fn give_addresses(topology: &mut Topology, link: LinkId, addresses: [Ipv4Addr; 2], prefix: u8) {
    for ((node, interface), address) in topology.link(link).ends.into_iter().zip(addresses) {
        topology.nodes[node.0 as usize].interfaces[interface].addresses.push(net(address, prefix));
    }
}

fn route(topology: &mut Topology, at: NodeId, to: Ipv4Addr, prefix: u8, via: Ipv4Addr) {
    topology.nodes[at.0 as usize].routes.push((net(to, prefix), via.into()));
}

/// The source and the sink.
struct Traffic {
    ends: Vec<MemoryEnd>,
    flows: Vec<Flow>,
    frames: Vec<Vec<u8>>,
    /// Frames that were due, and those that were offered.
    wanted: u64,
    sent: u64,
}

/// What is known of a flow.
#[derive(Clone, Copy, Default)]
struct Flow {
    /// Number of the next frame to send, and of the next to come at the earliest.
    next: u32,
    expected: u32,
    disordered: u32,
    /// Frames received in the window, and when the first and the last came, ns.
    count: u32,
    first_ns: u64,
    last_ns: u64,
}

impl Flow {
    /// How far the rate between the first and the last frame is from what it should be.
    fn error(&self, rate: u64) -> f64 {
        if self.count < 3 || self.last_ns <= self.first_ns {
            return 1.0;
        }
        let bits = u64::from(self.count - 1) * (8 * FRAME) as u64;
        let seen = bits as f64 / ((self.last_ns - self.first_ns) as f64 * 1e-9);
        seen / rate as f64 - 1.0
    }

    fn arrived(&mut self, number: u32, at_ns: u64) {
        self.disordered += u32::from(number < self.expected);
        self.expected = number + 1;
        if self.count == 0 {
            self.first_ns = at_ns;
        }
        (self.last_ns, self.count) = (at_ns, self.count + 1);
    }
}

impl Traffic {
    fn new(question: &Question, ends: Vec<MemoryEnd>) -> Traffic {
        assert_eq!(Question::round(question.flows, question.pairs), question.flows, "{question:?}");
        let flows = vec![Flow::default(); question.flows];
        Traffic { ends, flows, frames: vec![template(); question.chunk()], wanted: 0, sent: 0 }
    }

    /// Offers `per_second` frames evenly over all flows, and half again as many until `settle`;
    /// what arrives in the window after that counts.
    fn drive(
        &mut self,
        context: &Context<'_>,
        per_second: f64,
        settle: Duration,
        window: Duration,
    ) -> Result<(), PartError> {
        let began = Instant::now();
        let from = settle.as_nanos() as u64;
        let until = from + window.as_nanos() as u64;
        let (mut chunk, chunk_len) = (0, self.frames.len());
        loop {
            context.stop.check()?;
            // A look at the wish to stop is for many turns.
            for _ in 0..256 {
                let now = began.elapsed().as_nanos() as u64;
                if now >= until {
                    return Ok(());
                }
                let extra = (START - 1.0) * now.min(from) as f64;
                let due = ((now as f64 + extra) * 1e-9 * per_second) as u64;
                self.wanted = self.wanted.max(due.saturating_sub(BEHIND_MAX));
                if due >= self.wanted + chunk_len as u64 {
                    self.wanted += chunk_len as u64;
                    self.sent += self.send(chunk, now) as u64;
                    chunk = (chunk + 1) % (self.flows.len() / chunk_len);
                }
                self.receive(began, from);
            }
        }
    }

    /// Offers a frame of each flow of a chunk; the ends take turns. What the ring does not take is
    /// lost.
    fn send(&mut self, chunk: usize, now_ns: u64) -> usize {
        let end = chunk % self.ends.len();
        let chunk_len = self.frames.len();
        let first = chunk / self.ends.len() * chunk_len;
        for (i, frame) in self.frames.iter_mut().enumerate() {
            let flow = &mut self.flows[chunk * chunk_len + i];
            frame[30..34].copy_from_slice(&destination(end % 2, first + i).octets());
            frame[24..26].fill(0);
            let sum = checksum::of(&frame[14..34]);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
            frame[PAYLOAD..PAYLOAD + 4].copy_from_slice(&((chunk * chunk_len + i) as u32).to_be_bytes());
            frame[PAYLOAD + 4..PAYLOAD + 8].copy_from_slice(&flow.next.to_be_bytes());
            frame[PAYLOAD + 8..PAYLOAD + 16].copy_from_slice(&now_ns.to_be_bytes());
            flow.next += 1;
        }
        self.ends[end].send(self.frames.iter().map(Vec::as_slice))
    }

    fn receive(&mut self, began: Instant, from_ns: u64) {
        let flows = &mut self.flows;
        for end in &self.ends {
            let mut now = None;
            end.recv(BURST, |bytes| {
                // One reading of the clock for all that came together.
                let now = *now.get_or_insert_with(|| began.elapsed().as_nanos() as u64);
                let word = |at: usize| {
                    bytes.get(at..at + 4).and_then(|b| Some(u32::from_be_bytes(*b.first_chunk()?)))
                };
                let (Some(flow), Some(number)) = (word(PAYLOAD), word(PAYLOAD + 4)) else { return };
                if let Some(flow) = flows.get_mut(flow as usize).filter(|_| now >= from_ns) {
                    flow.arrived(number, now);
                }
            });
        }
    }
}

/// A UDP datagram over IPv4 without the parts that differ from frame to frame.
fn template() -> Vec<u8> {
    let mut frame = vec![0; FRAME];
    frame[..14].copy_from_slice(&[2, 9, 9, 9, 9, 1, 2, 9, 9, 9, 9, 2, 0x08, 0x00]);
    let ip_len = (FRAME - 14) as u16;
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&ip_len.to_be_bytes());
    // Don't fragment; 64 hops; UDP; from a station nobody is.
    frame[20..24].copy_from_slice(&[0x40, 0, 64, 17]);
    frame[26..30].copy_from_slice(&[192, 0, 2, 1]);
    frame[34..38].copy_from_slice(&[0x40, 0, 0x40, 1]);
    frame[38..40].copy_from_slice(&(ip_len - 20).to_be_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_s_error_is_that_of_its_rate() {
        let mut flow = Flow::default();
        // A frame every millisecond: 12.112 Mbit/s.
        (0..11).for_each(|i| flow.arrived(i, 5_000_000 + u64::from(i) * 1_000_000));
        assert!(flow.error(12_112_000).abs() < 1e-12);
        assert!((flow.error(12_000_000) - 0.00933).abs() < 1e-4);
        assert_eq!(flow.disordered, 0);
        flow.arrived(3, 20_000_000);
        assert_eq!(flow.disordered, 1);
        assert_eq!(Flow::default().error(1000), 1.0);
    }

    /// Real time, but no figure depends on it: every frame that enters is in the books. The window
    /// is longer than machines pause.
    #[test]
    fn every_flow_comes_through_its_own_link_and_the_books_balance() {
        let stop = AtomicBool::new(false);
        let context = Context::new(crate::Effort::Quick, &stop, &[]);
        let window = Duration::from_secs(2);
        let question = Question { pairs: 2, flows: 128, rate: 10_000_000, offered: 1.1, window };
        let trial = run(&question, &context).unwrap();
        assert!(trial.report.conservation.balances(), "{:?}", trial.report.conservation);
        assert_eq!((trial.errors.len(), trial.disordered), (128, 0));
        let loaded = trial.report.links.iter().filter(|link| link.name.starts_with("link"));
        let carried: Vec<u64> =
            loaded.flat_map(|link| link.directions.iter().map(|pipe| pipe.frames_out)).collect();
        assert!(carried.len() == 128 && carried.iter().all(|&frames| frames > 0), "{carried:?}");
        assert!(trial.received > 0 && trial.errors.iter().all(|error| error.is_finite()));
    }
}
