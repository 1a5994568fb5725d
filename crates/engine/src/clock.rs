//! Real time as the pure crates take it: a [`Time`] since the engine started.

use fastpath_units::{Duration, Time};
use std::time::Instant;

/// The monotonic clock, counted from the engine's start. A copy shows the same time.
///
/// It reads `CLOCK_MONOTONIC` through the vDSO. Reading the time-stamp counter directly would halve
/// the cost, and would need calibration, drift correction and a stable counter. One reading per
/// burst does not justify that (`cargo bench -p fastpath-engine` shows the cost of a reading).
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// Starts a clock at [`Time::ZERO`].
    pub fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    /// Returns the time since the start, in steps of nanoseconds.
    #[inline]
    pub fn now(&self) -> Time {
        Time::ZERO.saturating_add(Duration::from(self.start.elapsed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_starts_at_zero_and_does_not_go_back() {
        let clock = Clock::start();
        let mut last = Time::ZERO;
        for _ in 0..1000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
        assert!(last < Time::ZERO + Duration::from_secs(60));
    }
}
