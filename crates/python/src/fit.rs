//! Fits of cost models to measurements.

use crate::failure::{argument, without_lock};
use fastpath::model::Table;
use fastpath::model::fit::FitOptions;
use pyo3::prelude::*;

/// Fits the terms to a table (CSV with named columns). Returns the fit as JSON.
#[pyfunction]
pub(crate) fn fit(
    py: Python<'_>,
    table: &str,
    y: &str,
    terms: &str,
    level: f64,
    only: Vec<(String, String)>,
) -> PyResult<String> {
    let fitted = without_lock(py, |_| {
        let table = Table::from_csv(table).map_err(argument)?;
        let options = FitOptions { level, only, ..FitOptions::default() };
        fastpath::model::fit::fit(&table, y, terms, &options).map_err(argument)
    })?;
    serde_json::to_string(&fitted).map_err(argument)
}
