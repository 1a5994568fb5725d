//! FQ-CoDel (RFC 8290): flows are hashed to queues, each queue is under CoDel, and deficit round
//! robin serves the queues, those of new flows first. Read §4 of the RFC first.

use super::Ecn;
use super::codel::{Codel, CodelSpec};
use super::context::{QueueContext, Refused, Served};
use super::discipline::Discipline;
use super::fifo::Fifo;
use super::limit::Limit;
use crate::counters::Volume;
use crate::packet::{DropReason, Held};
use fastpath_units::{Bytes, Time};
use std::collections::VecDeque;
use std::fmt;

/// The largest number of packets dropped at once from the longest queue (RFC 8290 §4.1).
const DROP_BATCH: u64 = 64;

/// Parameters of FQ-CoDel. The defaults are those of RFC 8290 §5.2, with ECN on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FqCodelSpec {
    /// CoDel on each queue. Its limit applies to all queues together.
    pub codel: CodelSpec,
    /// Number of queues to which flows are hashed, at least 1.
    pub flows: u16,
    /// Bytes that a queue may send in one round.
    pub quantum: Bytes,
}

impl Default for FqCodelSpec {
    fn default() -> FqCodelSpec {
        let codel = CodelSpec { limit: Limit::Packets(10_240), ecn: Ecn::Mark, ..CodelSpec::default() };
        FqCodelSpec { codel, flows: 1024, quantum: Bytes(1514) }
    }
}

/// The queue of all flows with one hash.
#[derive(Debug)]
struct Flow<P> {
    fifo: Fifo<P>,
    codel: Codel,
    credits: i64,
    list: FlowList,
}

/// The list in which a queue waits for service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FlowList {
    None,
    New,
    Old,
}

/// Flow queues under FQ-CoDel.
#[derive(Debug)]
pub(crate) struct FqCodelQueue<P> {
    spec: FqCodelSpec,
    flows: Vec<Flow<P>>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    backlog: Volume,
}

impl<P> Discipline<P> for FqCodelQueue<P> {
    type Spec = FqCodelSpec;

    fn new(spec: &FqCodelSpec) -> FqCodelQueue<P> {
        let flow =
            |_| Flow { fifo: Fifo::default(), codel: Codel::default(), credits: 0, list: FlowList::None };
        let flows = (0..spec.flows.max(1)).map(flow).collect();
        let (new, old) = (VecDeque::new(), VecDeque::new());
        FqCodelQueue { spec: *spec, flows, new, old, backlog: Volume::default() }
    }

    fn spec(&self) -> FqCodelSpec {
        self.spec
    }

    fn reconfigure(&mut self, _: Time, spec: &FqCodelSpec) -> bool {
        if spec.flows != self.spec.flows {
            return false;
        }
        self.spec = *spec;
        true
    }

    fn backlog(&self) -> Volume {
        self.backlog
    }

    /// §4.1: admits every packet; any excess is dropped from the head of the longest queue.
    fn enqueue(&mut self, packet: Held<P>, context: &mut QueueContext<'_, P>) -> Result<(), Refused<P>> {
        self.push_unchecked(packet);
        let limit = self.spec.codel.limit;
        while !limit.holds(self.backlog + context.on_wire) && self.backlog.packets > 0 {
            self.trim(context);
        }
        Ok(())
    }

    /// §4.2.
    fn dequeue(&mut self, context: &mut QueueContext<'_, P>) -> Served<P> {
        loop {
            let Some(&index) = self.new.front().or(self.old.front()) else { return Served::Nothing };
            let flow = &mut self.flows[index];
            // RFC 8290 §4.2: "a negative number of credits (i.e., it has already dequeued at least
            // a quantum of bytes)". The two differ at zero: a quantum has been sent then. Linux
            // tests for zero or less, and so does this.
            if flow.credits <= 0 {
                // At least one byte per round, so that a quantum of 0 makes progress.
                flow.credits += self.spec.quantum.0.max(1) as i64;
                self.relist(index, FlowList::Old);
                continue;
            }
            let before = flow.fifo.backlog();
            let packet = flow.codel.dequeue(&self.spec.codel, &mut flow.fifo, context);
            let left = flow.fifo.backlog();
            self.backlog.packets -= before.packets - left.packets;
            self.backlog.bytes -= before.bytes - left.bytes;
            match packet {
                Some(packet) => {
                    flow.credits -= i64::from(packet.len);
                    return Served::Packet(packet);
                }
                // A new queue that runs empty passes once through the old list, so that it cannot
                // stay new.
                None if flow.list == FlowList::New && !self.old.is_empty() => {
                    self.relist(index, FlowList::Old)
                }
                None => self.relist(index, FlowList::None),
            }
        }
    }

    fn push_unchecked(&mut self, packet: Held<P>) {
        let index = packet.flow as usize % self.flows.len();
        let flow = &mut self.flows[index];
        self.backlog.add_packet(packet.len);
        flow.fifo.push(packet);
        if flow.list == FlowList::None {
            flow.list = FlowList::New;
            flow.credits = self.spec.quantum.0 as i64;
            self.new.push_back(index);
        }
    }

    fn pop_unmanaged(&mut self) -> Option<Held<P>> {
        let packet = self.flows.iter_mut().find_map(|flow| flow.fifo.pop())?;
        self.backlog.remove_packet(packet.len);
        Some(packet)
    }

    fn reads_headers(_: &FqCodelSpec) -> bool {
        true
    }

    fn describe(spec: &FqCodelSpec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let codel = spec.codel;
        write!(f, "fq-codel {} flows target {} limit {}", spec.flows, codel.target, codel.limit)
    }
}

impl<P> FqCodelQueue<P> {
    /// Drops half the packets of the queue with the most bytes, from its head.
    fn trim(&mut self, context: &mut QueueContext<'_, P>) {
        let bytes = |index: &usize| self.flows[*index].fifo.backlog().bytes;
        // The first of equally long queues.
        let Some(longest) = (0..self.flows.len()).rev().max_by_key(bytes) else { return };
        let fifo = &mut self.flows[longest].fifo;
        for _ in 0..fifo.backlog().packets.div_ceil(2).min(DROP_BATCH) {
            let Some(packet) = fifo.pop() else { return };
            self.backlog.remove_packet(packet.len);
            context.drop(packet, DropReason::QueueFull);
        }
    }

    /// Moves the queue in service from the head of its list to the end of `list`.
    fn relist(&mut self, index: usize, list: FlowList) {
        let from = if self.flows[index].list == FlowList::New { &mut self.new } else { &mut self.old };
        from.pop_front();
        self.flows[index].list = list;
        if list == FlowList::Old {
            self.old.push_back(index);
        }
    }
}
