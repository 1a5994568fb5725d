//! Summarises latency samples: a normal distribution by maximum likelihood with intervals, outliers
//! by Tukey's rule, and a mixture of a normal core and a broad second component by expectation
//! maximisation. The mixture covers the "points with unexpectedly large deviation" of Hartikainen
//! 2016, "Communication Latencies".

use crate::Estimate;
use crate::dist::{chi2_quantile, normal_quantile, t_quantile};
use crate::fit::Quantile;
use fastpath_units::stats::{quantile, sorted};
use serde::Serialize;
use thiserror::Error;

/// Tukey's fences lie this many interquartile ranges outside the quartiles. 99.3 % of a normal
/// distribution lie within, as in the box plot of Hartikainen 2016.
pub const FENCE: f64 = 1.5;
const ROUNDS_MAX: usize = 1000;
/// The second component is at least this many times broader than the core; otherwise it would split
/// the core.
const BROADER: f64 = 3.0;
const SAMPLES_MIN: usize = 8;

/// Why samples have no summary.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum LatencyError {
    /// Too few samples.
    #[error("{samples} samples are too few: take at least {needed}")]
    TooFew {
        /// Number of samples.
        samples: usize,
        /// Number needed.
        needed: usize,
    },
    /// A sample that is not a latency.
    #[error("sample {position}: {value} is not a latency: it must be finite and not negative")]
    BadSample {
        /// Position of the sample, from 1.
        position: usize,
        /// Its value.
        value: f64,
    },
}

/// A summary of latency samples, in their unit.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Latency {
    /// Number of samples.
    pub samples: usize,
    /// Maximum-likelihood mean with its interval.
    pub mean: Estimate,
    /// Maximum-likelihood standard deviation (n below) with its interval, exact if the samples are
    /// normal.
    pub sd: Estimate,
    /// Minimum, lower quartile, median, upper quartile, maximum.
    pub five: [f64; 5],
    /// Tukey's fences.
    pub fences: (f64, f64),
    /// Samples outside the fences.
    pub outliers: usize,
    /// The mixture.
    pub mixture: Mixture,
}

/// A normal core and a broad component of outliers.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Mixture {
    /// Mean of the core.
    pub core_mean: f64,
    /// Standard deviation of the core.
    pub core_sd: f64,
    /// Share of the samples in the broad component, 0 … 1.
    pub outlier_share: f64,
    /// Mean of the broad component; the core's if its share is 0.
    pub outlier_mean: f64,
    /// Standard deviation of the broad component; the core's if its share is 0.
    pub outlier_sd: f64,
    /// Whether the mixture describes the samples better than one normal, by the Bayesian
    /// information criterion; if not, the core is that one normal and the share is 0.
    pub supported: bool,
}

/// Returns the mean of the samples with its confidence interval: quantile · s/√n, s with n − 1. A
/// latency is not negative, so a lower end below 0 is set to 0.
///
/// # Errors
/// [`LatencyError`] for fewer than two samples or one that is not finite.
pub fn mean_interval(samples: &[f64], quantile: Quantile, level: f64) -> Result<Estimate, LatencyError> {
    check(samples, 2)?;
    let n = samples.len() as f64;
    let (mean, variance) = moments(samples, |_| 1.0);
    let width = match quantile {
        Quantile::StudentT => t_quantile(0.5 + level / 2.0, n - 1.0),
        Quantile::Normal => normal_quantile(0.5 + level / 2.0),
    };
    Ok(Estimate::around(mean, width * (variance / (n - 1.0)).sqrt()).not_below_zero())
}

/// Summarises at least eight samples with 95 % intervals.
///
/// # Errors
/// [`LatencyError`] for too few samples or one that is not a latency.
pub fn summarise(samples: &[f64]) -> Result<Latency, LatencyError> {
    check(samples, SAMPLES_MIN)?;
    let sorted = sorted(samples.iter().copied());
    let n = sorted.len() as f64;
    let (_, variance) = moments(&sorted, |_| 1.0);
    let sd = variance.sqrt();
    let five = [0.0, 0.25, 0.5, 0.75, 1.0].map(|p| quantile(&sorted, p));
    let reach = FENCE * (five[3] - five[1]);
    let fences = (five[1] - reach, five[3] + reach);
    Ok(Latency {
        samples: sorted.len(),
        mean: mean_interval(&sorted, Quantile::StudentT, 0.95)?,
        sd: Estimate {
            value: sd,
            low: sd * (n / chi2_quantile(0.975, n - 1.0)).sqrt(),
            high: sd * (n / chi2_quantile(0.025, n - 1.0)).sqrt(),
        },
        five,
        fences,
        outliers: sorted.iter().filter(|x| **x < fences.0 || **x > fences.1).count(),
        mixture: mixture(&sorted, fences),
    })
}

fn check(samples: &[f64], needed: usize) -> Result<(), LatencyError> {
    if samples.len() < needed {
        return Err(LatencyError::TooFew { samples: samples.len(), needed });
    }
    match samples.iter().position(|x| !x.is_finite() || *x < 0.0) {
        Some(i) => Err(LatencyError::BadSample { position: i + 1, value: samples[i] }),
        None => Ok(()),
    }
}

/// Returns the weighted mean and variance (divided by the total weight, not one less).
fn moments(samples: &[f64], weight: impl Fn(usize) -> f64) -> (f64, f64) {
    let total: f64 = (0..samples.len()).map(&weight).sum();
    let mean = samples.iter().enumerate().map(|(i, x)| weight(i) * x).sum::<f64>() / total;
    let variance =
        samples.iter().enumerate().map(|(i, x)| weight(i) * (x - mean).powi(2)).sum::<f64>() / total;
    (mean, variance)
}

fn log_density(x: f64, mean: f64, sd: f64) -> f64 {
    -0.5 * ((x - mean) / sd).powi(2) - sd.ln() - 0.5 * std::f64::consts::TAU.ln()
}

/// Fits the mixture by expectation maximisation, starting from the samples inside and outside the
/// fences. Deterministic.
fn mixture(sorted: &[f64], fences: (f64, f64)) -> Mixture {
    let n = sorted.len() as f64;
    let (mean, variance) = moments(sorted, |_| 1.0);
    let single = Mixture {
        core_mean: mean,
        core_sd: variance.sqrt(),
        outlier_share: 0.0,
        outlier_mean: mean,
        outlier_sd: variance.sqrt(),
        supported: false,
    };
    let inside: Vec<f64> = sorted.iter().copied().filter(|x| *x >= fences.0 && *x <= fences.1).collect();
    if inside.len() == sorted.len() || single.core_sd == 0.0 {
        return single;
    }
    let (core_mean, core_variance) = moments(&inside, |_| 1.0);
    // Timers are quantised: a core with one value still has some width.
    let floor = single.core_sd * 1e-6;
    let mut now = Mixture {
        core_mean,
        core_sd: core_variance.sqrt().max(floor),
        outlier_share: 1.0 - inside.len() as f64 / n,
        outlier_mean: mean,
        outlier_sd: (BROADER * single.core_sd).max(BROADER * core_variance.sqrt()),
        supported: true,
    };
    let mut likelihood = f64::NEG_INFINITY;
    for _ in 0..ROUNDS_MAX {
        let (next, reached) = step(sorted, &now, floor);
        now = next;
        if reached - likelihood < 1e-9 * reached.abs() {
            break;
        }
        likelihood = reached;
    }
    let one: f64 = sorted.iter().map(|x| log_density(*x, mean, single.core_sd)).sum();
    // Five parameters against two.
    let better = 2.0 * (likelihood - one) > 3.0 * n.ln();
    if better && now.outlier_share < 0.5 { now } else { single }
}

/// Performs one round: responsibilities, then weighted moments. Returns the next mixture, and the
/// log-likelihood of the current one.
fn step(sorted: &[f64], now: &Mixture, floor: f64) -> (Mixture, f64) {
    let mut likelihood = 0.0;
    let mut broad = Vec::with_capacity(sorted.len());
    for x in sorted {
        let core = (1.0 - now.outlier_share).ln() + log_density(*x, now.core_mean, now.core_sd);
        let out = now.outlier_share.ln() + log_density(*x, now.outlier_mean, now.outlier_sd);
        let top = core.max(out);
        let both = top + ((core - top).exp() + (out - top).exp()).ln();
        likelihood += both;
        broad.push((out - both).exp());
    }
    let share = broad.iter().sum::<f64>() / sorted.len() as f64;
    let (core_mean, core_variance) = moments(sorted, |i| 1.0 - broad[i]);
    let (outlier_mean, outlier_variance) = moments(sorted, |i| broad[i]);
    let core_sd = core_variance.sqrt().max(floor);
    let next = Mixture {
        core_mean,
        core_sd,
        outlier_share: share.clamp(1e-12, 1.0 - 1e-12),
        outlier_mean,
        outlier_sd: outlier_variance.sqrt().max(BROADER * core_sd),
        supported: true,
    };
    (next, likelihood)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::normal;
    use fastpath_units::Rng;

    #[test]
    fn normal_samples_give_their_parameters_and_no_mixture() {
        let mut rng = Rng::new(11);
        let samples: Vec<f64> = (0..10_000).map(|_| 1.868 + 0.02 * normal(&mut rng)).collect();
        let found = summarise(&samples).expect("samples");
        assert!(found.mean.covers(1.868) && found.sd.covers(0.02), "{found:?}");
        // 0.7 % lie outside the fences of a normal: 70 ± 4 σ of 8.3.
        assert!((37..=103).contains(&found.outliers), "{}", found.outliers);
        assert!(!found.mixture.supported && found.mixture.outlier_share == 0.0);
    }

    #[test]
    fn a_broad_component_of_three_percent_is_found_beside_the_core() {
        let mut rng = Rng::new(12);
        let samples: Vec<f64> =
            (0..10_000)
                .map(|i| {
                    if i % 33 == 0 {
                        2.5 + 0.4 * normal(&mut rng).abs()
                    } else {
                        1.0 + 0.02 * normal(&mut rng)
                    }
                })
                .collect();
        let m = summarise(&samples).expect("samples").mixture;
        assert!(m.supported);
        assert!((m.core_mean - 1.0).abs() < 0.001 && (m.core_sd - 0.02).abs() < 0.001, "{m:?}");
        assert!((m.outlier_share - 1.0 / 33.0).abs() < 0.002 && m.outlier_mean > 2.4, "{m:?}");
    }

    #[test]
    fn the_mean_s_interval_covers_at_its_nominal_rate() {
        // 10 000 trials at 95 %: ±0.85 % is 3.9 σ.
        let mut rng = Rng::new(13);
        let covered = (0..10_000)
            .filter(|_| {
                let samples: Vec<f64> = (0..8).map(|_| 100.0 + normal(&mut rng)).collect();
                mean_interval(&samples, Quantile::StudentT, 0.95).expect("samples").covers(100.0)
            })
            .count();
        assert!((9415..=9585).contains(&covered), "{covered}");
    }

    #[test]
    fn tukey_s_rule_on_a_known_sample() {
        let found = summarise(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 30.0]).expect("samples");
        assert_eq!(found.five, [1.0, 3.25, 5.5, 7.75, 30.0]);
        assert_eq!((found.fences, found.outliers), ((-3.5, 14.5), 1));
    }

    #[test]
    fn samples_that_are_no_latencies_are_refused() {
        let error = |samples: &[f64]| summarise(samples).unwrap_err().to_string();
        assert_eq!(error(&[1.0; 3]), "3 samples are too few: take at least 8");
        let mut bad = [1.0; 8];
        bad[4] = -2.0;
        assert_eq!(error(&bad), "sample 5: -2 is not a latency: it must be finite and not negative");
        bad[4] = f64::NAN;
        assert!(error(&bad).contains("NaN"));
        // All alike: no spread, no outliers, no mixture.
        assert_eq!(summarise(&[1.0; 8]).expect("samples").outliers, 0);
    }
}
