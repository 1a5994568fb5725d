//! The simulation: events in the order of (time, insertion), servers, and queues by class.

use super::super::priority::Preemption;
use super::super::spread::Times;
use super::layout::Layout;
use fastpath_units::Rng;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// Sums and samples of one part over a batch.
#[derive(Clone, Default)]
pub(super) struct QueueTally {
    /// Integral over time of the number present, and of the number served.
    pub present_s: f64,
    pub served_s: f64,
    pub arrived: u64,
    pub lost: u64,
    /// Customers that had to wait when they came.
    pub waited: u64,
    pub waits: Vec<f64>,
    pub sojourns: Vec<f64>,
}

/// The tallies of a batch.
pub(super) struct Tallies<'m> {
    pub seconds: f64,
    pub parts: &'m mut [QueueTally],
    /// Of the whole way of a customer.
    pub whole: &'m mut QueueTally,
}

struct Customer {
    class: usize,
    station: usize,
    /// When it entered the first station, and this one.
    entered: f64,
    arrived: f64,
    /// Time waited at this station, and at all on its way.
    wait: f64,
    wait_all: f64,
    rest: f64,
    /// When it began to wait.
    queued: f64,
    started: f64,
    /// Counts the starts of its services; an end of an earlier start is void.
    start: u32,
}

#[derive(Clone, Copy)]
enum What {
    Arrival(usize),
    Return(usize),
    End { customer: usize, start: u32 },
}

struct Event {
    at: f64,
    number: u64,
    what: What,
}

/// A station at work.
struct QueueStation {
    serving: Vec<usize>,
    waiting: Vec<VecDeque<usize>>,
}

impl QueueStation {
    fn present(&self) -> usize {
        self.serving.len() + self.waiting.iter().map(VecDeque::len).sum::<usize>()
    }
}

/// The number present and served in a part, and since when.
#[derive(Clone, Copy, Default)]
struct QueueLevel {
    present: usize,
    serving: usize,
    since: f64,
}

pub(super) struct QueueMachine<'l> {
    layout: &'l Layout,
    now: f64,
    from: f64,
    events: BinaryHeap<Event>,
    scheduled: u64,
    customers: Vec<Customer>,
    free: Vec<usize>,
    stations: Vec<QueueStation>,
    levels: Vec<QueueLevel>,
    parts: Vec<QueueTally>,
    whole: QueueTally,
    left: u64,
    gaps: Vec<Rng>,
    services: Vec<Rng>,
}

impl PartialEq for Event {
    fn eq(&self, other: &Event) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    /// The earliest is the greatest, for a heap that gives its greatest.
    fn cmp(&self, other: &Event) -> Ordering {
        other.at.total_cmp(&self.at).then(other.number.cmp(&self.number))
    }
}

impl<'l> QueueMachine<'l> {
    pub(super) fn new(layout: &'l Layout, seed: u64) -> QueueMachine<'l> {
        let (classes, stations) = (layout.classes(), layout.stations.len());
        let rngs = |from: usize, count: usize| -> Vec<Rng> {
            (from..from + count).map(|stream| Rng::stream(seed, stream as u64)).collect()
        };
        let station = || QueueStation { serving: Vec::new(), waiting: vec![VecDeque::new(); classes] };
        let mut machine = QueueMachine {
            layout,
            now: 0.0,
            from: 0.0,
            events: BinaryHeap::new(),
            scheduled: 0,
            customers: Vec::new(),
            free: Vec::new(),
            stations: (0..stations).map(|_| station()).collect(),
            levels: vec![QueueLevel::default(); layout.parts()],
            parts: vec![QueueTally::default(); layout.parts()],
            whole: QueueTally::default(),
            left: 0,
            gaps: rngs(0, classes + 1),
            services: rngs(classes + 1, classes * stations),
        };
        for (class, gaps) in layout.streams.iter().enumerate() {
            let gap = gaps.draw(&mut machine.gaps[class]);
            machine.schedule(gap, What::Arrival(class));
        }
        for _ in 0..layout.circling {
            let customer = machine.customer(0);
            machine.away(customer);
        }
        machine
    }

    /// Runs until `customers` more have left, or gone around.
    pub(super) fn run(&mut self, customers: u64) {
        let until = self.left + customers;
        while self.left < until {
            let Some(event) = self.events.pop() else { return };
            self.now = event.at;
            match event.what {
                What::Arrival(class) => self.arrival(class),
                What::Return(customer) => self.enter(customer, 0),
                What::End { customer, start } => self.end(customer, start),
            }
        }
    }

    /// Returns the tallies since the last [`QueueMachine::clear`].
    pub(super) fn tallies(&mut self) -> Tallies<'_> {
        for part in 0..self.levels.len() {
            self.settle(part);
        }
        Tallies { seconds: self.now - self.from, parts: &mut self.parts, whole: &mut self.whole }
    }

    /// Begins a batch.
    pub(super) fn clear(&mut self) {
        for part in 0..self.levels.len() {
            self.settle(part);
            self.parts[part] = QueueTally::default();
        }
        self.whole = QueueTally::default();
        self.from = self.now;
    }

    fn schedule(&mut self, after: f64, what: What) {
        self.scheduled += 1;
        self.events.push(Event { at: self.now + after, number: self.scheduled, what });
    }

    fn part(&self, class: usize, station: usize) -> usize {
        if self.layout.classes() > 1 { class } else { station }
    }

    /// Adds the time since the last change to the integrals of a part.
    fn settle(&mut self, part: usize) {
        let (level, tally) = (&mut self.levels[part], &mut self.parts[part]);
        let span = self.now - level.since;
        tally.present_s += span * level.present as f64;
        tally.served_s += span * level.serving as f64;
        level.since = self.now;
    }

    fn customer(&mut self, class: usize) -> usize {
        let fresh = Customer {
            class,
            station: 0,
            entered: 0.0,
            arrived: 0.0,
            wait: 0.0,
            wait_all: 0.0,
            rest: 0.0,
            queued: 0.0,
            started: 0.0,
            start: 0,
        };
        match self.free.pop() {
            Some(id) => {
                // Ends of services of the customer that had this number stay void.
                let start = self.customers[id].start;
                self.customers[id] = Customer { start, ..fresh };
                id
            }
            None => {
                self.customers.push(fresh);
                self.customers.len() - 1
            }
        }
    }

    fn away(&mut self, customer: usize) {
        let class = self.layout.classes();
        let time = self.layout.think.map_or(0.0, |think: Times| think.draw(&mut self.gaps[class]));
        self.schedule(time, What::Return(customer));
    }

    fn arrival(&mut self, class: usize) {
        let gap = self.layout.streams[class].draw(&mut self.gaps[class]);
        self.schedule(gap, What::Arrival(class));
        let part = self.part(class, 0);
        self.parts[part].arrived += 1;
        self.whole.arrived += 1;
        let places = self.layout.stations[0].places;
        if places.is_some_and(|places| self.stations[0].present() >= places as usize) {
            self.parts[part].lost += 1;
            self.whole.lost += 1;
            return;
        }
        let customer = self.customer(class);
        self.enter(customer, 0);
    }

    fn enter(&mut self, id: usize, station: usize) {
        let class = self.customers[id].class;
        let stream = station * self.layout.classes() + class;
        let service = self.layout.stations[station].services[class].draw(&mut self.services[stream]);
        let customer = &mut self.customers[id];
        if station == 0 {
            (customer.entered, customer.wait_all) = (self.now, 0.0);
        }
        (customer.station, customer.arrived, customer.queued) = (station, self.now, self.now);
        (customer.wait, customer.rest) = (0.0, service);
        let part = self.part(class, station);
        self.settle(part);
        self.levels[part].present += 1;
        if self.stations[station].serving.len() < self.layout.stations[station].servers as usize {
            self.start(id);
        } else if let Some(other) = self.later_class(station, class) {
            self.stop(other);
            self.start(id);
        } else {
            self.parts[part].waited += 1;
            self.whole.waited += u64::from(station == 0);
            self.stations[station].waiting[class].push_back(id);
        }
    }

    /// Returns the customer in service that one of `class` interrupts, if any.
    fn later_class(&self, station: usize, class: usize) -> Option<usize> {
        if self.layout.preemption == Preemption::None {
            return None;
        }
        let serving = self.stations[station].serving.iter().copied();
        let latest = serving.max_by_key(|id| self.customers[*id].class)?;
        (self.customers[latest].class > class).then_some(latest)
    }

    fn start(&mut self, id: usize) {
        let customer = &mut self.customers[id];
        customer.start = customer.start.wrapping_add(1);
        customer.started = self.now;
        customer.wait += self.now - customer.queued;
        let (rest, start, class, station) = (customer.rest, customer.start, customer.class, customer.station);
        self.stations[station].serving.push(id);
        let part = self.part(class, station);
        self.settle(part);
        self.levels[part].serving += 1;
        self.schedule(rest, What::End { customer: id, start });
    }

    fn stop(&mut self, id: usize) {
        let customer = &mut self.customers[id];
        customer.rest -= self.now - customer.started;
        customer.queued = self.now;
        customer.start = customer.start.wrapping_add(1);
        let (class, station) = (customer.class, customer.station);
        self.release(id);
        self.stations[station].waiting[class].push_front(id);
    }

    /// Takes a customer from its server.
    fn release(&mut self, id: usize) {
        let Customer { class, station, .. } = self.customers[id];
        self.stations[station].serving.retain(|other| *other != id);
        let part = self.part(class, station);
        self.settle(part);
        self.levels[part].serving -= 1;
    }

    fn end(&mut self, id: usize, start: u32) {
        if self.customers[id].start != start {
            return;
        }
        self.release(id);
        let customer = &mut self.customers[id];
        customer.wait_all += customer.wait;
        let Customer { class, station, arrived, wait, .. } = *customer;
        let part = self.part(class, station);
        self.levels[part].present -= 1;
        self.parts[part].sojourns.push(self.now - arrived);
        self.parts[part].waits.push(wait);
        let next = self.stations[station].waiting.iter_mut().find_map(VecDeque::pop_front);
        if let Some(next) = next {
            self.start(next);
        }
        if station + 1 < self.stations.len() {
            self.enter(id, station + 1);
        } else {
            self.leave(id);
        }
    }

    fn leave(&mut self, id: usize) {
        self.left += 1;
        let Customer { entered, wait_all, .. } = self.customers[id];
        self.whole.sojourns.push(self.now - entered);
        self.whole.waits.push(wait_all);
        if self.layout.circling > 0 {
            self.away(id);
        } else {
            self.free.push(id);
        }
    }
}
