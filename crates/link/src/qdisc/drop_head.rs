//! Drop-head: a full queue drops its oldest packet, so that what is sent is fresh and a sender
//! learns of the loss one queueing delay earlier. T. V. Lakshman, A. Neidhardt, T. J. Ott, "The
//! Drop from Front Strategy in TCP and in TCP over ATM", INFOCOM 1996. `tc qdisc …
//! pfifo_head_drop`.

use super::context::{QueueContext, Refused, Served};
use super::discipline::{Discipline, one_fifo};
use super::fifo::Fifo;
use super::limit::Limit;
use crate::packet::{DropReason, Held};
use std::fmt;

/// A drop-head queue. The packet on the wire counts against the limit but cannot be dropped.
#[derive(Debug)]
pub(crate) struct DropHeadQueue<P> {
    spec: Limit,
    fifo: Fifo<P>,
}

impl<P> Discipline<P> for DropHeadQueue<P> {
    one_fifo!(Limit);

    fn new(limit: &Limit) -> DropHeadQueue<P> {
        DropHeadQueue { spec: *limit, fifo: Fifo::default() }
    }

    /// Drops from the front until the packet fits. A packet that cannot fit is refused first.
    fn enqueue(&mut self, packet: Held<P>, context: &mut QueueContext<'_, P>) -> Result<(), Refused<P>> {
        if !self.spec.has_room(packet.len, context.on_wire) {
            return Err((DropReason::QueueFull, packet));
        }
        while !self.spec.has_room(packet.len, self.fifo.backlog() + context.on_wire) {
            let Some(oldest) = self.fifo.pop() else { break };
            context.drop(oldest, DropReason::QueueFull);
        }
        self.fifo.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, _: &mut QueueContext<'_, P>) -> Served<P> {
        self.fifo.pop().into()
    }

    fn describe(limit: &Limit, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "drop-head {limit}")
    }
}
