//! How late frames were released, for each edge. Every frame is measured.
//!
//! A frame is released when its port has accepted it. A port accepts frames one by one. Of `n`
//! frames that a call accepted, the `i`-th (from 0) counts as released after `i/n` of the time that
//! the call took.

use crate::worker_clock::WorkerClock;
use fastpath_spec::Late;
use fastpath_units::{Distribution, Duration, Time};

/// The tolerance where neither the spec nor the command line gives one.
pub(crate) const TOLERANCE: Duration = Duration::from_ms(1);
/// The upper bounds of the counts in `Lateness::within`, in nanoseconds.
pub const BOUNDS_NS: [u64; 14] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    100_000_000,
];
/// Up to this number of edges, lateness is kept to 1 %, at 14 KiB each; beyond it to 10 %, at 2
/// KiB.
const EXACT_EDGES: usize = 1024;

/// How late frames may be, and what happens to later ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LatenessPolicy {
    pub(crate) tolerance: Duration,
    /// Whether the spec or the command line gives the tolerance.
    pub(crate) is_stated: bool,
    pub(crate) late: Late,
}

/// The releases of one edge.
#[derive(Clone, Debug)]
pub(crate) struct Releases {
    /// From when a frame was due to when it was released.
    lateness: Distribution<u32>,
    /// The largest lateness since [`Releases::take_max`].
    recent_max: Duration,
    /// Frames released later than half of the tolerance.
    pub(crate) near: u64,
    /// Frames later than tolerated, whether dropped or not.
    pub(crate) late: u64,
    /// Late frames that would have been in time without an interruption of the worker.
    pub(crate) late_interrupted: u64,
}

impl Releases {
    /// Returns counters for a network of `edges` edges.
    pub(crate) fn new(edges: usize) -> Releases {
        let digits = if edges <= EXACT_EDGES { 2 } else { 1 };
        let lateness = Distribution::bounded(Duration::from_secs(10), digits);
        Releases { lateness, recent_max: Duration::ZERO, near: 0, late: 0, late_interrupted: 0 }
    }

    /// Records that a frame due at `due` was released at `released`.
    #[inline]
    pub(crate) fn record(&mut self, due: Time, released: Time, policy: &LatenessPolicy, clock: &WorkerClock) {
        let lateness = released.since(due);
        self.lateness.record(lateness);
        self.recent_max = self.recent_max.max(lateness);
        self.near += u64::from(lateness.as_ps() > policy.tolerance.as_ps() / 2);
        if lateness > policy.tolerance {
            self.count_late(due, released, policy, clock);
        }
    }

    /// Records that `count` frames were released when they were due.
    pub(crate) fn record_in_time(&mut self, count: u32) {
        self.lateness.record_many(Duration::ZERO, count);
    }

    /// Counts a frame that was released, or dropped, later than tolerated.
    #[cold]
    pub(crate) fn count_late(
        &mut self,
        due: Time,
        released: Time,
        policy: &LatenessPolicy,
        clock: &WorkerClock,
    ) {
        self.late += 1;
        let own = released.since(due).saturating_sub(clock.interrupted_within(due, released));
        self.late_interrupted += u64::from(own <= policy.tolerance);
    }

    /// Returns the largest lateness since the last call.
    pub(crate) fn take_max(&mut self) -> Duration {
        std::mem::take(&mut self.recent_max)
    }

    /// Returns the distribution of the lateness of all frames.
    pub(crate) fn lateness(&self) -> &Distribution<u32> {
        &self.lateness
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    const POLICY: LatenessPolicy =
        LatenessPolicy { tolerance: Duration::from_ms(1), is_stated: true, late: Late::Deliver };

    fn at(us: u64) -> Time {
        Time::ZERO + Duration::from_us(us)
    }

    #[test]
    fn what_is_later_than_tolerated_is_counted_and_the_rest_is_not() {
        let (mut releases, clock) = (Releases::new(2), WorkerClock::new(Clock::start()));
        for us in [0, 1, 999, 1000, 1001, 5000] {
            releases.record(at(100), at(100 + us), &POLICY, &clock);
        }
        let lateness = releases.lateness();
        assert_eq!((lateness.count(), releases.late, releases.late_interrupted), (6, 2, 0));
        assert_eq!(lateness.sum_ps(), 8_001_000_000);
        assert_eq!(lateness.max(), Some(Duration::from_us(5000)));
    }

    #[test]
    fn counts_by_bound_never_fall_and_end_with_all_frames() {
        for edges in [1, EXACT_EDGES + 1] {
            let (mut releases, clock) = (Releases::new(edges), WorkerClock::new(Clock::start()));
            for us in [0, 1, 3, 4, 15, 15, 700, 3000, 50_000] {
                releases.record(at(0), at(us), &POLICY, &clock);
            }
            let counts = releases.lateness().within(BOUNDS_NS.map(Duration::from_ns));
            assert!(counts.is_sorted() && counts[counts.len() - 1] == 9, "{counts:?}");
            assert_eq!((counts[3], counts[4], counts[9], counts[11]), (4, 6, 7, 8), "{counts:?}");
        }
    }
}
