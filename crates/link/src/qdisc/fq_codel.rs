//! FQ-CoDel (RFC 8290): flows hashed to queues, the queues served by deficit round robin with those
//! of new flows first, each queue under CoDel. Read §4 of the RFC first.

use super::codel::{Codel, CodelSpec};
use super::context::{Fifo, Turn};
use super::{Ecn, Limit};
use crate::counters::Volume;
use crate::packet::{DropReason, Held};
use fastpath_units::Bytes;
use std::collections::VecDeque;

/// At most this many packets are dropped at once from the fattest queue (RFC 8290 §4.1).
const DROP_BATCH: u64 = 64;

/// Parameters of FQ-CoDel. The default is that of RFC 8290 §5.2, with ECN on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FqCodelSpec {
    /// CoDel on each queue; its limit is that of all queues together.
    pub codel: CodelSpec,
    /// Queues that flows are hashed to, at least 1.
    pub flows: u16,
    /// Bytes a queue may send before it is the next one's turn.
    pub quantum: Bytes,
}

impl Default for FqCodelSpec {
    fn default() -> FqCodelSpec {
        let codel = CodelSpec { limit: Limit::Packets(10_240), ecn: Ecn::Mark, ..CodelSpec::default() };
        FqCodelSpec { codel, flows: 1024, quantum: Bytes(1514) }
    }
}

/// The queue of the flows with one hash.
#[derive(Debug)]
struct Flow<P> {
    fifo: Fifo<P>,
    codel: Codel,
    credits: i64,
    listed: Listed,
}

/// Whether a queue is among those that are served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Listed {
    No,
    New,
    Old,
}

/// FQ-CoDel at work.
#[derive(Debug)]
pub(crate) struct FqCodel<P> {
    spec: FqCodelSpec,
    flows: Vec<Flow<P>>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    waiting: Volume,
}

impl<P> FqCodel<P> {
    pub(crate) fn new(spec: FqCodelSpec) -> FqCodel<P> {
        let flow =
            |_| Flow { fifo: Fifo::default(), codel: Codel::default(), credits: 0, listed: Listed::No };
        let flows = (0..spec.flows.max(1)).map(flow).collect();
        FqCodel { spec, flows, new: VecDeque::new(), old: VecDeque::new(), waiting: Volume::default() }
    }

    pub(crate) fn spec(&self) -> FqCodelSpec {
        self.spec
    }

    /// Takes new parameters that do not change the number of queues.
    pub(crate) fn set(&mut self, spec: FqCodelSpec) {
        self.spec = spec;
    }

    pub(crate) fn waiting(&self) -> Volume {
        self.waiting
    }

    /// §4.1. Takes every packet; what exceeds the limit is dropped from the head of the fattest
    /// queue.
    pub(crate) fn enqueue(&mut self, packet: Held<P>, turn: &mut Turn<'_, P>) {
        let limit = self.spec.codel.limit;
        self.adopt(packet);
        loop {
            let mut others = self.waiting;
            others += turn.on_wire;
            if limit.holds(others) || self.waiting.packets == 0 {
                return;
            }
            self.trim(turn);
        }
    }

    pub(crate) fn adopt(&mut self, packet: Held<P>) {
        let index = packet.flow as usize % self.flows.len();
        let flow = &mut self.flows[index];
        self.waiting.add(packet.len);
        flow.fifo.push(packet);
        if flow.listed == Listed::No {
            flow.listed = Listed::New;
            flow.credits = self.spec.quantum.0 as i64;
            self.new.push_back(index);
        }
    }

    /// Drops half the packets of the queue with the most bytes, from its head.
    fn trim(&mut self, turn: &mut Turn<'_, P>) {
        let bytes = |index: &usize| self.flows[*index].fifo.volume().bytes;
        // The first of those that are equally fat.
        let Some(fattest) = (0..self.flows.len()).rev().max_by_key(bytes) else { return };
        let fifo = &mut self.flows[fattest].fifo;
        for _ in 0..fifo.volume().packets.div_ceil(2).min(DROP_BATCH) {
            let Some(packet) = fifo.pop() else { return };
            self.waiting.remove(packet.len);
            turn.drop(packet, DropReason::QueueFull);
        }
    }

    /// §4.2.
    pub(crate) fn dequeue(&mut self, turn: &mut Turn<'_, P>) -> Option<Held<P>> {
        loop {
            let index = *self.new.front().or(self.old.front())?;
            let flow = &mut self.flows[index];
            // "A negative number of credits (i.e., it has already dequeued at least a quantum of
            // bytes)" says §4.2 of the RFC: at zero the two differ. A quantum has been sent then,
            // and Linux goes by that.
            if flow.credits <= 0 {
                // At least a byte each round, so that a quantum of nothing serves as well.
                flow.credits += self.spec.quantum.0.max(1) as i64;
                self.relist(index, Listed::Old);
                continue;
            }
            let before = flow.fifo.volume();
            let packet = flow.codel.dequeue(&self.spec.codel, &mut flow.fifo, turn);
            let left = flow.fifo.volume();
            self.waiting.packets -= before.packets - left.packets;
            self.waiting.bytes -= before.bytes - left.bytes;
            match packet {
                Some(packet) => {
                    flow.credits -= i64::from(packet.len);
                    return Some(packet);
                }
                // A new queue that runs empty first goes round once as an old one, so that it
                // cannot stay new.
                None if flow.listed == Listed::New && !self.old.is_empty() => self.relist(index, Listed::Old),
                None => self.relist(index, Listed::No),
            }
        }
    }

    /// Takes the queue being served off the head of its list and puts it at the end of another.
    fn relist(&mut self, index: usize, listed: Listed) {
        let from = if self.flows[index].listed == Listed::New { &mut self.new } else { &mut self.old };
        from.pop_front();
        self.flows[index].listed = listed;
        if listed == Listed::Old {
            self.old.push_back(index);
        }
    }

    /// The next packet in some fixed order, for another discipline to take over.
    pub(crate) fn take(&mut self) -> Option<Held<P>> {
        let packet = self.flows.iter_mut().find_map(|flow| flow.fifo.pop())?;
        self.waiting.remove(packet.len);
        Some(packet)
    }
}
