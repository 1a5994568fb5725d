//! Strict priority: a band is served only while those before it are empty. Each band is a drop-tail
//! queue of its own (RFC 2475 §2.3.3.4 knows the schedulers; `tc qdisc … prio` with a pfifo in each
//! band).

use super::context::{Fifo, Refused, Turn};
use super::{Classes, Limit};
use crate::counters::Volume;
use crate::packet::{DropReason, Held};

/// Parameters of strict priority.
#[derive(Clone, PartialEq, Debug)]
pub struct PrioSpec {
    /// The limit of each band, the first being served first. At least one, at most 64. The packet
    /// on the wire counts against none of them.
    pub bands: Vec<Limit>,
    /// The band of each DSCP.
    pub classes: Classes,
}

/// Strict priority at work.
#[derive(Debug)]
pub(crate) struct Prio<P> {
    pub(crate) spec: PrioSpec,
    bands: Vec<Fifo<P>>,
}

impl<P> Prio<P> {
    pub(crate) fn new(spec: PrioSpec) -> Prio<P> {
        let bands = (0..spec.bands.len().max(1)).map(|_| Fifo::default()).collect();
        Prio { spec, bands }
    }

    /// True if the new parameters leave every packet where it is.
    pub(crate) fn can_become(&self, spec: &PrioSpec) -> bool {
        spec.bands.len() == self.spec.bands.len() && spec.classes == self.spec.classes
    }

    pub(crate) fn waiting(&self) -> Volume {
        self.bands.iter().fold(Volume::default(), |mut sum, band| {
            sum += band.volume();
            sum
        })
    }

    pub(crate) fn enqueue(&mut self, packet: Held<P>, _: &mut Turn<'_, P>) -> Result<(), Refused<P>> {
        let band = self.spec.classes.of(packet.traffic_class, self.bands.len());
        let room = self
            .spec
            .bands
            .get(band)
            .is_some_and(|limit| limit.has_room(packet.len, self.bands[band].volume()));
        if !room {
            return Err((DropReason::QueueFull, packet));
        }
        self.bands[band].push(packet);
        Ok(())
    }

    pub(crate) fn adopt(&mut self, packet: Held<P>) {
        let band = self.spec.classes.of(packet.traffic_class, self.bands.len());
        self.bands[band].push(packet);
    }

    pub(crate) fn dequeue(&mut self) -> Option<Held<P>> {
        self.bands.iter_mut().find_map(Fifo::pop)
    }
}
