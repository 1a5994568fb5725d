//! The outcome of a command: its value, or why it has none.

use crate::expr::ExprError;
use crate::syntax::Value;

/// Why a command has no value.
#[derive(Debug)]
pub(crate) enum Interrupt {
    /// A mistake: what, and what to write.
    Mistake(String, String),
    /// A mistake with its place.
    Placed(usize, String, String),
    /// A mistake that was reported already, or follows from one that was.
    Reported,
    Break,
    Continue,
    Return(Value),
    /// Evaluation ends: by `exit`, or because the budget is spent.
    Stop,
}

pub(crate) type TclResult = Result<Value, Interrupt>;

/// A mistake to report at the command that is being evaluated.
pub(crate) fn mistake<T>(what: impl Into<String>, instead: impl Into<String>) -> Result<T, Interrupt> {
    Err(Interrupt::Mistake(what.into(), instead.into()))
}

impl From<ExprError> for Interrupt {
    fn from(error: ExprError) -> Interrupt {
        Interrupt::Mistake(error.to_string(), "write an expression such as {$i * 2 + 1}".to_owned())
    }
}
