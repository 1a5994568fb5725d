//! Drop-tail by time: a packet joins the queue unless the link needs longer than a limit to send
//! what is before it, at the rate of the moment. This is a byte limit that follows a changing rate.
//! [`SojournSpec`](super::SojournSpec) instead drops packets that have waited too long.

use super::arrival::{Admission, AdmissionPolicy, ArrivalQueue, QueueView};
use crate::packet::{DropReason, Packet};
use fastpath_units::{Duration, Rng, Time};
use std::fmt;

const PS_PER_S: u128 = 1_000_000_000_000;

/// The policy: the longest time is all its state.
#[derive(Debug)]
pub(crate) struct DropTailTime(Duration);

pub(crate) type DropTailTimeQueue<P> = ArrivalQueue<DropTailTime, P>;

impl AdmissionPolicy for DropTailTime {
    type Spec = Duration;

    fn new(longest: &Duration) -> DropTailTime {
        DropTailTime(*longest)
    }

    fn spec(&self) -> Duration {
        self.0
    }

    fn reconfigure(&mut self, longest: &Duration) {
        self.0 = *longest;
    }

    /// Counts frames without framing overhead, and the packet on the wire as a whole. Without a
    /// rate every packet is admitted.
    fn admit(&mut self, _: Time, _: &Packet<()>, view: QueueView, _: &mut Rng) -> Admission {
        let Some(rate) = view.rate else { return Admission::Take };
        let needed = u128::from(view.queued.bytes) * 8 * PS_PER_S;
        match needed <= u128::from(self.0.as_ps()) * u128::from(rate.as_bps()) {
            true => Admission::Take,
            false => Admission::Drop(DropReason::QueueFull),
        }
    }

    fn describe(longest: &Duration, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "drop-tail {longest}")
    }
}
