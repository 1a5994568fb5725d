//! Adaptive RED as in Figure 1 of Floyd, Gummadi, Shenker 2001, over the oracle of RED.

use super::discipline::{AdmissionOracle, Arrival, DisciplineOracle};
use super::red::RedVariables;
use crate::packet::DropReason;
use crate::qdisc::{AredSpec, Limit, RedSpec};
use fastpath_units::{Duration, Probability, Rate, Rng, Time};

pub(super) fn oracle(spec: &AredSpec) -> DisciplineOracle {
    let variables = RedVariables::default();
    DisciplineOracle::Admission(Box::new(Ared { spec: *spec, variables, max_p: None, intervals: 0 }))
}

#[derive(Debug)]
struct Ared {
    spec: AredSpec,
    variables: RedVariables,
    /// max_p, if it was adapted.
    max_p: Option<f64>,
    /// The intervals that have passed.
    intervals: u64,
}

impl AdmissionOracle for Ared {
    fn admit(&mut self, arrival: &Arrival<'_>, rng: &mut Rng) -> Result<bool, DropReason> {
        let red = self.red_at(arrival.now, arrival.rate);
        self.variables.admit(arrival, red, rng)
    }
}

impl Ared {
    /// Returns the parameters of RED at `now`: Figure 1, "every interval seconds".
    fn red_at(&mut self, now: Time, rate: Option<Rate>) -> RedSpec {
        let AredSpec { red, interval, target } = self.spec;
        let red = target.map_or(red, |target| red_by_rate(red, target, rate));
        let (min_th, max_th) = (red.min as f64, red.max as f64);
        let mut max_p = self.max_p.unwrap_or(red.max_p.get());
        let passed = now.as_ps() / interval.as_ps();
        while self.intervals < passed {
            self.intervals += 1;
            if self.variables.avg > min_th + 0.6 * (max_th - min_th) && max_p <= 0.5 {
                max_p += f64::min(0.01, max_p / 4.0);
            } else if self.variables.avg < min_th + 0.4 * (max_th - min_th) && max_p >= 0.01 {
                max_p *= 0.9;
            } else {
                // The remaining intervals change nothing either.
                self.intervals = passed;
            }
        }
        self.max_p = Some(max_p);
        RedSpec { max_p: Probability::new(max_p).expect("0 … 1"), ..red }
    }
}

/// Thresholds by the rate: min_th = max(5, delay·C/2) and max_th = 3·min_th packets, w_q = 1 −
/// exp(−1/C), C in packets/s.
fn red_by_rate(red: RedSpec, target: Duration, rate: Option<Rate>) -> RedSpec {
    let unit = if matches!(red.limit, Limit::Bytes(_)) { red.mean_packet.0 } else { 1 };
    let Some(rate) = rate else { return RedSpec { min: 5 * unit, max: 15 * unit, ..red } };
    let c = rate.as_bps() as f64 / (8 * red.mean_packet.0) as f64;
    let min = u64::max(5, (target.as_secs_f64() * c / 2.0) as u64) * unit;
    let weight = Probability::new(1.0 - fastpath_units::math::exp(-1.0 / c)).expect("0 … 1");
    RedSpec { min, max: 3 * min, weight, ..red }
}
