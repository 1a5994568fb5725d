//! Sizes in bytes.

use crate::parse::{self, ParseError, Unit};
use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bytes(pub u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Bytes = Bytes(0);

    /// Returns the size in bits, saturating above 2 EiB.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0.saturating_mul(8)
    }
}

impl Add for Bytes {
    type Output = Bytes;
    #[inline]
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    #[inline]
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    #[inline]
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    #[inline]
    fn sub_assign(&mut self, other: Bytes) {
        self.0 -= other.0;
    }
}

const UNITS: &[Unit] = &[
    Unit { names: &["B", "b"], scale: 1 },
    Unit { names: &["KiB", "k", "kb", "Kib"], scale: 1 << 10 },
    Unit { names: &["kB", "KB"], scale: 1_000 },
    Unit { names: &["MiB", "m", "mb"], scale: 1 << 20 },
    Unit { names: &["MB"], scale: 1_000_000 },
    Unit { names: &["GiB", "g", "gb"], scale: 1 << 30 },
    Unit { names: &["GB"], scale: 1_000_000_000 },
];

impl FromStr for Bytes {
    type Err = ParseError;
    /// Parses `64KiB`, `1500B`, `10MB`. `k`, `kb`, `m` and `mb` are powers of 1024, as in tc(8).
    fn from_str(text: &str) -> Result<Bytes, ParseError> {
        parse::quantity(text, "size", UNITS, "64KiB").map(Bytes)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units: &[(u64, &str)] = if self.0.is_multiple_of(1024) {
            &[(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")]
        } else {
            &[(1, "B")]
        };
        parse::print(f, self.0, units, "B")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse_in_binary_and_decimal_units() {
        for (text, bytes) in [("64KiB", 65536), ("64kB", 64000), ("1.5k", 1536), ("1500B", 1500), ("0", 0)] {
            assert_eq!(text.parse::<Bytes>(), Ok(Bytes(bytes)), "{text}");
        }
        assert!("1500".parse::<Bytes>().unwrap_err().to_string().contains("unit is missing"));
    }

    proptest::proptest! {
        #[test]
        fn a_printed_size_parses_to_the_same_value(n: u64) {
            proptest::prop_assert_eq!(Bytes(n).to_string().parse::<Bytes>(), Ok(Bytes(n)));
        }
    }
}
