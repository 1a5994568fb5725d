//! A first-in first-out list of packets.

use super::context::{QueueContext, Refused};
use super::limit::Limit;
use crate::counters::Volume;
use crate::packet::{DropReason, Held};
use std::collections::VecDeque;

/// Packets that wait in order of arrival.
#[derive(Debug)]
pub(crate) struct Fifo<P> {
    packets: VecDeque<Held<P>>,
    backlog: Volume,
}

impl<P> Default for Fifo<P> {
    fn default() -> Fifo<P> {
        Fifo { packets: VecDeque::new(), backlog: Volume::default() }
    }
}

impl<P> Fifo<P> {
    pub(crate) fn push(&mut self, packet: Held<P>) {
        self.backlog.add_packet(packet.len);
        self.packets.push_back(packet);
    }

    /// Appends a packet if it fits `limit` together with the packet on the wire.
    pub(crate) fn push_within(
        &mut self,
        limit: Limit,
        packet: Held<P>,
        context: &QueueContext<'_, P>,
    ) -> Result<(), Refused<P>> {
        if !limit.has_room(packet.len, self.backlog + context.on_wire) {
            return Err((DropReason::QueueFull, packet));
        }
        self.push(packet);
        Ok(())
    }

    pub(crate) fn pop(&mut self) -> Option<Held<P>> {
        let packet = self.packets.pop_front()?;
        self.backlog.remove_packet(packet.len);
        Some(packet)
    }

    /// Returns the oldest packet.
    pub(crate) fn front(&self) -> Option<&Held<P>> {
        self.packets.front()
    }

    pub(crate) fn backlog(&self) -> Volume {
        self.backlog
    }
}
