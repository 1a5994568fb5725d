//! Congestion control: how the window grows, and what a loss leaves of it. In segments, as Linux
//! counts.

use crate::cubic::Cubic;
use crate::growth::Growth;
use fastpath_units::Time;

/// The least slow start threshold, segments (RFC 5681 §3.1).
pub(crate) const THRESHOLD_MIN: u64 = 2;

/// A congestion control by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CongestionControl {
    /// CUBIC with HyStart (RFC 9438; Ha and Rhee 2011), the default of Linux.
    #[default]
    Cubic,
    /// Reno (RFC 5681).
    Reno,
}

impl CongestionControl {
    /// All of them, by their names in Linux.
    pub const NAMES: [(&str, CongestionControl); 2] =
        [("cubic", CongestionControl::Cubic), ("reno", CongestionControl::Reno)];

    /// Returns the name that Linux gives it.
    pub fn name(self) -> &'static str {
        let known = CongestionControl::NAMES.iter().find(|(_, control)| *control == self);
        known.map_or("", |(name, _)| name)
    }
}

/// The congestion window and its threshold.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// Segments that may be in flight.
    pub size: u64,
    /// From there on it grows slowly.
    pub threshold: u64,
    /// Segments acknowledged since it last grew in congestion avoidance.
    counted: u64,
    law: GrowthLaw,
}

#[derive(Clone, Debug)]
enum GrowthLaw {
    Reno,
    Cubic(Cubic),
}

impl Window {
    /// A window of `size` segments in slow start.
    pub(crate) fn new(control: CongestionControl, size: u64) -> Window {
        let law = match control {
            CongestionControl::Reno => GrowthLaw::Reno,
            CongestionControl::Cubic => GrowthLaw::Cubic(Cubic::default()),
        };
        Window { size, threshold: u64::MAX, counted: 0, law }
    }

    /// Whether it is in slow start.
    pub(crate) fn is_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    /// Looks at a round trip, whether the window may grow or not.
    pub(crate) fn measure(&mut self, growth: Growth) {
        let (is_slow_start, size) = (self.is_slow_start(), self.size);
        if let (GrowthLaw::Cubic(cubic), Some(rtt)) = (&mut self.law, growth.rtt)
            && cubic.measure(growth, rtt, is_slow_start, size)
        {
            // HyStart: slow start ends where it is.
            self.threshold = size;
        }
    }

    /// Grows by an acknowledgement.
    pub(crate) fn grow(&mut self, growth: Growth) {
        let mut acked = growth.acked;
        if self.is_slow_start() {
            let grown = (self.size + acked).min(self.threshold);
            acked -= grown - self.size;
            self.size = grown;
        }
        if acked == 0 {
            return;
        }
        let each = match &mut self.law {
            GrowthLaw::Reno => self.size,
            GrowthLaw::Cubic(cubic) => cubic.segments_to_grow(growth.now, self.size, acked),
        };
        // What was counted for a longer wait does not count twice.
        if self.counted >= each {
            self.counted = 0;
            self.size += 1;
        }
        self.counted += acked;
        self.size += self.counted / each;
        self.counted %= each;
    }

    /// Returns the threshold that a loss or a mark sets, and notes that there was one.
    pub(crate) fn threshold_after_loss(&mut self) -> u64 {
        let threshold = match &mut self.law {
            GrowthLaw::Reno => self.size / 2,
            GrowthLaw::Cubic(cubic) => cubic.reduce(self.size),
        };
        threshold.max(THRESHOLD_MIN)
    }

    /// Forgets what a timeout made worthless.
    pub(crate) fn time_out(&mut self) {
        if let GrowthLaw::Cubic(cubic) = &mut self.law {
            cubic.reset();
        }
    }

    /// Notes that the sender was idle since `since`, and sends again now.
    pub(crate) fn resume(&mut self, since: Time, now: Time) {
        if let GrowthLaw::Cubic(cubic) = &mut self.law {
            cubic.resume(since, now);
        }
    }
}
