//! How long before a deadline a sleep should end, learned from how late this machine's sleeps end.

use fastpath_units::Duration;

/// Time kept free before a deadline, spent looking at the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slack(Duration);

impl Default for Slack {
    fn default() -> Slack {
        Slack(Duration::from_us(250))
    }
}

impl Slack {
    const LEAST: Duration = Duration::from_us(50);
    const MOST: Duration = Duration::from_ms(1);

    pub(crate) fn get(self) -> Duration {
        self.0
    }

    /// Follows the late end of sleeps: half-way up to a later one, a 64th down to an earlier one,
    /// which settles where about one sleep in 33 is later. A pause of the whole machine counts as
    /// [`Slack::MOST`].
    pub(crate) fn learn(&mut self, late: Duration) {
        let late = late.min(Slack::MOST);
        self.0 = if late > self.0 {
            self.0 + Duration::from_ps((late - self.0).as_ps() / 2)
        } else {
            self.0 - Duration::from_ps((self.0 - late).as_ps() / 64)
        };
        self.0 = self.0.max(Slack::LEAST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_follows_late_wake_ups_quickly_and_early_ones_slowly() {
        let mut slack = Slack::default();
        for _ in 0..20 {
            slack.learn(Duration::from_us(400));
        }
        assert!(slack.get() > Duration::from_us(399), "{:?}", slack.get());
        slack.learn(Duration::from_us(80));
        assert!(slack.get() > Duration::from_us(390), "{:?}", slack.get());
        for _ in 0..1000 {
            slack.learn(Duration::from_us(1));
        }
        assert_eq!(slack.get(), Slack::LEAST);
        for _ in 0..100 {
            slack.learn(Duration::from_secs(2));
        }
        assert!(slack.get() <= Slack::MOST);
    }
}
