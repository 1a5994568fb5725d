//! The rate stage of a plain pipe: the arithmetic of `serialiser.rs`, cut to the memory and the
//! time that a packet among a million pipes has.

use crate::serialiser::Serialiser;
use fastpath_units::{Bytes, Duration, Fraction, Rate, Time};

/// What a wire is asked for. Pipes that are alike share it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Pace {
    /// Bits per second; `None` is unlimited.
    pub(crate) rate: Option<Rate>,
    /// Bytes on the wire per frame beyond its own.
    pub(crate) overhead: u32,
}

/// The time a frame takes alone, remembered for a few lengths: most links carry few, and a division
/// costs more than all else the wire does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times([(u32, Duration, Fraction); 4]);

impl Times {
    pub(crate) fn new(pace: Pace) -> Times {
        let (span, left) = pace.time_of(0);
        Times([(0, span, left); 4])
    }

    #[inline]
    fn of(&mut self, pace: Pace, len: u32) -> (Duration, Fraction) {
        // 64, 1500 and 1514 differ here.
        let place = &mut self.0[(len >> 4) as usize % 4];
        if place.0 != len {
            let (span, left) = pace.time_of(len);
            *place = (len, span, left);
        }
        (place.1, place.2)
    }
}

impl Pace {
    fn time_of(self, len: u32) -> (Duration, Fraction) {
        let size = Bytes(u64::from(len) + u64::from(self.overhead));
        self.rate.map_or_else(Default::default, |rate| rate.transmission(size, Fraction::ZERO))
    }
}

/// How far a wire has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wire {
    /// The end of the newest transmission, with the fraction beyond it.
    end: Time,
    carried: Fraction,
}

impl Wire {
    /// When the newest transmission ends or ended.
    #[inline]
    pub(crate) fn end(&self) -> Time {
        self.end
    }

    /// Sends a frame of `len` bytes that arrived at `arrival`, after all those before it:
    /// d = max(d of the frame before, arrival) + (len + overhead)·8/rate.
    #[inline]
    pub(crate) fn send(&mut self, pace: Pace, times: &mut Times, arrival: Time, len: u32) {
        // Idle only if it arrived after the exact end: at the same picosecond a fraction is still
        // being sent.
        if arrival > self.end {
            self.end = arrival;
            self.carried = Fraction::ZERO;
        }
        if let Some(rate) = pace.rate {
            let (span, carried) = rate.carry(times.of(pace, len), self.carried);
            // What would end past the end of time (213 days) is held there.
            self.end = self.end.saturating_add(span);
            self.carried = carried;
        }
    }

    /// From `now` on the wire runs at the rate `new`: the bits still to be sent, fractions of a bit
    /// included, take their time at the new rate. Exact, nothing is rounded.
    pub(crate) fn change_rate(&mut self, now: Time, old: Option<Rate>, new: Option<Rate>) {
        if self.end < now {
            self.carried = Fraction::ZERO;
            return;
        }
        (self.end, self.carried) = match (old, new) {
            (Some(old), Some(new)) => {
                let (span, carried) = old.retimed(self.end.since(now), self.carried, new);
                (now.saturating_add(span), carried)
            }
            // An unlimited wire has nothing left to send, and sends what is left at once.
            (None, _) | (_, None) => (now, Fraction::ZERO),
        };
    }

    /// As it goes on in a rich pipe.
    pub(crate) fn into_serialiser(self, pace: Pace) -> Serialiser {
        Serialiser::resume((pace.rate, pace.overhead), (self.end, self.carried))
    }
}
