//! Drop-head: a full queue makes room at its front, so that what is sent is fresh and a sender
//! hears of the loss a queue earlier. T. V. Lakshman, A. Neidhardt, T. J. Ott, "The Drop from Front
//! Strategy in TCP and in TCP over ATM", INFOCOM 1996. `tc qdisc … pfifo_head_drop`.

use super::Limit;
use super::context::{Fifo, Refused, Turn};
use crate::packet::{DropReason, Held};

/// A drop-head queue at work. The packet on the wire counts against the limit but can no longer be
/// dropped.
#[derive(Debug)]
pub(crate) struct DropHead<P> {
    pub(crate) limit: Limit,
    pub(crate) fifo: Fifo<P>,
}

impl<P> DropHead<P> {
    pub(crate) fn new(limit: Limit) -> DropHead<P> {
        DropHead { limit, fifo: Fifo::default() }
    }

    /// Drops from the front until the newcomer fits; refuses one that does not fit even then, and
    /// before anything is dropped for it.
    pub(crate) fn enqueue(&mut self, packet: Held<P>, turn: &mut Turn<'_, P>) -> Result<(), Refused<P>> {
        if !self.limit.has_room(packet.len, turn.on_wire) {
            return Err((DropReason::QueueFull, packet));
        }
        loop {
            let mut queued = self.fifo.volume();
            queued += turn.on_wire;
            if self.limit.has_room(packet.len, queued) {
                break;
            }
            let Some(oldest) = self.fifo.pop() else { break };
            turn.drop(oldest, DropReason::QueueFull);
        }
        self.fifo.push(packet);
        Ok(())
    }
}
