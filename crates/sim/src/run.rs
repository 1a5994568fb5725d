//! The run: takes the frames of a workload through the units that the program names, and counts.
//!
//! ```text
//! generator ─▶ offer to the first unit ─▶ … ─▶ settle: offer to the next unit ─▶ … ─▶ leave
//!                    │ no room                        │ no room: drop, or block and try again
//! ```
//!
//! [`run`] is the whole simulator. [`observe`] also reports every visit of a packet to a unit, and
//! [`trace`] writes these visits for Perfetto. Read first: `environment.rs`, then `unit/mod.rs`.
//! What is left at the end becomes an outcome in `ended.rs`. The loop also runs a part of a
//! machine, whose packets go on in another part (`cut.rs`): [`Part`] is what differs.

use crate::customers::Customers;
use crate::ended::{Counts, Ended, FlowCount};
use crate::environment::{Environment, Event, Finished, Lost, Packet, What};
use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::memory::Memory;
use crate::outcome::Outcome;
use crate::ports::PortsSpec;
use crate::program::Program;
use crate::queue::Full;
use crate::route::{Leg, Route};
use crate::spec::SpecError;
use crate::stats::Confidence;
use crate::trace::{ChromeTrace, TraceHash, Visit};
use crate::unit::{Setup, Unit, UnitSpec};
use crate::workload::{Arrival, Generator, Workload};
use fastpath_units::{Duration, Rng, Time};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};

/// A run with a precision checks it for the first time after this part of the duration, or later.
const FIRST_CHECK: u64 = 64;

/// Why a run cannot start.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The program does not fit the machine.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The workload uses a port that the machine does not have.
    #[error("workload uses port {port}, but {machine} has ports 0 … {last}")]
    Port {
        /// The port of the workload.
        port: u32,
        /// The machine's name.
        machine: String,
        /// Its last port.
        last: u32,
    },
}

/// Why a trace was not written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The run could not start.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The writer failed.
    #[error("writing the trace: {0}")]
    Io(#[from] io::Error),
}

/// Runs `workload` through `program` on `machine`. The same arguments give the same outcome on any
/// computer.
pub fn run(
    machine: &Machine,
    program: &Program,
    workload: &Workload,
    seed: u64,
) -> Result<Outcome, RunError> {
    simulate(machine, program, workload, seed, None)
}

/// As [`run`], and calls `observer` with every visit when the visit ends.
pub fn observe(
    machine: &Machine,
    program: &Program,
    workload: &Workload,
    seed: u64,
    observer: &mut dyn FnMut(Visit),
) -> Result<Outcome, RunError> {
    simulate(machine, program, workload, seed, Some(observer))
}

/// As [`run`], and writes every visit to `out` in the Chrome trace format, one row per server.
pub fn trace(
    machine: &Machine,
    program: &Program,
    workload: &Workload,
    seed: u64,
    out: impl Write,
) -> Result<Outcome, TraceError> {
    let mut trace = ChromeTrace::new(out)?;
    let names = machine.units();
    let mut rows = BTreeMap::new();
    let mut failed = None;
    let mut write = |visit: Visit| {
        let next = rows.len() as u32;
        let row = *rows.entry((visit.unit, visit.server)).or_insert(next);
        let named = if row == next {
            trace.name(row, &format!("{} {}", names[visit.unit], visit.server))
        } else {
            Ok(())
        };
        let written = named.and_then(|()| trace.bar(row, visit.packet, visit.start, visit.end - visit.start));
        failed = failed.take().or(written.err());
    };
    let outcome = observe(machine, program, workload, seed, &mut write)?;
    match failed {
        Some(error) => Err(error.into()),
        None => trace.finish().map(|_| outcome).map_err(TraceError::from),
    }
}

fn simulate(
    machine: &Machine,
    program: &Program,
    workload: &Workload,
    seed: u64,
    observer: Option<&mut dyn FnMut(Visit)>,
) -> Result<Outcome, RunError> {
    let route = program.bind(machine)?;
    let ports = active_ports(machine, workload)?;
    // Reborrowed, to live no longer than the run.
    let observer: Option<&mut dyn FnMut(Visit)> = match observer {
        Some(observer) => Some(&mut *observer),
        None => None,
    };
    let mut run = Simulation::new(machine, &route, workload, &ports, seed, observer, Whole::default());
    run.announce_all();
    while run.advance() {}
    Ok(run.end().outcome())
}

/// The ports that `workload` uses.
pub(crate) fn active_ports(machine: &Machine, workload: &Workload) -> Result<Vec<u32>, RunError> {
    let ports: Vec<u32> =
        if workload.ports.is_empty() { (0..machine.ports.count).collect() } else { workload.ports.clone() };
    match ports.iter().find(|&&port| port >= machine.ports.count) {
        Some(&port) => {
            let last = machine.ports.count - 1;
            Err(RunError::Port { port, machine: machine.name.clone(), last })
        }
        None => Ok(ports),
    }
}

/// The first random stream of a run in which a unit draws from the streams of a network. It lies
/// above all of a network's streams, so that no two parts of the run share one.
const NETWORK_STREAMS: u64 = 1 << 48;

/// The first of the random streams for generators and units.
fn first_stream(machine: &Machine, route: &Route) -> u64 {
    let draws_from_network = |leg: &Leg| machine.units[leg.unit].spec.get().uses_network_streams();
    if route.legs.iter().any(draws_from_network) { NETWORK_STREAMS } else { 0 }
}

/// The units of `machine` for a run.
pub(crate) fn units(machine: &Machine, route: &Route, workload: &Workload, seed: u64) -> Vec<Unit> {
    let (ports, links, memories) = (&machine.ports, workload.links(), machine.memories());
    let specs: Vec<&UnitSpec> = machine.units.iter().map(|unit| &unit.spec).collect();
    let (memory, caches) = (&machine.memory, &machine.cache);
    let build = |(number, spec): (usize, &&UnitSpec)| {
        let of_type = specs[..number].iter().filter(|other| other.type_name() == spec.type_name()).count();
        spec.build(&Setup { ports, memories: &memories, memory, caches, route, number, of_type, links, seed })
    };
    specs.iter().enumerate().map(build).collect()
}

/// What the run of a whole machine and that of a part of it do differently.
pub(crate) trait Part {
    /// Notes an event that has been handled.
    fn note(&mut self, event: HandledEvent);

    /// Takes over a packet that goes to `leg` if another part simulates that leg. `inserted` is the
    /// number that the next insertion gets.
    fn takes(&mut self, leg: usize, packet: &Packet, inserted: u64) -> bool;

    /// The fingerprint of the run, if this part makes it.
    fn fingerprint(&self) -> u64;
}

/// An event that has been handled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandledEvent {
    pub(crate) at: Time,
    /// The kind and the entity in the trace hash.
    pub(crate) kind: u8,
    pub(crate) entity: u32,
    /// The number of its insertion into the event list.
    pub(crate) number: u64,
    /// The number that the next insertion gets.
    pub(crate) inserted: u64,
}

/// The whole machine, or the last part of it.
#[derive(Default)]
pub(crate) struct Whole {
    pub(crate) hash: TraceHash,
}

impl Part for Whole {
    #[inline(always)]
    fn note(&mut self, event: HandledEvent) {
        self.hash.record(event.at, event.kind, event.entity);
    }

    #[inline(always)]
    fn takes(&mut self, _leg: usize, _packet: &Packet, _inserted: u64) -> bool {
        false
    }

    fn fingerprint(&self) -> u64 {
        self.hash.get()
    }
}

/// A run in progress, or a part of one.
pub(crate) struct Simulation<'a, P> {
    pub(crate) env: Environment<'a>,
    units: Vec<Unit>,
    /// The number of each unit in the trace hash, at its position there.
    trace_numbers: Vec<u32>,
    names: Vec<String>,
    ports: &'a [u32],
    ports_spec: &'a PortsSpec,
    generators: Vec<Generator<'a>>,
    /// Those of a closed workload.
    customers: Option<Customers>,
    /// The next frame of each generator.
    announced: Vec<Option<Arrival>>,
    /// Finished packets that wait for room, by the unit that they wait for.
    blocked: Vec<VecDeque<Finished>>,
    flows: Vec<FlowCount>,
    counts: Counts,
    pub(crate) part: P,
    /// When to check the workload's precision; never without one.
    check_at: Time,
    stopped: bool,
}

impl<'a, P: Part> Simulation<'a, P> {
    /// A run at its start. Nothing arrives before [`Simulation::announce_all`].
    pub(crate) fn new(
        machine: &'a Machine,
        route: &'a Route,
        workload: &'a Workload,
        ports: &'a [u32],
        seed: u64,
        observer: Option<&'a mut dyn FnMut(Visit)>,
        part: P,
    ) -> Simulation<'a, P> {
        let port_count = ports.len() as u32;
        let streams = first_stream(machine, route);
        let generator = |number: u32| {
            let wire = machine.ports.of(ports[number as usize]);
            Generator::new(workload, wire, number, port_count, seed, streams)
        };
        let end = Time::ZERO + workload.duration;
        let warm = Time::ZERO + workload.warm_up();
        let first_check = Time::from_ps((2 * warm.as_ps()).max(workload.duration.as_ps() / FIRST_CHECK));
        let env = Environment {
            kernel: Kernel::new(),
            packets: Vec::new(),
            free: Vec::new(),
            copies: 0,
            route,
            workload,
            memories: machine.memory.iter().map(Memory::new).collect(),
            locks: vec![Default::default(); route.locks.len()],
            rng: Rng::stream(seed, streams),
            finished: VecDeque::new(),
            lost: Vec::new(),
            unit: 0,
            observer,
        };
        Simulation {
            env,
            blocked: vec![VecDeque::new(); machine.units.len()],
            units: units(machine, route, workload, seed),
            trace_numbers: machine.units.iter().map(|u| u32::from(u.trace_number) << 20).collect(),
            names: machine.units(),
            ports,
            ports_spec: &machine.ports,
            customers: Customers::new(workload, seed, streams),
            generators: (0..port_count).map(generator).collect(),
            announced: vec![None; ports.len()],
            flows: vec![FlowCount::default(); (workload.flows + port_count) as usize],
            counts: Counts::new((warm, end), workload.priorities),
            part,
            check_at: workload.precision.map_or(Time::MAX, |_| first_check),
            stopped: false,
        }
    }

    /// Schedules the first frame of each port.
    pub(crate) fn announce_all(&mut self) {
        (0..self.ports.len()).for_each(|port| self.announce(port));
        let Some(customers) = &mut self.customers else { return };
        for customer in 0..customers.population {
            let event = Event { unit: 0, what: What::Return, server: customer };
            self.env.kernel.after(customers.think(), event);
        }
    }

    /// Handles the next event; false if none is left.
    #[inline(always)]
    pub(crate) fn advance(&mut self) -> bool {
        let Some((number, event)) = self.env.kernel.next_up_to(Time::MAX, u64::MAX) else { return false };
        if self.env.now() >= self.check_at {
            self.check_precision();
        }
        self.handle(number, event);
        true
    }

    /// Handles an event that has left the event list, which was inserted under `number`.
    #[inline(always)]
    pub(crate) fn handle(&mut self, number: u64, event: Event) {
        let (at, kind) = (self.env.now(), event.what as u8);
        let entity = if event.what == What::Arrival {
            self.arrive(event.server as usize);
            event.server
        } else if event.what == What::Return {
            self.send(event.server);
            event.server
        } else {
            let unit = usize::from(event.unit);
            self.env.unit = event.unit;
            self.units[unit].handle(&mut self.env, event.what, event.server);
            self.unblock(unit);
            self.trace_numbers[unit] ^ event.server
        };
        self.settle();
        let inserted = self.env.kernel.next_number();
        self.part.note(HandledEvent { at, kind, entity, number, inserted });
    }

    /// Stops the workload if the mean latency is known precisely enough.
    fn check_precision(&mut self) {
        let now = self.env.now();
        let precision = self.env.workload.precision.unwrap_or(0.0);
        if self.counts.latencies_us.is_narrow(Confidence::P95, precision) {
            (self.stopped, self.check_at, self.counts.window.1) = (true, Time::MAX, now);
        } else {
            // At growing intervals: a rule that is checked often stops at a lucky moment.
            self.check_at = now + Duration::from_ps(now.as_ps() / 4);
        }
    }

    fn announce(&mut self, port: usize) {
        self.announced[port] = if self.stopped { None } else { self.generators[port].next() };
        if let Some(frame) = self.announced[port] {
            let event = Event { unit: 0, what: What::Arrival, server: port as u32 };
            self.env.kernel.schedule(frame.at, event);
        }
    }

    #[inline(always)]
    fn arrive(&mut self, port: usize) {
        let frame = self.announced[port].expect("an arrival was announced");
        self.announce(port);
        self.enter(port, frame);
    }

    /// Sends the next frame of a customer.
    fn send(&mut self, customer: u32) {
        let port = customer as usize % self.ports.len();
        let customers = self.customers.as_mut().expect("only customers return");
        let size = customers.size(self.env.workload);
        self.enter(port, Arrival { at: self.env.now(), size, flow: customer });
    }

    /// Lets the customer of `packet`, which has left or is lost, think.
    #[inline(always)]
    fn think(&mut self, packet: u32) {
        let Some(customers) = &mut self.customers else { return };
        let (now, packet) = (self.env.now(), &self.env.packets[packet as usize]);
        let is_over = self.stopped || now.since(Time::ZERO) >= self.env.workload.duration;
        if !is_over && !packet.is_copy {
            let span = customers.next(packet, self.ports_spec, now);
            let event = Event { unit: 0, what: What::Return, server: packet.flow };
            self.env.kernel.after(span, event);
        }
    }

    /// Takes a frame that has arrived on port number `port` of the active ones.
    #[inline(always)]
    fn enter(&mut self, port: usize, frame: Arrival) {
        let now = self.env.now();
        let flow = &mut self.flows[frame.flow as usize];
        let packet = Packet {
            id: self.counts.offered,
            arrived: now,
            started: now,
            size: frame.size,
            flow: frame.flow,
            order: flow.arrived,
            port_in: self.ports[port],
            port_out: self.ports[(port + 1) % self.ports.len()],
            leg: 0,
            queue: None,
            is_cached: false,
            is_copy: false,
        };
        flow.arrived += 1;
        self.counts.offered += 1;
        self.counts.offered_in_window += u64::from(self.counts.is_counted(now));
        let number = self.env.add(packet);
        // A wire does not wait: a frame without room at the first unit is lost.
        self.offer_or_drop(self.env.route.legs[0].unit, number);
    }

    fn offer_or_drop(&mut self, unit: usize, number: u32) {
        if !self.offer(unit, number) {
            self.drop(number, unit, "queue full");
        }
    }

    /// Takes over a packet of another part, on its way to its next unit or out.
    pub(crate) fn take_over(&mut self, packet: Packet) {
        let number = self.env.add(packet);
        match self.env.route.legs.get(packet.leg()) {
            Some(leg) => self.offer_or_drop(leg.unit, number),
            None => self.leave(number),
        }
    }

    #[inline(always)]
    fn offer(&mut self, unit: usize, packet: u32) -> bool {
        self.env.unit = unit as u16;
        self.units[unit].offer(&mut self.env, packet)
    }

    /// Moves finished packets on until no packet can move.
    #[inline(always)]
    pub(crate) fn settle(&mut self) {
        loop {
            while let Some(Lost { packet, unit, reason }) = self.env.lost.pop() {
                self.drop(packet, usize::from(unit), reason);
            }
            let Some(finished) = self.env.finished.pop_front() else { return };
            let leg = self.env.packets[finished.packet as usize].leg();
            if self.hand_over(leg, finished.packet) {
                self.release(finished);
                continue;
            }
            match self.env.route.legs.get(leg).map(|leg| leg.unit) {
                None => {
                    self.leave(finished.packet);
                    self.release(finished);
                }
                Some(next) if self.offer(next, finished.packet) => self.release(finished),
                Some(next) if self.units[next].full() == Full::Block => {
                    self.blocked[next].push_back(finished)
                }
                Some(next) => {
                    self.drop(finished.packet, next, "queue full");
                    self.release(finished);
                }
            }
        }
    }

    /// Gives `packet` to another part if that part simulates `leg`.
    #[inline(always)]
    fn hand_over(&mut self, leg: usize, packet: u32) -> bool {
        let inserted = self.env.kernel.next_number();
        let is_taken = self.part.takes(leg, &self.env.packets[packet as usize], inserted);
        if is_taken {
            self.env.free.push(packet);
        }
        is_taken
    }

    #[inline(always)]
    fn release(&mut self, finished: Finished) {
        if let Some(server) = finished.server {
            let unit = usize::from(finished.unit);
            self.env.unit = finished.unit;
            self.units[unit].release(&mut self.env, server);
            self.unblock(unit);
        }
    }

    /// Offers the packets that wait for `unit` to it, in their order, as long as there is room.
    #[inline(always)]
    fn unblock(&mut self, unit: usize) {
        if !self.blocked[unit].is_empty() {
            self.offer_blocked(unit);
        }
    }

    fn offer_blocked(&mut self, unit: usize) {
        while let Some(&first) = self.blocked[unit].front() {
            if !self.offer(unit, first.packet) {
                return;
            }
            self.blocked[unit].pop_front();
            self.release(first);
        }
    }

    fn leave(&mut self, number: u32) {
        let (now, packet) = (self.env.now(), &self.env.packets[number as usize]);
        self.counts.forwarded += 1;
        self.counts.forwarded_in_window += u64::from(self.counts.is_counted(now));
        let latency = now - packet.arrived;
        self.counts.latencies_us.add(latency.as_ps() as f64 / 1e6);
        if self.counts.is_counted(packet.arrived) {
            self.counts.latency.record(latency);
            if let Some(class) = self.counts.classes.get_mut(self.env.class(number)) {
                class.record(latency);
            }
        }
        if !packet.is_copy {
            let flow = &mut self.flows[packet.flow as usize];
            self.counts.order_violations += u64::from(packet.order < flow.next);
            flow.next = flow.next.max(packet.order + 1);
            flow.left += 1;
        }
        self.think(number);
        self.env.free.push(number);
    }

    fn drop(&mut self, number: u32, unit: usize, why: &'static str) {
        *self.counts.dropped.entry((unit, why)).or_default() += 1;
        self.think(number);
        self.env.free.push(number);
    }

    /// What is left when nothing can happen any more.
    pub(crate) fn end(self) -> Ended<'a> {
        let wait_for_room =
            self.blocked.iter().enumerate().map(|(unit, all)| self.waits(unit, all)).collect();
        let wait_for_locks = self.waits_for_locks();
        Ended {
            route: self.env.route,
            is_precise: self.env.workload.precision.map(|_| self.stopped),
            end: self.env.now(),
            events: self.env.kernel.handled(),
            copies: self.env.copies,
            trace_hash: self.part.fingerprint(),
            names: self.names,
            units: self.units,
            flows: self.flows,
            counts: self.counts,
            wait_for_room,
            wait_for_locks,
        }
    }

    /// Describes the servers that wait for room in unit number `target`.
    fn waits(&self, target: usize, waiting: &VecDeque<Finished>) -> Vec<String> {
        let wait = |w: &Finished| {
            let (id, unit) = (self.env.packets[w.packet as usize].id, &self.names[usize::from(w.unit)]);
            let holder = w.server.map_or(unit.clone(), |s| format!("{unit} server {s}"));
            format!("{holder} holds packet {id} and waits for room in {}", self.names[target])
        };
        waiting.iter().map(wait).collect()
    }

    /// Describes the threads that wait for locks.
    fn waits_for_locks(&self) -> Vec<String> {
        let mut waits = Vec::new();
        let who = |(unit, server): (u16, u32)| format!("{} thread {server}", self.names[usize::from(unit)]);
        for (lock, name) in self.env.locks.iter().zip(&self.env.route.locks) {
            for &waiter in &lock.waiters {
                let holder = lock.holder.map_or("no thread".to_owned(), who);
                waits.push(format!("{} waits for {name}, which {holder} holds", who(waiter)));
            }
        }
        waits
    }
}
