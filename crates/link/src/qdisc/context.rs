//! What a discipline may read and change at an arrival or a departure, and its answers.

use crate::counters::{Counters, Volume};
use crate::framing::Framing;
use crate::packet::{DropReason, Fate, Held};
use fastpath_units::{Rate, Rng, Time};
use std::collections::VecDeque;

/// A packet that leaves the pipe at `at` without passing the delay line.
#[derive(Debug)]
pub(crate) struct EarlyExit<P> {
    pub(crate) at: Time,
    pub(crate) packet: Held<P>,
    pub(crate) fate: Fate,
}

/// The state of the pipe at one arrival or departure, and where drops and marks go.
pub(crate) struct QueueContext<'a, P> {
    pub(crate) now: Time,
    /// The packet in transmission, which counts against limits.
    pub(crate) on_wire: Volume,
    /// The rate at which it is sent.
    pub(crate) rate: Option<Rate>,
    /// The bytes of a frame on the wire.
    pub(crate) framing: Framing,
    /// The end of the newest transmission: since then the wire is idle, if it is.
    pub(crate) idle_since: Time,
    pub(crate) rng: &'a mut Rng,
    pub(crate) counters: &'a mut Counters,
    pub(crate) early_exits: &'a mut VecDeque<EarlyExit<P>>,
}

impl<P> QueueContext<'_, P> {
    /// Returns the packet on the wire if it `is_of_class`, for classes with their own limits.
    pub(crate) fn on_wire_of(&self, is_of_class: bool) -> Volume {
        if is_of_class { self.on_wire } else { Volume::default() }
    }

    /// Drops a packet that was queued.
    pub(crate) fn drop(&mut self, packet: Held<P>, reason: DropReason) {
        if packet.is_cross() {
            return self.counters.cross.dropped.add_packet(packet.len);
        }
        self.early_exits.push_back(EarlyExit { at: self.now, packet, fate: Fate::Dropped(reason) });
    }

    /// Sets ECN CE on a packet and counts the mark.
    pub(crate) fn mark(&mut self, packet: &mut Held<P>) {
        packet.mark();
        self.counters.marked += 1;
    }
}

/// The answer to [`Discipline::dequeue`](super::Discipline::dequeue).
#[derive(Debug)]
pub(crate) enum Served<P> {
    /// A packet to send now.
    Packet(Held<P>),
    /// Packets wait, but none may be sent before this instant.
    Later(Time),
    /// Nothing waits.
    Nothing,
}

impl<P> From<Option<Held<P>>> for Served<P> {
    fn from(packet: Option<Held<P>>) -> Served<P> {
        packet.map_or(Served::Nothing, Served::Packet)
    }
}

/// A packet that was refused at arrival, and the reason.
pub(crate) type Refused<P> = (DropReason, Held<P>);
