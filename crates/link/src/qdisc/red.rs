//! Random early detection: S. Floyd and V. Jacobson, "Random Early Detection Gateways for
//! Congestion Avoidance", IEEE/ACM Transactions on Networking 1(4), 1993, Figure 2; the gentle
//! variant (S. Floyd, "Recommendation on using the gentle_ variant of RED", 2000); ECN (RFC 3168).

use super::arrival::{Admission, AdmissionPolicy, ArrivalQueue, QueueView};
use super::limit::Limit;
use crate::packet::{DropReason, Packet};
use fastpath_units::{Bytes, Probability, Rate, Rng, Time};
use std::fmt;

/// Parameters of a RED queue. The defaults are those of ns-2 before it computed thresholds itself
/// (`tcl/lib/ns-default.tcl`, `Queue/RED`): thresholds of 5 and 15 packets, weight 0.002,
/// `linterm_` 10, mean packet 500 bytes, limit 50 packets, and gentle, the default since 2001.
///
/// The queue includes the packet on the wire and is measured before the arriving packet joins it.
/// In bytes, the probability is scaled by the packet's length over `mean_packet`, as in ns-2.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RedSpec {
    /// The hard limit. Its unit, packets or bytes, is also the unit of `min` and `max`.
    pub limit: Limit,
    /// No packet is marked while the average queue is below this (min_th), in the unit of `limit`.
    pub min: u64,
    /// Every packet is marked from this average queue on (max_th). If `gentle`, the probability
    /// reaches 1 at twice this.
    pub max: u64,
    /// Weight of the newest queue length in the average (w_q).
    pub weight: Probability,
    /// Marking probability as the average reaches `max` (max_p).
    pub max_p: Probability,
    /// The probability rises from `max_p` at `max` to 1 at twice `max` instead of jumping to 1.
    pub gentle: bool,
    /// Marks ECN-capable packets instead of dropping them while the average is below `max` (RFC
    /// 3168 §5). From `max` on congestion is persistent and they are dropped as well (§7).
    pub ecn: bool,
    /// A typical packet, for the idle time (s in the paper) and as the unit of packet lengths when
    /// the queue is counted in bytes.
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

/// The state of RED.
#[derive(Debug)]
pub(crate) struct Red {
    spec: RedSpec,
    /// The average queue (avg), in the unit of the limit.
    average: f64,
    /// Packets since the last mark or drop (count in the paper, where −1 stands for `None`).
    since_mark: Option<u64>,
}

pub(crate) type RedQueue<P> = ArrivalQueue<Red, P>;

impl AdmissionPolicy for Red {
    type Spec = RedSpec;

    fn new(spec: &RedSpec) -> Red {
        Red { spec: *spec, average: 0.0, since_mark: None }
    }

    fn spec(&self) -> RedSpec {
        self.spec
    }

    /// Keeps the average, unless its unit changes.
    fn reconfigure(&mut self, spec: &RedSpec) {
        if std::mem::discriminant(&spec.limit) != std::mem::discriminant(&self.spec.limit) {
            *self = Red::new(spec);
        }
        self.spec = *spec;
    }

    // Inlined, so that a packet costs one call and not two nested ones.
    #[inline(always)]
    fn admit(&mut self, now: Time, packet: &Packet<()>, view: QueueView, rng: &mut Rng) -> Admission {
        self.update_average(now, view);
        let selected = self.select(packet.len, rng);
        let markable = self.spec.ecn && packet.is_ect() && self.average < self.spec.max as f64;
        let admission = if selected && !markable {
            Admission::Drop(DropReason::Early)
        } else if !self.spec.limit.has_room(packet.len, view.queued) {
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

    fn reads_headers(spec: &RedSpec) -> bool {
        spec.ecn
    }

    fn describe(spec: &RedSpec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "red min {} max {} limit {}", spec.min, spec.max, spec.limit)
    }
}

impl Red {
    /// Returns the average queue, in the unit of the limit.
    pub(crate) fn average(&self) -> f64 {
        self.average
    }

    pub(crate) fn set_max_p(&mut self, max_p: Probability) {
        self.spec.max_p = max_p;
    }

    /// Figure 2, "calculate the new average queue size".
    #[inline]
    fn update_average(&mut self, now: Time, view: QueueView) {
        let weight = self.spec.weight.get();
        self.average = match view.idle_since {
            None => {
                let queue = match self.spec.limit {
                    Limit::Packets(_) => view.queued.packets,
                    Limit::Bytes(_) => view.queued.bytes,
                };
                self.average + weight * (queue as f64 - self.average)
            }
            // An average of 0 does not decay. Most packets of a quiet link take this branch.
            Some(_) if self.average == 0.0 => 0.0,
            Some(since) => {
                let missed = packets_missed(now, since, view.rate, self.spec.mean_packet);
                self.average * power(1.0 - weight, missed)
            }
        };
    }

    /// Returns true if the packet is to be marked or dropped: Figure 2, from "if min_th ≤ avg <
    /// max_th" on.
    // Not inlined, so that the code of drop-tail queues stays small.
    #[inline(never)]
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
        // p_a = p_b / (1 − count·p_b) spaces marks evenly instead of in bursts.
        let left = 1.0 - count as f64 * base;
        rng.unit_f64() * left < base
    }
}

/// Returns how many typical packets the idle link could have sent: m = f(time − q_time), in whole
/// packets.
fn packets_missed(now: Time, since: Time, rate: Option<Rate>, mean_packet: Bytes) -> u64 {
    match rate {
        None => u64::MAX,
        Some(rate) => rate.bytes_in(now.since(since)).0.checked_div(mean_packet.0).unwrap_or(u64::MAX),
    }
}

/// Returns `base` to the power of `exponent` by squaring. `f64::powi` may differ between machines;
/// multiplication does not.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Volume;

    const NOW: Time = Time::from_ps(1_000_000_000_000);

    /// Thresholds 2 and 4, and a weight of one half: every average is a binary fraction.
    fn spec() -> RedSpec {
        let half = Probability::new(0.5).expect("a probability");
        RedSpec { min: 2, max: 4, weight: half, max_p: half, ..RedSpec::default() }
    }

    fn packet(traffic_class: u8) -> Packet<()> {
        Packet { len: 500, flow: 0, traffic_class, data: () }
    }

    /// A queue of packets of 500 bytes each.
    fn queue(packets: u64) -> QueueView {
        let idle_since = (packets == 0).then_some(NOW);
        QueueView {
            queued: Volume { packets, bytes: packets * 500 },
            idle_since,
            rate: Rate::from_bps(4_000),
        }
    }

    fn red_at(average: f64, spec: RedSpec) -> Red {
        Red { spec: RedSpec { weight: Probability::NEVER, ..spec }, average, since_mark: None }
    }

    #[test]
    fn the_average_the_count_and_the_fates_follow_the_paper() {
        use Admission::{Drop, Take};
        let early = Drop(DropReason::Early);
        // The queue found, then the average, p_a and the draw that decides, count, and fate.
        let table = [
            (0, 0.0, "no draw", None, Take),
            (2, 1.0, "no draw", None, Take),
            (3, 2.0, "0 > 0.812: no", Some(0), Take),
            (4, 3.0, "1/3 > 0.747: no", Some(1), Take),
            (3, 3.0, "1/2 > 0.100", Some(0), early),
            (3, 3.0, "1/3 > 0.746: no", Some(1), Take),
            (3, 3.0, "1/2 > 0.185", Some(0), early),
            (7, 5.0, "1 > 0.590, gentle", Some(0), early),
            (3, 4.0, "1 > 0.987, gentle", Some(0), early),
            (1, 2.5, "1/7 > 0.523: no", Some(1), Take),
            (14, 8.25, "no draw", Some(0), early),
            (0, 8.25, "no draw, idle for no time", Some(0), early),
        ];
        let (mut red, mut rng) = (Red::new(&spec()), Rng::new(1));
        for (found, average, why, count, fate) in table {
            let got = red.admit(NOW, &packet(0), queue(found), &mut rng);
            assert_eq!((red.average, red.since_mark, got), (average, count, fate), "{found}: {why}");
        }
    }

    #[test]
    fn the_average_decays_on_an_idle_link_as_if_typical_packets_had_found_it_empty() {
        // 500 bytes at 4 kbit/s: one typical packet a second.
        for (idle_ms, average) in [(0, 8.0), (999, 8.0), (1_000, 4.0), (3_500, 1.0), (u64::MAX, 0.0)] {
            let idle = fastpath_units::Duration::from_ps(idle_ms.saturating_mul(1_000_000_000));
            let mut red = Red { average: 8.0, ..Red::new(&spec()) };
            let _ = red.admit(NOW.saturating_add(idle), &packet(0), queue(0), &mut Rng::new(1));
            assert_eq!(red.average, average, "{idle_ms} ms");
        }
    }

    #[test]
    fn marks_are_spread_uniformly() {
        // The average is half way between the thresholds: p_b = 0.1. Figure 2 counts the arriving
        // packet before it computes p_a = 0.1/(1 − count·0.1), so that the gap between marks is
        // uniform on 1 … 9.
        let max_p = Probability::new(0.2).expect("a probability");
        let (mut red, mut rng) = (red_at(3.0, RedSpec { max_p, ..spec() }), Rng::new(5));
        let (mut gaps, mut gap, mut marks) = ([0f64; 10], 0, 0.0);
        for _ in 0..100_000 {
            gap += 1;
            if red.admit(NOW, &packet(0), queue(1), &mut rng) != Admission::Take {
                gaps[gap - 1] += 1.0;
                marks += 1.0;
                gap = 0;
            }
        }
        let expected = marks / 9.0;
        assert_eq!(gaps[9], 0.0);
        // χ² with 8 degrees of freedom: 26.1 is its 99.9 % quantile.
        let chi2: f64 = gaps[..9].iter().map(|n| (n - expected).powi(2) / expected).sum();
        assert!(chi2 < 26.1, "{chi2} {gaps:?}");
    }

    #[test]
    fn the_gentle_variant_rises_to_1_at_twice_the_maximum_and_the_original_jumps_to_1() {
        for (average, gentle, p) in [
            (1.99, true, 0.0),
            (3.0, true, 0.25),
            (4.0, true, 0.5),
            (6.0, true, 0.75),
            (8.0, true, 1.0),
            (3.0, false, 0.25),
            (4.0, false, 1.0),
        ] {
            let mut rng = Rng::new(9);
            let n = 10_000;
            let marked = (0..n)
                .filter(|_| {
                    let mut red = red_at(average, RedSpec { gentle, ..spec() });
                    red.admit(NOW, &packet(0), queue(1), &mut rng) != Admission::Take
                })
                .count() as f64;
            let sigma = (f64::from(n) * p * (1.0 - p)).sqrt();
            assert!((marked - f64::from(n) * p).abs() <= 3.291 * sigma, "{average} {gentle}: {marked}");
        }
    }

    #[test]
    fn ecn_capable_packets_are_marked_up_to_the_maximum_and_dropped_beyond() {
        let spec = RedSpec { max_p: Probability::ALWAYS, ecn: true, ..spec() };
        let early = Admission::Drop(DropReason::Early);
        for (average, traffic_class, fate) in [
            (3.9999, 0b00, early),
            (3.9999, 0b01, Admission::Mark),
            (3.9999, 0b10, Admission::Mark),
            (3.9999, 0b11, Admission::Mark),
            (8.0, 0b10, early),
        ] {
            let got = red_at(average, spec).admit(NOW, &packet(traffic_class), queue(1), &mut Rng::new(1));
            assert_eq!(got, fate, "{average} {traffic_class:02b}");
        }
    }

    #[test]
    fn a_full_queue_drops_packets_that_red_would_take_or_mark() {
        let spec = RedSpec { ecn: true, max_p: Probability::ALWAYS, limit: Limit::Packets(3), ..spec() };
        for average in [0.0, 3.9999] {
            let got = red_at(average, spec).admit(NOW, &packet(2), queue(3), &mut Rng::new(1));
            assert_eq!(got, Admission::Drop(DropReason::QueueFull), "{average}");
        }
    }

    #[test]
    fn counted_in_bytes_a_long_packet_is_more_likely_to_be_marked() {
        let limit = Limit::Bytes(Bytes(100_000));
        let spec =
            RedSpec { limit, min: 1000, max: 3000, max_p: Probability::new(0.2).expect("0.2"), ..spec() };
        let marked = |len| {
            let mut rng = Rng::new(4);
            (0..20_000)
                .filter(|_| {
                    let mut red = red_at(2000.0, spec);
                    red.admit(NOW, &Packet { len, ..packet(0) }, queue(4), &mut rng) != Admission::Take
                })
                .count()
        };
        // p_b = 0.1 at 500 bytes: 0.05, 0.1 and 0.3; ± 3.291 σ.
        assert!((900..=1101).contains(&marked(250)), "{}", marked(250));
        assert!((1861..=2139).contains(&marked(500)), "{}", marked(500));
        assert!((5787..=6213).contains(&marked(1500)), "{}", marked(1500));
    }
}
