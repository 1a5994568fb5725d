//! Adaptive RED: S. Floyd, R. Gummadi, S. Shenker, "Adaptive RED: An Algorithm for Increasing the
//! Robustness of RED's Active Queue Management", 2001, Figure 1. max_p follows the average queue,
//! so that the average stays between the thresholds at any load. With a target delay the thresholds
//! and the weight follow the rate, as in the paper; the smallest threshold is that of ns-2.

use super::arrival::{Admission, AdmissionPolicy, ArrivalQueue, QueueView};
use super::limit::Limit;
use super::red::{Red, RedSpec};
use crate::packet::Packet;
use fastpath_units::{Duration, Probability, Rate, Rng, Time, math};
use std::fmt;

/// Parameters of adaptive RED. The defaults are those of RED, and the paper's interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AredSpec {
    /// Parameters of RED. `max_p` is the initial value.
    pub red: RedSpec,
    /// The time between adaptations of max_p, above 0.
    pub interval: Duration,
    /// The target for the average delay. If it is given, thresholds and weight follow the rate, and
    /// those of `red` are ignored.
    pub target: Option<Duration>,
}

impl Default for AredSpec {
    fn default() -> AredSpec {
        AredSpec { red: RedSpec::default(), interval: Duration::from_ms(500), target: None }
    }
}

/// The paper's bounds of max_p, its factor of decrease, and its largest increase.
const MAX_P_LOW: f64 = 0.01;
const MAX_P_HIGH: f64 = 0.5;
const DECREASE: f64 = 0.9;
const INCREASE: f64 = 0.01;

/// The state of adaptive RED.
#[derive(Debug)]
pub(crate) struct Ared {
    spec: AredSpec,
    red: Red,
    /// The rate that the thresholds follow, if they do.
    rate: Option<Rate>,
    /// The next adaptation. Adaptations are made late, in order, when a packet arrives.
    next: Time,
}

pub(crate) type AredQueue<P> = ArrivalQueue<Ared, P>;

impl AdmissionPolicy for Ared {
    type Spec = AredSpec;

    fn new(spec: &AredSpec) -> Ared {
        let red = spec.target.map_or(spec.red, |target| by_rate(spec.red, target, None));
        let next = Time::ZERO.saturating_add(spec.interval);
        Ared { spec: *spec, red: Red::new(&red), rate: None, next }
    }

    fn spec(&self) -> AredSpec {
        self.spec
    }

    /// Keeps the average, and the adapted max_p unless max_p itself changes.
    fn reconfigure(&mut self, spec: &AredSpec) {
        let adapted = self.red.spec().max_p;
        let max_p = if spec.red.max_p == self.spec.red.max_p { adapted } else { spec.red.max_p };
        let red = RedSpec { max_p, ..spec.red };
        self.red.reconfigure(&spec.target.map_or(red, |target| by_rate(red, target, self.rate)));
        self.spec = *spec;
    }

    #[inline(never)]
    fn admit(&mut self, now: Time, packet: &Packet<()>, view: QueueView, rng: &mut Rng) -> Admission {
        if let Some(target) = self.spec.target
            && view.rate != self.rate
        {
            self.rate = view.rate;
            self.red.reconfigure(&by_rate(self.red.spec(), target, self.rate));
        }
        self.adapt_until(now);
        self.red.admit(now, packet, view, rng)
    }

    fn reads_headers(spec: &AredSpec) -> bool {
        spec.red.ecn
    }

    fn describe(AredSpec { red, target, .. }: &AredSpec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match target {
            Some(target) => write!(f, "ared target {target} limit {}", red.limit),
            None => write!(f, "ared min {} max {} limit {}", red.min, red.max, red.limit),
        }
    }
}

impl Ared {
    /// Makes every adaptation due by `now`, with the average of the last arrival. Once an
    /// adaptation changes nothing, the others are skipped.
    fn adapt_until(&mut self, now: Time) {
        let period = self.spec.interval.as_ps().max(1);
        while self.next <= now {
            if !self.adapt() {
                let missed = now.since(self.next).as_ps() / period;
                self.next = self.next.saturating_add(Duration::from_ps(missed * period));
            }
            self.next = match self.next.checked_add(Duration::from_ps(period)) {
                Some(next) => next,
                None => return,
            };
        }
    }

    /// Makes one adaptation (Figure 1) and returns true if max_p has changed.
    fn adapt(&mut self) -> bool {
        let red = self.red.spec();
        let (min, max, max_p) = (red.min as f64, red.max as f64, red.max_p.get());
        // The target range is from 0.4 to 0.6 of the way from min_th to max_th.
        let [low, high] = [0.4, 0.6].map(|share| min + share * (max - min));
        let average = self.red.average();
        let adapted = if average > high && max_p <= MAX_P_HIGH {
            max_p + INCREASE.min(max_p / 4.0)
        } else if average < low && max_p >= MAX_P_LOW {
            max_p * DECREASE
        } else {
            return false;
        };
        let max_p = Probability::new(adapted).unwrap_or(red.max_p);
        self.red.set_max_p(max_p);
        true
    }
}

/// Returns the parameters that follow the rate: min_th = max(5, target · C/2) packets, max_th =
/// 3·min_th, w_q = 1 − exp(−1/C), where C is the rate in typical packets per second.
fn by_rate(red: RedSpec, target: Duration, rate: Option<Rate>) -> RedSpec {
    let unit = match red.limit {
        Limit::Packets(_) => 1,
        Limit::Bytes(_) => red.mean_packet.0,
    };
    let per_s = rate.map(|rate| rate.as_bps() as f64 / (red.mean_packet.0 * 8) as f64);
    let packets = per_s.map_or(0, |per_s| (target.as_secs_f64() * per_s / 2.0) as u64);
    let min = packets.max(5).saturating_mul(unit);
    let weight = per_s.and_then(|per_s| Probability::new(1.0 - math::exp(-1.0 / per_s)));
    RedSpec { min, max: min.saturating_mul(3), weight: weight.unwrap_or(red.weight), ..red }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Volume;
    use fastpath_units::Bytes;

    #[test]
    fn thresholds_follow_the_rate_where_a_target_is_given() {
        // 10 Mbit/s are 2500 packets of 500 bytes per second. In 5 ms that is 12.5 packets, and
        // min_th is half of it.
        for (mbit, target, limit, min) in [
            (10, 5, Limit::Packets(1000), 6),
            (1, 5, Limit::Packets(1000), 5),
            (100, 5, Limit::Packets(1000), 62),
            (100, 20, Limit::Bytes(Bytes(1_000_000)), 250 * 500),
        ] {
            let red = RedSpec { limit, ..RedSpec::default() };
            let found = by_rate(red, Duration::from_ms(target), Rate::from_bps(mbit * 1_000_000));
            assert_eq!((found.min, found.max), (min, 3 * min), "{mbit} Mbit/s, {target} ms");
        }
        // 1 − exp(−1/2500)
        let weight = by_rate(RedSpec::default(), Duration::from_ms(5), Rate::from_bps(10_000_000)).weight;
        assert!((weight.get() - 3.999_200_106_66e-4).abs() < 1e-13, "{weight:?}");
    }

    /// Offers a packet that finds `packets` in the queue. With a weight of 1 this number is the
    /// average from then on. Returns max_p.
    fn arrive(ared: &mut Ared, ms: u64, packets: u64) -> f64 {
        let now = Time::ZERO.saturating_add(Duration::from_ms(ms));
        let view = QueueView { queued: Volume { packets, bytes: 0 }, idle_since: None, rate: None };
        let packet = Packet::new(500, ());
        let _ = ared.admit(now, &packet, view, &mut Rng::new(1));
        ared.red.spec().max_p.get()
    }

    #[test]
    fn max_p_adapts_when_the_average_leaves_the_middle_of_the_thresholds() {
        let red = RedSpec { min: 5, max: 15, weight: Probability::ALWAYS, ..RedSpec::default() };
        let mut ared = Ared::new(&AredSpec { red, ..AredSpec::default() });
        // Time, the queue found, and max_p by the averages before. The target range is 9 to 11.
        for (ms, queue, max_p) in [
            (499, 12, 0.1),
            (500, 11, 0.11),  // 12 was above: + 0.01
            (1000, 10, 0.11), // 11 and 10 are within
            (1500, 8, 0.11),
            (2500, 3, 0.11 * 0.9 * 0.9),                   // below twice: × 0.9
            (62_500, 40, 0.009_749_231_931_617_76),        // repeatedly, while at least 0.01
            (63_000, 40, 0.009_749_231_931_617_76 * 1.25), // + max_p / 4 where that is less
        ] {
            let got = arrive(&mut ared, ms, queue);
            assert!((got - max_p).abs() < 1e-12, "{ms} ms: {got}, expected {max_p}");
        }
        assert!(arrive(&mut ared, 1_000_000, 40) > 0.5, "max_p rises to the first value above 0.5");
        assert!(arrive(&mut ared, 2_000_000, 40) <= 0.51);
        assert_eq!(ared.spec().red.max_p, red.max_p, "the configured value stays");
    }
}
