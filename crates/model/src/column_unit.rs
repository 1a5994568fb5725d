//! The unit that a column's name or a cell's text carries: `T_ns`, `rate [Mpps]`, `64 B`. It serves
//! to refuse tables that mix units, and to convert a fitted time or rate to seconds.

use serde::{Deserialize, Serialize};

/// The kind of quantity that a unit measures. Two columns of one kind in one model must share a
/// unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dimension {
    /// Seconds per packet.
    Time,
    /// Clock cycles.
    Cycles,
    /// Bytes.
    Size,
    /// Packets per second.
    Rate,
    /// Bits per second.
    BitRate,
    /// A share of 1.
    Share,
}

/// A unit: its kind, and its size in the base unit (s, cycle, byte, packet/s, bit/s).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ColumnUnit {
    /// The kind of quantity.
    pub dimension: Dimension,
    /// Base units in one of this unit.
    pub scale: f64,
}

/// Spellings, in lower case. A single letter is a unit only after `_` or in brackets.
const UNITS: [(&str, Dimension, f64); 42] = [
    ("ps", Dimension::Time, 1e-12),
    ("ns", Dimension::Time, 1e-9),
    ("nsec", Dimension::Time, 1e-9),
    ("nanoseconds", Dimension::Time, 1e-9),
    ("us", Dimension::Time, 1e-6),
    ("µs", Dimension::Time, 1e-6),
    ("μs", Dimension::Time, 1e-6),
    ("usec", Dimension::Time, 1e-6),
    ("microseconds", Dimension::Time, 1e-6),
    ("ms", Dimension::Time, 1e-3),
    ("msec", Dimension::Time, 1e-3),
    ("milliseconds", Dimension::Time, 1e-3),
    ("s", Dimension::Time, 1.0),
    ("sec", Dimension::Time, 1.0),
    ("seconds", Dimension::Time, 1.0),
    ("cycles", Dimension::Cycles, 1.0),
    ("cyc", Dimension::Cycles, 1.0),
    ("b", Dimension::Size, 1.0),
    ("byte", Dimension::Size, 1.0),
    ("bytes", Dimension::Size, 1.0),
    ("kb", Dimension::Size, 1e3),
    ("kib", Dimension::Size, 1024.0),
    ("mb", Dimension::Size, 1e6),
    ("mib", Dimension::Size, 1_048_576.0),
    ("pps", Dimension::Rate, 1.0),
    ("kpps", Dimension::Rate, 1e3),
    ("mpps", Dimension::Rate, 1e6),
    ("packets/s", Dimension::Rate, 1.0),
    ("pkts/s", Dimension::Rate, 1.0),
    ("kpkts/s", Dimension::Rate, 1e3),
    ("mpkts/s", Dimension::Rate, 1e6),
    ("bps", Dimension::BitRate, 1.0),
    ("bit/s", Dimension::BitRate, 1.0),
    ("mbps", Dimension::BitRate, 1e6),
    ("mbit/s", Dimension::BitRate, 1e6),
    ("mbits/s", Dimension::BitRate, 1e6),
    ("mbitps", Dimension::BitRate, 1e6),
    ("gbps", Dimension::BitRate, 1e9),
    ("gbit/s", Dimension::BitRate, 1e9),
    ("gbits/s", Dimension::BitRate, 1e9),
    ("gbitps", Dimension::BitRate, 1e9),
    ("%", Dimension::Share, 0.01),
];

impl ColumnUnit {
    /// Returns whether two units are equal up to rounding. Scales of products are rounded.
    pub(crate) fn agrees(self, other: ColumnUnit) -> bool {
        self.dimension == other.dimension && (self.scale / other.scale - 1.0).abs() < 1e-9
    }

    /// Returns the seconds in one of this unit, if it is a time, or cycles of a known clock.
    pub(crate) fn seconds(self, clock_hz: Option<f64>) -> Option<f64> {
        match self.dimension {
            Dimension::Time => Some(self.scale),
            Dimension::Cycles => clock_hz.map(|hz| self.scale / hz),
            _ => None,
        }
    }

    /// Returns the unit spelt `text`, if there is one.
    pub fn parse(text: &str) -> Option<ColumnUnit> {
        let lower = text.trim().to_lowercase();
        let found = UNITS.iter().find(|(name, ..)| *name == lower)?;
        Some(ColumnUnit { dimension: found.1, scale: found.2 })
    }

    /// Returns the unit that a column's name carries: its last word after `_`, `-`, a space, `(` or
    /// `[`, or packets per second written out. `None` when the name carries no unit.
    pub fn of_column(name: &str) -> Option<ColumnUnit> {
        let lower = name.trim().to_lowercase();
        if ["packets_per_second", "pkts_per_s", "packets_per_s", "pkt_per_s"]
            .iter()
            .any(|s| lower.contains(s))
        {
            return Some(ColumnUnit { dimension: Dimension::Rate, scale: 1.0 });
        }
        let bare = lower.trim_end_matches([')', ']']);
        let suffix = bare.rsplit(['_', '-', ' ', '(', '[']).next()?;
        let alone = suffix.len() == bare.len();
        // A column called only `b` or `s` is a variable, not a unit.
        if alone && suffix.chars().count() < 2 { None } else { ColumnUnit::parse(suffix) }
    }
}

/// Returns whether a column of this name holds values that cannot be negative: its name carries a
/// unit, or contains a word for a time, a size, a rate or a count.
pub fn cannot_be_negative(name: &str) -> bool {
    const WORDS: [&str; 12] = [
        "time", "latency", "duration", "rtt", "delay", "size", "length", "bytes", "cores", "threads",
        "packets", "rate",
    ];
    let lower = name.to_lowercase();
    ColumnUnit::of_column(name).is_some_and(|unit| unit.dimension != Dimension::Share)
        || lower == "t"
        || lower.split(|c: char| !c.is_alphanumeric()).any(|word| WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_name_carries_its_unit() {
        let unit = |name| ColumnUnit::of_column(name).map(|u| (u.dimension, u.scale));
        assert_eq!(unit("T_ns"), Some((Dimension::Time, 1e-9)));
        assert_eq!(unit("time [us]"), Some((Dimension::Time, 1e-6)));
        assert_eq!(unit("rate (Mpps)"), Some((Dimension::Rate, 1e6)));
        assert_eq!(unit("frame_bytes"), Some((Dimension::Size, 1.0)));
        assert_eq!(unit("packets_per_second_both_directions"), Some((Dimension::Rate, 1.0)));
        assert_eq!(unit("Throughput (Gbit/s)"), Some((Dimension::BitRate, 1e9)));
        assert_eq!(unit("mpps"), Some((Dimension::Rate, 1e6)));
        for plain in ["p", "h", "s", "b", "cores", "class"] {
            assert_eq!(unit(plain), None, "{plain}");
        }
    }

    #[test]
    fn times_sizes_and_counts_cannot_be_negative() {
        for name in ["T", "time", "frame size", "rtt_avg", "x_ns"] {
            assert!(cannot_be_negative(name), "{name}");
        }
        for name in ["x", "offset", "slope"] {
            assert!(!cannot_be_negative(name), "{name}");
        }
    }
}
