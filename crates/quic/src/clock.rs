//! Virtual time as the instants in which quinn-proto counts.

use fastpath_units::Time;
use std::time::{Duration, Instant};

/// Instants before time 0 exist too: quinn-proto may subtract.
const BEFORE: Duration = Duration::from_secs(24 * 3600);

/// Maps times to instants, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VirtualClock {
    zero: Instant,
}

impl VirtualClock {
    /// A clock of a run. No result depends on the instant.
    pub(crate) fn new(anchor: Instant) -> VirtualClock {
        VirtualClock { zero: anchor + BEFORE }
    }

    /// Returns the instant of a time, rounded up: what is measured from it is never due early.
    pub(crate) fn instant(self, now: Time) -> Instant {
        self.zero + Duration::from_nanos(now.as_ps().div_ceil(1000))
    }

    /// Returns the time of an instant; [`Time::MAX`] if it is later than any.
    pub(crate) fn time(self, instant: Instant) -> Time {
        let ns = instant.saturating_duration_since(self.zero).as_nanos();
        Time::from_ps(u64::try_from(ns * 1000).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "instants have no other beginning")]
    fn times_are_rounded_up_and_whole_nanoseconds_return() {
        let clock = VirtualClock::new(Instant::now());
        for (ps, rounded) in
            [(0, 0), (1, 1000), (1000, 1000), (1001, 2000), (86_400_000_000_000_000, 86_400_000_000_000_000)]
        {
            assert_eq!(clock.time(clock.instant(Time::from_ps(ps))), Time::from_ps(rounded));
        }
        assert_eq!(clock.time(clock.instant(Time::MAX)), Time::MAX);
    }
}
