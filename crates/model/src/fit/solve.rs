//! Solves a prepared table for given terms: least squares or Huber's estimator, then intervals,
//! residuals, leave-one-out errors, and warnings.

use super::error::FitError;
use super::options::{FitOptions, Method, Quantile, Weighting};
use super::prepared::Prepared;
use super::result::{Fit, Point, Residuals};
use super::{robust, y_unit};
use crate::Estimate;
use crate::dist::{normal_quantile, t_quantile};
use crate::linear::{self, Dependent, Solution};
use crate::model::Range;
use crate::terms::{Term, Terms};
use fastpath_units::stats::median;
use std::collections::BTreeMap;

/// Condition number of the scaled columns above which collinearity is strong (Belsley 1991).
const CONDITION_WARN: f64 = 30.0;
/// Variance inflation above which collinearity dominates a coefficient's interval.
const VIF_WARN: f64 = 10.0;
/// A point of this leverage fixes a coefficient alone and cannot be left out.
const LEVERAGE_ONE: f64 = 1.0 - 1e-9;
/// Below this many degrees of freedom the residual variance is hardly known.
const FREEDOM_WARN: usize = 3;

/// Fits the rows of `prepared` that the processor limits by `terms`. Where those do not determine
/// the terms, fits all rows or refuses, as the options say.
pub(super) fn solve_uncapped(
    prepared: &Prepared,
    terms: &Terms,
    options: &FitOptions,
) -> Result<Fit, FitError> {
    let (mut found, caps) =
        prepared.uncapped(options.regimes, |points| Problem { prepared: points, terms, options }.solve())?;
    found.annotate(&prepared.notes, caps);
    Ok(found)
}

/// One least-squares problem.
struct Problem<'a> {
    prepared: &'a Prepared,
    terms: &'a Terms,
    options: &'a FitOptions,
}

/// The numbers of the rows in one canonical order, so that the order of the text cannot change a
/// bit of the result.
struct Data {
    y: Vec<f64>,
    columns: Vec<Vec<f64>>,
    weights: Vec<f64>,
    lines: Vec<u64>,
}

impl Problem<'_> {
    fn solve(&self) -> Result<Fit, FitError> {
        let data = self.read()?;
        let (n, k) = (data.y.len(), data.columns.len());
        if n <= k {
            return Err(FitError::TooFew { points: n, terms: k, needed: k + 1 });
        }
        let solve = |weights: &[f64]| {
            linear::solve(&data.columns, &data.y, weights).map_err(|d| self.dependent(&d, n))
        };
        let (solution, weights, variance) = match self.options.method {
            Method::LeastSquares => {
                let solution = solve(&data.weights)?;
                let variance = variance(&data, &solution);
                (solution, data.weights.clone(), variance)
            }
            Method::Huber => robust::huber(&data.columns, &data.y, &data.weights, &solve)?,
        };
        let covariance: Vec<Vec<f64>> =
            solution.covariance.iter().map(|row| row.iter().map(|c| c * variance).collect()).collect();
        let finite = |v: &[f64]| v.iter().all(|x| x.is_finite());
        let are_finite = finite(&solution.coefficients) && covariance.iter().all(|row| finite(row));
        if !are_finite || !variance.is_finite() {
            return Err(FitError::Overflow { y: self.prepared.y.text().to_owned() });
        }
        let width = self.width(n - k);
        let coefficients = self.by_term(|j| {
            Some(Estimate::around(solution.coefficients[j], width * covariance[j][j].max(0.0).sqrt()))
        });
        let points = points(&data, &solution, &weights);
        let (r2, r2_adjusted) = self.r2(&points);
        let vif = self.by_term(|j| self.inflation(j, &data, &solution));
        Ok(Fit {
            coefficients,
            r2,
            r2_adjusted,
            residuals: Residuals::of(&points),
            loo_median_pct: median(points.iter().filter_map(|p| p.loo_pct.map(f64::abs))),
            warnings: self.judge(&solution, &vif, &points, n - k),
            y: self.prepared.y.text().to_owned(),
            terms: self.terms.clone(),
            method: self.options.method,
            weighting: self.options.weighting.clone(),
            quantile: self.options.quantile,
            level: self.options.level,
            selection_factor: 1.0,
            n,
            degrees_of_freedom: n - k,
            residual_sd: variance.sqrt(),
            covariance,
            condition: solution.condition,
            vif,
            y_unit: self.options.y_unit,
            seconds_per_unit: y_unit::seconds(&self.prepared.y, self.options.y_unit, self.options.clock_hz),
            fcs: self.prepared.fcs,
            ranges: self.ranges()?,
            regimes: Vec::new(),
            points,
        })
    }

    /// Returns the half width of an interval, in standard deviations.
    fn width(&self, degrees_of_freedom: usize) -> f64 {
        let probability = 0.5 + self.options.level / 2.0;
        match self.options.quantile {
            Quantile::StudentT => t_quantile(probability, degrees_of_freedom as f64),
            Quantile::Normal => normal_quantile(probability),
        }
    }

    fn read(&self) -> Result<Data, FitError> {
        let table = &self.prepared.table;
        let y = self.prepared.y.column(table)?;
        if let Some(row) = y.iter().position(|y| *y <= 0.0) {
            return Err(FitError::NotPositive { line: table.line(row), value: y[row] });
        }
        let columns = self.terms.iter().map(|t| t.column(table)).collect::<Result<Vec<_>, _>>()?;
        let weights = match &self.options.weighting {
            Weighting::Equal => vec![1.0; y.len()],
            Weighting::Relative => y.iter().map(|y| 1.0 / (y * y)).collect(),
            Weighting::Column(name) => table.numbers(name)?,
        };
        if let Some(row) = weights.iter().position(|w| *w <= 0.0) {
            return Err(FitError::BadWeight { line: table.line(row), value: weights[row] });
        }
        let mut order: Vec<usize> = (0..y.len()).collect();
        order.sort_by(|&a, &b| {
            let key = |i: usize| columns.iter().map(move |c| c[i]).chain([y[i], weights[i]]);
            key(a).zip(key(b)).map(|(x, y)| x.total_cmp(&y)).find(|o| o.is_ne()).unwrap_or(a.cmp(&b))
        });
        let sorted = |v: &[f64]| order.iter().map(|&i| v[i]).collect::<Vec<f64>>();
        Ok(Data {
            y: sorted(&y),
            columns: columns.iter().map(|c| sorted(c)).collect(),
            weights: sorted(&weights),
            lines: order.iter().map(|&i| table.line(i)).collect(),
        })
    }

    fn ranges(&self) -> Result<BTreeMap<String, Range>, FitError> {
        let range = |name: &str| {
            let values = self.prepared.table.numbers(name)?;
            let (low, high) =
                values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(*x), b.max(*x)));
            Ok((name.to_owned(), Range { low, high }))
        };
        self.terms.columns().into_iter().map(range).collect()
    }

    fn dependent(&self, found: &Dependent, points: usize) -> FitError {
        let text = |j: usize| self.terms.iter().nth(j).map_or("", Term::text).to_owned();
        let term = text(found.column);
        if found.on.is_empty() {
            return FitError::Zero { term };
        }
        let on = found.on.iter().map(|&j| format!("`{}`", text(j))).collect::<Vec<_>>().join(" + ");
        FitError::Collinear { term, on, points }
    }

    fn by_term<T>(&self, value: impl Fn(usize) -> Option<T>) -> BTreeMap<String, T> {
        self.terms.iter().enumerate().filter_map(|(j, t)| Some((t.text().to_owned(), value(j)?))).collect()
    }

    fn has_const(&self) -> bool {
        self.terms.iter().any(Term::is_const)
    }

    fn r2(&self, points: &[Point]) -> (f64, f64) {
        let sum = |part: &dyn Fn(&Point) -> f64| points.iter().map(|p| p.weight * part(p)).sum::<f64>();
        let mean = if self.has_const() { sum(&|p| p.measured) / sum(&|_| 1.0) } else { 0.0 };
        let total = sum(&|p| (p.measured - mean).powi(2));
        let left = sum(&|p| (p.measured - p.fitted).powi(2));
        if total <= f64::EPSILON * sum(&|p| p.measured.powi(2)) {
            // All y are equal: there is no variance to explain.
            return (1.0, 1.0);
        }
        let (n, k) = (points.len() as f64, self.terms.count() as f64);
        let free = if self.has_const() { n - 1.0 } else { n };
        (1.0 - left / total, 1.0 - left / total * free / (n - k))
    }

    /// Returns by how much the other terms inflate the variance of coefficient `j`; none for the
    /// constant. It uses the given weights, as the covariance does, not those of a robust fit.
    fn inflation(&self, j: usize, data: &Data, solution: &Solution) -> Option<f64> {
        let weights = &data.weights;
        if self.terms.iter().nth(j)?.is_const() {
            return None;
        }
        let total: f64 = weights.iter().sum();
        let x = &data.columns[j];
        let mean = if self.has_const() {
            x.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>() / total
        } else {
            0.0
        };
        let spread: f64 = x.iter().zip(weights).map(|(x, w)| w * (x - mean).powi(2)).sum();
        Some(solution.covariance[j][j] * spread)
    }

    /// Lists reasons to doubt the result.
    fn judge(
        &self,
        solution: &Solution,
        vif: &BTreeMap<String, f64>,
        points: &[Point],
        freedom: usize,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        let inflated: Vec<String> =
            vif.iter().filter(|(_, v)| **v > VIF_WARN).map(|(t, v)| format!("`{t}` ({v:.0})")).collect();
        if !inflated.is_empty() {
            warnings.push(format!(
                "collinear: the variance of {} is inflated more than tenfold by the other terms; vary them independently",
                inflated.join(", ")
            ));
        } else if solution.condition > CONDITION_WARN {
            warnings.push(format!(
                "collinear: condition number {:.0} of the scaled terms exceeds 30; the constant is poorly separated",
                solution.condition
            ));
        }
        if freedom < FREEDOM_WARN {
            warnings.push(format!(
                "{} points for {} terms: the error bars rest on {freedom} degrees of freedom",
                points.len(),
                self.terms.count()
            ));
        }
        let alone = points.iter().filter(|p| p.loo_pct.is_none()).count();
        if alone > 0 {
            warnings.push(format!(
                "{alone} points each fix a coefficient alone; no leave-one-out error for them"
            ));
        }
        if y_unit::is_rate(&self.prepared.y) {
            warnings.push(
                "y is a rate; costs add up, rates do not: fit 1/rate, cores/rate, or bytes/rate for bit rates"
                    .to_owned(),
            );
        }
        if !self.has_const() {
            warnings.push(
                "no constant term: R² is taken about zero and is not comparable with others".to_owned(),
            );
        }
        let down = points.iter().filter(|p| p.weight < 0.5).count();
        if self.options.method == Method::Huber && down > 0 && self.options.weighting == Weighting::Equal {
            warnings.push(format!("{down} outlying points count less than half"));
        }
        warnings
    }
}

fn variance(data: &Data, solution: &Solution) -> f64 {
    let fitted = linear::apply(&data.columns, &solution.coefficients, data.y.len());
    let left: f64 =
        data.y.iter().zip(&fitted).zip(&data.weights).map(|((y, f), w)| w * (y - f).powi(2)).sum();
    left / (data.y.len() - data.columns.len()) as f64
}

fn points(data: &Data, solution: &Solution, weights: &[f64]) -> Vec<Point> {
    let fitted = linear::apply(&data.columns, &solution.coefficients, data.y.len());
    let mut points: Vec<Point> = (0..data.y.len())
        .map(|i| {
            let residual_pct = 100.0 * (data.y[i] - fitted[i]) / data.y[i];
            let leverage = solution.leverage[i];
            Point {
                line: data.lines[i],
                measured: data.y[i],
                fitted: fitted[i],
                residual_pct,
                loo_pct: (leverage < LEVERAGE_ONE).then(|| residual_pct / (1.0 - leverage)),
                weight: weights[i],
            }
        })
        .collect();
    points.sort_by_key(|p| p.line);
    points
}
