//! The unit of y: the one given, or the one its columns' names carry.

use super::error::FitError;
use crate::column_unit::{ColumnUnit, Dimension};
use crate::regime;
use crate::table::Table;
use crate::terms::{Factor, Shape, Term};

/// Refuses a given unit of y that contradicts its columns.
pub(super) fn check(y: &Term, given: Option<ColumnUnit>, table: &Table) -> Result<(), FitError> {
    let Some(given) = given else { return Ok(()) };
    let carried = match y.factors() {
        [Factor { column, shape: Shape::Plain, power: 1 }] => table.unit(column)?,
        _ => seconds_by_name(y).map(|scale| ColumnUnit { dimension: Dimension::Time, scale }),
    };
    match carried {
        Some(carried) if !carried.agrees(given) => Err(FitError::OtherUnit { y: y.text().to_owned() }),
        _ => Ok(()),
    }
}

/// Returns the seconds in one unit of y, by the unit given or by the names of its columns. Cycles
/// are converted by the clock, if it is given.
pub(super) fn seconds(y: &Term, given: Option<ColumnUnit>, clock_hz: Option<f64>) -> Option<f64> {
    let cycles = match y.factors() {
        [Factor { column, shape: Shape::Plain, power: 1 }] => ColumnUnit::of_column(column),
        _ => None,
    };
    match given.or(cycles.filter(|unit| unit.dimension == Dimension::Cycles)) {
        Some(unit) => unit.seconds(clock_hz),
        None => seconds_by_name(y),
    }
}

/// Returns the seconds in one unit of y by names alone. y must be a time, one over a rate, or bytes
/// over a bit rate; all its other columns must be counts without a unit.
fn seconds_by_name(y: &Term) -> Option<f64> {
    let (mut seconds, mut times, mut bytes, mut bit_rates) = (1.0, 0, 0, 0);
    for Factor { column, shape, power } in y.factors() {
        let unit = ColumnUnit::of_column(column);
        let scale = unit.map_or(1.0, |unit| unit.scale);
        match unit.map(|unit| unit.dimension) {
            _ if *shape != Shape::Plain => return None,
            None if regime::is_frame(column) => bytes += power,
            None => {}
            Some(Dimension::Time) => times += power,
            Some(Dimension::Rate) => times -= power,
            Some(Dimension::Size) => bytes += power,
            Some(Dimension::BitRate) => bit_rates += power,
            Some(_) => return None,
        }
        seconds *= scale.powi(*power);
    }
    match (times, bytes, bit_rates) {
        (1, 0, 0) => Some(seconds),
        (0, 1, -1) => Some(8.0 * seconds),
        _ => None,
    }
}

/// Returns whether y is a packet rate or a bit rate.
pub(super) fn is_rate(y: &Term) -> bool {
    let dimension = |factor: &Factor| ColumnUnit::of_column(&factor.column).map(|unit| unit.dimension);
    y.factors().iter().any(|factor| {
        factor.power == 1 && matches!(dimension(factor), Some(Dimension::Rate | Dimension::BitRate))
    })
}
