//! The figures of the evaluation, with criteria that are fixed before anything is measured.

use super::points::{CapacityPoint, PointKind, PredictedQuantity};
use fastpath_model::capacity::CapacityVerdict;
use fastpath_units::stats::median;
use serde::Serialize;

/// The largest median error, %: that of Yala (BlueField-2). On a machine whose repeats differ more,
/// [`REPEAT_FACTOR`] times their median difference.
const MEDIAN_PCT: f64 = 3.7;
const REPEAT_FACTOR: f64 = 1.5;
/// Which share of points 95 % intervals cover.
const COVERED: [f64; 2] = [0.90, 0.99];
/// The least share of right answers, and the largest share of wrong yeses.
const RIGHT_MIN: f64 = 0.95;
const WRONG_YES_MAX: f64 = 0.02;

/// A figure with its criterion.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CapacityFigure {
    /// Its stable name.
    pub id: String,
    /// The quantity, with its unit.
    pub quantity: String,
    /// The criterion in words.
    pub asked: String,
    /// The result.
    pub ours: f64,
    /// Whether it meets the criterion.
    pub pass: bool,
}

/// How well the speeds of some points, and whether a load is carried, were predicted.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct SpeedAccuracy {
    /// The number of points.
    pub points: usize,
    /// The share of speeds that their 95 % intervals cover.
    pub coverage: f64,
    /// The median error, %.
    pub median_error_pct: f64,
    /// The median difference of two measurements of a point, %.
    pub repeat_median_pct: f64,
    /// The share of right answers whether a load is carried.
    pub right: f64,
    /// The share of wrong yeses.
    pub wrong_yes: f64,
}

impl SpeedAccuracy {
    pub(super) fn of<'p>(points: impl Iterator<Item = &'p CapacityPoint> + Clone) -> SpeedAccuracy {
        let count = points.clone().count();
        let share = |is_hit: fn(&CapacityPoint) -> bool| {
            points.clone().filter(|point| is_hit(point)).count() as f64 / count.max(1) as f64
        };
        let says_yes = |point: &CapacityPoint| point.verdict == CapacityVerdict::Carries;
        let error = |point: &CapacityPoint| {
            let PredictedQuantity { predicted, measured, .. } = point.speed;
            100.0 * (predicted.value / measured - 1.0).abs()
        };
        let repeat = |point: &CapacityPoint| {
            let [a, b] = [point.speed.measured, point.again];
            200.0 * (a - b).abs() / (a + b)
        };
        SpeedAccuracy {
            points: count,
            coverage: share(|point| point.speed.covered),
            median_error_pct: median(points.clone().map(error)),
            repeat_median_pct: median(points.clone().map(repeat)),
            right: points.clone().filter(|point| says_yes(point) == point.carried).count() as f64
                / count.max(1) as f64,
            wrong_yes: points.clone().filter(|point| says_yes(point) && !point.carried).count() as f64
                / count.max(1) as f64,
        }
    }

    /// The figures of all points, or of those of a kind.
    fn figures(&self, kind: Option<PointKind>) -> Vec<CapacityFigure> {
        let SpeedAccuracy { points, coverage, median_error_pct, repeat_median_pct, right, wrong_yes } = *self;
        let most = MEDIAN_PCT.max(REPEAT_FACTOR * repeat_median_pct);
        let (what, of) = match kind {
            None => ("speed".to_owned(), String::new()),
            Some(kind) => (kind.to_string(), format!("{kind}: ")),
        };
        vec![
            of_coverage(&format!("{what}/covered"), &format!("{of}speed"), coverage, points),
            figure(
                &format!("{what}/error"),
                &format!("{of}speed: median error, %"),
                format!("≤ {most:.2}"),
                (median_error_pct, median_error_pct <= most),
            ),
            figure(
                &format!("{what}/right"),
                &format!("{of}yes or no: share of right answers"),
                format!("≥ {RIGHT_MIN}"),
                (right, right >= RIGHT_MIN),
            ),
            figure(
                &format!("{what}/wrong-yes"),
                &format!("{of}yes or no: share of wrong yeses"),
                format!("≤ {WRONG_YES_MAX}"),
                (wrong_yes, wrong_yes <= WRONG_YES_MAX),
            ),
        ]
    }
}

/// The figures of points.
pub(super) fn figures(points: &[CapacityPoint], kinds: &[(PointKind, SpeedAccuracy)]) -> Vec<CapacityFigure> {
    let mut figures = SpeedAccuracy::of(points.iter()).figures(None);
    figures.extend(kinds.iter().flat_map(|(kind, accuracy)| accuracy.figures(Some(*kind))));
    let mut other = |id: &str, what: &str, of: fn(&CapacityPoint) -> Option<PredictedQuantity>| {
        let values: Vec<PredictedQuantity> = points.iter().filter_map(of).collect();
        let covered = values.iter().filter(|value| value.covered).count();
        if !values.is_empty() {
            figures.push(of_coverage(id, what, covered as f64 / values.len() as f64, values.len()));
        }
    };
    other("lateness/covered", "lateness p99", |point| point.lateness_p99_us);
    other("memory/covered", "memory", |point| point.memory_bytes);
    other("start/covered", "start", |point| point.start_s);
    figures
}

fn figure(id: &str, quantity: &str, asked: String, (ours, pass): (f64, bool)) -> CapacityFigure {
    CapacityFigure { id: format!("capacity/{id}"), quantity: quantity.to_owned(), asked, ours, pass }
}

fn of_coverage(id: &str, what: &str, ours: f64, count: usize) -> CapacityFigure {
    let [low, high] = COVERED;
    // Of few points either all or one less are covered.
    let one = 1.0 / count.max(1) as f64;
    let pass = ours >= low && (ours <= high || one > 1.0 - high);
    let quantity = format!("{what}: share of 95 % intervals that cover");
    figure(id, &quantity, format!("{low} … {high}"), (ours, pass))
}
