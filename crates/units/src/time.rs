//! Points in time and spans of time, in integer picoseconds.

use crate::parse::{self, ParseError, Unit};
use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};
use std::str::FromStr;

/// Picoseconds in one second.
const PS_PER_S: u64 = 1_000_000_000_000;

/// A point in time, in picoseconds since the start of the run. The range is 213 days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(u64);

/// A span of time in picoseconds, never negative. The range is 213 days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Duration(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// The last representable instant (213 days).
    pub const MAX: Time = Time(u64::MAX);

    /// Returns the instant `ps` picoseconds after the start of the run.
    #[inline]
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }

    /// Returns the picoseconds since the start of the run.
    #[inline]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Returns the nanoseconds since the start of the run, rounded down.
    #[inline]
    pub const fn as_ns(self) -> u64 {
        self.0 / 1000
    }

    /// Returns the seconds since the start of the run, for reports; not exact.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }

    /// Returns the span since `earlier`, or zero if `earlier` is later than `self`.
    #[inline]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// Returns `self + span`, or `None` if the sum exceeds [`Time::MAX`].
    #[inline]
    pub const fn checked_add(self, span: Duration) -> Option<Time> {
        match self.0.checked_add(span.0) {
            Some(ps) => Some(Time(ps)),
            None => None,
        }
    }

    /// Returns `self + span`, saturating at [`Time::MAX`].
    #[inline]
    pub const fn saturating_add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(span.0))
    }

    /// Returns `self - span`, saturating at [`Time::ZERO`].
    #[inline]
    pub const fn saturating_sub(self, span: Duration) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Duration {
    /// The empty span.
    pub const ZERO: Duration = Duration(0);
    /// The longest representable span (213 days).
    pub const MAX: Duration = Duration(u64::MAX);

    /// Returns a span of `ps` picoseconds.
    #[inline]
    pub const fn from_ps(ps: u64) -> Duration {
        Duration(ps)
    }

    /// Returns a span of `ns` nanoseconds. Panics above 213 days.
    #[inline]
    pub const fn from_ns(ns: u64) -> Duration {
        Duration(ns.checked_mul(1000).expect("duration over 213 days"))
    }

    /// Returns a span of `us` microseconds. Panics above 213 days.
    #[inline]
    pub const fn from_us(us: u64) -> Duration {
        Duration(us.checked_mul(1_000_000).expect("duration over 213 days"))
    }

    /// Returns a span of `ms` milliseconds. Panics above 213 days.
    #[inline]
    pub const fn from_ms(ms: u64) -> Duration {
        Duration(ms.checked_mul(1_000_000_000).expect("duration over 213 days"))
    }

    /// Returns a span of `s` seconds. Panics above 213 days.
    #[inline]
    pub const fn from_secs(s: u64) -> Duration {
        Duration(s.checked_mul(PS_PER_S).expect("duration over 213 days"))
    }

    /// Returns the span nearest to `s` seconds. Negative numbers and NaN give zero; numbers beyond
    /// the range give [`Duration::MAX`].
    #[inline]
    pub fn from_secs_f64(s: f64) -> Duration {
        Duration((s * PS_PER_S as f64).round() as u64)
    }

    /// Returns the span in picoseconds.
    #[inline]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Returns the span in nanoseconds, rounded down.
    #[inline]
    pub const fn as_ns(self) -> u64 {
        self.0 / 1000
    }

    /// Returns the span in seconds, for reports; not exact.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }

    /// Returns the span in milliseconds, for reports; not exact.
    #[inline]
    pub fn as_ms_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Converts to the standard library's type, rounded down to nanoseconds.
    #[inline]
    pub const fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0 / 1000)
    }

    /// Returns `self - other`, or zero if `other` is longer.
    #[inline]
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }

    /// Returns `self + other`, saturating at [`Duration::MAX`].
    #[inline]
    pub const fn saturating_add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }

    /// Returns true for the empty span.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl From<std::time::Duration> for Duration {
    /// Saturates at [`Duration::MAX`].
    fn from(span: std::time::Duration) -> Duration {
        Duration(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    #[inline]
    fn add(self, span: Duration) -> Time {
        Time(self.0 + span.0)
    }
}

impl AddAssign<Duration> for Time {
    #[inline]
    fn add_assign(&mut self, span: Duration) {
        self.0 += span.0;
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    #[inline]
    fn sub(self, span: Duration) -> Time {
        Time(self.0 - span.0)
    }
}

impl Sub for Time {
    type Output = Duration;
    /// Panics in debug builds if `earlier` is later than `self`. [`Time::since`] saturates instead.
    #[inline]
    fn sub(self, earlier: Time) -> Duration {
        Duration(self.0 - earlier.0)
    }
}

impl Add for Duration {
    type Output = Duration;
    #[inline]
    fn add(self, other: Duration) -> Duration {
        Duration(self.0 + other.0)
    }
}

impl AddAssign for Duration {
    #[inline]
    fn add_assign(&mut self, other: Duration) {
        self.0 += other.0;
    }
}

impl Sub for Duration {
    type Output = Duration;
    #[inline]
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0 - other.0)
    }
}

impl SubAssign for Duration {
    #[inline]
    fn sub_assign(&mut self, other: Duration) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    #[inline]
    fn mul(self, n: u64) -> Duration {
        Duration(self.0 * n)
    }
}

const UNITS: &[Unit] = &[
    Unit { names: &["ps"], scale: 1 },
    Unit { names: &["ns"], scale: 1_000 },
    Unit { names: &["us", "µs", "usec"], scale: 1_000_000 },
    Unit { names: &["ms", "msec"], scale: 1_000_000_000 },
    Unit { names: &["s", "sec"], scale: PS_PER_S },
    Unit { names: &["min"], scale: 60 * PS_PER_S },
    Unit { names: &["h"], scale: 3600 * PS_PER_S },
];

impl FromStr for Duration {
    type Err = ParseError;
    /// Parses `25ms`, `1.5 s`, `250us`, `0`. Every number except 0 needs a unit.
    fn from_str(text: &str) -> Result<Duration, ParseError> {
        parse::quantity(text, "duration", UNITS, "10ms").map(Duration)
    }
}

impl fmt::Display for Duration {
    /// Prints in the largest unit that needs at most three decimals: `25ms`, `1.536ms`, `0s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        parse::print(
            f,
            self.0,
            &[(PS_PER_S, "s"), (1_000_000_000, "ms"), (1_000_000, "us"), (1000, "ns"), (1, "ps")],
            "s",
        )
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Duration(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_parse_exactly() {
        for (text, ps) in [
            ("0", 0),
            ("0ms", 0),
            ("1ps", 1),
            ("25ms", 25_000_000_000),
            ("1.536ms", 1_536_000_000),
            (" 250 us ", 250_000_000),
            ("0.1ns", 100),
            ("2min", 120 * PS_PER_S),
        ] {
            assert_eq!(text.parse::<Duration>(), Ok(Duration(ps)), "{text}");
        }
    }

    #[test]
    fn bad_durations_say_what_to_write() {
        for text in ["", "ms", "10", "-5ms", "10 parsecs", "1e3ms", "0.0001ps", "99999999h", "1..5ms"] {
            let error = text.parse::<Duration>().unwrap_err().to_string();
            assert!(error.contains("duration") && error.contains("10ms"), "{text}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_printed_duration_parses_to_the_same_value(ps: u64) {
            let text = Duration(ps).to_string();
            proptest::prop_assert_eq!(text.parse::<Duration>(), Ok(Duration(ps)));
        }
    }
}
