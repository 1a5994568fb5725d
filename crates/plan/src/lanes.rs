//! Packing: the bits of a key that a set of rules compares, in as few 64-bit lanes as possible.
//!
//! A five-tuple is in five words of the key but fits two lanes, so comparing and hashing it costs
//! two operations instead of five. Generated code can pack directly from the packet's headers.

use fastpath_switch::field::WORDS;
use fastpath_switch::{Match, Term};

/// The words of a key, or of a mask or value laid out like a key.
pub(crate) type KeyWords = [u64; WORDS];

/// One piece of a packing: `lanes[lane] |= ((words[word] >> shift) & mask) << at`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The word of the key.
    pub word: u8,
    /// The lowest bit in that word.
    pub shift: u8,
    /// As many ones as the piece has bits.
    pub mask: u64,
    /// The lane.
    pub lane: u8,
    /// The lowest bit in the lane.
    pub at: u8,
}

/// A packing of keys into lanes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lanes {
    pieces: Vec<Piece>,
    count: usize,
}

impl Lanes {
    /// Returns a packing that keeps the bits of `wanted`: of each word the span from its lowest to
    /// its highest bit. The longest spans are placed first, each in the first lane with room.
    pub(crate) fn of(wanted: &KeyWords) -> Lanes {
        let span = |word: &u64| 64 - word.leading_zeros() - word.trailing_zeros();
        let mut words: Vec<usize> = (0..WORDS).filter(|word| wanted[*word] != 0).collect();
        words.sort_by_key(|word| (64 - span(&wanted[*word]), *word));
        let mut used: Vec<u32> = Vec::new();
        let mut pieces = Vec::new();
        for word in words {
            let bits = span(&wanted[word]);
            let lane = used.iter().position(|taken| taken + bits <= 64).unwrap_or_else(|| {
                used.push(0);
                used.len() - 1
            });
            let shift = wanted[word].trailing_zeros() as u8;
            let (at, mask) = (used[lane] as u8, u64::MAX >> (64 - bits));
            pieces.push(Piece { word: word as u8, shift, mask, lane: lane as u8, at });
            used[lane] += bits;
        }
        Lanes { pieces, count: used.len().max(1) }
    }

    /// Returns the number of lanes; at least 1.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the pieces, for generated code.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Packs a key, or a mask or value laid out like a key. `N` is a power of two, at least
    /// [`Lanes::count`].
    #[inline]
    pub fn pack<const N: usize>(&self, words: &[u64; WORDS]) -> [u64; N] {
        let mut lanes = [0; N];
        for piece in &self.pieces {
            let bits = (words[usize::from(piece.word)] >> piece.shift) & piece.mask;
            lanes[usize::from(piece.lane) % N] |= bits << piece.at;
        }
        lanes
    }
}

/// Returns the masks and values of a match, laid out like a key.
pub(crate) fn spread(matching: &Match) -> (KeyWords, KeyWords) {
    let (mut masks, mut values) = ([0; WORDS], [0; WORDS]);
    for Term { word, mask, value } in matching.terms() {
        masks[usize::from(*word)] = *mask;
        values[usize::from(*word)] = *value;
    }
    (masks, values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_five_tuple_fits_two_lanes() {
        let mut wanted = [0; WORDS];
        wanted[4] = 0xff << 48;
        wanted[6] = u64::MAX;
        wanted[7] = 0xffff_ffff;
        let lanes = Lanes::of(&wanted);
        assert_eq!(lanes.count(), 2);
        let mut words = [0; WORDS];
        (words[4], words[6], words[7]) = (0x11 << 48 | 5, 0x0a00_0001_0a00_0002, 0x0035_1234);
        assert_eq!(lanes.pack::<2>(&words), [0x0a00_0001_0a00_0002, 0x11_0035_1234]);
    }

    proptest! {
        #[test]
        fn packing_loses_no_bit_that_is_wanted(wanted: [u64; WORDS], a: [u64; WORDS], b: [u64; WORDS], sparse: [bool; WORDS]) {
            let wanted: KeyWords = std::array::from_fn(|i| if sparse[i] { wanted[i] & wanted[(i + 1) % WORDS] } else { 0 });
            let lanes = Lanes::of(&wanted);
            let masked = |words: &KeyWords| -> KeyWords { std::array::from_fn(|i| words[i] & wanted[i]) };
            let (a, b) = (masked(&a), masked(&b));
            prop_assert_eq!(lanes.pack::<32>(&a) == lanes.pack::<32>(&b), a == b);
            prop_assert_eq!(lanes.pack::<32>(&a), lanes.pack::<32>(&a));
        }
    }
}
