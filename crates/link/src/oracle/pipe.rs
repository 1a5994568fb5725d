//! The oracle of a pipe.

use super::discipline::{AdmissionOracle, Arrival, DisciplineOracle};
use super::exact::Exact;
use crate::LossSpec;
use crate::packet::{DropReason, Exit, Fate, Packet, Verdict};
use crate::qdisc::QueueSpec;
use crate::spec::{Change, PipeSpec};
use fastpath_units::{Rate, Rng, Time};

/// The executable specification of a pipe, with the arguments and results of [`Pipe`](crate::Pipe).
/// It covers rate, overhead, delay, uniform loss, and the disciplines that decide at arrival.
#[derive(Debug)]
pub struct Oracle<P> {
    spec: PipeSpec,
    rng: Rng,
    policy: Box<dyn AdmissionOracle>,
    /// The R queue with arrival times. Its first packet is on the wire until `wire_free`.
    queue: Vec<(Time, Packet<P>, Fate)>,
    /// When the wire has sent, or will have sent, all packets given to it.
    wire_free: Exact,
    /// The P queue with exit times.
    line: Vec<(Time, Packet<P>, Fate)>,
    last_exit: Time,
    /// When the queue became empty last.
    idle_since: Time,
}

/// Panics for a discipline that decides at dequeue: [`run`](super::run()) covers those.
fn policy(spec: &QueueSpec) -> Box<dyn AdmissionOracle> {
    match super::discipline_oracle(spec) {
        DisciplineOracle::Admission(policy) => policy,
        DisciplineOracle::Queue(_) => panic!("{spec} decides at dequeue: use run"),
    }
}

impl<P> Oracle<P> {
    /// Creates an empty pipe.
    pub fn new(spec: &PipeSpec, rng: Rng) -> Oracle<P> {
        Oracle {
            spec: spec.clone(),
            rng,
            policy: policy(&spec.queue),
            queue: Vec::new(),
            wire_free: Exact::at(Time::ZERO),
            line: Vec::new(),
            last_exit: Time::ZERO,
            idle_since: Time::ZERO,
        }
    }

    /// Pushes a packet that arrives at `now`.
    pub fn push(&mut self, now: Time, mut packet: Packet<P>) -> Verdict<P> {
        self.run_until(now);
        if let LossSpec::Uniform(p) = self.spec.loss
            && self.rng.unit_f64() < p.get()
        {
            return Verdict::Dropped(DropReason::Loss, packet.data);
        }
        let queue: Vec<u64> = self.queue.iter().map(|(_, packet, _)| u64::from(packet.len)).collect();
        let arrival = Arrival {
            now,
            packet: packet.header(),
            queue: &queue,
            idle_since: self.idle_since,
            rate: self.spec.rate,
        };
        let marked = match self.policy.admit(&arrival, &mut self.rng) {
            Ok(marked) => marked,
            Err(reason) => return Verdict::Dropped(reason, packet.data),
        };
        if marked {
            packet.traffic_class |= 3;
        }
        self.queue.push((now, packet, Fate::Delivered { marked }));
        if self.queue.len() == 1 {
            self.send_first();
        }
        Verdict::Queued
    }

    /// The first packet that has left by `now`.
    pub fn pop(&mut self, now: Time) -> Option<Exit<P>> {
        self.run_until(now);
        if self.line.first()?.0 > now {
            return None;
        }
        let (at, packet, fate) = self.line.remove(0);
        Some(Exit { at, packet, fate })
    }

    /// Changes parameters at `now`.
    pub fn change(&mut self, now: Time, change: &Change) {
        self.run_until(now);
        if let Some(rate) = change.rate {
            self.change_rate(now, rate);
        }
        self.spec.overhead = change.overhead.unwrap_or(self.spec.overhead);
        self.spec.delay = change.delay.unwrap_or(self.spec.delay);
        if let Some(loss) = &change.loss {
            self.spec.loss = loss.clone();
        }
        if let Some(queue) = &change.queue {
            if !self.policy.reconfigure(queue) {
                self.policy = policy(queue);
            }
            self.spec.queue = queue.clone();
        }
    }

    /// Sends the rest of the packet on the wire at the new rate.
    fn change_rate(&mut self, now: Time, rate: Option<Rate>) {
        if let Some(old) = self.spec.rate
            && !self.wire_free.is_before(now)
        {
            // (wire_free − now) · old rate, in 10⁻¹² bits, is whole because wire_free has the old
            // rate below its fraction bar (or none).
            let Exact { numerator, denominator } = self.wire_free;
            let left =
                (numerator - u128::from(now.as_ps()) * denominator) * u128::from(old.as_bps()) / denominator;
            self.wire_free = match rate {
                None => Exact::at(now),
                Some(new) => {
                    let new = u128::from(new.as_bps());
                    Exact { numerator: u128::from(now.as_ps()) * new + left, denominator: new }
                }
            };
        }
        if self.wire_free.is_before(now) {
            self.wire_free = Exact::at(self.wire_free.floor());
        }
        if self.queue.is_empty() {
            self.idle_since = self.wire_free.floor();
        }
        self.spec.rate = rate;
    }

    /// Processes every departure up to `now`, one by one.
    fn run_until(&mut self, now: Time) {
        while !self.queue.is_empty() && self.wire_free.floor() <= now {
            let departure = self.wire_free.floor();
            let (_, packet, fate) = self.queue.remove(0);
            let exit = (departure + self.spec.delay).max(self.last_exit);
            self.last_exit = exit;
            self.line.push((exit, packet, fate));
            if self.queue.is_empty() {
                self.idle_since = departure;
            } else {
                self.send_first();
            }
        }
    }

    /// d = max(d of the frame before, arrival) + (len + overhead)·8/rate.
    fn send_first(&mut self) {
        let (arrival, packet, _) = &self.queue[0];
        if self.wire_free.is_before(*arrival) {
            self.wire_free = Exact::at(*arrival);
        }
        if let Some(rate) = self.spec.rate {
            let bits = (u128::from(packet.len) + u128::from(self.spec.overhead)) * 8;
            self.wire_free = self.wire_free.plus_bits(bits, rate);
        }
    }
}
