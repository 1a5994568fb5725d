//! The specification of a pipe, executable: slow, obvious, and written apart from `pipe.rs`.
//!
//! Every departure is an event processed on its own; times are exact fractions computed from the
//! formula d = max(d of the frame before, arrival) + bits/rate; the queue and the delay line are
//! two lists; RED is Figure 2 of the paper line by line. Whatever is fast is tested against this.
//! Disciplines that decide when a packet's turn comes have their twins in `aqm`.

pub mod aqm;
mod codel;
mod drr;
mod dualpi2;
mod fq_codel;
mod pie;
mod token_bucket;

use crate::LossSpec;
use crate::packet::{DropReason, Exit, Fate, Packet, Verdict};
use crate::qdisc::{AredSpec, Limit, QueueSpec, RedSpec};
use crate::spec::{Change, PipeSpec};
use fastpath_units::{Duration, Rate, Rng, Time};

const PS_PER_S: u128 = 1_000_000_000_000;

/// An instant as an exact fraction of picoseconds. Within one rate, every denominator is that rate.
#[derive(Clone, Copy, Debug)]
struct Exact {
    numerator: u128,
    denominator: u128,
}

impl Exact {
    fn at(time: Time) -> Exact {
        Exact { numerator: u128::from(time.as_ps()), denominator: 1 }
    }

    fn floor(self) -> Time {
        Time::from_ps(u64::try_from(self.numerator / self.denominator).expect("within 213 days"))
    }

    fn is_before(self, time: Time) -> bool {
        self.numerator < u128::from(time.as_ps()) * self.denominator
    }

    /// `self` + `bits`/`rate` seconds.
    fn plus_bits(self, bits: u128, rate: Rate) -> Exact {
        let rate = u128::from(rate.as_bps());
        let numerator = match self.denominator {
            1 => self.numerator * rate,
            _ => {
                assert_eq!(self.denominator, rate, "a busy period has one rate");
                self.numerator
            }
        };
        Exact { numerator: numerator + bits * PS_PER_S, denominator: rate }
    }
}

/// A pipe that can be read as its own definition. Same arguments and answers as
/// [`Pipe`](crate::Pipe).
#[derive(Debug)]
pub struct Oracle<P> {
    spec: PipeSpec,
    rng: Rng,
    /// The R queue with arrival times; its first packet is on the wire until `wire_free`.
    queue: Vec<(Time, Packet<P>, Fate)>,
    /// When the wire has sent, or will have sent, all it was given.
    wire_free: Exact,
    /// The P queue with exit times.
    line: Vec<(Time, Packet<P>, Fate)>,
    last_exit: Time,
    red: RedVariables,
}

/// The "saved variables" of Figure 2.
#[derive(Debug, Default)]
struct RedVariables {
    avg: f64,
    q_time: Time,
    count: i64,
    /// Of adaptive RED: max_p if it has been adapted, and the intervals that have passed.
    max_p: Option<f64>,
    intervals: u64,
}

impl<P> Oracle<P> {
    /// An empty pipe.
    pub fn new(spec: &PipeSpec, rng: Rng) -> Oracle<P> {
        Oracle {
            spec: spec.clone(),
            rng,
            queue: Vec::new(),
            wire_free: Exact::at(Time::ZERO),
            line: Vec::new(),
            last_exit: Time::ZERO,
            red: RedVariables { count: -1, ..RedVariables::default() },
        }
    }

    /// A packet arrives at `now`.
    pub fn push(&mut self, now: Time, mut packet: Packet<P>) -> Verdict<P> {
        self.run_until(now);
        if let LossSpec::Uniform(p) = self.spec.loss
            && self.rng.unit_f64() < p.get()
        {
            return Verdict::Dropped(DropReason::Loss, packet.data);
        }
        let mut marked = false;
        let limit = match self.spec.queue.clone() {
            QueueSpec::DropTail(limit) => limit,
            QueueSpec::DropTailTime(longest) => {
                // What would be sent of it in that time, and the newcomer on top.
                let bits = self.spec.rate.map(|rate| u128::from(longest.as_ps()) * u128::from(rate.as_bps()));
                let fits = |bits: u128| u128::from(self.queued_bytes()) * 8 * PS_PER_S <= bits;
                match bits.is_none_or(fits) {
                    true => Limit::Packets(u32::MAX),
                    false => Limit::Packets(0),
                }
            }
            QueueSpec::Red(_) | QueueSpec::Ared(_) => {
                let red = self.red_as_adapted(now);
                if self.red_marks(now, &packet, red) {
                    let ect = packet.traffic_class & 3 > 0;
                    if red.ecn && ect && self.red.avg < red.max as f64 {
                        marked = true;
                    } else {
                        return Verdict::Dropped(DropReason::Early, packet.data);
                    }
                }
                red.limit
            }
            other => panic!("{other} decides at dequeue: see the module `aqm`"),
        };
        let full = match limit {
            Limit::Packets(most) => self.queue.len() + 1 > most as usize,
            Limit::Bytes(most) => self.queued_bytes() + u64::from(packet.len) > most.0,
        };
        if full {
            self.red.count = 0;
            return Verdict::Dropped(DropReason::QueueFull, packet.data);
        }
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

    /// New parameters from `now` on.
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
            let same_unit = |old: &RedSpec, new: &RedSpec| {
                matches!(old.limit, Limit::Packets(_)) == matches!(new.limit, Limit::Packets(_))
            };
            let red_stays = match (&self.spec.queue, queue) {
                (QueueSpec::Red(old), QueueSpec::Red(new)) => same_unit(old, new),
                _ => false,
            };
            if !red_stays {
                self.red.avg = 0.0;
                self.red.count = -1;
            }
            self.spec.queue = queue.clone();
        }
    }

    /// The bits the wire still has to send at the old rate are sent at the new one.
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
            self.red.q_time = self.wire_free.floor();
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
                self.red.q_time = departure;
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

    fn queued_bytes(&self) -> u64 {
        self.queue.iter().map(|(_, packet, _)| u64::from(packet.len)).sum()
    }

    /// The parameters of RED; adaptive RED's by Figure 1 of Floyd, Gummadi, Shenker 2001, "every
    /// interval seconds".
    fn red_as_adapted(&mut self, now: Time) -> RedSpec {
        let AredSpec { red, interval, target } = match self.spec.queue {
            QueueSpec::Red(red) => return red,
            QueueSpec::Ared(ared) => ared,
            _ => panic!("this queue is no RED"),
        };
        let red = target.map_or(red, |target| self.red_by_rate(red, target));
        let (min_th, max_th) = (red.min as f64, red.max as f64);
        let mut max_p = self.red.max_p.unwrap_or(red.max_p.get());
        let passed = now.as_ps() / interval.as_ps();
        while self.red.intervals < passed {
            self.red.intervals += 1;
            if self.red.avg > min_th + 0.6 * (max_th - min_th) && max_p <= 0.5 {
                max_p += f64::min(0.01, max_p / 4.0);
            } else if self.red.avg < min_th + 0.4 * (max_th - min_th) && max_p >= 0.01 {
                max_p *= 0.9;
            } else {
                // Nor will it be at the others.
                self.red.intervals = passed;
            }
        }
        self.red.max_p = Some(max_p);
        RedSpec { max_p: fastpath_units::Probability::new(max_p).expect("0 … 1"), ..red }
    }

    /// Thresholds by the rate: min_th = max(5, delay·C/2) and max_th = 3 min_th packets, w_q = 1 −
    /// exp(−1/C), C in packets/s.
    fn red_by_rate(&self, red: RedSpec, target: Duration) -> RedSpec {
        let unit = if matches!(red.limit, Limit::Bytes(_)) { red.mean_packet.0 } else { 1 };
        let Some(rate) = self.spec.rate else { return RedSpec { min: 5 * unit, max: 15 * unit, ..red } };
        let c = rate.as_bps() as f64 / (8 * red.mean_packet.0) as f64;
        let min = u64::max(5, (target.as_secs_f64() * c / 2.0) as u64) * unit;
        let weight = fastpath_units::Probability::new(1.0 - crate::math::exp(-1.0 / c)).expect("0 … 1");
        RedSpec { min, max: 3 * min, weight, ..red }
    }

    /// Figure 2 of Floyd & Jacobson 1993, with the gentle variant: true if the arriving packet is
    /// marked.
    fn red_marks(&mut self, now: Time, packet: &Packet<P>, spec: RedSpec) -> bool {
        let RedSpec { limit, min, max, weight, max_p, gentle, mean_packet, .. } = spec;
        let (min_th, max_th, w_q, max_p) = (min as f64, max as f64, weight.get(), max_p.get());
        let by_bytes = matches!(limit, Limit::Bytes(_));
        let red = &mut self.red;
        if self.queue.is_empty() {
            let m = typical_packets(now.since(red.q_time), self.spec.rate, mean_packet.0);
            red.avg *= raise(1.0 - w_q, m);
        } else {
            let bytes = self.queue.iter().map(|(_, packet, _)| u64::from(packet.len)).sum::<u64>();
            let q = if by_bytes { bytes as f64 } else { self.queue.len() as f64 };
            red.avg += w_q * (q - red.avg);
        }
        if red.avg < min_th {
            red.count = -1;
            return false;
        }
        if red.avg >= if gentle { 2.0 * max_th } else { max_th } {
            red.count = 0;
            return true;
        }
        red.count += 1;
        let mut p_b = if red.avg < max_th {
            max_p * (red.avg - min_th) / (max_th - min_th)
        } else {
            max_p + (1.0 - max_p) * (red.avg - max_th) / max_th
        };
        if by_bytes {
            p_b = p_b * f64::from(packet.len) / mean_packet.0 as f64;
        }
        // p_a = p_b / (1 − count·p_b), which is 1 once the denominator is no larger than p_b.
        let denominator = 1.0 - red.count as f64 * p_b;
        let draw = self.rng.unit_f64();
        let marked = draw * denominator < p_b;
        if marked {
            red.count = 0;
        }
        marked
    }
}

/// m = (time − q_time)/s with s the time of a typical packet, in whole packets.
fn typical_packets(idle: Duration, rate: Option<Rate>, mean_packet: u64) -> u128 {
    match rate {
        Some(rate) if mean_packet > 0 => {
            u128::from(idle.as_ps()) * u128::from(rate.as_bps()) / (u128::from(mean_packet) * 8 * PS_PER_S)
        }
        _ => u128::MAX,
    }
}

/// `base`ᵐ by the binary method of Knuth, TAOCP 4.6.3, in the order in which the pipe multiplies.
fn raise(base: f64, m: u128) -> f64 {
    let m = m.min(u128::from(u64::MAX));
    let mut squares = base;
    let mut product = 1.0;
    for bit in 0..64 {
        if m >> bit & 1 == 1 {
            product *= squares;
        }
        squares *= squares;
    }
    product
}
