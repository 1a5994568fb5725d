//! Probabilities.

use crate::Rng;
use crate::parse::{self, ParseError, ParseErrorKind};
use std::fmt;
use std::str::FromStr;

/// A probability, from 0 to 1.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Probability(f64);

impl Probability {
    /// Probability 0.
    pub const NEVER: Probability = Probability(0.0);
    /// Probability 1.
    pub const ALWAYS: Probability = Probability(1.0);

    /// Returns the probability `p`, or `None` if `p` is NaN or outside 0 … 1.
    pub fn new(p: f64) -> Option<Probability> {
        (0.0..=1.0).contains(&p).then_some(Probability(p))
    }

    /// Returns the value, 0 … 1.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// Returns true for probability 0.
    pub fn is_never(self) -> bool {
        self.0 == 0.0
    }

    /// Returns true with this probability. Exact at 0 and 1, otherwise accurate to one part in 2⁵³.
    #[inline]
    pub fn draw(self, rng: &mut Rng) -> bool {
        rng.unit_f64() < self.0
    }
}

impl FromStr for Probability {
    type Err = ParseError;
    /// Parses `1%`, `0.5%`, `0.01`. A bare `1` is rejected, because it could mean 1 %.
    fn from_str(text: &str) -> Result<Probability, ParseError> {
        let fail =
            |reason| ParseError { text: text.trim().to_owned(), what: "probability", reason, example: "1%" };
        let (whole, fraction, suffix) = parse::split(text).map_err(fail)?;
        let number: f64 =
            format!("0{whole}.{fraction}0").parse().map_err(|_| fail(ParseErrorKind::NoNumber))?;
        let value = match suffix {
            "%" => number / 100.0,
            "" if number >= 1.0 => return Err(fail(ParseErrorKind::NoUnit("100% is always".to_owned()))),
            "" => number,
            other => return Err(fail(ParseErrorKind::UnknownUnit(other.to_owned(), "%".to_owned()))),
        };
        Probability::new(value).ok_or_else(|| fail(ParseErrorKind::OutOfRange("0 … 100 %")))
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded to 12 decimals: 0.07 prints as 7%, not as 7.000000000000001%.
        let percent = (self.0 * 100.0 * 1e12).round() / 1e12;
        f.pad(&format!("{percent}%"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_parse_as_percent_or_fraction() {
        for (text, p) in
            [("1%", 0.01), ("0.5 %", 0.005), ("0.01", 0.01), ("0", 0.0), (".5", 0.5), ("100%", 1.0)]
        {
            assert_eq!(text.parse::<Probability>().map(Probability::get), Ok(p), "{text}");
        }
        for text in ["101%", "1.1", "1", "1.0", "-1%", "", "%", "1ppm"] {
            assert!(text.parse::<Probability>().is_err(), "{text}");
        }
        assert_eq!("7%".parse::<Probability>().unwrap().to_string(), "7%");
    }

    #[test]
    fn never_and_always_are_exact() {
        let mut rng = Rng::new(1);
        assert!((0..1000).all(|_| !Probability::NEVER.draw(&mut rng) && Probability::ALWAYS.draw(&mut rng)));
    }

    #[test]
    fn draws_lie_within_the_binomial_99_9_percent_interval() {
        // n = 10⁶ and ±3.29 σ: a correct generator fails for one seed in a thousand. The seed is
        // fixed, so the test always has the same result.
        for p in [0.001, 0.01, 0.07, 0.5, 0.9] {
            let (mut rng, n) = (Rng::new(42), 1_000_000);
            let hits = (0..n).filter(|_| Probability(p).draw(&mut rng)).count() as f64;
            let sigma = (f64::from(n) * p * (1.0 - p)).sqrt();
            assert!((hits - f64::from(n) * p).abs() < 3.29 * sigma, "{p}: {hits}");
        }
    }
}
