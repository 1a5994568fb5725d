//! The changes of a table since its base was built.
//!
//! ```text
//!   mask ─▶ tuple ─▶ trie of hashes ─▶ slot ─▶ change: a rank and its rule, or none if it was removed
//! ```
//!
//! Rules of one mask are in one tuple, where the masked key finds them by its hash (tuple space
//! search: Srinivasan, Suri, Varghese 1999). A change takes the time of a hash, whatever the number
//! of changes before it. A lookup visits one tuple for each mask. Clones share everything; a change
//! copies the path to what it changes.

use super::Rule;
use super::hash::{MULTIPLIER, OFFSET};
use crate::flow::Rank;
use crate::key::Key;
use crate::matching::Term;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Bits of a hash that a node of the trie reads.
const NIBBLE: u32 = 4;
/// The entries of a leaf above which it is split. To copy a leaf takes less than to copy another
/// level of nodes, whose children count their references.
const LEAF_MAX: usize = 32;
/// The deepest split: entries of equal hashes stay together.
const DEPTH_MAX: u32 = 8;
/// The items of a block of a [`Shelf`].
const BLOCK: usize = 1024;

/// See the head of this file.
#[derive(Clone, Debug, Default)]
pub struct Delta {
    tuples: Vec<Tuple>,
    /// The tuple of each mask, by the hash of the mask or the next free number.
    by_mask: Arc<BTreeMap<u64, usize>>,
    /// In the order of the changes. A later change of a rank replaces the earlier one.
    changes: Shelf<Arc<Change>>,
}

/// The latest change of a rank.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) rank: Rank,
    /// The rule; `None` if it was removed.
    pub(super) rule: Option<Rule>,
    /// For a rule of the base that is replaced: the rules of the base that may be found instead.
    pub(super) behind: OnceLock<Arc<[u32]>>,
}

/// The changes of the ranks that compare the same bits.
#[derive(Clone, Debug)]
struct Tuple {
    /// The bits, by word.
    mask: Arc<[(u8, u64)]>,
    /// The highest priority that a rule here ever had.
    first: u16,
    index: Arc<Node>,
}

/// A node of a trie of hashes. An entry is a hash and a slot.
#[derive(Clone, Debug)]
enum Node {
    Leaf(Vec<(u64, u32)>),
    Inner([Option<Arc<Node>>; 1 << NIBBLE]),
}

/// A vector whose clones share their items.
#[derive(Clone, Debug)]
pub struct Shelf<T> {
    blocks: Vec<Arc<Vec<T>>>,
}

impl Delta {
    /// Returns the number of changes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Returns whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Notes that a rank has this rule now, or none.
    pub fn note(&mut self, rank: Rank, rule: Option<Rule>) {
        let terms = rank.matching().terms();
        let place = self.tuple_of(terms).unwrap_or_else(|| self.add_tuple(terms));
        let Delta { tuples, changes, .. } = self;
        let tuple = &mut tuples[place];
        tuple.first = tuple.first.max(rank.priority());
        let slot = changes.len() as u32;
        let is_same = |slot: u32| changes.get(slot as usize).is_some_and(|change| change.rank == rank);
        Node::insert(&mut tuple.index, 0, (hash_of(terms.iter().map(|term| term.value)), slot), is_same);
        changes.push(Arc::new(Change { rank, rule, behind: OnceLock::new() }));
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
    pub(super) fn change(&self, rank: &Rank) -> Option<&Change> {
        let terms = rank.matching().terms();
        let tuple = &self.tuples[self.tuple_of(terms)?];
        let slots = tuple.index.slots(hash_of(terms.iter().map(|term| term.value)));
        slots
            .filter_map(|slot| self.changes.get(slot as usize))
            .find(|change| change.rank == *rank)
            .map(|c| &**c)
    }

    /// Returns the latest change of every changed rank, in no order that means anything.
    pub(super) fn latest(&self) -> impl Iterator<Item = &Change> {
        let slots = self.tuples.iter().flat_map(|tuple| tuple.index.all());
        slots.filter_map(|slot| self.changes.get(slot as usize)).map(|change| &**change)
    }

    /// Returns the first rule before `bound` that matches, and its slot.
    pub(super) fn lookup(&self, key: &Key, bound: Option<&Rank>) -> Option<u32> {
        let words = key.words();
        let mut best = bound;
        let mut found = None;
        for Tuple { mask, first, index } in &self.tuples {
            if best.is_some_and(|best| best.priority() > *first) {
                continue;
            }
            let hash = hash_of(mask.iter().map(|(word, mask)| words[usize::from(*word)] & mask));
            for slot in index.slots(hash) {
                let Some(change) = self.changes.get(slot as usize) else { continue };
                let is_first = change.rule.is_some() && best.is_none_or(|best| change.rank < *best);
                if is_first && change.rank.matching().matches(key) {
                    (best, found) = (Some(&change.rank), Some(slot));
                }
            }
        }
        found
    }

    /// Returns the tuple of the mask of these terms.
    fn tuple_of(&self, terms: &[Term]) -> Option<usize> {
        let mut number = hash_of_mask(terms);
        loop {
            let place = *self.by_mask.get(&number)?;
            let mask = &self.tuples[place].mask;
            if mask.iter().copied().eq(terms.iter().map(|term| (term.word, term.mask))) {
                return Some(place);
            }
            number = number.wrapping_add(1);
        }
    }

    fn add_tuple(&mut self, terms: &[Term]) -> usize {
        let mut number = hash_of_mask(terms);
        while self.by_mask.contains_key(&number) {
            number = number.wrapping_add(1);
        }
        let place = self.tuples.len();
        Arc::make_mut(&mut self.by_mask).insert(number, place);
        let mask = terms.iter().map(|term| (term.word, term.mask)).collect();
        self.tuples.push(Tuple { mask, first: 0, index: Arc::new(Node::Leaf(Vec::new())) });
        place
    }
}

impl Node {
    /// Adds an entry, or replaces the one of the same hash for which `is_same` holds.
    fn insert(node: &mut Arc<Node>, depth: u32, (hash, slot): (u64, u32), is_same: impl Fn(u32) -> bool) {
        match Arc::make_mut(node) {
            Node::Inner(children) => match &mut children[Node::child(hash, depth)] {
                Some(child) => Node::insert(child, depth + 1, (hash, slot), is_same),
                none => *none = Some(Arc::new(Node::Leaf(vec![(hash, slot)]))),
            },
            Node::Leaf(entries) => {
                match entries.iter_mut().find(|(other, slot)| *other == hash && is_same(*slot)) {
                    Some(entry) => entry.1 = slot,
                    None => entries.push((hash, slot)),
                }
                if entries.len() > LEAF_MAX && depth < DEPTH_MAX {
                    let mut parts: [Vec<(u64, u32)>; 1 << NIBBLE] = Default::default();
                    entries.drain(..).for_each(|entry| parts[Node::child(entry.0, depth)].push(entry));
                    let leaf = |part: Vec<_>| (!part.is_empty()).then(|| Arc::new(Node::Leaf(part)));
                    *node = Arc::new(Node::Inner(parts.map(leaf)));
                }
            }
        }
    }

    fn child(hash: u64, depth: u32) -> usize {
        (hash >> (NIBBLE * depth)) as usize & ((1 << NIBBLE) - 1)
    }

    /// Returns the slots of a hash.
    fn slots(&self, hash: u64) -> impl Iterator<Item = u32> {
        let (mut node, mut depth) = (Some(self), 0);
        let entries = loop {
            match node {
                Some(Node::Inner(children)) => node = children[Node::child(hash, depth)].as_deref(),
                Some(Node::Leaf(entries)) => break &entries[..],
                None => break &[],
            }
            depth += 1;
        };
        entries.iter().filter(move |(other, _)| *other == hash).map(|(_, slot)| *slot)
    }

    /// Returns all slots.
    fn all(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match self {
            Node::Leaf(entries) => Box::new(entries.iter().map(|(_, slot)| *slot)),
            Node::Inner(children) => Box::new(children.iter().flatten().flat_map(|child| child.all())),
        }
    }
}

impl<T: Clone> Shelf<T> {
    /// Adds an item at the end.
    pub fn push(&mut self, item: T) {
        match self.blocks.last_mut() {
            Some(last) if last.len() < BLOCK => Arc::make_mut(last).push(item),
            _ => {
                let mut block = Vec::with_capacity(BLOCK);
                block.push(item);
                self.blocks.push(Arc::new(block));
            }
        }
    }

    /// Returns the item of an index.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        self.blocks.get(index / BLOCK)?.get(index % BLOCK)
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.blocks.last().map_or(0, |last| (self.blocks.len() - 1) * BLOCK + last.len())
    }

    /// Returns whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

impl<T> Default for Shelf<T> {
    fn default() -> Shelf<T> {
        Shelf { blocks: Vec::new() }
    }
}

fn hash_of_mask(terms: &[Term]) -> u64 {
    hash_of(terms.iter().flat_map(|term| [term.word.into(), term.mask]))
}

fn hash_of(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0u64, |hash, word| {
        let product = u128::from(hash ^ word ^ OFFSET) * u128::from(MULTIPLIER);
        (product >> 64) as u64 ^ product as u64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_of_a_shelf_keep_their_items_when_it_grows() {
        let mut shelf = Shelf::default();
        let mut clones = Vec::new();
        for item in 0..3 * BLOCK + 7 {
            assert_eq!(shelf.len(), item);
            if item % 100 == 0 {
                clones.push((item, shelf.clone()));
            }
            shelf.push(item);
        }
        for (len, clone) in clones {
            assert_eq!(clone.len(), len);
            assert!((0..len + 2).all(|item| clone.get(item).copied() == (item < len).then_some(item)));
        }
    }

    #[test]
    fn entries_of_equal_and_of_similar_hashes_are_kept_apart() {
        let mut root = Arc::new(Node::Leaf(Vec::new()));
        let before = Arc::clone(&root);
        // Hashes that agree in all bits that nodes read, some of them in all bits.
        let hash = |slot: u32| u64::from(slot % 50) << 40 | 0x77;
        for slot in 0..200 {
            Node::insert(&mut root, 0, (hash(slot), slot), |_| false);
        }
        for slot in 0..50 {
            let found: Vec<u32> = root.slots(hash(slot)).collect();
            assert_eq!(found, [slot, slot + 50, slot + 100, slot + 150]);
        }
        Node::insert(&mut root, 0, (hash(3), 777), |slot| slot == 103);
        assert_eq!(root.slots(hash(3)).collect::<Vec<_>>(), [3, 53, 777, 153]);
        assert_eq!((root.all().count(), before.all().count()), (200, 0));
        assert_eq!(root.slots(9).count(), 0);
    }
}
