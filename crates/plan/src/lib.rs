//! Plans: flow tables as lookup structures, made from a [`Switch`] and kept up to date with it.
//!
//! ```text
//!   Switch ──▶ TablePlan = base (subtables of the cheapest shapes) + delta (later changes, by hash)
//!              lookup(key) ──▶ rule
//! ```
//!
//! A plan is immutable to its readers and cheap to clone, because the base is shared. A change of a
//! few rules makes a new plan with another delta immediately, in time that depends neither on the
//! table nor on the delta. The base is rebuilt off the fast path.
//!
//! A plan does not execute packets: generated code or [`interp`](fastpath_switch::interp()) does,
//! as in [`Planned`]. Code is generated from the structures that are public here: subtables,
//! guards, packings, nodes. There are no messages, sockets, threads or clocks here.
//!
//! Read first: `base.rs`, then the shapes.
#![forbid(unsafe_code)]

mod base;
mod by_mask;
mod cache;
mod delta;
mod entry;
mod explain;
pub mod hash;
mod lanes;
mod planned;
mod shelf;
mod tree;
mod trie;

pub use base::{Base, Body, Packed, Shape, Subtable};
pub use cache::Cache;
pub use delta::Delta;
pub use entry::Entry;
pub use fastpath_switch::flow::Rule;
pub use hash::{Hash, HashSlot};
pub use lanes::{Lanes, Piece};
pub use planned::Planned;
pub use shelf::Shelf;
pub use tree::{Tree, TreeNode};
pub use trie::{KeyBits, Trie};

use delta::RuleChange;
use fastpath_switch::field::{Field, WORDS};
use fastpath_switch::flow::Rank;
use fastpath_switch::key::{Depth, Key};
use fastpath_switch::{Changes, Table};
use fastpath_switch::{FindFlow, Match, Switch, extension};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The number that stands for "no rule" inside the structures.
pub(crate) const NONE: u32 = u32::MAX;
/// The rules added to and removed from a base before it should be rebuilt.
const DELTA_MAX: usize = 256;

/// Set in the numbers of rules of the delta, which also hold the slot.
const ADDED: u32 = 1 << 31;
/// The most changes that a delta holds; with more, the base is rebuilt immediately.
const CHANGES_MAX: usize = 1 << 24;

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

    /// Returns the slot of a rule added since the base was built, for [`Delta::rule`].
    pub fn added(self) -> Option<usize> {
        (self.0 != NONE && self.0 & ADDED != 0).then_some((self.0 & !ADDED) as usize)
    }

    /// Returns the number: for a rule of the base its position in the order of lookup; for a later
    /// rule a number with the highest bit set; all ones for none.
    pub fn number(self) -> u32 {
        self.0
    }
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
    /// The changes since the base was built. It hides the rules of the base of the same ranks.
    delta: Delta,
    /// The clauses of conjunctions, which are in neither; `None` if there are none.
    clauses: Option<Arc<BTreeMap<Rank, Rule>>>,
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

impl TablePlan {
    /// Returns the plan of a table in its present state.
    pub fn new(table: &Table) -> TablePlan {
        TablePlan::of(table.flows().map(Rule::of).collect())
    }

    /// Returns the plan of rules that are in the order of lookup.
    fn of(rules: Arc<[Rule]>) -> TablePlan {
        let is_clause = |rule: &&Rule| rule.instructions.is_clause();
        let mut wanted = wanted(&rules);
        if !rules.iter().any(|rule| is_clause(&rule)) {
            let base = Arc::new(Base::new(rules.iter().map(|rule| rule.rank.matching())));
            return TablePlan { version: 0, wanted, rules, base, delta: Delta::default(), clauses: None };
        }
        let clauses = rules.iter().filter(is_clause).map(|rule| (rule.rank.clone(), rule.clone())).collect();
        let others: Arc<[Rule]> = rules.iter().filter(|rule| !is_clause(rule)).cloned().collect();
        wanted[usize::from(Field::ConjId.info().word)] |= Field::ConjId.ones() as u64;
        TablePlan { wanted, clauses: Some(Arc::new(clauses)), ..TablePlan::of(others) }
    }

    /// Returns the rule for a packet: the flow that [`interp`](fastpath_switch::interp()) would
    /// find.
    #[inline]
    pub fn lookup(&self, key: &Key) -> Option<&Rule> {
        self.rule(self.find(key))
    }

    /// Returns the number of the rule for a packet, for [`TablePlan::rule`].
    #[inline]
    pub fn find(&self, key: &Key) -> RuleNumber {
        let found = self.find_plain(key);
        match &self.clauses {
            None => found,
            Some(clauses) => self.find_conjunction(key, clauses, found),
        }
    }

    /// Corrects the rule that was found by the clauses of higher priority that match.
    #[cold]
    fn find_conjunction(&self, key: &Key, clauses: &BTreeMap<Rank, Rule>, found: RuleNumber) -> RuleNumber {
        let matching = clauses.iter().filter(|(rank, _)| rank.matching().matches(key));
        let matching = matching
            .flat_map(|(rank, rule)| rule.instructions.clauses().map(|clause| (rank.priority(), clause)));
        let mut satisfied = *key;
        let of_conjunction = |id: u32| {
            satisfied.put(Field::ConjId, id.into());
            Some(self.find_plain(&satisfied)).filter(|rule| *rule != RuleNumber::NONE)
        };
        let priority = self.rule(found).map(|rule| rule.rank.priority());
        extension::decide(matching, priority, of_conjunction).unwrap_or(found)
    }

    /// Returns the rule for a packet that satisfies no conjunction.
    #[inline]
    fn find_plain(&self, key: &Key) -> RuleNumber {
        let found = self.base.lookup(key);
        if self.delta.is_empty() {
            return RuleNumber(found.unwrap_or(NONE));
        }
        self.find_changed(key, found)
    }

    /// Returns the rule of a number that [`TablePlan::find`] returned.
    #[inline]
    pub fn rule(&self, found: RuleNumber) -> Option<&Rule> {
        match found.added() {
            Some(slot) => self.delta.rule(slot),
            None => self.rules.get(found.0 as usize),
        }
    }

    /// Corrects the rule that the base found by the changes since the base was built.
    fn find_changed(&self, key: &Key, found: Option<u32>) -> RuleNumber {
        let matches = |rule: &&u32| self.rules[**rule as usize].rank.matching().matches(key);
        let change = |rule: u32| self.delta.change(&self.rules[rule as usize].rank);
        // A hidden rule hides the next rule of its subtable that matches the packet.
        let instead = |rule| match change(rule) {
            Some(hiding) => match hiding.behind.get_or_init(|| self.behind(rule)) {
                Some(later) => {
                    let mut living = later.iter().filter(matches);
                    living.find(|rule| change(**rule).is_none()).copied().unwrap_or(NONE)
                }
                None => self.base.first_behind(key, |rule| matches(&&rule) && change(rule).is_none()),
            },
            None => rule,
        };
        let living = match found {
            Some(rule) if change(rule).is_some() => self.base.lookup_but_for(key, instead),
            _ => found,
        };
        let bound = living.map(|rule| &self.rules[rule as usize].rank);
        match self.delta.lookup(key, bound) {
            Some(slot) => RuleNumber(ADDED | slot),
            None => RuleNumber(living.unwrap_or(NONE)),
        }
    }

    /// Applies the changes in the table since its changes were last taken.
    pub fn update(&mut self, table: &Table, changes: &Changes) -> Update {
        match changes {
            Changes::Few(changes) if changes.is_empty() => Update::Unchanged,
            Changes::Few(changes) if self.delta.len() + changes.len() <= CHANGES_MAX => {
                changes.iter().for_each(|change| self.note(change.rank.clone(), change.rule.clone()));
                if self.delta.len() > DELTA_MAX { Update::RebuildSoon } else { Update::Delta }
            }
            Changes::Few(_) | Changes::Many => {
                *self = TablePlan { version: self.version + 1, ..TablePlan::new(table) };
                Update::Delta
            }
        }
    }

    /// Applies one change: the flow of this rank has this rule now, or was removed.
    fn note(&mut self, rank: Rank, rule: Option<Rule>) {
        self.version += 1;
        add_wanted(&mut self.wanted, rank.matching());
        let clause = rule.as_ref().filter(|rule| rule.instructions.is_clause());
        let was_clause = self.clauses.as_ref().is_some_and(|clauses| clauses.contains_key(&rank));
        if clause.is_some() || was_clause {
            let clauses = Arc::make_mut(self.clauses.get_or_insert_default());
            match clause {
                Some(clause) => drop(clauses.insert(rank.clone(), clause.clone())),
                None => drop(clauses.remove(&rank)),
            }
            if clauses.is_empty() {
                self.clauses = None;
            }
            self.wanted[usize::from(Field::ConjId.info().word)] |= Field::ConjId.ones() as u64;
        }
        match clause {
            Some(_) => self.delta.note(rank, None),
            None => self.delta.note(rank, rule),
        }
    }

    /// Returns whether some rules are clauses of conjunctions, which the base does not have.
    pub fn has_clauses(&self) -> bool {
        self.clauses.is_some()
    }

    /// Returns the same base with other changes on top of it, in which nothing was looked up yet.
    pub fn with_delta(self, delta: Delta) -> TablePlan {
        let mut wanted = self.wanted;
        delta.masks().for_each(|(word, mask)| wanted[usize::from(word)] |= mask);
        TablePlan { version: self.version + 1, wanted, delta, ..self }
    }

    /// Returns the same rules with the clauses of conjunctions of a newer plan of this table.
    pub fn with_clauses_of(self, newer: &TablePlan) -> TablePlan {
        let mut wanted = self.wanted;
        if newer.clauses.is_some() {
            wanted.iter_mut().zip(newer.wanted).for_each(|(word, more)| *word |= more);
        }
        TablePlan { clauses: newer.clauses.clone(), wanted, ..self }
    }

    /// Returns the later rules of a rule's subtable that may match the same packets, if they are
    /// few.
    fn behind(&self, rule: u32) -> Option<Arc<[u32]>> {
        let matching = self.rules[rule as usize].rank.matching();
        let overlaps = |other: &u32| self.rules[*other as usize].rank.matching().overlaps(matching);
        Some(self.base.behind(rule)?.into_iter().filter(overlaps).collect())
    }

    /// Returns the rules of the base, in the order of lookup.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the rule of a rank, unless it is a clause of a conjunction.
    pub fn rule_of(&self, rank: &Rank) -> Option<&Rule> {
        if let Some(change) = self.delta.change(rank) {
            return change.rule.as_ref();
        }
        let place = self.rules.binary_search_by(|rule| rule.rank.cmp(rank)).ok()?;
        Some(&self.rules[place])
    }

    /// Returns the changes since the base was built.
    pub fn delta(&self) -> &Delta {
        &self.delta
    }

    fn added(&self) -> impl Iterator<Item = &Rule> {
        self.delta.latest().filter_map(|change| change.rule.as_ref())
    }

    /// Returns the bits of the key that any rule compares, laid out like a key.
    pub fn wanted(&self) -> &[u64; WORDS] {
        &self.wanted
    }

    /// Returns whether the base alone is the whole plan: no rule was added or removed since it was
    /// built.
    pub fn is_settled(&self) -> bool {
        self.delta.is_empty()
    }

    /// Returns whether both have the same base, whatever changed since.
    pub fn shares_base(&self, other: &TablePlan) -> bool {
        Arc::ptr_eq(&self.base, &other.base)
    }

    /// Returns the same rules in a new base. Slow; call it off the fast path.
    pub fn rebuilt(&self) -> TablePlan {
        let mut changes: Vec<_> = self.delta.latest().collect();
        // Changes often come in order, which this sort, unlike an unstable one, makes use of.
        changes.sort_by(|a, b| a.rank.cmp(&b.rank));
        let mut changes = changes.into_iter().peekable();
        let mut rules = Vec::with_capacity(self.rules.len() + changes.len());
        for rule in &*self.rules {
            let is_before = |change: &&RuleChange| change.rank < rule.rank;
            while let Some(change) = changes.next_if(is_before) {
                rules.extend(change.rule.clone());
            }
            match changes.next_if(|change| change.rank == rule.rank) {
                Some(change) => rules.extend(change.rule.clone()),
                None => rules.push(rule.clone()),
            }
        }
        changes.for_each(|change| rules.extend(change.rule.clone()));
        let clauses = self.clauses.clone();
        let fresh = TablePlan { version: self.version, ..TablePlan::of(rules.into()) };
        // Clauses compare bits that no other rule may compare.
        let wanted = if clauses.is_some() { self.wanted } else { fresh.wanted };
        TablePlan { clauses, wanted, ..fresh }
    }

    /// Returns the structures of the base.
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// Returns the numbers of rules added and removed since the base was built. The time grows with
    /// the changes.
    pub fn changes(&self) -> (usize, usize) {
        let is_in_base = |rank: &Rank| self.rules.binary_search_by(|rule| rule.rank.cmp(rank)).is_ok();
        let gone = self.delta.latest().filter(|change| is_in_base(&change.rank)).count();
        (self.added().count(), gone)
    }

    /// Returns how deep into a packet its rules look.
    pub fn depth(&self) -> Depth {
        let clauses = self.clauses.iter().flat_map(|clauses| clauses.values());
        let matches = self.rules.iter().chain(self.added()).chain(clauses).map(|rule| rule.rank.matching());
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

impl FindFlow for Plan {
    fn find_flow(&self, table_id: u8, key: &Key) -> Option<&Rank> {
        self.table(table_id).lookup(key).map(|rule| &rule.rank)
    }
}

/// Returns the bits that any of the rules compares.
fn wanted(rules: &[Rule]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    rules.iter().for_each(|rule| add_wanted(&mut words, rule.rank.matching()));
    words
}

fn add_wanted(words: &mut [u64; WORDS], matching: &Match) {
    matching.terms().iter().for_each(|term| words[usize::from(term.word)] |= term.mask);
}

#[cfg(test)]
mod program_tests;
#[cfg(test)]
mod tests;
