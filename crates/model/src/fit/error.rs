//! Why there is no fit.

use crate::fcs::{FcsError, FcsOrTable};
use crate::table::TableError;
use crate::terms::TermError;
use thiserror::Error;

/// Why there is no fit.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum FitError {
    /// The table is wrong.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The table counts frame sizes in two ways.
    #[error(transparent)]
    Fcs(#[from] FcsError),
    /// A term is wrong.
    #[error(transparent)]
    Term(#[from] TermError),
    /// The unit given for y is not the unit that its columns carry.
    #[error(
        "y = `{y}` has another unit than the one given (--y-unit): omit that option, or correct the table"
    )]
    OtherUnit {
        /// The column that is fitted.
        y: String,
    },
    /// No row matches the selection.
    #[error("no row left where `{column}` equals `{text}`: correct the selection")]
    NoRow {
        /// The column.
        column: String,
        /// The text it must equal.
        text: String,
    },
    /// y is zero or negative.
    #[error("line {line}: y = {value}, but a cost is above zero: correct or remove the row")]
    NotPositive {
        /// Line of the text.
        line: u64,
        /// y there.
        value: f64,
    },
    /// A weight is zero or negative.
    #[error("line {line}: weight {value} is not above zero: correct or remove the row")]
    BadWeight {
        /// Line of the text.
        line: u64,
        /// The weight.
        value: f64,
    },
    /// Fewer points than terms + 1.
    #[error(
        "{points} points are too few to fit {terms} terms with an error bar: measure {needed} or more, or omit terms"
    )]
    TooFew {
        /// Number of points.
        points: usize,
        /// Number of terms.
        terms: usize,
        /// Points needed.
        needed: usize,
    },
    /// A term is a combination of other terms in these points.
    #[error(
        "term `{term}` cannot be separated from {on} in these {points} points: vary it on its own, or omit it"
    )]
    Collinear {
        /// The term.
        term: String,
        /// The terms it is a combination of.
        on: String,
        /// Number of points.
        points: usize,
    },
    /// A term is zero in every point.
    #[error("term `{term}` is 0 in every point: measure with another value, or omit it")]
    Zero {
        /// The term.
        term: String,
    },
    /// The points that the processor limits do not determine the terms on their own.
    #[error(
        "of {total} points only {cpu} are limited by the processor, the others by a line rate or a packet-rate cap; without those: {reason}"
    )]
    Capped {
        /// Number of all points.
        total: usize,
        /// Number of points that the processor limits.
        cpu: usize,
        /// Why those do not suffice.
        reason: Box<FitError>,
    },
    /// The arithmetic overflows.
    #[error("the values of `{y}` and its terms are too large or too small to compute with: use other units")]
    Overflow {
        /// The column to fit.
        y: String,
    },
    /// A confidence level outside 0 … 1.
    #[error("confidence level {level} must lie between 0 and 1, such as 0.95")]
    Level {
        /// The level given.
        level: f64,
    },
}

impl From<FcsOrTable> for FitError {
    fn from(error: FcsOrTable) -> FitError {
        match error {
            FcsOrTable::Fcs(error) => error.into(),
            FcsOrTable::Table(error) => error.into(),
        }
    }
}
