//! A limit in time: a packet that has waited longer than that when its turn comes is dropped, as
//! radio links discard what is too old to send (3GPP TS 38.323 §5.3, discardTimer).

use super::Limit;
use super::context::{Fifo, Refused, Turn};
use crate::packet::{DropReason, Held};
use fastpath_units::Duration;

/// A FIFO with a longest sojourn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SojournSpec {
    /// The longest time from arrival to the start of transmission; exactly that long is still in
    /// time.
    pub longest: Duration,
    /// The bound in space: a newcomer that does not fit is dropped.
    pub limit: Limit,
}

/// The queue at work.
#[derive(Debug)]
pub(crate) struct Sojourn<P> {
    pub(crate) spec: SojournSpec,
    pub(crate) fifo: Fifo<P>,
}

impl<P> Sojourn<P> {
    pub(crate) fn new(spec: SojournSpec) -> Sojourn<P> {
        Sojourn { spec, fifo: Fifo::default() }
    }

    pub(crate) fn enqueue(&mut self, packet: Held<P>, turn: &mut Turn<'_, P>) -> Result<(), Refused<P>> {
        let mut queued = self.fifo.volume();
        queued += turn.on_wire;
        if !self.spec.limit.has_room(packet.len, queued) {
            return Err((DropReason::QueueFull, packet));
        }
        self.fifo.push(packet);
        Ok(())
    }

    pub(crate) fn dequeue(&mut self, turn: &mut Turn<'_, P>) -> Option<Held<P>> {
        loop {
            let packet = self.fifo.pop()?;
            if turn.now.since(packet.time) <= self.spec.longest {
                return Some(packet);
            }
            turn.drop(packet, DropReason::Expired);
        }
    }
}
