//! The run: takes frames from the workload through the units the program names, and counts.
//!
//! [`run`] is the whole simulator; [`observe`] is the same with an ear at every visit of a packet
//! to a unit, and [`trace`] writes those visits for Perfetto; [`remedy`] asks what would help.

use crate::kernel::Kernel;
use crate::machine::{Full, Machine};
use crate::memory::Memory;
use crate::outcome::{Deadlock, Latency, LatencyInterval, Outcome};
use crate::program::{Program, Route};
use crate::spec::SpecError;
use crate::stats::{Confidence, Series};
use crate::trace::{ChromeTrace, TraceHash};
use crate::unit::{Event, Finished, Packet, Unit, What, World};
use crate::workload::{Frame, Generator, Workload};
use fastpath_units::{Duration, Rng, Time};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};

/// With a precision asked for, the first look whether it is reached comes no earlier than this part
/// of the duration.
const FIRST_LOOK: u64 = 64;

/// A packet's stay at one server of one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The unit's number in [`Machine::units`].
    pub unit: usize,
    /// The server, core, thread or port.
    pub server: u32,
    /// The packet: the how-manieth of the run.
    pub packet: u64,
    /// The leg of the program: consecutive stages on one unit are one.
    pub leg: usize,
    /// When the server took it.
    pub start: Time,
    /// When it was done with it.
    pub end: Time,
}

/// Why a run cannot start.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RunError {
    /// The program does not fit the machine.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The workload uses a port the machine has not.
    #[error("workload uses port {port}, but {machine} has ports 0 … {last}")]
    Port {
        /// The port asked for.
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

/// Runs `workload` through `program` on `machine`. The same arguments give the same outcome, on any
/// machine.
pub fn run(
    machine: &Machine,
    program: &Program,
    workload: &Workload,
    seed: u64,
) -> Result<Outcome, RunError> {
    simulate(machine, program, workload, seed, None)
}

/// As [`run`], and tells `observer` every visit when it ends.
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

/// What a little more of the bottleneck would do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Remedy {
    /// What was changed: `egress: 1 → 2`, servers, cores or engines.
    pub change: String,
    /// Frames per second before.
    pub before_pps: f64,
    /// Frames per second after.
    pub after_pps: f64,
    /// The next bottleneck.
    pub bottleneck: String,
}

/// Widens the bottleneck of `outcome` and runs again: not advice but an experiment. `None` if the
/// bottleneck is the wire.
pub fn remedy(
    machine: &Machine,
    program: &Program,
    workload: &Workload,
    seed: u64,
    outcome: &Outcome,
) -> Result<Option<Remedy>, RunError> {
    let unit = &outcome.bottleneck;
    // Egress engines divide the ports among them, so there may be no "one more": then twice as
    // many.
    let wider = machine
        .servers(unit)
        .and_then(|n| [n + 1, 2 * n].into_iter().find_map(|m| Some((machine.with_servers(unit, m)?, n, m))));
    let Some((wider, before, now)) = wider else { return Ok(None) };
    let change = format!("{unit}: {before} → {now}");
    let after = run(&wider, program, workload, seed)?;
    let (before_pps, after_pps) = (outcome.forwarded_pps, after.forwarded_pps);
    Ok(Some(Remedy { change, before_pps, after_pps, bottleneck: after.bottleneck }))
}

fn simulate(
    machine: &Machine,
    program: &Program,
    workload: &Workload,
    seed: u64,
    observer: Option<&mut dyn FnMut(Visit)>,
) -> Result<Outcome, RunError> {
    let route = program.bind(machine)?;
    let ports: Vec<u32> =
        if workload.ports.is_empty() { (0..machine.ports.count).collect() } else { workload.ports.clone() };
    if let Some(&port) = ports.iter().find(|&&p| p >= machine.ports.count) {
        let last = machine.ports.count - 1;
        return Err(RunError::Port { port, machine: machine.name.clone(), last });
    }
    // Borrowed anew, to live as short as the run.
    let observer: Option<&mut dyn FnMut(Visit)> = match observer {
        Some(observer) => Some(&mut *observer),
        None => None,
    };
    let mut run = Run::new(machine, &route, workload, &ports, seed, observer);
    run.go();
    Ok(run.outcome())
}

struct Run<'a> {
    world: World<'a>,
    units: Vec<Unit>,
    names: Vec<String>,
    ports: &'a [u32],
    generators: Vec<Generator<'a>>,
    /// The frame each generator has announced.
    announced: Vec<Option<Frame>>,
    /// Finished packets that wait for room, by the unit they wait for.
    blocked: Vec<VecDeque<Finished>>,
    free: Vec<u32>,
    flows: Vec<FlowCount>,
    counts: Counts,
    hash: TraceHash,
    /// When to see whether the workload's precision is reached; never without one.
    look_at: Time,
    stopped: bool,
}

/// The frames of one flow.
#[derive(Clone, Copy, Default)]
struct FlowCount {
    arrived: u64,
    left: u64,
    /// One more than the highest that has left.
    next: u64,
}

struct Counts {
    offered: u64,
    forwarded: u64,
    dropped: BTreeMap<(usize, &'static str), u64>,
    /// Counted between the end of the warm-up and the end of the workload.
    window: (Time, Time),
    offered_in_window: u64,
    forwarded_in_window: u64,
    latency_ps: Histogram<u64>,
    latency_sum_ps: u128,
    /// Of every frame that has left, µs, in that order.
    latencies_us: Series,
    order_violations: u64,
}

impl<'a> Run<'a> {
    fn new(
        machine: &'a Machine,
        route: &'a Route,
        workload: &'a Workload,
        ports: &'a [u32],
        seed: u64,
        observer: Option<&'a mut dyn FnMut(Visit)>,
    ) -> Run<'a> {
        let places = ports.len() as u32;
        let generator = |place| Generator::new(workload, machine.ports.rate, place, places, seed);
        let units = Unit::all(machine, route, workload.links());
        let end = Time::ZERO + workload.duration;
        let warm = Time::ZERO + workload.warm_up();
        let first_look = Time::from_ps((2 * warm.as_ps()).max(workload.duration.as_ps() / FIRST_LOOK));
        let world = World {
            kernel: Kernel::new(),
            packets: Vec::new(),
            route,
            workload,
            memories: machine.memory.iter().map(Memory::new).collect(),
            caches: &machine.cache,
            locks: vec![Default::default(); route.locks.len()],
            rng: Rng::stream(seed, 0),
            finished: VecDeque::new(),
            lost: Vec::new(),
            unit: 0,
            observer,
        };
        Run {
            world,
            blocked: vec![VecDeque::new(); units.len()],
            units,
            names: machine.units(),
            ports,
            generators: (0..places).map(generator).collect(),
            announced: vec![None; ports.len()],
            free: Vec::new(),
            flows: vec![FlowCount::default(); (workload.flows + places) as usize],
            counts: Counts {
                offered: 0,
                forwarded: 0,
                dropped: BTreeMap::new(),
                window: (warm, end),
                offered_in_window: 0,
                forwarded_in_window: 0,
                latency_ps: Histogram::new(3).expect("3 digits are allowed"),
                latency_sum_ps: 0,
                latencies_us: Series::default(),
                order_violations: 0,
            },
            hash: TraceHash::default(),
            look_at: workload.precision.map_or(Time::MAX, |_| first_look),
            stopped: false,
        }
    }

    fn go(&mut self) {
        (0..self.ports.len()).for_each(|place| self.announce(place));
        while let Some(event) = self.world.kernel.next() {
            if self.world.now() >= self.look_at {
                self.look();
            }
            self.hash.record(self.world.now(), event.what as u8, u32::from(event.unit) << 20 ^ event.server);
            if event.what == What::Arrival {
                self.arrive(event.server as usize);
            } else {
                self.world.unit = event.unit;
                self.units[usize::from(event.unit)].handle(&mut self.world, event);
                self.unblock(usize::from(event.unit));
            }
            self.settle();
        }
    }

    /// Stops the workload if the mean latency is known well enough.
    fn look(&mut self) {
        let now = self.world.now();
        let precision = self.world.workload.precision.unwrap_or(0.0);
        if self.counts.latencies_us.is_narrow(Confidence::P95, precision) {
            (self.stopped, self.look_at, self.counts.window.1) = (true, Time::MAX, now);
        } else {
            // Seldom and ever more seldom: a rule asked often enough stops at a lucky moment.
            self.look_at = now + Duration::from_ps(now.as_ps() / 4);
        }
    }

    fn announce(&mut self, place: usize) {
        self.announced[place] = if self.stopped { None } else { self.generators[place].next() };
        if let Some(frame) = self.announced[place] {
            let event = Event { unit: 0, what: What::Arrival, server: place as u32 };
            self.world.kernel.schedule(frame.at, event);
        }
    }

    fn arrive(&mut self, place: usize) {
        let now = self.world.now();
        let frame = self.announced[place].expect("an arrival was announced");
        self.announce(place);
        let flow = &mut self.flows[frame.flow as usize];
        let packet = Packet {
            id: self.counts.offered,
            arrived: now,
            started: now,
            size: frame.size,
            flow: frame.flow,
            order: flow.arrived,
            port_in: self.ports[place],
            port_out: self.ports[(place + 1) % self.ports.len()],
            leg: 0,
        };
        flow.arrived += 1;
        self.counts.offered += 1;
        self.counts.offered_in_window += u64::from(self.counts.is_counted(now));
        let number = self.free.pop().unwrap_or(self.world.packets.len() as u32);
        match self.world.packets.get_mut(number as usize) {
            Some(slot) => *slot = packet,
            None => self.world.packets.push(packet),
        }
        let unit = self.world.route.legs[0].unit;
        // A wire does not wait: what the first unit has no room for is lost.
        if !self.offer(unit, number) {
            self.drop(number, unit, "queue full");
        }
    }

    fn offer(&mut self, unit: usize, packet: u32) -> bool {
        self.world.unit = unit as u16;
        self.units[unit].offer(&mut self.world, packet)
    }

    /// Moves finished packets on until nothing moves.
    fn settle(&mut self) {
        loop {
            while let Some((packet, why)) = self.world.lost.pop() {
                let unit = usize::from(self.world.unit);
                self.drop(packet, unit, why);
            }
            let Some(finished) = self.world.finished.pop_front() else { return };
            let leg = self.world.packets[finished.packet as usize].leg;
            match self.world.route.legs.get(leg).map(|leg| leg.unit) {
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

    fn release(&mut self, finished: Finished) {
        if let Some(server) = finished.server {
            let unit = usize::from(finished.unit);
            self.world.unit = finished.unit;
            self.units[unit].release(&mut self.world, server);
            self.unblock(unit);
        }
    }

    /// `unit` may have room again: those who wait for it try in their order.
    fn unblock(&mut self, unit: usize) {
        while let Some(&first) = self.blocked[unit].front() {
            if !self.offer(unit, first.packet) {
                return;
            }
            self.blocked[unit].pop_front();
            self.release(first);
        }
    }

    fn leave(&mut self, number: u32) {
        let (now, packet) = (self.world.now(), self.world.packets[number as usize]);
        self.counts.forwarded += 1;
        self.counts.forwarded_in_window += u64::from(self.counts.is_counted(now));
        let latency = (now - packet.arrived).as_ps();
        self.counts.latencies_us.add(latency as f64 / 1e6);
        if self.counts.is_counted(packet.arrived) {
            // An auto-resizing histogram takes every value.
            self.counts.latency_ps.record(latency.max(1)).expect("it resizes itself");
            self.counts.latency_sum_ps += u128::from(latency);
        }
        let flow = &mut self.flows[packet.flow as usize];
        self.counts.order_violations += u64::from(packet.order < flow.next);
        flow.next = flow.next.max(packet.order + 1);
        flow.left += 1;
        self.free.push(number);
    }

    fn drop(&mut self, number: u32, unit: usize, why: &'static str) {
        *self.counts.dropped.entry((unit, why)).or_default() += 1;
        self.free.push(number);
    }

    fn outcome(self) -> Outcome {
        let counts = &self.counts;
        let end = self.world.now();
        let lost: u64 = counts.dropped.values().sum();
        let held = counts.offered - counts.forwarded - lost;
        let window = (counts.window.1 - counts.window.0).as_secs_f64().max(1e-12);
        let place = |(unit, why): (usize, &str)| format!("{} {why}", self.names[unit]);
        let latency = &counts.latency_ps;
        let us = |ps: f64| ps / 1e6;
        Outcome {
            offered: counts.offered,
            forwarded: counts.forwarded,
            dropped: counts.dropped.iter().map(|(&key, &n)| (place(key), n)).collect(),
            held,
            offered_pps: counts.offered_in_window as f64 / window,
            forwarded_pps: counts.forwarded_in_window as f64 / window,
            latency_us: (!latency.is_empty()).then(|| Latency {
                mean: us(counts.latency_sum_ps as f64 / latency.len() as f64),
                p50: us(latency.value_at_quantile(0.5) as f64),
                p99: us(latency.value_at_quantile(0.99) as f64),
                max: us(latency.max() as f64),
            }),
            latency_interval_us: counts.latencies_us.estimate(Confidence::P95).map(|found| LatencyInterval {
                mean: found.mean,
                low: found.mean - found.half,
                high: found.mean + found.half,
                warm_up_frames: counts.latencies_us.warm_up(),
            }),
            is_precise: self.world.workload.precision.map(|_| self.stopped),
            units: self.names.iter().cloned().zip(self.units.iter().map(|u| u.usage(end))).collect(),
            bottleneck: self.bottleneck(end),
            worst_flow_share: self.worst_flow_share(),
            order_violations: counts.order_violations,
            deadlock: (held > 0).then(|| self.deadlock()),
            events: self.world.kernel.handled(),
            seconds: end.as_secs_f64(),
            trace_hash: self.hash.get(),
        }
    }

    fn worst_flow_share(&self) -> f64 {
        let shares = self.flows.iter().filter(|f| f.arrived > 0).map(|f| f.left as f64 / f.arrived as f64);
        shares.fold(1.0, f64::min)
    }

    /// The unit that loses most, or else the busiest of those the program uses.
    fn bottleneck(&self, end: Time) -> String {
        let loser = self.counts.dropped.iter().max_by_key(|(_, n)| **n).map(|((unit, _), _)| *unit);
        let busiest = || {
            let used = self.world.route.legs.iter().map(|leg| leg.unit);
            used.max_by(|&a, &b| self.units[a].usage(end).busy.total_cmp(&self.units[b].usage(end).busy))
        };
        loser.or_else(busiest).map_or(String::new(), |unit| self.names[unit].clone())
    }

    /// Nothing can happen any more, and packets are inside: tells who waits for whom.
    fn deadlock(&self) -> Deadlock {
        let mut waits = Vec::new();
        for (target, waiting) in self.blocked.iter().enumerate() {
            for w in waiting {
                let (id, unit) = (self.world.packets[w.packet as usize].id, &self.names[usize::from(w.unit)]);
                let holder = w.server.map_or(unit.clone(), |s| format!("{unit} server {s}"));
                waits
                    .push(format!("{holder} holds packet {id} and waits for room in {}", self.names[target]));
            }
        }
        let who = |(unit, server): (u16, u32)| format!("{} thread {server}", self.names[usize::from(unit)]);
        for (lock, name) in self.world.locks.iter().zip(&self.world.route.locks) {
            for &waiter in &lock.waiters {
                let holder = lock.holder.map_or("nobody".to_owned(), who);
                waits.push(format!("{} waits for {name}, which {holder} holds", who(waiter)));
            }
        }
        for (unit, name) in self.units.iter().zip(&self.names) {
            if let Unit::Cores(cores) = unit {
                waits.extend(cores.stranded(name));
            }
        }
        Deadlock { waits }
    }
}

impl Counts {
    fn is_counted(&self, at: Time) -> bool {
        (self.window.0..=self.window.1).contains(&at)
    }
}
