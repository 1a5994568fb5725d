//! Values that are one of a few words.

use crate::fields::Field;
use crate::mistake::Remarks;

/// Returns which of `known` the value is, as an index.
pub(crate) fn word(field: &Field, what: &str, known: &[&str], remarks: &mut Remarks) -> Option<usize> {
    field.word(what, known, remarks)
}
