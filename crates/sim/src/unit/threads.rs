//! Hardware threads that share an arithmetic unit and swap, without preemption, at every memory
//! reference.
//!
//! ```text
//! ready ──► running ──(reference)──► waiting ──(completion)──► ready
//! ```
//!
//! One event at the end of each burst of computation and one at each completion: this is the one
//! place where every memory reference is an event, because how much of the latency other threads
//! hide is the question.

use super::{Event, What, World};
use crate::program::{Cursor, Leg, Op};
use crate::stats::TimeWeighted;
use fastpath_units::{Duration, Time};
use std::collections::VecDeque;

pub(crate) struct Threads {
    /// What a thread can run, by number.
    programs: Vec<Leg>,
    threads: Vec<Thread>,
    engines: Vec<Engine>,
    per_engine: u32,
    swap: Duration,
    /// Time threads have waited for memory, added up.
    memory: Duration,
}

#[derive(Clone, Copy, Default)]
struct Thread {
    program: usize,
    chunks: u32,
    size: u32,
    cursor: Cursor,
    /// What the burst in progress ends with; `None` is the end of the program.
    pending: Option<Op>,
}

#[derive(Clone, Default)]
struct Engine {
    running: Option<u32>,
    ready: VecDeque<u32>,
    /// Threads of this engine waiting for memory or a lock, and those of them that wait for a lock.
    waiting: u32,
    locked: u32,
    computing: TimeWeighted,
    /// Idle although a thread waits for memory: latency that nothing hides.
    exposed: TimeWeighted,
}

impl Threads {
    pub(crate) fn new(programs: Vec<Leg>, engines: u32, per_engine: u32, swap: Duration) -> Threads {
        Threads {
            programs,
            threads: vec![Thread::default(); (engines * per_engine) as usize],
            engines: vec![Engine::default(); engines as usize],
            per_engine,
            swap,
            memory: Duration::ZERO,
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.threads.len() as u32
    }

    /// Threads of the engine of `thread` that are ready or running.
    pub(crate) fn load(&self, thread: u32) -> usize {
        let engine = &self.engines[(thread / self.per_engine) as usize];
        engine.ready.len() + usize::from(engine.running.is_some()) + engine.waiting as usize
    }

    /// Threads of an engine that wait for a lock.
    pub(crate) fn locked(&self, engine: usize) -> u32 {
        self.engines[engine].locked
    }

    /// Makes `thread` run program number `program` for a packet of `size` bytes in `chunks` chunks.
    pub(crate) fn start(&mut self, world: &mut World, thread: u32, program: usize, chunks: u32, size: u32) {
        self.threads[thread as usize] =
            Thread { program, chunks, size, cursor: Cursor::default(), pending: None };
        self.make_ready(world, thread);
    }

    fn make_ready(&mut self, world: &mut World, thread: u32) {
        let engine = thread / self.per_engine;
        self.engines[engine as usize].ready.push_back(thread);
        if self.engines[engine as usize].running.is_none() {
            self.dispatch(world, engine);
        }
    }

    /// The engine takes the thread that has been ready longest.
    fn dispatch(&mut self, world: &mut World, engine: u32) {
        let now = world.now();
        let e = &mut self.engines[engine as usize];
        e.running = e.ready.pop_front();
        e.computing.set(now, u64::from(e.running.is_some()));
        e.exposed.set(now, u64::from(e.running.is_none() && e.waiting > 0));
        if let Some(thread) = e.running {
            self.burst(world, thread, self.swap);
        }
    }

    /// Computes up to the next operation that is not computation.
    fn burst(&mut self, world: &mut World, thread: u32, mut span: Duration) {
        let t = &mut self.threads[thread as usize];
        let leg = &self.programs[t.program];
        t.pending = loop {
            match t.cursor.next(leg, t.size, t.chunks) {
                Some(Op::Compute { fixed, per_byte }) => span += fixed + per_byte.times(t.size),
                other => break other,
            }
        };
        world.after(span, What::Done, thread);
    }

    /// Handles an event of `thread`; true when its program has ended.
    pub(crate) fn handle(&mut self, world: &mut World, what: What, thread: u32) -> bool {
        let engine = thread / self.per_engine;
        if what == What::Wake {
            let e = &mut self.engines[engine as usize];
            e.waiting -= 1;
            if let Some(Op::Enter(_)) = self.threads[thread as usize].pending {
                e.locked -= 1;
            }
            e.exposed.set(world.now(), u64::from(e.running.is_none() && e.waiting > 0));
            self.make_ready(world, thread);
            return false;
        }
        match self.threads[thread as usize].pending {
            None => {
                self.dispatch(world, engine);
                return true;
            }
            Some(Op::Access { memory, access, bytes }) => {
                let now = world.now();
                let done = world.memories[usize::from(memory)].request(now, access, bytes, &mut world.rng);
                self.wait_until(world, thread, done);
            }
            Some(Op::Touch { region }) => {
                let (bytes, cache) = world.route.regions[usize::from(region)];
                let latency = world.caches[cache].draw(bytes, self.threads.len() as u32, &mut world.rng);
                let done = world.now() + latency;
                self.wait_until(world, thread, done);
            }
            Some(Op::Enter(lock)) => {
                let me = (world.unit, thread);
                let lock = &mut world.locks[usize::from(lock)];
                if lock.holder.is_none() {
                    lock.holder = Some(me);
                    self.burst(world, thread, Duration::ZERO);
                } else {
                    lock.waiters.push_back(me);
                    self.engines[engine as usize].waiting += 1;
                    self.engines[engine as usize].locked += 1;
                    self.dispatch(world, engine);
                }
            }
            Some(Op::Leave(lock)) => {
                let lock = &mut world.locks[usize::from(lock)];
                lock.holder = lock.waiters.pop_front();
                if let Some((unit, server)) = lock.holder {
                    world.kernel.after(Duration::ZERO, Event { unit, what: What::Wake, server });
                }
                self.burst(world, thread, Duration::ZERO);
            }
            Some(Op::Compute { .. }) => unreachable!("computation is part of the burst"),
        }
        false
    }

    fn wait_until(&mut self, world: &mut World, thread: u32, done: Time) {
        self.memory += done - world.now();
        let engine = thread / self.per_engine;
        self.engines[engine as usize].waiting += 1;
        world.at(done, What::Wake, thread);
        self.dispatch(world, engine);
    }

    /// The share of time the arithmetic units computed, over the run.
    pub(crate) fn computing(&self, end: Time) -> f64 {
        self.engines.iter().map(|e| e.computing.mean(end)).sum::<f64>() / self.engines.len() as f64
    }

    /// u: the fraction of the threads' memory time during which their engine computed. `None`
    /// without memory.
    pub(crate) fn hidden(&self, end: Time) -> Option<f64> {
        let exposed: f64 = self.engines.iter().map(|e| e.exposed.mean(end) * end.as_secs_f64()).sum();
        (!self.memory.is_zero()).then(|| 1.0 - exposed / self.memory.as_secs_f64())
    }
}
