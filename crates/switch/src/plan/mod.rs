//! Plans: tables as lookup structures, made from a [`Switch`] and kept up to date with it.
//!
//! ```text
//!   Switch ──▶ TablePlan = base (parts of the cheapest shapes) + delta (runs of rules added and gone since)
//!              lookup(key) ──▶ rule
//! ```
//!
//! A plan is immutable to its readers and cheap to clone: the base is shared. A change of a few
//! rules makes a new plan with another delta, at once; when the delta has grown, the base is made
//! anew, off the fast path.
//!
//! Not the execution of a packet: that is generated code, or [`interp`](crate::interp()). What code
//! is generated from is all readable here: parts, guards, packings, nodes. Read first: `base.rs`,
//! then the shapes.

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

/// No rule, inside the structures.
pub(crate) const NONE: u32 = u32::MAX;
/// Rules added and gone that a plan carries beside its base before the base is made anew.
const DELTA_MAX: usize = 256;

/// Set in the numbers of rules of the delta, which also say the run and the place there.
const ADDED: u32 = 1 << 31;
/// Bits for the place in a run.
const PLACE_BITS: u32 = 16;
/// Runs at most; with more, the base is made anew at once.
const RUNS_MAX: usize = 1024;

/// The number of a rule in the plan that found it, or that there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RuleNumber(u32);

impl RuleNumber {
    /// No rule.
    pub const NONE: RuleNumber = RuleNumber(NONE);

    /// What [`RuleNumber::number`] gave.
    pub fn from_number(number: u32) -> RuleNumber {
        RuleNumber(number)
    }

    /// The [run](TablePlan::runs) and the place there of a rule that was added since the base was
    /// made.
    pub fn added(self) -> Option<(usize, usize)> {
        let (run, place) = ((self.0 & !ADDED) >> PLACE_BITS, self.0 & ((1 << PLACE_BITS) - 1));
        (self.0 != NONE && self.0 & ADDED != 0).then_some((run as usize, place as usize))
    }

    fn in_run(run: usize, place: u32) -> RuleNumber {
        debug_assert!(run <= RUNS_MAX && place < 1 << PLACE_BITS, "rule {place} of run {run}");
        RuleNumber(ADDED | (run as u32) << PLACE_BITS | place)
    }

    /// The number: of a rule of the base in the order of lookup, something with the highest bit set
    /// of a rule added since, or all ones for none.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// A flow as a plan knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Priority and match.
    pub rank: Rank,
    /// The serial number of the flow, for crediting counters.
    pub serial: u64,
    /// The flow's cookie.
    pub cookie: u64,
    /// What it does.
    pub instructions: Arc<Instructions>,
}

/// The plan of one table.
#[derive(Clone, Debug)]
pub struct TablePlan {
    /// Grows with every update: what was remembered of an older plan is out of date.
    version: u64,
    /// The bits of the key that any rule looks at.
    wanted: [u64; WORDS],
    rules: Arc<[Rule]>,
    base: Arc<Base>,
    /// What changed since the base was made; a rule of the base is gone in one of them at most.
    runs: Vec<Arc<DeltaRun>>,
}

/// The plan of a whole switch.
#[derive(Clone, Debug)]
pub struct Plan {
    tables: Vec<TablePlan>,
}

/// What an update did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Update {
    /// Nothing had changed.
    Unchanged,
    /// The changes went into the delta.
    Delta,
    /// The base should be made anew ([`TablePlan::new`]); until then lookups are right but slower.
    RebuildSoon,
}

impl Rule {
    /// The rules of the flows of these ranks that are in the table.
    pub fn current(table: &Table, ranks: &BTreeSet<Rank>) -> Vec<Rule> {
        ranks.iter().filter_map(|rank| Some(Rule::of((rank, table.flow(rank)?)))).collect()
    }

    fn of((rank, flow): (&Rank, &Flow)) -> Rule {
        let (rank, instructions) = (rank.clone(), Arc::clone(&flow.instructions));
        Rule { rank, serial: flow.serial, cookie: flow.cookie, instructions }
    }
}

impl TablePlan {
    /// The plan of a table as it is.
    pub fn new(table: &Table) -> TablePlan {
        TablePlan::of(table.flows().map(Rule::of).collect())
    }

    /// The plan of rules in the order of lookup.
    fn of(rules: Arc<[Rule]>) -> TablePlan {
        let base = Base::new(rules.iter().map(|rule| rule.rank.matching()));
        let wanted = wanted(&rules);
        TablePlan { version: 0, wanted, rules, base: Arc::new(base), runs: Vec::new() }
    }

    /// The rule for a packet: the flow that [`interp`](crate::interp()) would find.
    #[inline]
    pub fn lookup(&self, key: &Key) -> Option<&Rule> {
        self.rule(self.find(key))
    }

    /// The rule for a packet, by the number that [`TablePlan::rule`] knows.
    #[inline]
    pub fn find(&self, key: &Key) -> RuleNumber {
        let found = self.base.lookup(key);
        if self.runs.is_empty() {
            return RuleNumber(found.unwrap_or(NONE));
        }
        self.find_changed(key, found)
    }

    /// The rule of a number that [`TablePlan::find`] gave.
    #[inline]
    pub fn rule(&self, found: RuleNumber) -> Option<&Rule> {
        match found.added() {
            Some((run, place)) => self.runs.get(run)?.rules().get(place),
            None => self.rules.get(found.0 as usize),
        }
    }

    /// The rule after what changed since the base was made.
    fn find_changed(&self, key: &Key, found: Option<u32>) -> RuleNumber {
        let matches = |rule: &&u32| self.rules[**rule as usize].rank.matching().matches(key);
        // A dead rule hid the next one of its part, which shares this packet with it.
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

    /// What is behind a rule of the base that is gone; `None` if it is there.
    fn behind_dead(&self, rule: u32) -> Option<&Arc<[u32]>> {
        self.runs.iter().find_map(|run| run.dead().get(&rule))
    }

    /// Takes over what changed in the table since its changes were last taken.
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

    /// Takes in that the flows of these ranks, few of them, are `rules` now; those without a rule
    /// are gone.
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

    /// The later rules of the part of a rule that may share packets with it.
    fn behind(&self, rule: u32) -> Arc<[u32]> {
        let matching = self.rules[rule as usize].rank.matching();
        let overlaps = |other: &u32| self.rules[*other as usize].rank.matching().overlaps(matching);
        match self.base.behind(rule) {
            Some(behind) => behind.into_iter().filter(overlaps).collect(),
            // It is the rule for everything, behind which nothing has a place in the base.
            None => (rule + 1..self.rules.len() as u32).filter(overlaps).collect(),
        }
    }

    /// The rules of the base, in the order of lookup.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// What changed since the base was made, oldest first.
    pub fn runs(&self) -> &[Arc<DeltaRun>] {
        &self.runs
    }

    fn added(&self) -> impl Iterator<Item = &Rule> {
        self.runs.iter().flat_map(|run| run.rules())
    }

    /// The bits of the key that any rule looks at, laid out like one.
    pub fn wanted(&self) -> &[u64; WORDS] {
        &self.wanted
    }

    /// Whether the base alone says everything: no rule was added or went since it was made.
    pub fn is_settled(&self) -> bool {
        self.runs.is_empty()
    }

    /// Whether both have the same base, whatever changed beside it.
    pub fn shares_base(&self, other: &TablePlan) -> bool {
        Arc::ptr_eq(&self.base, &other.base)
    }

    /// The same rules in a new base. Takes long; off the fast path.
    pub fn rebuilt(&self) -> TablePlan {
        let mut is_dead = vec![false; self.rules.len()];
        self.runs.iter().flat_map(|run| run.dead().keys()).for_each(|rule| is_dead[*rule as usize] = true);
        let living = self.rules.iter().zip(is_dead).filter(|(_, is_dead)| !is_dead).map(|(rule, _)| rule);
        let mut rules: Vec<Rule> = living.chain(self.added()).cloned().collect();
        rules.sort_by(|a, b| a.rank.cmp(&b.rank));
        TablePlan { version: self.version, ..TablePlan::of(rules.into()) }
    }

    /// The structures of the base.
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// Rules added and rules gone since the base was made.
    pub fn changes(&self) -> (usize, usize) {
        self.runs
            .iter()
            .fold((0, 0), |(added, gone), run| (added + run.rules().len(), gone + run.dead().len()))
    }

    /// How far into a packet its rules look.
    pub fn depth(&self) -> Depth {
        let matches = self.rules.iter().chain(self.added()).map(|rule| rule.rank.matching());
        matches.map(|matching| Depth::of(matching.presence())).max().unwrap_or(Depth::Nothing)
    }
}

impl Plan {
    /// The plan of every table of a switch as it is.
    pub fn new(switch: &mut Switch) -> Plan {
        let ids = 0..switch.limits().tables;
        // What changed before now is in the tables.
        ids.for_each(|id| drop(switch.table_mut(id).take_changes()));
        Plan { tables: switch.tables().iter().map(TablePlan::new).collect() }
    }

    /// Takes over what changed in the switch; answers with the tables whose base should be made
    /// anew.
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

    /// Puts in a table's new base. It must have been made of the table as the last update saw it.
    pub fn replace(&mut self, table_id: u8, plan: TablePlan) {
        let old = &mut self.tables[usize::from(table_id)];
        *old = TablePlan { version: old.version + 1, ..plan };
    }

    /// A plan made of plans of tables, by number.
    pub fn of(tables: Vec<TablePlan>) -> Plan {
        Plan { tables }
    }

    /// The plan of a table.
    pub fn table(&self, id: u8) -> &TablePlan {
        &self.tables[usize::from(id)]
    }

    /// The plans of all tables, by number.
    pub fn tables(&self) -> &[TablePlan] {
        &self.tables
    }

    /// How far into a packet any table looks: parsing may stop there.
    pub fn depth(&self) -> Depth {
        self.tables.iter().map(TablePlan::depth).max().unwrap_or(Depth::Nothing)
    }
}

/// The bits that any of the rules looks at.
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
