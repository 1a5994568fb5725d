//! Columns over time: amounts as rates, values of instants, and the times without samples.
//!
//! ```text
//!  samples   |    |    |                        |    |
//!  rows      ╶─ 5 ─╴ 7 ╶────────── 90 ──────────╴ 6 ─╴
//!  rates     ▔▔▔▔▔ ▔▔▔ ▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔ ▔▔▔▔▔   an amount over its own interval
//!  values        ╶────╴           gap           ╶────╴   known at samples only
//! ```

use fastpath_units::stats::per_second;

/// An interval longer than this many of those asked for is a gap: the sampler did not run.
pub const GAP_INTERVALS: f64 = 3.0;

/// The ends of the rows of a series and the interval of each, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct SeriesRows<'s> {
    pub(super) times: &'s [f64],
    pub(super) intervals: &'s [f64],
}

/// Equal parts of the time of a run. The last one may be shorter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bins {
    /// The length of one, in seconds.
    pub width_s: f64,
    /// Their number.
    pub count: usize,
    /// The end of the last one, in seconds.
    end_s: f64,
    /// The longest interval between samples that is not a gap.
    interval_max_s: f64,
}

impl Bins {
    /// Equal parts of `duration_s`: at most `count_max`, and none shorter than an interval of
    /// samples.
    pub(super) fn of_run(duration_s: f64, interval_s: f64, count_max: usize) -> Bins {
        let duration_s = duration_s.max(interval_s);
        let count = ((duration_s / interval_s) as usize).clamp(1, count_max.max(1));
        let width_s = duration_s / count as f64;
        Bins { width_s, count, end_s: duration_s, interval_max_s: GAP_INTERVALS * interval_s }
    }

    /// Parts of `duration_s` whose length is 1, 2 or 5 times a power of ten: at most `count_max`,
    /// and none shorter than an interval of samples but the last.
    pub(super) fn round_of_run(duration_s: f64, interval_s: f64, count_max: usize) -> Bins {
        let duration_s = duration_s.max(interval_s);
        let least = (duration_s / count_max.max(1) as f64).max(interval_s);
        let power = 10f64.powf(least.log10().floor());
        let is_enough = |factor: &f64| factor * power >= least * (1.0 - 1e-9);
        let width_s = power * [1.0, 2.0, 5.0].into_iter().find(is_enough).unwrap_or(10.0);
        let count = ((duration_s / width_s - 1e-6).ceil() as usize).max(1);
        Bins { width_s, count, end_s: duration_s, interval_max_s: GAP_INTERVALS * interval_s }
    }

    /// The length of a bin, in seconds.
    fn length(&self, bin: usize) -> f64 {
        if bin + 1 < self.count { self.width_s } else { self.end_s - bin as f64 * self.width_s }
    }

    /// Returns the middle of a bin, in seconds.
    pub fn middle(&self, bin: usize) -> f64 {
        bin as f64 * self.width_s + self.length(bin) / 2.0
    }

    /// The bin of an instant, which is the end of an interval.
    fn of(&self, at_s: f64) -> usize {
        // A time on the edge of two bins ends the earlier one. Times have six digits.
        (((at_s - 1e-7) / self.width_s).max(0.0) as usize).min(self.count - 1)
    }

    /// Returns the rate in each bin: an amount is spread evenly over the interval of its row.
    pub fn rates(&self, rows: SeriesRows<'_>, amounts: &[f64]) -> Vec<f64> {
        let mut bins = vec![0.0; self.count];
        for (amount, (from_s, to_s)) in
            amounts.iter().zip(rows.spans()).filter(|(amount, _)| !amount.is_nan())
        {
            let (first, last) = (self.of(from_s + 2e-7), self.of(to_s));
            if first >= last || to_s <= from_s {
                bins[last] += per_second(*amount, self.length(last));
                continue;
            }
            let rate = per_second(*amount, to_s - from_s);
            for (bin, sum) in bins.iter_mut().enumerate().take(last + 1).skip(first) {
                let (start, end) = (bin as f64 * self.width_s, (bin + 1) as f64 * self.width_s);
                // The last bin ends with the last sample.
                let end = if bin == last { to_s } else { end };
                *sum += rate * (end - start.max(from_s)).max(0.0) / self.length(bin);
            }
        }
        bins
    }

    /// Returns the largest value in each bin of what is sampled at the end of each row: 0 where
    /// there is no row, NaN where no sample was taken.
    pub fn largest(&self, rows: SeriesRows<'_>, values: &[f64]) -> Vec<f64> {
        let mut bins = vec![0f64; self.count];
        for (value, (from_s, to_s)) in values.iter().zip(rows.spans()).filter(|(value, _)| !value.is_nan()) {
            let last = self.of(to_s);
            // A bin may lie between two samples.
            let between = if self.is_gap(from_s, to_s) { f64::NAN } else { *value };
            let first = self.of(from_s);
            bins.iter_mut().take(last).skip(first + 1).for_each(|bin| *bin = between);
            bins[last] = bins[last].max(*value);
        }
        bins
    }

    fn is_gap(&self, from_s: f64, to_s: f64) -> bool {
        to_s - from_s > self.interval_max_s
    }
}

impl<'s> SeriesRows<'s> {
    /// Returns the interval of each row: its start and its end.
    fn spans(self) -> impl Iterator<Item = (f64, f64)> + 's {
        self.times.iter().zip(self.intervals).map(|(to_s, interval_s)| ((to_s - interval_s).max(0.0), *to_s))
    }
}

/// Returns when no sample was taken, as far as these rows say it, merged and in the order of time.
pub(super) fn gaps<'s>(rows: impl Iterator<Item = SeriesRows<'s>>, interval_s: f64) -> Vec<(f64, f64)> {
    let longest = GAP_INTERVALS * interval_s;
    let mut all: Vec<(f64, f64)> = rows
        .flat_map(SeriesRows::spans)
        .filter(|(from_s, to_s)| *from_s > 0.0 && to_s - from_s > longest)
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut merged: Vec<(f64, f64)> = Vec::new();
    for (from_s, to_s) in all {
        match merged.last_mut() {
            Some(last) if from_s < last.1 => last.1 = last.1.max(to_s),
            _ => merged.push((from_s, to_s)),
        }
    }
    merged
}
