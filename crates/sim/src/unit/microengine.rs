//! Microengines that process packets: one thread per packet from the first instruction of the leg to the last.

use super::threads::Threads;
use super::{Queue, What, World};
use crate::machine::{Bind, Full, MicroengineSpec};
use crate::outcome::Use;
use crate::program::Route;
use crate::spec::Clock;
use crate::stats::TimeWeighted;
use fastpath_units::Time;

pub(crate) struct Microengines {
    pub(crate) full: Full,
    threads: Threads,
    engines: u32,
    /// The packet each thread holds.
    held: Vec<Option<u32>>,
    bind: Bind,
    /// One queue, or one per thread.
    queues: Vec<Queue>,
    /// With a tick: packets of each queue that the last tick has released.
    released: Vec<usize>,
    tick: Option<Clock>,
    tick_due: bool,
    occupied: TimeWeighted,
}

impl Microengines {
    pub(crate) fn new(spec: &MicroengineSpec, route: &Route) -> Microengines {
        let n = (spec.engines * spec.threads) as usize;
        let queues = if spec.bind == Bind::Port { n } else { 1 };
        Microengines {
            full: spec.queue.full,
            threads: Threads::new(
                route.legs.clone(),
                spec.engines,
                spec.threads,
                spec.clock.cycles(spec.swap),
            ),
            engines: spec.engines,
            held: vec![None; n],
            bind: spec.bind,
            queues: vec![Queue::new(spec.queue.limit, spec.queue.full); queues],
            released: vec![0; queues],
            tick: spec.tick,
            tick_due: false,
            occupied: TimeWeighted::default(),
        }
    }

    /// The thread of a port: ports are dealt to the engines first, then to their threads.
    fn thread_of(&self, port: u32) -> u32 {
        let per_engine = self.threads.len() / self.engines;
        (port % self.engines) * per_engine + (port / self.engines) % per_engine
    }

    fn queue_of(&self, thread: u32) -> usize {
        if self.bind == Bind::Port { thread as usize } else { 0 }
    }

    pub(crate) fn offer(&mut self, world: &mut World, packet: u32) -> bool {
        let thread = match self.bind {
            Bind::Port => Some(self.thread_of(world.packets[packet as usize].port_in)),
            Bind::Any => (0..self.threads.len())
                .filter(|&t| self.held[t as usize].is_none())
                .min_by_key(|&t| (self.threads.load(t), t)),
        };
        let queue = thread.map_or(0, |t| self.queue_of(t));
        let free = thread.filter(|&t| self.held[t as usize].is_none() && self.queues[queue].len() == 0);
        if let (Some(thread), None) = (free, self.tick) {
            self.serve(world, thread, packet);
            return true;
        }
        let fits = self.queues[queue].push(world.now(), packet);
        if let Some(tick) = self.tick.filter(|_| fits && !self.tick_due) {
            self.tick_due = true;
            let count = (tick.count(world.now().since(Time::ZERO)) + 1e-6).floor() as u64 + 1;
            world.at(Time::ZERO + tick.cycles(count), What::Tick, 0);
        }
        fits
    }

    fn serve(&mut self, world: &mut World, thread: u32, packet: u32) {
        self.held[thread as usize] = Some(packet);
        self.occupied.set(world.now(), self.occupied.level() + 1);
        world.start(packet);
        let (leg, size) = (world.packets[packet as usize].leg, world.packets[packet as usize].size);
        let chunks = world.route.chunks(size);
        self.threads.start(world, thread, leg, chunks, size);
    }

    pub(crate) fn handle(&mut self, world: &mut World, what: What, thread: u32) {
        if what == What::Tick {
            self.tick_due = false;
            for (released, queue) in self.released.iter_mut().zip(&self.queues) {
                *released = queue.len();
            }
            (0..self.threads.len()).for_each(|t| self.take_next(world, t));
        } else if self.threads.handle(world, what, thread) {
            let packet = self.held[thread as usize].expect("a thread at work has a packet");
            world.end_leg(packet, thread);
            world.hand_on(packet, Some(thread));
        }
    }

    pub(crate) fn release(&mut self, world: &mut World, thread: u32) {
        self.held[thread as usize] = None;
        self.occupied.set(world.now(), self.occupied.level() - 1);
        self.take_next(world, thread);
    }

    /// A free thread takes the next packet of its queue that has been released.
    fn take_next(&mut self, world: &mut World, thread: u32) {
        let queue = self.queue_of(thread);
        if self.held[thread as usize].is_some() || (self.tick.is_some() && self.released[queue] == 0) {
            return;
        }
        if let Some(packet) = self.queues[queue].pop(world.now()) {
            self.released[queue] = self.released[queue].saturating_sub(1);
            self.serve(world, thread, packet);
        }
    }

    pub(crate) fn usage(&self, end: Time) -> Use {
        Use {
            busy: self.occupied.mean(end) / self.held.len() as f64,
            computing: Some(self.threads.computing(end)),
            hidden: self.threads.hidden(end),
            queue_mean: self.queues.iter().map(|q| q.length.mean(end)).sum(),
            queue_max: self.queues.iter().map(|q| q.length.max()).max().unwrap_or(0),
        }
    }
}
