//! Plans: flow tables as lookup structures, made from a [`Switch`] and kept up to date with it.
//!
//! ```text
//!   Switch ──▶ TablePlan = base (subtables of the cheapest shapes) + delta (runs of later changes)
//!              lookup(key) ──▶ rule
//! ```
//!
//! A plan is immutable to its readers and cheap to clone, because the base is shared. A change of a
//! few rules makes a new plan with another delta immediately. A large delta is merged: the base is
//! rebuilt off the fast path.
//!
//! A plan does not execute packets: generated code or [`interp`](crate::interp()) does. Code is
//! generated from the structures that are public here: subtables, guards, packings, nodes. Read
//! first: `base.rs`, then the shapes.

mod base;
mod cache;
mod entry;
mod explain;
pub mod hash;
mod lanes;
mod run;
mod tree;
mod trie;

pub use base::{Base, Body, Packed, Shape, Subtable};
pub use cache::Cache;
pub use entry::Entry;
pub use hash::{Hash, Slot};
pub use lanes::{Lanes, Piece};
pub use run::DeltaRun;
pub use tree::{Tree, TreeNode};
pub use trie::{KeyBits, Trie};

use crate::field::WORDS;
use crate::flow::{Flow, Instructions, Rank};
use crate::key::{Depth, Key};
use crate::switch::Switch;
use crate::table::{Changes, Table};
use run::Dead;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The number that stands for "no rule" inside the structures.
pub(crate) const NONE: u32 = u32::MAX;
/// The rules added to and removed from a base before it should be rebuilt.
const DELTA_MAX: usize = 256;

/// Set in the numbers of rules of the delta, which also hold the run and the index in it.
const ADDED: u32 = 1 << 31;
/// Bits for the index in a run.
const PLACE_BITS: u32 = 16;
/// The most runs; with more, the base is rebuilt immediately.
const RUNS_MAX: usize = 1024;

/// The number of a rule in the plan that found it, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RuleNumber(u32);

impl RuleNumber {
    /// No rule.
    pub const NONE: RuleNumber = RuleNumber(NONE);

    /// Returns the rule number that [`RuleNumber::number`] represents.
    pub fn from_number(number: u32) -> RuleNumber {
        RuleNumber(number)
    }

    /// Returns the [run](TablePlan::runs) and the index in it, for a rule added since the base was
    /// built.
    pub fn added(self) -> Option<(usize, usize)> {
        let (run, place) = ((self.0 & !ADDED) >> PLACE_BITS, self.0 & ((1 << PLACE_BITS) - 1));
        (self.0 != NONE && self.0 & ADDED != 0).then_some((run as usize, place as usize))
    }

    fn in_run(run: usize, place: u32) -> RuleNumber {
        debug_assert!(run <= RUNS_MAX && place < 1 << PLACE_BITS, "rule {place} of run {run}");
        RuleNumber(ADDED | (run as u32) << PLACE_BITS | place)
    }

    /// Returns the number: for a rule of the base its position in the order of lookup; for a later
    /// rule a number with the highest bit set; all ones for none.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// A flow, as plans hold it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Priority and match.
    pub rank: Rank,
    /// The serial number of the flow, for crediting counters.
    pub serial: u64,
    /// The flow's cookie.
    pub cookie: u64,
    /// Its instructions.
    pub instructions: Arc<Instructions>,
}

/// The plan of one table.
#[derive(Clone, Debug)]
pub struct TablePlan {
    /// Grows with every update: results cached for an older plan are out of date.
    version: u64,
    /// The bits of the key that any rule compares.
    wanted: [u64; WORDS],
    rules: Arc<[Rule]>,
    base: Arc<Base>,
    /// Changes since the base was built. A rule of the base is removed in at most one of them.
    runs: Vec<Arc<DeltaRun>>,
}

/// The plan of a whole switch.
#[derive(Clone, Debug)]
pub struct Plan {
    tables: Vec<TablePlan>,
}

/// The result of an update.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Update {
    /// The table had not changed.
    Unchanged,
    /// The changes went into the delta.
    Delta,
    /// The base should be rebuilt ([`TablePlan::new`]); until then lookups are correct but slower.
    RebuildSoon,
}

impl Rule {
    /// Returns the rules of the flows of these ranks that are in the table.
    pub fn current(table: &Table, ranks: &BTreeSet<Rank>) -> Vec<Rule> {
        ranks.iter().filter_map(|rank| Some(Rule::of((rank, table.flow(rank)?)))).collect()
    }

    fn of((rank, flow): (&Rank, &Flow)) -> Rule {
        let (rank, instructions) = (rank.clone(), Arc::clone(&flow.instructions));
        Rule { rank, serial: flow.serial, cookie: flow.cookie, instructions }
    }
}

impl TablePlan {
    /// Returns the plan of a table in its present state.
    pub fn new(table: &Table) -> TablePlan {
        TablePlan::of(table.flows().map(Rule::of).collect())
    }

    /// Returns the plan of rules that are in the order of lookup.
    fn of(rules: Arc<[Rule]>) -> TablePlan {
        let base = Base::new(rules.iter().map(|rule| rule.rank.matching()));
        let wanted = wanted(&rules);
        TablePlan { version: 0, wanted, rules, base: Arc::new(base), runs: Vec::new() }
    }

    /// Returns the rule for a packet: the flow that [`interp`](crate::interp()) would find.
    #[inline]
    pub fn lookup(&self, key: &Key) -> Option<&Rule> {
        self.rule(self.find(key))
    }

    /// Returns the number of the rule for a packet, for [`TablePlan::rule`].
    #[inline]
    pub fn find(&self, key: &Key) -> RuleNumber {
        let found = self.base.lookup(key);
        if self.runs.is_empty() {
            return RuleNumber(found.unwrap_or(NONE));
        }
        self.find_changed(key, found)
    }

    /// Returns the rule of a number that [`TablePlan::find`] returned.
    #[inline]
    pub fn rule(&self, found: RuleNumber) -> Option<&Rule> {
        match found.added() {
            Some((run, place)) => self.runs.get(run)?.rules().get(place),
            None => self.rules.get(found.0 as usize),
        }
    }

    /// Corrects the rule that the base found by the changes since the base was built.
    fn find_changed(&self, key: &Key, found: Option<u32>) -> RuleNumber {
        let matches = |rule: &&u32| self.rules[**rule as usize].rank.matching().matches(key);
        // A removed rule hides the next rule of its subtable that matches the packet.
        let instead = |rule| match self.behind_dead(rule) {
            Some(later) => {
                let mut living = later.iter().filter(|rule| self.behind_dead(**rule).is_none());
                living.find(matches).copied().unwrap_or(NONE)
            }
            None => rule,
        };
        let living = match found {
            Some(rule) if self.behind_dead(rule).is_some() => self.base.lookup_but_for(key, instead),
            _ => found,
        };
        let mut best = living.map(|rule| (RuleNumber(rule), &self.rules[rule as usize].rank));
        for (run, changes) in self.runs.iter().enumerate() {
            if let Some((place, rank)) = changes.lookup(key)
                && best.is_none_or(|(_, best)| rank < best)
            {
                best = Some((RuleNumber::in_run(run, place), rank));
            }
        }
        best.map_or(RuleNumber::NONE, |(found, _)| found)
    }

    /// Returns the rules hidden by a rule of the base that was removed; `None` if it was not.
    fn behind_dead(&self, rule: u32) -> Option<&Arc<[u32]>> {
        self.runs.iter().find_map(|run| run.dead().get(&rule))
    }

    /// Applies the changes in the table since its changes were last taken.
    pub fn update(&mut self, table: &Table, changes: &Changes) -> Update {
        match changes {
            Changes::Few(ranks) if ranks.is_empty() => Update::Unchanged,
            Changes::Few(ranks) if ranks.len() < 1 << PLACE_BITS && self.runs.len() < RUNS_MAX => {
                self.take_in(ranks, Rule::current(table, ranks))
            }
            Changes::Few(_) | Changes::Many => {
                *self = TablePlan { version: self.version + 1, ..TablePlan::new(table) };
                Update::Delta
            }
        }
    }

    /// Applies a few changes: the flows of these ranks now have these rules; a rank without a rule
    /// was removed.
    pub fn take_in(&mut self, ranks: &BTreeSet<Rank>, rules: Vec<Rule>) -> Update {
        let mut dead = Dead::new();
        for rank in ranks {
            if let Ok(index) = self.rules.binary_search_by(|rule| rule.rank.cmp(rank))
                && self.behind_dead(index as u32).is_none()
            {
                dead.insert(index as u32, self.behind(index as u32));
            }
        }
        self.version += 1;
        self.wanted.iter_mut().zip(wanted(&rules)).for_each(|(all, more)| *all |= more);
        run::add(&mut self.runs, ranks, rules, dead);
        let (added, gone) = self.changes();
        if added + gone > DELTA_MAX { Update::RebuildSoon } else { Update::Delta }
    }

    /// Returns the later rules of a rule's subtable that may match the same packets.
    fn behind(&self, rule: u32) -> Arc<[u32]> {
        let matching = self.rules[rule as usize].rank.matching();
        let overlaps = |other: &u32| self.rules[*other as usize].rank.matching().overlaps(matching);
        match self.base.behind(rule) {
            Some(behind) => behind.into_iter().filter(overlaps).collect(),
            // It is the rule that matches all packets; the base has no rule behind it.
            None => (rule + 1..self.rules.len() as u32).filter(overlaps).collect(),
        }
    }

    /// Returns the rules of the base, in the order of lookup.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the changes since the base was built, oldest first.
    pub fn runs(&self) -> &[Arc<DeltaRun>] {
        &self.runs
    }

    fn added(&self) -> impl Iterator<Item = &Rule> {
        self.runs.iter().flat_map(|run| run.rules())
    }

    /// Returns the bits of the key that any rule compares, laid out like a key.
    pub fn wanted(&self) -> &[u64; WORDS] {
        &self.wanted
    }

    /// Returns whether the base alone is the whole plan: no rule was added or removed since it was
    /// built.
    pub fn is_settled(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns whether both have the same base, whatever changed since.
    pub fn shares_base(&self, other: &TablePlan) -> bool {
        Arc::ptr_eq(&self.base, &other.base)
    }

    /// Returns the same rules in a new base. Slow; call it off the fast path.
    pub fn rebuilt(&self) -> TablePlan {
        let mut is_dead = vec![false; self.rules.len()];
        self.runs.iter().flat_map(|run| run.dead().keys()).for_each(|rule| is_dead[*rule as usize] = true);
        let living = self.rules.iter().zip(is_dead).filter(|(_, is_dead)| !is_dead).map(|(rule, _)| rule);
        let mut rules: Vec<Rule> = living.chain(self.added()).cloned().collect();
        rules.sort_by(|a, b| a.rank.cmp(&b.rank));
        TablePlan { version: self.version, ..TablePlan::of(rules.into()) }
    }

    /// Returns the structures of the base.
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// Returns the numbers of rules added and removed since the base was built.
    pub fn changes(&self) -> (usize, usize) {
        self.runs
            .iter()
            .fold((0, 0), |(added, gone), run| (added + run.rules().len(), gone + run.dead().len()))
    }

    /// Returns how deep into a packet its rules look.
    pub fn depth(&self) -> Depth {
        let matches = self.rules.iter().chain(self.added()).map(|rule| rule.rank.matching());
        matches.map(|matching| Depth::of(matching.presence())).max().unwrap_or(Depth::Nothing)
    }
}

impl Plan {
    /// Returns the plan of every table of a switch in its present state.
    pub fn new(switch: &mut Switch) -> Plan {
        let ids = 0..switch.limits().tables;
        // Earlier changes are in the tables already.
        ids.for_each(|id| drop(switch.table_mut(id).take_changes()));
        Plan { tables: switch.tables().iter().map(TablePlan::new).collect() }
    }

    /// Applies the changes in the switch. Returns the tables whose base should be rebuilt.
    pub fn update(&mut self, switch: &mut Switch) -> Vec<u8> {
        let mut rebuild = Vec::new();
        for (id, plan) in (0..).zip(&mut self.tables) {
            let changes = switch.table_mut(id).take_changes();
            if plan.update(&switch.tables()[usize::from(id)], &changes) == Update::RebuildSoon {
                rebuild.push(id);
            }
        }
        rebuild
    }

    /// Replaces the plan of a table by one with a new base, which must have been built from the
    /// table as the last update saw it.
    pub fn replace(&mut self, table_id: u8, plan: TablePlan) {
        let old = &mut self.tables[usize::from(table_id)];
        *old = TablePlan { version: old.version + 1, ..plan };
    }

    /// Returns a plan made of the plans of tables, by number.
    pub fn of(tables: Vec<TablePlan>) -> Plan {
        Plan { tables }
    }

    /// Returns the plan of a table.
    pub fn table(&self, id: u8) -> &TablePlan {
        &self.tables[usize::from(id)]
    }

    /// Returns the plans of all tables, by number.
    pub fn tables(&self) -> &[TablePlan] {
        &self.tables
    }

    /// Returns how deep into a packet any table looks: parsing may stop there.
    pub fn depth(&self) -> Depth {
        self.tables.iter().map(TablePlan::depth).max().unwrap_or(Depth::Nothing)
    }
}

/// Returns the bits that any of the rules compares.
fn wanted(rules: &[Rule]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for term in rules.iter().flat_map(|rule| rule.rank.matching().terms()) {
        words[usize::from(term.word)] |= term.mask;
    }
    words
}

#[cfg(test)]
mod program_tests;
#[cfg(test)]
mod tests;
