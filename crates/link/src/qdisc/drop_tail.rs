//! Drop-tail: first come, first served, until the queue is full.

use super::arrival::{Admission, AdmissionPolicy, ArrivalQueue, QueueView};
use super::limit::Limit;
use crate::packet::{DropReason, Packet};
use fastpath_units::{Rng, Time};
use std::fmt;

/// The policy: the limit is all its state.
#[derive(Debug)]
pub(crate) struct DropTail(pub(crate) Limit);

pub(crate) type DropTailQueue<P> = ArrivalQueue<DropTail, P>;

impl AdmissionPolicy for DropTail {
    type Spec = Limit;

    fn new(limit: &Limit) -> DropTail {
        DropTail(*limit)
    }

    fn spec(&self) -> Limit {
        self.0
    }

    fn reconfigure(&mut self, limit: &Limit) {
        self.0 = *limit;
    }

    #[inline]
    fn admit(&mut self, _: Time, packet: &Packet<()>, view: QueueView, _: &mut Rng) -> Admission {
        match self.0.has_room(packet.len, view.queued) {
            true => Admission::Take,
            false => Admission::Drop(DropReason::QueueFull),
        }
    }

    fn describe(limit: &Limit, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(limit, f)
    }
}
