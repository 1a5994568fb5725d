//! Microengines that process packets: one thread per packet from the first instruction of the leg
//! to the last.
//!
//! Threads without a packet may poll for one, which takes arithmetic from the others. They do so
//! only while another thread of their engine is at work: otherwise nothing would change, and a run
//! would never end.

use super::threads::Threads;
use super::{Queue, What, World};
use crate::machine::{Bind, Full, MicroengineSpec};
use crate::memory::Access;
use crate::outcome::Use;
use crate::program::{Block, Leg, Op, Route};
use crate::scheduler::Tag;
use crate::spec::{Clock, PerByte};
use crate::stats::TimeWeighted;
use fastpath_units::Time;

pub(crate) struct Microengines {
    pub(crate) full: Full,
    threads: Threads,
    engines: u32,
    /// The packet each thread holds.
    held: Vec<Option<u32>>,
    /// The number of the program that looks for a packet, if threads do that, and who is at it.
    poll: Option<usize>,
    polls: Vec<bool>,
    /// Threads of each engine that process a packet.
    working: Vec<u32>,
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
    pub(crate) fn new(spec: &MicroengineSpec, route: &Route, memories: &[String]) -> Microengines {
        let n = (spec.engines * spec.threads) as usize;
        let queues = if spec.bind == Bind::Port { n } else { 1 };
        let mut programs = route.legs.clone();
        let poll = spec.poll.as_ref().map(|poll| {
            let compute =
                Op::Compute { fixed: spec.clock.cycles(poll.compute), per_byte: PerByte::default() };
            let memory = memories.iter().position(|m| m == poll.read.as_ref()).expect("checked");
            let read = Op::Access { memory: memory as u16, access: Access::Read, bytes: poll.bytes };
            let block = Block { per_chunk: false, over: 0, ops: vec![(compute, 1), (read, 1)] };
            programs.push(Leg { unit: 0, tag: Tag::Parallel, skip: None, blocks: vec![block] });
            programs.len() - 1
        });
        Microengines {
            full: spec.queue.full,
            threads: Threads::new(programs, spec.engines, spec.threads, spec.clock.cycles(spec.swap)),
            poll,
            polls: vec![false; n],
            working: vec![0; spec.engines as usize],
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
        let engine = self.engine_of(thread);
        self.working[engine] += 1;
        // Who polls sees the packet at the end of this look.
        if !self.polls[thread as usize] {
            self.run(world, thread, packet);
        }
        if self.poll.is_some() {
            let per_engine = self.threads.len() / self.engines;
            let first = engine as u32 * per_engine;
            (first..first + per_engine).for_each(|t| self.look(world, t));
        }
    }

    fn run(&mut self, world: &mut World, thread: u32, packet: u32) {
        let (leg, size) = (world.packets[packet as usize].leg, world.packets[packet as usize].size);
        let chunks = world.route.chunks(size);
        self.threads.start(world, thread, leg, chunks, size);
    }

    fn engine_of(&self, thread: u32) -> usize {
        (thread / (self.threads.len() / self.engines)) as usize
    }

    /// A thread without a packet looks for one, if another of its engine is at work.
    fn look(&mut self, world: &mut World, thread: u32) {
        let (Some(program), engine) = (self.poll, self.engine_of(thread)) else { return };
        let is_free = self.held[thread as usize].is_none() && !self.polls[thread as usize];
        if is_free && self.working[engine] > self.threads.locked(engine) {
            self.polls[thread as usize] = true;
            self.threads.start(world, thread, program, 1, 0);
        }
    }

    pub(crate) fn handle(&mut self, world: &mut World, what: What, thread: u32) {
        if what == What::Tick {
            self.tick_due = false;
            for (released, queue) in self.released.iter_mut().zip(&self.queues) {
                *released = queue.len();
            }
            (0..self.threads.len()).for_each(|t| self.take_next(world, t));
        } else if self.threads.handle(world, what, thread) {
            if std::mem::take(&mut self.polls[thread as usize]) {
                match self.held[thread as usize] {
                    Some(packet) => self.run(world, thread, packet),
                    None => self.look(world, thread),
                }
                return;
            }
            let engine = self.engine_of(thread);
            self.working[engine] -= 1;
            let packet = self.held[thread as usize].expect("a thread at work has a packet");
            world.end_leg(packet, thread);
            world.hand_on(packet, Some(thread));
        }
    }

    pub(crate) fn release(&mut self, world: &mut World, thread: u32) {
        self.held[thread as usize] = None;
        self.occupied.set(world.now(), self.occupied.level() - 1);
        self.take_next(world, thread);
        self.look(world, thread);
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
