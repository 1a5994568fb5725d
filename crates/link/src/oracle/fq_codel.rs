//! FQ-CoDel as RFC 8290 §4 tells it, over the twin of CoDel.

use super::aqm::{Pkt, Twin, World, bytes};
use super::codel::Codel;
use crate::packet::DropReason;
use crate::qdisc::{FqCodelSpec, Limit};

/// Queues by hash, and the two lists of those that are active.
pub(super) struct FqCodel {
    spec: FqCodelSpec,
    queues: Vec<(Codel, i64)>,
    new_list: Vec<usize>,
    old_list: Vec<usize>,
}

impl FqCodel {
    pub(super) fn new(spec: FqCodelSpec) -> FqCodel {
        let queues = (0..spec.flows).map(|_| (Codel::new(spec.codel), 0)).collect();
        FqCodel { spec, queues, new_list: Vec::new(), old_list: Vec::new() }
    }

    fn over_limit(&self, world: &World<'_>) -> bool {
        let all: Vec<Pkt> = self.queues.iter().flat_map(|(codel, _)| codel.queue.clone()).collect();
        match self.spec.codel.limit {
            Limit::Packets(most) => all.len() + world.on_wire.iter().count() > most as usize,
            Limit::Bytes(most) => bytes(&all) + world.on_wire.unwrap_or(0) > most.0,
        }
    }
}

impl Twin for FqCodel {
    fn enqueue(&mut self, packet: Pkt, world: &mut World<'_>) {
        let q = packet.flow as usize % self.queues.len();
        self.queues[q].0.queue.push(packet);
        if !self.new_list.contains(&q) && !self.old_list.contains(&q) {
            self.new_list.push(q);
            self.queues[q].1 = self.spec.quantum.0 as i64;
        }
        while self.over_limit(world) && self.queues.iter().any(|(codel, _)| !codel.queue.is_empty()) {
            let most = self.queues.iter().map(|(codel, _)| bytes(&codel.queue)).max();
            let fattest = self.queues.iter().position(|(codel, _)| Some(bytes(&codel.queue)) == most);
            let queue = &mut self.queues[fattest.expect("there are queues")].0.queue;
            let half = queue.len().div_ceil(2).min(64);
            queue.drain(..half).for_each(|packet| world.drop(packet, DropReason::QueueFull));
        }
    }

    fn dequeue(&mut self, world: &mut World<'_>) -> Option<Pkt> {
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
            if let Some(packet) = self.queues[q].0.dequeue(world) {
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
