//! Strict priority: a band is served only while all bands before it are empty. Each band is a
//! drop-tail queue (RFC 2475 §2.3.3.4 names such schedulers; `tc qdisc … prio` with a pfifo in each
//! band).

use super::classes::Classes;
use super::context::{QueueContext, Refused, Served};
use super::discipline::Discipline;
use super::fifo::Fifo;
use super::limit::Limit;
use crate::counters::Volume;
use crate::packet::{DropReason, Held};
use fastpath_units::Time;
use std::fmt;

/// Parameters of strict priority.
#[derive(Clone, PartialEq, Debug)]
pub struct PrioSpec {
    /// The limit of each band, in the order of service: 1 to 64 bands. The packet on the wire
    /// counts in its band.
    pub bands: Vec<Limit>,
    /// The band of each DSCP.
    pub classes: Classes,
}

/// Bands of a strict priority scheduler.
#[derive(Debug)]
pub(crate) struct PrioQueue<P> {
    spec: PrioSpec,
    bands: Vec<Fifo<P>>,
    /// The band that was served last: of the packet on the wire, if there is one.
    served: Option<usize>,
}

impl<P> Discipline<P> for PrioQueue<P> {
    type Spec = PrioSpec;

    fn new(spec: &PrioSpec) -> PrioQueue<P> {
        let bands = (0..spec.bands.len().max(1)).map(|_| Fifo::default()).collect();
        PrioQueue { spec: spec.clone(), bands, served: None }
    }

    fn spec(&self) -> PrioSpec {
        self.spec.clone()
    }

    fn reconfigure(&mut self, _: Time, spec: &PrioSpec) -> bool {
        if spec.bands.len() != self.spec.bands.len() || spec.classes != self.spec.classes {
            return false;
        }
        self.spec = spec.clone();
        true
    }

    fn backlog(&self) -> Volume {
        self.bands.iter().map(Fifo::backlog).sum()
    }

    fn enqueue(&mut self, packet: Held<P>, context: &mut QueueContext<'_, P>) -> Result<(), Refused<P>> {
        let band = self.band_of(&packet);
        let queued = self.bands[band].backlog() + context.on_wire_of(self.served == Some(band));
        if !self.spec.bands.get(band).is_some_and(|limit| limit.has_room(packet.len, queued)) {
            return Err((DropReason::QueueFull, packet));
        }
        self.bands[band].push(packet);
        Ok(())
    }

    fn dequeue(&mut self, _: &mut QueueContext<'_, P>) -> Served<P> {
        self.served = self.bands.iter().position(|band| band.front().is_some());
        self.pop_unmanaged().into()
    }

    fn push_unchecked(&mut self, packet: Held<P>) {
        let band = self.band_of(&packet);
        self.bands[band].push(packet);
    }

    fn pop_unmanaged(&mut self) -> Option<Held<P>> {
        self.bands.iter_mut().find_map(Fifo::pop)
    }

    fn reads_headers(_: &PrioSpec) -> bool {
        true
    }

    fn describe(spec: &PrioSpec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "prio {} bands", spec.bands.len())
    }
}

impl<P> PrioQueue<P> {
    fn band_of(&self, packet: &Held<P>) -> usize {
        self.spec.classes.of(packet.traffic_class, self.bands.len())
    }
}
