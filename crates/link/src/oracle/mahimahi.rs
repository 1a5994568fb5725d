//! The queues of `mm-link` by their source.

use super::discipline::{DisciplineOracle, OracleContext, OraclePacket, QueueOracle};
use crate::packet::DropReason;
use crate::qdisc::{DropEnd, MahimahiSpec};

pub(super) fn oracle(spec: &MahimahiSpec) -> DisciplineOracle {
    DisciplineOracle::Queue(Box::new(Mahimahi { spec: *spec, internal_queue: Vec::new() }))
}

struct Mahimahi {
    spec: MahimahiSpec,
    internal_queue: Vec<OraclePacket>,
}

impl Mahimahi {
    /// `good_with`, on the queue and these packets.
    fn good_with(&self, more: &[OraclePacket]) -> bool {
        let all: Vec<&OraclePacket> = self.internal_queue.iter().chain(more).collect();
        let contents_size = |packet: &&OraclePacket| packet.len - 14 + 4;
        let bytes: u64 = all.iter().map(contents_size).sum();
        let byte_limit = self.spec.bytes.map_or(u64::MAX, |bytes| bytes.0);
        let packet_limit = self.spec.packets.map_or(usize::MAX, |packets| packets as usize);
        bytes <= byte_limit && all.len() <= packet_limit
    }
}

impl QueueOracle for Mahimahi {
    fn enqueue(&mut self, packet: OraclePacket, context: &mut OracleContext<'_>) {
        match self.spec.drop {
            DropEnd::Tail if self.good_with(&[packet]) => self.internal_queue.push(packet),
            DropEnd::Tail => context.drop(packet, DropReason::QueueFull),
            DropEnd::Head => {
                self.internal_queue.push(packet);
                while !self.good_with(&[]) {
                    context.drop(self.internal_queue.remove(0), DropReason::QueueFull);
                }
            }
        }
    }

    fn dequeue(&mut self, _: &mut OracleContext<'_>) -> Option<OraclePacket> {
        (!self.internal_queue.is_empty()).then(|| self.internal_queue.remove(0))
    }
}
