//! A number with its interval, the result type of this crate.

use serde::{Deserialize, Deserializer, Serialize};

/// A value and its confidence interval. The field that holds it names the unit.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Estimate {
    /// The best single value.
    #[serde(deserialize_with = "number_or_null")]
    pub value: f64,
    /// The lower end of the interval.
    #[serde(deserialize_with = "number_or_null")]
    pub low: f64,
    /// The upper end of the interval.
    #[serde(deserialize_with = "number_or_null")]
    pub high: f64,
}

/// Reads a number. JSON has no infinity, so `null` stands for a number that is not finite.
fn number_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

impl Estimate {
    /// Returns a value that is taken as exact: its interval has no width.
    pub fn exact(value: f64) -> Estimate {
        Estimate { value, low: value, high: value }
    }

    /// Returns `value` ± `half_width`.
    pub fn around(value: f64, half_width: f64) -> Estimate {
        Estimate { value, low: value - half_width, high: value + half_width }
    }

    /// Cuts off what lies below 0, for a quantity that is never negative, such as a time.
    pub fn not_below_zero(self) -> Estimate {
        self.map(|x| x.max(0.0))
    }

    /// Applies a function that is monotone over the interval. The ends swap when it falls.
    pub fn map(self, monotone: impl Fn(f64) -> f64) -> Estimate {
        let (a, b) = (monotone(self.low), monotone(self.high));
        Estimate { value: monotone(self.value), low: a.min(b), high: a.max(b) }
    }

    /// Returns whether `x` lies in the closed interval.
    pub fn covers(self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }
}

/// A value whose bounds may be unknown, because no degree of freedom is left or the points do not
/// bound it on that side. In JSON an [`Estimate`] with `null` for unknown bounds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Bounded {
    /// The best single value.
    pub value: f64,
    /// The lower end of the interval.
    pub low: Option<f64>,
    /// The upper end of the interval.
    pub high: Option<f64>,
}

impl Bounded {
    /// Returns a value with unknown bounds.
    pub fn unknown(value: f64) -> Bounded {
        Bounded { value, low: None, high: None }
    }

    /// Returns the value and its bounds multiplied by `factor`, above 0.
    pub fn scaled(self, factor: f64) -> Bounded {
        let scale = |x: f64| x * factor;
        Bounded { value: scale(self.value), low: self.low.map(scale), high: self.high.map(scale) }
    }

    /// Returns whether `x` lies in the closed interval. An unknown end does not limit the interval.
    pub fn covers(self, x: f64) -> bool {
        self.low.is_none_or(|low| low <= x) && self.high.is_none_or(|high| x <= high)
    }
}

impl From<Estimate> for Bounded {
    fn from(e: Estimate) -> Bounded {
        Bounded { value: e.value, low: Some(e.low), high: Some(e.high) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_s_interval_ends_at_zero() {
        assert_eq!(Estimate::around(2.0, 3.0).not_below_zero(), Estimate { value: 2.0, low: 0.0, high: 5.0 });
        assert_eq!(
            Estimate::around(-2.0, 3.0).not_below_zero(),
            Estimate { value: 0.0, low: 0.0, high: 1.0 }
        );
    }

    #[test]
    fn a_falling_function_swaps_the_ends() {
        let e = Estimate { value: 2.0, low: 1.0, high: 4.0 }.map(|x| 1.0 / x);
        assert_eq!(e, Estimate { value: 0.5, low: 0.25, high: 1.0 });
        assert!(e.covers(0.25) && e.covers(1.0) && !e.covers(1.01));
    }
}
