//! Plans: tables as lookup structures, made from a [`Switch`] and kept up to date with it.
//!
//! ```text
//!   Switch ──▶ TablePlan = base (parts of the cheapest shapes) + delta (rules added since) + dead (rules gone)
//!              lookup(key) ──▶ rule
//! ```
//!
//! A plan is immutable to its readers and cheap to clone: the base is shared. A change of a few rules makes a new
//! plan with another delta, at once; when the delta has grown, the base is made anew, off the fast path.
//!
//! Not the execution of a packet: that is generated code, or [`interp`](crate::interp()). What code is generated from is
//! all readable here: parts, guards, packings, nodes. Read first: `base.rs`, then the shapes.

mod base;
mod cache;
mod entry;
mod explain;
pub mod hash;
mod lanes;
mod tree;
mod trie;

pub use base::{Base, Body, Packed, Part, Shape};
pub use cache::Cache;
pub use entry::Entry;
pub use hash::{Hash, Slot};
pub use lanes::{Lanes, Piece};
pub use tree::{Node, Tree};
pub use trie::{Part as TriePart, Trie};

use crate::field::WORDS;
use crate::flow::{Flow, Instructions, Rank};
use crate::key::{Depth, Key};
use crate::switch::Switch;
use crate::table::{Changes, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// No rule, inside the structures.
pub(crate) const NONE: u32 = u32::MAX;
/// Rules added and gone that a plan carries beside its base before the base is made anew.
const DELTA_MAX: usize = 256;

/// Set in the numbers of rules of the delta.
const ADDED: u32 = 1 << 31;

/// The number of a rule in the plan that found it, or that there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found(u32);

impl Found {
    /// No rule.
    pub const NONE: Found = Found(NONE);

    /// What [`Found::number`] gave.
    pub fn from_number(number: u32) -> Found {
        Found(number)
    }

    /// The place of a rule among those [added](TablePlan::added) since the base was made.
    pub fn added(self) -> Option<usize> {
        (self.0 != NONE && self.0 & ADDED != 0).then_some((self.0 & !ADDED) as usize)
    }

    /// The number: of a rule of the base in the order of lookup, with the highest bit set of a rule added since, or
    /// all ones for none.
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
    delta: Option<Arc<Delta>>,
    /// Rules of the base that are gone, each with the later rules of its part that may share packets with it.
    dead: BTreeMap<u32, Arc<[u32]>>,
}

/// Rules that came after the base was made.
#[derive(Clone, Debug)]
struct Delta {
    rules: Vec<Rule>,
    /// For each, how many rules of the base come before it.
    places: Vec<u32>,
    base: Base,
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
        TablePlan { version: 0, wanted, rules, base: Arc::new(base), delta: None, dead: BTreeMap::new() }
    }

    /// The rule for a packet: the flow that [`interp`](crate::interp()) would find.
    #[inline]
    pub fn lookup(&self, key: &Key) -> Option<&Rule> {
        self.rule(self.find(key))
    }

    /// The rule for a packet, by the number that [`TablePlan::rule`] knows.
    #[inline]
    pub fn find(&self, key: &Key) -> Found {
        let found = self.base.lookup(key);
        if self.delta.is_none() && self.dead.is_empty() {
            return Found(found.unwrap_or(NONE));
        }
        self.find_changed(key, found)
    }

    /// The rule of a number that [`TablePlan::find`] gave.
    #[inline]
    pub fn rule(&self, found: Found) -> Option<&Rule> {
        match found.0 {
            NONE => None,
            number if number & ADDED != 0 => self.delta.as_ref()?.rules.get((number & !ADDED) as usize),
            number => self.rules.get(number as usize),
        }
    }

    /// The rule after what changed since the base was made.
    fn find_changed(&self, key: &Key, found: Option<u32>) -> Found {
        let is_alive = |rule: &u32| !self.dead.contains_key(rule);
        let matches = |rule: &&u32| self.rules[**rule as usize].rank.matching().matches(key);
        // A dead rule hid the next one of its part, which shares this packet with it.
        let instead = |rule| match self.dead.get(&rule) {
            Some(later) => later.iter().filter(|rule| is_alive(rule)).find(matches).copied().unwrap_or(NONE),
            None => rule,
        };
        let living = match found {
            Some(rule) if !is_alive(&rule) => self.base.lookup_but_for(key, instead),
            _ => found,
        };
        let added = self.delta.as_deref().and_then(|delta| Some((delta, delta.base.lookup(key)?)));
        match (living, added) {
            (Some(rule), Some((delta, new))) if delta.places[new as usize] > rule => Found(rule),
            (_, Some((_, new))) => Found(ADDED | new),
            (Some(rule), None) => Found(rule),
            (None, None) => Found(NONE),
        }
    }

    /// Takes over what changed in the table since its changes were last taken.
    pub fn update(&mut self, table: &Table, changes: &Changes) -> Update {
        let ranks = match changes {
            Changes::Few(ranks) if ranks.is_empty() => return Update::Unchanged,
            Changes::Few(ranks) => ranks,
            Changes::Many => {
                *self = TablePlan { version: self.version + 1, ..TablePlan::new(table) };
                return Update::Delta;
            }
        };
        let old = self.delta.take().map(|delta| delta.rules.clone()).unwrap_or_default();
        let mut added: BTreeSet<Rank> = old.into_iter().map(|rule| rule.rank).collect();
        for rank in ranks {
            if let Ok(index) = self.rules.binary_search_by(|rule| rule.rank.cmp(rank)) {
                self.bury(index as u32);
            }
            added.insert(rank.clone());
        }
        let current = added.iter().filter_map(|rank| Some(Rule::of((rank, table.flow(rank)?))));
        let rules: Vec<Rule> = current.collect();
        self.version += 1;
        self.wanted.iter_mut().zip(wanted(&rules)).for_each(|(all, more)| *all |= more);
        let size = rules.len() + self.dead.len();
        let place = |rule: &Rule| self.rules.partition_point(|old| old.rank < rule.rank) as u32;
        let places = rules.iter().map(place).collect();
        let base = Base::new(rules.iter().map(|rule| rule.rank.matching()));
        self.delta = (!rules.is_empty()).then(|| Arc::new(Delta { rules, places, base }));
        if size > DELTA_MAX { Update::RebuildSoon } else { Update::Delta }
    }

    fn bury(&mut self, rule: u32) {
        let matching = self.rules[rule as usize].rank.matching();
        let overlaps = |other: &u32| self.rules[*other as usize].rank.matching().overlaps(matching);
        let later: Arc<[u32]> = match self.base.behind(rule) {
            Some(behind) => behind.into_iter().filter(overlaps).collect(),
            // It is the rule for everything, behind which nothing has a place in the base.
            None => (rule + 1..self.rules.len() as u32).filter(overlaps).collect(),
        };
        self.dead.insert(rule, later);
    }

    /// The rules of the base, in the order of lookup.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The rules added since the base was made, in the order of lookup.
    pub fn added(&self) -> &[Rule] {
        self.delta.as_ref().map_or(&[], |delta| &delta.rules)
    }

    /// The bits of the key that any rule looks at, laid out like one.
    pub fn wanted(&self) -> &[u64; WORDS] {
        &self.wanted
    }

    /// Whether the base alone says everything: no rule was added or went since it was made.
    pub fn is_settled(&self) -> bool {
        self.delta.is_none() && self.dead.is_empty()
    }

    /// The same rules in a new base. Takes long; off the fast path.
    pub fn rebuilt(&self) -> TablePlan {
        let living = (0..).zip(self.rules.iter()).filter(|(index, _)| !self.dead.contains_key(index));
        let mut rules: Vec<Rule> = living.map(|(_, rule)| rule).chain(self.added()).cloned().collect();
        rules.sort_by(|a, b| a.rank.cmp(&b.rank));
        TablePlan { version: self.version, ..TablePlan::of(rules.into()) }
    }

    /// The structures of the base.
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// Rules added and rules gone since the base was made.
    pub fn changes(&self) -> (usize, usize) {
        (self.delta.as_ref().map_or(0, |delta| delta.rules.len()), self.dead.len())
    }

    /// How far into a packet its rules look.
    pub fn depth(&self) -> Depth {
        let added = self.delta.iter().flat_map(|delta| &delta.rules);
        let matches = self.rules.iter().chain(added).map(|rule| rule.rank.matching());
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

    /// Takes over what changed in the switch; answers with the tables whose base should be made anew.
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
