//! A model for predictions: terms, coefficients and their covariance. It comes from a fit, or from
//! published constants, which carry no uncertainty.

use crate::Estimate;
use crate::column_unit::cannot_be_negative;
use crate::fcs::{Fcs, FrameSize};
use crate::regime::is_frame;
use crate::terms::Terms;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// `y = Σ coefficient × term`, with the covariance of the coefficients and the scatter of single
/// points.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Model {
    /// The terms.
    pub terms: Terms,
    /// One coefficient per term.
    pub coefficients: Vec<f64>,
    /// Covariance of the coefficients.
    pub covariance: Vec<Vec<f64>>,
    /// Standard deviation of a point about the model, unit of y, or relative to y.
    pub residual_sd: f64,
    /// Whether `residual_sd` is relative to y.
    pub relative_residual: bool,
    /// Half-width of the intervals in standard deviations.
    pub width: f64,
    /// Seconds in one unit of y, when y is a time and its unit is known.
    pub seconds_per_unit: Option<f64>,
    /// Whether frame sizes count the FCS, if the table or the caller says so.
    pub fcs: Option<Fcs>,
    /// Range of each column over the fitted points; empty for published constants.
    pub ranges: BTreeMap<String, Range>,
}

/// The range of a column's values.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Range {
    /// Its smallest value.
    pub low: f64,
    /// Its largest value.
    pub high: f64,
}

/// Why a model gives no value.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A column of a term has no value.
    #[error("term `{term}` needs a value for each of its columns ({columns}): give them")]
    NoValue {
        /// The term.
        term: String,
        /// Its columns.
        columns: String,
    },
    /// A size, time, rate or count below zero.
    #[error("`{column}` = {value} is negative; a time, size, rate or count cannot be: correct it")]
    Negative {
        /// The column.
        column: String,
        /// Its value.
        value: f64,
    },
    /// y has no unit of time.
    #[error(
        "y is not a time of known unit: name the column like T_ns, fit cores/rate, or give --y-unit (for cycles also --clock)"
    )]
    NoTime,
    /// The model's cost is zero or negative there.
    #[error(
        "the model gives {cost} there, but a cost is above zero: the point lies outside the fitted range"
    )]
    NotPositive {
        /// The cost it gives.
        cost: f64,
    },
    /// Constants and terms differ in number, or a constant is not finite.
    #[error("{terms} terms need as many finite constants, got {constants}")]
    Constants {
        /// Terms.
        terms: usize,
        /// Constants.
        constants: usize,
    },
}

/// A prediction: of the mean, and of one further measurement.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Prediction {
    /// The mean of measurements at the point.
    pub mean: Estimate,
    /// One further measurement at the point.
    pub single: Estimate,
}

impl Model {
    /// Builds a model from published constants, one per term, taken as exact. y has
    /// `seconds_per_unit` seconds per unit.
    ///
    /// # Errors
    /// [`ModelError::Constants`] unless there is one finite constant per term.
    pub fn from_constants(
        terms: Terms,
        constants: &[f64],
        seconds_per_unit: f64,
    ) -> Result<Model, ModelError> {
        let k = terms.count();
        if k != constants.len() || constants.iter().any(|c| !c.is_finite()) {
            return Err(ModelError::Constants { terms: k, constants: constants.len() });
        }
        Ok(Model {
            terms,
            coefficients: constants.to_vec(),
            covariance: vec![vec![0.0; k]; k],
            residual_sd: 0.0,
            relative_residual: false,
            width: 0.0,
            seconds_per_unit: Some(seconds_per_unit),
            fcs: None,
            ranges: BTreeMap::new(),
        })
    }

    /// Converts a frame size as the model counts it.
    pub fn frame(&self, model_bytes: f64) -> FrameSize {
        FrameSize::of_model(model_bytes, self.fcs)
    }

    /// Returns a warning for each column whose value lies outside the fitted range.
    pub fn extrapolations(&self, value_of: impl Fn(&str) -> Option<f64>) -> Vec<String> {
        let outside = |(name, range): (&String, &Range)| {
            let value = value_of(name).filter(|value| !(range.low..=range.high).contains(value))?;
            Some(format!(
                "extrapolation: {name} = {value} lies outside {} … {}, where the model was fitted; the interval assumes that the terms hold there too",
                range.low, range.high
            ))
        };
        self.ranges.iter().filter_map(outside).collect()
    }

    /// Returns the value of each term at a point.
    ///
    /// # Errors
    /// [`ModelError::NoValue`] when the point lacks a column, [`ModelError::Negative`] for a time,
    /// size, rate or count below 0.
    pub fn terms_at(&self, value_of: impl Fn(&str) -> Option<f64>) -> Result<Vec<f64>, ModelError> {
        for column in self.terms.columns() {
            let negative = value_of(column).filter(|value| *value < 0.0);
            if let Some(value) = negative.filter(|_| cannot_be_negative(column) || is_frame(column)) {
                return Err(ModelError::Negative { column: column.to_owned(), value });
            }
        }
        let at = |term: &crate::terms::Term| {
            term.value(&value_of).ok_or_else(|| ModelError::NoValue {
                term: term.text().to_owned(),
                columns: term.columns().collect::<Vec<_>>().join(", "),
            })
        };
        self.terms.iter().map(at).collect()
    }

    /// Returns Σ coefficient × x.
    pub(crate) fn value(&self, x: &[f64]) -> f64 {
        self.coefficients.iter().zip(x).map(|(b, x)| b * x).sum()
    }

    /// Returns the variance of [`Model::value`] due to the coefficients: xᵀ Σ x.
    pub(crate) fn variance(&self, x: &[f64]) -> f64 {
        let row = |i: usize| self.covariance[i].iter().zip(x).map(|(c, x)| c * x).sum::<f64>();
        x.iter().enumerate().map(|(i, xi)| xi * row(i)).sum::<f64>().max(0.0)
    }

    /// Returns the variance of a single point about the model, where the model gives `value`.
    pub(crate) fn scatter(&self, value: f64) -> f64 {
        let sd = if self.relative_residual { self.residual_sd * value } else { self.residual_sd };
        sd * sd
    }

    /// Predicts y at the point where `value_of` gives the value of every column, in the unit of y,
    /// on the fitted platform.
    ///
    /// # Errors
    /// [`ModelError::NoValue`] when the point lacks a column.
    pub fn predict(&self, value_of: impl Fn(&str) -> Option<f64>) -> Result<Prediction, ModelError> {
        let x = self.terms_at(value_of)?;
        let value = self.value(&x);
        let variance = self.variance(&x);
        Ok(Prediction {
            mean: Estimate::around(value, self.width * variance.sqrt()),
            single: Estimate::around(value, self.width * (variance + self.scatter(value)).sqrt()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_constants_predict_exactly() {
        let terms: Terms = "const,p,h".parse().expect("terms");
        let model = Model::from_constants(terms, &[38.6, 0.101, 4.07], 1e-9).expect("three constants");
        let at = |name: &str| [("p", 64.0), ("h", 10.0)].iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
        let mean = model.predict(at).expect("both columns").mean;
        assert!((mean.value - 85.764).abs() < 1e-9 && mean.low == mean.high, "{mean:?}");
        let error = model.predict(|_| None).unwrap_err();
        assert_eq!(error.to_string(), "term `p` needs a value for each of its columns (p): give them");
    }
}
