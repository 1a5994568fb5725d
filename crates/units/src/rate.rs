//! Rates in bits per second, and the exact transmission time of a frame at a rate.

use crate::parse::{self, ParseError, ParseErrorKind, Unit};
use crate::{Bytes, Duration};
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

/// Picoseconds in one second.
const PS_PER_S: u64 = 1_000_000_000_000;

/// A rate on the wire, 1 bit/s … 200 Tbit/s. An unlimited rate is `None` of `Option<Rate>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rate(NonZeroU64);

/// The part of a transmission time below one picosecond: `numerator / rate` ps. It is carried from
/// one frame to the next within a busy period, so the sum over any number of frames is exact.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Fraction(u64);

impl Fraction {
    /// No remainder.
    pub const ZERO: Fraction = Fraction(0);
}

impl Rate {
    /// The fastest rate: 200 Tbit/s.
    pub const MAX: Rate = Rate(NonZeroU64::new(200_000_000_000_000).unwrap());

    /// Returns the rate of `bits` per second, or `None` for 0 and above [`Rate::MAX`].
    #[inline]
    pub const fn from_bps(bits: u64) -> Option<Rate> {
        match NonZeroU64::new(bits) {
            Some(n) if bits <= Rate::MAX.0.get() => Some(Rate(n)),
            _ => None,
        }
    }

    /// Returns the rate in bits per second.
    #[inline]
    pub const fn as_bps(self) -> u64 {
        self.0.get()
    }

    /// Returns the rate in megabits (10⁶ bits) per second, for reports; not exact.
    #[inline]
    pub fn as_mbit_f64(self) -> f64 {
        self.0.get() as f64 / 1e6
    }

    /// Returns the time for which `size` occupies the wire: whole picoseconds, and the remainder to
    /// carry to the next frame. `carried` is the remainder of the previous frame. Exact for sizes
    /// up to 2 GiB.
    pub fn transmission(self, size: Bytes, carried: Fraction) -> (Duration, Fraction) {
        let rate = self.0.get();
        // Frames up to 2.3 MB fit 64-bit arithmetic. Larger ones do not occur on real links and
        // take the slow path.
        match size.bits().checked_mul(PS_PER_S).and_then(|n| n.checked_add(carried.0)) {
            Some(n) => (Duration::from_ps(n / rate), Fraction(n % rate)),
            None => {
                let n = u128::from(size.bits()) * u128::from(PS_PER_S) + u128::from(carried.0);
                let whole = u64::try_from(n / u128::from(rate)).unwrap_or(u64::MAX);
                (Duration::from_ps(whole), Fraction((n % u128::from(rate)) as u64))
            }
        }
    }

    /// Adds the remainder `carried` to the transmission time of a frame, without a division.
    /// `(span, left)` is [`Rate::transmission`] of the frame with no remainder carried. The result
    /// equals [`Rate::transmission`] of the frame with `carried`.
    #[inline]
    pub const fn carry(self, (span, left): (Duration, Fraction), carried: Fraction) -> (Duration, Fraction) {
        // Both remainders are below the rate, so their sum is less than two picoseconds.
        let sum = left.0 + carried.0;
        match sum.checked_sub(self.0.get()) {
            Some(rest) => (span.saturating_add(Duration::from_ps(1)), Fraction(rest)),
            None => (span, Fraction(sum)),
        }
    }

    /// Converts a remaining transmission time to another rate. The bits that this rate sends in
    /// `left` plus the remainder `carried` take the returned time and remainder at the rate `to`.
    /// Exact; saturates at [`Duration::MAX`].
    #[inline]
    pub fn retimed(self, left: Duration, carried: Fraction, to: Rate) -> (Duration, Fraction) {
        let bits = u128::from(left.as_ps()) * u128::from(self.0.get()) + u128::from(carried.0);
        let new = u128::from(to.0.get());
        let whole = u64::try_from(bits / new).unwrap_or(u64::MAX);
        (Duration::from_ps(whole), Fraction((bits % new) as u64))
    }

    /// Returns the number of bits sent in `span`, rounded down.
    #[inline]
    pub fn bits_in(self, span: Duration) -> u64 {
        let bits = u128::from(self.0.get()) * u128::from(span.as_ps()) / u128::from(PS_PER_S);
        u64::try_from(bits).unwrap_or(u64::MAX)
    }

    /// Returns the number of bytes sent in `span`, rounded down: the bandwidth-delay product if
    /// `span` is a delay.
    #[inline]
    pub fn bytes_in(self, span: Duration) -> Bytes {
        Bytes(self.bits_in(span) / 8)
    }
}

const UNITS: &[Unit] = &[
    Unit { names: &["bit", "bit/s", "b", "bit/sec"], scale: 1 },
    Unit { names: &["kbit", "Kbit", "kb", "Kb", "kbit/s"], scale: 1_000 },
    Unit { names: &["Mbit", "mbit", "Mb", "mb", "Mbit/s"], scale: 1_000_000 },
    Unit { names: &["Gbit", "gbit", "Gb", "gb", "Gbit/s"], scale: 1_000_000_000 },
    Unit { names: &["Tbit", "tbit", "Tb", "tb", "Tbit/s"], scale: 1_000_000_000_000 },
];

impl FromStr for Rate {
    type Err = ParseError;
    /// Parses `10Mbit`, `1.5Mbit`, `256kbit`, `100Gbit`, `64000bit`. `b` means bits, as in ns-2.
    /// `bps` is refused: in tc(8) it is bytes per second, elsewhere bits.
    fn from_str(text: &str) -> Result<Rate, ParseError> {
        const EXAMPLE: &str = "10Mbit";
        if let Some(prefix) = text.trim().strip_suffix("bps") {
            let prefix = prefix.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ' ');
            let means = "bits per second to most programs and bytes per second to tc; \
                         write kbit, Mbit or Gbit, and eight times the number if bytes are meant";
            let reason = ParseErrorKind::Ambiguous(format!("{prefix}bps"), means);
            return Err(ParseError { text: text.trim().to_owned(), what: "rate", reason, example: EXAMPLE });
        }
        let bits = parse::quantity(text, "rate", UNITS, EXAMPLE)?;
        Rate::from_bps(bits).ok_or_else(|| ParseError {
            text: text.trim().to_owned(),
            what: "rate",
            reason: ParseErrorKind::OutOfRange("1bit … 200Tbit (leave it out for unlimited)"),
            example: EXAMPLE,
        })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units: &[(u64, &str)] = &[
            (1_000_000_000_000, "Tbit"),
            (1_000_000_000, "Gbit"),
            (1_000_000, "Mbit"),
            (1_000, "kbit"),
            (1, "bit"),
        ];
        parse::print(f, self.0.get(), units, "bit")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bps: u64) -> Rate {
        Rate::from_bps(bps).unwrap()
    }

    #[test]
    fn rates_parse_exactly_and_refuse_zero() {
        assert_eq!("1.5Mbit".parse(), Ok(rate(1_500_000)));
        assert_eq!("1.5Mb".parse(), Ok(rate(1_500_000)));
        assert_eq!("100Gbit".parse(), Ok(rate(100_000_000_000)));
        assert_eq!("7bit".parse(), Ok(rate(7)));
        for text in ["0bit", "0", "201Tbit", "ten", "10", "0.5bit", "10MB"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_unit_that_is_bytes_to_tc_and_bits_to_others_is_refused_with_the_reason() {
        for (text, unit) in
            [("10Mbps", "Mbps"), (" 2.5 Gbps ", "Gbps"), ("64000bps", "bps"), ("9kbps", "kbps")]
        {
            let said = text.parse::<Rate>().unwrap_err().to_string();
            let expected = format!("'{}' is not a rate: '{unit}' is bits per second to most", text.trim());
            assert!(said.starts_with(&expected) && said.ends_with("write for example 10Mbit"), "{said}");
        }
    }

    #[test]
    fn sixty_four_bytes_at_100_gbit_take_5120_ps() {
        assert_eq!(
            rate(100_000_000_000).transmission(Bytes(64), Fraction::ZERO),
            (Duration::from_ps(5120), Fraction::ZERO)
        );
    }

    #[test]
    fn the_remainder_is_carried_so_a_link_never_drifts() {
        // One byte at 3 bit/s takes 2.666… s; three of them take exactly 8 s.
        let mut carried = Fraction::ZERO;
        let mut total = Duration::ZERO;
        for _ in 0..3 {
            let (span, left) = rate(3).transmission(Bytes(1), carried);
            total += span;
            carried = left;
        }
        assert_eq!((total, carried), (Duration::from_secs(8), Fraction::ZERO));
    }

    proptest::proptest! {
        #[test]
        fn a_carried_remainder_can_be_added_after_the_division(bps in 1u64..=200_000_000_000_000, a: u32, b: u32) {
            let rate = rate(bps);
            let carried = rate.transmission(Bytes(a.into()), Fraction::ZERO).1;
            let alone = rate.transmission(Bytes(b.into()), Fraction::ZERO);
            assert_eq!(rate.carry(alone, carried), rate.transmission(Bytes(b.into()), carried));
        }
    }

    #[test]
    fn converting_a_remaining_time_to_another_rate_and_back_is_exact() {
        // Four bits take 1 s at 4 bit/s and 4/7 s at 7 bit/s.
        let (span, fraction) = rate(4).retimed(Duration::from_secs(1), Fraction::ZERO, rate(7));
        assert_eq!((span, fraction), (Duration::from_ps(571_428_571_428), Fraction(4)));
        assert_eq!(rate(7).retimed(span, fraction, rate(4)), (Duration::from_secs(1), Fraction::ZERO));
    }

    proptest::proptest! {
        #[test]
        fn any_sequence_of_frames_takes_exactly_its_bits_divided_by_the_rate(
            bps in 1u64..=200_000_000_000_000,
            sizes in proptest::collection::vec(0u64..3_000_000, 1..50),
        ) {
            let mut carried = Fraction::ZERO;
            let mut total = 0u128;
            for &size in &sizes {
                let (span, left) = rate(bps).transmission(Bytes(size), carried);
                total += u128::from(span.as_ps());
                carried = left;
            }
            let bits: u128 = sizes.iter().map(|&s| u128::from(s) * 8).sum();
            proptest::prop_assert_eq!(total, bits * u128::from(PS_PER_S) / u128::from(bps));
        }

        #[test]
        fn a_printed_rate_parses_to_the_same_value(bps in 1u64..=200_000_000_000_000) {
            proptest::prop_assert_eq!(rate(bps).to_string().parse::<Rate>(), Ok(rate(bps)));
        }
    }
}
