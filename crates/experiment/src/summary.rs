//! Statistics over repetitions: medians with intervals, and differences between conditions.

use super::axis::label;
use super::plan::Experiment;
use fastpath_record::Repetition;
use fastpath_units::Rng;
use fastpath_units::stats::{median, quantile, sorted};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Resamples of a bootstrap (Efron and Tibshirani 1993, §12.5: 1000 for intervals of 90 to 95 %).
const RESAMPLES: usize = 2000;
/// The share of resamples on each side outside a 95 % interval.
const TAIL: f64 = 0.025;

/// A metric over the repetitions of a condition. Only usable runs count.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// The value of each axis.
    pub condition: BTreeMap<String, Value>,
    /// The metric.
    pub metric: String,
    /// Its unit; empty for none.
    pub unit: String,
    /// The number of usable runs.
    pub runs: usize,
    /// The number of runs that were left out.
    pub left_out: usize,
    /// The median; `None` without usable runs.
    pub median: Option<f64>,
    /// The 95 % interval of the median by the percentile bootstrap; `None` for fewer than 3 runs.
    pub interval: Option<[f64; 2]>,
}

/// The difference that one value makes, over pairs of runs that are equal otherwise, with the same
/// seed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// What differs.
    pub axis: String,
    /// The value that is compared.
    pub value: Value,
    /// The value with which it is compared: the first of the axis.
    pub with: Value,
    /// The metric.
    pub metric: String,
    /// Its unit; empty for none.
    pub unit: String,
    /// The number of pairs.
    pub pairs: usize,
    /// The median of the differences.
    pub difference: f64,
    /// Its 95 % interval by the percentile bootstrap; `None` for fewer than 3 pairs.
    pub interval: Option<[f64; 2]>,
    /// The effect size: mean over standard deviation of the differences (Cohen's d for pairs,
    /// Lakens 2013); `None` if all differences are equal.
    pub effect: Option<f64>,
}

/// The 95 % interval of the median by the percentile bootstrap (Efron 1979).
fn interval(numbers: &[f64]) -> Option<[f64; 2]> {
    if numbers.len() < 3 {
        return None;
    }
    // A fixed seed: the same runs have the same interval.
    let mut rng = Rng::new(1);
    let mut resample = || median(numbers.iter().map(|_| numbers[rng.below(numbers.len() as u64) as usize]));
    let medians = sorted((0..RESAMPLES).map(|_| resample()));
    Some([quantile(&medians, TAIL), quantile(&medians, 1.0 - TAIL)])
}

/// Summarises each metric in each condition, in the order of the conditions.
pub(super) fn summaries(plan: &Experiment, runs: &[Repetition]) -> Vec<Summary> {
    let mut by_condition: BTreeMap<u64, Vec<&Repetition>> = BTreeMap::new();
    for run in runs {
        by_condition.entry(run.run % plan.conditions()).or_default().push(run);
    }
    let mut summaries = Vec::new();
    for runs in by_condition.values() {
        for metric in &plan.metrics {
            let usable = runs.iter().filter(|run| run.is_usable());
            let values: Vec<f64> = usable.filter_map(|run| run.values.get(&metric.name).copied()).collect();
            summaries.push(Summary {
                condition: runs[0].condition.clone(),
                metric: metric.name.clone(),
                unit: metric.unit.clone(),
                runs: values.len(),
                left_out: runs.len() - values.len(),
                median: (!values.is_empty()).then(|| median(values.iter().copied())),
                interval: interval(&values),
            });
        }
    }
    summaries
}

/// Compares each value of each axis with the first.
pub(super) fn comparisons(plan: &Experiment, runs: &[Repetition]) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for axis in plan.axes.iter().filter(|axis| axis.values.len() > 1) {
        // Runs by all that is equal in a pair.
        let rest_of = |run: &Repetition| {
            let rest = run.condition.iter().filter(|(name, _)| **name != axis.name);
            let rest: Vec<String> = rest.map(|(name, value)| format!("{name}={}", label(value))).collect();
            (run.origin.seed, rest)
        };
        let usable = || runs.iter().filter(|run| run.is_usable());
        let first: BTreeMap<_, &Repetition> = usable()
            .filter(|run| run.condition[&axis.name] == axis.values[0])
            .map(|run| (rest_of(run), run))
            .collect();
        for value in &axis.values[1..] {
            for metric in &plan.metrics {
                let differences: Vec<f64> = usable()
                    .filter(|run| run.condition[&axis.name] == *value)
                    .filter_map(|run| {
                        let other = first.get(&rest_of(run))?;
                        Some(run.values.get(&metric.name)? - other.values.get(&metric.name)?)
                    })
                    .collect();
                if differences.is_empty() {
                    continue;
                }
                comparisons.push(Comparison {
                    axis: axis.name.clone(),
                    value: value.clone(),
                    with: axis.values[0].clone(),
                    metric: metric.name.clone(),
                    unit: metric.unit.clone(),
                    pairs: differences.len(),
                    difference: median(differences.iter().copied()),
                    interval: interval(&differences),
                    effect: effect(&differences),
                });
            }
        }
    }
    comparisons
}

/// Mean over standard deviation.
fn effect(differences: &[f64]) -> Option<f64> {
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let deviation = (differences.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    (n > 1.0 && deviation > 0.0).then(|| mean / deviation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effect_is_that_of_pairs() {
        assert_eq!(effect(&[2.0, 4.0]), Some(3.0 / 2.0_f64.sqrt()));
        assert_eq!([effect(&[2.0]), effect(&[2.0, 2.0])], [None, None]);
    }

    /// Of 400 intervals at 95 % about 380 cover the true median. The percentile bootstrap of a
    /// median of 15 is known to cover a little more or less; outside 350 to 400 it is wrong. The
    /// seeds are fixed.
    #[test]
    fn intervals_cover_the_median_as_often_as_they_say() {
        let covers = |seed: u64| {
            let mut rng = Rng::new(seed);
            let numbers: Vec<f64> = (0..15).map(|_| -(1.0 - rng.unit_f64()).ln()).collect();
            let [low, high] = interval(&numbers).unwrap();
            (low..=high).contains(&2.0_f64.ln())
        };
        let covered = (0..400).filter(|seed| covers(*seed)).count();
        assert!((350..=400).contains(&covered), "{covered}");
        assert_eq!(interval(&[1.0, 2.0]), None);
    }
}
