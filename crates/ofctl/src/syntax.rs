//! How actions are written: names, arguments, lists.

use crate::{Wrong, wrong};

/// Splits `NAME:ARGUMENT`, `NAME(ARGUMENT)` or `NAME`.
pub(crate) fn name_and_argument(item: &str) -> Result<(&str, &str), Wrong> {
    let at = item.find([':', '(']).unwrap_or(item.len());
    let (name, rest) = item.split_at(at);
    if let Some(argument) = rest.strip_prefix(':') {
        return Ok((name, argument));
    }
    let Some(inner) = rest.strip_prefix('(') else { return Ok((name, rest)) };
    match inner.strip_suffix(')') {
        Some(argument) => Ok((name, argument)),
        None => wrong(format!("'{item}' has no closing parenthesis at its end"), format!("write {item})")),
    }
}

/// Refuses the argument of an action that has none.
pub(crate) fn no_argument(name: &str, argument: &str) -> Result<(), Wrong> {
    match argument {
        "" => Ok(()),
        _ => wrong(format!("{name} has no argument, and '{argument}' is one"), format!("write {name}")),
    }
}

/// Splits `NAME:ARGUMENT` as [`name_and_argument`], and keeps what is behind the parentheses of
/// `check_pkt_larger(BYTES)->FIELD`.
pub(crate) fn name_and_rest(item: &str) -> Result<(&str, &str), Wrong> {
    match item.strip_prefix("check_pkt_larger(") {
        Some(rest) => Ok(("check_pkt_larger", rest)),
        None => name_and_argument(item),
    }
}

/// Splits at commas and spaces that are not inside parentheses.
pub(crate) fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0usize;
    let separates = move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && matches!(c, ',' | ' ' | '\t')
    };
    text.split(separates).filter(|item| !item.is_empty())
}
