//! FQ-CoDel as RFC 8290 §4 describes it, over the oracle of CoDel.

use super::codel::Codel;
use super::discipline::{DisciplineOracle, OracleContext, OraclePacket, QueueOracle, bytes};
use crate::packet::DropReason;
use crate::qdisc::{FqCodelSpec, Limit};

pub(super) fn oracle(spec: &FqCodelSpec) -> DisciplineOracle {
    DisciplineOracle::Queue(Box::new(FqCodel::new(*spec)))
}

/// Queues by hash, and the two lists of active queues.
struct FqCodel {
    spec: FqCodelSpec,
    queues: Vec<(Codel, i64)>,
    new_list: Vec<usize>,
    old_list: Vec<usize>,
}

impl FqCodel {
    fn new(spec: FqCodelSpec) -> FqCodel {
        let queues = (0..spec.flows).map(|_| (Codel::new(spec.codel), 0)).collect();
        FqCodel { spec, queues, new_list: Vec::new(), old_list: Vec::new() }
    }

    fn over_limit(&self, context: &OracleContext<'_>) -> bool {
        let all: Vec<OraclePacket> = self.queues.iter().flat_map(|(codel, _)| codel.queue.clone()).collect();
        match self.spec.codel.limit {
            Limit::Packets(most) => all.len() + context.on_wire.iter().count() > most as usize,
            Limit::Bytes(most) => bytes(&all) + context.on_wire.unwrap_or(0) > most.0,
        }
    }
}

impl QueueOracle for FqCodel {
    fn enqueue(&mut self, packet: OraclePacket, context: &mut OracleContext<'_>) {
        let q = packet.flow as usize % self.queues.len();
        self.queues[q].0.queue.push(packet);
        if !self.new_list.contains(&q) && !self.old_list.contains(&q) {
            self.new_list.push(q);
            self.queues[q].1 = self.spec.quantum.0 as i64;
        }
        while self.over_limit(context) && self.queues.iter().any(|(codel, _)| !codel.queue.is_empty()) {
            let most = self.queues.iter().map(|(codel, _)| bytes(&codel.queue)).max();
            let longest = self.queues.iter().position(|(codel, _)| Some(bytes(&codel.queue)) == most);
            let queue = &mut self.queues[longest.expect("there are queues")].0.queue;
            let half = queue.len().div_ceil(2).min(64);
            queue.drain(..half).for_each(|packet| context.drop(packet, DropReason::QueueFull));
        }
    }

    fn dequeue(&mut self, context: &mut OracleContext<'_>) -> Option<OraclePacket> {
        loop {
            let from_new = !self.new_list.is_empty();
            let list = if from_new { &mut self.new_list } else { &mut self.old_list };
            let q = *list.first()?;
            if self.queues[q].1 <= 0 {
                self.queues[q].1 += self.spec.quantum.0 as i64;
                list.remove(0);
                self.old_list.push(q);
                continue;
            }
            if let Some(packet) = self.queues[q].0.dequeue(context) {
                self.queues[q].1 -= packet.len as i64;
                return Some(packet);
            }
            list.remove(0);
            if from_new && !self.old_list.is_empty() {
                self.old_list.push(q);
            }
        }
    }
}
