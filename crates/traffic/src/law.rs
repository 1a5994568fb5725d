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
        match *self {
            PeriodLaw::Constant(length) => length,
            PeriodLaw::Exponential(mean) => scaled(mean, exponential(rng)),
            PeriodLaw::Pareto { mean, shape } => scaled(mean, pareto(shape, rng)),
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

/// Draws from the exponential law of mean 1.
pub(crate) fn exponential(rng: &mut Rng) -> f64 {
    // 1 − u is in (0, 1].
    -math::ln(1.0 - rng.unit_f64())
}

/// Draws from the Pareto law of mean 1 with a shape above 1.
pub(crate) fn pareto(shape: f64, rng: &mut Rng) -> f64 {
    (shape - 1.0) / shape * math::exp(exponential(rng) / shape)
}
