//! How to fit: the choices that a caller of [`super::fit`] has.

use crate::column_unit::ColumnUnit;
use crate::regime::CapHints;
use serde::{Deserialize, Serialize};

/// The estimator of the coefficients.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Least squares.
    #[default]
    LeastSquares,
    /// Huber's M-estimator: points further than 1.345 robust standard deviations count less.
    Huber,
}

/// The weight of each point.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weighting {
    /// All points alike: absolute errors are minimised.
    #[default]
    Equal,
    /// By 1/y²: relative errors are minimised. For costs that span decades.
    Relative,
    /// By a column of positive weights (1/variance).
    Column(String),
}

impl Weighting {
    /// Returns the weighting named `equal` or `relative`, or that by the column `name`. Without a
    /// name it is equal, or relative for terms that are chosen (`auto:`).
    pub fn named(name: Option<&str>, terms: &str) -> Weighting {
        match name {
            None if terms.trim_start().starts_with("auto:") => Weighting::Relative,
            None | Some("equal") => Weighting::Equal,
            Some("relative") => Weighting::Relative,
            Some(column) => Weighting::Column(column.to_owned()),
        }
    }
}

/// Which quantile widens the intervals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantile {
    /// Student's t, right for few points.
    #[default]
    StudentT,
    /// The normal distribution's, as the LINC journal 2014 uses it. Too narrow for few points.
    Normal,
}

/// What to do with points that a line rate or a packet-rate cap limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Regimes {
    /// Leave them out if enough points remain to fit the terms; otherwise keep them and warn.
    #[default]
    Auto,
    /// Leave them out, or refuse to fit.
    Split,
    /// Do not look for them.
    Off,
}

/// Options of [`super::fit`]; the default is ordinary least squares with 95 % Student intervals.
#[derive(Clone, PartialEq, Debug)]
pub struct FitOptions {
    /// The estimator of the coefficients.
    pub method: Method,
    /// The weight of each point.
    pub weighting: Weighting,
    /// Which quantile widens the intervals.
    pub quantile: Quantile,
    /// Confidence level of every interval, between 0 and 1.
    pub level: f64,
    /// What to do with points that a line rate or a packet-rate cap limits.
    pub regimes: Regimes,
    /// Fits only rows where each column equals its text (`("forwarding", "ip4")`). Regimes are
    /// still looked for in the whole table, because the other rows show where the caps are.
    pub only: Vec<(String, String)>,
    /// Which columns identify the regimes.
    pub hints: CapHints,
    /// The unit of y, where the column's name carries none.
    pub y_unit: Option<ColumnUnit>,
    /// Clock of the processor in Hz, which converts cycles to time.
    pub clock_hz: Option<f64>,
}

impl Default for FitOptions {
    fn default() -> FitOptions {
        FitOptions {
            method: Method::default(),
            weighting: Weighting::default(),
            quantile: Quantile::default(),
            level: 0.95,
            regimes: Regimes::default(),
            only: Vec::new(),
            hints: CapHints::default(),
            y_unit: None,
            clock_hz: None,
        }
    }
}
