//! A bound on the sojourn time, by its definition.

use super::discipline::{DisciplineOracle, OracleContext, OraclePacket, QueueOracle};
use crate::packet::DropReason;
use crate::qdisc::SojournSpec;

pub(super) fn oracle(spec: &SojournSpec) -> DisciplineOracle {
    DisciplineOracle::Queue(Box::new(Sojourn { spec: *spec, queue: Vec::new() }))
}

struct Sojourn {
    spec: SojournSpec,
    queue: Vec<OraclePacket>,
}

impl QueueOracle for Sojourn {
    fn enqueue(&mut self, packet: OraclePacket, context: &mut OracleContext<'_>) {
        if context.fits(self.spec.limit, packet.len, &self.queue) {
            self.queue.push(packet);
        } else {
            context.drop(packet, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, context: &mut OracleContext<'_>) -> Option<OraclePacket> {
        let late = |packet: &OraclePacket| context.now - packet.arrived > self.spec.longest;
        let old = self.queue.iter().take_while(|packet| late(packet)).count();
        self.queue.drain(..old).for_each(|packet| context.drop(packet, DropReason::Expired));
        (!self.queue.is_empty()).then(|| self.queue.remove(0))
    }
}
