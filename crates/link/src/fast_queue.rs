//! The admission policy of a fast pipe: drop-tail or RED. The packets wait in the pipe's own list.

use crate::counters::Volume;
use crate::packet::Packet;
use crate::qdisc::Limit;
use crate::qdisc::arrival::{Admission, AdmissionPolicy, ArrivalQueue, QueueView};
use crate::qdisc::drop_tail::DropTail;
use crate::qdisc::red::{Red, RedSpec};
use crate::qdisc::{Queue, QueueSpec};
use fastpath_units::{Rng, Time};

/// A policy that a fast pipe can run, with its state.
#[derive(Debug)]
pub(crate) enum FastQueue {
    DropTail(DropTail),
    Red(Box<Red>),
}

impl FastQueue {
    /// Returns true if a fast pipe can run this discipline. Its byte counter has 32 bits.
    pub(crate) fn supports(spec: &QueueSpec) -> bool {
        match spec {
            QueueSpec::DropTail(limit) | QueueSpec::Red(RedSpec { limit, .. }) => match limit {
                Limit::Packets(_) => true,
                Limit::Bytes(bytes) => bytes.0 <= u64::from(u32::MAX),
            },
            _ => false,
        }
    }

    /// Panics for a discipline that is not supported.
    pub(crate) fn new(spec: &QueueSpec) -> FastQueue {
        match spec {
            QueueSpec::DropTail(limit) => FastQueue::DropTail(DropTail::new(limit)),
            QueueSpec::Red(spec) => FastQueue::Red(Box::new(Red::new(spec))),
            other => panic!("a fast pipe cannot run {other}"),
        }
    }

    pub(crate) fn spec(&self) -> QueueSpec {
        match self {
            FastQueue::DropTail(policy) => QueueSpec::DropTail(policy.spec()),
            FastQueue::Red(red) => QueueSpec::Red(red.spec()),
        }
    }

    pub(crate) fn reads_headers(&self) -> bool {
        match self {
            FastQueue::DropTail(_) => false,
            FastQueue::Red(red) => Red::reads_headers(&red.spec()),
        }
    }

    /// Applies new parameters. A RED queue that stays RED keeps its average.
    pub(crate) fn reconfigure(&mut self, spec: &QueueSpec) {
        match (self, spec) {
            (FastQueue::Red(red), QueueSpec::Red(spec)) => red.reconfigure(spec),
            (queue, spec) => *queue = FastQueue::new(spec),
        }
    }

    /// Returns true if the queue takes a packet of `len` bytes whatever else is known. This decides
    /// for most packets.
    #[inline]
    pub(crate) fn takes(&self, len: u32, queued: Volume) -> bool {
        matches!(self, FastQueue::DropTail(policy) if policy.0.has_room(len, queued))
    }

    /// Decides about `packet`, which arrives at `now`.
    #[inline(always)]
    pub(crate) fn admit(
        &mut self,
        now: Time,
        packet: &Packet<()>,
        view: QueueView,
        rng: &mut Rng,
    ) -> Admission {
        match self {
            FastQueue::DropTail(policy) => policy.admit(now, packet, view, rng),
            FastQueue::Red(red) => red.admit(now, packet, view, rng),
        }
    }

    /// Returns an empty queue of a general pipe that continues with the same state.
    pub(crate) fn into_queue<P>(self) -> Queue<P> {
        match self {
            FastQueue::DropTail(policy) => Queue::DropTail(ArrivalQueue::with(policy)),
            FastQueue::Red(red) => Queue::Red(ArrivalQueue::with(*red).into()),
        }
    }
}
