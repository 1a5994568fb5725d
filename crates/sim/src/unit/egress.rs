//! Transmission in chunks: microengine threads fill a circular FIFO, a state machine moves its
//! chunks to ports that cannot hold a frame, and a port that runs dry in the middle of a frame has
//! spoiled it.
//!
//! ```text
//! tx queue ─scheduler thread─► port register ─fill threads─► slot 0 1 2 … 15 ─state machine─► port buffer ──► wire
//!                                                            (slot s belongs to port s mod ports)
//! ```
//!
//! After the IXP1200's transmit state machine (LinkEM thesis, appendix A): slots are filled by the
//! threads in turn and emptied strictly in order, so one slow slot holds all up; the slot of a port
//! with nothing to send, or no room for it, is skipped; a port starts a frame on its first chunk
//! (it cannot hold a frame), and gives the frame up when the next chunk is not there in time:
//! *underflow*. With two engines each has every other slot.
//!
//! Read literally, Figure 4.13 fills the slot and *then* waits for room. In a FIFO emptied in
//! order, one full port would then stop all others for a chunk time, and two ports alone would
//! underflow, which the thesis excludes by measurement (§A.2.2). So readiness is taken to be
//! checked when the slot is claimed.
//!
//! The stage's steps per packet are the scheduler thread's, its steps per chunk a fill thread's.
//! Declared simplifications: a thread waiting for a slot or its turn is woken, it does not poll;
//! when nothing can be sent the threads stop.

use super::threads::Threads;
use super::{What, World};
use crate::machine::{EgressSpec, Full, Ports};
use crate::outcome::Use;
use crate::program::{Leg, Op};
use crate::scheduler::Tag;
use crate::spec::PerByte;
use crate::stats::TimeWeighted;
use fastpath_units::{Bytes, Duration, Fraction, Rate, Time};
use std::collections::VecDeque;

/// The programs of the threads.
const SCHEDULE: usize = 0;
const FILL: usize = 1;
const SKIP: usize = 2;
/// Cycles to mark a slot as skipped: compute its port, set the error and valid bits. Declared.
const SKIP_CYCLES: u64 = 20;
/// Preamble before and gap after a frame, in bytes.
const FRAME_GAP: u64 = 20;

pub(crate) struct Egress {
    pub(crate) full: Full,
    limit: usize,
    threads: Threads,
    fill_threads: u32,
    engines: Vec<Engine>,
    slots: Vec<Slot>,
    /// The slot the state machine looks at, and whether it is moving a chunk.
    head: usize,
    moving: bool,
    /// Chunks claimed that the state machine has not yet moved.
    staged: u32,
    ports: Vec<Port>,
    port_chunks: u32,
    rate: Rate,
    /// A chunk on the bus.
    bus: Duration,
    chunk: u32,
    busy: TimeWeighted,
}

/// The threads of one engine go to their slots in turn.
#[derive(Clone, Debug, Default)]
struct Engine {
    /// The engine's next slot, counted in its own slots without end, and the fill thread whose turn
    /// it is.
    next: usize,
    turn: u32,
    /// What each fill thread is doing.
    fill: Vec<Fill>,
    /// The port whose packet the scheduler thread is fetching.
    scheduling: Option<usize>,
    /// Where the scheduler's round robin goes on.
    round: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum Fill {
    /// Waits for its turn, or for something to send.
    #[default]
    Idle,
    /// Runs for slot `.0`; no chunk means the slot is skipped.
    Runs(usize, Option<Chunk>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Slot {
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
    /// The packet in the port's register, and chunks of it already claimed.
    current: Option<(u32, u32)>,
    /// Chunks claimed and not yet off the wire.
    on_the_way: u32,
    buffer: VecDeque<Chunk>,
    sending: Option<Chunk>,
    /// A frame begun, whose next chunk is awaited; then a frame spoiled, whose chunks are thrown
    /// away.
    spoiled: Option<u32>,
    ready: Time,
    carried: Fraction,
}

impl Egress {
    pub(crate) fn new(spec: &EgressSpec, ports: &Ports, leg: Option<&Leg>) -> Egress {
        let part = |per_chunk: bool| {
            let blocks = leg.into_iter().flat_map(|leg| &leg.blocks).filter(|b| b.per_chunk == per_chunk);
            let blocks =
                blocks.map(|b| crate::program::Block { per_chunk: false, over: 0, ops: b.ops.clone() });
            Leg { unit: 0, tag: Tag::Parallel, skip: None, blocks: blocks.collect() }
        };
        let skip = Op::Compute { fixed: spec.clock.cycles(SKIP_CYCLES), per_byte: PerByte::default() };
        let skip = crate::program::Block { per_chunk: false, over: 0, ops: vec![(skip, 1)] };
        let skip = Leg { unit: 0, tag: Tag::Parallel, skip: None, blocks: vec![skip] };
        let programs = vec![part(false), part(true), skip];
        let fill = vec![Fill::Idle; spec.fill_threads as usize];
        let port = Port {
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
                programs,
                spec.engines,
                spec.fill_threads + 1,
                spec.clock.cycles(spec.swap),
            ),
            fill_threads: spec.fill_threads,
            engines: vec![Engine { fill, ..Engine::default() }; spec.engines as usize],
            slots: vec![Slot::Free; spec.slots as usize],
            head: 0,
            moving: false,
            staged: 0,
            ports: vec![port; ports.count as usize],
            port_chunks: spec.port_chunks,
            rate: ports.rate,
            bus: spec.bus.transmission(bytes, Fraction::ZERO).0,
            chunk: ports.chunk,
            busy: TimeWeighted::default(),
        }
    }

    pub(crate) fn offer(&mut self, world: &mut World, packet: u32) -> bool {
        let number = world.packets[packet as usize].port_out as usize;
        let port = &mut self.ports[number];
        if port.queue.len() >= self.limit {
            return false;
        }
        port.queue.push_back(packet);
        world.start(packet);
        self.schedule(world, number % self.engines.len());
        true
    }

    pub(crate) fn handle(&mut self, world: &mut World, what: What, server: u32) {
        match what {
            What::Moved => self.chunk_moved(world),
            What::Sent => self.chunk_sent(world, server as usize),
            _ => {
                if self.threads.handle(world, what, server) {
                    self.thread_done(world, server);
                }
            }
        }
    }

    /// The scheduler thread fetches a packet for the next port, in turn, whose register is empty.
    fn schedule(&mut self, world: &mut World, engine: usize) {
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
            self.threads.start(world, thread, SCHEDULE, 1, 0);
        }
    }

    fn thread_done(&mut self, world: &mut World, thread: u32) {
        let engine = (thread / (self.fill_threads + 1)) as usize;
        let number = (thread % (self.fill_threads + 1)) as usize;
        if number == self.fill_threads as usize {
            let port = self.engines[engine].scheduling.take().expect("the scheduler thread had a port");
            let packet = self.ports[port].queue.pop_front().expect("its queue was not empty");
            self.ports[port].current = Some((packet, 0));
            self.schedule(world, engine);
        } else if let Fill::Runs(slot, chunk) = self.engines[engine].fill[number] {
            self.slots[slot] = chunk.map_or(Slot::Skipped, Slot::Valid);
            self.engines[engine].fill[number] = Fill::Idle;
        }
        self.settle(world);
    }

    /// Lets everything go on that can: the state machine, then the threads' next slots.
    fn settle(&mut self, world: &mut World) {
        self.move_chunk(world);
        (0..self.engines.len()).for_each(|engine| self.claim(world, engine));
    }

    /// The thread whose turn it is claims the engine's next slot, if the state machine has passed
    /// it. Threads take turns strictly (they signal each other), so a port's chunks are claimed in
    /// order.
    fn claim(&mut self, world: &mut World, engine: usize) {
        let engines = self.engines.len();
        let ports = self.ports.len();
        loop {
            // An engine without work still has to skip its slots, or the state machine would stop
            // at them before it came to the other engine's chunks.
            let room = self.port_chunks;
            let can_send = |port: &Port| port.current.is_some() && port.on_the_way < room;
            let wanted = self.staged > 0 || self.ports.iter().any(can_send);
            let e = &mut self.engines[engine];
            let slot = (engine + e.next * engines) % self.slots.len();
            let number = e.turn as usize;
            if !wanted || self.slots[slot] != Slot::Free || !matches!(e.fill[number], Fill::Idle) {
                return;
            }
            let port = &mut self.ports[slot % ports];
            let chunk = if port.on_the_way < room { take_chunk(port, world, self.chunk) } else { None };
            let e = &mut self.engines[engine];
            e.next += 1;
            e.turn = (e.turn + 1) % self.fill_threads;
            e.fill[number] = Fill::Runs(slot, chunk);
            self.slots[slot] = Slot::Claimed;
            self.staged += u32::from(chunk.is_some());
            let thread = engine as u32 * (self.fill_threads + 1) + number as u32;
            let program = if chunk.is_some() { FILL } else { SKIP };
            self.threads.start(world, thread, program, 1, chunk.map_or(0, |c| c.bytes));
            self.schedule(world, engine);
        }
    }

    /// The state machine passes skipped slots and puts the next valid chunk on the bus.
    fn move_chunk(&mut self, world: &mut World) {
        while !self.moving {
            match self.slots[self.head] {
                Slot::Skipped => {
                    self.slots[self.head] = Slot::Free;
                    self.head = (self.head + 1) % self.slots.len();
                }
                Slot::Valid(_) => {
                    self.moving = true;
                    world.after(self.bus, What::Moved, 0);
                }
                Slot::Free | Slot::Claimed => return,
            }
        }
    }

    fn chunk_moved(&mut self, world: &mut World) {
        let Slot::Valid(chunk) = self.slots[self.head] else { unreachable!("only valid chunks move") };
        let number = self.head % self.ports.len();
        self.slots[self.head] = Slot::Free;
        self.head = (self.head + 1) % self.slots.len();
        self.moving = false;
        self.staged -= 1;
        let port = &mut self.ports[number];
        if port.spoiled == Some(chunk.packet) {
            port.on_the_way -= 1;
            if chunk.last {
                port.spoiled = None;
                world.lost.push((chunk.packet, "underflow"));
            }
        } else {
            port.buffer.push_back(chunk);
            if port.sending.is_none() {
                self.send(world, number);
            }
        }
        self.settle(world);
    }

    /// The port puts its next chunk on the wire.
    fn send(&mut self, world: &mut World, number: usize) {
        let port = &mut self.ports[number];
        let Some(chunk) = port.buffer.pop_front() else { return };
        port.sending = Some(chunk);
        self.busy.set(world.now(), self.busy.level() + 1);
        let mut bytes = u64::from(chunk.bytes);
        let mut start = world.now();
        if chunk.first {
            // Preamble and the gap before it; on a wire long idle the gap has passed, which 12
            // bytes late does no harm.
            bytes += FRAME_GAP;
            start = start.max(port.ready);
        }
        let carried = if start > port.ready { Fraction::ZERO } else { port.carried };
        let (span, left) = self.rate.transmission(Bytes(bytes), carried);
        port.carried = left;
        port.ready = start + span;
        world.at(port.ready, What::Sent, number as u32);
    }

    fn chunk_sent(&mut self, world: &mut World, number: usize) {
        let port = &mut self.ports[number];
        let chunk = port.sending.take().expect("a port that has sent was sending");
        self.busy.set(world.now(), self.busy.level() - 1);
        port.on_the_way -= 1;
        if chunk.last {
            world.end_leg(chunk.packet, number as u32);
            world.hand_on(chunk.packet, None);
        } else if port.buffer.is_empty() {
            port.spoiled = Some(chunk.packet);
        }
        self.send(world, number);
        self.settle(world);
    }

    pub(crate) fn usage(&self, end: Time) -> Use {
        Use {
            busy: self.busy.mean(end) / self.ports.len() as f64,
            computing: Some(self.threads.computing(end)),
            hidden: self.threads.hidden(end),
            queue_mean: 0.0,
            queue_max: 0,
        }
    }
}

/// Claims the next chunk of the packet in the port's register; the last chunk empties the register.
fn take_chunk(port: &mut Port, world: &World, chunk: u32) -> Option<Chunk> {
    let (packet, claimed) = port.current?;
    let size = world.packets[packet as usize].size;
    let bytes = chunk.min(size - claimed * chunk);
    let last = (claimed + 1) * chunk >= size;
    port.current = (!last).then_some((packet, claimed + 1));
    port.on_the_way += 1;
    Some(Chunk { packet, bytes, first: claimed == 0, last })
}
