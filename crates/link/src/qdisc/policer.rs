//! A policer: a packet that exceeds a token bucket is dropped at arrival and does not wait for
//! tokens. RFC 2475 §2.3.3.5; `tc … action police … conform-exceed drop`. The packets that conform
//! share a drop-tail queue in front of the link's rate.
//!
//! Tokens are counted as in `token_bucket.rs`. A packet takes them at its arrival, so nothing is
//! rounded.

use super::QueueSpec;
use super::context::{QueueContext, Refused, Served};
use super::discipline::Discipline;
use super::fifo::Fifo;
use super::limit::Limit;
use super::token_bucket::tokens;
use crate::counters::Volume;
use crate::packet::{DropReason, Held};
use fastpath_units::{Bytes, Rate, Time};
use std::fmt;

/// Parameters of a policer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PolicerSpec {
    /// The rate at which tokens arrive. Frames count with the overhead of the link.
    pub rate: Rate,
    /// The depth of the bucket, which is full at the start.
    pub burst: Bytes,
    /// The hard limit of the packets that conform and wait for the link. The packet on the wire
    /// counts.
    pub limit: Limit,
}

impl QueueSpec {
    /// Returns a policer in front of a queue without a limit.
    pub fn policed(rate: Rate, burst: Bytes) -> QueueSpec {
        QueueSpec::Policer(PolicerSpec { rate, burst, limit: Limit::Packets(u32::MAX) })
    }
}

/// A policer in front of a FIFO.
#[derive(Debug)]
pub(crate) struct PolicerQueue<P> {
    spec: PolicerSpec,
    fifo: Fifo<P>,
    /// Tokens, in 10⁻¹² bits.
    level: u128,
    /// The last time at which tokens were added.
    filled: Time,
}

impl<P> Discipline<P> for PolicerQueue<P> {
    type Spec = PolicerSpec;

    fn new(spec: &PolicerSpec) -> PolicerQueue<P> {
        PolicerQueue { spec: *spec, fifo: Fifo::default(), level: tokens(spec.burst), filled: Time::ZERO }
    }

    fn spec(&self) -> PolicerSpec {
        self.spec
    }

    /// Keeps tokens up to the new depth.
    fn reconfigure(&mut self, now: Time, spec: &PolicerSpec) -> bool {
        self.fill(now);
        self.spec = *spec;
        self.level = self.level.min(tokens(spec.burst));
        true
    }

    fn backlog(&self) -> Volume {
        self.fifo.backlog()
    }

    fn enqueue(&mut self, packet: Held<P>, context: &mut QueueContext<'_, P>) -> Result<(), Refused<P>> {
        self.fill(context.now);
        let cost = tokens(context.framing.on_wire(packet.len));
        if self.level < cost {
            return Err((DropReason::Early, packet));
        }
        self.level -= cost;
        self.fifo.push_within(self.spec.limit, packet, context)
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

    fn describe(spec: &PolicerSpec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "policer {} burst {} limit {}", spec.rate, spec.burst, spec.limit)
    }
}

impl<P> PolicerQueue<P> {
    fn fill(&mut self, now: Time) {
        let span = u128::from(now.since(self.filled).as_ps());
        let depth = tokens(self.spec.burst);
        self.level = (self.level + span * u128::from(self.spec.rate.as_bps())).min(depth);
        self.filled = self.filled.max(now);
    }
}
