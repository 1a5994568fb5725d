//! Measures pipelines: a device between the two ends of a memory port, fed in bursts and timed
//! burst by burst.
//!
//! ```text
//!   fill the ring ──▶ │ rx, work, tx │ ──▶ empty the ring        one round
//!      not timed           timed             not timed
//! ```
//!
//! Source, device and sink alternate on one core. Only the device is timed, and no core waits for
//! another. Every [`STAGED_EVERY`]th round also reads the clock between stages; the cost of these
//! readings is subtracted.

use super::{Progress, clock_cost_ns, pin};
use fastpath_engine::port::{MemoryEnd, Port};
use fastpath_net::{Frame, FramePool};
use fastpath_units::Time;
use fastpath_units::stats::{median, quantile, sorted};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::{Arc, Barrier};
use std::time::Instant;

/// One round in this many times its stages: few, so that the others run as in operation.
const STAGED_EVERY: usize = 8;
/// Warm-up rounds, not counted.
const WARM_UP: usize = 64;

/// The cost of one stage.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Stage {
    /// Name; stage i of the measurement corresponds to stage i of the model and the simulator.
    pub name: String,
    /// Median time per packet, ns.
    pub ns: f64,
}

/// A device under test.
pub(super) trait Device {
    /// Names of the stages, in order.
    const STAGES: &'static [&'static str];

    /// Receives a burst from the port, processes it and sends it. Calls `mark` after each stage.
    /// Returns the number of frames received.
    fn burst(&mut self, mark: &mut impl FnMut(usize)) -> usize;

    /// Processes bursts until the port has no more frames.
    fn turn(&mut self, mark: &mut impl FnMut(usize)) {
        while self.burst(mark) > 0 {}
    }

    /// Whether the device holds frames that it will send later.
    fn holds(&self) -> bool {
        false
    }
}

/// Cost per packet over many rounds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Cost {
    /// Median over rounds, ns per packet.
    pub(super) median_ns: f64,
    /// Mean, ns per packet; host stalls included.
    pub(super) mean_ns: f64,
    /// 90th percentile over rounds, ns per packet.
    pub(super) p90_ns: f64,
    /// The stages, from the rounds that timed them.
    pub(super) stages: Vec<Stage>,
    /// Sum of the stages minus the whole, % of the whole.
    pub(super) stages_minus_whole_pct: f64,
    /// Rounds timed as a whole.
    pub(super) rounds: usize,
}

/// The far end of the device's port.
pub(super) trait End {
    /// Offers frames to the port; returns the number accepted.
    fn give<'a>(&self, frames: impl IntoIterator<Item = &'a [u8]>) -> usize;

    /// Receives all frames that the device has sent; returns their number.
    fn take(&self) -> usize;
}

impl End for MemoryEnd {
    fn give<'a>(&self, frames: impl IntoIterator<Item = &'a [u8]>) -> usize {
        self.send(frames)
    }

    fn take(&self) -> usize {
        self.recv(usize::MAX, |_| {})
    }
}

/// Sends all frames of `out`, in as many bursts as the port needs; returns the number sent. Frames
/// that the port does not accept are lost, as at a full NIC, so a failing port shows as loss.
pub(super) fn send(
    port: &mut (impl Port + ?Sized),
    now: Time,
    pool: &mut FramePool,
    out: &mut VecDeque<Frame>,
) -> usize {
    let (waiting, mut left) = (out.len(), usize::MAX);
    while !out.is_empty() && out.len() < left {
        left = out.len();
        let _ = port.tx_burst(now, pool, out);
    }
    let lost = out.len();
    out.drain(..).for_each(|frame| pool.free(frame));
    waiting - lost
}

/// A source of frames, in bursts.
pub(super) trait Source<E = MemoryEnd> {
    /// Frames per burst.
    fn burst(&self) -> usize;

    /// Offers the next `packets` frames to the port; returns the number accepted.
    fn give(&mut self, packets: usize, end: &E) -> usize;

    /// Offers the next burst; returns the number of frames accepted.
    fn fill(&mut self, end: &E) -> usize {
        self.give(self.burst(), end)
    }
}

/// A source that cycles through frames of several flows.
pub(super) struct InTurn {
    pub(super) frames: Arc<Vec<Vec<u8>>>,
    burst: usize,
    next: usize,
}

impl InTurn {
    /// Returns a source with bursts of `burst` frames. `frames` must not be empty.
    pub(super) fn new(frames: Arc<Vec<Vec<u8>>>, burst: usize) -> InTurn {
        InTurn { frames, burst, next: 0 }
    }
}

impl<E: End> Source<E> for InTurn {
    fn burst(&self) -> usize {
        self.burst
    }

    fn give(&mut self, packets: usize, end: &E) -> usize {
        let from = self.next;
        self.next += packets;
        end.give((from..self.next).map(|i| self.frames[i % self.frames.len()].as_slice()))
    }
}

/// Times a device, round by round; [`Meter::cost`] then returns the [`Cost`].
pub(super) struct Meter {
    clock_ns: f64,
    whole: Vec<f64>,
    stages: Vec<Vec<f64>>,
    rounds: usize,
}

impl Meter {
    pub(super) fn new(stages: usize) -> Meter {
        Meter { clock_ns: clock_cost_ns(), whole: Vec::new(), stages: vec![Vec::new(); stages], rounds: 0 }
    }

    /// Runs one round; returns the number of packets that came out.
    pub(super) fn round<D: Device, E: End>(
        &mut self,
        device: &mut D,
        source: &mut impl Source<E>,
        end: &E,
    ) -> usize {
        let packets = source.fill(end);
        let counts = self.rounds >= WARM_UP;
        if self.rounds.is_multiple_of(STAGED_EVERY) {
            let mut spent = vec![0.0; D::STAGES.len()];
            let mut marks = 0;
            let mut last = Instant::now();
            device.turn(&mut |stage| {
                let now = Instant::now();
                spent[stage] += (now - last).as_secs_f64() * 1e9 - self.clock_ns;
                marks += 1;
                last = now;
            });
            if counts && marks > 0 {
                for (times, spent) in self.stages.iter_mut().zip(spent) {
                    times.push(spent.max(0.0) / packets as f64);
                }
            }
        } else {
            let start = Instant::now();
            device.turn(&mut |_| {});
            let ns = start.elapsed().as_secs_f64() * 1e9 - self.clock_ns;
            if counts {
                self.whole.push(ns.max(0.0) / packets as f64);
            }
        }
        self.rounds += 1;
        end.take()
    }

    pub(super) fn cost(self, names: &[&str]) -> Cost {
        let whole = sorted(self.whole);
        let median_ns = quantile(&whole, 0.5);
        let stages: Vec<Stage> = names
            .iter()
            .zip(self.stages)
            .map(|(name, times)| Stage { name: (*name).to_owned(), ns: median(times) })
            .collect();
        let sum: f64 = stages.iter().map(|stage| stage.ns).sum();
        Cost {
            median_ns,
            mean_ns: whole.iter().sum::<f64>() / whole.len() as f64,
            p90_ns: quantile(&whole, 0.9),
            stages,
            stages_minus_whole_pct: 100.0 * (sum / median_ns - 1.0),
            rounds: whole.len(),
        }
    }
}

/// Runs `work` on each of `cores` cores at once. Its arguments are the core, a function that waits
/// until all cores are ready, and a progress callback.
pub(super) fn on_cores<T: Send>(
    cores: usize,
    progress: Progress<'_>,
    work: impl Fn(usize, &dyn Fn(), Progress<'_>) -> T + Sync,
) -> Vec<T> {
    let barrier = Barrier::new(cores);
    let one = |core: usize| {
        pin(core);
        let ready = || {
            barrier.wait();
        };
        work(core, &ready, if core == 0 { progress } else { &|_, _, _| {} })
    };
    std::thread::scope(|scope| {
        let one = &one;
        let workers: Vec<_> = (0..cores).map(|core| scope.spawn(move || one(core))).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, T>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().map(join).collect()
    })
}

/// Returns the number of rounds that time `packets` in bursts of `burst`, at least as many as a
/// median needs.
pub(super) fn rounds(packets: u64, burst: usize) -> usize {
    WARM_UP + (packets as usize).div_ceil(burst).max(4 * STAGED_EVERY)
}

/// Times `packets` packets through a device.
pub(super) fn run<D: Device, E: End>(
    device: &mut D,
    source: &mut impl Source<E>,
    end: &E,
    packets: u64,
    progress: Progress<'_>,
) -> Cost {
    let rounds = rounds(packets, source.burst());
    let mut meter = Meter::new(D::STAGES.len());
    for round in 0..rounds {
        if round % 1024 == 0 {
            progress("pipeline", round, rounds);
        }
        meter.round(device, source, end);
    }
    meter.cost(D::STAGES)
}
