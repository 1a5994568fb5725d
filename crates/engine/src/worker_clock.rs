//! The worker's clock, which also detects interruptions of its thread: intervals in which the
//! thread was to run and did not run.
//!
//! Two readings with little work between them that are far apart, and a sleep that ends late, are
//! suspicious. What happened is what the kernel accounts for:
//!
//! ```text
//!  the thread used its core             the worker's own work: not an interruption
//!  it was ready and waited for a core   preemption
//!  neither, or a hypervisor had it      stall of the host (or the process was stopped)
//! ```

use crate::clock::Clock;
use fastpath_sys::thread::{Steal, ThreadAccount, ThreadTimes, has_virtual_time};
use fastpath_units::{Duration, Time};

/// The longest time that the work between two readings takes: a burst of one port.
const WORK_MAX: Duration = Duration::from_ms(1);
/// As [`WORK_MAX`], while the worker only polls.
const POLL_MAX: Duration = Duration::from_us(100);
/// The most by which a sleep ends late on an idle machine.
const OVERSLEPT_MAX: Duration = Duration::from_ms(1);
/// How often the account of the thread is read while nothing is suspicious.
const SAMPLE_INTERVAL: Duration = Duration::from_ms(10);
/// The most by which the arrival stamp of a frame precedes the end of the poll that found it alone.
/// A poll takes a microsecond, or ten where the kernel's code has left the caches, and most of that
/// time the frame is already found. If the host stalls during the poll, a frame may leave early by
/// this much.
const ARRIVAL_UNCERTAINTY_MAX: Duration = Duration::from_us(20);
/// Interruptions kept to explain late frames.
const REMEMBERED: usize = 16;

/// Interruptions of one kind.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct InterruptionTotals {
    pub(crate) count: u64,
    pub(crate) total: Duration,
    pub(crate) longest: Duration,
}

/// An interruption: somewhere between two times.
#[derive(Clone, Copy, Debug, Default)]
struct Interruption {
    from: Time,
    to: Time,
    length: Duration,
}

/// The kind of an interruption.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Stall,
    Preemption,
}

/// An interval in which the worker may have been interrupted.
#[derive(Clone, Copy, Debug)]
struct Suspicion {
    /// The length of the interval.
    gap: Duration,
    /// The part of the interval that work may take.
    gap_max: Duration,
    /// The time awake since the last sample. The interval is the last part of it.
    awake: Duration,
    /// The times that the kernel accounted to the thread since the last sample.
    times: ThreadTimes,
    /// The time that a hypervisor took since the last reading.
    stolen: Duration,
}

impl Suspicion {
    /// Returns how long the thread did not run, and why; `None` if it worked.
    fn resolve(self) -> Option<(Kind, Duration)> {
        let off_core = self.awake.saturating_sub(self.times.cpu);
        // Kernels differ in whether stolen time counts as time of the thread.
        let stolen = self.stolen.min(self.times.cpu);
        let length = off_core.saturating_add(stolen).min(self.gap);
        let waited = self.times.run_delay.min(off_core);
        let kind = if waited.as_ps() >= length.as_ps() / 2 { Kind::Preemption } else { Kind::Stall };
        (length > self.gap_max).then_some((kind, length))
    }
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct WorkerClock {
    clock: Clock,
    /// Time stands still while the worker runs, so that the last reading is the time.
    stands_still: bool,
    last: Time,
    gap_max: Duration,
    account: ThreadAccount,
    steal: Steal,
    /// When the account was read, what it was, and the time asleep since then.
    sampled: (Time, ThreadTimes, Duration),
    /// The host stalled, or the process was stopped.
    pub(crate) stalled: InterruptionTotals,
    /// Other threads ran on this core.
    pub(crate) preempted: InterruptionTotals,
    recent: [Interruption; REMEMBERED],
    place: usize,
}

impl WorkerClock {
    /// Creates the clock of the calling thread.
    pub(crate) fn new(clock: Clock) -> WorkerClock {
        let account = ThreadAccount::of_this_thread();
        let (now, times) = (clock.now(), account.read());
        WorkerClock {
            clock,
            stands_still: has_virtual_time(),
            last: now,
            gap_max: WORK_MAX,
            account,
            steal: Steal::start(),
            sampled: (now, times, Duration::ZERO),
            stalled: InterruptionTotals::default(),
            preempted: InterruptionTotals::default(),
            recent: [Interruption::default(); REMEMBERED],
            place: 0,
        }
    }

    /// Returns the time. The thread must not have waited since the last reading.
    #[inline]
    pub(crate) fn now(&mut self) -> Time {
        if self.stands_still {
            return self.last;
        }
        let now = self.clock.now();
        if now.since(self.last) > self.gap_max {
            self.suspect(now, now.since(self.last), self.gap_max);
        }
        self.last = now;
        now
    }

    /// Returns the time for which the thread has run on a core.
    pub(crate) fn cpu(&self) -> Duration {
        self.account.read().cpu
    }

    /// Returns the time after work that may take long.
    pub(crate) fn after_long_work(&mut self) -> Time {
        self.last = self.clock.now();
        self.last
    }

    /// Returns the time after a sleep that was to end at `until` at the latest.
    pub(crate) fn after_sleep(&mut self, until: Time) -> Time {
        let now = self.clock.now();
        // Until then it slept, which is not an interruption.
        let asleep = now.min(until).since(self.last);
        self.sampled.2 = self.sampled.2.saturating_add(asleep);
        if now.since(until) > OVERSLEPT_MAX {
            self.last = until;
            self.suspect(now, now.since(until), OVERSLEPT_MAX);
        }
        self.last = now;
        now
    }

    /// Says whether the worker moves frames until the next call, or only polls.
    #[inline]
    pub(crate) fn expect(&mut self, is_moving: bool) {
        self.gap_max = if is_moving { WORK_MAX } else { POLL_MAX };
        if self.last.since(self.sampled.0) > SAMPLE_INTERVAL {
            self.sample(self.last);
        }
    }

    /// Reads the account. Returns the time awake since the last sample, and what was accounted.
    #[cold]
    fn sample(&mut self, now: Time) -> (Duration, ThreadTimes) {
        let times = self.account.read();
        let (at, before, asleep) = std::mem::replace(&mut self.sampled, (now, times, Duration::ZERO));
        let since = ThreadTimes {
            cpu: times.cpu.saturating_sub(before.cpu),
            run_delay: times.run_delay.saturating_sub(before.run_delay),
        };
        (now.since(at).saturating_sub(asleep), since)
    }

    #[cold]
    fn suspect(&mut self, now: Time, gap: Duration, gap_max: Duration) {
        let (awake, times) = self.sample(now);
        let stolen = self.steal.since_last();
        let Some((kind, length)) = (Suspicion { gap, gap_max, awake, times, stolen }).resolve() else {
            return;
        };
        let totals = match kind {
            Kind::Stall => &mut self.stalled,
            Kind::Preemption => &mut self.preempted,
        };
        totals.count += 1;
        totals.total = totals.total.saturating_add(length);
        totals.longest = totals.longest.max(length);
        self.recent[self.place] = Interruption { from: self.last, to: now, length };
        self.place = (self.place + 1) % REMEMBERED;
    }

    /// Returns the part of the time from `due` to `released` that recent interruptions took.
    pub(crate) fn interrupted_within(&self, due: Time, released: Time) -> Duration {
        let overlap = |&Interruption { from, to, length }: &Interruption| {
            to.min(released).since(from.max(due)).min(length)
        };
        self.recent.iter().map(overlap).fold(Duration::ZERO, Duration::saturating_add)
    }
}

/// Returns the arrival time of frames that a poll from `from` to `to` found. A single frame was
/// there when the poll began, or arrived while the kernel looked for it. Of several frames, all but
/// the first may have arrived while others were taken.
pub(crate) fn stamp(from: Time, to: Time, frames: usize) -> Time {
    if frames == 1 { from.max(to.saturating_sub(ARRIVAL_UNCERTAINTY_MAX)) } else { to }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_frame_is_explained_by_the_interruption_it_fell_into() {
        let mut clock = WorkerClock::new(Clock::start());
        let at = |ms: u64| Time::ZERO + Duration::from_ms(ms);
        let interruption = |from, to, ms| Interruption { from, to, length: Duration::from_ms(ms) };
        clock.recent[0] = interruption(at(100), at(109), 9);
        clock.recent[1] = interruption(at(200), at(202), 2);
        // The worker ran for 18 of 20 ms.
        clock.recent[2] = interruption(at(300), at(320), 2);
        for (due, released, explained_ms) in [
            (99, 110, 9),
            (105, 109, 4),
            (105, 107, 2),
            (110, 120, 0),
            (90, 95, 0),
            (100, 205, 11),
            (290, 330, 2),
        ] {
            assert_eq!(
                clock.interrupted_within(at(due), at(released)),
                Duration::from_ms(explained_ms),
                "{due} … {released}"
            );
        }
    }

    #[test]
    fn what_the_kernel_accounts_for_decides() {
        let ms = Duration::from_ms;
        // gap, awake since the sample, on a core, waiting for one, stolen; kind and length
        let table = [
            // Overload: the worker itself worked.
            ((6, 6, 6, 0, 0), None),
            ((6, 16, 15, 0, 0), None),
            ((6, 6, 1, 5, 0), Some((Kind::Preemption, 5))),
            ((6, 10, 5, 5, 0), Some((Kind::Preemption, 5))),
            // SIGSTOP: neither ran nor was ready.
            ((13_000, 13_000, 0, 0, 0), Some((Kind::Stall, 13_000))),
            // A hypervisor, in kernels that subtract stolen time, and in others.
            ((30, 30, 10, 0, 20), Some((Kind::Stall, 30))),
            ((30, 30, 0, 0, 30), Some((Kind::Stall, 30))),
            ((30, 30, 30, 0, 20), Some((Kind::Stall, 20))),
            ((30, 30, 2, 4, 0), Some((Kind::Stall, 28))),
        ];
        for ((gap, awake, cpu, run_delay, stolen), expected) in table {
            let suspicion = Suspicion {
                gap: ms(gap),
                gap_max: ms(1),
                awake: ms(awake),
                times: ThreadTimes { cpu: ms(cpu), run_delay: ms(run_delay) },
                stolen: ms(stolen),
            };
            let expected = expected.map(|(kind, length)| (kind, ms(length)));
            assert_eq!(suspicion.resolve(), expected, "{suspicion:?}");
        }
    }

    #[test]
    fn work_between_readings_is_not_blamed_on_the_machine() {
        let mut clock = WorkerClock::new(Clock::start());
        let before = clock.now();
        let (account, work) = (ThreadAccount::of_this_thread(), Duration::from_ms(20));
        let started = account.read().cpu;
        while account.read().cpu.saturating_sub(started) < work {}
        clock.steal.since_last();
        let gap = clock.now().since(before);
        let blamed = clock.stalled.total.saturating_add(clock.preempted.total);
        assert!(blamed <= gap.saturating_sub(work), "{blamed} of {gap}");
    }

    #[test]
    fn a_sleep_that_ends_late_is_an_interruption() {
        let mut clock = WorkerClock::new(Clock::start());
        let until = clock.now().saturating_add(Duration::from_ms(1));
        // As while a process is stopped: this thread does not run.
        let other = std::thread::spawn(|| {
            let start = std::time::Instant::now();
            while start.elapsed() < std::time::Duration::from_millis(20) {}
        });
        other.join().unwrap();
        let late = clock.after_sleep(until).since(until);
        let missed = clock.stalled.total.saturating_add(clock.preempted.total);
        assert!(late > Duration::from_ms(15) && missed <= late, "{missed} of {late}");
        assert!(missed >= late.saturating_sub(Duration::from_ms(5)), "{missed} of {late}");
    }
}
