//! Compares a model with measurements that were not fitted: the other half of a grid, another run,
//! another paper.
//!
//! No model predicts a point better than the point repeats. Where a prediction misses the
//! acceptance criterion, the repeats show whether the model or the measurement is the cause: the
//! column [`SPREAD`] of records, or rows that measure one point again.

use crate::Estimate;
use crate::fit::prepared::Prepared;
use crate::fit::{self, Explanation, Fit, FitError, FitOptions, fit_prepared};
use crate::model::ModelError;
use crate::predict::{PredictError, PredictionQuery, Transfer, predict};
pub use crate::table::SPREAD;
use crate::table::Table;
use crate::terms::Term;
use fastpath_units::Rng;
use fastpath_units::stats::{median, quantile, sorted};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// One in this many rows is the least that half of a checkerboard may have.
const LEAST_SHARE: usize = 4;
/// Acceptance criterion: the median error is at most this, %.
pub const MEDIAN_PCT: f64 = 1.0;
/// Acceptance criterion: 95 % of the points err by at most this, %.
pub const P95_PCT: f64 = 5.0;

/// The errors of the predictions, and the verdict.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Check {
    /// Points compared.
    pub n: usize,
    /// Rows left out because a line rate or a packet-rate cap limits them, not the processor.
    pub capped: usize,
    /// Median |error|, % of the measured value.
    pub median_pct: f64,
    /// 95 % of the points err by at most this, %.
    pub p95_pct: f64,
    /// The largest |error|, %.
    pub max_pct: f64,
    /// Share of points (0 … 1) inside their own prediction interval; the fit's level is expected.
    pub covered: f64,
    /// Median width of those intervals, % of the prediction.
    #[serde(default)]
    pub width_pct: f64,
    /// How well the points themselves repeat, if the table shows it.
    pub repeat: Option<Repeat>,
    /// Whether the criteria [`MEDIAN_PCT`] and [`P95_PCT`] are met; for another platform, whether
    /// the interval covers.
    pub verdict: CheckVerdict,
}

/// Differences between repeated measurements of points.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Repeat {
    /// Points measured more than once.
    pub n: usize,
    /// Median difference, %.
    pub median_pct: f64,
    /// 95 % of the points differ by at most this, %.
    pub p95_pct: f64,
}

/// Whether predictions meet the acceptance criteria.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckVerdict {
    /// The predictions meet them.
    Holds,
    /// The predictions miss them, and the points repeat well enough to blame the model.
    Misses,
    /// The predictions miss them, and the points do not repeat well enough to decide why.
    TooNoisy,
}

/// Why a model cannot be checked.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The table does not suit the fit.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// There is no row to compare with.
    #[error(
        "no row left to test: every row is excluded by the selection, limited by a line rate or a packet-rate cap, or fitted: test more rows"
    )]
    Nothing,
    /// The model cannot answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The platforms cannot be compared.
    #[error(transparent)]
    Predict(#[from] PredictError),
}

/// Compares `fit` with the rows of `table`, which must have the columns that the fit used. Only
/// rows that `options` select are compared. Where the fit left out capped rows, capped rows of
/// `table` are left out too.
///
/// # Errors
/// [`CheckError`] when the table lacks a column, holds a cell that is not a measurement, or has no
/// row to compare.
pub fn check(fit: &Fit, table: &Table, options: &FitOptions) -> Result<Check, CheckError> {
    let (rows, capped) = tested(fit, table, options)?;
    Ok(Check { capped, ..compare(fit, &rows)? })
}

fn compare(fit: &Fit, points: &Prepared) -> Result<Check, CheckError> {
    let model = fit.model();
    let rows = Rows::read(fit, points)?;
    let predictions = (0..rows.measured.len()).map(|row| {
        let predicted = model.predict(|name| rows.value(name, row))?;
        Ok(Estimate { value: predicted.mean.value, ..predicted.single })
    });
    let predictions = predictions.collect::<Result<Vec<_>, CheckError>>()?;
    let found = rows.compare(&predictions);
    let verdict = match found.repeat {
        _ if is_good(found.median_pct, found.p95_pct) => CheckVerdict::Holds,
        Some(repeat) if !is_good(repeat.median_pct, repeat.p95_pct) => CheckVerdict::TooNoisy,
        _ => CheckVerdict::Misses,
    };
    Ok(Check { verdict, ..found })
}

/// Compares what `fit` predicts for another platform with the rows of `table`, measured there. The
/// verdict is [`CheckVerdict::Holds`] when the interval covers as many rows as its level states.
///
/// # Errors
/// [`CheckError`] as [`check`], and for platforms that cannot be compared.
pub fn elsewhere(
    fit: &Fit,
    table: &Table,
    options: &FitOptions,
    transfer: &Transfer,
) -> Result<Check, CheckError> {
    let model = fit.model();
    let (points, capped) = tested(fit, table, options)?;
    let rows = Rows::read(fit, &points)?;
    let unit_ns = model.seconds_per_unit.ok_or(ModelError::NoTime)? * 1e9;
    let predictions = (0..rows.measured.len()).map(|row| {
        let at = rows.columns.iter().map(|(name, values)| ((*name).to_owned(), values[row])).collect();
        let transfer = Some(transfer.clone());
        let query = PredictionQuery { transfer, cores: 1.0, line_gbit: None, packet_cap: None, at };
        Ok(predict(&model, &query)?.ns_per_packet.map(|ns| ns / unit_ns))
    });
    let predictions = predictions.collect::<Result<Vec<_>, CheckError>>()?;
    let found = rows.compare(&predictions);
    let verdict = if found.covered >= fit.level { CheckVerdict::Holds } else { CheckVerdict::Misses };
    Ok(Check { capped, verdict, ..found })
}

/// Returns the rows of `table` to compare `fit` with, and the number of capped rows left out.
fn tested(fit: &Fit, table: &Table, options: &FitOptions) -> Result<(Prepared, usize), CheckError> {
    let y: Term = fit.y.parse().map_err(FitError::from)?;
    let columns: Vec<&str> = fit.terms.columns().into_iter().collect();
    let points = Prepared::for_check(table, y, &columns, fit.fcs, options, fit.is_uncapped())?;
    let free = points.free();
    Ok((points.keep(&free), points.table.len() - free.len()))
}

/// The rows of a table that a fit is compared with.
struct Rows<'a> {
    measured: Vec<f64>,
    columns: Vec<(&'a str, Vec<f64>)>,
    repeat: Option<Repeat>,
}

impl<'a> Rows<'a> {
    fn read(fit: &'a Fit, points: &Prepared) -> Result<Rows<'a>, CheckError> {
        let table = &points.table;
        if table.is_empty() {
            return Err(CheckError::Nothing);
        }
        let measured = points.y.column(table).map_err(FitError::from)?;
        if let Some(row) = measured.iter().position(|y| *y <= 0.0) {
            return Err(FitError::NotPositive { line: table.line(row), value: measured[row] }.into());
        }
        let numbers = |name: &'a str| Ok((name, table.numbers(name).map_err(FitError::from)?));
        let columns = fit.terms.columns().into_iter().map(numbers).collect::<Result<Vec<_>, CheckError>>()?;
        let repeat = repeat(table, &columns, &measured);
        Ok(Rows { measured, columns, repeat })
    }

    fn value(&self, name: &str, row: usize) -> Option<f64> {
        self.columns.iter().find(|(n, _)| *n == name).map(|(_, values)| values[row])
    }

    /// Computes the errors of the predictions; the caller sets the verdict.
    fn compare(&self, predictions: &[Estimate]) -> Check {
        let pairs = || predictions.iter().zip(&self.measured);
        let errors = sorted(pairs().map(|(p, measured)| 100.0 * (p.value / measured - 1.0).abs()));
        Check {
            n: errors.len(),
            capped: 0,
            median_pct: quantile(&errors, 0.5),
            p95_pct: quantile(&errors, 0.95),
            max_pct: errors[errors.len() - 1],
            covered: pairs().filter(|(p, measured)| p.covers(**measured)).count() as f64
                / errors.len() as f64,
            width_pct: median(predictions.iter().map(|p| 100.0 * (p.high - p.low) / p.value)),
            repeat: self.repeat,
            verdict: CheckVerdict::Misses,
        }
    }
}

fn is_good(median_pct: f64, p95_pct: f64) -> bool {
    median_pct <= MEDIAN_PCT && p95_pct <= P95_PCT
}

/// Which points are fitted; the others are predicted. All measurements of a point are on one side.
#[derive(Clone, PartialEq, Debug)]
pub enum Halves {
    /// Every other square of the grid.
    Checkerboard,
    /// Half of the points, drawn with this seed.
    Drawn(u64),
    /// The points where this column is at most this value: the others are extrapolated.
    UpTo(String, f64),
}

/// Fits one half of a grid and checks the fit against the other half. Capped rows are in neither
/// half.
///
/// # Errors
/// As [`fit`](crate::fit::fit) and [`check`].
pub fn half(table: &Table, y: &str, terms: &str, options: &FitOptions) -> Result<(Fit, Check), CheckError> {
    half_by(table, y, terms, options, &Halves::Checkerboard)
}

/// Fits the points that `by` selects and checks the fit against the others. Capped rows are in
/// neither part.
///
/// # Errors
/// As [`fit`](crate::fit::fit) and [`check`].
pub fn half_by(
    table: &Table,
    y: &str,
    terms: &str,
    options: &FitOptions,
    by: &Halves,
) -> Result<(Fit, Check), CheckError> {
    let explanation = Explanation::parse(terms, table)?;
    let y: Term = fit::quote(y, table).parse().map_err(FitError::from)?;
    let columns = explanation.columns();
    // Caps are looked for in the whole table, because half of it shows less of them.
    let points = Prepared::for_fit(table, y, &columns, options)?;
    let fit_half = |points: &Prepared| {
        let [fitted, tested] = match by {
            Halves::Checkerboard => halves(&points.table, &columns)?,
            Halves::Drawn(seed) => drawn(&points.table, &columns, *seed)?,
            Halves::UpTo(column, most) => up_to(&points.table, column, *most)?,
        };
        let found = fit_prepared(&points.keep(&fitted), &explanation, options)?;
        Ok((found, points.keep(&tested), points.table.len()))
    };
    let ((mut found, tested, taken), caps) = points.uncapped(options.regimes, fit_half)?;
    found.annotate(&points.notes, caps);
    let checked = compare(&found, &tested)?;
    Ok((found, Check { capped: points.table.len() - taken, ..checked }))
}

/// Splits the rows like the squares of a checkerboard into those to fit and those to test. Each
/// half has every value of every column where there are enough, and all measurements of a point are
/// in one half. Columns that rise together touch squares of one colour only; then every other point
/// is taken.
fn halves(table: &Table, columns: &[&str]) -> Result<[Vec<usize>; 2], FitError> {
    let mut places = vec![Vec::with_capacity(columns.len()); table.len()];
    for column in columns {
        let texts = table.texts(column)?;
        let values = table.numbers_if_any(column)?;
        let mut levels: Vec<f64> = values.iter().copied().flatten().collect();
        levels.sort_by(f64::total_cmp);
        levels.dedup();
        for (row, place) in places.iter_mut().enumerate() {
            // The fit refuses a cell that is not a number.
            place.push(values[row].map_or(texts[row].len(), |x| levels.partition_point(|level| *level < x)));
        }
    }
    if columns.is_empty() {
        places = (0..table.len()).map(|row| vec![row]).collect();
    }
    let by = |number: &dyn Fn(usize) -> usize| {
        [0, 1].map(|odd| (0..table.len()).filter(|&row| number(row) % 2 == odd).collect::<Vec<_>>())
    };
    let board = by(&|row| places[row].iter().sum());
    if board.iter().all(|half| LEAST_SHARE * half.len() >= table.len()) {
        return Ok(board);
    }
    let mut points: Vec<&Vec<usize>> = places.iter().collect();
    points.sort_unstable();
    points.dedup();
    Ok(by(&|row| points.partition_point(|point| *point < &places[row])))
}

/// Draws half of the points of a table.
fn drawn(table: &Table, columns: &[&str], seed: u64) -> Result<[Vec<usize>; 2], FitError> {
    for column in columns {
        table.texts(column)?;
    }
    let groups = table.groups(&|name| columns.contains(&name));
    let mut points: Vec<usize> = groups.clone();
    points.sort_unstable();
    points.dedup();
    let mut rng = Rng::new(seed);
    for i in (1..points.len()).rev() {
        points.swap(i, rng.below(i as u64 + 1) as usize);
    }
    let fitted: BTreeSet<usize> = points[..points.len().div_ceil(2)].iter().copied().collect();
    Ok([true, false].map(|is_fitted| {
        (0..table.len()).filter(|&row| fitted.contains(&groups[row]) == is_fitted).collect()
    }))
}

/// Separates the rows where `column` is at most `most` from the others.
fn up_to(table: &Table, column: &str, most: f64) -> Result<[Vec<usize>; 2], FitError> {
    let values = table.numbers(column)?;
    Ok([true, false]
        .map(|is_fitted| (0..table.len()).filter(|&row| (values[row] <= most) == is_fitted).collect()))
}

/// Returns how well the points of a table repeat.
fn repeat(table: &Table, columns: &[(&str, Vec<f64>)], measured: &[f64]) -> Option<Repeat> {
    let differences: Vec<f64> = match table.numbers_if_any(SPREAD) {
        Ok(spread) => spread.into_iter().flatten().collect(),
        Err(_) => {
            let mut points: BTreeMap<Vec<u64>, Vec<f64>> = BTreeMap::new();
            for (row, y) in measured.iter().enumerate() {
                let point = columns.iter().map(|(_, values)| values[row].to_bits()).collect();
                points.entry(point).or_default().push(*y);
            }
            let again = points.into_values().filter(|ys| ys.len() > 1);
            let ends =
                again.map(|ys| ys.iter().fold((f64::INFINITY, 0.0f64), |(a, b), y| (a.min(*y), b.max(*y))));
            ends.map(|(least, most)| 100.0 * (most / least - 1.0)).collect()
        }
    };
    if differences.is_empty() {
        return None;
    }
    let differences = sorted(differences);
    Some(Repeat {
        n: differences.len(),
        median_pct: quantile(&differences, 0.5),
        p95_pct: quantile(&differences, 0.95),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::{Regimes, fit};
    use crate::platform::{Platform, ScoreKind};
    use crate::testing::normal;

    #[test]
    fn half_of_a_grid_predicts_the_other_half() {
        let mut rng = Rng::new(31);
        let mut text = "p,h,T_ns\n".to_owned();
        for p in [64, 128, 256, 512, 1024, 1280, 1518] {
            for h in [0, 1, 2, 5, 10, 20, 50, 100] {
                let t =
                    (38.6 + 0.101 * f64::from(p) + 4.07 * f64::from(h)) * (1.0 + 0.005 * normal(&mut rng));
                text += &format!("{p},{h},{t}\n");
            }
        }
        let table = Table::from_csv(&text).expect("a table");
        for terms in ["const,p,h", "auto:p,h"] {
            let (found, check) = half(&table, "T_ns", terms, &FitOptions::default()).expect("a fit");
            assert_eq!((found.n, check.n, check.verdict), (28, 28, CheckVerdict::Holds), "{check:?}");
            assert!(check.covered >= 0.8, "{check:?}");
        }
        // Every other square of the board: 64 B with 0, 2, 10, 50 steps, 128 B with 1, 5, 20, 100.
        let [fitted, _] = halves(&table, &["p", "h"]).expect("numbers");
        assert_eq!(fitted[..8], [0, 2, 4, 6, 9, 11, 13, 15]);
    }

    #[test]
    fn repeats_separate_a_wrong_model_from_a_noisy_machine() {
        // A cost with a bend, by a straight line.
        let verdict = |spread: &str| {
            let mut text = format!("p,T_ns{}\n", if spread.is_empty() { "" } else { ",spread_pct" });
            for p in [64, 128, 192, 256, 512, 1024, 1280, 1518] {
                text += &format!("{p},{}{spread}\n", 20.0 + 0.5 * f64::from(p.min(256)));
            }
            let table = Table::from_csv(&text).expect("a table");
            half(&table, "T_ns", "const,p", &FitOptions::default()).expect("a fit").1
        };
        assert_eq!((verdict("").verdict, verdict("").repeat), (CheckVerdict::Misses, None));
        assert_eq!(verdict(",0.4").verdict, CheckVerdict::Misses);
        let noisy = verdict(",2.5");
        assert_eq!(noisy.verdict, CheckVerdict::TooNoisy);
        assert_eq!(noisy.repeat, Some(Repeat { n: 4, median_pct: 2.5, p95_pct: 2.5 }));
    }

    #[test]
    fn rows_that_measure_a_point_again_say_how_well_it_repeats() {
        let mut text = "p,T_ns\n".to_owned();
        for p in 1..=8 {
            text += &format!("{p},{}\n{p},{}\n", 10 * p, 10.1 * f64::from(p));
        }
        let table = Table::from_csv(&text).expect("a table");
        let check = half(&table, "T_ns", "const,p", &FitOptions::default()).expect("a fit").1;
        let repeat = check.repeat.expect("every point twice");
        assert!(repeat.n == 4 && (repeat.median_pct - 1.0).abs() < 1e-9, "{repeat:?}");
    }

    /// Costs of a machine that computes `compute` times and copies `copy` times as slowly as that
    /// of Netcope 2017.
    fn measured_on(compute: f64, copy: f64, seed: u64) -> Table {
        let mut rng = Rng::new(seed);
        let mut text = "p,h,T_us\n".to_owned();
        for p in [64.0, 256.0, 512.0, 1024.0, 1518.0] {
            for h in [0.0, 10.0, 20.0, 50.0] {
                let t = compute * (38.6 + 4.07 * h) + copy * 0.101 * p;
                text += &format!("{p},{h},{}\n", t * (1.0 + 0.01 * normal(&mut rng)) / 1000.0);
            }
        }
        Table::from_csv(&text).expect("a table")
    }

    fn machine(name: &str, score: f64, copy_bits_per_s: f64) -> Platform {
        let score_kind = ScoreKind::Own;
        Platform {
            name: name.to_owned(),
            score,
            score_kind,
            copy_bits_per_s,
            rate_pps: None,
            packet_bytes: None,
            wire: None,
        }
    }

    #[test]
    fn another_platform_lands_in_the_interval_unless_its_record_is_wrong() {
        let here =
            fit(&measured_on(1.0, 1.0, 1), "T_us", "const,p,h", &FitOptions::default()).expect("a fit");
        let there = measured_on(2.0, 0.5, 2);
        let from = machine("here", 30e3, 100e9);
        let verdict = |score: f64, copy: f64| {
            let transfer = Transfer {
                from: from.clone(),
                to: machine("there", score, copy),
                record_sd: 0.02,
                transfer_sd: 0.1,
            };
            elsewhere(&here, &there, &FitOptions::default(), &transfer).expect("two platforms")
        };
        let right = verdict(15e3, 200e9);
        assert_eq!((right.verdict, right.n), (CheckVerdict::Holds, 20), "{right:?}");
        assert!(right.median_pct < 3.0 && right.covered == 1.0, "{right:?}");
        // A record that says the machine is as fast as this one.
        let wrong = verdict(30e3, 100e9);
        assert!(wrong.verdict == CheckVerdict::Misses && wrong.covered < 0.5, "{wrong:?}");
    }

    #[test]
    fn a_table_without_the_columns_is_refused() {
        let table = Table::from_csv("p,T_ns\n1,2\n2,3.1\n3,4\n").expect("a table");
        let found = fit(&table, "T_ns", "const,p", &FitOptions::default()).expect("a fit");
        let other = Table::from_csv("q,T_ns\n1,2\n").expect("a table");
        let error = check(&found, &other, &FitOptions::default()).unwrap_err().to_string();
        assert!(error.starts_with("no column `p`"), "{error}");
    }

    #[test]
    fn columns_that_rise_together_are_halved_by_every_other_point() {
        let mut text = "p,h,T_ns\n".to_owned();
        for h in 0..8 {
            let p = 64 << h;
            let t = 38.6 + 0.101 * f64::from(p) + 4.07 * f64::from(h);
            text += &format!("{p},{h},{t}\n{p},{h},{}\n", 1.001 * t);
        }
        let table = Table::from_csv(&text).expect("a table");
        let [fitted, tested] = halves(&table, &["p", "h"]).expect("numbers");
        assert_eq!(fitted, [0, 1, 4, 5, 8, 9, 12, 13]);
        assert_eq!(tested, [2, 3, 6, 7, 10, 11, 14, 15]);
        let (found, check) = half(&table, "T_ns", "const,p,h", &FitOptions::default()).expect("a fit");
        assert_eq!((found.n, check.n, check.verdict), (8, 8, CheckVerdict::Holds), "{check:?}");
    }

    #[test]
    fn nothing_to_test_is_refused() {
        let table = Table::from_csv("p,T_ns\n64,5\n64,5.1\n64,5.2\n").expect("a table");
        let options = FitOptions::default();
        assert_eq!(half(&table, "T_ns", "p", &options).unwrap_err(), CheckError::Nothing);
        let found = fit(&table, "T_ns", "p", &options).expect("a fit");
        assert_eq!(check(&found, &table.keep(&[]), &options).unwrap_err(), CheckError::Nothing);
        let only = FitOptions { only: vec![("p".to_owned(), "65".to_owned())], ..options };
        let error = check(&found, &table, &only).unwrap_err().to_string();
        assert_eq!(error, "no row left where `p` equals `65`: correct the selection");
    }

    /// A processor of 60 ns + 0.02 ns per byte behind 40 Gbit/s, which limits frames of more than
    /// 311 bytes.
    fn behind_a_line() -> Table {
        let mut text = "frame_bytes,cores,mpps\n".to_owned();
        for (i, bytes) in
            [64, 96, 128, 160, 192, 224, 256, 288, 512, 768, 1024, 1280, 1518].into_iter().enumerate()
        {
            let ripple = 1.0 + 0.001 * f64::from(i as u32 % 3);
            let cost_ns = (60.0 + 0.02 * f64::from(bytes)) * ripple;
            let line_ns = 0.2 * f64::from(bytes + 20);
            text += &format!("{bytes},1,{}\n", 1e3 / cost_ns.max(line_ns));
        }
        Table::from_csv(&text).expect("a table")
    }

    #[test]
    fn what_the_wire_limits_is_in_neither_half_and_in_no_test() {
        let (table, options) = (behind_a_line(), FitOptions::default());
        let (y, terms) = ("cores/mpps", "const,frame_bytes");
        let (found, checked) = half(&table, y, terms, &options).expect("a fit");
        assert_eq!((found.n, checked.n, checked.capped), (4, 4, 5), "{checked:?}");
        assert!(checked.verdict == CheckVerdict::Holds && checked.max_pct < 1.0, "{checked:?}");
        assert!(
            found.warnings[0].contains("left out: 5 at a line rate of 40 Gbit/s"),
            "{:?}",
            found.warnings
        );
        assert_eq!(found.regimes.iter().map(|r| r.points).collect::<Vec<_>>(), [8, 5]);
        let whole = fit(&table, y, terms, &options).expect("a fit");
        let checked = check(&whole, &table, &options).expect("rows");
        assert_eq!((checked.n, checked.capped), (8, 5), "{checked:?}");
        let off = FitOptions { regimes: Regimes::Off, ..options };
        assert_eq!(check(&whole, &table, &off).expect("rows").n, 13);
        assert_eq!(half(&table, y, terms, &off).expect("a fit").1.capped, 0);
    }
}
