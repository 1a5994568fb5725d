//! Many links over few ports, with a source and a sink in memory: the set-up of Figures 5.7 and
//! 5.9.
//!
//! ```text
//!                            ┌─ link 0 ─┐
//!  source ─▶ port ─▶ router ─┼─ link 1 ─┼─ router ─▶ port ─▶ sink   and the other way
//!                            └─ …       ┘
//! ```
//!
//! A router selects the link by the destination address, as LinkEM did. One thread feeds and reads
//! all ports. Frames carry their flow, sequence number and send time, so every loss and reordering
//! is detected. A flow is the traffic of one pipe; the publication counts flows as links.

use crate::{MeasurementError, RunContext, testbed};
use fastpath_audit::core_time::CoreTime;
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

/// Frame size without FCS, bytes: that of TCP's full segments.
pub(crate) const FRAME: usize = 1514;
/// Number of consecutive flows of one end with frames that are sent to its ring together.
const CHUNK: usize = 32;
/// Maximum number of duplex links between a pair of ports: their destinations are a /16.
pub(crate) const LINKS_MAX: usize = 1 << 16;
/// Size of a port's ring, bytes.
const RING: usize = 4 << 20;
/// Minimum queue of a link, frames, and its length in seconds: a link does not idle while the
/// source is delayed.
const QUEUE_MIN: u32 = 3;
const QUEUE_SPAN: f64 = 0.05;
/// Offered load at the start, as a multiple: queues are full when the window begins.
const START: f64 = 1.5;
/// Maximum number of frames that the source catches up; older ones are skipped.
const BEHIND_MAX: u64 = 8192;
pub(crate) const POOL_LIMIT: NonZeroUsize = NonZeroUsize::new(4 << 30).unwrap();
/// Offset of the flow, sequence number and send time: after Ethernet, IPv4 and UDP.
const PAYLOAD: usize = 14 + 20 + 8;

/// The load of a trial.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct LoadParams {
    /// Pairs of ports.
    pub(crate) pairs: usize,
    /// Flows over all pairs, a number that [`LoadParams::round`] returns.
    pub(crate) flows: usize,
    /// Rate of each flow's link, bits per second.
    pub(crate) rate: u64,
    /// Load offered to each flow, as a multiple of the rate.
    pub(crate) offered: f64,
    /// Duration of the measurement after the start.
    pub(crate) window: Duration,
}

/// The result of a trial.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct LoadTrial {
    /// Relative error of each flow's rate; 1 for a flow with fewer than 3 frames.
    pub(crate) errors: Vec<f64>,
    /// Number of frames reordered within their flow.
    pub(crate) disordered: u64,
    /// Frames received in the window.
    pub(crate) received: u64,
    /// Share of the load that the source offered, 0 … 1.
    pub(crate) offered_share: f64,
    /// The engine's final report.
    pub(crate) report: Report,
}

impl LoadParams {
    /// Returns the largest possible number of flows up to `flows`; 0 below the minimum.
    pub(crate) fn round(flows: usize, pairs: usize) -> usize {
        let step = 2 * pairs;
        let of_an_end = flows / step;
        let of_an_end = if of_an_end > CHUNK { of_an_end / CHUNK * CHUNK } else { of_an_end };
        of_an_end.min(LINKS_MAX) * step
    }

    /// Returns the number of flows of a chunk.
    fn chunk(&self) -> usize {
        self.links_per_pair().min(CHUNK)
    }

    /// Returns the maximum number of flows.
    pub(crate) fn most(pairs: usize) -> usize {
        2 * pairs * LINKS_MAX
    }

    fn links_per_pair(&self) -> usize {
        self.flows / (2 * self.pairs)
    }

    /// Returns the frames per second offered to all flows.
    fn per_second(&self) -> f64 {
        self.flows as f64 * self.offered * self.rate as f64 / (8 * FRAME) as f64
    }

    /// Returns the queue of a link, frames.
    fn queue(&self) -> u32 {
        ((self.rate as f64 * QUEUE_SPAN / (8 * FRAME) as f64) as u32).max(QUEUE_MIN)
    }

    /// Returns the time until every queue is full: it grows by what is offered beyond the rate.
    fn settle(&self) -> Duration {
        let frame = (8 * FRAME) as f64 / self.rate as f64;
        Duration::from_secs_f64(f64::from(self.queue()) * frame / (START * self.offered - 1.0) + frame)
    }
}

impl LoadTrial {
    /// Returns the number of flows with a rate error above `tolerance`, plus that of reordered
    /// frames.
    pub(crate) fn outside(&self, tolerance: f64) -> usize {
        self.errors.iter().filter(|error| error.abs() > tolerance).count() + self.disordered as usize
    }

    /// Returns the largest error.
    pub(crate) fn worst(&self) -> f64 {
        self.errors.iter().map(|error| error.abs()).fold(0.0, f64::max)
    }
}

/// Runs the links on the engine, offers the load, and measures every flow.
pub(crate) fn run(load: &LoadParams, context: &RunContext<'_>) -> Result<LoadTrial, MeasurementError> {
    let (ports, ends) = ports(load.pairs);
    let options = testbed::options();
    let network = fastpath_net::Options { pool_limit: POOL_LIMIT, ..options.network };
    let options = fastpath_engine::Options { network, ..options };
    let running = fastpath_engine::start(topology(load), ports, options)?;
    let mut traffic = TrafficSource::new(load, ends);
    let watch = CoreTime::start(None);
    let driven = watch.of_thread(|| traffic.drive(context, load.per_second(), load.settle(), load.window));
    let report = running.stop()?;
    driven?;
    context.note(watch.finish(Some(&report)));
    Ok(LoadTrial {
        errors: traffic.flows.iter().map(|flow| flow.error(load.rate)).collect(),
        disordered: traffic.flows.iter().map(|flow| u64::from(flow.disordered)).sum(),
        received: traffic.flows.iter().map(|flow| u64::from(flow.count)).sum(),
        offered_share: traffic.sent as f64 / traffic.wanted.max(1) as f64,
        report,
    })
}

/// Returns the frames per second that the same source and sink exchange over bare copies between
/// the ports.
pub(crate) fn bare(
    pairs: usize,
    window: Duration,
    context: &RunContext<'_>,
) -> Result<f64, MeasurementError> {
    let (ports, ends) = ports(pairs);
    let load = LoadParams { pairs, flows: 2 * pairs * CHUNK * 8, rate: 1, offered: 1.0, window };
    let mut traffic = TrafficSource::new(&load, ends);
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

/// Copies frames between the ports of each pair until `done`.
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
            // Frames beyond the sink's room are lost, as at the engine's port.
            if waiting[other].len() > 16 * BURST {
                waiting[other].drain(..).for_each(|frame| pool.free(frame));
            }
        }
    }
}

/// Makes a memory port for each host: left and right of each pair in turn.
fn ports(pairs: usize) -> (EdgePorts, Vec<MemoryEnd>) {
    let made = (0..2 * pairs).map(|i| {
        let (port, end) = Memory::new(&format!("port{i}"), RING);
        ((EdgeId(i as u32), Box::new(port) as Box<dyn Port>), end)
    });
    made.unzip()
}

/// Returns the topology in the drawing at the head of this file.
fn topology(load: &LoadParams) -> Topology {
    let pipe = PipeSpec {
        rate: Rate::from_bps(load.rate),
        queue: QueueSpec::DropTail(Limit::Packets(load.queue())),
        ..PipeSpec::default()
    };
    let mut topology = Topology::default();
    let sides: Vec<[NodeId; 4]> = (0..load.pairs)
        .map(|pair| {
            let mut host = |side| topology.add_node(format!("{side}{pair}"), NodeKind::host());
            let [left, right] = [host("left"), host("right")];
            let mut router = |side| topology.add_node(format!("{side}-router{pair}"), NodeKind::router());
            [left, router("left"), router("right"), right]
        })
        .collect();
    for (pair, &[left, near, far, right]) in sides.iter().enumerate() {
        for (side, host, router) in [(0, left, near), (1, right, far)] {
            let ideal = [PipeSpec::default(), PipeSpec::default()];
            let access = topology.connect(format!("access{pair}-{side}"), host, router, ideal);
            let address = |end: u8| Ipv4Addr::new(172, 16 + side as u8, pair as u8, end + 1);
            give_addresses(&mut topology, access, [address(0), address(1)], 24);
            // Frames that come back over the links go to the host.
            route(&mut topology, router, destination(1 - side, 0), 16, address(0));
        }
        for i in 0..load.links_per_pair() {
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

/// An address for benchmarks (RFC 2544), from a /16 for each direction.
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
    let routes = topology.nodes[at.0 as usize].kind.routes_mut();
    routes.expect("a host or router").push((net(to, prefix), via.into()));
}

/// The source and the sink.
struct TrafficSource {
    ends: Vec<MemoryEnd>,
    flows: Vec<FlowState>,
    frames: Vec<Vec<u8>>,
    /// Number of frames that were due, and of frames offered.
    wanted: u64,
    sent: u64,
}

/// The state of a flow.
#[derive(Clone, Copy, Default)]
struct FlowState {
    /// Sequence number of the next frame to send, and the lowest expected one.
    next: u32,
    expected: u32,
    disordered: u32,
    /// Number of frames received in the window, and the times of the first and the last, ns.
    count: u32,
    first_ns: u64,
    last_ns: u64,
}

impl FlowState {
    /// Returns the relative error of the rate between the first and the last frame.
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

impl TrafficSource {
    fn new(load: &LoadParams, ends: Vec<MemoryEnd>) -> TrafficSource {
        assert_eq!(LoadParams::round(load.flows, load.pairs), load.flows, "{load:?}");
        let flows = vec![FlowState::default(); load.flows];
        TrafficSource { ends, flows, frames: vec![template(); load.chunk()], wanted: 0, sent: 0 }
    }

    /// Offers `per_second` frames per second evenly to all flows, and 50 % more until `settle`.
    /// Arrivals in the window after that are counted.
    fn drive(
        &mut self,
        context: &RunContext<'_>,
        per_second: f64,
        settle: Duration,
        window: Duration,
    ) -> Result<(), MeasurementError> {
        let began = Instant::now();
        let from = settle.as_nanos() as u64;
        let until = from + window.as_nanos() as u64;
        let (mut chunk, chunk_len) = (0, self.frames.len());
        loop {
            context.stop.check()?;
            // Check the stop flag once per 256 iterations.
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

    /// Offers a frame of each flow of a chunk, to the ends in turn. Frames that the ring does not
    /// take are lost.
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
                // One clock reading for all frames that arrive together.
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

/// Returns a UDP datagram over IPv4 without the fields that differ between frames.
fn template() -> Vec<u8> {
    let mut frame = vec![0; FRAME];
    frame[..14].copy_from_slice(&[2, 9, 9, 9, 9, 1, 2, 9, 9, 9, 9, 2, 0x08, 0x00]);
    let ip_len = (FRAME - 14) as u16;
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&ip_len.to_be_bytes());
    // Don't fragment; TTL 64; UDP; from a documentation address (RFC 5737).
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
    fn the_error_of_a_flow_is_that_of_its_rate() {
        let mut flow = FlowState::default();
        // A frame every millisecond: 12.112 Mbit/s.
        (0..11).for_each(|i| flow.arrived(i, 5_000_000 + u64::from(i) * 1_000_000));
        assert!(flow.error(12_112_000).abs() < 1e-12);
        assert!((flow.error(12_000_000) - 0.00933).abs() < 1e-4);
        assert_eq!(flow.disordered, 0);
        flow.arrived(3, 20_000_000);
        assert_eq!(flow.disordered, 1);
        assert_eq!(FlowState::default().error(1000), 1.0);
    }

    /// In real time, but no asserted value depends on it. The window is longer than host stalls.
    #[test]
    fn every_flow_passes_its_own_link_and_frame_accounting_balances() {
        let stop = AtomicBool::new(false);
        let context = RunContext::new(crate::Effort::Quick, &stop, &[]);
        let window = Duration::from_secs(2);
        let load = LoadParams { pairs: 2, flows: 128, rate: 10_000_000, offered: 1.1, window };
        let trial = run(&load, &context).unwrap();
        assert!(trial.report.accounting.balances(), "{:?}", trial.report.accounting);
        assert_eq!((trial.errors.len(), trial.disordered), (128, 0));
        let loaded = trial.report.links.iter().filter(|link| link.name.starts_with("link"));
        let carried: Vec<u64> =
            loaded.flat_map(|link| link.directions.iter().map(|pipe| pipe.frames_out)).collect();
        assert!(carried.len() == 128 && carried.iter().all(|&frames| frames > 0), "{carried:?}");
        assert!(trial.received > 0 && trial.errors.iter().all(|error| error.is_finite()));
    }
}
