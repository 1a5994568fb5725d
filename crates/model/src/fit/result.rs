//! What a fit returns: coefficients with intervals, residuals, and the points one by one.

use super::error::FitError;
use super::options::{Method, Quantile, Weighting};
use super::prepared::Caps;
use crate::Estimate;
use crate::column_unit::{ColumnUnit, Dimension};
use crate::dist::{normal_quantile, t_quantile};
use crate::fcs::Fcs;
use crate::model::{Model, Range};
use crate::regime::{Limit, Regime};
use crate::terms::Terms;
use fastpath_units::stats::median;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How the warning about a poor fit begins.
const POOR: &str = "poor fit";
/// A fit is poor if its median residual is above this, %.
const POOR_MEDIAN_PCT: f64 = 50.0;
/// A fit is poor if it explains less than half of the variance and a residual is above this, %.
const POOR_MAX_PCT: f64 = 100.0;

/// How the warning about a law that is not seen begins.
const NO_LAW: &str = "no law";
/// Points predict each other within this median error, %, where a law of these terms holds.
const LAW_MAX_PCT: f64 = 5.0;

/// A fitted model and everything needed to judge it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Fit {
    /// The coefficient of each term with its interval, by the term as written. Unit: y's per unit
    /// of the term.
    pub coefficients: BTreeMap<String, Estimate>,
    /// Share of the (weighted) variance that the terms explain; taken about zero instead of the
    /// mean when there is no `const`.
    pub r2: f64,
    /// R², corrected for the number of terms.
    pub r2_adjusted: f64,
    /// How far the points lie from the model.
    pub residuals: Residuals,
    /// Median over points of |error| when a fit without the point predicts it, % of y.
    pub loo_median_pct: f64,
    /// Reasons to doubt the result.
    pub warnings: Vec<String>,
    /// The column or product that was fitted.
    pub y: String,
    /// The terms, in the order of `covariance`.
    pub terms: Terms,
    /// The estimator of the coefficients.
    pub method: Method,
    /// The weight of each point.
    pub weighting: Weighting,
    /// Which quantile widened the intervals.
    pub quantile: Quantile,
    /// Confidence level of the intervals.
    pub level: f64,
    /// Factor by which the intervals are wider because the points chose the terms; 1 for given
    /// terms.
    #[serde(default = "one")]
    pub selection_factor: f64,
    /// Points fitted.
    pub n: usize,
    /// Points minus terms.
    pub degrees_of_freedom: usize,
    /// Residual standard deviation, unit of y (relative to y when weighted so).
    pub residual_sd: f64,
    /// Covariance of the coefficients.
    pub covariance: Vec<Vec<f64>>,
    /// Condition number of the columns scaled to length 1.
    pub condition: f64,
    /// Variance inflation by term, constant excluded.
    pub vif: BTreeMap<String, f64>,
    /// The unit of y, if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_unit: Option<ColumnUnit>,
    /// Seconds in one unit of y, when y is a time (or cores per rate) and its unit is known.
    pub seconds_per_unit: Option<f64>,
    /// Whether frame sizes count the FCS, if the table or the caller says so.
    #[serde(default)]
    pub fcs: Option<Fcs>,
    /// Range of each column of the terms over the points.
    #[serde(default)]
    pub ranges: BTreeMap<String, Range>,
    /// The regimes, the processor's first; empty when they were not looked for.
    pub regimes: Vec<Regime>,
    /// The points, in the order of the text.
    pub points: Vec<Point>,
}

/// How far the points lie from the model, relative to the measured value.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Residuals {
    /// Share of points (0 … 1) within 0.5 %.
    pub within_0_5_pct: f64,
    /// Share within 1 %.
    pub within_1_pct: f64,
    /// Share within 3 %.
    pub within_3_pct: f64,
    /// The largest residual, in %.
    pub max_pct: f64,
}

/// One fitted point.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Point {
    /// Its line in the text.
    pub line: u64,
    /// Measured y.
    pub measured: f64,
    /// The model's y.
    pub fitted: f64,
    /// (measured − fitted)/measured in %.
    pub residual_pct: f64,
    /// The residual against a fit without this point, in %; none when the point alone fixes a
    /// coefficient.
    pub loo_pct: Option<f64>,
    /// Weight of the point: 1 unless the fit is weighted or robust.
    pub weight: f64,
}

fn one() -> f64 {
    1.0
}

impl Residuals {
    pub(super) fn of(points: &[Point]) -> Residuals {
        let within = |pct: f64| {
            points.iter().filter(|p| p.residual_pct.abs() <= pct).count() as f64 / points.len() as f64
        };
        Residuals {
            within_0_5_pct: within(0.5),
            within_1_pct: within(1.0),
            within_3_pct: within(3.0),
            max_pct: points.iter().map(|p| p.residual_pct.abs()).fold(0.0, f64::max),
        }
    }
}

impl Fit {
    /// Returns the fit with the unit of y set, for a saved fit whose column carries none. Cycles
    /// become a time by the clock.
    ///
    /// # Errors
    /// [`FitError::OtherUnit`] if the fit has another unit.
    pub fn with_unit(mut self, unit: ColumnUnit, clock_hz: Option<f64>) -> Result<Fit, FitError> {
        let time = self.seconds_per_unit.map(|scale| ColumnUnit { dimension: Dimension::Time, scale });
        let named = ColumnUnit::of_column(&self.y);
        let own = named.filter(|unit| unit.dimension == Dimension::Cycles).or(time).or(named);
        if own.is_some_and(|own| !own.agrees(unit)) {
            return Err(FitError::OtherUnit { y: self.y });
        }
        self.seconds_per_unit = unit.seconds(clock_hz);
        Ok(self)
    }

    /// Returns the fit with its cycles converted to time, if its y is in cycles.
    #[must_use]
    pub fn with_clock(mut self, clock_hz: f64) -> Fit {
        let unit = self
            .y_unit
            .or_else(|| ColumnUnit::of_column(&self.y))
            .filter(|unit| unit.dimension == Dimension::Cycles);
        if let Some(unit) = unit {
            self.seconds_per_unit = unit.seconds(Some(clock_hz));
        }
        self
    }

    /// Adds the notes of the table and its caps before the fit's own warnings.
    pub(crate) fn annotate(&mut self, notes: &[String], caps: Caps) {
        self.warnings.splice(0..0, notes.iter().cloned().chain(caps.note));
        self.regimes = caps.regimes;
        self.warnings.retain(|warning| !warning.starts_with(POOR) && !warning.starts_with(NO_LAW));
        if self.is_poor() {
            let Residuals { max_pct, .. } = self.residuals;
            let warning = format!(
                "{POOR}: the terms explain {:.0} % of the variance and the largest residual is {max_pct:.0} %; do not use the coefficients",
                100.0 * self.r2.clamp(0.0, 1.0)
            );
            self.warnings.insert(0, warning);
        } else if self.sees_no_law() {
            let warning = format!(
                "{NO_LAW}: half of the points, left out one by one, are predicted with an error above {:.0} %; more columns or fewer points may show a law",
                self.loo_median_pct
            );
            self.warnings.insert(0, warning);
        }
    }

    /// Returns whether the other points predict a point badly: with a median error above
    /// 5 %.
    pub fn sees_no_law(&self) -> bool {
        self.loo_median_pct > LAW_MAX_PCT
    }

    /// Returns whether the terms do not explain y: half of the points or more are off by over 50 %,
    /// or most of the variance is unexplained and a point is off by over 100 %.
    pub fn is_poor(&self) -> bool {
        let off = median(self.points.iter().map(|point| point.residual_pct.abs()));
        off > POOR_MEDIAN_PCT || (self.r2 < 0.5 && self.residuals.max_pct > POOR_MAX_PCT)
    }

    /// Widens all intervals by `factor`, because the points chose the terms.
    pub(super) fn widen(&mut self, factor: f64) {
        self.selection_factor *= factor;
        for estimate in self.coefficients.values_mut() {
            *estimate = Estimate::around(estimate.value, factor * (estimate.high - estimate.value));
        }
    }

    /// Returns whether capped points were looked for and left out.
    pub(crate) fn is_uncapped(&self) -> bool {
        self.regimes.iter().any(|regime| regime.limit == Limit::Cpu && self.n <= regime.points)
    }

    /// Returns the model alone, for predictions.
    pub fn model(&self) -> Model {
        Model {
            terms: self.terms.clone(),
            coefficients: self.terms.iter().map(|t| self.coefficients[t.text()].value).collect(),
            covariance: self.covariance.clone(),
            residual_sd: self.residual_sd,
            relative_residual: self.weighting == Weighting::Relative,
            width: self.selection_factor
                * match self.quantile {
                    Quantile::StudentT => t_quantile(0.5 + self.level / 2.0, self.degrees_of_freedom as f64),
                    Quantile::Normal => normal_quantile(0.5 + self.level / 2.0),
                },
            seconds_per_unit: self.seconds_per_unit,
            fcs: self.fcs,
            ranges: self.ranges.clone(),
        }
    }
}
