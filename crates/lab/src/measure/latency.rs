//! The experiment of seed 000 on our engine's ports: how long a unit's input and output phases take.
//!
//! ```text
//!  generator ──▶ forward ──▶ swap ──▶ forward ──▶ generator
//!     d0       r10  d10     r2  d2    r11  d11       r0        r: received, d: departs
//! ```
//!
//! t_f = ½·[(r11 − d10) − (d2 − r2)] (equation 1): between d10 and r11 lie the output and input of the forward unit
//! and of the swap unit, and the swap unit's work, which is taken off; half of the rest is one unit's. One packet is
//! under way at a time. All units take turns on one core, joined by memory ports: no wire, no wake-up, no other core.

use super::{Progress, clock_cost_ns, on_core};
use fastpath_engine::port::{Burst, Memory, MemoryEnd, Port};
use fastpath_model::latency::{Latency, LatencyError, summarise};
use fastpath_net::{Frame, FramePool};
use fastpath_units::Time;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::time::Instant;

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
    /// Median of the whole way from generator to generator, ns.
    pub round_trip_ns: f64,
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
/// [`LatencyError`] for fewer than eight packets.
pub fn latency(size: usize, packets: usize, progress: Progress<'_>) -> Result<UnitLatency, LatencyError> {
    let (t_f, mut whole) = on_core(0, || chain(size, packets, progress));
    let found = summarise(&t_f)?;
    let (low, high) = found.fences;
    let outliers = t_f.iter().copied().filter(|x| *x < low || *x > high);
    Ok(UnitLatency {
        median_ns: found.five[2],
        histogram: Histogram::of(&t_f, found.five[0].max(low), found.five[4].min(high)),
        outliers_ns: outliers.take(OUTLIERS_KEPT).collect(),
        round_trip_ns: super::median(&mut whole),
        t_f_ns: found,
    })
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
fn chain(size: usize, packets: usize, progress: Progress<'_>) -> (Vec<f64>, Vec<f64>) {
    let clock_ns = clock_cost_ns();
    let (mut forward, [generator, forward_right]) = Unit::new("forward");
    let (mut swap, [swap_left, _]) = Unit::new("swap");
    let frame = vec![0x5a; size];
    let (mut t_f, mut whole) = (Vec::with_capacity(packets), Vec::with_capacity(packets));
    for i in 0..packets + WARM_UP {
        if i % 1024 == 0 {
            progress("latency", i, packets + WARM_UP);
        }
        let d0 = Instant::now();
        generator.send([frame.as_slice()]);
        let (_, d10) = forward.pass(Side::Left, Side::Right);
        wire(&forward_right, &swap_left);
        let (r2, d2) = swap.pass(Side::Left, Side::Left);
        wire(&swap_left, &forward_right);
        let (r11, _) = forward.pass(Side::Right, Side::Left);
        let back = generator.recv(1, |_| {});
        let r0 = Instant::now();
        assert_eq!(back, 1, "a memory port loses nothing");
        if i >= WARM_UP {
            let ns = |from: Instant, to: Instant| (to - from).as_secs_f64() * 1e9;
            // Three readings lie in the outer span and one in the inner: one of them is in the half.
            t_f.push(((ns(d10, r11) - ns(r2, d2)) / 2.0 - clock_ns).max(0.0));
            whole.push(ns(d0, r0));
        }
    }
    (t_f, whole)
}

/// Carries what has left one unit to the next.
fn wire(from: &MemoryEnd, to: &MemoryEnd) {
    from.recv(1, |bytes| {
        to.send([bytes]);
    });
}

/// A unit with a port on each side.
struct Unit {
    ports: [Memory; 2],
    pool: FramePool,
    burst: Burst,
    out: VecDeque<Frame>,
}

#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

impl Unit {
    fn new(name: &str) -> (Unit, [MemoryEnd; 2]) {
        let [(left, left_end), (right, right_end)] = [(); 2].map(|()| Memory::new(name, RING));
        let unit = Unit {
            ports: [left, right],
            pool: FramePool::new(POOL_LIMIT),
            burst: Burst::new(),
            out: VecDeque::with_capacity(1),
        };
        (unit, [left_end, right_end])
    }

    /// Receives, exchanges the addresses as both kinds of unit do, sends. Gives the two probes: received, departs.
    fn pass(&mut self, from: Side, to: Side) -> (Instant, Instant) {
        // A memory port does not fail.
        let _ = self.ports[from as usize].rx_burst(Time::ZERO, &mut self.pool, &mut self.burst);
        let received = Instant::now();
        for mut frame in self.burst.drain() {
            let (target, rest) = self.pool.bytes_mut(&mut frame)[..MACS].split_at_mut(MACS / 2);
            target.swap_with_slice(rest);
            self.out.push_back(frame);
        }
        let departs = Instant::now();
        let _ = self.ports[to as usize].tx_burst(Time::ZERO, &mut self.pool, &mut self.out);
        (received, departs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_comes_back_and_larger_ones_take_longer() {
        let [small, large] = [64, 1500].map(|size| latency(size, 3000, &|_, _, _| {}).unwrap());
        assert_eq!(small.t_f_ns.samples, 3000);
        assert!(small.median_ns > 0.0 && small.round_trip_ns > 2.0 * small.median_ns, "{small:?}");
        assert!(large.median_ns > small.median_ns, "{} {}", large.median_ns, small.median_ns);
        let binned: u64 = small.histogram.counts.iter().sum();
        assert_eq!(binned as usize + small.t_f_ns.outliers, 3000);
    }

    #[test]
    fn too_few_packets_are_refused() {
        assert!(latency(64, 3, &|_, _, _| {}).is_err());
    }
}
