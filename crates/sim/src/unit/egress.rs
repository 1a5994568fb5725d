//! Egress in chunks: microengine threads fill a circular FIFO, and a state machine moves its chunks
//! to ports that cannot hold a whole frame. A port that runs dry in the middle of a frame has
//! spoiled the frame (*underflow*).
//!
//! ```text
//! queue ─scheduler thread─► register ─fill threads─► slot 0 … 15 ─state machine─► port ──► wire
//!                                                  (slot s belongs to port s mod ports)
//! ```
//!
//! ```toml
//! [[egress]]
//! name = "egress"
//! engines = 1
//! fill_threads = 3              # of each engine; one more thread schedules
//! clock = "232MHz"
//! swap = 3                      # cycles lost at each swap
//! slots = 16                    # of the FIFO, a multiple of ports × engines
//! port_chunks = 4               # chunks a port can hold
//! bus = "4.2Gbit"               # from the FIFO to the ports
//! queue = { limit = 1024 }
//! ```
//!
//! The model is the IXP1200's transmit state machine (Joglekar 2004, appendix A). The threads fill
//! slots in turn, and the state machine empties them strictly in order, so one slow slot delays all
//! others. A slot is skipped if its port has nothing to send or has no room for a chunk. A port
//! starts a frame on its first chunk and gives the frame up if the next chunk is not there in time.
//! With two engines each engine has every other slot.
//!
//! Read literally, Figure 4.13 fills the slot and *then* waits for room. In a FIFO that is emptied
//! in order, one full port would stop all others for a chunk time, and two ports alone would
//! underflow. The thesis excludes that by measurement (§A.2.2). The model therefore checks
//! readiness when a slot is claimed.
//!
//! The program's steps per packet are those of the scheduler thread, its steps per chunk those of a
//! fill thread. Declared simplifications: a thread that waits for a slot or its turn is woken and
//! does not poll; if nothing can be sent, the threads stop.

use super::behaviour::{Setup, Surroundings, UnitModel, UnitType, check_servers, put_servers};
use super::threads::Threads;
use crate::environment::{Environment, What};
use crate::keys::read_table;
use crate::outcome::Use;
use crate::ports::PortsSpec;
use crate::queue::{Full, QueueSpec};
use crate::route::{Leg, Op, OpGroup};
use crate::spec::{Clock, Name, PerByte, out_of_range};
use crate::stats::TimeWeighted;
use fastpath_text::mistake::Remarks;
use fastpath_units::{Bytes, Duration, Fraction, Rate, Time};
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(crate) struct EgressSpec {
    name: Name,
    engines: u32,
    /// Threads of each engine that fill slots; one more thread schedules.
    fill_threads: u32,
    clock: Clock,
    swap: u64,
    /// Slots of the circular FIFO; slot `s` belongs to port `s mod ports`.
    slots: u32,
    /// Chunks a port can hold.
    port_chunks: u32,
    /// The bus from the FIFO to the ports.
    bus: Rate,
    queue: QueueSpec,
}

read_table!(EgressSpec as "egress", "{ name = \"egress\" }": {
    name,
    engines,
    fill_threads,
    clock,
    swap,
    slots,
    port_chunks,
    bus,
    queue = QueueSpec::default(),
});

impl UnitType for EgressSpec {
    fn name(&self) -> &Name {
        &self.name
    }

    fn check(&mut self, machine: &Surroundings, remarks: &mut Remarks) {
        check_servers(&self.name, "engines", self.engines, remarks);
        self.queue.check_fifo(&self.name, "each port has a register", remarks);
        let framings = machine.ports.other.iter().map(|other| other.framing);
        if framings.chain([machine.ports.framing]).any(|f| f.cell > 0 || f.strip > 0 || f.add > 0) {
            let what = format!("strip, add and cell of framing have no effect: {} sends chunks", self.name);
            remarks.mistake(self.name.at, what, "remove them, or write a [[line]]");
        }
        check_servers(&self.name, "fill_threads", self.fill_threads, remarks);
        check_servers(&self.name, "port_chunks", self.port_chunks, remarks);
        if self.slots == 0 || !self.slots.is_multiple_of(machine.ports.count.saturating_mul(self.engines)) {
            out_of_range(&self.name, "slots", "a multiple of ports × engines", remarks);
        }
        if !machine.ports.count.is_multiple_of(self.engines) {
            out_of_range(&self.name, "engines", "a divisor of the number of ports", remarks);
        }
    }

    fn clock(&self) -> Option<Clock> {
        Some(self.clock)
    }

    fn servers(&self) -> Option<u32> {
        Some(self.engines)
    }

    fn set_servers(&mut self, servers: u32, ports: &PortsSpec) -> bool {
        servers > 0 && ports.count.is_multiple_of(servers) && put_servers(&mut self.engines, servers)
    }
}

/// The programs of the threads.
const SCHEDULE: usize = 0;
const FILL: usize = 1;
const SKIP: usize = 2;
/// Cycles to mark a slot as skipped: compute its port, set the error and valid bits. Declared.
const SKIP_CYCLES: u64 = 20;

pub(crate) struct Egress {
    full: Full,
    limit: usize,
    threads: Threads,
    fill_threads: u32,
    engines: Vec<Engine>,
    slots: Vec<FifoSlot>,
    /// The slot at which the state machine is, and whether it is moving a chunk.
    head: usize,
    moving: bool,
    /// Chunks that are claimed and not yet moved by the state machine.
    staged: u32,
    ports: Vec<Port>,
    port_chunks: u32,
    /// A chunk on the bus.
    bus: Duration,
    chunk: u32,
    busy: TimeWeighted,
}

/// The threads of one engine go to their slots in turn.
#[derive(Clone, Debug, Default)]
struct Engine {
    /// The engine's next slot, counted among its own slots without wrapping, and the fill thread
    /// that takes it.
    next: usize,
    next_thread: u32,
    /// The state of each fill thread.
    fill: Vec<Fill>,
    /// The port whose packet the scheduler thread is fetching.
    scheduling: Option<usize>,
    /// Where the scheduler's round robin continues.
    round: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum Fill {
    /// Waits for its turn, or for something to send.
    #[default]
    Idle,
    /// Runs for slot `.0`; without a chunk the slot is skipped.
    Runs(usize, Option<Chunk>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum FifoSlot {
    Free,
    Claimed,
    Skipped,
    Valid(Chunk),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Chunk {
    packet: u32,
    bytes: u32,
    first: bool,
    last: bool,
}

#[derive(Clone, Debug)]
struct Port {
    queue: VecDeque<u32>,
    /// The packet in the port's register, and the number of its chunks already claimed.
    current: Option<(u32, u32)>,
    /// Chunks claimed and not yet off the wire.
    on_the_way: u32,
    buffer: VecDeque<Chunk>,
    sending: Option<Chunk>,
    /// The frame that has underflowed: its remaining chunks are discarded.
    spoiled: Option<u32>,
    rate: Rate,
    /// Bytes of preamble and gap.
    gap: u64,
    ready: Time,
    carried: Fraction,
}

impl Egress {
    /// Lets the scheduler thread fetch a packet for the next port, in turn, whose register is
    /// empty.
    fn schedule(&mut self, env: &mut Environment, engine: usize) {
        let (engines, ports) = (self.engines.len(), self.ports.len());
        let e = &mut self.engines[engine];
        if e.scheduling.is_some() {
            return;
        }
        let mine = (0..ports).map(|i| (e.round + i) % ports).filter(|p| p % engines == engine);
        let wanting = |p: &usize| self.ports[*p].current.is_none() && !self.ports[*p].queue.is_empty();
        if let Some(port) = mine.into_iter().find(wanting) {
            e.scheduling = Some(port);
            e.round = port + 1;
            let thread = engine as u32 * (self.fill_threads + 1) + self.fill_threads;
            self.threads.start(env, thread, SCHEDULE, 1, 0);
        }
    }

    fn thread_done(&mut self, env: &mut Environment, thread: u32) {
        let engine = (thread / (self.fill_threads + 1)) as usize;
        let number = (thread % (self.fill_threads + 1)) as usize;
        if number == self.fill_threads as usize {
            let port = self.engines[engine].scheduling.take().expect("the scheduler thread had a port");
            let packet = self.ports[port].queue.pop_front().expect("its queue was not empty");
            self.ports[port].current = Some((packet, 0));
            self.schedule(env, engine);
        } else if let Fill::Runs(slot, chunk) = self.engines[engine].fill[number] {
            self.slots[slot] = chunk.map_or(FifoSlot::Skipped, FifoSlot::Valid);
            self.engines[engine].fill[number] = Fill::Idle;
        }
        self.settle(env);
    }

    /// Advances everything that can advance: the state machine, then the threads' next slots.
    fn settle(&mut self, env: &mut Environment) {
        self.move_chunk(env);
        (0..self.engines.len()).for_each(|engine| self.claim(env, engine));
    }

    /// Lets the next thread claim the engine's next slot, if the state machine has passed it.
    /// Threads take turns strictly (they signal each other), so a port's chunks are claimed in
    /// order.
    fn claim(&mut self, env: &mut Environment, engine: usize) {
        let engines = self.engines.len();
        let ports = self.ports.len();
        loop {
            // An engine without work still has to skip its slots. Otherwise the state machine would
            // stop at them and never reach the other engine's chunks.
            let room = self.port_chunks;
            let can_send = |port: &Port| port.current.is_some() && port.on_the_way < room;
            let wanted = self.staged > 0 || self.ports.iter().any(can_send);
            let e = &mut self.engines[engine];
            let slot = (engine + e.next * engines) % self.slots.len();
            let number = e.next_thread as usize;
            if !wanted || self.slots[slot] != FifoSlot::Free || !matches!(e.fill[number], Fill::Idle) {
                return;
            }
            let port = &mut self.ports[slot % ports];
            let chunk = if port.on_the_way < room { take_chunk(port, env, self.chunk) } else { None };
            let e = &mut self.engines[engine];
            e.next += 1;
            e.next_thread = (e.next_thread + 1) % self.fill_threads;
            e.fill[number] = Fill::Runs(slot, chunk);
            self.slots[slot] = FifoSlot::Claimed;
            self.staged += u32::from(chunk.is_some());
            let thread = engine as u32 * (self.fill_threads + 1) + number as u32;
            let program = if chunk.is_some() { FILL } else { SKIP };
            self.threads.start(env, thread, program, 1, chunk.map_or(0, |c| c.bytes));
            self.schedule(env, engine);
        }
    }

    /// Lets the state machine pass skipped slots and put the next valid chunk on the bus.
    fn move_chunk(&mut self, env: &mut Environment) {
        while !self.moving {
            match self.slots[self.head] {
                FifoSlot::Skipped => {
                    self.slots[self.head] = FifoSlot::Free;
                    self.head = (self.head + 1) % self.slots.len();
                }
                FifoSlot::Valid(_) => {
                    self.moving = true;
                    env.after(self.bus, What::Moved, 0);
                }
                FifoSlot::Free | FifoSlot::Claimed => return,
            }
        }
    }

    fn chunk_moved(&mut self, env: &mut Environment) {
        let FifoSlot::Valid(chunk) = self.slots[self.head] else { unreachable!("only valid chunks move") };
        let number = self.head % self.ports.len();
        self.slots[self.head] = FifoSlot::Free;
        self.head = (self.head + 1) % self.slots.len();
        self.moving = false;
        self.staged -= 1;
        let port = &mut self.ports[number];
        if port.spoiled == Some(chunk.packet) {
            port.on_the_way -= 1;
            if chunk.last {
                port.spoiled = None;
                env.drop(chunk.packet, "underflow");
            }
        } else {
            port.buffer.push_back(chunk);
            if port.sending.is_none() {
                self.send(env, number);
            }
        }
        self.settle(env);
    }

    /// Lets the port put its next chunk on the wire.
    fn send(&mut self, env: &mut Environment, number: usize) {
        let port = &mut self.ports[number];
        let Some(chunk) = port.buffer.pop_front() else { return };
        port.sending = Some(chunk);
        self.busy.set(env.now(), self.busy.level() + 1);
        let mut bytes = u64::from(chunk.bytes);
        let mut start = env.now();
        if chunk.first {
            // Preamble and the gap before it. On an idle wire the gap has passed already; 12 bytes
            // of delay do no harm there.
            bytes += port.gap;
            start = start.max(port.ready);
        }
        let carried = if start > port.ready { Fraction::ZERO } else { port.carried };
        let (span, left) = port.rate.transmission(Bytes(bytes), carried);
        port.carried = left;
        port.ready = start + span;
        env.at(port.ready, What::Sent, number as u32);
    }

    fn chunk_sent(&mut self, env: &mut Environment, number: usize) {
        let port = &mut self.ports[number];
        let chunk = port.sending.take().expect("a port sends one chunk at a time");
        self.busy.set(env.now(), self.busy.level() - 1);
        port.on_the_way -= 1;
        if chunk.last {
            env.end_leg(chunk.packet, number as u32);
            env.pass_on(chunk.packet, None);
        } else if port.buffer.is_empty() {
            port.spoiled = Some(chunk.packet);
        }
        self.send(env, number);
        self.settle(env);
    }
}

impl UnitModel for Egress {
    type Spec = EgressSpec;

    fn new(spec: &EgressSpec, setup: &Setup) -> Egress {
        let ports = setup.ports;
        let leg = setup.route.legs.iter().find(|leg| leg.unit == setup.number);
        let part = |per_chunk: bool| {
            let groups = leg.into_iter().flat_map(|leg| &leg.groups).filter(|g| g.per_chunk == per_chunk);
            let groups = groups.map(|g| OpGroup { per_chunk: false, over: 0, ops: g.ops.clone() });
            Leg { groups: groups.collect(), ..Leg::of(Vec::new()) }
        };
        let skip = Op::Compute { fixed: spec.clock.cycles(SKIP_CYCLES), per_byte: PerByte::default() };
        let programs = vec![part(false), part(true), Leg::of(vec![(skip, 1)])];
        let fill = vec![Fill::Idle; spec.fill_threads as usize];
        let port = |number: u32| Port {
            rate: ports.of(number).0,
            gap: ports.of(number).1.with_gap(0),
            queue: VecDeque::new(),
            current: None,
            on_the_way: 0,
            buffer: VecDeque::new(),
            sending: None,
            spoiled: None,
            ready: Time::ZERO,
            carried: Fraction::ZERO,
        };
        let bytes = Bytes(u64::from(ports.chunk));
        Egress {
            full: spec.queue.full,
            limit: spec.queue.limit,
            threads: Threads::new(
                setup,
                programs,
                spec.engines,
                spec.fill_threads + 1,
                spec.clock.cycles(spec.swap),
            ),
            fill_threads: spec.fill_threads,
            engines: vec![Engine { fill, ..Engine::default() }; spec.engines as usize],
            slots: vec![FifoSlot::Free; spec.slots as usize],
            head: 0,
            moving: false,
            staged: 0,
            ports: (0..ports.count).map(port).collect(),
            port_chunks: spec.port_chunks,
            bus: spec.bus.transmission(bytes, Fraction::ZERO).0,
            chunk: ports.chunk,
            busy: TimeWeighted::default(),
        }
    }

    fn offer(&mut self, env: &mut Environment, packet: u32) -> bool {
        let number = env.packets[packet as usize].port_out as usize;
        let port = &mut self.ports[number];
        if port.queue.len() >= self.limit {
            return false;
        }
        port.queue.push_back(packet);
        env.start(packet);
        self.schedule(env, number % self.engines.len());
        true
    }

    fn handle(&mut self, env: &mut Environment, what: What, server: u32) {
        match what {
            What::Moved => self.chunk_moved(env),
            What::Sent => self.chunk_sent(env, server as usize),
            _ => {
                if self.threads.handle(env, what, server) {
                    self.thread_done(env, server);
                }
            }
        }
    }

    fn release(&mut self, _env: &mut Environment, _server: u32) {}

    fn full(&self) -> Full {
        self.full
    }

    fn usage(&self, end: Time) -> Use {
        Use {
            busy: self.busy.mean(end) / self.ports.len() as f64,
            computing: Some(self.threads.computing(end)),
            hidden: self.threads.hidden(end),
            queue_mean: 0.0,
            queue_max: 0,
            link: None,
        }
    }
}

/// Claims the next chunk of the packet in the port's register. The last chunk empties the register.
fn take_chunk(port: &mut Port, env: &Environment, chunk: u32) -> Option<Chunk> {
    let (packet, claimed) = port.current?;
    let size = env.packets[packet as usize].size;
    let bytes = chunk.min(size - claimed * chunk);
    let last = (claimed + 1) * chunk >= size;
    port.current = (!last).then_some((packet, claimed + 1));
    port.on_the_way += 1;
    Some(Chunk { packet, bytes, first: claimed == 0, last })
}
