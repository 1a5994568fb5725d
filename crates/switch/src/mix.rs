//! The hash function of the tables of a switch. Generated code computes the same.

/// Returns a hash whose low bits depend on every bit of the value.
#[inline]
pub fn mix<const N: usize>(value: &[u64; N]) -> u64 {
    let mut hash = 0u64;
    for lane in value {
        let product = u128::from(hash ^ lane ^ OFFSET) * u128::from(MULTIPLIER);
        hash = (product >> 64) as u64 ^ product as u64;
    }
    hash
}

/// Returns the hash of words, as [`mix`] does of a value.
#[inline]
pub fn hash_of(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0u64, |hash, word| {
        let product = u128::from(hash ^ word ^ OFFSET) * u128::from(MULTIPLIER);
        (product >> 64) as u64 ^ product as u64
    })
}

/// Combined with every lane, so that zeros change the hash.
pub const OFFSET: u64 = 0x9e37_79b9_7f4a_7c15;
/// An odd number with well-spread bits.
pub const MULTIPLIER: u64 = 0xd6e8_feb8_6659_fd93;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_counting_values_spread_over_the_low_bits() {
        // χ² with 255 degrees of freedom: 340 is beyond its 99.9 % quantile (330.5).
        for shift in [0, 16, 32, 48] {
            let mut counts = [0f64; 256];
            (0..25_600u64).for_each(|i| counts[mix(&[i << shift]) as usize & 255] += 1.0);
            let chi2: f64 = counts.iter().map(|c| (c - 100.0).powi(2) / 100.0).sum();
            assert!(chi2 < 340.0, "shift {shift}: {chi2}");
        }
    }
}
