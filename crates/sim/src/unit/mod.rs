//! The parts of a machine at work. Each unit has the same verbs, one file each:
//!
//! ```text
//! offer ──► [queue] ──► server ──► world.finish ──► (the run offers it to the next unit) ──► release
//! ```
//!
//! A server keeps its packet until the next unit has taken it: that is what makes a full ring push
//! back, and a circle of full rings a deadlock. Units never call each other; they meet in the
//! [`World`].

mod cores;
mod egress;
mod line;
mod microengine;
mod station;
mod threads;

pub(crate) use cores::Cores;
pub(crate) use egress::Egress;
pub(crate) use line::Line;
pub(crate) use microengine::Microengines;
pub(crate) use station::Station;

use crate::cache::CacheSpec;
use crate::kernel::Kernel;
use crate::machine::{Full, Machine};
use crate::memory::Memory;
use crate::outcome::Use;
use crate::program::Route;
use crate::run::Visit;
use crate::stats::TimeWeighted;
use crate::workload::Workload;
use fastpath_units::{Duration, Rng, Time};
use std::collections::VecDeque;

/// What happens next, to which server of which unit. Small: it lies in the event list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) unit: u16,
    pub(crate) what: What,
    pub(crate) server: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum What {
    /// A frame arrives on a port (the event's `server`).
    Arrival,
    /// A server has done what it was doing.
    Done,
    /// A thread may go on.
    Wake,
    /// A gate opens.
    Tick,
    /// A transmit state machine has moved a chunk.
    Moved,
    /// A port has sent a chunk.
    Sent,
}

/// A packet inside the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// The how-manieth of the run.
    pub(crate) id: u64,
    pub(crate) arrived: Time,
    /// When the server it is at took it.
    pub(crate) started: Time,
    pub(crate) size: u32,
    pub(crate) flow: u32,
    /// The how-manieth of its flow.
    pub(crate) order: u64,
    pub(crate) port_in: u32,
    pub(crate) port_out: u32,
    pub(crate) leg: usize,
}

/// A packet that has finished a leg (its `leg` is already the next), and the server that still
/// holds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    pub(crate) packet: u32,
    pub(crate) unit: u16,
    pub(crate) server: Option<u32>,
}

/// A critical section of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lock {
    pub(crate) holder: Option<(u16, u32)>,
    pub(crate) waiters: VecDeque<(u16, u32)>,
}

/// What all units share.
pub(crate) struct World<'a> {
    pub(crate) kernel: Kernel<Event>,
    pub(crate) packets: Vec<Packet>,
    pub(crate) route: &'a Route,
    pub(crate) workload: &'a Workload,
    pub(crate) memories: Vec<Memory>,
    pub(crate) caches: &'a [CacheSpec],
    pub(crate) locks: Vec<Lock>,
    pub(crate) rng: Rng,
    pub(crate) finished: VecDeque<Finished>,
    /// Packets lost inside a unit: packet and why.
    pub(crate) lost: Vec<(u32, &'static str)>,
    /// The unit whose turn it is.
    pub(crate) unit: u16,
    pub(crate) observer: Option<&'a mut dyn FnMut(Visit)>,
}

impl World<'_> {
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

    /// A server starts on `packet`.
    pub(crate) fn start(&mut self, packet: u32) {
        self.packets[packet as usize].started = self.now();
    }

    /// A leg of `packet` has ended at `server`: decides what comes next, and tells the observer.
    pub(crate) fn end_leg(&mut self, packet: u32, server: u32) {
        let (unit, now) = (self.unit, self.now());
        let p = &mut self.packets[packet as usize];
        if let Some(observer) = &mut self.observer {
            observer(Visit {
                unit: usize::from(unit),
                server,
                packet: p.id,
                leg: p.leg,
                start: p.started,
                end: now,
            });
        }
        let skip = self.route.legs[p.leg].skip.and_then(|skip| skip.target(p.flow, &mut self.rng));
        p.leg = skip.unwrap_or(p.leg + 1);
    }

    /// Hands `packet` on; `server` keeps it until it is taken.
    pub(crate) fn hand_on(&mut self, packet: u32, server: Option<u32>) {
        self.finished.push_back(Finished { packet, unit: self.unit, server });
    }
}

/// A unit of the machine at work.
pub(crate) enum Unit {
    Station(Station),
    Cores(Box<Cores>),
    Microengines(Box<Microengines>),
    Egress(Box<Egress>),
    Line(Line),
}

impl Unit {
    /// The units of `machine` in the order of [`Machine::units`].
    pub(crate) fn all(machine: &Machine, route: &Route, links: u32) -> Vec<Unit> {
        let memories = machine.memories();
        let station = machine.station.iter().map(|s| Unit::Station(Station::new(s)));
        let cores = machine.cores.iter().map(|c| Unit::Cores(Box::new(Cores::new(c, links))));
        let microengine = machine
            .microengine
            .iter()
            .map(|m| Unit::Microengines(Box::new(Microengines::new(m, route, &memories))));
        let mut units: Vec<Unit> = station.chain(cores).chain(microengine).collect();
        for spec in &machine.egress {
            let leg = route.legs.iter().find(|leg| leg.unit == units.len());
            units.push(Unit::Egress(Box::new(Egress::new(spec, &machine.ports, leg))));
        }
        units.extend(machine.line.iter().map(|l| Unit::Line(Line::new(l, &machine.ports))));
        units
    }

    /// Takes `packet` into the queue or a server; false if there is no room.
    pub(crate) fn offer(&mut self, world: &mut World, packet: u32) -> bool {
        match self {
            Unit::Station(u) => u.offer(world, packet),
            Unit::Cores(u) => u.offer(world, packet),
            Unit::Microengines(u) => u.offer(world, packet),
            Unit::Egress(u) => u.offer(world, packet),
            Unit::Line(u) => u.offer(world, packet),
        }
    }

    pub(crate) fn handle(&mut self, world: &mut World, event: Event) {
        match self {
            Unit::Station(u) => u.handle(world, event.server),
            Unit::Cores(u) => u.handle(world, event.server),
            Unit::Microengines(u) => u.handle(world, event.what, event.server),
            Unit::Egress(u) => u.handle(world, event.what, event.server),
            Unit::Line(u) => u.handle(world, event.server),
        }
    }

    /// The packet `server` held has been taken (or dropped): the server may take its next.
    pub(crate) fn release(&mut self, world: &mut World, server: u32) {
        match self {
            Unit::Station(u) => u.release(world, server),
            Unit::Cores(u) => u.release(world, server),
            Unit::Microengines(u) => u.release(world, server),
            Unit::Egress(_) => {}
            Unit::Line(u) => u.release(world, server),
        }
    }

    pub(crate) fn full(&self) -> Full {
        match self {
            Unit::Station(u) => u.queue.full,
            Unit::Cores(u) => u.full,
            Unit::Microengines(u) => u.full,
            Unit::Egress(u) => u.full,
            Unit::Line(u) => u.full,
        }
    }

    /// How much of it was used, over the run that ended at `end`.
    pub(crate) fn usage(&self, end: Time) -> Use {
        match self {
            Unit::Station(u) => u.usage(end),
            Unit::Cores(u) => u.usage(end),
            Unit::Microengines(u) => u.usage(end),
            Unit::Egress(u) => u.usage(end),
            Unit::Line(u) => u.usage(end),
        }
    }
}

/// A bounded first-come-first-served queue.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    packets: VecDeque<u32>,
    limit: usize,
    pub(crate) full: Full,
    pub(crate) length: TimeWeighted,
}

impl Queue {
    pub(crate) fn new(limit: usize, full: Full) -> Queue {
        Queue { packets: VecDeque::new(), limit, full, length: TimeWeighted::default() }
    }

    pub(crate) fn push(&mut self, now: Time, packet: u32) -> bool {
        let fits = self.packets.len() < self.limit;
        if fits {
            self.packets.push_back(packet);
            self.length.set(now, self.packets.len() as u64);
        }
        fits
    }

    pub(crate) fn pop(&mut self, now: Time) -> Option<u32> {
        let packet = self.packets.pop_front()?;
        self.length.set(now, self.packets.len() as u64);
        Some(packet)
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }
}
