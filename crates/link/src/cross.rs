//! Cross traffic: packets that no host sends. They take part of a link's queue and rate and end at
//! the end of the wire.
//!
//! ```text
//!  pushed packets ──▶ loss ──┐
//!                            ├──▶ queue ──▶ wire ──▶ slots ──▶ pushed packets: delay, pop
//!  cross traffic ────────────┘                         └─────▶ cross traffic: counted, discarded
//! ```
//!
//! A packet of cross traffic is in the queue as any other: limits count it, and a discipline may
//! drop it or drop another for it. It is one flow of its own, best effort (DSCP 0) and not
//! ECN-capable. Laws of loss do not concern it, and what is behind the wire neither. At one instant
//! it arrives behind departures and before packets that are pushed.
//!
//! Its arrivals have a generator of their own. A discipline that decides at random draws for it as
//! for any packet, from the generator of the pipe.
//!
//! Nothing but the queue depends on it, so it is carried out only while others wait in the queue,
//! and at the next push otherwise: an idle pipe has no [next event](crate::Pipe::next_at). Catching
//! up takes time in proportion to the packets of cross traffic since then, below a microsecond for
//! each. A driver in real time [bounds](crate::Pipes::bound_cross) it: older packets are left out.

use crate::framing::Framing;
use fastpath_units::{Duration, Fraction, Rate, Rng, Time, math};
use std::fmt;
use std::num::NonZeroU32;

/// Packets that no host sends and that take part of a link's queue and rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CrossSpec {
    /// The mean rate at which they arrive, counted as the rate of the link is: with the overhead.
    pub rate: Rate,
    /// When they arrive.
    pub law: CrossLaw,
    /// Bytes of each frame, as [`Packet::len`](crate::Packet::len).
    pub packet: NonZeroU32,
}

/// When packets of cross traffic arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CrossLaw {
    /// Independent gaps with an exponential law (a Poisson process), which is stationary.
    #[default]
    Poisson,
    /// Equal gaps, the first packet at the start.
    Constant,
}

impl CrossSpec {
    /// The flow of all packets of cross traffic, for disciplines that separate flows.
    pub const FLOW: u32 = 0x4372_6f73;

    /// The largest number of packets of cross traffic in one queue. What arrives beyond it is
    /// dropped, because a queue without a limit of its own has no other bound.
    pub const QUEUED_MAX: u64 = 1 << 16;
}

impl fmt::Display for CrossSpec {
    /// `4Mbit poisson, 1500B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let law = match self.law {
            CrossLaw::Poisson => "poisson",
            CrossLaw::Constant => "constant",
        };
        write!(f, "{} {law}, {}B", self.rate, self.packet)
    }
}

/// Returns the generator of the cross traffic of a pipe with the generator `rng`.
pub(crate) fn generator(rng: &Rng) -> Rng {
    Rng::stream(rng.clone().next_u64(), u64::from_be_bytes(*b"\0\0\0cross"))
}

/// The arrivals of cross traffic at one pipe.
#[derive(Debug)]
pub(crate) struct CrossArrivals {
    /// `None` if it has ended; packets of it may still be in the queue.
    spec: Option<CrossSpec>,
    next: Time,
    /// The part of a picosecond by which the next packet is later than `next`.
    carried: Fraction,
    rng: Rng,
    /// Number of arrivals in a row that left the packets of others in the queue as they were.
    without_effect: u64,
}

impl CrossArrivals {
    /// A packet that waits while this many packets of cross traffic came and no other packet left
    /// the queue is served never, or not within a run.
    pub(crate) const STARVING: u64 = 1 << 22;

    /// Returns no arrivals, for a pipe with this generator, which stays as it is.
    pub(crate) fn none(rng_of_pipe: &Rng) -> CrossArrivals {
        let rng = generator(rng_of_pipe);
        CrossArrivals { spec: None, next: Time::ZERO, carried: Fraction::ZERO, rng, without_effect: 0 }
    }

    pub(crate) fn spec(&self) -> Option<CrossSpec> {
        self.spec
    }

    /// Begins with `spec` at `now`, or ends.
    pub(crate) fn set(&mut self, now: Time, spec: Option<CrossSpec>, framing: Framing) {
        (self.spec, self.next, self.carried) = (spec, now, Fraction::ZERO);
        if let Some(spec) = spec.filter(|spec| spec.law == CrossLaw::Poisson) {
            self.next = now.saturating_add(self.gap(spec, framing));
        }
    }

    /// Returns the next arrival; `None` past the end of time.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.spec.map(|_| self.next).filter(|at| *at < Time::MAX)
    }

    /// Notes that the packets of others in the queue have changed.
    #[inline]
    pub(crate) fn note_effect(&mut self) {
        self.without_effect = 0;
    }

    /// Notes an arrival that left the packets of others in the queue as they were.
    pub(crate) fn note_without_effect(&mut self) {
        self.without_effect += 1;
    }

    /// Returns true if more than the last `count` arrivals had no effect on others.
    pub(crate) fn was_without_effect(&self, count: u64) -> bool {
        self.without_effect > count
    }

    /// Leaves out the arrivals before about the last `count` that arrive by `now`, if there are
    /// any. Returns from when on it has arrivals then.
    pub(crate) fn keep_last(&mut self, now: Time, count: u64, framing: Framing) -> Option<Time> {
        let spec = self.spec?;
        let bits = u128::from(framing.on_wire(spec.packet.get()).bits()) * u128::from(count);
        let span = bits * 1_000_000_000_000 / u128::from(spec.rate.as_bps());
        let from = now.saturating_sub(Duration::from_ps(u64::try_from(span).unwrap_or(u64::MAX)));
        (self.next < from).then(|| {
            self.set(from, Some(spec), framing);
            from
        })
    }

    /// Takes the next arrival and returns the length of its frame. `framing` is that of the link.
    pub(crate) fn take(&mut self, framing: Framing) -> Option<u32> {
        let spec = self.spec?;
        // Frames without a byte on the wire must not stop time.
        let gap = self.gap(spec, framing).max(Duration::from_ps(1));
        self.next = self.next.saturating_add(gap);
        Some(spec.packet.get())
    }

    fn gap(&mut self, spec: CrossSpec, framing: Framing) -> Duration {
        let size = framing.on_wire(spec.packet.get());
        match spec.law {
            CrossLaw::Constant => {
                let (gap, carried) = spec.rate.transmission(size, self.carried);
                self.carried = carried;
                gap
            }
            CrossLaw::Poisson => {
                let mean_ps = size.bits() as f64 * 1e12 / spec.rate.as_bps() as f64;
                // 1 − u is in (0, 1].
                Duration::from_ps((-math::ln(1.0 - self.rng.unit_f64()) * mean_ps) as u64)
            }
        }
    }
}
