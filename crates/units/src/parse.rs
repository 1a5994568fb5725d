//! The parser and printer of all quantities: a decimal number and a unit, without floating point.

use std::fmt;

/// The error of parsing a quantity. Its message names the text, the fault and a valid example.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{text}' is not a {what}: {reason}; write {}", self.instead())]
pub struct ParseError {
    /// The text that was parsed.
    pub text: String,
    /// The quantity that was expected (`duration`, `rate`, …).
    pub what: &'static str,
    /// What is wrong with the text.
    pub reason: ParseErrorKind,
    /// An example of a valid text.
    pub example: &'static str,
}

impl ParseError {
    /// Returns what to write: the text with the unit of the example where only a unit is missing,
    /// otherwise `for example` and the example.
    pub fn instead(&self) -> String {
        self.with_unit(self.example).unwrap_or_else(|| format!("for example {}", self.example))
    }

    /// Returns the text with the unit of `example`, if only a unit is missing: `20ms` for `20`.
    pub fn with_unit(&self, example: &str) -> Option<String> {
        let unit = example.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let is_unit = !unit.is_empty() && unit.len() < example.len();
        (matches!(self.reason, ParseErrorKind::NoUnit(_)) && is_unit).then(|| format!("{}{unit}", self.text))
    }
}

/// What is wrong with the text of a quantity.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseErrorKind {
    /// The text has no digits.
    #[error("there is no number")]
    NoNumber,
    /// The number is negative.
    #[error("it cannot be negative")]
    Negative,
    /// The number has no unit; the text lists the valid units.
    #[error("the unit is missing ({0})")]
    NoUnit(String),
    /// The unit means two things: its name, then what it may mean and what to write.
    #[error("'{0}' is {1}")]
    Ambiguous(String, &'static str),
    /// The unit is unknown: its name, then the valid units.
    #[error("the unit '{0}' is not known ({1})")]
    UnknownUnit(String, String),
    /// The value exceeds the range of the type.
    #[error("it is too large")]
    TooLarge,
    /// The value has more digits than the resolution of the type.
    #[error("it is finer than the resolution")]
    TooFine,
    /// The value is outside the allowed range, which the text describes.
    #[error("it must be {0}")]
    OutOfRange(&'static str),
}

/// A unit of measurement: its accepted names, the canonical one first, and its size in multiples
/// of the smallest unit.
pub(crate) struct Unit {
    pub(crate) names: &'static [&'static str],
    pub(crate) scale: u64,
}

/// Parses `number unit` into multiples of the smallest unit, without rounding. `0` needs no unit.
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
        return Err(fail(ParseErrorKind::NoUnit(known())));
    } else {
        units
            .iter()
            .find(|u| u.names.contains(&suffix))
            .ok_or_else(|| fail(ParseErrorKind::UnknownUnit(suffix.to_owned(), known())))?
            .scale
    };
    scaled(whole, fraction, scale).map_err(fail)
}

/// Splits `" 1.5 Mbit "` into `("1", "5", "Mbit")`.
pub(crate) fn split(text: &str) -> Result<(&str, &str, &str), ParseErrorKind> {
    let text = text.trim();
    if text.starts_with('-') {
        return Err(ParseErrorKind::Negative);
    }
    let number_len = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(number_len);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(ParseErrorKind::NoNumber);
    }
    Ok((whole, fraction, suffix.trim()))
}

/// Returns `whole.fraction × scale`, or an error if that is not an integer of 64 bits.
pub(crate) fn scaled(whole: &str, fraction: &str, scale: u64) -> Result<u64, ParseErrorKind> {
    let mut value = 0u128;
    for digit in whole.bytes() {
        value = value * 10 + u128::from(digit - b'0');
        if value > u128::from(u64::MAX) {
            return Err(ParseErrorKind::TooLarge);
        }
    }
    value *= u128::from(scale);
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 18 {
        return Err(ParseErrorKind::TooFine);
    }
    if !fraction.is_empty() {
        let digits: u128 = fraction.parse().map_err(|_| ParseErrorKind::NoNumber)?;
        let denominator = 10u128.pow(fraction.len() as u32);
        let product = digits * u128::from(scale);
        if !product.is_multiple_of(denominator) {
            return Err(ParseErrorKind::TooFine);
        }
        value += product / denominator;
    }
    u64::try_from(value).map_err(|_| ParseErrorKind::TooLarge)
}

/// Prints `value` in the largest unit that represents it exactly with at most three decimals, or in
/// the smallest unit otherwise.
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
