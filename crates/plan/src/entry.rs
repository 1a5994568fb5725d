//! A rule over packed lanes, and the comparison of rules one by one.

use crate::NONE;

/// A rule: it matches keys with `key & mask == value`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<const N: usize> {
    /// The bits to compare.
    pub mask: [u64; N],
    /// Their required values.
    pub value: [u64; N],
    /// The number of the rule.
    pub rule: u32,
}

impl<const N: usize> Entry<N> {
    /// Returns whether a packed key matches.
    #[inline]
    pub(crate) fn matches(&self, key: &[u64; N]) -> bool {
        // No branches: most rules differ somewhere, but not always in the first lane.
        let differences: [u64; N] =
            std::array::from_fn(|lane| (key[lane] & self.mask[lane]) ^ self.value[lane]);
        differences.iter().fold(0, |all, difference| all | difference) == 0
    }
}

/// Returns the first of `entries`, which are in the order of priority, that matches and precedes
/// the rule `bound`.
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
