//! Naive twins of the disciplines that decide at dequeue, each its RFC's pseudo-code on a plain
//! list, and a link to run them on: all arrivals known beforehand, one loop over arrivals and
//! departures.

use super::Exact;
use super::codel::Codel;
use super::drr::{Drr, Prio};
use super::dualpi2::DualPi2;
use super::fq_codel::FqCodel;
use super::pie::Pie;
use super::token_bucket::TokenBucket;
use crate::packet::{DropReason, Fate, Packet};
use crate::qdisc::{Limit, QueueSpec};
use fastpath_units::{Duration, Rate, Rng, Time};
use std::collections::BTreeMap;

/// A packet in a twin: its number, when it came, what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Pkt {
    /// Its place among the arrivals.
    pub id: usize,
    /// When it came (tstamp).
    pub arrived: Time,
    /// Bytes.
    pub len: u64,
    /// Hash of its flow.
    pub flow: u32,
    /// DSCP « 2 | ECN.
    pub traffic_class: u8,
    /// CE was set here.
    pub marked: bool,
}

impl Pkt {
    /// ECT(0), ECT(1) or CE.
    pub fn is_ect(&self) -> bool {
        self.traffic_class & 3 > 0
    }

    /// Sets CE.
    pub fn mark(&mut self) {
        self.marked = true;
        self.traffic_class |= 3;
    }
}

/// Where a twin notes what it drops, and what it may ask.
#[derive(Debug)]
pub struct World<'a> {
    /// The time.
    pub now: Time,
    /// Bytes on the wire, if a packet is being sent.
    pub on_wire: Option<u64>,
    /// Chance, drawn in the same order as in the pipe.
    pub rng: &'a mut Rng,
    fates: &'a mut BTreeMap<usize, (Time, Fate)>,
}

impl World<'_> {
    /// Drops a packet.
    pub fn drop(&mut self, packet: Pkt, reason: DropReason) {
        self.fates.insert(packet.id, (self.now, Fate::Dropped(reason)));
    }

    /// True if one more packet of `len` bytes fits beside the `queue` and what is on the wire.
    pub fn fits(&self, limit: Limit, len: u64, queue: &[Pkt]) -> bool {
        let on_wire = self.on_wire.into_iter();
        match limit {
            Limit::Packets(most) => on_wire.count() + queue.len() < most as usize,
            Limit::Bytes(most) => on_wire.sum::<u64>() + bytes(queue) + len <= most.0,
        }
    }
}

/// Bytes in a list.
pub fn bytes(queue: &[Pkt]) -> u64 {
    queue.iter().map(|packet| packet.len).sum()
}

/// A discipline as its definition has it.
pub trait Twin {
    /// A packet arrives.
    fn enqueue(&mut self, packet: Pkt, world: &mut World<'_>);
    /// The wire is free.
    fn dequeue(&mut self, world: &mut World<'_>) -> Option<Pkt>;
    /// When to ask again if packets wait and none may go at `now`.
    fn later(&self, _now: Time) -> Option<Time> {
        None
    }
}

/// The twin of a discipline. Panics for those that the [`Oracle`](super::Oracle) covers.
pub fn twin(spec: &QueueSpec) -> Box<dyn Twin> {
    match spec {
        QueueSpec::DropHead(limit) => Box::new(DropHead { limit: *limit, queue: Vec::new() }),
        QueueSpec::Sojourn(spec) => Box::new(Sojourn { spec: *spec, queue: Vec::new() }),
        QueueSpec::Codel(spec) => Box::new(Codel::new(*spec)),
        QueueSpec::FqCodel(spec) => Box::new(FqCodel::new(*spec)),
        QueueSpec::Pie(spec) => Box::new(Pie::new(*spec)),
        QueueSpec::DualPi2(spec) => Box::new(DualPi2::new(*spec)),
        QueueSpec::TokenBucket(spec) => Box::new(TokenBucket::new(*spec)),
        QueueSpec::Prio(spec) => Box::new(Prio::new(spec.clone())),
        QueueSpec::Drr(spec) => Box::new(Drr::new(spec.clone())),
        QueueSpec::DropTail(_) | QueueSpec::DropTailTime(_) | QueueSpec::Red(_) | QueueSpec::Ared(_) => {
            panic!("{spec} decides at arrival")
        }
    }
}

/// When and how each packet left: those delivered after `delay`, those dropped at the time of the
/// drop.
pub fn run(
    twin: &mut dyn Twin,
    rate: Option<Rate>,
    delay: Duration,
    arrivals: &[(Time, Packet<()>)],
    rng: &mut Rng,
) -> BTreeMap<usize, (Time, Fate)> {
    let mut fates = BTreeMap::new();
    let mut sending: Option<Pkt> = None;
    let mut free = Exact::at(Time::ZERO);
    let mut next = 0;
    let mut later = None;
    loop {
        let arrival = arrivals.get(next).map(|(at, _)| *at);
        let departure = sending.map(|_| free.floor());
        let Some(now) = [departure, arrival, later].into_iter().flatten().min() else { return fates };
        if departure == Some(now) {
            let sent = sending.take().expect("it has just been sent");
            fates.insert(sent.id, (now + delay, Fate::Delivered { marked: sent.marked }));
        } else if later == Some(now) {
            later = None;
        } else {
            let (_, Packet { len, flow, traffic_class, .. }) = arrivals[next];
            let len = u64::from(len);
            let packet = Pkt { id: next, arrived: now, len, flow, traffic_class, marked: false };
            let on_wire = sending.map(|packet| packet.len);
            twin.enqueue(packet, &mut World { now, on_wire, rng, fates: &mut fates });
            next += 1;
        }
        if sending.is_none() {
            sending = twin.dequeue(&mut World { now, on_wire: None, rng, fates: &mut fates });
            if let Some(packet) = sending {
                free = if free.is_before(now) { Exact::at(now) } else { free };
                free = rate.map_or(free, |rate| free.plus_bits(u128::from(packet.len) * 8, rate));
            }
            later = if sending.is_none() { twin.later(now) } else { None };
        }
    }
}

struct DropHead {
    limit: Limit,
    queue: Vec<Pkt>,
}

impl Twin for DropHead {
    fn enqueue(&mut self, packet: Pkt, world: &mut World<'_>) {
        if !world.fits(self.limit, packet.len, &[]) {
            return world.drop(packet, DropReason::QueueFull);
        }
        while !world.fits(self.limit, packet.len, &self.queue) {
            world.drop(self.queue.remove(0), DropReason::QueueFull);
        }
        self.queue.push(packet);
    }

    fn dequeue(&mut self, _: &mut World<'_>) -> Option<Pkt> {
        (!self.queue.is_empty()).then(|| self.queue.remove(0))
    }
}

struct Sojourn {
    spec: crate::qdisc::SojournSpec,
    queue: Vec<Pkt>,
}

impl Twin for Sojourn {
    fn enqueue(&mut self, packet: Pkt, world: &mut World<'_>) {
        if world.fits(self.spec.limit, packet.len, &self.queue) {
            self.queue.push(packet);
        } else {
            world.drop(packet, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, world: &mut World<'_>) -> Option<Pkt> {
        let late = |packet: &Pkt| world.now - packet.arrived > self.spec.longest;
        let old = self.queue.iter().take_while(|packet| late(packet)).count();
        self.queue.drain(..old).for_each(|packet| world.drop(packet, DropReason::Expired));
        (!self.queue.is_empty()).then(|| self.queue.remove(0))
    }
}
