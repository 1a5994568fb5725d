//! A policer as the virtual scheduling algorithm (GCRA, ITU-T I.371 Annex A): a packet conforms if
//! the bucket would be full again no later than a burst after it.

use super::discipline::{DisciplineOracle, OracleContext, OraclePacket, QueueOracle};
use super::exact::PS_PER_S;
use crate::packet::DropReason;
use crate::qdisc::PolicerSpec;

pub(super) fn oracle(spec: &PolicerSpec) -> DisciplineOracle {
    DisciplineOracle::Queue(Box::new(Policer { spec: *spec, queue: Vec::new(), tat: 0 }))
}

struct Policer {
    spec: PolicerSpec,
    queue: Vec<OraclePacket>,
    /// The theoretical arrival time × rate.
    tat: u128,
}

impl QueueOracle for Policer {
    fn enqueue(&mut self, packet: OraclePacket, context: &mut OracleContext<'_>) {
        let bits = |bytes: u64| u128::from(bytes) * 8 * PS_PER_S;
        let now = u128::from(context.now.as_ps()) * u128::from(self.spec.rate.as_bps());
        let next = self.tat.max(now) + bits(packet.len + context.overhead);
        if next > now + bits(self.spec.burst.0) {
            return context.drop(packet, DropReason::Early);
        }
        self.tat = next;
        if context.fits(self.spec.limit, packet.len, &self.queue) {
            self.queue.push(packet);
        } else {
            context.drop(packet, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, _: &mut OracleContext<'_>) -> Option<OraclePacket> {
        (!self.queue.is_empty()).then(|| self.queue.remove(0))
    }
}
