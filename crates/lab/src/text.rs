//! Texts that several messages have.

/// Returns a list of names in a message: `a, b`, or `none`.
pub(crate) fn or_none(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
