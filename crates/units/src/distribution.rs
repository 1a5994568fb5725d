//! Many durations in little memory: their number, sum and extremes exactly, and quantiles to a
//! stated resolution.

use crate::Duration;
use hdrhistogram::{Counter, Histogram};

/// The distribution of durations of which only counts are kept.
///
/// Number, mean, minimum and maximum are exact. A quantile is the smallest duration that at least
/// this share of them does not exceed (nearest rank), up to [`Distribution::resolution`] more, and
/// never outside minimum and maximum: of equal durations every quantile is that duration.
///
/// `C` is the type of the counters, which saturate.
///
/// ```
/// use fastpath_units::{Distribution, Duration};
///
/// let mut delays = Distribution::growing();
/// (0..1000).for_each(|_| delays.record(Duration::from_us(8400)));
/// assert_eq!(delays.quantile(0.99), Some(Duration::from_us(8400)));
/// ```
#[derive(Clone, Debug)]
pub struct Distribution<C: Counter = u64> {
    /// In units of 2<sup>`shift`</sup> ps.
    histogram: Histogram<C>,
    shift: u32,
    digits: u8,
    min: Duration,
    max: Duration,
    sum_ps: u128,
}

impl Distribution<u64> {
    /// Returns an empty distribution that grows with the durations, from 1 ps on. Its quantiles are
    /// within 0.1 %.
    pub fn growing() -> Distribution<u64> {
        let histogram = Histogram::new(3).expect("3 digits are supported");
        Distribution::of(histogram, 0, 3)
    }
}

impl<C: Counter> Distribution<C> {
    /// Returns an empty distribution that allocates nothing later. Its quantiles are within
    /// 10<sup>-`digits`</sup>, and 1.024 ns. A duration above `largest` counts as `largest` in
    /// quantiles.
    ///
    /// # Panics
    /// `digits` is not from 1 to 5, or `largest` is below 2 ns.
    pub fn bounded(largest: Duration, digits: u8) -> Distribution<C> {
        let histogram = Histogram::new_with_bounds(1, largest.as_ps() >> 10, digits);
        Distribution::of(histogram.expect("digits and bounds in range"), 10, digits)
    }

    fn of(histogram: Histogram<C>, shift: u32, digits: u8) -> Distribution<C> {
        Distribution { histogram, shift, digits, min: Duration::MAX, max: Duration::ZERO, sum_ps: 0 }
    }

    /// Counts a duration.
    #[inline]
    pub fn record(&mut self, duration: Duration) {
        let units = duration.as_ps() >> self.shift;
        // Growing may fail where memory is short.
        if self.histogram.record(units).is_err() {
            self.histogram.saturating_record(units);
        }
        self.min = self.min.min(duration);
        self.max = self.max.max(duration);
        self.sum_ps += u128::from(duration.as_ps());
    }

    /// Counts a duration `count` times.
    pub fn record_many(&mut self, duration: Duration, count: C) {
        if count == C::zero() {
            return;
        }
        let units = duration.as_ps() >> self.shift;
        if self.histogram.record_n(units, count).is_err() {
            self.histogram.saturating_record_n(units, count);
        }
        self.min = self.min.min(duration);
        self.max = self.max.max(duration);
        self.sum_ps += u128::from(duration.as_ps()) * u128::from(count.as_u64());
    }

    /// Returns how many durations were counted.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the sum of all durations in picoseconds, exactly.
    pub fn sum_ps(&self) -> u128 {
        self.sum_ps
    }

    /// Returns the mean in picoseconds; `None` without durations.
    pub fn mean_ps(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum_ps as f64 / self.count() as f64)
    }

    /// Returns the shortest duration, exactly; `None` without durations.
    pub fn min(&self) -> Option<Duration> {
        (self.count() > 0).then_some(self.min)
    }

    /// Returns the longest duration, exactly; `None` without durations.
    pub fn max(&self) -> Option<Duration> {
        (self.count() > 0).then_some(self.max)
    }

    /// Returns the duration that a share of the durations does not exceed; `None` without
    /// durations. The share is from 0 to 1.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let end = self.end_ps(self.histogram.value_at_quantile(share));
        (self.count() > 0).then(|| Duration::from_ps(end).clamp(self.min, self.max))
    }

    /// Returns by how much of itself a quantile may be too large: 0.001 is 0.1 %.
    pub fn resolution(&self) -> f64 {
        10f64.powi(-i32::from(self.digits))
    }

    /// Returns how many durations did not exceed each of the bounds, which ascend, to the
    /// resolution.
    pub fn within<const N: usize>(&self, bounds: [Duration; N]) -> [u64; N] {
        let mut counts = [0; N];
        let mut sum = 0;
        let mut bounds = bounds.iter().zip(&mut counts).peekable();
        for step in self.histogram.iter_recorded() {
            let reached = self.end_ps(step.value_iterated_to());
            while let Some((_, count)) = bounds.next_if(|(bound, _)| bound.as_ps() < reached) {
                *count = sum;
            }
            sum += step.count_since_last_iteration();
        }
        bounds.for_each(|(_, count)| *count = sum);
        counts
    }

    /// Returns the last picosecond of a unit of the histogram.
    fn end_ps(&self, unit: u64) -> u64 {
        unit.saturating_add(1).checked_mul(1 << self.shift).map_or(u64::MAX, |next| next - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn extremes_are_exact_and_quantiles_lie_between_them() {
        let mut growing = Distribution::growing();
        let mut bounded: Distribution<u32> = Distribution::bounded(Duration::from_secs(10), 2);
        assert_eq!((growing.min(), growing.mean_ps(), growing.quantile(0.5)), (None, None, None));
        let mut rng = Rng::new(1);
        let mut all: Vec<u64> = (0..10_000).map(|_| 1_000_000 + rng.next_u64() % 3_000_000_000_000).collect();
        for &ps in &all {
            growing.record(Duration::from_ps(ps));
            bounded.record(Duration::from_ps(ps));
        }
        all.sort_unstable();
        let extremes = (Some(Duration::from_ps(all[0])), Some(Duration::from_ps(all[9_999])));
        assert_eq!((growing.min(), growing.max()), extremes);
        assert_eq!((bounded.min(), bounded.max()), extremes);
        assert_eq!(growing.sum_ps(), all.iter().map(|&ps| u128::from(ps)).sum());
        for share in [0.0, 0.001, 0.25, 0.5, 0.99, 1.0f64] {
            let rank = ((share * 1e4).ceil() as usize).max(1);
            let exact = all[rank - 1] as f64;
            for (found, resolution) in [
                (growing.quantile(share), growing.resolution()),
                (bounded.quantile(share), bounded.resolution()),
            ] {
                let found = found.unwrap().as_ps() as f64;
                assert!(
                    found >= exact * (1.0 - 1e-3) && found <= exact * (1.0 + resolution),
                    "{share} {found} {exact}"
                );
            }
        }
    }

    #[test]
    fn of_equal_durations_every_quantile_is_that_duration() {
        let mut delays = Distribution::growing();
        (0..3).for_each(|_| delays.record(Duration::from_ps(8_400_123_457)));
        for share in [0.0, 0.5, 0.99, 1.0] {
            assert_eq!(delays.quantile(share), Some(Duration::from_ps(8_400_123_457)));
        }
    }

    #[test]
    fn a_duration_above_the_bound_is_the_exact_maximum_all_the_same() {
        let mut lateness: Distribution<u32> = Distribution::bounded(Duration::from_secs(10), 1);
        lateness.record(Duration::from_ms(1));
        lateness.record(Duration::from_secs(12));
        assert_eq!(lateness.max(), Some(Duration::from_secs(12)));
        assert_eq!(lateness.within([Duration::from_ms(2), Duration::from_secs(100)]), [1, 2]);
    }
}
