//! Microengines that process packets: one thread per packet, from the first operation of the leg to
//! the last. The threads of an engine share its arithmetic unit and swap at memory references.
//!
//! ```toml
//! [[microengine]]
//! name = "me1"
//! engines = 1
//! threads = 4                   # of each engine
//! clock = "232MHz"
//! swap = 3                      # cycles lost at each swap
//! bind = "port"                 # thread of the input port; absent: any free thread
//! poll = { compute = 18, read = "scratch" }    # what threads without a packet do
//! tick = "8192Hz"               # packets are released to the threads at these ticks only
//! queue = { limit = 2 }
//! ```
//!
//! Threads without a packet may poll for one, which takes computing time from the others. They poll
//! only while another thread of their engine is at work. On an idle engine polling changes nothing,
//! and a run that simulated it would never end.

use super::behaviour::{Setup, Surroundings, UnitModel, UnitType, check_servers, put_servers};
use super::threads::Threads;
use crate::environment::{Environment, What};
use crate::keys::{read_table, read_word};
use crate::memory::Access;
use crate::outcome::Use;
use crate::ports::PortsSpec;
use crate::queue::{Full, Queue, QueueSpec};
use crate::route::{Leg, Op};
use crate::spec::{Clock, Name, PerByte, WORD, find};
use crate::stats::TimeWeighted;
use fastpath_text::mistake::Remarks;
use fastpath_units::Time;

#[derive(Clone, Debug)]
pub(crate) struct MicroengineSpec {
    name: Name,
    engines: u32,
    threads: u32,
    clock: Clock,
    /// Cycles lost at each swap.
    swap: u64,
    bind: Bind,
    /// What threads without a packet do.
    pub(crate) poll: Option<PollLoopSpec>,
    /// Packets are released to the threads only at ticks of this clock.
    tick: Option<Clock>,
    queue: QueueSpec,
}

/// Which thread of a microengine takes a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Bind {
    /// Any free thread, from one queue.
    #[default]
    Any,
    /// Thread `port mod threads`, each with its own queue.
    Port,
}

/// The loop of a thread that waits for a packet: compute, refer to a memory or status register,
/// repeat.
#[derive(Clone, Debug)]
pub(crate) struct PollLoopSpec {
    /// Cycles of computation per poll.
    compute: u64,
    /// The memory polled.
    read: Name,
    /// Bytes read.
    bytes: u32,
}

read_table!(MicroengineSpec as "microengine", "{ name = \"me1\" }": {
    name,
    engines = 1,
    threads,
    clock,
    swap,
    bind = Bind::Any,
    poll = None,
    tick = None,
    queue = QueueSpec::default(),
});

read_word!(Bind as "a way to bind threads": ["any" => Bind::Any, "port" => Bind::Port]);

read_table!(PollLoopSpec as "poll", "{ compute = 10, read = \"sram\" }": { compute, read, bytes = WORD });

impl UnitType for MicroengineSpec {
    fn name(&self) -> &Name {
        &self.name
    }

    fn check(&mut self, machine: &Surroundings, remarks: &mut Remarks) {
        check_servers(&self.name, "engines", self.engines, remarks);
        check_servers(&self.name, "threads", self.threads, remarks);
        let threads = self.threads.saturating_mul(self.engines);
        check_servers(&self.name, "engines × threads", threads, remarks);
        if let Some(poll) = &self.poll {
            find(&poll.read, "memory", machine.memories, remarks);
        }
    }

    fn clock(&self) -> Option<Clock> {
        Some(self.clock)
    }

    fn servers(&self) -> Option<u32> {
        Some(self.engines)
    }

    fn set_servers(&mut self, servers: u32, _ports: &PortsSpec) -> bool {
        put_servers(&mut self.engines, servers)
    }
}

pub(crate) struct Microengine {
    full: Full,
    threads: Threads,
    engines: u32,
    /// The packet each thread holds.
    held: Vec<Option<u32>>,
    /// The number of the program that polls, if threads poll, and which threads run it.
    poll_program: Option<usize>,
    polling: Vec<bool>,
    /// Threads of each engine that process a packet.
    working: Vec<u32>,
    bind: Bind,
    /// One queue, or one per thread.
    queues: Vec<Queue>,
    /// With a tick: the packets of each queue that the last tick has released.
    released: Vec<usize>,
    tick: Option<Clock>,
    tick_due: bool,
    occupied: TimeWeighted,
}

impl Microengine {
    /// The thread of a port. Ports are dealt to the engines first, then to their threads.
    fn thread_of(&self, port: u32) -> u32 {
        let per_engine = self.threads.len() / self.engines;
        (port % self.engines) * per_engine + (port / self.engines) % per_engine
    }

    fn queue_of(&self, thread: u32) -> usize {
        if self.bind == Bind::Port { thread as usize } else { 0 }
    }

    fn serve(&mut self, env: &mut Environment, thread: u32, packet: u32) {
        self.held[thread as usize] = Some(packet);
        self.occupied.set(env.now(), self.occupied.level() + 1);
        env.start(packet);
        let engine = self.engine_of(thread);
        self.working[engine] += 1;
        // A thread that polls sees the packet at the end of its current poll.
        if !self.polling[thread as usize] {
            self.run(env, thread, packet);
        }
        if self.poll_program.is_some() {
            let per_engine = self.threads.len() / self.engines;
            let first = engine as u32 * per_engine;
            (first..first + per_engine).for_each(|t| self.poll(env, t));
        }
    }

    fn run(&mut self, env: &mut Environment, thread: u32, packet: u32) {
        let (leg, size) = (env.packets[packet as usize].leg(), env.packets[packet as usize].size);
        let chunks = env.route.chunks(size);
        self.threads.start(env, thread, leg, chunks, size);
    }

    fn engine_of(&self, thread: u32) -> usize {
        (thread / (self.threads.len() / self.engines)) as usize
    }

    /// Lets a thread without a packet poll, if another thread of its engine is at work.
    fn poll(&mut self, env: &mut Environment, thread: u32) {
        let (Some(program), engine) = (self.poll_program, self.engine_of(thread)) else { return };
        let is_free = self.held[thread as usize].is_none() && !self.polling[thread as usize];
        if is_free && self.working[engine] > self.threads.locked(engine) {
            self.polling[thread as usize] = true;
            self.threads.start(env, thread, program, 1, 0);
        }
    }

    /// Lets a free thread take the next released packet of its queue.
    fn take_next(&mut self, env: &mut Environment, thread: u32) {
        let queue = self.queue_of(thread);
        if self.held[thread as usize].is_some() || (self.tick.is_some() && self.released[queue] == 0) {
            return;
        }
        if let Some(packet) = self.queues[queue].pop(env.now()) {
            self.released[queue] = self.released[queue].saturating_sub(1);
            self.serve(env, thread, packet);
        }
    }
}

impl UnitModel for Microengine {
    type Spec = MicroengineSpec;

    fn new(spec: &MicroengineSpec, setup: &Setup) -> Microengine {
        let n = (spec.engines * spec.threads) as usize;
        let queues = if spec.bind == Bind::Port { n } else { 1 };
        let mut programs = setup.route.legs.clone();
        let poll_program = spec.poll.as_ref().map(|poll| {
            let compute =
                Op::Compute { fixed: spec.clock.cycles(poll.compute), per_byte: PerByte::default() };
            let memory = setup.memories.iter().position(|m| *m == *poll.read).expect("checked");
            let read = Op::Access { memory: memory as u16, access: Access::Read, bytes: poll.bytes };
            programs.push(Leg::of(vec![(compute, 1), (read, 1)]));
            programs.len() - 1
        });
        Microengine {
            full: spec.queue.full,
            threads: Threads::new(setup, programs, spec.engines, spec.threads, spec.clock.cycles(spec.swap)),
            poll_program,
            polling: vec![false; n],
            working: vec![0; spec.engines as usize],
            engines: spec.engines,
            held: vec![None; n],
            bind: spec.bind,
            queues: vec![Queue::new(&spec.queue); queues],
            released: vec![0; queues],
            tick: spec.tick,
            tick_due: false,
            occupied: TimeWeighted::default(),
        }
    }

    fn offer(&mut self, env: &mut Environment, packet: u32) -> bool {
        let thread = match self.bind {
            Bind::Port => Some(self.thread_of(env.packets[packet as usize].port_in)),
            Bind::Any => (0..self.threads.len())
                .filter(|&t| self.held[t as usize].is_none())
                .min_by_key(|&t| (self.threads.load(t), t)),
        };
        let queue = thread.map_or(0, |t| self.queue_of(t));
        let free = thread.filter(|&t| self.held[t as usize].is_none() && self.queues[queue].len() == 0);
        if let (Some(thread), None) = (free, self.tick) {
            self.serve(env, thread, packet);
            return true;
        }
        let fits = self.queues[queue].push(env.now(), packet, env.class(packet));
        if let Some(tick) = self.tick.filter(|_| fits && !self.tick_due) {
            self.tick_due = true;
            let count = (tick.count(env.now().since(Time::ZERO)) + 1e-6).floor() as u64 + 1;
            env.at(Time::ZERO + tick.cycles(count), What::Tick, 0);
        }
        fits
    }

    fn handle(&mut self, env: &mut Environment, what: What, thread: u32) {
        if what == What::Tick {
            self.tick_due = false;
            for (released, queue) in self.released.iter_mut().zip(&self.queues) {
                *released = queue.len();
            }
            (0..self.threads.len()).for_each(|t| self.take_next(env, t));
        } else if self.threads.handle(env, what, thread) {
            if std::mem::take(&mut self.polling[thread as usize]) {
                match self.held[thread as usize] {
                    Some(packet) => self.run(env, thread, packet),
                    None => self.poll(env, thread),
                }
                return;
            }
            let engine = self.engine_of(thread);
            self.working[engine] -= 1;
            let packet = self.held[thread as usize].expect("a thread at work has a packet");
            env.end_leg(packet, thread);
            env.pass_on(packet, Some(thread));
        }
    }

    fn release(&mut self, env: &mut Environment, thread: u32) {
        self.held[thread as usize] = None;
        self.occupied.set(env.now(), self.occupied.level() - 1);
        self.take_next(env, thread);
        self.poll(env, thread);
    }

    fn full(&self) -> Full {
        self.full
    }

    fn usage(&self, end: Time) -> Use {
        Use {
            busy: self.occupied.mean(end) / self.held.len() as f64,
            computing: Some(self.threads.computing(end)),
            hidden: self.threads.hidden(end),
            queue_mean: self.queues.iter().map(|q| q.length.mean(end)).sum(),
            queue_max: self.queues.iter().map(|q| q.length.max()).max().unwrap_or(0),
            link: None,
        }
    }
}
