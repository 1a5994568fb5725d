//! Longest-prefix tables: a first level indexed by 16 or 24 bits, then nodes of 256 entries per
//! byte.
//!
//! With 24 bits this is DIR-24-8 (Gupta, Lin, McKeown 1998): one memory access for nearly every
//! IPv4 route, in 64 MiB. With 16 bits it fits the cache if routes are few, and also serves IPv6.
//! Rules are written from the last to the first, so priorities need not follow prefix lengths.

use crate::NONE;
use crate::lanes::KeyWords;

/// Set in an entry that is the number of a node; otherwise the entry is a rule or [`Trie::EMPTY`].
const NODE: u32 = 1 << 31;
/// The entry for no rule.
const EMPTY: u32 = NODE - 1;
/// The number of rules from which the 64 MiB first level of 24 bits pays. With fewer, most keys end
/// in the 256 KiB of 16 bits.
const WIDE_MIN: usize = 65_536;

/// The bits of a key that the prefixes apply to: a part of one word, or two whole words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyBits {
    /// The word with the highest bits.
    pub word: u8,
    /// The lowest bit of the field in that word.
    pub shift: u8,
    /// The width of the field: 17 to 64; or 128 for that word and the next.
    pub bits: u8,
}

/// A rule as a prefix; the value is left-aligned in 128 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Prefix {
    pub(crate) value: u128,
    pub(crate) len: u32,
    pub(crate) rule: u32,
}

/// A longest-prefix table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trie {
    part: KeyBits,
    first_bits: u32,
    first: Vec<u32>,
    nodes: Vec<u32>,
    /// For each prefix, in the given order, the entry that it replaced.
    below: Vec<u32>,
}

/// In [`Trie::below`]: the prefix replaced more than one entry.
const MIXED: u32 = NODE;

impl Trie {
    /// Set in an entry that is the number of a node; otherwise the entry is a rule or
    /// [`Trie::EMPTY`].
    pub const NODE: u32 = NODE;
    /// The entry for no rule.
    pub const EMPTY: u32 = EMPTY;

    /// Builds the table of prefixes, which are in the order of priority, highest first.
    pub(crate) fn new(part: KeyBits, prefixes: &[Prefix]) -> Trie {
        let is_wide = prefixes.len() >= WIDE_MIN && part.bits >= 32;
        let first_bits = if is_wide { 24 } else { 16 };
        let (first, below) = (vec![EMPTY; 1 << first_bits], vec![MIXED; prefixes.len()]);
        let mut trie = Trie { part, first_bits, first, nodes: Vec::new(), below };
        for (place, prefix) in prefixes.iter().enumerate().rev() {
            trie.below[place] = trie.paint(prefix);
        }
        trie
    }

    /// Returns the rules that would be found, in order, if the prefix at `index` and then those
    /// before each were removed. `members` holds the rules of the prefixes in the given order.
    /// `None` if the answer differs within the prefix.
    pub(crate) fn beneath(&self, index: usize, members: &[u32]) -> Option<Vec<u32>> {
        let mut rules = Vec::new();
        let mut below = self.below[index];
        while below != EMPTY {
            if below == MIXED {
                return None;
            }
            rules.push(below);
            below = self.below[members.binary_search(&below).ok()?];
        }
        Some(rules)
    }

    /// Returns whether [`Trie::beneath`] has an answer for every prefix.
    pub(crate) fn knows_beneath(&self) -> bool {
        !self.below.contains(&MIXED)
    }

    /// Returns the bits of the key that it looks up.
    pub fn part(&self) -> KeyBits {
        self.part
    }

    /// Returns the number of bits that index the first level.
    pub fn first_bits(&self) -> u32 {
        self.first_bits
    }

    /// Returns the first level: for every value of the highest bits a rule, [`Trie::EMPTY`], or the
    /// number of a node with [`Trie::NODE`] set.
    pub fn first(&self) -> &[u32] {
        &self.first
    }

    /// Returns the nodes, each with 256 entries for the next eight bits.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// Returns the memory it uses, in bytes.
    pub fn bytes(&self) -> usize {
        (self.first.len() + self.nodes.len() + self.below.len()) * 4
    }

    /// Returns the rule for a key, or [`NONE`].
    #[inline]
    pub(crate) fn find(&self, words: &KeyWords) -> u32 {
        let KeyBits { word, shift, bits } = self.part;
        let word = usize::from(word);
        let high = (words[word] >> shift) << (64 - u32::from(bits.min(64)));
        let mut entry = self.first[(high >> (64 - self.first_bits)) as usize];
        let mut at = self.first_bits;
        while entry & NODE != 0 {
            let byte = if at < 64 { (high << at) >> 56 } else { (words[word + 1] << (at - 64)) >> 56 };
            entry = self.nodes[((entry & !NODE) as usize) << 8 | byte as usize];
            at += 8;
        }
        if entry == EMPTY { NONE } else { entry }
    }

    /// Writes a prefix over the existing entries; returns what they were.
    fn paint(&mut self, prefix: &Prefix) -> u32 {
        let index = (prefix.value >> (128 - self.first_bits)) as usize;
        if prefix.len <= self.first_bits {
            let count = 1 << (self.first_bits - prefix.len);
            return fill(&mut self.first[index..index + count], prefix.rule);
        }
        let entry = self.first[index];
        let mut node = self.node_for(entry);
        self.first[index] = NODE | node;
        let mut at = self.first_bits;
        loop {
            let slot = (node as usize) << 8 | (prefix.value << at >> 120) as usize;
            at += 8;
            if prefix.len <= at {
                let count = 1 << (at - prefix.len);
                return fill(&mut self.nodes[slot..slot + count], prefix.rule);
            }
            node = self.node_for(self.nodes[slot]);
            self.nodes[slot] = NODE | node;
        }
    }

    /// Returns the node that an entry names, or a new one filled with the entry's rule.
    fn node_for(&mut self, entry: u32) -> u32 {
        if entry & NODE != 0 {
            return entry & !NODE;
        }
        let node = (self.nodes.len() >> 8) as u32;
        self.nodes.resize(self.nodes.len() + 256, entry);
        node
    }
}

/// Fills entries and returns what they all were, or [`MIXED`].
fn fill(entries: &mut [u32], rule: u32) -> u32 {
    let was = entries[0];
    let is_one = was & NODE == 0 && entries.iter().all(|entry| *entry == was);
    entries.fill(rule);
    if is_one { was } else { MIXED }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(prefixes: &[Prefix], value: u128) -> u32 {
        let matches = |p: &&Prefix| p.len == 0 || (p.value ^ value) >> (128 - p.len) == 0;
        prefixes.iter().find(matches).map_or(NONE, |p| p.rule)
    }

    proptest! {
        #[test]
        fn the_first_prefix_that_matches_is_found(
            raw in prop::collection::vec((any::<u128>(), 0u32..=128, 0u32..3), 0..60),
            keys in prop::collection::vec((any::<u128>(), 0usize..60), 1..40),
            bits in prop::sample::select(vec![32u8, 48, 64, 128]),
        ) {
            // Few distinct high bits, so that prefixes nest.
            let prefixes: Vec<Prefix> = raw.iter().enumerate().map(|(i, (value, len, top))| {
                let len = (*len).min(bits.into());
                let value = value >> 12 | u128::from(*top) << 126;
                Prefix { value: if len == 0 { 0 } else { value >> (128 - len) << (128 - len) }, len, rule: i as u32 }
            }).collect();
            let part = KeyBits { word: 3, shift: 64u8.saturating_sub(bits), bits };
            let trie = Trie::new(part, &prefixes);
            for (value, near) in keys {
                // Most keys are near a prefix: they share its bits and differ below.
                let near = prefixes.get(near).map_or(0, |p| p.value);
                let value = if value & 1 == 0 { value } else { near | value >> 20 };
                let value = value >> (128 - bits) << (128 - bits);
                let mut words = [0; fastpath_switch::field::WORDS];
                words[3] = (value >> 64) as u64;
                words[4] = value as u64;
                prop_assert_eq!(trie.find(&words), naive(&prefixes, value));
            }
        }
    }
}
