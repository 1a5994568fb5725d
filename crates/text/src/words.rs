//! Values that are one of a few words.

use crate::fields::Field;
use crate::mistake::{Remarks, nearest};

/// Returns which of `known` the value is, as an index.
pub fn word(field: &Field, what: &str, known: &[&str], remarks: &mut Remarks) -> Option<usize> {
    let text = field.text(known[0], remarks)?;
    let found = known.iter().position(|word| *word == text);
    if found.is_none() {
        let instead = match nearest(text, known.iter().copied()) {
            Some(meant) => format!("write \"{meant}\""),
            None => format!("write one of {}", known.join(", ")),
        };
        remarks.mistake(field.at, format!("'{text}' is not {what}"), instead);
    }
    found
}
