//! A limit in time: a packet that has waited longer than the limit when its transmission would
//! start is dropped. Radio links discard packets in this way (3GPP TS 38.323 §5.3, discardTimer).

use super::context::{QueueContext, Refused, Served};
use super::discipline::{Discipline, one_fifo};
use super::fifo::Fifo;
use super::limit::Limit;
use crate::packet::{DropReason, Held};
use fastpath_units::Duration;
use std::fmt;

/// Parameters of a FIFO with a bound on the sojourn time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SojournSpec {
    /// The longest time from arrival to the start of transmission. A packet that has waited exactly
    /// this long is sent.
    pub longest: Duration,
    /// The hard limit; an arriving packet that does not fit is dropped.
    pub limit: Limit,
}

/// A FIFO that drops packets that have waited too long.
#[derive(Debug)]
pub(crate) struct SojournQueue<P> {
    spec: SojournSpec,
    fifo: Fifo<P>,
}

impl<P> Discipline<P> for SojournQueue<P> {
    one_fifo!(SojournSpec);

    fn new(spec: &SojournSpec) -> SojournQueue<P> {
        SojournQueue { spec: *spec, fifo: Fifo::default() }
    }

    fn enqueue(&mut self, packet: Held<P>, context: &mut QueueContext<'_, P>) -> Result<(), Refused<P>> {
        self.fifo.push_within(self.spec.limit, packet, context)
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_, P>) -> Served<P> {
        while let Some(packet) = self.fifo.pop() {
            if context.now.since(packet.time) <= self.spec.longest {
                return Served::Packet(packet);
            }
            context.drop(packet, DropReason::Expired);
        }
        Served::Nothing
    }

    fn describe(spec: &SojournSpec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sojourn {} limit {}", spec.longest, spec.limit)
    }
}
