//! Laws of random periods.

use fastpath_units::{Duration, Rng, math};

/// The law of a random period. Its mean is finite.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PeriodLaw {
    /// Always this long.
    Constant(Duration),
    /// Exponential, with this mean.
    Exponential(Duration),
    /// Pareto, with this mean and a shape above 1. Shapes up to 2 have an infinite variance, as the
    /// lengths of bursts in networks have (Willinger et al. 1997).
    Pareto {
        /// The mean.
        mean: Duration,
        /// The exponent of the tail; above 1.
        shape: f64,
    },
}

impl PeriodLaw {
    /// Returns a period.
    pub fn draw(&self, rng: &mut Rng) -> Duration {
        // 1 − u is in (0, 1].
        let mut exponential = || -math::ln(1.0 - rng.unit_f64());
        match *self {
            PeriodLaw::Constant(length) => length,
            PeriodLaw::Exponential(mean) => scaled(mean, exponential()),
            PeriodLaw::Pareto { mean, shape } => {
                scaled(mean, (shape - 1.0) / shape * math::exp(exponential() / shape))
            }
        }
    }

    /// Returns the mean.
    pub fn mean(&self) -> Duration {
        match *self {
            PeriodLaw::Constant(mean) | PeriodLaw::Exponential(mean) | PeriodLaw::Pareto { mean, .. } => mean,
        }
    }

    /// Returns the mean number of steps of `step` seconds that begin in a period: one at its
    /// beginning, and one for each whole step before its end.
    pub(crate) fn mean_steps(&self, step: f64) -> f64 {
        let mean = self.mean().as_secs_f64();
        if mean == 0.0 {
            return 1.0;
        }
        match *self {
            PeriodLaw::Constant(_) => (mean / step - 1e-9).ceil().max(1.0),
            // The sum of P(T > k·step) over k.
            PeriodLaw::Exponential(_) => 1.0 / (1.0 - math::exp(-step / mean)),
            PeriodLaw::Pareto { shape, .. } => {
                let least = mean * (shape - 1.0) / shape;
                let tail = |length: f64| {
                    if length <= least { 1.0 } else { math::exp(shape * math::ln(least / length)) }
                };
                let (mut sum, mut k) = (0.0, 0.0);
                while k < 10_000.0 {
                    sum += tail(k * step);
                    k += 1.0;
                }
                // The rest as an integral, from half a step before the first term left out.
                let from = (k - 0.5) * step;
                sum + if from <= least {
                    (least - from) / step + least / (shape - 1.0) / step
                } else {
                    tail(from) * from / (shape - 1.0) / step
                }
            }
        }
    }
}

fn scaled(mean: Duration, factor: f64) -> Duration {
    Duration::from_ps((mean.as_ps() as f64 * factor) as u64)
}
