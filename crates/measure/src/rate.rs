//! Measures the highest rate of a device. Trials run in the device's own time (`offered.rs`), or in
//! real time if its port is attached to an interface of this host. The search is in `search.rs`.

use super::dut_port::TesterPort;
use super::offered::{Arrivals, Served};
use super::pipeline::{self, Cost, Device, End, Source};
use super::search::{Found, Goal, SearchError, Trial, search, usual_trials};
use super::{Progress, clock_cost_ns, on_core, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Name of the search in progress reports. Its steps are trials; there may be more trials than the
/// reported total.
pub const SEARCH: &str = "search";
/// A poll of a port that takes this much longer than its frames need was interrupted by a host
/// stall.
const STALL: Duration = Duration::from_millis(1);
/// Slowdown of a frame, as a factor, that still counts as the device's own time.
const SLOW: f64 = 4.0;
/// How long to wait for frames in flight after the last has been offered, and for frames that the
/// device holds.
const GRACE: Duration = Duration::from_millis(1);
const HELD: Duration = Duration::from_secs(1);

/// Parameters of a search for rates.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hunt<'a> {
    /// Goals of the search.
    pub goals: &'a [Goal],
    /// Duration of the final trials.
    pub duration: Duration,
    /// Relative width of the final interval.
    pub width: f64,
    /// Capacity of the device's queue, packets; arrivals beyond it are lost.
    pub queue: u64,
}

impl Hunt<'_> {
    /// Searches from 1/1000 to 3/2 of `peak` packets/s.
    fn search(
        self,
        peak: f64,
        progress: Progress<'_>,
        mut trial: impl FnMut(f64, Duration) -> Trial,
    ) -> Result<Vec<Found>, SearchError> {
        let mut trials = 0;
        search(self.goals, (peak / 1000.0, peak * 1.5), self.width, self.duration, |load, time| {
            progress(SEARCH, trials, usual_trials(self.goals.len()));
            trials += 1;
            trial(load, time)
        })
    }
}

/// Measures the cost per packet of a device at the other end of a DUT attachment, on the first
/// core.
pub(super) fn cost_over(
    device: &mut (impl Device + Send),
    source: &mut (impl Source<TesterPort> + Send),
    far: TesterPort,
    packets: u64,
    progress: Progress<'_>,
) -> (Cost, TesterPort) {
    // The far end belongs to one thread, which moves to the device's core and back.
    on_core(0, move || (pipeline::run(device, source, &far, packets, progress), far))
}

/// Searches the highest rates of a device at the other end of a DUT attachment. Returns an empty
/// list without goals. Trials run in the device's own time over a veth pair of this process,
/// otherwise in real time.
pub(super) fn search_over(
    device: &mut (impl Device + Send),
    source: &mut (impl Source<TesterPort> + Send),
    far: TesterPort,
    t_ns: f64,
    hunt: Hunt<'_>,
    progress: Progress<'_>,
) -> Result<Vec<Found>, SearchError> {
    if hunt.goals.is_empty() {
        return Ok(Vec::new());
    }
    if far.is_veth() {
        return in_own_time(device, source, far, t_ns, hunt, progress);
    }
    let trial = move |load, time| in_real_time(device, source, &far, (load, time), t_ns * 1e-9);
    on_core(1, move || hunt.search(1e9 / t_ns, progress, trial))
}

/// Searches the highest rates of a device on the first core, in the device's own time. `t_ns` is
/// the usual time per packet.
pub(super) fn in_own_time<E: End + Send>(
    device: &mut (impl Device + Send),
    source: &mut (impl Source<E> + Send),
    end: E,
    t_ns: f64,
    hunt: Hunt<'_>,
    progress: Progress<'_>,
) -> Result<Vec<Found>, SearchError> {
    let arrivals = Arrivals { queue: hunt.queue, burst: source.burst() as u64, usual_s: t_ns * 1e-9 };
    on_core(0, move || {
        let clock_ns = clock_cost_ns();
        let mut serve = |packets: u64| {
            source.give(packets as usize, &end);
            let begun = Instant::now();
            device.turn(&mut |_| {});
            let time_s = (begun.elapsed().as_secs_f64() - clock_ns * 1e-9).max(0.0);
            let mut forwarded = end.take() as u64;
            if packets == 0 {
                // RFC 2544 §26.1: wait for frames that the kernel or the device still has in
                // flight.
                let (first, mut last) = (Instant::now(), Instant::now());
                while last.elapsed() < GRACE || device.holds() && first.elapsed() < HELD {
                    device.turn(&mut |_| {});
                    let late = end.take() as u64;
                    forwarded += late;
                    last = if late > 0 { Instant::now() } else { last };
                }
            }
            Served { time_s, forwarded }
        };
        hunt.search(1e9 / t_ns, progress, |load, time| arrivals.offer(load, time, &mut serve))
    })
}

/// Offers `load` packets/s for `time` in real time, with the device on a core of its own. `usual_s`
/// is the device's usual time per packet.
fn in_real_time<E: End>(
    device: &mut (impl Device + Send),
    source: &mut impl Source<E>,
    end: &E,
    (load, time): (f64, Duration),
    usual_s: f64,
) -> Trial {
    let (stop, idle, stalled) = (AtomicBool::new(false), AtomicU64::new(0), AtomicBool::new(false));
    let holds = AtomicBool::new(false);
    // Called after each poll of a port, with the number of frames it moved.
    let watch = |last: &mut Instant, frames: u64| {
        let now = Instant::now();
        if (now - *last).as_secs_f64() > SLOW * usual_s * frames as f64 + STALL.as_secs_f64() {
            stalled.store(true, Ordering::Relaxed);
        }
        *last = now;
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(0);
            let mut last = Instant::now();
            while !stop.load(Ordering::Relaxed) {
                let frames = device.burst(&mut |_| {});
                if frames == 0 {
                    holds.store(device.holds(), Ordering::Relaxed);
                    idle.fetch_add(1, Ordering::Relaxed);
                    std::hint::spin_loop();
                }
                watch(&mut last, frames as u64);
            }
        });
        let total = (load * time.as_secs_f64()).ceil().max(1.0) as u64;
        let (mut sent, mut offered, mut received) = (0u64, 0u64, 0u64);
        let start = Instant::now();
        let mut last = start;
        // All frames due by now are offered at once. Frames that the ring does not accept are lost,
        // as at a NIC.
        while offered < total {
            let due = ((start.elapsed().as_secs_f64() * load) as u64 + 1).min(total);
            let new = due.saturating_sub(offered);
            if new > 0 {
                sent += source.give(new as usize, end) as u64;
                offered = due;
            }
            let taken = end.take() as u64;
            received += taken;
            watch(&mut last, new + taken);
        }
        received += in_flight(end, sent - received.min(sent), &idle, &holds);
        stop.store(true, Ordering::Relaxed);
        let spoilt = stalled.load(Ordering::Relaxed);
        Trial { offered, forwarded: received, spoilt, ..Trial::default() }
    })
}

/// Takes up to `missing` frames that are in flight and returns their number: waits until the device
/// has found its port empty twice and `GRACE` has passed for frames on the wire (RFC 2544 §26.1).
fn in_flight<E: End>(end: &E, missing: u64, idle: &AtomicU64, holds: &AtomicBool) -> u64 {
    let (seen, last) = (idle.load(Ordering::Relaxed), Instant::now());
    let may_come = || {
        idle.load(Ordering::Relaxed) < seen + 2
            || last.elapsed() < GRACE
            || holds.load(Ordering::Relaxed) && last.elapsed() < HELD
    };
    let mut taken = 0;
    while taken < missing && may_come() {
        taken += end.take() as u64;
    }
    taken + end.take() as u64
}

#[cfg(test)]
mod tests {
    use super::super::pipeline::InTurn;
    use super::*;
    use fastpath_engine::port::{Burst, Memory, MemoryEnd, Port};
    use fastpath_net::{Frame, FramePool};
    use fastpath_units::Time;
    use std::collections::VecDeque;
    use std::sync::Arc;

    /// A device that sends each burst one burst later.
    struct Late {
        port: Memory,
        pool: FramePool,
        burst: Burst,
        held: VecDeque<Frame>,
    }

    impl Late {
        fn new() -> (Late, MemoryEnd) {
            let (port, end) = Memory::new("memory", 1 << 16);
            let pool = FramePool::default();
            (Late { port, pool, burst: Burst::new(), held: VecDeque::new() }, end)
        }
    }

    impl Device for Late {
        const STAGES: &'static [&'static str] = &[];

        fn burst(&mut self, _: &mut impl FnMut(usize)) -> usize {
            let _ = self.port.tx_burst(Time::ZERO, &mut self.pool, &mut self.held);
            let _ = self.port.rx_burst(Time::ZERO, &mut self.pool, &mut self.burst);
            let frames = self.burst.len();
            self.held.extend(self.burst.drain());
            frames
        }

        fn holds(&self) -> bool {
            !self.held.is_empty()
        }
    }

    fn source() -> InTurn {
        InTurn::new(Arc::new(vec![vec![2; 60]]), 64)
    }

    #[test]
    fn a_trial_far_below_the_peak_forwards_all_frames() {
        let (mut device, end) = Late::new();
        let load = (10_000.0, Duration::from_millis(20));
        let found = in_real_time(&mut device, &mut source(), &end, load, 1e-6);
        assert_eq!((found.offered, found.forwarded), (200, 200));
    }

    #[test]
    fn a_search_waits_for_frames_that_the_device_holds() {
        let (mut device, end) = Late::new();
        let goals = [Goal { loss_ratio: 0.0 }];
        let hunt = Hunt { goals: &goals, duration: Duration::from_millis(2), width: 0.1, queue: 4096 };
        let found = in_own_time(&mut device, &mut source(), end, 1000.0, hunt, &|_, _, _| {}).expect("rates");
        assert!(found[0].lower_pps.is_some(), "{found:?}");
    }
}
