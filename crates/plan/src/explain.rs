//! The text that describes the structures of a plan and the reason for each.

use crate::base::{Base, Body, Packed, Shape, Subtable};
use crate::{Plan, TablePlan};
use fastpath_switch::field::FIELDS;
use std::fmt::{self, Write};

impl Plan {
    /// Describes, for each table with rules, the structures chosen and why.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        for (id, table) in
            self.tables.iter().enumerate().filter(|(_, t)| !t.rules.is_empty() || !t.is_settled())
        {
            // Writing to a string cannot fail.
            let _ = write!(text, "table {id}: {}", table.explain());
        }
        text
    }
}

impl TablePlan {
    /// Describes the structures of the table and why: one line for the whole, then one per
    /// subtable.
    pub fn explain(&self) -> String {
        let (added, gone) = self.changes();
        let depth = format!("{:?}", self.depth()).to_lowercase();
        let mut text =
            format!("{} rules, parsed to {depth}, {} KiB", self.rules.len(), self.base.bytes() / 1024);
        if added + gone > 0 {
            let _ = write!(text, ", {added} rules added and {gone} removed since");
        }
        text.push('\n');
        for part in self.base.subtables() {
            let _ = writeln!(text, "  {part}");
        }
        if let Some(rule) = self.base.default_rule() {
            let priority = self.rules[rule as usize].rank.priority();
            let _ = writeln!(text, "  the rest: the rule without a match, priority {priority}");
        }
        text
    }
}

impl fmt::Display for Subtable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rules: ", self.rules())?;
        match self.body() {
            Body::Trie(trie) => {
                let part = trie.part();
                let field = FIELDS
                    .iter()
                    .find(|info| self.is_trie_field(info.field.presence(), part.word, part.shift));
                let name = field.map_or("a field", |info| info.name);
                let (first, kib) = (trie.first_bits(), trie.bytes() / 1024);
                write!(
                    f,
                    "trie of {first} bits, then bytes ({kib} KiB): the rules differ in the prefix of {name} only"
                )
            }
            Body::One(packed) => packed.explain(f),
            Body::Two(packed) => packed.explain(f),
            Body::Four(packed) => packed.explain(f),
            Body::Eight(packed) => packed.explain(f),
            Body::Sixteen(packed) => packed.explain(f),
            Body::More(packed) => packed.explain(f),
        }
    }
}

impl Subtable {
    fn is_trie_field(&self, presence: u128, word: u8, shift: u8) -> bool {
        let guard = self.guard().iter().find(|term| term.word == 0);
        let field = FIELDS[presence.trailing_zeros() as usize];
        let first_word = if field.bits == 128 { field.word - 1 } else { field.word };
        (presence as u64 == 0 || guard.is_some_and(|term| term.mask & presence as u64 != 0))
            && (first_word, field.shift) == (word, shift)
    }
}

impl<const N: usize> Packed<N> {
    fn explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lanes = self.lanes.count();
        match &self.shape {
            Shape::Chain(_) => write!(f, "compared one by one over {lanes} lanes: the rules are few"),
            Shape::Hash(hash) => {
                let kib = hash.bytes() / 1024;
                write!(f, "hash over {lanes} lanes ({kib} KiB): the rules match the same bits")
            }
            Shape::Trees(trees) => {
                write!(f, "decision trees over {lanes} lanes: the rules have many masks:")?;
                trees.iter().try_for_each(|tree| {
                    let (nodes, entries, depth) = (tree.nodes().len(), tree.entries().len(), tree.depth());
                    let kib = tree.bytes() / 1024;
                    write!(f, " at most {depth} cuts, {nodes} nodes, {entries} leaf entries ({kib} KiB);")
                })
            }
        }
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.subtables().iter().try_for_each(|part| writeln!(f, "{part}"))
    }
}
