//! Runs: what changed in a table since its base was made, a few hundred changes in each.
//!
//! ```text
//!   base ◀── run ◀── run ◀── run       an update makes the last one anew, or one more
//! ```
//!
//! So an update takes as long as there are changes in one run, however many wait for a new base. A rule is in one run at
//! most; rules of the base that are gone are noted in the run of the update in which they went.

use super::Rule;
use super::base::Base;
use crate::flow::Rank;
use crate::key::Key;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Changes up to which a run takes in further ones: making it anew then takes less than half a millisecond.
const RUN_MAX: usize = 256;

/// Rules of the base that are gone, each with the later rules of its part that may share packets with it.
pub(super) type Dead = BTreeMap<u32, Arc<[u32]>>;

/// Some changes. Immutable.
#[derive(Debug)]
pub struct Run {
    rules: Vec<Rule>,
    base: Base,
    dead: Dead,
}

impl Run {
    fn new(mut rules: Vec<Rule>, dead: Dead) -> Run {
        rules.sort_by(|a, b| a.rank.cmp(&b.rank));
        let base = Base::new(rules.iter().map(|rule| rule.rank.matching()));
        Run { rules, base, dead }
    }

    /// Rules that were added, in the order of lookup.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    pub(super) fn dead(&self) -> &Dead {
        &self.dead
    }

    /// The place of the first rule that matches, and its rank.
    pub(super) fn lookup(&self, key: &Key) -> Option<(u32, &Rank)> {
        let found = self.base.lookup(key)?;
        Some((found, &self.rules[found as usize].rank))
    }

    fn len(&self) -> usize {
        self.rules.len() + self.dead.len()
    }

    fn has(&self, rank: &Rank) -> bool {
        self.rules.binary_search_by(|rule| rule.rank.cmp(rank)).is_ok()
    }
}

/// Takes changes in: rules that came or are different now, and rules of the base that are gone. `changed` are the ranks of
/// all of them, to be forgotten where they were.
pub(super) fn add(runs: &mut Vec<Arc<Run>>, changed: &BTreeSet<Rank>, mut rules: Vec<Rule>, mut dead: Dead) {
    let count = rules.len() + dead.len();
    let takes_in = |last: &mut Arc<Run>| last.len() + count <= RUN_MAX;
    if let Some(last) = runs.pop_if(takes_in) {
        rules.extend(last.rules.iter().filter(|rule| !changed.contains(&rule.rank)).cloned());
        dead.extend(last.dead.iter().map(|(rule, behind)| (*rule, Arc::clone(behind))));
    }
    for run in runs.iter_mut() {
        if changed.iter().any(|rank| run.has(rank)) {
            let others = run.rules.iter().filter(|rule| !changed.contains(&rule.rank));
            *run = Arc::new(Run::new(others.cloned().collect(), run.dead.clone()));
        }
    }
    runs.retain(|run| run.len() > 0);
    if rules.len() + dead.len() > 0 {
        runs.push(Arc::new(Run::new(rules, dead)));
    }
}
