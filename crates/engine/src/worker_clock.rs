//! The worker's clock, which also detects interruptions of its thread. Two readings with little
//! work between them that are far apart mean that the thread did not run. Either other threads had
//! its core, which the kernel accounts for (preemption), or the whole host stalled (a hypervisor,
//! interrupts), which the kernel does not account for.

use crate::clock::Clock;
use crate::sys::thread::RunDelay;
use fastpath_units::{Duration, Time};

/// The longest time that the work between two readings takes: a burst of one port.
const WORK_MAX: Duration = Duration::from_ms(1);
/// As [`WORK_MAX`], while the worker only polls.
const POLL_MAX: Duration = Duration::from_us(100);
/// Interruptions kept to explain late frames.
const REMEMBERED: usize = 16;

/// Interruptions of one kind.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct InterruptionTotals {
    pub(crate) count: u64,
    pub(crate) total: Duration,
    pub(crate) longest: Duration,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct WorkerClock {
    clock: Clock,
    last: Time,
    gap_max: Duration,
    run_delay: RunDelay,
    /// The host stalled.
    pub(crate) stalled: InterruptionTotals,
    /// Other threads ran on this core.
    pub(crate) preempted: InterruptionTotals,
    recent: [(Time, Time); REMEMBERED],
    place: usize,
}

impl WorkerClock {
    /// Creates the clock of the calling thread.
    pub(crate) fn new(clock: Clock) -> WorkerClock {
        WorkerClock {
            clock,
            last: clock.now(),
            gap_max: WORK_MAX,
            run_delay: RunDelay::of_this_thread(),
            stalled: InterruptionTotals::default(),
            preempted: InterruptionTotals::default(),
            recent: [(Time::ZERO, Time::ZERO); REMEMBERED],
            place: 0,
        }
    }

    /// Returns the time. The thread must not have waited since the last reading.
    #[inline]
    pub(crate) fn now(&mut self) -> Time {
        let now = self.clock.now();
        if now.since(self.last) > self.gap_max {
            self.interrupted(now);
        }
        self.last = now;
        now
    }

    /// Returns the time after a wait.
    pub(crate) fn after_waiting(&mut self) -> Time {
        self.last = self.clock.now();
        // Time spent asleep is not an interruption. Waiting for a core after it is, and counts from
        // here on.
        self.last
    }

    /// Says whether the worker moves frames until the next call, or only polls.
    #[inline]
    pub(crate) fn expect(&mut self, is_moving: bool) {
        self.gap_max = if is_moving { WORK_MAX } else { POLL_MAX };
    }

    #[cold]
    fn interrupted(&mut self, now: Time) {
        let gap = now.since(self.last);
        let waited = self.run_delay.since_last();
        let kind = if waited.as_ps() >= gap.as_ps() / 2 { &mut self.preempted } else { &mut self.stalled };
        kind.count += 1;
        kind.total = kind.total.saturating_add(gap);
        kind.longest = kind.longest.max(gap);
        self.recent[self.place] = (self.last, now);
        self.place = (self.place + 1) % REMEMBERED;
    }

    /// Returns the part of the time from `due` to `released` that recent interruptions took.
    pub(crate) fn interrupted_within(&self, due: Time, released: Time) -> Duration {
        let overlap = |&(from, to): &(Time, Time)| to.min(released).since(from.max(due));
        self.recent.iter().map(overlap).fold(Duration::ZERO, Duration::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_frame_is_explained_by_the_interruption_it_fell_into() {
        let mut clock = WorkerClock::new(Clock::start());
        let at = |ms: u64| Time::ZERO + Duration::from_ms(ms);
        clock.recent[0] = (at(100), at(109));
        clock.recent[1] = (at(200), at(202));
        for (due, released, explained_ms) in
            [(99, 110, 9), (105, 109, 4), (105, 107, 2), (110, 120, 0), (90, 95, 0), (100, 205, 11)]
        {
            assert_eq!(
                clock.interrupted_within(at(due), at(released)),
                Duration::from_ms(explained_ms),
                "{due} … {released}"
            );
        }
    }

    #[test]
    fn readings_far_apart_are_counted_as_a_stall_or_a_preemption() {
        let mut clock = WorkerClock::new(Clock::start());
        clock.expect(false);
        assert!(clock.now() >= clock.last);
        // As if the last reading were long ago.
        clock.last = Time::ZERO;
        while clock.clock.now().since(Time::ZERO) <= POLL_MAX {}
        let before = clock.stalled.count + clock.preempted.count;
        clock.now();
        assert_eq!(clock.stalled.count + clock.preempted.count, before + 1);
        assert!(clock.stalled.longest.max(clock.preempted.longest) > POLL_MAX);
    }
}
