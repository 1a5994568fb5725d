//! A model against measurements it has not seen: the other half of a grid, another run, another paper.

use crate::fit::{Fit, FitError, median};
use crate::latency::quantile_of;
use crate::model::ModelError;
use crate::table::Table;
use crate::terms::Term;
use serde::Serialize;
use thiserror::Error;

/// How far the predictions lie from the measurements.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Check {
    /// Points compared.
    pub n: usize,
    /// Median |error|, % of the measured value.
    pub median_pct: f64,
    /// 95 % of the points err by at most this, %.
    pub p95_pct: f64,
    /// The largest |error|, %.
    pub max_pct: f64,
    /// Share of points (0 … 1) inside their own prediction interval; the fit's level is expected.
    pub covered: f64,
}

/// Why a model cannot be checked.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum CheckError {
    /// The table does not suit the fit.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// The model cannot answer.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// Compares `fit` with the rows of `table`, which must have the columns the fit used.
///
/// # Errors
/// [`CheckError`] when the table lacks a column or holds what is no measurement.
pub fn check(fit: &Fit, table: &Table) -> Result<Check, CheckError> {
    let model = fit.model();
    let y: Term = fit.y.parse().map_err(FitError::from)?;
    let used: Vec<&str> =
        fit.terms.columns().into_iter().chain(y.factors().iter().map(|(name, _)| name.as_str())).collect();
    let (table, _) = table.without_words(&used).map_err(FitError::from)?;
    let measured = y.column(&table).map_err(FitError::from)?;
    let columns: Vec<(&str, Vec<f64>)> = fit
        .terms
        .columns()
        .into_iter()
        .map(|name| Ok((name, table.numbers(name).map_err(FitError::from)?)))
        .collect::<Result<_, CheckError>>()?;
    let mut errors = Vec::with_capacity(measured.len());
    let mut covered = 0;
    for (row, measured) in measured.iter().enumerate() {
        if *measured <= 0.0 {
            return Err(FitError::NotPositive { line: table.line(row), value: *measured }.into());
        }
        let at = |name: &str| columns.iter().find(|(n, _)| *n == name).map(|(_, v)| v[row]);
        let predicted = model.predict(at)?;
        errors.push(100.0 * (predicted.mean.value / measured - 1.0).abs());
        covered += usize::from(predicted.single.covers(*measured));
    }
    errors.sort_by(f64::total_cmp);
    Ok(Check {
        n: errors.len(),
        median_pct: median(errors.iter().copied()),
        p95_pct: quantile_of(&errors, 0.95),
        max_pct: errors[errors.len() - 1],
        covered: covered as f64 / errors.len() as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::{FitOptions, fit};
    use crate::testing::normal;
    use fastpath_units::Rng;

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
        let half = |odd: usize| (0..table.len()).filter(|i| i % 2 == odd).collect::<Vec<_>>();
        let found = fit(&table.keep(&half(0)), "T_ns", "const,p,h", &FitOptions::default()).expect("a fit");
        let check = check(&found, &table.keep(&half(1))).expect("the same columns");
        assert!(check.n == 28 && check.median_pct <= 1.0 && check.p95_pct <= 5.0, "{check:?}");
        assert!(check.covered >= 0.8, "{check:?}");
    }

    #[test]
    fn a_table_without_the_columns_is_refused() {
        let table = Table::from_csv("p,T_ns\n1,2\n2,3.1\n3,4\n").expect("a table");
        let found = fit(&table, "T_ns", "const,p", &FitOptions::default()).expect("a fit");
        let other = Table::from_csv("q,T_ns\n1,2\n").expect("a table");
        assert!(check(&found, &other).unwrap_err().to_string().starts_with("no column `p`"));
    }
}
