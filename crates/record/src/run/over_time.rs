//! Columns over time: amounts as rates, values of instants, and the times without samples.
//!
//! ```text
//!  samples   |    |    |                        |    |
//!  rows      ╶─ 5 ─╴ 7 ╶────────── 90 ──────────╴ 6 ─╴
//!  rates     ▔▔▔▔▔ ▔▔▔ ▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔ ▔▔▔▔▔   an amount over its own interval
//!  values        ╶────╴           gap           ╶────╴   known at samples only
//! ```

use super::read::RunSeries;
use fastpath_units::stats::per_second;

/// An interval longer than this many of those asked for is a gap: the sampler did not run.
pub const GAP_INTERVALS: f64 = 3.0;

/// The ends of the rows of a series and the interval of each, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'s> {
    pub(super) times: &'s [f64],
    pub(super) intervals: &'s [f64],
}

/// Equal parts of the time of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bins {
    /// The length of one, in seconds.
    pub width_s: f64,
    /// Their number.
    pub count: usize,
    /// The longest interval between samples that is not a gap.
    interval_max_s: f64,
}

impl RunSeries {
    /// Returns equal parts of the run: at most `count_max`, and none shorter than an interval of
    /// samples.
    pub fn bins(&self, count_max: usize) -> Bins {
        let duration_s = self.duration_s.max(self.interval_s);
        let count = ((duration_s / self.interval_s) as usize).clamp(1, count_max.max(1));
        let width_s = duration_s / count as f64;
        Bins { width_s, count, interval_max_s: GAP_INTERVALS * self.interval_s }
    }
}

impl Bins {
    /// Returns the middle of a bin, in seconds.
    pub fn middle(&self, bin: usize) -> f64 {
        (bin as f64 + 0.5) * self.width_s
    }

    /// The bin of an instant, which is the end of an interval.
    fn of(&self, at_s: f64) -> usize {
        // A time on the edge of two bins ends the earlier one. Times have six digits.
        (((at_s - 1e-7) / self.width_s).max(0.0) as usize).min(self.count - 1)
    }

    /// Returns the rate in each bin: an amount is spread evenly over the interval of its row.
    pub fn rates(&self, rows: Rows<'_>, amounts: &[f64]) -> Vec<f64> {
        let mut bins = vec![0.0; self.count];
        for (amount, (from_s, to_s)) in
            amounts.iter().zip(rows.spans()).filter(|(amount, _)| !amount.is_nan())
        {
            let (first, last) = (self.of(from_s + 2e-7), self.of(to_s));
            if first >= last || to_s <= from_s {
                bins[last] += per_second(*amount, self.width_s);
                continue;
            }
            let rate = per_second(*amount, to_s - from_s);
            for (bin, sum) in bins.iter_mut().enumerate().take(last + 1).skip(first) {
                let (start, end) = (bin as f64 * self.width_s, (bin + 1) as f64 * self.width_s);
                // The last bin ends with the last sample.
                let end = if bin == last { to_s } else { end };
                *sum += rate * (end - start.max(from_s)).max(0.0) / self.width_s;
            }
        }
        bins
    }

    /// Returns the largest value in each bin of what is sampled at the end of each row: 0 where
    /// there is no row, NaN where no sample was taken.
    pub fn largest(&self, rows: Rows<'_>, values: &[f64]) -> Vec<f64> {
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

impl<'s> Rows<'s> {
    /// Returns the interval of each row: its start and its end.
    fn spans(self) -> impl Iterator<Item = (f64, f64)> + 's {
        self.times.iter().zip(self.intervals).map(|(to_s, interval_s)| ((to_s - interval_s).max(0.0), *to_s))
    }
}

/// Returns when no sample of a run was taken, as far as its rows say it: starts and ends, in the
/// order of time. What was before the first sample is not one of them.
pub fn gaps(series: &RunSeries) -> Vec<(f64, f64)> {
    let rows = series.links.iter().map(super::LinkSeries::rows);
    let rows = rows.chain(series.flows.iter().map(super::FlowSeries::rows));
    let longest = GAP_INTERVALS * series.interval_s;
    let mut all: Vec<(f64, f64)> = rows
        .flat_map(Rows::spans)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkSeries;

    /// A run of 2 s, sampled each 100 ms, with these rows: end, interval and bytes.
    fn series(rows: &[(f64, f64, f64)]) -> RunSeries {
        let column = |of: fn(&(f64, f64, f64)) -> f64| rows.iter().map(of).collect::<Vec<f64>>();
        let mut link = LinkSeries {
            times: column(|row| row.0),
            intervals: column(|row| row.1),
            ..LinkSeries::default()
        };
        link.columns.insert("bytes_out".to_owned(), column(|row| row.2));
        RunSeries { interval_s: 0.1, duration_s: 2.0, links: vec![link], ..RunSeries::default() }
    }

    fn about(found: &[f64], expected: &[f64]) {
        let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-6 || a.is_nan() && b.is_nan();
        assert!(found.len() == expected.len() && found.iter().zip(expected).all(is_near), "{found:?}");
    }

    #[test]
    fn an_amount_is_spread_over_its_own_interval() {
        let series = series(&[
            (0.1, 0.1, 10.0),
            (0.2, 0.1, 20.0),
            (1.6, 1.2, 120.0),
            (1.61, 0.01, 1.0),
            (2.0, 0.39, 0.0),
        ]);
        let (rows, bytes) = (series.links[0].rows(), &series.links[0].columns["bytes_out"]);
        // Bins of 0.5 s. The stall from 0.4 to 1.6 s has a mean rate of 100 per second.
        let bins = series.bins(4);
        assert_eq!((bins.width_s, bins.count, bins.middle(1)), (0.5, 4, 0.75));
        about(&bins.rates(rows, bytes), &[30.0 / 0.5 + 20.0, 100.0, 100.0, 22.0]);
        // As fine as the samples: no bin is above a rate that a row has.
        let fine = series.bins(1000);
        assert_eq!(fine.count, 20);
        let rates = fine.rates(rows, bytes);
        about(&rates[..6], &[100.0, 200.0, 0.0, 0.0, 100.0, 100.0]);
        about(&[rates.iter().sum::<f64>() * fine.width_s], &[151.0]);
    }

    #[test]
    fn what_is_sampled_is_unknown_between_samples_that_are_far_apart() {
        let nan = f64::NAN;
        let series = series(&[(0.2, 0.2, 4.0), (0.5, 0.3, 5.0), (1.4, 0.9, 6.0)]);
        let found = series.bins(1000).largest(series.links[0].rows(), &series.links[0].columns["bytes_out"]);
        about(&found[..5], &[0.0, 4.0, 5.0, 5.0, 5.0]);
        about(&found[5..13], &[nan; 8]);
        about(&found[13..], &[6.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        about(&gaps(&series).iter().flat_map(|(from, to)| [*from, *to]).collect::<Vec<_>>(), &[0.5, 1.4]);
    }
}
