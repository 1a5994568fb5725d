//! The part of the program that finds the rule of a packet in a table.
//!
//! Parts are asked in the order of their best rule until no later one can improve the result.

use super::code::Code;
use super::layout::{BEST, KEY};
use super::lookups::{NUMBER_BITS, PartBody, TablePart, data_of};
use fastpath_bpf::asm::Reg::{self, R0, R1, R2, R3, R8, R9, R10};
use fastpath_bpf::asm::Size::{Double, Word};
use fastpath_bpf::asm::{Alu, Cond, Label};
use fastpath_bpf::helpers::helper;
use fastpath_plan::KeyBits;
use fastpath_plan::TablePlan;
use fastpath_switch::Term;
use fastpath_sys::bpf::Map;

/// In `R8`: no rule.
pub(super) const NO_RULE: u64 = 0xffff_ffff;
/// Bytes of an LPM key before its data: the length of the prefix, the number of the part.
const PREFIX_HEAD: i16 = 8;

impl Code<'_> {
    /// Emits the search: `R8` becomes the number of the rule in its table, or [`NO_RULE`]. Changes
    /// `R0` to `R5`.
    pub(super) fn find(&mut self, plan: &TablePlan, parts: &[TablePart<'_>]) {
        let found = self.a.label();
        self.a.mov_wide(R8, NO_RULE);
        self.put(BEST, R8);
        for (place, part) in parts.iter().enumerate() {
            if place > 0 {
                self.get(R8, BEST);
                self.a.jump_if(Cond::Le, R8, part.best as i32, found);
            }
            let next = self.a.label();
            part.guard.iter().for_each(|term| self.require(term, next));
            match &part.body {
                PartBody::Compared(rules) => self.compare(rules, next),
                PartBody::Hash { masks, .. } => self.hash(part.number, masks, next),
                PartBody::Prefixes { bits, .. } => self.prefixes(part.number, *bits, next),
            }
            self.a.place(next);
        }
        if let Some(rule) = plan.base().default_rule() {
            self.take_better(rule, found);
        }
        self.a.place(found);
        self.get(R8, BEST);
    }

    /// Takes a rule if it precedes the best one so far, else goes to `otherwise`. Changes `R1`.
    fn take_better(&mut self, rule: u32, otherwise: Label) {
        self.get(R1, BEST);
        self.a.jump_if(Cond::Le, R1, rule as i32, otherwise);
        self.put_number(BEST, rule as i32);
    }

    /// `to` = the bits of a mask in a word of the key. Changes `R2`.
    fn masked(&mut self, to: Reg, word: u8, mask: u64) {
        self.a.load(Double, to, R9, KEY + 8 * i16::from(word));
        match i32::try_from(mask) {
            _ if mask == u64::MAX => {}
            Ok(mask) => self.a.alu(Alu::And, to, mask),
            Err(_) => {
                self.a.mov_wide(R2, mask);
                self.a.alu(Alu::And, to, R2);
            }
        }
    }

    /// Goes to `otherwise` unless the key agrees with a term.
    fn require(&mut self, term: &Term, otherwise: Label) {
        self.masked(R1, term.word, term.mask);
        match i32::try_from(term.value) {
            Ok(value) => self.a.jump_if(Cond::Ne, R1, value, otherwise),
            Err(_) => {
                self.a.mov_wide(R2, term.value);
                self.a.jump_if(Cond::Ne, R1, R2, otherwise);
            }
        }
    }

    fn compare(&mut self, rules: &[(Vec<Term>, u32)], next: Label) {
        for (terms, rule) in rules {
            let other = self.a.label();
            terms.iter().for_each(|term| self.require(term, other));
            self.take_better(*rule, next);
            self.a.jump(next);
            self.a.place(other);
        }
    }

    fn hash(&mut self, number: u32, masks: &[(u8, u64)], next: Label) {
        let start = -16 - 8 * masks.len() as i16;
        self.a.store(Double, R10, start, number as i32);
        for (place, (word, mask)) in (1..).zip(masks) {
            self.masked(R1, *word, *mask);
            self.a.store(Double, R10, start + 8 * place, R1);
        }
        let lookups = self.lookups;
        self.ask(lookups.hashes.get(&masks.len()), start, next);
    }

    fn prefixes(&mut self, number: u32, bits: KeyBits, next: Label) {
        let (data, start) = (data_of(bits), -32);
        self.a.store(Word, R10, start, (NUMBER_BITS + u32::from(bits.bits)) as i32);
        self.a.store(Word, R10, start + 4, number as i32);
        let words = if data == 16 { 2 } else { 1 };
        for place in 0..words {
            let at = start + PREFIX_HEAD + 8 * place;
            self.a.load(Double, R1, R9, KEY + 8 * (i16::from(bits.word) + place));
            if bits.bits < 64 {
                self.a.alu(Alu::ShiftRight, R1, i32::from(bits.shift));
                self.a.alu(Alu::ShiftLeft, R1, 64 - i32::from(bits.bits));
            }
            self.a.swap_network(R1, 64);
            self.a.store(Word, R10, at, R1);
            if data > 4 {
                self.a.alu(Alu::ShiftRight, R1, 32);
                self.a.store(Word, R10, at + 4, R1);
            }
        }
        let lookups = self.lookups;
        self.ask(lookups.prefixes.get(&data), start, next);
    }

    /// Looks a key on the stack up, and takes the rule if it precedes the best one so far.
    fn ask(&mut self, table: Option<&Map>, start: i16, next: Label) {
        let Some(table) = table else { unreachable!("every part has a map") };
        self.a.mov(R2, R10);
        self.a.alu(Alu::Add, R2, i32::from(start));
        self.a.load_map(R1, table);
        self.a.call(helper::MAP_LOOKUP);
        self.a.jump_if(Cond::Eq, R0, 0, next);
        self.a.load(Word, R3, R0, 0);
        self.get(R1, BEST);
        self.a.jump_if(Cond::Ge, R3, R1, next);
        self.put(BEST, R3);
    }
}
