//! The round trip and the retransmission timeout (RFC 6298), with the bounds of Linux.

use fastpath_units::Duration;

/// The least deviation that a timeout allows for, as in Linux (RFC 6298 has 1 s for the sum).
const DEVIATION_MIN: Duration = Duration::from_ms(200);
/// The timeout before the first measurement (RFC 6298 §2.1).
const INITIAL: Duration = Duration::from_secs(1);
/// The longest timeout.
const LONGEST: Duration = Duration::from_secs(120);

/// See the head of this file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTrip {
    smoothed: Option<Duration>,
    deviation: Duration,
    min: Option<Duration>,
    /// Timeouts in a row.
    backoff: u32,
}

impl Default for RoundTrip {
    fn default() -> RoundTrip {
        RoundTrip { smoothed: None, deviation: Duration::ZERO, min: None, backoff: 0 }
    }
}

impl RoundTrip {
    /// Takes a measurement (RFC 6298 §2.2, §2.3: α = 1/8, β = 1/4).
    pub(crate) fn measure(&mut self, rtt: Duration) {
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
        self.backoff = 0;
        let ps = rtt.as_ps();
        let (smoothed, deviation) = match self.smoothed {
            None => (ps, ps / 2),
            Some(smoothed) => {
                let smoothed = smoothed.as_ps();
                let off = smoothed.abs_diff(ps);
                (smoothed - smoothed / 8 + ps / 8, self.deviation.as_ps() / 4 * 3 + off / 4)
            }
        };
        self.smoothed = Some(Duration::from_ps(smoothed));
        self.deviation = Duration::from_ps(deviation);
    }

    /// Returns the smoothed round trip.
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// Returns the shortest round trip.
    pub(crate) fn min(&self) -> Option<Duration> {
        self.min
    }

    /// Returns the timeout now.
    pub(crate) fn timeout(&self) -> Duration {
        let once = match self.smoothed {
            None => INITIAL,
            Some(smoothed) => {
                let four = Duration::from_ps(self.deviation.as_ps().saturating_mul(4));
                smoothed.saturating_add(four.max(DEVIATION_MIN))
            }
        };
        let ps = once.as_ps().saturating_mul(1 << self.backoff.min(16));
        Duration::from_ps(ps).min(LONGEST)
    }

    /// Returns the number of timeouts since a round trip was measured.
    pub(crate) fn timeouts(&self) -> u32 {
        self.backoff
    }

    /// Doubles the timeout (RFC 6298 §5.5), until a round trip is measured.
    pub(crate) fn back_off(&mut self) {
        self.backoff += 1;
    }
}
