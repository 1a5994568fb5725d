//! A run cut in two, for two threads: the results are those of one thread, to the bit.
//!
//! ```text
//! arrivals ─▶ pki ─▶ cpu ─ ─ ─ ▶ pko ─▶ wire ─▶ statistics
//!   Upstream (one thread)  batch   Downstream (another thread)
//! ```
//!
//! Where no unit downstream can hold up one upstream (its full queue drops), the units upstream
//! never learn what happens downstream. So the upstream part runs ahead. It reports its events, and
//! the packets that it hands over. The downstream part takes these and its own events in the order
//! of one event list: (time, insertion). It counts the insertions of both parts, so that ties come
//! out as in one list. Its trace hash is therefore that of the whole run.
//!
//! Units that draw from the generator of the run, or use its memories or locks, stay in one part:
//! the order in which they do so is part of the result. A run with a precision is not cut, because
//! latencies then stop the arrivals; nor is a closed workload, whose arrivals follow departures.
//! This module starts no threads: its caller does.

use crate::ended::Ended;
use crate::environment::Packet;
use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::program::Program;
use crate::queue::Full;
use crate::route::{Leg, Route, SkipPer};
use crate::run::{HandledEvent, Part, RunError, Simulation, Whole, active_ports, units};
use crate::unit::Unit;
use crate::workload::{Arrivals, Workload};
use fastpath_units::Time;

/// Events in a batch: enough that handing a batch over costs little, and few enough that several
/// stay in a cache.
const EVENTS_MAX: usize = 1 << 11;
/// Bits of an insertion number that count the insertions downstream since the last one upstream.
const DOWNSTREAM_BITS: u32 = 26;
/// A run is cut if two threads are expected to take at most this share of the time of one.
const PAYS_OFF: f64 = 0.9;
/// Expected costs, as multiples of an event of a station: an arrival, the statistics of a packet,
/// and an event upstream for the part that reports it and for the part that reads it.
const ARRIVAL: f64 = 1.0;
const STATISTICS: f64 = 0.7;
const REPORT: (f64, f64) = (0.1, 0.3);

/// A run that can be cut, before its start.
#[derive(Debug)]
pub struct CutRun<'a> {
    machine: &'a Machine,
    workload: &'a Workload,
    route: Route,
    ports: Vec<u32>,
    seed: u64,
    /// The first leg of the downstream part.
    at: usize,
}

/// The first part of a run: arrivals, and the units before the cut.
pub struct Upstream<'a> {
    run: Simulation<'a, Recorder>,
}

/// The last part of a run: the units after the cut, the statistics and the trace hash.
pub struct Downstream<'a> {
    run: Simulation<'a, Whole>,
    /// Insertions upstream so far.
    inserted: u64,
    is_in_order: bool,
}

/// The end of the upstream part.
pub struct UpstreamEnd<'a> {
    ended: Ended<'a>,
    is_in_order: bool,
}

/// Events that the upstream part has handled, in their order, and the packets that it has handed
/// over. Small, because all of it moves from one core to another.
#[derive(Debug, Default)]
pub struct Batch {
    events: Vec<PastEvent>,
    handovers: Vec<Handover>,
}

/// An event that the upstream part has handled.
#[derive(Clone, Copy, Debug)]
struct PastEvent {
    at: Time,
    entity: u32,
    /// Insertions upstream between its own and its end.
    age: u32,
    /// Insertions upstream that it made itself.
    made: u32,
    kind: u8,
}

/// A packet that goes on downstream.
#[derive(Clone, Copy, Debug)]
struct Handover {
    packet: Packet,
    /// Its event, by place in the batch.
    event: u32,
    /// Insertions upstream that its event had made before.
    made: u32,
}

/// What the upstream part does with its events and packets.
struct Recorder {
    /// The first leg of the other part.
    end: usize,
    batch: Batch,
    /// Insertions until the end of the last event.
    inserted: u64,
    /// False once a number did not fit.
    is_in_order: bool,
}

impl Recorder {
    /// The difference of two numbers of insertions.
    #[inline(always)]
    fn between(&mut self, first: u64, last: u64) -> u32 {
        let between = last - first;
        self.is_in_order &= between <= u64::from(u32::MAX);
        between as u32
    }
}

impl Part for Recorder {
    #[inline(always)]
    fn note(&mut self, event: HandledEvent) {
        let HandledEvent { at, kind, entity, number, inserted } = event;
        let (age, made) = (self.between(number, inserted), self.between(self.inserted, inserted));
        self.inserted = inserted;
        self.batch.events.push(PastEvent { at, entity, age, made, kind });
    }

    #[inline(always)]
    fn takes(&mut self, leg: usize, packet: &Packet, inserted: u64) -> bool {
        let is_taken = leg >= self.end;
        if is_taken {
            let event = self.batch.events.len() as u32;
            let made = self.between(self.inserted, inserted);
            self.batch.handovers.push(Handover { packet: *packet, event, made });
        }
        is_taken
    }

    fn fingerprint(&self) -> u64 {
        0
    }
}

impl<'a> CutRun<'a> {
    /// Finds where to cut a run; `None` if it cannot be cut, or if that would not pay off.
    ///
    /// # Errors
    /// As for [`run`](crate::run()).
    pub fn new(
        machine: &'a Machine,
        program: &Program,
        workload: &'a Workload,
        seed: u64,
    ) -> Result<Option<CutRun<'a>>, RunError> {
        let route = program.bind(machine)?;
        let ports = active_ports(machine, workload)?;
        let best = best_cut(&route, &cuts(machine, &route, workload, seed));
        Ok(best.map(|at| CutRun { machine, workload, route, ports, seed, at }))
    }

    /// Cuts a run in every possible way, for tests that the cut changes nothing.
    ///
    /// # Errors
    /// As for [`run`](crate::run()).
    pub fn all(
        machine: &'a Machine,
        program: &Program,
        workload: &'a Workload,
        seed: u64,
    ) -> Result<Vec<CutRun<'a>>, RunError> {
        let route = program.bind(machine)?;
        let ports = active_ports(machine, workload)?;
        let cuts = cuts(machine, &route, workload, seed);
        let cut = |at| CutRun { machine, workload, route: route.clone(), ports: ports.clone(), seed, at };
        Ok(cuts.into_iter().map(cut).collect())
    }

    /// The units downstream of the cut.
    pub fn downstream_units(&self) -> Vec<String> {
        let names = self.machine.units().into_iter().zip(self.is_downstream());
        names.filter(|(_, is_downstream)| *is_downstream).map(|(name, _)| name).collect()
    }

    /// By unit, whether the downstream part simulates it.
    fn is_downstream(&self) -> Vec<bool> {
        let legs = &self.route.legs[self.at..];
        (0..self.machine.units.len()).map(|unit| legs.iter().any(|leg| leg.unit == unit)).collect()
    }

    /// The upstream part, at its start.
    pub fn upstream(&self) -> Upstream<'_> {
        let part = Recorder { end: self.at, batch: Batch::default(), inserted: 0, is_in_order: true };
        let CutRun { machine, workload, route, ports, seed, .. } = self;
        let mut run = Simulation::new(machine, route, workload, ports, *seed, None, part);
        run.announce_all();
        Upstream { run }
    }

    /// The downstream part, at its start.
    pub fn downstream(&self) -> Downstream<'_> {
        let CutRun { machine, workload, route, ports, seed, .. } = self;
        let run = Simulation::new(machine, route, workload, ports, *seed, None, Whole::default());
        Downstream { run, inserted: 0, is_in_order: true }
    }

    /// The outcome of both parts. `None` in place of a wrong order: with this many events, the
    /// order of the parts at equal instants is not known. Then [`run`](crate::run()) the whole.
    pub fn outcome(&self, upstream: UpstreamEnd, downstream: Downstream) -> Option<Outcome> {
        let Downstream { run, is_in_order, .. } = downstream;
        let UpstreamEnd { ended, is_in_order: is_upstream_in_order } = upstream;
        let outcome = || ended.join(run.end(), &self.is_downstream()).outcome();
        (is_in_order && is_upstream_in_order).then(outcome)
    }
}

impl<'a> Upstream<'a> {
    /// Replaces the content of `batch` by the next events. False if these are the last ones.
    pub fn fill(&mut self, batch: &mut Batch) -> bool {
        batch.events.clear();
        batch.handovers.clear();
        std::mem::swap(batch, &mut self.run.part.batch);
        let mut goes_on = true;
        while goes_on && self.run.part.batch.events.len() < EVENTS_MAX {
            goes_on = self.run.advance();
        }
        std::mem::swap(batch, &mut self.run.part.batch);
        goes_on
    }

    /// The end of this part, after the last events.
    pub fn end(self) -> UpstreamEnd<'a> {
        UpstreamEnd { is_in_order: self.run.part.is_in_order, ended: self.run.end() }
    }
}

impl Downstream<'_> {
    /// Simulates up to the last event of `batch`, and returns the time there.
    pub fn take(&mut self, batch: &Batch) -> Time {
        let mut handovers = batch.handovers.iter().peekable();
        for (place, event) in (0..).zip(&batch.events) {
            // Of two events at one instant the one that was inserted first comes first. What was
            // inserted here before insertion n upstream has numbers below those after it.
            let inserted = self.inserted + u64::from(event.made);
            let last = ((inserted - u64::from(event.age) + 1) << DOWNSTREAM_BITS) - 1;
            while let Some((number, own)) = self.run.env.kernel.next_up_to(event.at, last) {
                self.run.handle(number, own);
            }
            self.run.env.kernel.advance_to(event.at);
            self.run.part.hash.record(event.at, event.kind, event.entity);
            let mut is_changed = false;
            while let Some(handover) = handovers.next_if(|handover| handover.event == place) {
                self.number_from(inserted - u64::from(event.made - handover.made));
                self.run.take_over(handover.packet);
                is_changed = true;
            }
            self.number_from(inserted);
            if is_changed {
                self.run.settle();
            }
        }
        self.run.env.now()
    }

    /// Simulates what is left after the last batch.
    pub fn finish(&mut self) {
        while self.run.advance() {}
    }

    /// Numbers the next insertions as those after `inserted` insertions upstream.
    #[inline]
    fn number_from(&mut self, inserted: u64) {
        let first = inserted << DOWNSTREAM_BITS;
        let fits = inserted < 1 << (u64::BITS - DOWNSTREAM_BITS - 1);
        // Insertions since the last call must have fit their bits.
        self.is_in_order &=
            fits && self.run.env.kernel.next_number() <= (self.inserted + 1) << DOWNSTREAM_BITS;
        self.inserted = inserted;
        self.run.env.kernel.number_from(first);
    }
}

/// The leg of `cuts` before which to cut, so that the slower part is as fast as possible; `None` if
/// no cut pays off.
fn best_cut(route: &Route, cuts: &[usize]) -> Option<usize> {
    let cost = |legs: &[Leg]| legs.iter().map(cost).sum::<f64>();
    let whole = ARRIVAL + cost(&route.legs) + STATISTICS;
    let slower = |at: usize| {
        let events = 1.0 + at as f64;
        let upstream = ARRIVAL + cost(&route.legs[..at]) + REPORT.0 * events;
        upstream.max(cost(&route.legs[at..]) + STATISTICS + REPORT.1 * events)
    };
    let best = cuts.iter().map(|&at| (slower(at), at)).min_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 <= PAYS_OFF * whole).then_some(best.1)
}

/// The legs before which a run can be cut.
fn cuts(machine: &Machine, route: &Route, workload: &Workload, seed: u64) -> Vec<usize> {
    if workload.precision.is_some() || matches!(workload.arrivals, Arrivals::Closed { .. }) {
        return Vec::new();
    }
    let units = units(machine, route, workload, seed);
    (1..route.legs.len()).filter(|&at| is_cut(machine, &units, route, at)).collect()
}

/// The expected cost of a packet in `leg`: its event and its operations.
fn cost(leg: &Leg) -> f64 {
    let operations = leg.groups.iter().flat_map(|group| &group.ops).map(|&(_, times)| f64::from(times));
    1.0 + 0.25 * operations.sum::<f64>()
}

/// True if a run can be cut before leg number `at`.
fn is_cut(machine: &Machine, units: &[Unit], route: &Route, at: usize) -> bool {
    let (upstream, downstream) = route.legs.split_at(at);
    let is_separate = upstream.iter().all(|leg| downstream.iter().all(|other| other.unit != leg.unit));
    let drops = |leg: &Leg| units[leg.unit].full() == Full::Drop;
    let next = |(number, leg): (usize, &Leg)| [Some(number + 1), leg.skip.map(|skip| skip.to)];
    let entries = upstream.iter().enumerate().flat_map(next).flatten().filter(|next| *next >= at);
    let spec = |leg: &Leg| machine.units[leg.unit].spec.get();
    // What must stay in one part, of whatever kind.
    let shares =
        |leg: &Leg| spec(leg).shares(&leg.groups) || leg.skip.is_some_and(|skip| skip.per == SkipPer::Packet);
    // A link passes packets on while it takes one: two parts of links would mix these.
    let is_link = |leg: &Leg| spec(leg).uses_network_streams();
    let in_one_part = |f: &dyn Fn(&Leg) -> bool| !(upstream.iter().any(f) && downstream.iter().any(f));
    is_separate
        && !route.legs.iter().any(|leg| spec(leg).mixes_instants())
        && entries.filter_map(|entry| route.legs.get(entry)).all(drops)
        && in_one_part(&shares)
        && in_one_part(&is_link)
}
