//! What the units of a machine share while a run is in progress: the event list, the packets, the
//! memories, the locks and the random generator.
//!
//! Units never call each other. A unit schedules events, ends legs and passes packets on through
//! the [`Environment`]; the run handles the events and the ends of legs.

use crate::kernel::Kernel;
use crate::memory::Memory;
use crate::route::Route;
use crate::trace::Visit;
use crate::workload::Workload;
use fastpath_units::{Duration, Rng, Time};
use std::collections::VecDeque;

/// What happens next, at which server of which unit. Small, because the event list holds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) unit: u16,
    pub(crate) what: What,
    pub(crate) server: u32,
}

/// The kind of an event. The numbers are part of the trace hash: append, do not reorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum What {
    /// A frame arrives on a port (the event's `server`).
    Arrival,
    /// A server has finished its current work.
    Done,
    /// A thread may continue.
    Wake,
    /// A clock ticks.
    Tick,
    /// A transmit state machine has moved a chunk.
    Moved,
    /// A port has sent a chunk.
    Sent,
    /// A customer of a closed workload (the event's `server`) sends its next frame.
    Return,
}

/// A packet inside the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Its number in the run, from 0.
    pub(crate) id: u64,
    pub(crate) arrived: Time,
    /// When its current server took it.
    pub(crate) started: Time,
    /// Bytes with FCS.
    pub(crate) size: u32,
    pub(crate) flow: u32,
    /// Its number in its flow, from 0.
    pub(crate) order: u64,
    pub(crate) port_in: u32,
    pub(crate) port_out: u32,
    /// The leg that is next or in progress; see [`Packet::leg`].
    pub(crate) leg: u32,
    /// Its receive queue, if a NIC has chosen one.
    pub(crate) queue: Option<u16>,
    /// True while its bytes are in the cache that a bus has written them to.
    pub(crate) is_cached: bool,
    /// True for a copy that a link made: it is not the frame that arrived.
    pub(crate) is_copy: bool,
}

impl Packet {
    /// The number of its leg in the route.
    #[inline]
    pub(crate) const fn leg(&self) -> usize {
        self.leg as usize
    }
}

/// A packet that has finished a leg (its `leg` is already the next one), and the server that still
/// holds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    pub(crate) packet: u32,
    pub(crate) unit: u16,
    pub(crate) server: Option<u32>,
}

/// A packet that a unit has dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    pub(crate) packet: u32,
    pub(crate) unit: u16,
    pub(crate) reason: &'static str,
}

/// A critical section of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lock {
    pub(crate) holder: Option<(u16, u32)>,
    pub(crate) waiters: VecDeque<(u16, u32)>,
}

/// The state that all units share.
pub(crate) struct Environment<'a> {
    pub(crate) kernel: Kernel<Event>,
    pub(crate) packets: Vec<Packet>,
    /// Numbers of `packets` that are free.
    pub(crate) free: Vec<u32>,
    /// Copies that links have made.
    pub(crate) copies: u64,
    pub(crate) route: &'a Route,
    pub(crate) workload: &'a Workload,
    pub(crate) memories: Vec<Memory>,
    pub(crate) locks: Vec<Lock>,
    pub(crate) rng: Rng,
    pub(crate) finished: VecDeque<Finished>,
    /// Packets dropped inside a unit.
    pub(crate) lost: Vec<Lost>,
    /// The unit that is at work.
    pub(crate) unit: u16,
    pub(crate) observer: Option<&'a mut dyn FnMut(Visit)>,
}

impl Environment<'_> {
    pub(crate) fn now(&self) -> Time {
        self.kernel.now()
    }

    #[inline]
    pub(crate) fn after(&mut self, span: Duration, what: What, server: u32) {
        self.kernel.after(span, Event { unit: self.unit, what, server });
    }

    #[inline]
    pub(crate) fn at(&mut self, at: Time, what: What, server: u32) {
        self.kernel.schedule(at, Event { unit: self.unit, what, server });
    }

    /// The traffic class of a packet, 0 first.
    #[inline]
    pub(crate) fn class(&self, packet: u32) -> usize {
        (self.packets[packet as usize].flow % self.workload.priorities) as usize
    }

    /// Stores a packet and returns its number.
    #[inline]
    pub(crate) fn add(&mut self, packet: Packet) -> u32 {
        let number = self.free.pop().unwrap_or(self.packets.len() as u32);
        match self.packets.get_mut(number as usize) {
            Some(place) => *place = packet,
            None => self.packets.push(packet),
        }
        number
    }

    /// Adds a copy of `packet` to the machine and returns its number.
    pub(crate) fn copy(&mut self, packet: u32) -> u32 {
        self.copies += 1;
        self.add(Packet { is_copy: true, ..self.packets[packet as usize] })
    }

    /// Notes that a server starts on `packet`.
    #[inline]
    pub(crate) fn start(&mut self, packet: u32) {
        self.packets[packet as usize].started = self.now();
    }

    /// Ends the current leg of `packet` at `server`: reports the visit to the observer and decides
    /// which leg is next.
    #[inline]
    pub(crate) fn end_leg(&mut self, packet: u32, server: u32) {
        let (unit, now) = (self.unit, self.now());
        let p = &mut self.packets[packet as usize];
        if let Some(observer) = &mut self.observer {
            observer(Visit {
                unit: usize::from(unit),
                server,
                packet: p.id,
                leg: p.leg(),
                start: p.started,
                end: now,
            });
        }
        let leg = &self.route.legs[p.leg()];
        p.size = leg.resized(p.size);
        let skip = leg.skip.and_then(|skip| skip.target(p.flow, &mut self.rng));
        p.leg = skip.map_or(p.leg + 1, |to| to as u32);
    }

    /// Passes `packet` on to its next unit. `server` holds the packet until that unit takes it.
    #[inline]
    pub(crate) fn pass_on(&mut self, packet: u32, server: Option<u32>) {
        self.finished.push_back(Finished { packet, unit: self.unit, server });
    }

    /// Drops `packet` in the current unit.
    pub(crate) fn drop(&mut self, packet: u32, reason: &'static str) {
        self.lost.push(Lost { packet, unit: self.unit, reason });
    }
}
