//! The rate stage of a fast pipe: the arithmetic of `serialiser.rs` with less memory and fewer
//! divisions, for many pipes.

use crate::serialiser::Serialiser;
use fastpath_units::{Bytes, Duration, Fraction, Rate, Time};

/// The rate and the overhead of a link. Pipes with equal parameters share it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct LineRate {
    /// The rate; `None` is unlimited.
    pub(crate) rate: Option<Rate>,
    /// Bytes on the wire per frame in addition to the frame.
    pub(crate) overhead: u32,
}

/// The transmission times of frames of a few lengths. Most links carry few lengths, and a division
/// costs more than the rest of the serialiser.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameTimes([(u32, Duration, Fraction); 4]);

impl FrameTimes {
    pub(crate) fn new(line_rate: LineRate) -> FrameTimes {
        let (span, left) = line_rate.time_of(0);
        FrameTimes([(0, span, left); 4])
    }

    #[inline]
    fn of(&mut self, line_rate: LineRate, len: u32) -> (Duration, Fraction) {
        // 64, 1500 and 1514 fall into different entries.
        let entry = &mut self.0[(len >> 4) as usize % 4];
        if entry.0 != len {
            let (span, left) = line_rate.time_of(len);
            *entry = (len, span, left);
        }
        (entry.1, entry.2)
    }
}

impl LineRate {
    fn time_of(self, len: u32) -> (Duration, Fraction) {
        let size = Bytes(u64::from(len) + u64::from(self.overhead));
        self.rate.map_or_else(Default::default, |rate| rate.transmission(size, Fraction::ZERO))
    }
}

/// The end of the newest transmission of a fast pipe.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FastSerialiser {
    /// The end of the newest transmission in whole picoseconds; `carried` is the fraction.
    end: Time,
    carried: Fraction,
}

impl FastSerialiser {
    /// Returns when the newest transmission ends or ended.
    #[inline]
    pub(crate) fn end(&self) -> Time {
        self.end
    }

    /// Sends a frame of `len` bytes that arrived at `arrival`, after all frames before it:
    /// d = max(d of the frame before, arrival) + (len + overhead)·8/rate.
    #[inline]
    pub(crate) fn send(&mut self, line_rate: LineRate, times: &mut FrameTimes, arrival: Time, len: u32) {
        // Idle only if the frame arrived after the exact end: at the same picosecond a fraction is
        // still being sent.
        if arrival > self.end {
            self.end = arrival;
            self.carried = Fraction::ZERO;
        }
        if let Some(rate) = line_rate.rate {
            let (span, carried) = rate.carry(times.of(line_rate, len), self.carried);
            // The end saturates at the end of time (213 days).
            self.end = self.end.saturating_add(span);
            self.carried = carried;
        }
    }

    /// Changes the rate at `now`: the bits still to be sent, including fractions of a bit, take
    /// their time at the new rate. Exact: nothing is rounded.
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
            // Without a rate nothing is left to send, and what is left is sent at once.
            (None, _) | (_, None) => (now, Fraction::ZERO),
        };
    }

    /// Returns the serialiser of a general pipe that continues from here.
    pub(crate) fn into_serialiser(self, line_rate: LineRate) -> Serialiser {
        Serialiser::resume(line_rate.rate, line_rate.overhead, self.end, self.carried)
    }
}
