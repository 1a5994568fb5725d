//! Random early detection: S. Floyd and V. Jacobson, "Random Early Detection Gateways for Congestion
//! Avoidance", IEEE/ACM Transactions on Networking 1(4), 1993, Figure 2; the gentle variant (S. Floyd,
//! "Recommendation on using the gentle_ variant of RED", 2000); ECN (RFC 3168).

use super::{Admission, Backlog, Limit};
use crate::packet::{DropReason, Packet};
use fastpath_units::{Bytes, Probability, Rate, Rng, Time};

/// Parameters of a RED queue. The defaults are ns-2's (`tcl/lib/ns-default.tcl`, `Queue/RED`): thresholds
/// of 5 and 15 packets, weight 0.002, `linterm_` 10, gentle, mean packet 500 bytes, limit 50 packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RedSpec {
    /// The hard limit. Its unit, packets or bytes, is that of `min` and `max`.
    pub limit: Limit,
    /// Below this average queue nothing is marked (min_th), in the unit of `limit`.
    pub min: u64,
    /// From this average queue on everything is marked (max_th), or more and more up to twice that if `gentle`.
    pub max: u64,
    /// Weight of the newest queue length in the average (w_q).
    pub weight: Probability,
    /// Marking probability as the average reaches `max` (max_p).
    pub max_p: Probability,
    /// Lets the probability rise from `max_p` at `max` to 1 at twice `max` instead of jumping.
    pub gentle: bool,
    /// Marks ECN-capable packets instead of dropping them while the average is below `max`.
    pub ecn: bool,
    /// A typical packet, for the idle time (s in the paper) and to weigh packet sizes when counting bytes.
    pub mean_packet: Bytes,
}

impl Default for RedSpec {
    fn default() -> RedSpec {
        RedSpec {
            limit: Limit::Packets(50),
            min: 5,
            max: 15,
            weight: Probability::new(0.002).expect("0.002 is a probability"),
            max_p: Probability::new(0.1).expect("0.1 is a probability"),
            gentle: true,
            ecn: false,
            mean_packet: Bytes(500),
        }
    }
}

/// A RED queue at work.
#[derive(Debug)]
pub(crate) struct Red {
    spec: RedSpec,
    /// The average queue (avg), in the unit of the limit.
    average: f64,
    /// Packets since the last mark (count + 1 in the paper: `None` is its −1).
    since_mark: Option<u64>,
}

impl Red {
    pub(crate) fn new(spec: RedSpec) -> Red {
        Red { spec, average: 0.0, since_mark: None }
    }

    pub(crate) fn spec(&self) -> RedSpec {
        self.spec
    }

    /// Takes new parameters and keeps the average. The average starts anew if its unit changes.
    pub(crate) fn change(&mut self, spec: RedSpec) {
        if std::mem::discriminant(&spec.limit) != std::mem::discriminant(&self.spec.limit) {
            *self = Red::new(spec);
        }
        self.spec = spec;
    }

    pub(crate) fn admit<P>(
        &mut self,
        now: Time,
        packet: &Packet<P>,
        backlog: Backlog,
        rng: &mut Rng,
    ) -> Admission {
        self.update_average(now, backlog);
        let selected = self.select(packet.len, rng);
        let markable = self.spec.ecn && packet.is_ect() && self.average < self.spec.max as f64;
        let admission = if selected && !markable {
            Admission::Drop(DropReason::Early)
        } else if !self.spec.limit.has_room(packet.len, backlog.queued) {
            Admission::Drop(DropReason::QueueFull)
        } else if selected {
            Admission::Mark
        } else {
            Admission::Take
        };
        if admission != Admission::Take {
            self.since_mark = Some(0);
        }
        admission
    }

    /// Figure 2, "calculate the new average queue size".
    fn update_average(&mut self, now: Time, backlog: Backlog) {
        let weight = self.spec.weight.get();
        self.average = match backlog.idle_since {
            None => {
                let queue = match self.spec.limit {
                    Limit::Packets(_) => backlog.queued.packets,
                    Limit::Bytes(_) => backlog.queued.bytes,
                };
                self.average + weight * (queue as f64 - self.average)
            }
            Some(since) => {
                let missed = packets_missed(now, since, backlog.rate, self.spec.mean_packet);
                self.average * power(1.0 - weight, missed)
            }
        };
    }

    /// True if the packet is to be marked or dropped: Figure 2, from "if min_th ≤ avg < max_th" on.
    fn select(&mut self, len: u32, rng: &mut Rng) -> bool {
        let (min, max) = (self.spec.min as f64, self.spec.max as f64);
        let max_p = self.spec.max_p.get();
        let base = if self.average < min {
            self.since_mark = None;
            return false;
        } else if self.average < max {
            max_p * (self.average - min) / (max - min)
        } else if self.spec.gentle && self.average < 2.0 * max {
            max_p + (1.0 - max_p) * (self.average - max) / max
        } else {
            return true;
        };
        let base = match self.spec.limit {
            Limit::Packets(_) => base,
            Limit::Bytes(_) => base * f64::from(len) / self.spec.mean_packet.0 as f64,
        };
        let count = self.since_mark.map_or(0, |count| count + 1);
        self.since_mark = Some(count);
        // p_a = p_b / (1 − count·p_b): marks are spread evenly, not in bursts.
        let left = 1.0 - count as f64 * base;
        rng.unit_f64() * left < base
    }
}

/// How many typical packets the idle link could have sent: m = f(time − q_time), whole packets.
fn packets_missed(now: Time, since: Time, rate: Option<Rate>, mean_packet: Bytes) -> u64 {
    match rate {
        None => u64::MAX,
        Some(rate) => rate.bytes_in(now.since(since)).0.checked_div(mean_packet.0).unwrap_or(u64::MAX),
    }
}

/// `base` to the `exponent` by squaring: `f64::powi` may differ between machines, multiplication does not.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}
