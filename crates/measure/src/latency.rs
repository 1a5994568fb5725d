//! Repeats the experiment of Hartikainen 2016 ("Communication Latencies") on the engine's ports: it
//! measures the duration of a unit's input and output phases.
//!
//! ```text
//!  generator ──▶ forward ──▶ swap ──▶ forward ──▶ generator
//!     d0       r10  d10     r2  d2    r11  d11       r0        r: received, d: departs
//! ```
//!
//! t_f = ½·[(r11 − d10) − (d2 − r2)] (equation 1). The span from d10 to r11 contains the output and
//! input phases of the forward unit and of the swap unit, and the processing of the swap unit. The
//! processing is subtracted. Half of the rest is the time of one unit.
//!
//! One packet is in flight at a time, and all units run in turn on one core. The units are
//! connected in one of two ways:
//!
//! * By memory ports: no wire, no wake-up, no other core.
//! * By the engine on another core. Each unit is in its own namespace. A hop is the kernel's
//!   transmit path, a link of the engine, and the kernel's receive path.

use super::pipeline::send;
use super::{Progress, clock_cost_ns, on_core};
use fastpath_engine::port::{AfPacket, Burst, Memory, MemoryEnd, OpenError, Port};
use fastpath_engine::{EdgePorts, Idle, Notice, Options, StartError};
use fastpath_lab::namespace::{NotPermitted, gain_privilege};
use fastpath_lab::{Host, HostError, KnownNeighbors};
use fastpath_model::latency::{Latency, LatencyError, summarise};
use fastpath_net::{EdgeId, Frame, FramePool, Routes};
use fastpath_spec::{NodeKind, Topology};
use fastpath_units::Time;
use fastpath_units::stats::median;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

/// Frame sizes of Hartikainen 2016, bytes.
pub const LATENCY_SIZES: [usize; 6] = [64, 128, 256, 512, 1024, 1500];
/// Bytes of each ring of a memory port.
const RING: usize = 1 << 16;
/// Packets sent before the samples are kept.
const WARM_UP: usize = 1000;
/// Upper bound on a histogram's range, in bin widths.
const BINS: usize = 48;
/// Granularity of the bin width, ns.
const STEP_NS: f64 = 0.5;
/// Most outliers in a result.
const OUTLIERS_KEPT: usize = 200;
/// Bytes of the two addresses of a frame.
const MACS: usize = 12;
/// EtherType of measured frames: IEEE 802 Local Experimental EtherType 1. Frames of other types are
/// the kernel's.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
/// A packet counts as lost after this time and at least [`POLLS_MIN`] polls. The polls keep a host
/// stall between two polls from counting as loss.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Fewest polls before a packet counts as lost.
const POLLS_MIN: u32 = 4096;
/// Consecutive lost packets that end the measurement.
const LOST_MAX: usize = 10;
/// Position of the sequence number in a packet. The number distinguishes a late packet from the
/// next one.
const NUMBER: std::ops::Range<usize> = MACS + ETHERTYPE.len()..MACS + ETHERTYPE.len() + 4;

/// The connection between the units.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Between {
    /// Memory ports.
    Memory,
    /// Namespaces and the engine.
    Namespaces,
}

/// The reason why a latency measurement failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BetweenError {
    /// There are too few samples.
    #[error(transparent)]
    Latency(#[from] LatencyError),
    /// Namespaces are not permitted on this machine.
    #[error(transparent)]
    NotPermitted(#[from] NotPermitted),
    /// A unit's namespace could not be created.
    #[error(transparent)]
    Host(#[from] HostError),
    /// An interface could not be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The engine did not start.
    #[error(transparent)]
    Engine(#[from] StartError),
    /// A namespace could not be entered.
    #[error("entering a namespace: {0}")]
    Join(#[from] io::Error),
    /// Ten consecutive packets were lost. Holds the number of the last one.
    #[error(
        "{LOST_MAX} consecutive packets were lost, the last one number {0}: check for other traffic on these interfaces"
    )]
    Lost(usize),
}

/// Latencies at one frame size.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct UnitLatency {
    /// Median t_f, ns.
    pub median_ns: f64,
    /// Summary of t_f, ns: normal fit with intervals, quartiles, fences, outliers, mixture.
    pub t_f_ns: Latency,
    /// Histogram of t_f within the fences, ns.
    pub histogram: Histogram,
    /// Outliers of t_f by Tukey's rule, ns, at most 200.
    pub outliers_ns: Vec<f64>,
    /// Median round-trip time from generator to generator, ns. `None` if it was not measured.
    pub round_trip_ns: Option<f64>,
    /// Packets that did not return in time. The other fields exclude them.
    pub lost: usize,
}

/// Counts in bins of equal width.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Histogram {
    /// Centre of the first bin.
    pub from: f64,
    /// Width of a bin.
    pub width: f64,
    /// Samples in each bin.
    pub counts: Vec<u64>,
}

/// Sends `packets` packets of `size` bytes through the chain, one at a time. A packet that does not
/// return within a second is excluded and counted as lost.
///
/// # Errors
/// Returns [`BetweenError`] for fewer than eight packets, after ten consecutive losses, and if
/// namespaces are not available.
pub fn latency(
    between: Between,
    size: usize,
    packets: usize,
    progress: Progress<'_>,
) -> Result<UnitLatency, BetweenError> {
    let Samples { t_f, round_trips, lost } = match between {
        Between::Memory => on_core(0, || in_memory(size, packets, progress)),
        Between::Namespaces => between_namespaces(size, packets, progress),
    }?;
    let round_trip_ns = Some(median(round_trips));
    Ok(UnitLatency { round_trip_ns, lost, ..UnitLatency::of(&t_f)? })
}

impl UnitLatency {
    /// Summarises samples of t_f, ns, from any source.
    ///
    /// # Errors
    /// Returns [`LatencyError`] for fewer than eight samples.
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
    /// Counts the samples between `from` and `to`.
    fn of(samples: &[f64], from: f64, to: f64) -> Histogram {
        // The clock has a resolution of 1 ns, and t_f is half a difference. Narrower
        // bins would alternate between filled and empty.
        let width = ((to - from) / BINS as f64 / STEP_NS).ceil().max(1.0) * STEP_NS;
        let mut counts = vec![0; ((to - from) / width).floor() as usize + 1];
        for sample in samples.iter().filter(|x| (from..=to).contains(x)) {
            let last = counts.len() - 1;
            counts[(((sample - from) / width).round() as usize).min(last)] += 1;
        }
        Histogram { from, width, counts }
    }
}

/// The samples of a measurement.
#[derive(Debug, Default)]
struct Samples {
    /// t_f of each returned packet, ns.
    t_f: Vec<f64>,
    /// Round-trip time of each returned packet, ns.
    round_trips: Vec<f64>,
    /// Packets that did not return.
    lost: usize,
}

/// Measures units that are connected by memory ports.
fn in_memory(size: usize, packets: usize, progress: Progress<'_>) -> Result<Samples, BetweenError> {
    let pair = |name: &str| {
        let [(left, left_end), (right, right_end)] = [(); 2].map(|()| Memory::new(name, RING));
        (UnitUnderTest::new([Box::new(left), Box::new(right)]), [left_end, right_end])
    };
    let (forward, [generator, forward_right]) = pair("forward");
    let (swap, [swap_left, _swap_right]) = pair("swap");
    let carry = |hop: Hop| match hop {
        Hop::Out => wire(&forward_right, &swap_left),
        Hop::Back => wire(&swap_left, &forward_right),
    };
    chain((size, packets), generator, (forward, swap), carry, progress)
}

/// Moves one frame from the output of one unit to the input of the next.
fn wire(from: &MemoryEnd, to: &MemoryEnd) {
    from.recv(1, |bytes| {
        to.send([bytes]);
    });
}

/// Measures units in namespaces that are connected by the engine.
fn between_namespaces(size: usize, packets: usize, progress: Progress<'_>) -> Result<Samples, BetweenError> {
    gain_privilege()?;
    let mut topology = Topology::default();
    let [generator, forward, swap] =
        ["generator", "forward", "swap"].map(|name| topology.add_node(name, NodeKind::host()));
    topology.connect("left", generator, forward, Default::default());
    topology.connect("right", forward, swap, Default::default());
    let routes = Routes::compute(&topology);
    let neighbors = KnownNeighbors::in_topology(&topology);
    let (mut hosts, mut taps): (Vec<Host>, EdgePorts) = (Vec::new(), Vec::new());
    for (id, node) in topology.hosts() {
        let (host, of_host) = Host::new(id, node, routes.of(id), &neighbors)?;
        hosts.push(host);
        for tap in of_host {
            taps.push((EdgeId(taps.len() as u32), Box::new(tap)));
        }
    }
    // The engine busy-polls for the lowest latency. A fault shows as a lost packet.
    let network = fastpath_net::Options::default();
    let options = Options { idle: Some(Idle::Busy), notice: Notice::none(), ..Options::new(network) };
    let port = |host: usize, interface: &str| -> Result<Box<dyn Port>, BetweenError> {
        Ok(Box::new(hosts[host].namespace.within(|| AfPacket::open(interface))??))
    };
    let generator = UnitUnderTest::new([port(0, "eth0")?]);
    let forward = UnitUnderTest::new([port(1, "eth0")?, port(1, "eth1")?]);
    let swap = UnitUnderTest::new([port(2, "eth0")?]);
    let engine = fastpath_engine::start(topology, taps, options)?;
    let found = on_core(0, || chain((size, packets), generator, (forward, swap), |_| {}, progress));
    // The engine must stop before the interfaces that it uses are removed.
    drop(engine.stop());
    found
}

/// The start and end of the chain.
trait Generator {
    /// Sends a frame into the chain.
    fn send(&mut self, frame: &[u8]);

    /// Waits for the packet with this number. Returns `None` if it did not arrive.
    fn receive(&mut self, number: u32) -> Option<()>;
}

impl Generator for MemoryEnd {
    fn send(&mut self, frame: &[u8]) {
        MemoryEnd::send(self, [frame]);
    }

    fn receive(&mut self, number: u32) -> Option<()> {
        let mut arrived = None;
        self.recv(usize::MAX, |bytes| arrived = arrived.or(is_number(bytes, number).then_some(())));
        arrived
    }
}

impl Generator for UnitUnderTest<1> {
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

/// A hop between the forward unit and the swap unit. Memory ports need a function that moves the
/// frame.
#[derive(Clone, Copy)]
enum Hop {
    /// From the forward unit to the swap unit.
    Out,
    /// From the swap unit to the forward unit.
    Back,
}

/// Sends `packets` packets of `size` bytes through generator, forward unit and swap unit. `carry`
/// moves the packet over each hop between the two units.
fn chain<const N: usize>(
    (size, packets): (usize, usize),
    mut generator: impl Generator,
    (mut forward, mut swap): (UnitUnderTest<2>, UnitUnderTest<N>),
    carry: impl Fn(Hop),
    progress: Progress<'_>,
) -> Result<Samples, BetweenError> {
    let clock_ns = clock_cost_ns();
    let mut frame = vec![0x5a; size];
    frame[..MACS].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    frame[MACS..MACS + 2].copy_from_slice(&ETHERTYPE);
    let room = || Vec::with_capacity(packets);
    let mut samples = Samples { t_f: room(), round_trips: room(), lost: 0 };
    let mut consecutive_losses = 0;
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
            consecutive_losses += 1;
            if consecutive_losses == LOST_MAX {
                return Err(BetweenError::Lost(i));
            }
            continue;
        };
        consecutive_losses = 0;
        let r0 = Instant::now();
        if i >= WARM_UP {
            let ns = |from: Instant, to: Instant| (to - from).as_secs_f64() * 1e9;
            // The outer span contains three clock readings and the inner span one. Half of the
            // difference is therefore one reading too long.
            samples.t_f.push(((ns(d10, r11) - ns(r2, d2)) / 2.0 - clock_ns).max(0.0));
            samples.round_trips.push(ns(d0, r0));
        }
    }
    Ok(samples)
}

/// Returns whether a frame is a measured packet with this number.
fn is_number(bytes: &[u8], number: u32) -> bool {
    bytes[MACS..].starts_with(&ETHERTYPE) && bytes.get(NUMBER) == Some(&number.to_be_bytes()[..])
}

/// Indices of a unit's ports.
const LEFT: usize = 0;
const RIGHT: usize = 1;

/// A unit under test with `N` ports.
struct UnitUnderTest<const N: usize> {
    ports: [Box<dyn Port>; N],
    pool: FramePool,
    burst: Burst,
    out: VecDeque<Frame>,
    timeout: Duration,
}

impl<const N: usize> UnitUnderTest<N> {
    fn new(ports: [Box<dyn Port>; N]) -> UnitUnderTest<N> {
        let pool = FramePool::default();
        UnitUnderTest { ports, pool, burst: Burst::new(), out: VecDeque::with_capacity(1), timeout: TIMEOUT }
    }

    /// Receives the packet, swaps its addresses, as both kinds of unit do, and sends it. Returns
    /// the times of the two probes: received, departs.
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

    /// Waits for the packet with this number and drops all other frames. Returns `None` if the
    /// packet does not arrive.
    fn wait(&mut self, at: usize, number: u32) -> Option<Frame> {
        let mut wait = Wait { timeout: self.timeout, polls: 0, since: None };
        loop {
            // A failed port receives nothing, so the wait times out.
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

/// The state of the wait for one packet.
struct Wait {
    timeout: Duration,
    polls: u32,
    since: Option<Instant>,
}

impl Wait {
    /// Counts an unsuccessful poll at `now`. Returns whether the wait is over.
    fn is_over(&mut self, now: Instant) -> bool {
        self.polls = self.polls.saturating_add(1);
        now - *self.since.get_or_insert(now) >= self.timeout && self.polls >= POLLS_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn every_packet_returns_and_larger_packets_take_longer() {
        // The sizes alternate and the minimum of each counts, because a machine can change its
        // speed between runs.
        let mut minimum = [f64::INFINITY; 2];
        for _ in 0..5 {
            for (i, size) in [64, 1500].into_iter().enumerate() {
                let found = latency(Between::Memory, size, 1000, &|_, _, _| {}).unwrap();
                let binned: u64 = found.histogram.counts.iter().sum();
                assert_eq!((found.t_f_ns.samples, found.lost), (1000, 0));
                assert_eq!(binned as usize + found.t_f_ns.outliers, 1000);
                assert!(found.median_ns >= 0.0 && found.round_trip_ns > Some(2.0 * found.median_ns));
                minimum[i] = minimum[i].min(found.median_ns);
            }
        }
        assert!(minimum[0] < minimum[1], "{minimum:?}");
    }

    #[test]
    fn a_wait_ends_after_both_its_timeout_and_enough_polls() {
        let start = Instant::now();
        let wait = || Wait { timeout: TIMEOUT, polls: 0, since: None };
        // The host stalled for a minute after the first poll.
        let mut stalled = wait();
        assert!(!stalled.is_over(start));
        let after = start + Duration::from_secs(60);
        assert!((2..POLLS_MIN).all(|_| !stalled.is_over(after)));
        assert!(stalled.is_over(after));
        // Many polls within the timeout do not end the wait.
        let mut quick = wait();
        assert!((0..2 * POLLS_MIN).all(|poll| !quick.is_over(start + Duration::from_nanos(u64::from(poll)))));
        assert!(quick.is_over(start + TIMEOUT));
    }

    /// Sends `packets` packets through memory ports. `out` moves the packet with the given number
    /// from the forward unit to the swap unit. `back` receives the number of each packet on its way
    /// back.
    fn run_chain(
        packets: usize,
        out: impl Fn(u32, &MemoryEnd, &MemoryEnd),
        back: impl Fn(u32),
    ) -> Result<Samples, BetweenError> {
        let end = |name: &str| {
            let (port, end) = Memory::new(name, RING);
            (Box::new(port) as Box<dyn Port>, end)
        };
        let [(left, generator), (right, near), (port, far)] = ["left", "right", "swap"].map(end);
        let (mut forward, mut swap) = (UnitUnderTest::new([left, right]), UnitUnderTest::new([port]));
        (forward.timeout, swap.timeout) = (Duration::ZERO, Duration::ZERO);
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
    fn a_lost_packet_is_excluded_and_counted_and_a_late_packet_is_not_mistaken_for_the_next() {
        let (held, returned) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
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
        let found = run_chain(500, carry, |number| returned.borrow_mut().push(number)).unwrap();
        // Lost: numbers 1000, 1100, … 1400 and the late packet.
        assert_eq!((found.lost, found.t_f.len(), found.round_trips.len()), (6, 494, 494));
        assert!(!returned.borrow().contains(&late) && returned.borrow().is_sorted());
    }

    #[test]
    fn ten_consecutive_losses_end_the_measurement() {
        let carry = |number: u32, from: &MemoryEnd, to: &MemoryEnd| {
            if number < 20 {
                wire(from, to);
            } else {
                from.recv(1, |_| {});
            }
        };
        let error = run_chain(500, carry, |_| {}).unwrap_err();
        assert!(matches!(error, BetweenError::Lost(29)), "{error}");
    }

    #[test]
    fn too_few_packets_are_refused() {
        assert!(latency(Between::Memory, 64, 3, &|_, _, _| {}).is_err());
    }

    #[test]
    fn packets_traverse_namespaces_and_the_engine_and_return() {
        let found = match latency(Between::Namespaces, 64, 50, &|_, _, _| {}) {
            Err(BetweenError::NotPermitted(why)) => {
                return crate::skip(
                    "packets_traverse_namespaces_and_the_engine_and_return",
                    &why.to_string(),
                );
            }
            found => found.unwrap(),
        };
        assert_eq!(found.t_f_ns.samples + found.lost, 50);
        assert!(found.median_ns > 0.0 && found.round_trip_ns > Some(2.0 * found.median_ns), "{found:?}");
    }
}
