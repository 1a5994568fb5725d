//! Disciplines that decide at arrival and serve in order of arrival: an admission policy in front
//! of a FIFO. A fast pipe runs a policy without the FIFO, on its own ring.

use super::context::{QueueContext, Refused, Served};
use super::discipline::Discipline;
use super::fifo::Fifo;
use crate::counters::Volume;
use crate::packet::{DropReason, Held, Packet};
use fastpath_units::{Rate, Rng, Time};
use std::fmt;

/// The queue as an arriving packet finds it. The packet on the wire counts as queued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueView {
    pub(crate) queued: Volume,
    /// When the queue became empty; `None` while it is not empty.
    pub(crate) idle_since: Option<Time>,
    /// The rate at which it drains.
    pub(crate) rate: Option<Rate>,
}

/// The decision about an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// The packet joins the queue.
    Take,
    /// The packet joins the queue with ECN CE set.
    Mark,
    /// The packet is dropped.
    Drop(DropReason),
}

/// Decides which arriving packets join a FIFO. Methods without documentation are those of
/// [`Discipline`].
pub(crate) trait AdmissionPolicy {
    type Spec;

    fn new(spec: &Self::Spec) -> Self;

    fn spec(&self) -> Self::Spec;

    /// Applies new parameters and keeps the state.
    fn reconfigure(&mut self, spec: &Self::Spec);

    /// Decides about `packet`, which arrives at `now`.
    fn admit(&mut self, now: Time, packet: &Packet<()>, view: QueueView, rng: &mut Rng) -> Admission;

    fn reads_headers(_: &Self::Spec) -> bool {
        false
    }

    fn describe(spec: &Self::Spec, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// An admission policy and the packets it admitted.
#[derive(Debug)]
pub(crate) struct ArrivalQueue<A, P> {
    policy: A,
    fifo: Fifo<P>,
}

impl<A, P> ArrivalQueue<A, P> {
    /// Creates an empty queue with a policy that may have state from a fast pipe.
    pub(crate) fn with(policy: A) -> ArrivalQueue<A, P> {
        ArrivalQueue { policy, fifo: Fifo::default() }
    }
}

impl<P, A: AdmissionPolicy> Discipline<P> for ArrivalQueue<A, P> {
    type Spec = A::Spec;

    fn new(spec: &A::Spec) -> ArrivalQueue<A, P> {
        ArrivalQueue::with(A::new(spec))
    }

    fn spec(&self) -> A::Spec {
        self.policy.spec()
    }

    fn reconfigure(&mut self, _: Time, spec: &A::Spec) -> bool {
        self.policy.reconfigure(spec);
        true
    }

    fn backlog(&self) -> Volume {
        self.fifo.backlog()
    }

    fn enqueue(&mut self, mut packet: Held<P>, context: &mut QueueContext<'_, P>) -> Result<(), Refused<P>> {
        let queued = self.fifo.backlog() + context.on_wire;
        let idle_since = (queued.packets == 0).then_some(context.idle_since);
        let view = QueueView { queued, idle_since, rate: context.rate };
        match self.policy.admit(context.now, &packet.header(), view, context.rng) {
            Admission::Take => {}
            Admission::Mark => context.mark(&mut packet),
            Admission::Drop(reason) => return Err((reason, packet)),
        }
        self.fifo.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, _: &mut QueueContext<'_, P>) -> Served<P> {
        self.fifo.pop().into()
    }

    fn push_unchecked(&mut self, packet: Held<P>) {
        self.fifo.push(packet);
    }

    fn pop_unmanaged(&mut self) -> Option<Held<P>> {
        self.fifo.pop()
    }

    fn reads_headers(spec: &A::Spec) -> bool {
        A::reads_headers(spec)
    }

    fn describe(spec: &A::Spec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        A::describe(spec, f)
    }
}
