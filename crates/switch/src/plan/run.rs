//! Runs: the changes of a table since its base was built, a few hundred in each.
//!
//! ```text
//!   base ◀── run ◀── run ◀── run       an update replaces the last run, or adds one
//! ```
//!
//! So the time of an update depends on the size of one run, however many changes wait for a new
//! base. A rule is in at most one run. A rule of the base that was removed is noted in the run of
//! the update that removed it.

use super::Rule;
use super::base::Base;
use crate::flow::Rank;
use crate::key::Key;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The changes up to which a run takes further ones. Replacing such a run takes less than half a
/// millisecond.
const RUN_MAX: usize = 256;

/// Rules of the base that were removed, each with the later rules of its subtable that may match
/// the same packets.
pub(super) type Dead = BTreeMap<u32, Arc<[u32]>>;

/// A run of changes. Immutable.
#[derive(Debug)]
pub struct DeltaRun {
    rules: Vec<Rule>,
    base: Base,
    dead: Dead,
    /// A filter with eight bits per rule, one of which is set by the hash of the rule's rank. It
    /// excludes most ranks that are not in the run.
    hashes: Box<[u64]>,
}

impl DeltaRun {
    fn new(mut rules: Vec<Rule>, dead: Dead) -> DeltaRun {
        rules.sort_by(|a, b| a.rank.cmp(&b.rank));
        let base = Base::new(rules.iter().map(|rule| rule.rank.matching()));
        let mut hashes = vec![0; (rules.len() / 8).next_power_of_two()];
        for rule in &rules {
            let (word, bit) = place(hash(&rule.rank), hashes.len());
            hashes[word] |= bit;
        }
        DeltaRun { rules, base, dead, hashes: hashes.into() }
    }

    /// Returns the rules that were added, in the order of lookup.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    pub(super) fn dead(&self) -> &Dead {
        &self.dead
    }

    /// Returns the index of the first rule that matches, and its rank.
    pub(super) fn lookup(&self, key: &Key) -> Option<(u32, &Rank)> {
        let found = self.base.lookup(key)?;
        Some((found, &self.rules[found as usize].rank))
    }

    fn len(&self) -> usize {
        self.rules.len() + self.dead.len()
    }

    /// Returns whether the run has a rank of this hash.
    fn has(&self, rank: &Rank, hash: u64) -> bool {
        let (word, bit) = place(hash, self.hashes.len());
        self.hashes[word] & bit != 0 && self.rules.binary_search_by(|rule| rule.rank.cmp(rank)).is_ok()
    }
}

fn hash(rank: &Rank) -> u64 {
    let mut hasher = DefaultHasher::new();
    rank.hash(&mut hasher);
    hasher.finish()
}

/// Returns the word, of `words` (a power of two), and the bit in it for a hash.
fn place(hash: u64, words: usize) -> (usize, u64) {
    ((hash >> 6) as usize & (words - 1), 1 << (hash & 63))
}

/// Adds changes: rules that are new or different, and rules of the base that were removed.
/// `changed` holds the ranks of all of them; older entries of these ranks are deleted.
pub(super) fn add(
    runs: &mut Vec<Arc<DeltaRun>>,
    changed: &BTreeSet<Rank>,
    mut rules: Vec<Rule>,
    mut dead: Dead,
) {
    let count = rules.len() + dead.len();
    // Large batches must not make many runs: a run may double.
    let takes_in = |last: &mut Arc<DeltaRun>| last.len() + count <= RUN_MAX.max(2 * count);
    if let Some(last) = runs.pop_if(takes_in) {
        rules.extend(last.rules.iter().filter(|rule| !changed.contains(&rule.rank)).cloned());
        dead.extend(last.dead.iter().map(|(rule, behind)| (*rule, Arc::clone(behind))));
    }
    let hashes: Vec<(&Rank, u64)> = changed.iter().map(|rank| (rank, hash(rank))).collect();
    for run in runs.iter_mut() {
        if hashes.iter().any(|(rank, hash)| run.has(rank, *hash)) {
            let others = run.rules.iter().filter(|rule| !changed.contains(&rule.rank));
            *run = Arc::new(DeltaRun::new(others.cloned().collect(), run.dead.clone()));
        }
    }
    runs.retain(|run| run.len() > 0);
    if rules.len() + dead.len() > 0 {
        runs.push(Arc::new(DeltaRun::new(rules, dead)));
    }
}
