//! The rate stage: exact ends of transmission.
//!
//! The end of a transmission is kept as whole picoseconds and a [`Fraction`] of one. Callers see
//! the whole picoseconds (the floor). The fraction is carried into the next frame of a busy period
//! and dropped when the wire becomes idle, so that any number of frames takes exactly its bits over
//! the rate.

use crate::framing::Framing;
use crate::spec::PipeSpec;
use fastpath_units::{Bytes, Fraction, Rate, Time};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Serialiser {
    rate: Option<Rate>,
    overhead: u32,
    /// The end of the newest transmission in whole picoseconds; `carried` is the fraction.
    end: Time,
    carried: Fraction,
    paused: Option<Pause>,
}

/// A time in which the link sends nothing.
#[derive(Clone, Copy, Debug)]
struct Pause {
    /// When the pause began, or when the frame that waits for its end came onto the wire.
    since: Time,
    /// Whether a frame is on the wire. Then `end` is its end if the link ran from `since`.
    busy: bool,
    /// What that frame has to send if it came while the rate was unlimited: the rate may change
    /// during the pause.
    unsent: Bytes,
}

impl Serialiser {
    pub(crate) fn new(rate: Option<Rate>, overhead: u32) -> Serialiser {
        Serialiser { rate, overhead, end: Time::ZERO, carried: Fraction::ZERO, paused: None }
    }

    /// Returns a serialiser with its newest transmission ending at `end` plus `carried`.
    pub(crate) fn resume(rate: Option<Rate>, overhead: u32, end: Time, carried: Fraction) -> Serialiser {
        Serialiser { end, carried, ..Serialiser::new(rate, overhead) }
    }

    /// Returns the serialiser of an empty pipe.
    pub(crate) fn of(spec: &PipeSpec) -> Serialiser {
        let mut serialiser = Serialiser::new(spec.rate, spec.overhead);
        serialiser.set_paused(Time::ZERO, spec.paused);
        serialiser
    }

    pub(crate) fn rate(&self) -> Option<Rate> {
        self.rate
    }

    pub(crate) fn overhead(&self) -> u32 {
        self.overhead
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Returns when the newest transmission ends or ended; the end of time while it is paused.
    pub(crate) fn end(&self) -> Time {
        match self.paused {
            Some(Pause { busy: true, .. }) => Time::from_ps(u64::MAX),
            _ => self.end,
        }
    }

    /// Sends a frame of `len` bytes that arrived at `arrival`, after all frames before it:
    /// d = max(d of the frame before, arrival) + (len + overhead)·8/rate.
    pub(crate) fn send(&mut self, arrival: Time, len: u32) {
        self.send_bytes(arrival, Bytes(u64::from(len) + u64::from(self.overhead)));
    }

    /// As `send`, with another rule for the bytes on the wire, if there is one.
    pub(crate) fn transmit(&mut self, framing: Option<Framing>, arrival: Time, len: u32) {
        match framing {
            None => self.send(arrival, len),
            Some(framing) => self.send_bytes(arrival, framing.on_wire(len)),
        }
    }

    /// As `send`, with the number of bytes on the wire.
    pub(crate) fn send_bytes(&mut self, arrival: Time, size: Bytes) {
        // Idle only if the frame arrived after the exact end: at the same picosecond a fraction is
        // still being sent.
        if arrival > self.end {
            self.end = arrival;
            self.carried = Fraction::ZERO;
        }
        if let Some(rate) = self.rate {
            let (span, carried) = rate.transmission(size, self.carried);
            // The end saturates at the end of time (213 days).
            self.end = self.end.saturating_add(span);
            self.carried = carried;
        }
        if let Some(pause) = &mut self.paused {
            let unsent = if self.rate.is_none() { size } else { Bytes(0) };
            *pause = Pause { since: arrival.max(pause.since), busy: true, unsent };
        }
    }

    /// Pauses or resumes the link at `now`. The frame on the wire continues where it stopped.
    pub(crate) fn set_paused(&mut self, now: Time, paused: bool) {
        match (self.paused, paused) {
            (None, true) => self.paused = Some(Pause { since: now, busy: self.end > now, unsent: Bytes(0) }),
            (Some(pause), false) => {
                self.paused = None;
                if pause.busy {
                    self.end = self.end.saturating_add(now.since(pause.since));
                }
            }
            _ => {}
        }
    }

    /// Aborts the transmission at `now`.
    pub(crate) fn cut(&mut self, now: Time) {
        if self.end >= now {
            (self.end, self.carried) = (now, Fraction::ZERO);
        }
        if let Some(pause) = &mut self.paused {
            pause.busy = false;
        }
    }

    /// Sets the overhead of frames sent from now on.
    pub(crate) fn set_overhead(&mut self, overhead: u32) {
        self.overhead = overhead;
    }

    /// Changes the rate at `now`: the bits still to be sent, including fractions of a bit, take
    /// their time at the new rate. Exact: nothing is rounded.
    pub(crate) fn set_rate(&mut self, now: Time, rate: Option<Rate>) {
        let old = std::mem::replace(&mut self.rate, rate);
        // During a pause no time passes for the frame on the wire.
        let (now, unsent) = match &mut self.paused {
            Some(Pause { since, busy: true, unsent }) => (*since, std::mem::take(unsent)),
            _ => (now, Bytes(0)),
        };
        if self.end < now {
            self.carried = Fraction::ZERO;
            return;
        }
        (self.end, self.carried) = match (old, rate) {
            (Some(old), Some(new)) => {
                let (span, carried) = old.retimed(self.end.since(now), self.carried, new);
                (now.saturating_add(span), carried)
            }
            (None, Some(new)) if unsent > Bytes(0) => {
                let (span, carried) = new.transmission(unsent, Fraction::ZERO);
                (now.saturating_add(span), carried)
            }
            // Without a rate nothing is left to send, and what is left is sent at once.
            (None, _) | (_, None) => (now, Fraction::ZERO),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_units::Duration;

    fn us(us: u64) -> Time {
        Time::ZERO + Duration::from_us(us)
    }

    #[test]
    fn a_pause_delays_what_is_left_and_a_rate_set_during_it_applies_after_it() {
        // 1000 bytes at 8 Mbit/s take 1000 µs; 400 are sent before the pause of 5000.
        let mut wire = Serialiser::new(Rate::from_bps(8_000_000), 0);
        wire.send(us(0), 1000);
        wire.set_paused(us(400), true);
        assert_eq!(wire.end().as_ps(), u64::MAX);
        let mut faster = wire;
        wire.set_paused(us(5400), false);
        assert_eq!(wire.end(), us(6000));
        faster.set_rate(us(3000), Rate::from_bps(16_000_000));
        faster.set_paused(us(5400), false);
        assert_eq!(faster.end(), us(5700));
    }

    #[test]
    fn a_frame_that_comes_during_a_pause_starts_at_its_end() {
        for rate in [Rate::from_bps(8_000_000), None] {
            let mut wire = Serialiser::new(rate, 0);
            wire.set_paused(us(100), true);
            wire.send(us(200), 1000);
            assert!(wire.end() > us(1_000_000));
            wire.set_paused(us(700), false);
            assert_eq!(wire.end(), us(700) + rate.map_or(Duration::ZERO, |_| Duration::from_us(1000)));
        }
    }
}
