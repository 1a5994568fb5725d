//! The common parts of machine and program files: every mistake with its place, and clocks.

pub(crate) use fastpath_text::fields::Name;
use fastpath_text::mistake::{Mistakes, Remarks, choice};
use fastpath_units::Duration;
use std::num::NonZeroU64;
use std::str::FromStr;

/// Why a file cannot be used: every mistake in it. Prints as one line for each:
/// `machines/x.toml:12:8: there is no unit 'm1'; write me1`.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", lines(.file, .mistakes))]
pub struct SpecError {
    /// The name of the file.
    pub file: String,
    /// All mistakes, in the order of the text; at least one.
    pub mistakes: Mistakes,
}

fn lines(file: &str, mistakes: &Mistakes) -> String {
    let lines: Vec<String> = mistakes.iter().map(|mistake| format!("{file}:{mistake}")).collect();
    lines.join("\n")
}

/// Returns what was read from a file, if the file has no mistakes.
pub(crate) fn result<T>(file: &str, remarks: Remarks, value: Option<T>) -> Result<T, SpecError> {
    match remarks.finish() {
        Ok(_) => Ok(value.expect("what is not read has a mistake")),
        Err(mistakes) => Err(SpecError { file: file.to_owned(), mistakes }),
    }
}

/// Returns the index of `name` in `known`.
pub(crate) fn find(name: &Name, what: &str, known: &[String], remarks: &mut Remarks) -> Option<usize> {
    let found = known.iter().position(|known| *known == **name);
    if found.is_none() {
        let instead = match what {
            "memory" | "cache" if known.is_empty() => {
                format!("add it: [[{what}]] with name = \"{name}\" (see fastpath sim --describe {what})")
            }
            _ => choice(name, known.iter().map(String::as_str)),
        };
        remarks.mistake(name.at, format!("there is no {what} '{name}'"), instead);
    }
    found
}

/// Reports a number outside its range, of the table or stage with this name.
pub(crate) fn out_of_range(name: &Name, what: &str, range: &str, remarks: &mut Remarks) {
    remarks.mistake(
        name.at,
        format!("{what} of {name} is out of range"),
        format!("write a value that is {range}"),
    );
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

/// Packets per second: `35Mpps`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PacketRate(f64);

impl PacketRate {
    /// Parses `35Mpps`, `850kpps`, `1.2Gpps`; above 0 and below 10^10.
    pub(crate) fn parse(text: &str) -> Option<PacketRate> {
        let number = text.trim().strip_suffix("pps")?;
        let (number, scale) = match number.chars().last()? {
            'k' => (&number[..number.len() - 1], 1e3),
            'M' => (&number[..number.len() - 1], 1e6),
            'G' => (&number[..number.len() - 1], 1e9),
            _ => (number, 1.0),
        };
        number.parse::<f64>().ok().map(|n| n * scale).filter(|n| *n > 0.0 && *n < 1e10).map(PacketRate)
    }

    /// Packets per second.
    pub(crate) fn per_second(self) -> f64 {
        self.0
    }

    /// The time between packets, to the nearest picosecond.
    pub(crate) fn interval(self) -> Duration {
        Duration::from_ps((1e12 / self.0).round() as u64)
    }
}

/// The default size of a memory reference: a word of 4 bytes.
pub(crate) const WORD: u32 = 4;

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

#[cfg(test)]
mod tests {
    use super::*;

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
