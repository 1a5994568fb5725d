//! CoDel, "Controlled Delay" (RFC 8289): drops at the head once the sojourn time has stayed above a
//! target for an interval, then at a rising rate until the sojourn time falls below the target.
//! Read §5 of the RFC first.

use super::Ecn;
use super::context::{QueueContext, Refused, Served};
use super::discipline::{Discipline, one_fifo};
use super::fifo::Fifo;
use super::limit::Limit;
use crate::packet::{DropReason, Held};
use fastpath_units::{Bytes, Duration, Time};
use std::fmt;

/// Parameters of CoDel. The defaults are those of RFC 8289 §4.2 to §4.4, with the limit of 1000
/// packets that Linux has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodelSpec {
    /// The acceptable standing delay (TARGET).
    pub target: Duration,
    /// How long the target may be exceeded before a packet is dropped: a worst-case round-trip time
    /// (INTERVAL).
    pub interval: Duration,
    /// Nothing is dropped while at most this much waits behind the packet (MAXPACKET).
    pub mtu: Bytes,
    /// The hard limit; an arriving packet that does not fit is dropped.
    pub limit: Limit,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: Ecn,
}

impl Default for CodelSpec {
    fn default() -> CodelSpec {
        CodelSpec {
            target: Duration::from_ms(5),
            interval: Duration::from_ms(100),
            mtu: Bytes(1514),
            limit: Limit::Packets(1000),
            ecn: Ecn::Off,
        }
    }
}

/// The control state of one queue: the variables of §5.3.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Codel {
    /// When the sojourn time will have been above the target for one interval; `None` while it is
    /// below the target.
    first_above: Option<Time>,
    drop_next: Time,
    /// Drops since the drop state was entered.
    count: u32,
    /// `count` when the drop state was entered last.
    last_count: u32,
    dropping: bool,
}

/// The head of the queue, and whether CoDel may drop it (dodequeue_result).
struct Candidate<P> {
    packet: Held<P>,
    may_drop: bool,
}

impl Codel {
    /// The deque routine of §5.5.
    pub(crate) fn dequeue<P>(
        &mut self,
        spec: &CodelSpec,
        fifo: &mut Fifo<P>,
        context: &mut QueueContext<'_, P>,
    ) -> Option<Held<P>> {
        let first = self.candidate(spec, fifo, context.now);
        if self.dropping {
            return self.dequeue_dropping(first, spec, fifo, context);
        }
        let mut candidate = first?;
        if candidate.may_drop {
            // Enter the drop state. If it was left recently, start near the drop rate that
            // controlled the queue then.
            let delta = self.count.wrapping_sub(self.last_count);
            let recent = context.now.since(self.drop_next)
                < Duration::from_ps(spec.interval.as_ps().saturating_mul(16));
            self.dropping = true;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = self.control_law(context.now, spec);
            self.last_count = self.count;
            match signal(candidate.packet, spec, context) {
                Some(marked) => return Some(marked),
                None => candidate = self.candidate(spec, fifo, context.now)?,
            }
        }
        Some(candidate.packet)
    }

    /// In the drop state: drops until the next drop lies in the future or the sojourn time is below
    /// the target.
    fn dequeue_dropping<P>(
        &mut self,
        mut next: Option<Candidate<P>>,
        spec: &CodelSpec,
        fifo: &mut Fifo<P>,
        context: &mut QueueContext<'_, P>,
    ) -> Option<Held<P>> {
        loop {
            let Some(candidate) = next else {
                self.dropping = false;
                return None;
            };
            if !candidate.may_drop {
                self.dropping = false;
                return Some(candidate.packet);
            }
            if context.now < self.drop_next {
                return Some(candidate.packet);
            }
            self.count = self.count.saturating_add(1);
            let marked = signal(candidate.packet, spec, context);
            if marked.is_some() {
                self.drop_next = self.control_law(self.drop_next, spec);
                return marked;
            }
            next = self.candidate(spec, fifo, context.now);
            if next.as_ref().is_some_and(|next| next.may_drop) {
                self.drop_next = self.control_law(self.drop_next, spec);
            }
        }
    }

    /// The dodequeue routine of §5.4.
    fn candidate<P>(&mut self, spec: &CodelSpec, fifo: &mut Fifo<P>, now: Time) -> Option<Candidate<P>> {
        let Some(packet) = fifo.pop() else {
            self.first_above = None;
            return None;
        };
        let mut may_drop = false;
        if now.since(packet.time) < spec.target || fifo.backlog().bytes <= spec.mtu.0 {
            self.first_above = None;
        } else {
            match self.first_above {
                None => self.first_above = Some(now.saturating_add(spec.interval)),
                Some(at) => may_drop = now >= at,
            }
        }
        Some(Candidate { packet, may_drop })
    }

    /// §5.6: the next drop is due interval / √count after `from`.
    fn control_law(&self, from: Time, spec: &CodelSpec) -> Time {
        let span = spec.interval.as_ps() as f64 / f64::from(self.count).sqrt();
        from.saturating_add(Duration::from_ps(span as u64))
    }
}

/// Signals congestion: marks the packet and returns it, or drops it.
fn signal<P>(mut packet: Held<P>, spec: &CodelSpec, context: &mut QueueContext<'_, P>) -> Option<Held<P>> {
    if spec.ecn == Ecn::Mark && packet.is_ect() {
        context.mark(&mut packet);
        return Some(packet);
    }
    context.drop(packet, DropReason::Early);
    None
}

/// A FIFO under CoDel.
#[derive(Debug)]
pub(crate) struct CodelQueue<P> {
    spec: CodelSpec,
    fifo: Fifo<P>,
    state: Codel,
}

impl<P> Discipline<P> for CodelQueue<P> {
    one_fifo!(CodelSpec);

    fn new(spec: &CodelSpec) -> CodelQueue<P> {
        CodelQueue { spec: *spec, fifo: Fifo::default(), state: Codel::default() }
    }

    fn enqueue(&mut self, packet: Held<P>, context: &mut QueueContext<'_, P>) -> Result<(), Refused<P>> {
        self.fifo.push_within(self.spec.limit, packet, context)
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_, P>) -> Served<P> {
        self.state.dequeue(&self.spec, &mut self.fifo, context).into()
    }

    fn reads_headers(spec: &CodelSpec) -> bool {
        spec.ecn == Ecn::Mark
    }

    fn describe(spec: &CodelSpec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "codel target {} interval {} limit {}", spec.target, spec.interval, spec.limit)
    }
}
