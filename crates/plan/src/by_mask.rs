//! Rules by the bits that they compare (tuple space search): finds the first rule for a packet that
//! also passes a test, in a time that grows with the masks and not with the rules. It serves
//! packets whose rule was changed after the base was built.

use crate::NONE;
use crate::lanes::KeyWords;
use fastpath_switch::Match;
use fastpath_switch::mix::hash_of;
use std::collections::BTreeMap;

/// Rules, in the order of lookup.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ByMask {
    /// The one with the first rule first.
    groups: Vec<MaskGroup>,
    /// The rule of each place, ascending.
    rules: Box<[u32]>,
    /// The next place of the same slot, or [`NONE`].
    next: Box<[u32]>,
}

/// The rules that compare the same bits.
#[derive(Clone, PartialEq, Eq, Debug)]
struct MaskGroup {
    /// The bits, by word.
    mask: Vec<(u8, u64)>,
    /// The first of its rules.
    best: u32,
    /// By hash, a power of two: the place of the first rule, or [`NONE`].
    slots: Box<[u32]>,
}

impl ByMask {
    /// Builds the structure of rules with ascending numbers.
    pub(super) fn new<'a>(rules: impl Iterator<Item = (u32, &'a Match)>) -> ByMask {
        let mut places: BTreeMap<Vec<(u8, u64)>, Vec<u32>> = BTreeMap::new();
        let (mut numbers, mut matches) = (Vec::new(), Vec::new());
        for (place, (number, matching)) in (0..).zip(rules) {
            let mask = matching.terms().iter().map(|term| (term.word, term.mask)).collect();
            places.entry(mask).or_default().push(place);
            numbers.push(number);
            matches.push(matching);
        }
        let mut next = vec![NONE; numbers.len()];
        let mut group = |(mask, places): (Vec<(u8, u64)>, Vec<u32>)| {
            let mut slots = vec![NONE; (2 * places.len()).next_power_of_two()];
            // From the last on, so that the first is found first.
            for place in places.iter().rev() {
                let values = matches[*place as usize].terms().iter().map(|term| term.value);
                let slot = hash_of(values) as usize & (slots.len() - 1);
                next[*place as usize] = std::mem::replace(&mut slots[slot], *place);
            }
            MaskGroup { mask, best: numbers[places[0] as usize], slots: slots.into() }
        };
        let mut groups: Vec<MaskGroup> = places.into_iter().map(&mut group).collect();
        groups.sort_by_key(|group| group.best);
        ByMask { groups, rules: numbers.into(), next: next.into() }
    }

    /// Returns the first rule before `bound` that may match these words and that passes the test;
    /// else `bound`.
    pub(super) fn first(&self, words: &KeyWords, bound: u32, mut passes: impl FnMut(u32) -> bool) -> u32 {
        let mut best = bound;
        for MaskGroup { mask, best: first, slots } in &self.groups {
            if *first >= best {
                break;
            }
            let hash = hash_of(mask.iter().map(|(word, mask)| words[usize::from(*word)] & mask));
            let mut place = slots[hash as usize & (slots.len() - 1)];
            while place != NONE && self.rules[place as usize] < best {
                if passes(self.rules[place as usize]) {
                    best = self.rules[place as usize];
                }
                place = self.next[place as usize];
            }
        }
        best
    }

    /// Returns the memory it uses, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let group = |group: &MaskGroup| size_of_val(&group.slots[..]) + size_of_val(&group.mask[..]);
        self.groups.iter().map(group).sum::<usize>()
            + size_of_val(&self.rules[..])
            + size_of_val(&self.next[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_switch::workload;
    use fastpath_units::Rng;

    #[test]
    fn the_first_living_rule_is_found_whichever_are_gone() {
        let mut rng = Rng::new(5);
        let mut filters = workload::filters(400, 6);
        filters.extend(workload::routes(400, 7));
        let keys = workload::matching_keys(&filters, 500, 8);
        let rules = || (0..).zip(filters.iter().map(|(_, matching)| matching));
        let by_mask = ByMask::new(rules().filter(|(rule, _)| rule % 7 != 3));
        for share in [0, 2, 8, 10] {
            let living: Vec<bool> = filters.iter().map(|_| rng.below(10) >= share).collect();
            for key in &keys {
                let passes = |rule: u32| living[rule as usize] && filters[rule as usize].1.matches(key);
                let bound = rng.below(1000) as u32;
                let wanted = (0..filters.len() as u32).find(|rule| rule % 7 != 3 && passes(*rule));
                let wanted = wanted.map_or(bound, |rule| rule.min(bound));
                assert_eq!(by_mask.first(key.words(), bound, passes), wanted);
            }
        }
        assert_eq!(ByMask::default().first(keys[0].words(), 9, |_| true), 9);
    }
}
