//! Strict priority by its definition.

use super::discipline::{DisciplineOracle, OracleContext, OraclePacket, QueueOracle};
use crate::packet::DropReason;
use crate::qdisc::PrioSpec;

pub(super) fn oracle(spec: &PrioSpec) -> DisciplineOracle {
    DisciplineOracle::Queue(Box::new(Prio::new(spec.clone())))
}

struct Prio {
    spec: PrioSpec,
    bands: Vec<Vec<OraclePacket>>,
    /// The band of the packet that was sent last.
    sent: usize,
}

impl Prio {
    fn new(spec: PrioSpec) -> Prio {
        let bands = vec![Vec::new(); spec.bands.len()];
        Prio { spec, bands, sent: 0 }
    }
}

impl QueueOracle for Prio {
    fn enqueue(&mut self, packet: OraclePacket, context: &mut OracleContext<'_>) {
        let band = usize::from(self.spec.classes.table()[usize::from(packet.traffic_class / 4)]);
        if context.fits_class(self.spec.bands[band], packet, &self.bands[band], band == self.sent) {
            self.bands[band].push(packet);
        } else {
            context.drop(packet, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, _: &mut OracleContext<'_>) -> Option<OraclePacket> {
        let band = self.bands.iter().position(|band| !band.is_empty())?;
        self.sent = band;
        Some(self.bands[band].remove(0))
    }
}
