//! Hardware threads that share an arithmetic unit and swap, without preemption, at every memory
//! reference.
//!
//! ```text
//! ready ──► running ──(reference)──► waiting ──(completion)──► ready
//! ```
//!
//! There is one event at the end of each burst of computation and one at each completion. Only here
//! is every memory reference an event, because the question is how much of the latency other
//! threads hide.

use super::behaviour::Setup;
use crate::cache::Touches;
use crate::environment::{Environment, Event, What};
use crate::route::{Cursor, Leg, Op};
use crate::stats::TimeWeighted;
use fastpath_units::{Duration, Time};
use std::collections::VecDeque;

pub(crate) struct Threads {
    /// The programs that threads can run, by number.
    programs: Vec<Leg>,
    /// References into each region.
    touches: Vec<Touches>,
    threads: Vec<Thread>,
    engines: Vec<Engine>,
    per_engine: u32,
    swap: Duration,
    /// The time threads have waited for memory, in total.
    memory: Duration,
}

#[derive(Clone, Copy, Default)]
struct Thread {
    program: usize,
    chunks: u32,
    size: u32,
    cursor: Cursor,
    /// The operation at the end of the current burst; `None` is the end of the program.
    pending: Option<Op>,
}

#[derive(Clone, Default)]
struct Engine {
    running: Option<u32>,
    ready: VecDeque<u32>,
    /// Threads of this engine that wait for memory or a lock, and those that wait for a lock.
    waiting: u32,
    locked: u32,
    computing: TimeWeighted,
    /// Idle while a thread waits for memory: latency that nothing hides.
    exposed: TimeWeighted,
}

impl Threads {
    pub(crate) fn new(
        setup: &Setup,
        programs: Vec<Leg>,
        engines: u32,
        per_engine: u32,
        swap: Duration,
    ) -> Threads {
        Threads {
            programs,
            touches: setup.touches(engines * per_engine),
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
    pub(crate) fn start(
        &mut self,
        env: &mut Environment,
        thread: u32,
        program: usize,
        chunks: u32,
        size: u32,
    ) {
        self.threads[thread as usize] =
            Thread { program, chunks, size, cursor: Cursor::default(), pending: None };
        self.make_ready(env, thread);
    }

    fn make_ready(&mut self, env: &mut Environment, thread: u32) {
        let engine = thread / self.per_engine;
        self.engines[engine as usize].ready.push_back(thread);
        if self.engines[engine as usize].running.is_none() {
            self.dispatch(env, engine);
        }
    }

    /// Runs the thread that has been ready longest.
    fn dispatch(&mut self, env: &mut Environment, engine: u32) {
        let now = env.now();
        let e = &mut self.engines[engine as usize];
        e.running = e.ready.pop_front();
        e.computing.set(now, u64::from(e.running.is_some()));
        e.exposed.set(now, u64::from(e.running.is_none() && e.waiting > 0));
        if let Some(thread) = e.running {
            self.burst(env, thread, self.swap);
        }
    }

    /// Computes up to the next operation that is not computation.
    fn burst(&mut self, env: &mut Environment, thread: u32, mut span: Duration) {
        let t = &mut self.threads[thread as usize];
        let leg = &self.programs[t.program];
        t.pending = loop {
            match t.cursor.next(leg, t.size, t.chunks) {
                Some(Op::Compute { fixed, per_byte }) => span += fixed + per_byte.times(t.size),
                other => break other,
            }
        };
        env.after(span, What::Done, thread);
    }

    /// Handles an event of `thread`; true if its program has ended.
    pub(crate) fn handle(&mut self, env: &mut Environment, what: What, thread: u32) -> bool {
        let engine = thread / self.per_engine;
        if what == What::Wake {
            let e = &mut self.engines[engine as usize];
            e.waiting -= 1;
            if let Some(Op::Enter(_)) = self.threads[thread as usize].pending {
                e.locked -= 1;
            }
            e.exposed.set(env.now(), u64::from(e.running.is_none() && e.waiting > 0));
            self.make_ready(env, thread);
            return false;
        }
        match self.threads[thread as usize].pending {
            None => {
                self.dispatch(env, engine);
                return true;
            }
            Some(Op::Access { memory, access, bytes }) => {
                let now = env.now();
                let done = env.memories[usize::from(memory)].request(now, access, bytes, &mut env.rng);
                self.wait_until(env, thread, done);
            }
            Some(Op::Touch { region }) => {
                let done = env.now() + self.touches[usize::from(region)].draw(&mut env.rng, false);
                self.wait_until(env, thread, done);
            }
            Some(Op::Enter(lock)) => {
                let me = (env.unit, thread);
                let lock = &mut env.locks[usize::from(lock)];
                if lock.holder.is_none() {
                    lock.holder = Some(me);
                    self.burst(env, thread, Duration::ZERO);
                } else {
                    lock.waiters.push_back(me);
                    self.engines[engine as usize].waiting += 1;
                    self.engines[engine as usize].locked += 1;
                    self.dispatch(env, engine);
                }
            }
            Some(Op::Leave(lock)) => {
                let lock = &mut env.locks[usize::from(lock)];
                lock.holder = lock.waiters.pop_front();
                if let Some((unit, server)) = lock.holder {
                    env.kernel.after(Duration::ZERO, Event { unit, what: What::Wake, server });
                }
                self.burst(env, thread, Duration::ZERO);
            }
            Some(Op::Compute { .. }) => unreachable!("computation is part of the burst"),
        }
        false
    }

    fn wait_until(&mut self, env: &mut Environment, thread: u32, done: Time) {
        self.memory += done - env.now();
        let engine = thread / self.per_engine;
        self.engines[engine as usize].waiting += 1;
        env.at(done, What::Wake, thread);
        self.dispatch(env, engine);
    }

    /// The share of time in which the arithmetic units computed, over the run.
    pub(crate) fn computing(&self, end: Time) -> f64 {
        self.engines.iter().map(|e| e.computing.mean(end)).sum::<f64>() / self.engines.len() as f64
    }

    /// Returns u, the share of the memory time of threads in which their engine computed for other
    /// threads. `None` if no thread waited for memory.
    pub(crate) fn hidden(&self, end: Time) -> Option<f64> {
        let exposed: f64 = self.engines.iter().map(|e| e.exposed.mean(end) * end.as_secs_f64()).sum();
        (!self.memory.is_zero()).then(|| 1.0 - exposed / self.memory.as_secs_f64())
    }
}
