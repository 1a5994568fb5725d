//! The experiment of seed 000 on our engine's ports: how long a unit's input and output phases take.
//!
//! ```text
//!  generator ──▶ forward ──▶ swap ──▶ forward ──▶ generator
//!     d0       r10  d10     r2  d2    r11  d11       r0        r: received, d: departs
//! ```
//!
//! t_f = ½·[(r11 − d10) − (d2 − r2)] (equation 1): between d10 and r11 lie the output and input of the forward unit
//! and of the swap unit, and the swap unit's work, which is taken off; half of the rest is one unit's. One packet is
//! under way at a time, and all units take turns on one core. Between them is either nothing but memory ports (no wire, no
//! wake-up, no other core), or the engine on another core: each unit is then in a namespace of its own, and a hop is the
//! kernel's way out of it, a link of the engine, and the kernel's way in.

use super::{Progress, clock_cost_ns, on_core};
use crate::host::{Host, HostError};
use crate::namespace::{NotPermitted, gain_privilege};
use fastpath_engine::port::{AfPacket, Burst, Memory, MemoryEnd, OpenError, Port};
use fastpath_engine::{Idle, Options, Ports, StartError};
use fastpath_model::latency::{Latency, LatencyError, summarise};
use fastpath_net::{EdgeId, Frame, FramePool, NodeKind, Routes, Topology};
use fastpath_units::Time;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

/// Frame sizes of the seed, bytes.
pub const LATENCY_SIZES: [usize; 6] = [64, 128, 256, 512, 1024, 1500];
const POOL_LIMIT: NonZeroUsize = NonZeroUsize::new(1 << 20).unwrap();
const RING: usize = 1 << 16;
const WARM_UP: usize = 1000;
/// At most this many bins, and of this step.
const BINS: usize = 48;
const STEP_NS: f64 = 0.5;
const OUTLIERS_KEPT: usize = 200;
const MACS: usize = 12;
/// IEEE 802's first EtherType for local experiments: frames of other types are the kernel's.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
/// A packet that has not come by then is lost.
const PATIENCE: Duration = Duration::from_secs(1);

/// What lies between the units.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Between {
    /// Memory ports.
    Memory,
    /// Namespaces and our engine.
    Namespaces,
}

/// Why there are no latencies.
#[derive(Debug, thiserror::Error)]
pub enum BetweenError {
    /// Too few samples.
    #[error(transparent)]
    Latency(#[from] LatencyError),
    /// No namespaces on this machine.
    #[error(transparent)]
    NotPermitted(#[from] NotPermitted),
    /// A unit's namespace could not be made.
    #[error(transparent)]
    Host(#[from] HostError),
    /// An interface could not be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The engine did not start.
    #[error(transparent)]
    Engine(#[from] StartError),
    /// A namespace could not be joined.
    #[error("joining a namespace: {0}")]
    Join(#[from] io::Error),
    /// A packet did not come.
    #[error("packet {0} was lost on its way; is something else at work on these interfaces?")]
    Lost(usize),
}

/// Latencies at one size.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct UnitLatency {
    /// Median t_f, ns.
    pub median_ns: f64,
    /// Summary of t_f, ns: normal fit with intervals, quartiles, fences, outliers, mixture.
    pub t_f_ns: Latency,
    /// Histogram of t_f between the fences.
    pub histogram: Histogram,
    /// The outliers by Tukey's rule, ns, at most 200 of them.
    pub outliers_ns: Vec<f64>,
    /// Median of the whole way from generator to generator, ns; none where it was not watched.
    pub round_trip_ns: Option<f64>,
}

/// Counts in bins of equal width.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Histogram {
    /// Middle of the first bin.
    pub from: f64,
    /// Width of a bin.
    pub width: f64,
    /// Samples in each.
    pub counts: Vec<u64>,
}

/// Sends `packets` packets of `size` bytes, one at a time, through the chain.
///
/// # Errors
/// [`BetweenError`] for fewer than eight packets, and where namespaces are not to be had.
pub fn latency(
    between: Between,
    size: usize,
    packets: usize,
    progress: Progress<'_>,
) -> Result<UnitLatency, BetweenError> {
    let (t_f, mut whole) = match between {
        Between::Memory => on_core(0, || in_memory(size, packets, progress)),
        Between::Namespaces => between_namespaces(size, packets, progress),
    }?;
    let whole = super::median(&mut whole);
    Ok(UnitLatency { round_trip_ns: Some(whole), ..UnitLatency::of(&t_f)? })
}

impl UnitLatency {
    /// The summary of samples of t_f, ns, from wherever they come.
    ///
    /// # Errors
    /// [`LatencyError`] for fewer than eight.
    pub fn of(t_f: &[f64]) -> Result<UnitLatency, LatencyError> {
        let found = summarise(t_f)?;
        let (low, high) = found.fences;
        let outliers = t_f.iter().copied().filter(|x| *x < low || *x > high);
        Ok(UnitLatency {
            median_ns: found.five[2],
            histogram: Histogram::of(t_f, found.five[0].max(low), found.five[4].min(high)),
            outliers_ns: outliers.take(OUTLIERS_KEPT).collect(),
            round_trip_ns: None,
            t_f_ns: found,
        })
    }
}

impl Histogram {
    fn of(samples: &[f64], from: f64, to: f64) -> Histogram {
        // The clock counts whole nanoseconds, and t_f is half a difference: finer bins would be empty in turn.
        let width = ((to - from) / BINS as f64 / STEP_NS).ceil().max(1.0) * STEP_NS;
        let mut counts = vec![0; ((to - from) / width).floor() as usize + 1];
        for sample in samples.iter().filter(|x| (from..=to).contains(x)) {
            let last = counts.len() - 1;
            counts[(((sample - from) / width).round() as usize).min(last)] += 1;
        }
        Histogram { from, width, counts }
    }
}

/// t_f and the whole way of each packet, ns.
type Samples = (Vec<f64>, Vec<f64>);

fn in_memory(size: usize, packets: usize, progress: Progress<'_>) -> Result<Samples, BetweenError> {
    let pair = |name: &str| {
        let [(left, left_end), (right, right_end)] = [(); 2].map(|()| Memory::new(name, RING));
        (Unit::new([Box::new(left), Box::new(right)]), [left_end, right_end])
    };
    let (forward, [generator, forward_right]) = pair("forward");
    let (swap, [swap_left, _swap_right]) = pair("swap");
    let carry = |hop: Hop| match hop {
        Hop::Out => wire(&forward_right, &swap_left),
        Hop::Back => wire(&swap_left, &forward_right),
    };
    chain((size, packets), generator, (forward, swap), carry, progress)
}

/// Carries what has left one unit to the next.
fn wire(from: &MemoryEnd, to: &MemoryEnd) {
    from.recv(1, |bytes| {
        to.send([bytes]);
    });
}

fn between_namespaces(size: usize, packets: usize, progress: Progress<'_>) -> Result<Samples, BetweenError> {
    gain_privilege()?;
    let mut topology = Topology::default();
    let [generator, forward, swap] =
        ["generator", "forward", "swap"].map(|name| topology.add_node(name, NodeKind::Host { port: None }));
    topology.connect("left", generator, forward, Default::default());
    topology.connect("right", forward, swap, Default::default());
    let routes = Routes::compute(&topology);
    let (mut hosts, mut taps): (Vec<Host>, Ports) = (Vec::new(), Vec::new());
    for (id, node) in topology.hosts() {
        let (host, of_host) = Host::new(id, node, routes.of(id))?;
        hosts.push(host);
        for tap in of_host {
            taps.push((EdgeId(taps.len() as u32), Box::new(tap)));
        }
    }
    // At its most exact: the engine spins on its core. What goes wrong shows as a lost packet.
    let network = fastpath_net::Options { seed: 1, pool_limit: POOL_LIMIT };
    let options = Options { idle: Some(Idle::Busy), notice: |_| {}, ..Options::new(network) };
    let port = |host: usize, interface: &str| -> Result<Box<dyn Port>, BetweenError> {
        Ok(Box::new(hosts[host].namespace.within(|| AfPacket::open(interface))??))
    };
    let generator = Unit::new([port(0, "eth0")?]);
    let forward = Unit::new([port(1, "eth0")?, port(1, "eth1")?]);
    let swap = Unit::new([port(2, "eth0")?]);
    let engine = fastpath_engine::start(topology, taps, options)?;
    let found = on_core(0, || chain((size, packets), generator, (forward, swap), |_| {}, progress));
    // Before the interfaces it holds go.
    drop(engine.stop());
    found
}

/// Where packets start and end.
trait Generator {
    fn send(&mut self, frame: &[u8]);

    /// Waits for one; none if it did not come.
    fn receive(&mut self) -> Option<()>;
}

impl Generator for MemoryEnd {
    fn send(&mut self, frame: &[u8]) {
        MemoryEnd::send(self, [frame]);
    }

    fn receive(&mut self) -> Option<()> {
        (self.recv(1, |_| {}) == 1).then_some(())
    }
}

impl Generator for Unit<1> {
    fn send(&mut self, frame: &[u8]) {
        self.out.extend(self.pool.insert(frame));
        self.transmit(0);
    }

    fn receive(&mut self) -> Option<()> {
        let frame = self.wait(0)?;
        self.pool.free(frame);
        Some(())
    }
}

/// The hops that somebody may have to carry.
#[derive(Clone, Copy)]
enum Hop {
    Out,
    Back,
}

fn chain<const N: usize>(
    (size, packets): (usize, usize),
    mut generator: impl Generator,
    (mut forward, mut swap): (Unit<2>, Unit<N>),
    carry: impl Fn(Hop),
    progress: Progress<'_>,
) -> Result<Samples, BetweenError> {
    let clock_ns = clock_cost_ns();
    let mut frame = vec![0x5a; size];
    frame[..MACS].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    frame[MACS..MACS + 2].copy_from_slice(&ETHERTYPE);
    let (mut t_f, mut whole) = (Vec::with_capacity(packets), Vec::with_capacity(packets));
    for i in 0..packets + WARM_UP {
        if i % 1024 == 0 {
            progress("latency", i, packets + WARM_UP);
        }
        let d0 = Instant::now();
        generator.send(&frame);
        let mut round = || {
            let (_, d10) = forward.pass(LEFT, RIGHT)?;
            carry(Hop::Out);
            let (r2, d2) = swap.pass(LEFT, LEFT)?;
            carry(Hop::Back);
            let (r11, _) = forward.pass(RIGHT, LEFT)?;
            generator.receive()?;
            Some([d10, r2, d2, r11])
        };
        let [d10, r2, d2, r11] = round().ok_or(BetweenError::Lost(i))?;
        let r0 = Instant::now();
        if i >= WARM_UP {
            let ns = |from: Instant, to: Instant| (to - from).as_secs_f64() * 1e9;
            // Three readings lie in the outer span and one in the inner: one of them is in the half.
            t_f.push(((ns(d10, r11) - ns(r2, d2)) / 2.0 - clock_ns).max(0.0));
            whole.push(ns(d0, r0));
        }
    }
    Ok((t_f, whole))
}

/// Ports of a unit.
const LEFT: usize = 0;
const RIGHT: usize = 1;

/// A unit with `N` ports.
struct Unit<const N: usize> {
    ports: [Box<dyn Port>; N],
    pool: FramePool,
    burst: Burst,
    out: VecDeque<Frame>,
}

impl<const N: usize> Unit<N> {
    fn new(ports: [Box<dyn Port>; N]) -> Unit<N> {
        let pool = FramePool::new(POOL_LIMIT);
        Unit { ports, pool, burst: Burst::new(), out: VecDeque::with_capacity(1) }
    }

    /// Receives, exchanges the addresses as both kinds of unit do, sends. Gives the two probes: received, departs.
    fn pass(&mut self, from: usize, to: usize) -> Option<(Instant, Instant)> {
        let mut frame = self.wait(from)?;
        let received = Instant::now();
        let (target, rest) = self.pool.bytes_mut(&mut frame)[..MACS].split_at_mut(MACS / 2);
        target.swap_with_slice(rest);
        self.out.push_back(frame);
        let departs = Instant::now();
        self.transmit(to);
        Some((received, departs))
    }

    /// The next packet; none if it does not come.
    fn wait(&mut self, at: usize) -> Option<Frame> {
        let mut since = None;
        loop {
            // A port that fails gives nothing, which ends the wait.
            let _ = self.ports[at].rx_burst(Time::ZERO, &mut self.pool, &mut self.burst);
            let mut found = None;
            for frame in self.burst.drain() {
                if found.is_none() && self.pool.bytes(&frame)[MACS..].starts_with(&ETHERTYPE) {
                    found = Some(frame);
                } else {
                    self.pool.free(frame);
                }
            }
            if found.is_some() || since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                return found;
            }
        }
    }

    fn transmit(&mut self, to: usize) {
        let _ = self.ports[to].tx_burst(Time::ZERO, &mut self.pool, &mut self.out);
        self.out.drain(..).for_each(|frame| self.pool.free(frame));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_comes_back_and_larger_ones_take_longer() {
        let [small, large] =
            [64, 1500].map(|size| latency(Between::Memory, size, 3000, &|_, _, _| {}).unwrap());
        assert_eq!(small.t_f_ns.samples, 3000);
        assert!(small.median_ns > 0.0 && small.round_trip_ns > Some(2.0 * small.median_ns), "{small:?}");
        assert!(large.median_ns > small.median_ns, "{} {}", large.median_ns, small.median_ns);
        let binned: u64 = small.histogram.counts.iter().sum();
        assert_eq!(binned as usize + small.t_f_ns.outliers, 3000);
    }

    #[test]
    fn too_few_packets_are_refused() {
        assert!(latency(Between::Memory, 64, 3, &|_, _, _| {}).is_err());
    }

    #[test]
    fn packets_go_through_namespaces_and_the_engine_and_come_back() {
        let found = match latency(Between::Namespaces, 64, 50, &|_, _, _| {}) {
            Err(BetweenError::NotPermitted(why)) => {
                return crate::skip("packets_go_through_namespaces_and_the_engine", &why.to_string());
            }
            found => found.unwrap(),
        };
        assert_eq!(found.t_f_ns.samples, 50);
        assert!(found.median_ns > 0.0 && found.round_trip_ns > Some(2.0 * found.median_ns), "{found:?}");
    }
}
