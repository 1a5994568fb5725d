//! Random early detection: S. Floyd and V. Jacobson, "Random Early Detection Gateways for
//! Congestion Avoidance", IEEE/ACM Transactions on Networking 1(4), 1993, Figure 2; the gentle
//! variant (S. Floyd, "Recommendation on using the gentle_ variant of RED", 2000); ECN (RFC 3168).
//!
//! The average of an idle link decays as if m typical packets had found the queue empty. The paper
//! has m = f(time − q_time), a linear function of the time. ns-2 and Linux have rules of their own
//! ([`RedIdle`]).

use super::arrival::{Admission, AdmissionPolicy, ArrivalQueue, QueueView};
use super::limit::Limit;
use crate::packet::{DropReason, Packet};
use fastpath_units::{Bytes, Duration, Probability, Rate, Rng, Time, math};
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
    /// How the average decays while the link is idle.
    pub idle: RedIdle,
}

/// How the average of a RED queue decays while the link is idle. w is the weight, m the idle time
/// over the time of a typical packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RedIdle {
    /// (1 − w)ᵐ, fractions of a packet included: the paper's f is linear in the time.
    #[default]
    Time,
    /// (1 − w)ᵏ, where k is m in whole packets and one more: the estimator of ns-2 counts the
    /// arriving packet, which finds the queue empty (`REDQueue::enque` in `queue/red.cc`).
    Ns2,
    /// Halved as often as the table of tc-red(8) says, with a line before the first time. tc
    /// computes the table in ticks of 64 ns, and the kernel reads it with whole microseconds
    /// (`red_calc_qavg_from_idle_time` in `include/net/red.h`).
    Linux,
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
            idle: RedIdle::Time,
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
                let rest = Decay { weight, mean_packet: self.spec.mean_packet, rate: view.rate };
                rest.after(self.average, now.since(since), self.spec.idle)
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

/// What the decay of an average depends on.
struct Decay {
    weight: f64,
    mean_packet: Bytes,
    rate: Option<Rate>,
}

impl Decay {
    /// Returns the average after an idle time. Without a rate a packet takes no time.
    // Not inlined, so that the code of busy queues stays small.
    #[inline(never)]
    fn after(&self, average: f64, idle: Duration, rule: RedIdle) -> f64 {
        let Some(rate) = self.rate.filter(|_| self.mean_packet > Bytes::ZERO) else { return 0.0 };
        // Exact up to the conversion to a number of packets.
        let tokens = u128::from(idle.as_ps()) * u128::from(rate.as_bps());
        let packet = u128::from(self.mean_packet.0) * 8_000_000_000_000;
        match rule {
            RedIdle::Time => average * power(1.0 - self.weight, tokens as f64 / packet as f64),
            RedIdle::Ns2 => {
                let whole = u64::try_from(tokens / packet).unwrap_or(u64::MAX).saturating_add(1);
                average * whole_power(1.0 - self.weight, whole)
            }
            RedIdle::Linux => self.shifted(average, idle, rate),
        }
    }

    /// The kernel's rule. Its table has 255 cells of 2ⁿ ticks each, n such that fewer than 512
    /// cells reach 31 halvings (tc_red_eval_idle_damping in `tc/tc_red.c` of iproute2).
    fn shifted(&self, average: f64, idle: Duration, rate: Rate) -> f64 {
        if self.weight >= 1.0 || self.weight <= 0.0 {
            return if self.weight >= 1.0 { 0.0 } else { average };
        }
        let packet_ticks = self.mean_packet.0 as f64 * 8.0 * TICKS_PER_S / rate.as_bps() as f64;
        let per_tick = -math::ln(1.0 - self.weight) / packet_ticks;
        let cell_log = (0..32u32).find(|log| HALVINGS_MAX / per_tick / f64::from(1u32 << log) < 512.0);
        let Some(cell_log) = cell_log else { return average };
        let us = (idle.as_ps() / 1_000_000).min(CELLS << cell_log);
        let cell = us >> cell_log;
        let halvings = match cell {
            CELLS => HALVINGS_MAX,
            _ => ((cell << cell_log) as f64 * per_tick).min(HALVINGS_MAX).floor(),
        };
        if halvings >= 1.0 {
            return average * whole_power(0.5, halvings as u64);
        }
        average * (1.0 - us as f64 / (1u64 << cell_log) as f64).max(0.5)
    }
}

/// The last cell of the kernel's table, and its largest number of halvings.
const CELLS: u64 = 255;
const HALVINGS_MAX: f64 = 31.0;
/// Ticks of tc (/proc/net/psched).
const TICKS_PER_S: f64 = 15_625_000.0;

/// Returns `base` (0 … 1) to the power of `exponent`, identically on every machine.
fn power(base: f64, exponent: f64) -> f64 {
    if exponent == 0.0 || base == 1.0 {
        return 1.0;
    }
    if base == 0.0 { 0.0 } else { math::exp(exponent * math::ln(base)) }
}

/// Returns `base` to the power of `exponent` by squaring. `f64::powi` may differ between machines;
/// multiplication does not.
fn whole_power(mut base: f64, mut exponent: u64) -> f64 {
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
        Packet { traffic_class, ..Packet::new(500, ()) }
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

    /// The average after an idle time in nanoseconds, from 8.
    fn decayed(idle_ns: u64, idle: RedIdle, weight: f64) -> f64 {
        let weight = Probability::new(weight).expect("a probability");
        let passed = fastpath_units::Duration::from_ps(idle_ns.saturating_mul(1000));
        let mut red = Red { average: 8.0, ..Red::new(&RedSpec { idle, weight, ..spec() }) };
        let _ = red.admit(NOW.saturating_add(passed), &packet(0), queue(0), &mut Rng::new(1));
        red.average
    }

    #[test]
    fn the_average_decays_on_an_idle_link_by_the_time_as_in_the_paper() {
        // 500 bytes at 4 kbit/s: one typical packet a second. A weight of a half: 8·2^−m.
        for (ms, average) in [
            (0, 8.0),
            (1, 7.994_456_743),
            (500, 5.656_854_249),
            (1_000, 4.0),
            (3_500, std::f64::consts::FRAC_1_SQRT_2),
        ] {
            let found = decayed(ms * 1_000_000, RedIdle::Time, 0.5);
            assert!((found - average).abs() < 1e-8, "{ms} ms: {found}");
        }
        assert_eq!(decayed(u64::MAX, RedIdle::Time, 0.5), 0.0);
        assert_eq!([0.0, 1.0].map(|weight| decayed(500_000_000, RedIdle::Time, weight)), [8.0, 0.0]);
    }

    #[test]
    fn ns2_counts_whole_packets_and_the_arriving_one() {
        for (ms, average) in [(0, 4.0), (999, 4.0), (1_000, 2.0), (3_500, 0.5)] {
            assert_eq!(decayed(ms * 1_000_000, RedIdle::Ns2, 0.5), average, "{ms} ms");
        }
        assert_eq!(decayed(u64::MAX, RedIdle::Ns2, 0.5), 0.0);
    }

    #[test]
    fn linux_halves_by_its_table_and_begins_with_a_line() {
        // A packet of 15 625 000 ticks and a weight of a half: 31 halvings in 6.99·10⁸ ticks, so
        // cells of 2²¹, each 0.0930 halvings. The line ends at a half.
        let cell = 1u64 << 21;
        for (us, average) in [
            (0, 8.0),
            (cell / 4, 6.0),
            (cell, 4.0),
            (10 * cell, 4.0),
            (21 * cell, 4.0),
            (22 * cell, 2.0),
            (300 * cell, 8.0 / (1u64 << 31) as f64),
        ] {
            assert_eq!(decayed(us * 1000, RedIdle::Linux, 0.5), average, "{us} µs");
        }
        // With the weight of ns-2 a packet's time changes little, by either rule.
        let [exact, linux] = [RedIdle::Time, RedIdle::Linux].map(|rule| decayed(1_000_000_000, rule, 0.002));
        assert!((exact / 7.984 - 1.0).abs() < 1e-9 && (linux / exact - 1.0).abs() < 0.001, "{exact} {linux}");
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
