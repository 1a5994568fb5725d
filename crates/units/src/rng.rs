//! The random generator: xoshiro256++ 1.0 (Blackman & Vigna, <https://prng.di.unimi.it/>), seeded
//! by SplitMix64 as its authors recommend. The algorithm is frozen: a seed gives the same numbers
//! in every release.

/// A seeded random generator with a period of 2²⁵⁶−1. Its state is 32 bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// Returns the generator for `seed`.
    pub fn new(seed: u64) -> Rng {
        let mut x = seed;
        let mut next = || {
            x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = x;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Rng { state: [next(), next(), next(), next()] }
    }

    /// Returns an independent generator for the consumer numbered `stream` of a run with `seed`.
    #[inline]
    pub fn stream(seed: u64, stream: u64) -> Rng {
        // The generator mixes the stream number, so adjacent numbers give unrelated states.
        let mixed = Rng::new(stream).next_u64();
        Rng::new(seed ^ mixed)
    }

    /// Returns its state, for another implementation that continues it.
    pub fn state(&self) -> [u64; 4] {
        self.state
    }

    /// Returns 64 uniform bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Returns a uniform number in [0, 1) with 53 random bits.
    #[inline]
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns a uniform number in `0..bound`, without bias (Lemire 2019). Panics if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "below(0) has no value to draw");
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            let low = product as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_frozen() {
        // First outputs of the authors' C code for the state {1, 2, 3, 4}.
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| rng.next_u64()).collect();
        assert_eq!(first, [41943041, 58720359, 3588806011781223, 3591011842654386]);
    }

    #[test]
    fn the_seeding_is_frozen() {
        // First outputs of SplitMix64 for seed 0, from its authors' C code.
        assert_eq!(Rng::new(0).state[0], 0xe220_a839_7b1d_cdaf);
        assert_eq!(Rng::new(0).state[1], 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn streams_of_one_seed_differ() {
        let firsts: std::collections::BTreeSet<u64> =
            (0..1000).map(|i| Rng::stream(7, i).next_u64()).collect();
        assert_eq!(firsts.len(), 1000);
    }

    #[test]
    fn below_is_uniform() {
        // 27.9 is the 99.9 % quantile of χ² with 9 degrees of freedom.
        let mut rng = Rng::new(3);
        let mut counts = [0f64; 10];
        for _ in 0..100_000 {
            counts[rng.below(10) as usize] += 1.0;
        }
        let chi2: f64 = counts.iter().map(|c| (c - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi2 < 27.9, "{chi2}");
    }
}
