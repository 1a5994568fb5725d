//! Rules under one mask: a hash table with linear probing, at most half full.

use crate::NONE;
use crate::entry::Entry;
use fastpath_switch::mix::mix;

/// A hash of masked keys; each slot holds a value and its rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hash<const N: usize> {
    mask: [u64; N],
    slots: Vec<HashSlot<N>>,
    /// Whether a rule is hidden behind another of the same value.
    hides: bool,
}

/// A value and its rule, laid out for generated code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct HashSlot<const N: usize> {
    /// The masked key.
    pub value: [u64; N],
    /// Its rule; `u32::MAX` in a free slot.
    pub rule: u32,
}

impl<const N: usize> Hash<N> {
    /// Builds the table of entries in the order of priority, all with the mask of the first.
    pub(crate) fn new(entries: &[Entry<N>]) -> Hash<N> {
        let mask = entries.first().map_or([0; N], |entry| entry.mask);
        let empty = HashSlot { value: [0; N], rule: NONE };
        let mut table =
            Hash { mask, slots: vec![empty; (entries.len() * 2).next_power_of_two().max(2)], hides: false };
        for entry in entries {
            debug_assert_eq!(entry.mask, mask);
            let at = table.probe(&entry.value);
            // Of equal values, the first has the higher priority.
            if table.slots[at].rule == NONE {
                table.slots[at] = HashSlot { value: entry.value, rule: entry.rule };
            } else {
                table.hides = true;
            }
        }
        table
    }

    /// Returns the bits of a packed key to compare.
    pub fn mask(&self) -> &[u64; N] {
        &self.mask
    }

    /// Returns the slots; their number is a power of two. A value is at its [`mix`] or behind,
    /// without a free slot between.
    pub fn slots(&self) -> &[HashSlot<N>] {
        &self.slots
    }

    /// Returns whether a rule is hidden behind another of the same value, so that it is never
    /// found.
    pub(crate) fn hides(&self) -> bool {
        self.hides
    }

    /// Returns the memory it uses, in bytes.
    pub fn bytes(&self) -> usize {
        self.slots.len() * size_of::<HashSlot<N>>()
    }

    /// Returns the rule for a packed key, or [`NONE`].
    #[inline]
    pub(crate) fn find(&self, key: &[u64; N]) -> u32 {
        let masked: [u64; N] = std::array::from_fn(|lane| key[lane] & self.mask[lane]);
        self.slots[self.probe(&masked)].rule
    }

    /// Returns the slot of the value, or the free slot where it would be. Half the slots are free,
    /// so the search ends.
    #[inline]
    fn probe(&self, value: &[u64; N]) -> usize {
        let last = self.slots.len() - 1;
        let mut at = mix(value) as usize & last;
        while self.slots[at].rule != NONE && self.slots[at].value != *value {
            at = (at + 1) & last;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_in_is_found_and_nothing_else(values in prop::collection::vec([0u64..40, 0u64..3], 0..100), keys in prop::collection::vec([0u64..80, 0u64..8], 0..50)) {
            let mask = [0x3f, 3];
            let entry = |(i, value): (usize, &[u64; 2])| Entry { mask, value: *value, rule: i as u32 };
            let entries: Vec<_> = values.iter().enumerate().map(entry).collect();
            let table = Hash::new(&entries);
            for key in keys {
                let naive = entries.iter().find(|e| e.matches(&key)).map_or(NONE, |e| e.rule);
                // An empty table has no mask and finds nothing.
                prop_assert_eq!(table.find(&key), naive);
            }
        }
    }
}
