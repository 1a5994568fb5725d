//! Instants as exact fractions.

use fastpath_units::{Rate, Time};

pub(super) const PS_PER_S: u128 = 1_000_000_000_000;

/// An instant as a fraction of picoseconds. At one rate every denominator is that rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exact {
    pub(super) numerator: u128,
    pub(super) denominator: u128,
}

impl Exact {
    pub(super) fn at(time: Time) -> Exact {
        Exact { numerator: u128::from(time.as_ps()), denominator: 1 }
    }

    pub(super) fn floor(self) -> Time {
        Time::from_ps(u64::try_from(self.numerator / self.denominator).expect("within 213 days"))
    }

    pub(super) fn is_before(self, time: Time) -> bool {
        self.numerator < u128::from(time.as_ps()) * self.denominator
    }

    /// Returns `self` + `bits`/`rate` seconds.
    pub(super) fn plus_bits(self, bits: u128, rate: Rate) -> Exact {
        let rate = u128::from(rate.as_bps());
        let numerator = match self.denominator {
            1 => self.numerator * rate,
            _ => {
                assert_eq!(self.denominator, rate, "a busy period has one rate");
                self.numerator
            }
        };
        Exact { numerator: numerator + bits * PS_PER_S, denominator: rate }
    }
}
