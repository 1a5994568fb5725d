//! How long before a deadline a sleep must end, learned from how late sleeps end on this machine.

use fastpath_units::Duration;

/// Time kept free before a deadline, spent spinning on the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SleepMargin(Duration);

impl Default for SleepMargin {
    fn default() -> SleepMargin {
        SleepMargin(Duration::from_us(250))
    }
}

impl SleepMargin {
    const MIN: Duration = Duration::from_us(50);
    const MAX: Duration = Duration::from_ms(1);

    pub(crate) fn get(self) -> Duration {
        self.0
    }

    /// Updates the margin with the lateness of a sleep. A later sleep raises the margin by half of
    /// the difference, an earlier sleep lowers it by a 64th. About one sleep in 33 ends later than
    /// the resulting margin. A host stall counts as [`SleepMargin::MAX`].
    pub(crate) fn learn(&mut self, late: Duration) {
        let late = late.min(SleepMargin::MAX);
        self.0 = if late > self.0 {
            self.0 + Duration::from_ps((late - self.0).as_ps() / 2)
        } else {
            self.0 - Duration::from_ps((self.0 - late).as_ps() / 64)
        };
        self.0 = self.0.max(SleepMargin::MIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_follows_late_wake_ups_quickly_and_early_ones_slowly() {
        let mut margin = SleepMargin::default();
        for _ in 0..20 {
            margin.learn(Duration::from_us(400));
        }
        assert!(margin.get() > Duration::from_us(399), "{:?}", margin.get());
        margin.learn(Duration::from_us(80));
        assert!(margin.get() > Duration::from_us(390), "{:?}", margin.get());
        for _ in 0..1000 {
            margin.learn(Duration::from_us(1));
        }
        assert_eq!(margin.get(), SleepMargin::MIN);
        for _ in 0..100 {
            margin.learn(Duration::from_secs(2));
        }
        assert!(margin.get() <= SleepMargin::MAX);
    }
}
