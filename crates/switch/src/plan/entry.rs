//! A rule over packed lanes, and the chain of rules compared one after the other.

use super::NONE;

/// A rule: keys with `key & mask == value`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<const N: usize> {
    /// Bits that count.
    pub mask: [u64; N],
    /// What they must be.
    pub value: [u64; N],
    /// The rule.
    pub rule: u32,
}

impl<const N: usize> Entry<N> {
    /// Whether a packed key is meant.
    #[inline]
    pub(crate) fn matches(&self, key: &[u64; N]) -> bool {
        // Without branches: most rules differ somewhere, but not always in the first lane.
        let differences: [u64; N] =
            std::array::from_fn(|lane| (key[lane] & self.mask[lane]) ^ self.value[lane]);
        differences.iter().fold(0, |all, difference| all | difference) == 0
    }
}

/// The first of `entries`, which are in the order of priority, that matches and is before the rule
/// `bound`.
#[inline]
pub(crate) fn first<const N: usize>(entries: &[Entry<N>], key: &[u64; N], bound: u32) -> u32 {
    for entry in entries {
        if entry.rule >= bound {
            return NONE;
        }
        if entry.matches(key) {
            return entry.rule;
        }
    }
    NONE
}
