//! Adaptive RED: S. Floyd, R. Gummadi, S. Shenker, "Adaptive RED: An Algorithm for Increasing the
//! Robustness of RED's Active Queue Management", 2001, Figure 1. RED whose max_p follows the
//! average queue, so that the average stays between its thresholds at any load. Where no thresholds
//! are given they and the weight follow the rate, as the paper sets them (and ns-2 the least of
//! them).

use super::Limit;
use super::red::{Red, RedSpec};
use super::{Admission, Backlog};
use crate::math;
use crate::packet::Packet;
use fastpath_units::{Duration, Probability, Rate, Rng, Time};

/// Parameters of adaptive RED. The default is gentle RED's with the paper's interval of half a
/// second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AredSpec {
    /// RED; its `max_p` is where it starts from.
    pub red: RedSpec,
    /// How often max_p is adapted, above 0.
    pub interval: Duration,
    /// The average delay aimed at: then thresholds and weight follow the rate, and those of `red`
    /// mean nothing.
    pub target: Option<Duration>,
}

impl Default for AredSpec {
    fn default() -> AredSpec {
        AredSpec { red: RedSpec::default(), interval: Duration::from_ms(500), target: None }
    }
}

/// The paper's bounds of max_p, its decrease, and the largest increase.
const BOTTOM: f64 = 0.01;
const TOP: f64 = 0.5;
const DECREASE: f64 = 0.9;
const INCREASE: f64 = 0.01;

/// Adaptive RED at work.
#[derive(Debug)]
pub(crate) struct Ared {
    spec: AredSpec,
    red: Red,
    /// That of the thresholds, if they follow it.
    rate: Option<Rate>,
    /// The next adaptation; they are done late, in order, when a packet comes.
    next: Time,
}

impl Ared {
    pub(crate) fn new(spec: AredSpec) -> Ared {
        let red = spec.target.map_or(spec.red, |target| by_rate(spec.red, target, None));
        Ared { spec, red: Red::new(red), rate: None, next: Time::ZERO.saturating_add(spec.interval) }
    }

    pub(crate) fn spec(&self) -> AredSpec {
        self.spec
    }

    /// Takes new parameters and keeps the average; max_p starts anew if it is among those that
    /// change.
    pub(crate) fn change(&mut self, spec: AredSpec) {
        let adapted = self.red.spec().max_p;
        let max_p = if spec.red.max_p == self.spec.red.max_p { adapted } else { spec.red.max_p };
        let red = RedSpec { max_p, ..spec.red };
        self.red.change(spec.target.map_or(red, |target| by_rate(red, target, self.rate)));
        self.spec = spec;
    }

    #[inline(never)]
    pub(crate) fn admit(
        &mut self,
        now: Time,
        packet: &Packet<()>,
        backlog: Backlog,
        rng: &mut Rng,
    ) -> Admission {
        if let Some(target) = self.spec.target
            && backlog.rate != self.rate
        {
            self.rate = backlog.rate;
            self.red.change(by_rate(self.red.spec(), target, self.rate));
        }
        self.adapt_until(now);
        self.red.admit(now, packet, backlog, rng)
    }

    /// Every adaptation due by `now`, by the average of the last arrival. Once one changes nothing
    /// the others do not.
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

    /// Figure 1: true if max_p has changed.
    fn adapt(&mut self) -> bool {
        let red = self.red.spec();
        let (min, max, max_p) = (red.min as f64, red.max as f64, red.max_p.get());
        // The target is from 0.4 to 0.6 of the way from min_th to max_th.
        let [low, high] = [0.4, 0.6].map(|share| min + share * (max - min));
        let average = self.red.average();
        let adapted = if average > high && max_p <= TOP {
            max_p + INCREASE.min(max_p / 4.0)
        } else if average < low && max_p >= BOTTOM {
            max_p * DECREASE
        } else {
            return false;
        };
        let max_p = Probability::new(adapted).unwrap_or(red.max_p);
        self.red.set_max_p(max_p);
        true
    }
}

/// min_th = max(5, target · C/2) packets, max_th three times that, w_q = 1 − exp(−1/C), with C the
/// rate in typical packets a second.
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
    fn thresholds_follow_the_rate_where_none_are_given() {
        // 10 Mbit/s are 2500 packets of 500 bytes a second: 5 ms of them are 12.5, and half of that
        // is the least.
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

    /// An arrival that finds `packets` in the queue, at some time; weight 1, so that this is the
    /// average from then on.
    fn arrive(ared: &mut Ared, ms: u64, packets: u64) -> f64 {
        let now = Time::ZERO.saturating_add(Duration::from_ms(ms));
        let backlog = Backlog { queued: Volume { packets, bytes: 0 }, idle_since: None, rate: None };
        let packet = Packet { len: 500, flow: 0, traffic_class: 0, data: () };
        let _ = ared.admit(now, &packet, backlog, &mut Rng::new(1));
        ared.red.spec().max_p.get()
    }

    #[test]
    fn max_p_follows_the_average_out_of_the_middle_of_the_thresholds() {
        let red = RedSpec { min: 5, max: 15, weight: Probability::ALWAYS, ..RedSpec::default() };
        let mut ared = Ared::new(AredSpec { red, ..AredSpec::default() });
        // When, what the queue is then, and max_p by the averages before: the target is 9 to 11.
        for (ms, queue, max_p) in [
            (499, 12, 0.1),
            (500, 11, 0.11),  // 12 was above: + 0.01
            (1000, 10, 0.11), // 11 and 10 are within
            (1500, 8, 0.11),
            (2500, 3, 0.11 * 0.9 * 0.9),                   // twice below: × 0.9
            (62_500, 40, 0.009_749_231_931_617_76),        // and on, while it is at least 0.01
            (63_000, 40, 0.009_749_231_931_617_76 * 1.25), // + max_p / 4 where that is less
        ] {
            let got = arrive(&mut ared, ms, queue);
            assert!((got - max_p).abs() < 1e-12, "{ms} ms: {got}, expected {max_p}");
        }
        assert!(arrive(&mut ared, 1_000_000, 40) > 0.5, "up to the first value above 0.5");
        assert!(arrive(&mut ared, 2_000_000, 40) <= 0.51);
        assert_eq!(ared.spec().red.max_p, red.max_p, "what was asked for");
    }
}
