//! CoDel, "Controlled Delay" (RFC 8289): drops at the head once the sojourn time has stayed above a
//! target for an interval, then ever more often until it falls below. Read §5 of the RFC first.

use super::Limit;
use super::context::{Fifo, Refused, Turn};
use crate::packet::{DropReason, Held};
use fastpath_units::{Bytes, Duration, Time};

/// Parameters of CoDel. The default is that of RFC 8289 §4.2 to §4.4, with Linux' limit of 1000
/// packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodelSpec {
    /// The standing delay that is accepted (TARGET).
    pub target: Duration,
    /// How long it may be exceeded before a packet is dropped: a worst-case round trip (INTERVAL).
    pub interval: Duration,
    /// With no more than this queued behind the packet at hand nothing is dropped (MAXPACKET).
    pub mtu: Bytes,
    /// The hard limit; a newcomer that does not fit is dropped.
    pub limit: Limit,
    /// What is done to ECN-capable packets.
    pub ecn: Ecn,
}

/// Whether a discipline signals congestion by ECN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// Every packet is dropped.
    #[default]
    Off,
    /// ECN-capable packets are marked instead (RFC 3168 §5).
    Mark,
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

/// The state of one queue under CoDel: the variables of §5.3.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Codel {
    /// When the sojourn time will have been above the target for an interval; `None` while it is
    /// below.
    first_above: Option<Time>,
    drop_next: Time,
    /// Drops since entering the drop state, and what it was when the last one was entered.
    count: u32,
    last_count: u32,
    dropping: bool,
}

/// A packet from the queue, and whether CoDel may drop it (dodequeue_result).
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
        turn: &mut Turn<'_, P>,
    ) -> Option<Held<P>> {
        let first = self.candidate(spec, fifo, turn.now);
        if self.dropping {
            return self.go_on(first, spec, fifo, turn);
        }
        let mut candidate = first?;
        if candidate.may_drop {
            // Enter the drop state, at about the rate that controlled the queue last time if that
            // was recent.
            let delta = self.count.wrapping_sub(self.last_count);
            let recent =
                turn.now.since(self.drop_next) < Duration::from_ps(spec.interval.as_ps().saturating_mul(16));
            self.dropping = true;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = self.control_law(turn.now, spec);
            self.last_count = self.count;
            match signal(candidate.packet, spec, turn) {
                Some(marked) => return Some(marked),
                None => candidate = self.candidate(spec, fifo, turn.now)?,
            }
        }
        Some(candidate.packet)
    }

    /// In the drop state: drops until the next drop lies in the future or the delay is fine.
    fn go_on<P>(
        &mut self,
        mut next: Option<Candidate<P>>,
        spec: &CodelSpec,
        fifo: &mut Fifo<P>,
        turn: &mut Turn<'_, P>,
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
            if turn.now < self.drop_next {
                return Some(candidate.packet);
            }
            self.count = self.count.saturating_add(1);
            let marked = signal(candidate.packet, spec, turn);
            if marked.is_some() {
                self.drop_next = self.control_law(self.drop_next, spec);
                return marked;
            }
            next = self.candidate(spec, fifo, turn.now);
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
        if now.since(packet.time) < spec.target || fifo.volume().bytes <= spec.mtu.0 {
            self.first_above = None;
        } else {
            match self.first_above {
                None => self.first_above = Some(now.saturating_add(spec.interval)),
                Some(at) => may_drop = now >= at,
            }
        }
        Some(Candidate { packet, may_drop })
    }

    /// §5.6: the next drop is an interval over √count after `from`.
    fn control_law(&self, from: Time, spec: &CodelSpec) -> Time {
        let span = spec.interval.as_ps() as f64 / f64::from(self.count).sqrt();
        from.saturating_add(Duration::from_ps(span as u64))
    }
}

/// Tells the sender: marks the packet and gives it back, or drops it.
fn signal<P>(mut packet: Held<P>, spec: &CodelSpec, turn: &mut Turn<'_, P>) -> Option<Held<P>> {
    if spec.ecn == Ecn::Mark && packet.is_ect() {
        turn.mark(&mut packet);
        return Some(packet);
    }
    turn.drop(packet, DropReason::Early);
    None
}

/// One queue under CoDel.
#[derive(Debug)]
pub(crate) struct CodelQueue<P> {
    pub(crate) spec: CodelSpec,
    pub(crate) fifo: Fifo<P>,
    state: Codel,
}

impl<P> CodelQueue<P> {
    pub(crate) fn new(spec: CodelSpec) -> CodelQueue<P> {
        CodelQueue { spec, fifo: Fifo::default(), state: Codel::default() }
    }

    pub(crate) fn enqueue(&mut self, packet: Held<P>, turn: &mut Turn<'_, P>) -> Result<(), Refused<P>> {
        let mut queued = self.fifo.volume();
        queued += turn.on_wire;
        if !self.spec.limit.has_room(packet.len, queued) {
            return Err((DropReason::QueueFull, packet));
        }
        self.fifo.push(packet);
        Ok(())
    }

    pub(crate) fn dequeue(&mut self, turn: &mut Turn<'_, P>) -> Option<Held<P>> {
        self.state.dequeue(&self.spec, &mut self.fifo, turn)
    }
}
