//! The common parts of machine and program files: errors that name the line, clocks, and quantities
//! written as text.

use fastpath_units::{Duration, ParseError};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

/// Why a file cannot be used: `machines/x.toml:12: unit "m1" is not part of machine ixp1200 (have:
/// me1, me2)`.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct SpecError {
    /// The name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// The mistake at that line.
    pub problem: SpecProblem,
}

/// A mistake in a machine, program or workload.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SpecProblem {
    /// Not TOML, or not the keys of this kind of file, as the parser reports it.
    #[error("{0}")]
    Syntax(String),
    /// An unknown name.
    #[error("{what} {name:?} is unknown (have: {known})")]
    Unknown {
        /// The kind of thing.
        what: &'static str,
        /// The name given.
        name: String,
        /// The known names.
        known: String,
    },
    /// The same name twice.
    #[error("the name {0:?} is used twice: give each unit and memory its own name")]
    Duplicate(String),
    /// A number outside its range.
    #[error("{what} of {name:?} must be {range}")]
    Range {
        /// The field.
        what: &'static str,
        /// The unit or stage with the field.
        name: String,
        /// The allowed values.
        range: &'static str,
    },
    /// A stage that skips back.
    #[error(
        "cycle: stage {from:?} skips back to {to:?}, and a packet might never leave: skip to a later stage"
    )]
    Cycle {
        /// The stage that skips.
        from: String,
        /// Its target.
        to: String,
    },
    /// A step with no operation or with several.
    #[error("a step has exactly one of compute, time, read, write, enter, leave")]
    Step,
    /// A value of a link that the reader of network specs refuses.
    #[error("{what}; {instead}")]
    Link {
        /// The mistake.
        what: String,
        /// The text to write instead.
        instead: String,
    },
    /// A program without stages, or a machine without units.
    #[error("{0} is empty")]
    Empty(&'static str),
}

/// A name and its place in the file.
pub(crate) type Name = toml::Spanned<String>;

/// The text of one file while it is checked. Turns positions into errors.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl Source<'_> {
    pub(crate) fn parse<T: for<'de> Deserialize<'de>>(&self) -> Result<T, SpecError> {
        toml::from_str(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            self.error(at, SpecProblem::Syntax(in_words(error.message())))
        })
    }

    pub(crate) fn error(&self, at: usize, problem: SpecProblem) -> SpecError {
        let line = 1 + self.text.bytes().take(at).filter(|&b| b == b'\n').count();
        SpecError { file: self.file.to_owned(), line, problem }
    }

    pub(crate) fn at(&self, name: &Name, problem: SpecProblem) -> SpecError {
        self.error(name.span().start, problem)
    }

    /// The index of `name` in `known`.
    pub(crate) fn find(&self, name: &Name, what: &'static str, known: &[String]) -> Result<usize, SpecError> {
        known.iter().position(|k| k == name.as_ref()).ok_or_else(|| {
            let known = known.join(", ");
            self.at(name, SpecProblem::Unknown { what, name: name.as_ref().clone(), known })
        })
    }

    pub(crate) fn range(&self, name: &Name, what: &'static str, range: &'static str) -> SpecError {
        self.at(name, SpecProblem::Range { what, name: name.as_ref().clone(), range })
    }
}

/// Rewrites an error of the TOML reader about a number. ``integer `-10`, expected u32`` means
/// little to the author of a file.
fn in_words(message: &str) -> String {
    let rewrite = |rest: &str| {
        let (what, expected) = rest.split_once(", expected ")?;
        let most = match expected {
            "u8" => u64::from(u8::MAX),
            "u16" => u64::from(u16::MAX),
            "u32" => u64::from(u32::MAX),
            "u64" | "usize" => i64::MAX as u64,
            _ => return None,
        };
        // `integer `-10``, `string "many"`, `boolean `true``
        let at = what.find(['`', '"'])?;
        let value = what[at..].trim_matches(['`', '"']);
        Some(format!("{value} is not a whole number from 0 to {most}"))
    };
    let rest = ["invalid value: ", "invalid type: "].iter().find_map(|kind| message.strip_prefix(kind));
    rest.and_then(rewrite).unwrap_or_else(|| message.to_owned())
}

/// A clock: cycles per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock(NonZeroU64);

impl Clock {
    /// A clock of `hz` cycles per second, or `None` for 0.
    pub fn from_hz(hz: u64) -> Option<Clock> {
        NonZeroU64::new(hz).map(Clock)
    }

    /// The span of `n` cycles to the nearest picosecond.
    pub fn cycles(self, n: u64) -> Duration {
        let hz = u128::from(self.0.get());
        Duration::from_ps(((u128::from(n) * 1_000_000_000_000 + hz / 2) / hz) as u64)
    }

    /// The number of cycles in `span`.
    pub fn count(self, span: Duration) -> f64 {
        span.as_secs_f64() * self.0.get() as f64
    }
}

impl FromStr for Clock {
    type Err = ParseClockError;
    /// Parses `232MHz`, `1.5GHz`, `8192Hz`.
    fn from_str(text: &str) -> Result<Clock, ParseClockError> {
        let bad = || ParseClockError(text.to_owned());
        let text = text.trim();
        let unit = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(bad)?;
        let scale = match &text[unit..] {
            "Hz" => 1.0,
            "kHz" => 1e3,
            "MHz" => 1e6,
            "GHz" => 1e9,
            _ => return Err(bad()),
        };
        let number: f64 = text[..unit].trim().parse().map_err(|_| bad())?;
        let hz = (number * scale).round();
        if !(1.0..=1e12).contains(&hz) {
            return Err(bad());
        }
        Clock::from_hz(hz as u64).ok_or_else(bad)
    }
}

/// The error of a text that is not a clock.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("clock {0:?} is not a frequency from 1Hz to 1000GHz (write e.g. \"232MHz\")")]
pub struct ParseClockError(String);

/// Deserialises a quantity written as text (`"100Mbit"`, `"64KiB"`, `"518ns"`) with its own parser.
pub(crate) fn text<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: fmt::Display,
{
    let text = String::deserialize(from)?;
    text.parse().map_err(serde::de::Error::custom)
}

/// As [`text`], for an optional field.
pub(crate) fn optional<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: fmt::Display,
{
    text(from).map(Some)
}

/// The default number of servers and engines.
pub(crate) fn one() -> u32 {
    1
}

/// The default size of a memory reference: a word of 4 bytes.
pub(crate) fn word() -> u32 {
    4
}

/// A span per byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PerByte(Duration);

impl PerByte {
    pub(crate) fn times(self, bytes: u32) -> Duration {
        self.0 * u64::from(bytes)
    }

    pub(crate) fn of(span: Duration) -> PerByte {
        PerByte(span)
    }

    pub(crate) fn scaled(self, n: u64) -> PerByte {
        PerByte(self.0 * n)
    }
}

impl FromStr for PerByte {
    type Err = ParseError;
    /// Parses `0.9ns`, `101ps`.
    fn from_str(text: &str) -> Result<PerByte, ParseError> {
        text.parse().map(PerByte::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_reported_with_the_range() {
        let said = |text: &str| {
            #[derive(serde::Deserialize)]
            struct Cores {
                cores: u32,
            }
            let read = Source { file: "m.toml", text }.parse().map(|Cores { cores }| cores);
            read.unwrap_err().to_string()
        };
        let range = "is not a whole number from 0 to 4294967295";
        assert_eq!(said("\ncores = -10"), format!("m.toml:2: -10 {range}"));
        assert_eq!(said("cores = 1.5"), format!("m.toml:1: 1.5 {range}"));
        assert_eq!(said("cores = \"many\""), format!("m.toml:1: many {range}"));
        assert_eq!(in_words("missing field `name`"), "missing field `name`");
    }

    #[test]
    fn clocks_parse_and_count() {
        let clock: Clock = "232MHz".parse().unwrap();
        // 1559 cycles are 6.72 µs, the time of a 64-byte frame at 100 Mbit/s (Joglekar 2004, §4.2).
        assert_eq!(clock.cycles(232), Duration::from_us(1));
        assert_eq!(clock.count(Duration::from_ns(6720)).round(), 1559.0);
        assert_eq!("1.5GHz".parse::<Clock>().unwrap().cycles(3), Duration::from_ns(2));
        for bad in ["", "232", "0Hz", "fast", "1THz", "-1MHz", "NaNHz"] {
            assert!(bad.parse::<Clock>().unwrap_err().to_string().contains("232MHz"), "{bad}");
        }
    }
}
