//! The experiment of Hartikainen 2016 ("Communication Latencies") on the engine's ports: how long a
//! unit's input and output phases take.
//!
//! ```text
//!  generator ──▶ forward ──▶ swap ──▶ forward ──▶ generator
//!     d0       r10  d10     r2  d2    r11  d11       r0        r: received, d: departs
//! ```
//!
//! t_f = ½·[(r11 − d10) − (d2 − r2)] (equation 1): between d10 and r11 lie the output and input of
//! the forward unit and of the swap unit, and the swap unit's work, which is taken off; half of the
//! rest is one unit's. One packet is under way at a time, and all units take turns on one core.
//! Between them is either nothing but memory ports (no wire, no wake-up, no other core), or the
//! engine on another core: each unit is then in a namespace of its own, and a hop is the kernel's
//! way out of it, a link of the engine, and the kernel's way in.

use super::pipeline::send;
use super::{Progress, clock_cost_ns, on_core};
use fastpath_engine::port::{AfPacket, Burst, Memory, MemoryEnd, OpenError, Port};
use fastpath_engine::{EdgePorts, Idle, Notice, Options, StartError};
use fastpath_lab::namespace::{NotPermitted, gain_privilege};
use fastpath_lab::{Host, HostError};
use fastpath_model::latency::{Latency, LatencyError, summarise};
use fastpath_net::{EdgeId, Frame, FramePool, Routes};
use fastpath_spec::{NodeKind, Topology};
use fastpath_units::Time;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

/// Frame sizes of Hartikainen 2016, bytes.
pub const LATENCY_SIZES: [usize; 6] = [64, 128, 256, 512, 1024, 1500];
const RING: usize = 1 << 16;
const WARM_UP: usize = 1000;
/// At most this many bins, and of this step.
const BINS: usize = 48;
const STEP_NS: f64 = 0.5;
const OUTLIERS_KEPT: usize = 200;
const MACS: usize = 12;
/// IEEE 802's first EtherType for local experiments: frames of other types are the kernel's.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
/// A packet that has not come by then, nor by so many looks, is lost: a pause of the machine
/// between two looks is not the packet's.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOKS: u32 = 4096;
/// So many lost in a row are no accident.
const LOST_MAX: usize = 10;
/// Where a packet carries its number, so that one that comes too late is not taken for the next.
const NUMBER: std::ops::Range<usize> = MACS + ETHERTYPE.len()..MACS + ETHERTYPE.len() + 4;

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
    /// Packets do not come.
    #[error(
        "{LOST_MAX} packets in a row were lost on their way, the last of them number {0}; is something else at work on these interfaces?"
    )]
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
    /// Packets that did not come back in time and are in none of these.
    pub lost: usize,
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

/// Sends `packets` packets of `size` bytes, one at a time, through the chain. One that does not
/// come back in a second is left out and counted.
///
/// # Errors
/// [`BetweenError`] for fewer than eight packets, for ten in a row that do not come back, and where
/// namespaces are not to be had.
pub fn latency(
    between: Between,
    size: usize,
    packets: usize,
    progress: Progress<'_>,
) -> Result<UnitLatency, BetweenError> {
    let Samples { t_f, mut whole, lost } = match between {
        Between::Memory => on_core(0, || in_memory(size, packets, progress)),
        Between::Namespaces => between_namespaces(size, packets, progress),
    }?;
    let whole = super::median(&mut whole);
    Ok(UnitLatency { round_trip_ns: Some(whole), lost, ..UnitLatency::of(&t_f)? })
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
            lost: 0,
            t_f_ns: found,
        })
    }
}

impl Histogram {
    fn of(samples: &[f64], from: f64, to: f64) -> Histogram {
        // The clock counts whole nanoseconds, and t_f is half a difference: finer bins would be
        // empty in turn.
        let width = ((to - from) / BINS as f64 / STEP_NS).ceil().max(1.0) * STEP_NS;
        let mut counts = vec![0; ((to - from) / width).floor() as usize + 1];
        for sample in samples.iter().filter(|x| (from..=to).contains(x)) {
            let last = counts.len() - 1;
            counts[(((sample - from) / width).round() as usize).min(last)] += 1;
        }
        Histogram { from, width, counts }
    }
}

/// What became of the packets.
#[derive(Debug, Default)]
struct Samples {
    /// t_f of each that came back, ns.
    t_f: Vec<f64>,
    /// The whole way of each, ns.
    whole: Vec<f64>,
    /// Those that did not.
    lost: usize,
}

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
    let (mut hosts, mut taps): (Vec<Host>, EdgePorts) = (Vec::new(), Vec::new());
    for (id, node) in topology.hosts() {
        let (host, of_host) = Host::new(id, node, routes.of(id))?;
        hosts.push(host);
        for tap in of_host {
            taps.push((EdgeId(taps.len() as u32), Box::new(tap)));
        }
    }
    // At its most exact: the engine spins on its core. What goes wrong shows as a lost packet.
    let network = fastpath_net::Options::default();
    let options = Options { idle: Some(Idle::Busy), notice: Notice::none(), ..Options::new(network) };
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

    /// Waits for one of this number; none if it did not come.
    fn receive(&mut self, number: u32) -> Option<()>;
}

impl Generator for MemoryEnd {
    fn send(&mut self, frame: &[u8]) {
        MemoryEnd::send(self, [frame]);
    }

    fn receive(&mut self, number: u32) -> Option<()> {
        let mut came = None;
        self.recv(usize::MAX, |bytes| came = came.or(is_number(bytes, number).then_some(())));
        came
    }
}

impl Generator for Unit<1> {
    fn send(&mut self, frame: &[u8]) {
        self.out.extend(self.pool.insert(frame));
        self.transmit(0);
    }

    fn receive(&mut self, number: u32) -> Option<()> {
        let frame = self.wait(0, number)?;
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
    let room = || Vec::with_capacity(packets);
    let mut samples = Samples { t_f: room(), whole: room(), lost: 0 };
    let mut lost_in_a_row = 0;
    for i in 0..packets + WARM_UP {
        if i % 1024 == 0 {
            progress("latency", i, packets + WARM_UP);
        }
        let number = i as u32;
        frame[NUMBER].copy_from_slice(&number.to_be_bytes());
        let d0 = Instant::now();
        generator.send(&frame);
        let mut round = || {
            let (_, d10) = forward.pass(LEFT, RIGHT, number)?;
            carry(Hop::Out);
            let (r2, d2) = swap.pass(LEFT, LEFT, number)?;
            carry(Hop::Back);
            let (r11, _) = forward.pass(RIGHT, LEFT, number)?;
            generator.receive(number)?;
            Some([d10, r2, d2, r11])
        };
        let Some([d10, r2, d2, r11]) = round() else {
            samples.lost += usize::from(i >= WARM_UP);
            lost_in_a_row += 1;
            if lost_in_a_row == LOST_MAX {
                return Err(BetweenError::Lost(i));
            }
            continue;
        };
        lost_in_a_row = 0;
        let r0 = Instant::now();
        if i >= WARM_UP {
            let ns = |from: Instant, to: Instant| (to - from).as_secs_f64() * 1e9;
            // Three readings lie in the outer span and one in the inner: one of them is in the
            // half.
            samples.t_f.push(((ns(d10, r11) - ns(r2, d2)) / 2.0 - clock_ns).max(0.0));
            samples.whole.push(ns(d0, r0));
        }
    }
    Ok(samples)
}

/// Whether a frame is one of ours, of this number.
fn is_number(bytes: &[u8], number: u32) -> bool {
    bytes[MACS..].starts_with(&ETHERTYPE) && bytes.get(NUMBER) == Some(&number.to_be_bytes()[..])
}

/// EdgePorts of a unit.
const LEFT: usize = 0;
const RIGHT: usize = 1;

/// A unit with `N` ports.
struct Unit<const N: usize> {
    ports: [Box<dyn Port>; N],
    pool: FramePool,
    burst: Burst,
    out: VecDeque<Frame>,
    patience: Duration,
}

impl<const N: usize> Unit<N> {
    fn new(ports: [Box<dyn Port>; N]) -> Unit<N> {
        let pool = FramePool::default();
        Unit { ports, pool, burst: Burst::new(), out: VecDeque::with_capacity(1), patience: PATIENCE }
    }

    /// Receives, exchanges the addresses as both kinds of unit do, sends. Gives the two probes:
    /// received, departs.
    fn pass(&mut self, from: usize, to: usize, number: u32) -> Option<(Instant, Instant)> {
        let mut frame = self.wait(from, number)?;
        let received = Instant::now();
        let (target, rest) = self.pool.bytes_mut(&mut frame)[..MACS].split_at_mut(MACS / 2);
        target.swap_with_slice(rest);
        self.out.push_back(frame);
        let departs = Instant::now();
        self.transmit(to);
        Some((received, departs))
    }

    /// The packet of this number; none if it does not come. Others that are late are gone.
    fn wait(&mut self, at: usize, number: u32) -> Option<Frame> {
        let mut wait = Wait { patience: self.patience, looks: 0, since: None };
        loop {
            // A port that fails gives nothing, which ends the wait.
            let _ = self.ports[at].rx_burst(Time::ZERO, &mut self.pool, &mut self.burst);
            let mut found = None;
            for frame in self.burst.drain() {
                if found.is_none() && is_number(self.pool.bytes(&frame), number) {
                    found = Some(frame);
                } else {
                    self.pool.free(frame);
                }
            }
            if found.is_some() || wait.is_over(Instant::now()) {
                return found;
            }
        }
    }

    fn transmit(&mut self, to: usize) {
        send(&mut *self.ports[to], Time::ZERO, &mut self.pool, &mut self.out);
    }
}

/// How long a packet is waited for.
struct Wait {
    patience: Duration,
    looks: u32,
    since: Option<Instant>,
}

impl Wait {
    /// Whether to give up after another look at `now` that found nothing.
    fn is_over(&mut self, now: Instant) -> bool {
        self.looks = self.looks.saturating_add(1);
        now - *self.since.get_or_insert(now) >= self.patience && self.looks >= LOOKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn every_packet_comes_back_and_larger_ones_take_longer() {
        // In turn, and the least of each: a machine may change its speed in between.
        let mut least = [f64::INFINITY; 2];
        for _ in 0..5 {
            for (i, size) in [64, 1500].into_iter().enumerate() {
                let found = latency(Between::Memory, size, 1000, &|_, _, _| {}).unwrap();
                let binned: u64 = found.histogram.counts.iter().sum();
                assert_eq!((found.t_f_ns.samples, found.lost), (1000, 0));
                assert_eq!(binned as usize + found.t_f_ns.outliers, 1000);
                assert!(found.median_ns >= 0.0 && found.round_trip_ns > Some(2.0 * found.median_ns));
                least[i] = least[i].min(found.median_ns);
            }
        }
        assert!(least[0] < least[1], "{least:?}");
    }

    #[test]
    fn a_wait_is_over_after_both_its_time_and_many_looks() {
        let start = Instant::now();
        let wait = || Wait { patience: PATIENCE, looks: 0, since: None };
        // The machine stood still for a minute after the first look.
        let mut paused = wait();
        assert!(!paused.is_over(start));
        let after = start + Duration::from_secs(60);
        assert!((2..LOOKS).all(|_| !paused.is_over(after)));
        assert!(paused.is_over(after));
        // And it is quick.
        let mut quick = wait();
        assert!((0..2 * LOOKS).all(|look| !quick.is_over(start + Duration::from_nanos(u64::from(look)))));
        assert!(quick.is_over(start + PATIENCE));
    }

    /// Sends `packets` through memory ports between which `out` carries what leaves the forward
    /// unit, given its number.
    fn carried(
        packets: usize,
        out: impl Fn(u32, &MemoryEnd, &MemoryEnd),
        back: impl Fn(u32),
    ) -> Result<Samples, BetweenError> {
        let end = |name: &str| {
            let (port, end) = Memory::new(name, RING);
            (Box::new(port) as Box<dyn Port>, end)
        };
        let [(left, generator), (right, near), (port, far)] = ["left", "right", "swap"].map(end);
        let (mut forward, mut swap) = (Unit::new([left, right]), Unit::new([port]));
        (forward.patience, swap.patience) = (Duration::ZERO, Duration::ZERO);
        let sent = RefCell::new(0);
        let carry = |hop: Hop| match hop {
            Hop::Out => {
                out(*sent.borrow(), &near, &far);
                *sent.borrow_mut() += 1;
            }
            Hop::Back => {
                far.recv(usize::MAX, |bytes| {
                    back(u32::from_be_bytes(bytes[NUMBER].try_into().expect("4 bytes")));
                    near.send([bytes]);
                });
            }
        };
        chain((64, packets), generator, (forward, swap), carry, &|_, _, _| {})
    }

    #[test]
    fn a_packet_that_is_lost_is_left_out_and_counted_and_one_that_is_late_is_nobody_else() {
        let (held, came_back) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
        let late = WARM_UP as u32 + 7;
        let carry = |number: u32, from: &MemoryEnd, to: &MemoryEnd| {
            if number == late {
                from.recv(1, |bytes| *held.borrow_mut() = bytes.to_vec());
                return;
            }
            if number == late + 1 {
                to.send([&held.borrow()[..]]);
            }
            if number.is_multiple_of(100) {
                from.recv(1, |_| {});
            } else {
                wire(from, to);
            }
        };
        let found = carried(500, carry, |number| came_back.borrow_mut().push(number)).unwrap();
        // Numbers 1000, 1100, … 1400 and the late one.
        assert_eq!((found.lost, found.t_f.len(), found.whole.len()), (6, 494, 494));
        assert!(!came_back.borrow().contains(&late) && came_back.borrow().is_sorted());
    }

    #[test]
    fn ten_in_a_row_end_the_measurement() {
        let carry = |number: u32, from: &MemoryEnd, to: &MemoryEnd| {
            if number < 20 {
                wire(from, to);
            } else {
                from.recv(1, |_| {});
            }
        };
        let error = carried(500, carry, |_| {}).unwrap_err();
        assert!(matches!(error, BetweenError::Lost(29)), "{error}");
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
        assert_eq!(found.t_f_ns.samples + found.lost, 50);
        assert!(found.median_ns > 0.0 && found.round_trip_ns > Some(2.0 * found.median_ns), "{found:?}");
    }
}
