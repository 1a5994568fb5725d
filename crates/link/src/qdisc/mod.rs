//! Queue disciplines: who may wait, who is marked, who goes first. One discipline, one file.
//!
//! Drop-tail and RED decide at arrival ([`Qdisc::admit`]) and serve in order of arrival: their
//! packets may wait in the ring of a plain pipe. The others hold their packets themselves
//! ([`context::Queue`]) and also decide when a packet's turn comes.

mod ared;
mod classes;
mod codel;
pub(crate) mod context;
mod drop_head;
mod drop_tail;
mod drop_tail_time;
mod drr;
mod dualpi2;
mod fq_codel;
mod pie;
mod prio;
mod red;
mod sojourn;
mod token_bucket;

use crate::counters::Volume;
use crate::packet::{DropReason, Packet};
use fastpath_units::{Duration, Rate, Rng, Time};
use std::fmt;

pub use ared::AredSpec;
pub use classes::Classes;
pub use codel::{CodelSpec, Ecn};
pub use drop_tail::Limit;
pub use drr::{DrrShare, DrrSpec};
pub use dualpi2::{DualPi2Spec, DualScheduler};
pub use fq_codel::FqCodelSpec;
pub use pie::PieSpec;
pub use prio::PrioSpec;
pub use red::RedSpec;
pub use sojourn::SojournSpec;
pub use token_bucket::{Peak, TokenBucketSpec};

/// Which queue discipline, with its parameters.
#[derive(Clone, PartialEq, Debug)]
pub enum QueueSpec {
    /// Takes packets until the limit is reached, then drops the newcomer.
    DropTail(Limit),
    /// Takes packets until those queued take the link longer than this, then drops the newcomer.
    DropTailTime(Duration),
    /// Random early detection.
    Red(RedSpec),
    /// Takes every packet that fits at all, dropping the oldest to make room.
    DropHead(Limit),
    /// Drops what has waited too long.
    Sojourn(SojournSpec),
    /// Controlled delay.
    Codel(CodelSpec),
    /// Fair queueing of flows, each under CoDel.
    FqCodel(FqCodelSpec),
    /// A proportional integral controller of the delay.
    Pie(PieSpec),
    /// RED that adapts to the load.
    Ared(AredSpec),
    /// A queue for L4S traffic beside one for all other, coupled.
    DualPi2(DualPi2Spec),
    /// A token bucket, with a peak rate if there is to be one.
    TokenBucket(TokenBucketSpec),
    /// Classes of traffic, the first always first.
    Prio(PrioSpec),
    /// Classes of traffic, each with its share: deficit round robin.
    Drr(DrrSpec),
}

impl QueueSpec {
    /// True if the discipline looks at [`Packet::traffic_class`] or [`Packet::flow`]; otherwise the
    /// caller need not know them.
    pub fn reads_headers(&self) -> bool {
        match self {
            QueueSpec::DropTail(_) | QueueSpec::DropTailTime(_) | QueueSpec::DropHead(_) => false,
            QueueSpec::Sojourn(_) | QueueSpec::TokenBucket(_) => false,
            QueueSpec::Red(red) => red.ecn,
            QueueSpec::Ared(ared) => ared.red.ecn,
            QueueSpec::Codel(codel) => codel.ecn == Ecn::Mark,
            QueueSpec::FqCodel(_) | QueueSpec::DualPi2(_) => true,
            QueueSpec::Prio(_) | QueueSpec::Drr(_) => true,
            QueueSpec::Pie(pie) => pie.ecn == Ecn::Mark,
        }
    }

    /// True if packets are dropped or served in another order than they came once they are queued.
    pub(crate) fn acts_at_dequeue(&self) -> bool {
        !matches!(
            self,
            QueueSpec::DropTail(_) | QueueSpec::DropTailTime(_) | QueueSpec::Red(_) | QueueSpec::Ared(_)
        )
    }
}

impl fmt::Display for QueueSpec {
    /// In a few words, for reports.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueSpec::DropTail(limit) => limit.fmt(f),
            QueueSpec::DropTailTime(longest) => write!(f, "drop-tail {longest}"),
            QueueSpec::Red(red) => write!(f, "red min {} max {} limit {}", red.min, red.max, red.limit),
            QueueSpec::DropHead(limit) => write!(f, "drop-head {limit}"),
            QueueSpec::Sojourn(spec) => write!(f, "sojourn {} limit {}", spec.longest, spec.limit),
            QueueSpec::Codel(codel) => {
                write!(f, "codel target {} interval {} limit {}", codel.target, codel.interval, codel.limit)
            }
            QueueSpec::FqCodel(fq) => {
                let codel = fq.codel;
                write!(f, "fq-codel {} flows target {} limit {}", fq.flows, codel.target, codel.limit)
            }
            QueueSpec::Pie(pie) => write!(f, "pie target {} limit {}", pie.target, pie.limit),
            QueueSpec::Ared(AredSpec { red, target: Some(target), .. }) => {
                write!(f, "ared target {target} limit {}", red.limit)
            }
            QueueSpec::Ared(AredSpec { red, .. }) => {
                write!(f, "ared min {} max {} limit {}", red.min, red.max, red.limit)
            }
            QueueSpec::DualPi2(dual) => write!(f, "dualpi2 target {} limit {}", dual.target, dual.limit),
            QueueSpec::TokenBucket(bucket) => {
                write!(f, "token-bucket {} burst {} limit {}", bucket.rate, bucket.burst, bucket.limit)
            }
            QueueSpec::Prio(prio) => write!(f, "prio {} bands", prio.bands.len()),
            QueueSpec::Drr(drr) => write!(f, "drr {} classes", drr.shares.len()),
        }
    }
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
    pub(crate) queued: Volume,
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
    DropTailTime(Duration),
    Red(Box<red::Red>),
    Ared(Box<ared::Ared>),
}

impl Qdisc {
    /// Panics for a discipline that acts at dequeue: [`context::Queue`] holds those.
    pub(crate) fn new(spec: &QueueSpec) -> Qdisc {
        match spec {
            QueueSpec::DropTail(limit) => Qdisc::DropTail(*limit),
            QueueSpec::DropTailTime(longest) => Qdisc::DropTailTime(*longest),
            QueueSpec::Red(spec) => Qdisc::Red(Box::new(red::Red::new(*spec))),
            QueueSpec::Ared(spec) => Qdisc::Ared(Box::new(ared::Ared::new(*spec))),
            other => panic!("{other} does not decide at arrival"),
        }
    }

    pub(crate) fn spec(&self) -> QueueSpec {
        match self {
            Qdisc::DropTail(limit) => QueueSpec::DropTail(*limit),
            Qdisc::DropTailTime(longest) => QueueSpec::DropTailTime(*longest),
            Qdisc::Red(red) => QueueSpec::Red(red.spec()),
            Qdisc::Ared(ared) => QueueSpec::Ared(ared.spec()),
        }
    }

    pub(crate) fn reads_headers(&self) -> bool {
        match self {
            Qdisc::DropTail(_) | Qdisc::DropTailTime(_) => false,
            Qdisc::Red(red) => red.spec().ecn,
            Qdisc::Ared(ared) => ared.spec().red.ecn,
        }
    }

    /// Takes new parameters. A RED queue that stays one keeps its average.
    pub(crate) fn change(&mut self, spec: &QueueSpec) {
        match (self, spec) {
            (Qdisc::Red(red), QueueSpec::Red(spec)) => red.change(*spec),
            (Qdisc::Ared(ared), QueueSpec::Ared(spec)) => ared.change(*spec),
            (this, spec) => *this = Qdisc::new(spec),
        }
    }

    /// True if it takes a packet of `len` bytes, whatever else there is to know; most queues need
    /// no more than this.
    #[inline]
    pub(crate) fn takes(&self, len: u32, queued: Volume) -> bool {
        matches!(self, Qdisc::DropTail(limit) if limit.has_room(len, queued))
    }

    /// Decides about `packet`, arriving at `now`.
    #[inline(always)]
    pub(crate) fn admit(
        &mut self,
        now: Time,
        packet: &Packet<()>,
        backlog: Backlog,
        rng: &mut Rng,
    ) -> Admission {
        match self {
            Qdisc::DropTail(limit) => drop_tail::admit(*limit, packet.len, backlog.queued),
            Qdisc::Red(red) => red.admit(now, packet, backlog, rng),
            Qdisc::Ared(ared) => ared.admit(now, packet, backlog, rng),
            Qdisc::DropTailTime(longest) => drop_tail_time::admit(*longest, backlog),
        }
    }
}
