//! Drop-head by its definition.

use super::discipline::{DisciplineOracle, OracleContext, OraclePacket, QueueOracle};
use crate::packet::DropReason;
use crate::qdisc::Limit;

pub(super) fn oracle(limit: &Limit) -> DisciplineOracle {
    DisciplineOracle::Queue(Box::new(DropHead { limit: *limit, queue: Vec::new() }))
}

struct DropHead {
    limit: Limit,
    queue: Vec<OraclePacket>,
}

impl QueueOracle for DropHead {
    fn enqueue(&mut self, packet: OraclePacket, context: &mut OracleContext<'_>) {
        if !context.fits(self.limit, packet.len, &[]) {
            return context.drop(packet, DropReason::QueueFull);
        }
        while !context.fits(self.limit, packet.len, &self.queue) {
            context.drop(self.queue.remove(0), DropReason::QueueFull);
        }
        self.queue.push(packet);
    }

    fn dequeue(&mut self, _: &mut OracleContext<'_>) -> Option<OraclePacket> {
        (!self.queue.is_empty()).then(|| self.queue.remove(0))
    }
}
