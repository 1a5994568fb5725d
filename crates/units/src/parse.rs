//! One exact parser and printer for every quantity: a decimal number and a unit, no floating point.

use std::fmt;

/// Why a text is not a quantity.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{text}' is not a {what}: {reason}; write for example {example}")]
pub struct ParseError {
    /// What was written.
    pub text: String,
    /// The quantity that was expected (`duration`, `rate`, …).
    pub what: &'static str,
    /// What is wrong with it.
    pub reason: Reason,
    /// A text that would have been accepted.
    pub example: &'static str,
}

/// What is wrong with the text of a quantity.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Reason {
    /// No digits.
    #[error("there is no number")]
    NoNumber,
    /// Negative.
    #[error("it cannot be negative")]
    Negative,
    /// Number without a unit.
    #[error("the unit is missing ({0})")]
    NoUnit(String),
    /// A unit that is not known.
    #[error("the unit '{0}' is not known ({1})")]
    UnknownUnit(String, String),
    /// Larger than the type can hold.
    #[error("it is too large")]
    TooLarge,
    /// More digits than the resolution.
    #[error("it is finer than the resolution")]
    TooFine,
    /// Outside the allowed range.
    #[error("it must be {0}")]
    OutOfRange(&'static str),
}

/// A unit by its accepted names, the first being the canonical one.
pub(crate) struct Unit {
    pub(crate) names: &'static [&'static str],
    pub(crate) scale: u64,
}

/// Parses `number unit` exactly into multiples of the smallest unit.
pub(crate) fn quantity(
    text: &str,
    what: &'static str,
    units: &[Unit],
    example: &'static str,
) -> Result<u64, ParseError> {
    let fail = |reason| ParseError { text: text.trim().to_owned(), what, reason, example };
    let (whole, fraction, suffix) = split(text).map_err(fail)?;
    let known = || units.iter().map(|u| u.names[0]).collect::<Vec<_>>().join(", ");
    let scale = if suffix.is_empty() {
        if whole.chars().chain(fraction.chars()).all(|c| c == '0') {
            return Ok(0);
        }
        return Err(fail(Reason::NoUnit(known())));
    } else {
        units
            .iter()
            .find(|u| u.names.contains(&suffix))
            .ok_or_else(|| fail(Reason::UnknownUnit(suffix.to_owned(), known())))?
            .scale
    };
    scaled(whole, fraction, scale).map_err(fail)
}

/// Splits `" 1.5 Mbit "` into `("1", "5", "Mbit")`.
pub(crate) fn split(text: &str) -> Result<(&str, &str, &str), Reason> {
    let text = text.trim();
    if text.starts_with('-') {
        return Err(Reason::Negative);
    }
    let number_len = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(number_len);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(Reason::NoNumber);
    }
    Ok((whole, fraction, suffix.trim()))
}

/// `whole.fraction × scale`, exactly or not at all.
pub(crate) fn scaled(whole: &str, fraction: &str, scale: u64) -> Result<u64, Reason> {
    let mut value = 0u128;
    for digit in whole.bytes() {
        value = value * 10 + u128::from(digit - b'0');
        if value > u128::from(u64::MAX) {
            return Err(Reason::TooLarge);
        }
    }
    value *= u128::from(scale);
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 18 {
        return Err(Reason::TooFine);
    }
    if !fraction.is_empty() {
        let digits: u128 = fraction.parse().map_err(|_| Reason::NoNumber)?;
        let denominator = 10u128.pow(fraction.len() as u32);
        let product = digits * u128::from(scale);
        if !product.is_multiple_of(denominator) {
            return Err(Reason::TooFine);
        }
        value += product / denominator;
    }
    u64::try_from(value).map_err(|_| Reason::TooLarge)
}

/// Prints `value` in the largest unit in which it is exact with at most three decimals, else the
/// smallest.
pub(crate) fn print(
    f: &mut fmt::Formatter<'_>,
    value: u64,
    units: &[(u64, &str)],
    zero: &str,
) -> fmt::Result {
    if value == 0 {
        return f.pad(&format!("0{zero}"));
    }
    for &(scale, name) in units {
        if value < scale {
            continue;
        }
        let (whole, rest) = (value / scale, value % scale);
        if rest == 0 {
            return f.pad(&format!("{whole}{name}"));
        }
        let thousandths = u128::from(rest) * 1000;
        if thousandths.is_multiple_of(u128::from(scale)) {
            let decimals = format!("{:03}", thousandths / u128::from(scale));
            return f.pad(&format!("{whole}.{}{name}", decimals.trim_end_matches('0')));
        }
    }
    let (scale, name) = units.last().expect("at least one unit");
    f.pad(&format!("{}{name}", value / scale))
}
