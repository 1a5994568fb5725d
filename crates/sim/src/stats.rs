//! Statistics of a run: moments, time-weighted averages, and series with confidence intervals.
//!
//! A [`Series`] groups successive observations into batches (neighbours are correlated, means of
//! long batches hardly are), cuts the warm-up by the MSER-5 rule (White, Cobb & Spratt 2000: drop
//! the batches whose removal makes the standard error of the rest least), and gives Student's
//! interval over 32 groups of the remaining batches. Memory is bounded: the batch size doubles when
//! there are too many batches.

use fastpath_units::Time;

/// Count, mean, spread and range of observations that need no order (Welford's update).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moments {
    /// Number of observations.
    pub n: u64,
    /// Their mean; 0 without observations.
    pub mean: f64,
    squares: f64,
    /// The least; 0 without observations.
    pub min: f64,
    /// The greatest; 0 without observations.
    pub max: f64,
}

impl Moments {
    /// Adds one observation.
    pub fn add(&mut self, x: f64) {
        self.n += 1;
        let delta = x - self.mean;
        self.mean += delta / self.n as f64;
        self.squares += delta * (x - self.mean);
        self.min = if self.n == 1 { x } else { self.min.min(x) };
        self.max = if self.n == 1 { x } else { self.max.max(x) };
    }

    /// The sample variance (n − 1); 0 below two observations.
    pub fn variance(&self) -> f64 {
        if self.n < 2 { 0.0 } else { self.squares / (self.n - 1) as f64 }
    }
}

/// The average over time of a level that changes in steps: a queue length, the number of busy
/// servers.
#[derive(Clone, Debug, Default)]
pub struct TimeWeighted {
    level: u64,
    since: Time,
    /// Level × picoseconds: exact.
    area: u128,
    max: u64,
}

impl TimeWeighted {
    /// Sets the level to `level` at `now`.
    #[inline]
    pub fn set(&mut self, now: Time, level: u64) {
        if level == self.level {
            // The area of an unchanged level is a product: it is added when the level changes.
            return;
        }
        self.area += u128::from(self.level) * u128::from(now.since(self.since).as_ps());
        self.since = now;
        self.level = level;
        self.max = self.max.max(level);
    }

    /// The level now.
    pub const fn level(&self) -> u64 {
        self.level
    }

    /// The highest level seen.
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// The average from time zero to `now`; 0 at time zero.
    pub fn mean(&self, now: Time) -> f64 {
        let area = self.area + u128::from(self.level) * u128::from(now.since(self.since).as_ps());
        if now == Time::ZERO { 0.0 } else { area as f64 / now.as_ps() as f64 }
    }
}

/// The confidence of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// 95 %.
    P95,
    /// 99 %.
    P99,
    /// 99.9 %.
    P999,
}

impl Confidence {
    /// The two-sided quantile of the normal distribution.
    const fn z(self) -> f64 {
        match self {
            Confidence::P95 => 1.959_963_984_540_054,
            Confidence::P99 => 2.575_829_303_548_901,
            Confidence::P999 => 3.290_526_731_491_926,
        }
    }

    /// The two-sided quantile of Student's t with `df` ≥ 8 degrees of freedom, to four digits
    /// (the Cornish–Fisher expansion, Abramowitz & Stegun 26.7.5).
    pub fn student(self, df: f64) -> f64 {
        let z = self.z();
        let z2 = z * z;
        let g1 = (z2 + 1.0) * z / 4.0;
        let g2 = ((5.0 * z2 + 16.0) * z2 + 3.0) * z / 96.0;
        let g3 = (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) * z / 384.0;
        let g4 = ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0) * z / 92160.0;
        z + g1 / df + g2 / df.powi(2) + g3 / df.powi(3) + g4 / df.powi(4)
    }
}

/// A mean and its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub mean: f64,
    /// Half the width of the interval around it.
    pub half: f64,
}

impl Interval {
    /// Whether `x` lies in the interval.
    pub fn contains(&self, x: f64) -> bool {
        (x - self.mean).abs() <= self.half
    }

    /// Half the width as a share of the mean.
    pub fn relative(&self) -> f64 {
        self.half / self.mean.abs()
    }
}

/// Observations in their order, kept as means of equal batches.
#[derive(Clone, Debug)]
pub struct Series {
    batch: u64,
    means: Vec<f64>,
    sum: f64,
    filled: u64,
}

/// Observations in the smallest batch: the 5 of MSER-5.
const FIRST_BATCH: u64 = 5;
/// The most batches kept. At this number neighbours are merged and the batch size doubles.
const BATCHES_MAX: usize = 4096;
/// Groups of batches under the interval.
const GROUPS: usize = 32;
/// A group must be this many correlation times long for its mean to be nearly independent of its
/// neighbours'. The interval of M/M/1 at ρ = 0.95 covers 69.5 % at one correlation time per group.
const CORRELATION_TIMES: f64 = 10.0;
/// The window of the estimate of the correlation time, in correlation times (Sokal 1997, §3).
const WINDOW: f64 = 5.0;

impl Default for Series {
    fn default() -> Self {
        Series { batch: FIRST_BATCH, means: Vec::with_capacity(BATCHES_MAX), sum: 0.0, filled: 0 }
    }
}

impl Series {
    /// Adds the next observation.
    #[inline]
    pub fn add(&mut self, x: f64) {
        self.sum += x;
        self.filled += 1;
        if self.filled == self.batch {
            self.close_batch();
        }
    }

    fn close_batch(&mut self) {
        self.means.push(self.sum / self.batch as f64);
        self.sum = 0.0;
        self.filled = 0;
        if self.means.len() == BATCHES_MAX {
            for i in 0..BATCHES_MAX / 2 {
                self.means[i] = 0.5 * (self.means[2 * i] + self.means[2 * i + 1]);
            }
            self.means.truncate(BATCHES_MAX / 2);
            self.batch *= 2;
        }
    }

    /// The number of observations to ignore at the start, by the MSER rule. At most half of all: a
    /// run that needs more has never settled.
    pub fn warm_up(&self) -> u64 {
        self.batch * self.warm_up_batches() as u64
    }

    fn warm_up_batches(&self) -> usize {
        let n = self.means.len();
        let (mut sum, mut squares) = (0.0, 0.0);
        let mut best = (f64::INFINITY, 0);
        // From the end, so that each suffix follows from the previous one in one step.
        for (cut, &x) in self.means.iter().enumerate().rev() {
            sum += x;
            squares += x * x;
            let left = (n - cut) as f64;
            let error = (squares - sum * sum / left) / (left * left);
            if cut <= n / 2 && error <= best.0 {
                best = (error, cut);
            }
        }
        best.1
    }

    /// The mean after the warm-up, with its interval; `None` below 64 batches of 5 after the cut.
    pub fn estimate(&self, confidence: Confidence) -> Option<Interval> {
        let settled = &self.means[self.warm_up_batches()..];
        let size = settled.len() / GROUPS;
        if size < 2 {
            return None;
        }
        // The odd batches at the start are left out, so that all groups are equal.
        let mut groups = Moments::default();
        for group in settled[settled.len() - size * GROUPS..].chunks_exact(size) {
            groups.add(group.iter().sum::<f64>() / size as f64);
        }
        let half = confidence.student((GROUPS - 1) as f64) * (groups.variance() / GROUPS as f64).sqrt();
        Some(Interval { mean: groups.mean, half })
    }

    /// Whether the groups under the interval are long compared with the correlation of the
    /// observations. If they are not, the interval is too narrow. False for a series without
    /// interval.
    pub fn is_long_enough(&self) -> bool {
        let settled = &self.means[self.warm_up_batches()..];
        let size = settled.len() / GROUPS;
        size >= 2 && size as f64 >= CORRELATION_TIMES * correlation_time(settled)
    }

    /// Whether the interval is within `relative` of the mean: the rule to stop a run. Call it at
    /// growing intervals, not after every observation, because a rule that is checked often stops
    /// at a lucky moment.
    pub fn is_narrow(&self, confidence: Confidence, relative: f64) -> bool {
        self.estimate(confidence).is_some_and(|interval| interval.relative() <= relative)
    }
}

/// The integrated autocorrelation time of `x` in observations, 1 if they are independent: 1 + 2 Σ
/// ρ(k) over a window of [`WINDOW`] times itself (Sokal 1997, "Monte Carlo Methods in Statistical
/// Mechanics", §3).
fn correlation_time(x: &[f64]) -> f64 {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    let product = |k: usize| x.iter().zip(&x[k..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    let variance = product(0);
    // Equal observations differ by rounding only.
    if variance <= x.len() as f64 * (1e-9 * mean).powi(2) {
        return 1.0;
    }
    let mut time = 1.0;
    for k in 1..x.len() {
        time += 2.0 * product(k) / variance;
        if k as f64 >= WINDOW * time {
            break;
        }
    }
    time.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_units::Rng;

    #[test]
    fn student_quantiles_match_the_tables() {
        for (df, p95, p99) in [(10.0, 2.2281, 3.1693), (31.0, 2.0395, 2.7440), (1e9, 1.9600, 2.5758)] {
            assert!((Confidence::P95.student(df) - p95).abs() < 2e-4, "{}", Confidence::P95.student(df));
            assert!((Confidence::P99.student(df) - p99).abs() < 1e-3, "{}", Confidence::P99.student(df));
        }
        assert!((Confidence::P999.student(31.0) - 3.6335).abs() < 5e-3);
    }

    #[test]
    fn moments_are_those_of_the_textbook() {
        let mut moments = Moments::default();
        for x in [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0] {
            moments.add(x);
        }
        assert_eq!((moments.n, moments.mean, moments.min, moments.max), (8, 5.0, 2.0, 9.0));
        assert!((moments.variance() - 32.0 / 7.0).abs() < 1e-12);
    }

    #[test]
    fn a_level_is_weighted_by_how_long_it_lasted() {
        let mut busy = TimeWeighted::default();
        busy.set(Time::from_ps(10), 2);
        busy.set(Time::from_ps(20), 1);
        assert_eq!(busy.mean(Time::from_ps(40)), 1.0);
        assert_eq!((busy.level(), busy.max()), (1, 2));
    }

    #[test]
    fn the_warm_up_is_cut_and_no_more_than_the_warm_up() {
        // 2000 observations that start 5 σ off, then 98 000 from the steady state.
        let (mut series, mut rng) = (Series::default(), Rng::new(1));
        for i in 0..100_000 {
            let offset = if i < 2000 { 10.0 } else { 0.0 };
            series.add(100.0 + offset + rng.unit_f64() * 7.0);
        }
        assert!((1800..6000).contains(&series.warm_up()), "{}", series.warm_up());
        let interval = series.estimate(Confidence::P99).unwrap();
        assert!(interval.contains(103.5), "{interval:?}");
    }

    #[test]
    fn intervals_cover_the_truth_as_often_as_they_say() {
        // 400 series with lag-one correlation ½. The count of misses of a true 95 % interval is
        // binomial (20 ± 4.4); MSER may only make them more. 40 misses would be 4.6 σ.
        let mut misses = 0;
        for seed in 0..400 {
            let (mut series, mut rng, mut x) = (Series::default(), Rng::new(seed), 0.0);
            for _ in 0..5000 {
                x = 0.5 * x + rng.unit_f64() - 0.5;
                series.add(x);
            }
            misses += u32::from(!series.estimate(Confidence::P95).unwrap().contains(0.0));
        }
        assert!((5..40).contains(&misses), "{misses} of 400");
    }

    #[test]
    fn a_series_shorter_than_its_correlation_is_reported() {
        // Lag-one correlations of 0 and 0.999: correlation times of 1 and 2000 observations.
        for (lag, is_long_enough) in [(0.0, true), (0.999, false)] {
            let (mut series, mut rng, mut x) = (Series::default(), Rng::new(1), 0.0);
            for _ in 0..50_000 {
                x = lag * x + rng.unit_f64() - 0.5;
                series.add(x);
            }
            assert_eq!(series.is_long_enough(), is_long_enough, "{lag}");
        }
    }

    #[test]
    fn too_short_a_series_has_no_interval() {
        let mut series = Series::default();
        (0..5 * 63).for_each(|_| series.add(1.0));
        assert_eq!(series.estimate(Confidence::P95), None);
        assert!(!series.is_long_enough());
        assert!(!series.is_narrow(Confidence::P95, 0.1));
    }
}
