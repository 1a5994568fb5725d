//! The rate stage: when the frame on the wire has left it, exactly.
//!
//! The end of a transmission is kept as whole picoseconds and a [`Fraction`] of one; everybody else sees
//! the whole picoseconds (the floor). The fraction is carried into the next frame of a busy period and
//! forgotten when the wire falls idle, so any number of frames takes exactly its bits over the rate.

use fastpath_units::{Bytes, Fraction, Rate, Time};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Serialiser {
    rate: Option<Rate>,
    overhead: u32,
    /// The end of the newest transmission, with the fraction beyond it.
    end: Time,
    carried: Fraction,
}

impl Serialiser {
    pub(crate) fn new(rate: Option<Rate>, overhead: u32) -> Serialiser {
        Serialiser { rate, overhead, end: Time::ZERO, carried: Fraction::ZERO }
    }

    pub(crate) fn rate(&self) -> Option<Rate> {
        self.rate
    }

    pub(crate) fn overhead(&self) -> u32 {
        self.overhead
    }

    /// When the newest transmission ends or ended.
    pub(crate) fn end(&self) -> Time {
        self.end
    }

    /// Sends a frame of `len` bytes that arrived at `arrival`, after all those before it:
    /// d = max(d of the frame before, arrival) + (len + overhead)·8/rate.
    pub(crate) fn send(&mut self, arrival: Time, len: u32) {
        self.send_bytes(arrival, Bytes(u64::from(len) + u64::from(self.overhead)));
    }

    /// The same for so many bytes on the wire.
    pub(crate) fn send_bytes(&mut self, arrival: Time, size: Bytes) {
        // Idle only if it arrived after the exact end: at the same picosecond a fraction is still being sent.
        if arrival > self.end {
            self.end = arrival;
            self.carried = Fraction::ZERO;
        }
        if let Some(rate) = self.rate {
            let (span, carried) = rate.transmission(size, self.carried);
            // What would end past the end of time (213 days) is held there.
            self.end = self.end.saturating_add(span);
            self.carried = carried;
        }
    }

    /// What is being sent at `now` is cut off.
    pub(crate) fn cut(&mut self, now: Time) {
        if self.end >= now {
            (self.end, self.carried) = (now, Fraction::ZERO);
        }
    }

    /// Frames sent from now on have this overhead.
    pub(crate) fn set_overhead(&mut self, overhead: u32) {
        self.overhead = overhead;
    }

    /// From `now` on the wire runs at `rate`: the bits still to be sent, fractions of a bit included, take
    /// their time at the new rate. Exact, nothing is rounded.
    pub(crate) fn set_rate(&mut self, now: Time, rate: Option<Rate>) {
        let old = std::mem::replace(&mut self.rate, rate);
        if self.end < now {
            self.carried = Fraction::ZERO;
            return;
        }
        (self.end, self.carried) = match (old, rate) {
            (Some(old), Some(new)) => {
                let (span, carried) = old.retimed(self.end.since(now), self.carried, new);
                (now.saturating_add(span), carried)
            }
            // An unlimited wire has nothing left to send, and sends what is left at once.
            (None, _) | (_, None) => (now, Fraction::ZERO),
        };
    }
}
