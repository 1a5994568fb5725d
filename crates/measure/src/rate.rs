//! The highest rate of a device: by trials in its own time (`offered.rs`), or in real time where
//! its port is on a cable of this machine. The search is in `search.rs`.

use super::dut_port::TesterPort;
use super::offered::{Arrivals, Served};
use super::pipeline::{self, Cost, Device, End, Source};
use super::search::{Found, Goal, SearchError, Trial, search, usual_trials};
use super::{Progress, clock_cost_ns, on_core, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a search calls itself when it says how far it is: steps are trials, and there may be more
/// than it says.
pub const SEARCH: &str = "search";
/// A turn at a port that takes so much longer than its frames need was not the port's: the machine
/// stood still.
const STILL: Duration = Duration::from_millis(1);
/// How many times slower than usual a frame may be in earnest.
const SLOW: f64 = 4.0;
/// How long frames may be under way after the last has been offered, and how long those that the
/// device holds.
const GRACE: Duration = Duration::from_millis(1);
const HELD: Duration = Duration::from_secs(1);

/// How rates are searched.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hunt<'a> {
    /// What is searched for.
    pub goals: &'a [Goal],
    /// How long final trials offer a load.
    pub duration: Duration,
    /// How close the bounds come, relative.
    pub width: f64,
    /// Packets that may wait for the device; more are lost.
    pub queue: u64,
}

impl Hunt<'_> {
    /// Searches around `peak` packets/s.
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

/// What a packet costs a device at the other end of a wire, on the first core.
pub(super) fn cost_over(
    device: &mut (impl Device + Send),
    source: &mut (impl Source<TesterPort> + Send),
    far: TesterPort,
    packets: u64,
    progress: Progress<'_>,
) -> (Cost, TesterPort) {
    // The far end stays with one thread, which moves to the device's core and back.
    on_core(0, move || (pipeline::run(device, source, &far, packets, progress), far))
}

/// The highest rates of such a device, none without goals: in its own time, or in real time if the
/// wire is not ours.
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

/// The highest rates of a device on the first core, in its own time. A packet usually takes it
/// `t_ns`.
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
                // RFC 2544 §26.1: wait for what the kernel or the device still has under way.
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

/// Offers `load` packets/s for `time` in real time, the device on a core of its own. A packet
/// usually takes it `usual_s`.
fn in_real_time<E: End>(
    device: &mut (impl Device + Send),
    source: &mut impl Source<E>,
    end: &E,
    (load, time): (f64, Duration),
    usual_s: f64,
) -> Trial {
    let (stop, idle, still) = (AtomicBool::new(false), AtomicU64::new(0), AtomicBool::new(false));
    let holds = AtomicBool::new(false);
    // Called after each turn at a port, with the frames it moved.
    let watch = |last: &mut Instant, frames: u64| {
        let now = Instant::now();
        if (now - *last).as_secs_f64() > SLOW * usual_s * frames as f64 + STILL.as_secs_f64() {
            still.store(true, Ordering::Relaxed);
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
        // What is due by now is offered at once; what the ring does not take is lost, as at a NIC.
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
        // RFC 2544 §26.1: wait for what is still under way, here until the device has found nothing
        // twice and a wire has had its time too.
        let (seen, last) = (idle.load(Ordering::Relaxed), Instant::now());
        let is_under_way = || {
            idle.load(Ordering::Relaxed) < seen + 2
                || last.elapsed() < GRACE
                || holds.load(Ordering::Relaxed) && last.elapsed() < HELD
        };
        while received < sent && is_under_way() {
            received += end.take() as u64;
        }
        received += end.take() as u64;
        stop.store(true, Ordering::Relaxed);
        let spoilt = still.load(Ordering::Relaxed);
        Trial { offered, forwarded: received, spoilt, ..Trial::default() }
    })
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

    /// Sends what it took the burst before.
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
    fn a_trial_far_below_the_peak_forwards_what_is_offered() {
        let (mut device, end) = Late::new();
        let asked = (10_000.0, Duration::from_millis(20));
        let found = in_real_time(&mut device, &mut source(), &end, asked, 1e-6);
        assert_eq!((found.offered, found.forwarded), (200, 200));
    }

    #[test]
    fn what_a_device_holds_is_waited_for() {
        let (mut device, end) = Late::new();
        let goals = [Goal { loss_ratio: 0.0 }];
        let hunt = Hunt { goals: &goals, duration: Duration::from_millis(2), width: 0.1, queue: 4096 };
        let found = in_own_time(&mut device, &mut source(), end, 1000.0, hunt, &|_, _, _| {}).expect("rates");
        assert!(found[0].lower_pps.is_some(), "{found:?}");
    }
}
