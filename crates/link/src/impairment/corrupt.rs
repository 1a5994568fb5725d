//! Corruption: flipped bits. The pipe decides which bits. The owner of the bytes flips them and
//! leaves all checksums as they are.

use super::chance::{Chance, ChanceState};
use fastpath_units::{Probability, Rng, math};
use std::collections::BTreeSet;
use std::num::NonZeroU32;

/// Which packets are corrupted, and how.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum CorruptSpec {
    /// One bit of each selected packet is flipped, as in netem.
    Packets(Chance),
    /// Every bit is flipped with this probability, independently.
    Bits(Probability),
}

/// The bits flipped in one packet: their number, and the seed that selects them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Corruption {
    flips: NonZeroU32,
    seed: u32,
}

impl Corruption {
    /// A flipped bit, of which only that is known.
    pub fn of_one_bit() -> Corruption {
        Corruption { flips: NonZeroU32::MIN, seed: 0 }
    }

    /// Returns the number of bits.
    pub fn flips(&self) -> u32 {
        self.flips.get()
    }

    /// Flips that many different bits of `bytes`, all equally likely; all bits if there are fewer.
    /// The selection depends only on the corruption and the length.
    pub fn apply(&self, bytes: &mut [u8]) {
        let bits = bytes.len() as u64 * 8;
        let mut rng = Rng::new(u64::from(self.seed));
        let mut chosen = BTreeSet::new();
        // R. Floyd's sampling: each of bits − flips … bits − 1 adds one new bit.
        for last in bits.saturating_sub(u64::from(self.flips.get()))..bits {
            let bit = rng.below(last + 1);
            let bit = if chosen.insert(bit) { bit } else { last };
            chosen.insert(bit);
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
    }
}

/// The state of a corruption law.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Corruptor {
    spec: CorruptSpec,
    law: Law,
}

#[derive(Clone, Copy, Debug)]
enum Law {
    Packets(ChanceState),
    /// Correct bits before the next error; `None` before the first draw.
    Bits(Option<u64>),
}

impl Corruptor {
    pub(crate) fn new(spec: CorruptSpec) -> Corruptor {
        let law = match spec {
            CorruptSpec::Packets(chance) => Law::Packets(ChanceState::new(chance)),
            CorruptSpec::Bits(_) => Law::Bits(None),
        };
        Corruptor { spec, law }
    }

    pub(crate) fn spec(&self) -> CorruptSpec {
        self.spec
    }

    /// Draws the corruption of a packet of `len` bytes.
    pub(crate) fn draw(&mut self, len: u32, rng: &mut Rng) -> Option<Corruption> {
        let flips = match (&mut self.law, self.spec) {
            (Law::Packets(chance), _) => u32::from(chance.draw(rng)),
            (Law::Bits(before), CorruptSpec::Bits(p)) => errors(before, u64::from(len) * 8, p, rng),
            (Law::Bits(_), CorruptSpec::Packets(_)) => 0,
        };
        NonZeroU32::new(flips).map(|flips| Corruption { flips, seed: rng.next_u64() as u32 })
    }
}

/// Returns the number of errors in the next `bits` of a stream with the bit error ratio `p`: one
/// draw per error.
fn errors(before: &mut Option<u64>, bits: u64, p: Probability, rng: &mut Rng) -> u32 {
    let mut found = 0;
    let mut left = bits;
    let mut gap = before.take().unwrap_or_else(|| good_bits(p, rng));
    while gap < left {
        found += 1;
        left -= gap + 1;
        gap = good_bits(p, rng);
    }
    *before = Some(gap - left);
    found
}

/// Draws the number of correct bits before the next error: geometric, ⌊ln U / ln(1 − p)⌋.
fn good_bits(p: Probability, rng: &mut Rng) -> u64 {
    let p = p.get();
    if p <= 0.0 {
        return u64::MAX;
    }
    if p >= 1.0 {
        return 0;
    }
    // 1 − p loses digits of a small p. There ln(1 − p) is −p − p²/2 to all digits.
    let log = if p < 1e-6 { -p - p * p / 2.0 } else { math::ln(1.0 - p) };
    (math::ln(1.0 - rng.unit_f64()) / log) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(p: f64) -> Probability {
        Probability::new(p).expect("a probability")
    }

    #[test]
    fn the_requested_number_of_different_bits_is_flipped() {
        for flips in [1, 2, 7, 79, 80, 100] {
            let corruption = Corruption { flips: NonZeroU32::new(flips).expect("above 0"), seed: flips };
            let mut bytes = [0u8; 10];
            corruption.apply(&mut bytes);
            assert_eq!(bytes.iter().map(|byte| byte.count_ones()).sum::<u32>(), flips.min(80));
            let mut again = [0u8; 10];
            corruption.apply(&mut again);
            assert_eq!(again, bytes);
            corruption.apply(&mut []);
        }
    }

    #[test]
    fn every_bit_is_hit_equally_often() {
        // 40 000 single flips over 80 bits: χ² with 79 degrees of freedom, 99.9 % quantile 124.8.
        let mut corruptor = Corruptor::new(CorruptSpec::Packets(p(1.0).into()));
        let mut rng = Rng::new(2);
        let mut hits = [0f64; 80];
        for _ in 0..40_000 {
            let mut bytes = [0u8; 10];
            corruptor.draw(10, &mut rng).expect("always").apply(&mut bytes);
            let bit = bytes
                .iter()
                .enumerate()
                .map(|(i, byte)| i * 8 + byte.trailing_zeros() as usize * usize::from(*byte > 0));
            let index = bytes.iter().position(|byte| *byte > 0).expect("one bit");
            hits[bit.clone().nth(index).expect("it is there")] += 1.0;
        }
        let chi2: f64 = hits.iter().map(|n| (n - 500.0).powi(2) / 500.0).sum();
        assert!(chi2 < 124.8, "{chi2}");
    }

    #[test]
    fn bit_errors_come_at_their_rate_over_packets_of_any_length() {
        for (seed, ber) in [(1, 1e-5), (2, 1e-3), (3, 0.2)] {
            let mut corruptor = Corruptor::new(CorruptSpec::Bits(p(ber)));
            let mut rng = Rng::new(seed);
            let (mut bits, mut errors) = (0.0, 0.0);
            for i in 0..20_000 {
                let len = [64, 1500, 1][i % 3];
                bits += f64::from(len) * 8.0;
                errors += corruptor.draw(len, &mut rng).map_or(0.0, |hit| f64::from(hit.flips()));
            }
            // ± 3.291 σ of the binomial.
            assert!(
                (errors - bits * ber).abs() <= 3.291 * (bits * ber * (1.0 - ber)).sqrt(),
                "{ber}: {errors}"
            );
        }
    }

    #[test]
    fn no_errors_and_only_errors_are_exact() {
        let mut rng = Rng::new(1);
        let mut draw = |ber, len| Corruptor::new(CorruptSpec::Bits(p(ber))).draw(len, &mut rng);
        assert_eq!(draw(0.0, u32::MAX), None);
        assert_eq!(draw(1.0, 3).map(|hit| hit.flips()), Some(24));
    }
}
