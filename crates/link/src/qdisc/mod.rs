//! Queue disciplines: who may wait, who is marked, who goes first. One discipline, one file.
//!
//! Disciplines here decide at arrival ([`Qdisc::admit`]) and serve in order of arrival; the packets
//! themselves wait in the pipe's ring.

mod drop_tail;
mod red;

use crate::counters::Tally;
use crate::packet::{DropReason, Packet};
use fastpath_units::{Rate, Rng, Time};

pub use drop_tail::Limit;
pub use red::RedSpec;

/// Which queue discipline, with its parameters.
#[derive(Clone, PartialEq, Debug)]
pub enum QueueSpec {
    /// Takes packets until the limit is reached, then drops the newcomer.
    DropTail(Limit),
    /// Random early detection.
    Red(RedSpec),
}

impl Default for QueueSpec {
    /// A drop-tail queue that never fills.
    fn default() -> QueueSpec {
        QueueSpec::DropTail(Limit::Packets(u32::MAX))
    }
}

/// The queue as an arriving packet finds it. The packet being serialised counts as queued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backlog {
    pub(crate) queued: Tally,
    /// When the queue became empty; `None` while it is not.
    pub(crate) idle_since: Option<Time>,
    /// The rate it drains at.
    pub(crate) rate: Option<Rate>,
}

/// What a discipline decides about an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// It joins the queue.
    Take,
    /// It joins the queue with ECN CE set.
    Mark,
    /// It does not.
    Drop(DropReason),
}

/// A discipline at work.
#[derive(Debug)]
pub(crate) enum Qdisc {
    DropTail(Limit),
    Red(Box<red::Red>),
}

impl Qdisc {
    pub(crate) fn new(spec: &QueueSpec) -> Qdisc {
        match spec {
            QueueSpec::DropTail(limit) => Qdisc::DropTail(*limit),
            QueueSpec::Red(spec) => Qdisc::Red(Box::new(red::Red::new(*spec))),
        }
    }

    pub(crate) fn spec(&self) -> QueueSpec {
        match self {
            Qdisc::DropTail(limit) => QueueSpec::DropTail(*limit),
            Qdisc::Red(red) => QueueSpec::Red(red.spec()),
        }
    }

    /// Takes new parameters. A RED queue that stays one keeps its average.
    pub(crate) fn change(&mut self, spec: &QueueSpec) {
        match (self, spec) {
            (Qdisc::Red(red), QueueSpec::Red(spec)) => red.change(*spec),
            (this, spec) => *this = Qdisc::new(spec),
        }
    }

    /// Decides about `packet`, arriving at `now`.
    pub(crate) fn admit<P>(
        &mut self,
        now: Time,
        packet: &Packet<P>,
        backlog: Backlog,
        rng: &mut Rng,
    ) -> Admission {
        match self {
            Qdisc::DropTail(limit) => drop_tail::admit(*limit, packet.len, backlog.queued),
            Qdisc::Red(red) => red.admit(now, packet, backlog, rng),
        }
    }
}
