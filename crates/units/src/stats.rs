//! Statistics of samples: the definition of a rate, a quantile and a median for all crates.
//! Histograms, which do not keep the samples, have a resolution of their own.

/// Returns a rate: an amount per second of the time in which it moved. Over no time it is 0.
pub fn per_second(amount: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount / seconds } else { 0.0 }
}

/// Returns samples in ascending order, as [`quantile`] reads them.
pub fn sorted(samples: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = samples.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Returns quantile `p` (0 … 1) of `sorted` samples, linear between neighbours: type 7 of Hyndman
/// and Fan (1996), the default of numpy and R. Returns NaN without samples.
pub fn quantile(sorted: &[f64], p: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = p.clamp(0.0, 1.0) * last as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(last);
    // Rounding may pass the upper neighbour.
    (sorted[below] + (at - below as f64) * (sorted[above] - sorted[below])).min(sorted[above])
}

/// Returns the median of samples in any order: quantile 0.5, for an even number the middle of the
/// two in the middle. Returns NaN without samples.
pub fn median(samples: impl IntoIterator<Item = f64>) -> f64 {
    quantile(&sorted(samples), 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reference: `numpy.quantile(sample, p)` of numpy 2.
    #[test]
    fn quantiles_are_those_of_numpy_and_r() {
        let sample = sorted([15.0, 7.0, 36.0, 40.0, 39.0]);
        for (p, value) in [(0.0, 7.0), (0.25, 15.0), (0.5, 36.0), (0.9, 39.6), (0.99, 39.96), (1.0, 40.0)] {
            assert!((quantile(&sample, p) - value).abs() < 1e-12, "{p}: {}", quantile(&sample, p));
        }
        assert_eq!(median([4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(quantile(&[7.0], 0.99), 7.0);
        assert!(quantile(&[], 0.5).is_nan() && median([]).is_nan());
    }

    proptest! {
        #[test]
        fn quantiles_lie_between_the_samples_and_rise(
            samples in proptest::collection::vec(-1e9f64..1e9, 1..50), p in 0.0f64..1.0, q in 0.0f64..1.0,
        ) {
            let sorted = sorted(samples);
            let (low, high) = (quantile(&sorted, p.min(q)), quantile(&sorted, p.max(q)));
            prop_assert!(sorted[0] <= low && high <= sorted[sorted.len() - 1]);
            // Rounding may lower the end of a step by one unit in the last place.
            prop_assert!(low <= high + 1e-6);
            prop_assert_eq!(quantile(&sorted, 0.0), sorted[0]);
            prop_assert_eq!(quantile(&sorted, 1.0), sorted[sorted.len() - 1]);
        }
    }
}
