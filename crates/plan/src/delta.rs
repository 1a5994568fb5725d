//! The changes of a table since its base was built.
//!
//! ```text
//!   mask ─▶ tuple ─▶ index: hash ─▶ slot ─▶ change: a rank and its rule, or none if it was removed
//! ```
//!
//! Rules of one mask are in one tuple, where the masked key finds them by its hash (tuple space
//! search: Srinivasan, Suri, Varghese 1999). A change takes the time of a hash, whatever the number
//! of changes before it. A lookup visits one tuple for each mask.
//!
//! Clones share everything. A change is made in place, while other threads read earlier clones: a
//! clone does not see slots after its end. A rank has one entry in the index, with its latest slot,
//! from which an earlier clone goes back to the slot that it knows.

use crate::Rule;
use crate::shelf::Shelf;
use fastpath_switch::Term;
use fastpath_switch::flow::Rank;
use fastpath_switch::key::Key;
use fastpath_switch::mix::hash_of;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The entries of the first index of a tuple. It is doubled when half of it is used.
const INDEX_MIN: usize = 8;
/// No slot.
const NONE: u32 = u32::MAX;

/// See the head of this file.
#[derive(Clone, Debug, Default)]
pub struct Delta {
    tuples: Vec<Tuple>,
    /// The tuple of each mask, by the hash of the mask or the next free number.
    by_mask: Arc<BTreeMap<u64, usize>>,
    /// In the order of the changes. A later change of a rank replaces the earlier one.
    changes: Shelf<Arc<RuleChange>>,
}

/// A change of a rank.
#[derive(Debug)]
pub(super) struct RuleChange {
    pub(super) rank: Rank,
    /// The rule; `None` if it was removed.
    pub(super) rule: Option<Rule>,
    /// For a rule of the base that is replaced: the rules of the base that may be found instead, if
    /// they are few.
    pub(super) behind: OnceLock<Option<Arc<[u32]>>>,
    /// The slot of the change of this rank before, or [`NONE`].
    earlier: u32,
}

/// The changes of the ranks that compare the same bits.
#[derive(Clone, Debug)]
struct Tuple {
    /// The bits, by word.
    mask: Arc<[(u8, u64)]>,
    /// The highest priority that a rule here ever had.
    first: u16,
    index: Arc<Index>,
    /// The entries that are used.
    used: usize,
}

/// A hash with linear probing. An entry is a tag, which is part of the hash, and a slot; 0 is free.
#[derive(Debug)]
struct Index(Box<[AtomicU64]>);

impl Delta {
    /// Returns the number of changes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Returns whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of tuples: the masks that a lookup tries.
    pub fn tuples(&self) -> usize {
        self.tuples.len()
    }

    /// Notes that a rank has this rule now, or none.
    pub fn note(&mut self, rank: Rank, rule: Option<Rule>) {
        let terms = rank.matching().terms();
        let position = self.tuple_of(terms).unwrap_or_else(|| self.add_tuple(terms));
        let tag = tag_of(hash_of(terms.iter().map(|term| term.value)));
        let earlier = self.slot_of(&self.tuples[position], tag, &rank);
        let slot = self.changes.len() as u32;
        let priority = rank.priority();
        let behind = OnceLock::new();
        let change =
            Arc::new(RuleChange { rank, rule, behind, earlier: earlier.map_or(NONE, |(_, slot)| slot) });
        if let Err(change) = self.changes.try_push(change) {
            // Another clone was changed since: its entries must not be mixed with those of this
            // one.
            let RuleChange { rank, rule, .. } = &*change;
            let (rank, rule) = (rank.clone(), rule.clone());
            *self = self.copy();
            return self.note(rank, rule);
        }
        let tuple = &mut self.tuples[position];
        tuple.first = tuple.first.max(priority);
        match earlier {
            Some((entry, _)) => tuple.index.set(entry, tag, slot),
            None => tuple.insert(tag, slot),
        }
    }

    /// Returns the same changes in memory of their own.
    fn copy(&self) -> Delta {
        let mut copy = Delta::default();
        self.since(0).for_each(|(rank, rule)| copy.note(rank.clone(), rule.cloned()));
        copy
    }

    /// Returns the rule of a slot, if a rule was added by that change.
    pub fn rule(&self, slot: usize) -> Option<&Rule> {
        self.changes.get(slot)?.rule.as_ref()
    }

    /// Returns the changes from number `from` on, as ranks and their rules; none for removals.
    pub fn since(&self, from: usize) -> impl Iterator<Item = (&Rank, Option<&Rule>)> {
        let changes = (from..self.len()).filter_map(|slot| self.changes.get(slot));
        changes.map(|change| (&change.rank, change.rule.as_ref()))
    }

    /// Returns the bits that changed ranks compare, by word.
    pub(super) fn masks(&self) -> impl Iterator<Item = (u8, u64)> {
        self.tuples.iter().flat_map(|tuple| tuple.mask.iter().copied())
    }

    /// Returns the change of a rank.
    pub(super) fn change(&self, rank: &Rank) -> Option<&RuleChange> {
        let terms = rank.matching().terms();
        let tuple = &self.tuples[self.tuple_of(terms)?];
        let tag = tag_of(hash_of(terms.iter().map(|term| term.value)));
        let (_, slot) = self.slot_of(tuple, tag, rank)?;
        self.changes.get(slot as usize).map(|change| &**change)
    }

    /// Returns the latest change of every changed rank, in the order of the changes.
    pub(super) fn latest(&self) -> impl Iterator<Item = &RuleChange> {
        let changes = || (0..self.len()).filter_map(|slot| Some((slot, self.changes.get(slot)?)));
        let mut is_latest = vec![true; self.len()];
        for (_, change) in changes().filter(|(_, change)| change.earlier != NONE) {
            is_latest[change.earlier as usize] = false;
        }
        changes().filter(move |(slot, _)| is_latest[*slot]).map(|(_, change)| &**change)
    }

    /// Returns the first rule before `bound` that matches, and its slot.
    pub(super) fn lookup(&self, key: &Key, bound: Option<&Rank>) -> Option<u32> {
        let words = key.words();
        let mut best = bound;
        let mut found = None;
        for Tuple { mask, first, index, .. } in &self.tuples {
            if best.is_some_and(|best| best.priority() > *first) {
                continue;
            }
            let hash = hash_of(mask.iter().map(|(word, mask)| words[usize::from(*word)] & mask));
            for (_, slot) in index.find(tag_of(hash)) {
                let Some((slot, change)) = self.known(slot) else { continue };
                let is_first = change.rule.is_some() && best.is_none_or(|best| change.rank < *best);
                if is_first && change.rank.matching().matches(key) {
                    (best, found) = (Some(&change.rank), Some(slot));
                }
            }
        }
        found
    }

    /// Returns the latest change that this clone knows of the rank of a slot, and its slot.
    fn known(&self, mut slot: u32) -> Option<(u32, &RuleChange)> {
        while slot as usize >= self.len() {
            slot = self.changes.get_any(slot as usize)?.earlier;
            if slot == NONE {
                return None;
            }
        }
        self.changes.get(slot as usize).map(|change| (slot, &**change))
    }

    /// Returns the entry of a rank in the index of its tuple, and the slot that this clone knows.
    fn slot_of(&self, tuple: &Tuple, tag: u32, rank: &Rank) -> Option<(usize, u32)> {
        tuple.index.find(tag).find_map(|(entry, slot)| {
            let (slot, change) = self.known(slot)?;
            (change.rank == *rank).then_some((entry, slot))
        })
    }

    /// Returns the tuple of the mask of these terms.
    fn tuple_of(&self, terms: &[Term]) -> Option<usize> {
        let mut number = hash_of_mask(terms);
        loop {
            let position = *self.by_mask.get(&number)?;
            let mask = &self.tuples[position].mask;
            if mask.iter().copied().eq(terms.iter().map(|term| (term.word, term.mask))) {
                return Some(position);
            }
            number = number.wrapping_add(1);
        }
    }

    fn add_tuple(&mut self, terms: &[Term]) -> usize {
        let mut number = hash_of_mask(terms);
        while self.by_mask.contains_key(&number) {
            number = number.wrapping_add(1);
        }
        let position = self.tuples.len();
        Arc::make_mut(&mut self.by_mask).insert(number, position);
        let mask = terms.iter().map(|term| (term.word, term.mask)).collect();
        self.tuples.push(Tuple { mask, first: 0, index: Arc::new(Index::new(INDEX_MIN)), used: 0 });
        position
    }
}

impl Tuple {
    /// Adds an entry of a rank that has none.
    fn insert(&mut self, tag: u32, slot: u32) {
        if 2 * self.used >= self.index.0.len() {
            let larger = Index::new(2 * self.index.0.len());
            for entry in self.index.0.iter().map(|entry| entry.load(Ordering::Relaxed)) {
                if entry != 0 {
                    larger.add(entry);
                }
            }
            self.index = Arc::new(larger);
        }
        self.index.add(entry_of(tag, slot));
        self.used += 1;
    }
}

impl Index {
    fn new(len: usize) -> Index {
        Index((0..len).map(|_| AtomicU64::new(0)).collect())
    }

    /// Adds an entry. At least one must be free.
    fn add(&self, entry: u64) {
        let Some((position, _)) = self.from((entry >> 32) as u32).find(|(_, other)| *other == 0) else {
            unreachable!("half of the entries are free")
        };
        // A reader that finds the slot sees the change in it.
        self.0[position].store(entry, Ordering::Release);
    }

    /// Gives an entry another slot.
    fn set(&self, position: usize, tag: u32, slot: u32) {
        self.0[position].store(entry_of(tag, slot), Ordering::Release);
    }

    /// Returns the entries of a tag, by position, with their slots.
    #[inline]
    fn find(&self, tag: u32) -> impl Iterator<Item = (usize, u32)> {
        let used = self.from(tag).take_while(|(_, entry)| *entry != 0);
        used.filter(move |(_, entry)| (entry >> 32) as u32 == tag)
            .map(|(position, entry)| (position, slot(entry)))
    }

    /// Returns all entries, from the position of a tag on.
    #[inline]
    fn from(&self, tag: u32) -> impl Iterator<Item = (usize, u64)> {
        let mask = self.0.len() - 1;
        let positions = (0..self.0.len()).map(move |step| (tag as usize).wrapping_add(step) & mask);
        positions.map(|position| (position, self.0[position].load(Ordering::Acquire)))
    }
}

fn entry_of(tag: u32, slot: u32) -> u64 {
    u64::from(tag) << 32 | u64::from(slot + 1)
}

fn slot(entry: u64) -> u32 {
    entry as u32 - 1
}

fn tag_of(hash: u64) -> u32 {
    (hash ^ hash >> 32) as u32
}

fn hash_of_mask(terms: &[Term]) -> u64 {
    hash_of(terms.iter().flat_map(|term| [term.word.into(), term.mask]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_switch::{Field, FieldMatch, Instructions, Match};

    fn rank(number: u128) -> Rank {
        let field = FieldMatch::exact(Field::EthDst, number / 3);
        Rank::new((number % 3) as u16, Match::new(&[field]).unwrap())
    }

    fn rule(number: u128, serial: u64) -> Rule {
        Rule { rank: rank(number), serial, cookie: 0, instructions: Arc::new(Instructions::default()) }
    }

    /// The serial numbers of the ranks, as a clone sees them; 0 for a removed one.
    fn seen(delta: &Delta, ranks: u128) -> Vec<Option<u64>> {
        let serial = |change: &RuleChange| change.rule.as_ref().map_or(0, |rule| rule.serial);
        (0..ranks).map(|number| delta.change(&rank(number)).map(serial)).collect()
    }

    #[test]
    fn clones_keep_what_they_saw_however_often_a_rank_changes_and_wherever_they_continue() {
        let ranks = 200;
        let mut delta = Delta::default();
        let mut expected = vec![None; ranks];
        let mut clones = Vec::new();
        let mut random = fastpath_units::Rng::new(20);
        for serial in 1..5000 {
            // A clone that falls behind and continues by itself.
            if random.below(50) == 0 && !clones.is_empty() {
                let position = random.below(clones.len() as u64) as usize;
                let (before, known): &(Delta, Vec<Option<u64>>) = &clones[position];
                (delta, expected) = (before.clone(), known.clone());
            }
            let number = random.below(ranks as u64) as usize;
            let is_gone = random.below(4) == 0;
            delta.note(rank(number as u128), (!is_gone).then(|| rule(number as u128, serial)));
            expected[number] = Some(if is_gone { 0 } else { serial });
            if random.below(20) == 0 {
                clones.push((delta.clone(), expected.clone()));
            }
        }
        for (delta, expected) in clones.iter().chain([&(delta.clone(), expected.clone())]) {
            assert_eq!(seen(delta, ranks as u128), *expected);
            assert_eq!(delta.latest().count(), expected.iter().flatten().count());
        }
    }

    #[test]
    fn entries_of_equal_tags_are_kept_apart() {
        let mut tuple =
            Tuple { mask: Arc::new([]), first: 0, index: Arc::new(Index::new(INDEX_MIN)), used: 0 };
        let before = Arc::clone(&tuple.index);
        for slot in 0..200 {
            tuple.insert(slot % 50, slot);
        }
        for tag in 0..50 {
            let mut found: Vec<u32> = tuple.index.find(tag).map(|(_, slot)| slot).collect();
            found.sort_unstable();
            assert_eq!(found, [tag, tag + 50, tag + 100, tag + 150]);
        }
        let used = |index: &Index| index.0.iter().filter(|entry| entry.load(Ordering::Relaxed) != 0).count();
        assert_eq!((used(&tuple.index), used(&before)), (200, INDEX_MIN / 2));
        assert_eq!(tuple.index.find(77).count(), 0);
    }
}
