//! Lookups in generated code: the subtables of a plan's base, visited in the order of their best
//! rule. Chains are compared in code; tries and hashes are read where they are; Rust descends
//! trees, with the key packed in code.

use super::asm::Asm;
use super::callout_table::Callout;
use super::context::Context;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Value};
use cranelift_frontend::Variable;
use fastpath_plan::{Base, Body, Entry, Hash, HashSlot, Lanes, Packed, Shape, Trie};
use fastpath_switch::Term;
use fastpath_switch::field::WORDS;
use fastpath_switch::mix::{MULTIPLIER, OFFSET};
use std::mem::offset_of;

/// The number that stands for "no rule", in 64 bits: greater than every rule.
pub(super) const NONE: u64 = u32::MAX as u64;

/// A key in registers; words that no rule compares may have any value.
pub(super) type KeyWords = [Value; WORDS];

/// Emits the lookup in a base; returns the number of the first rule that matches, or [`NONE`].
pub(super) fn base(asm: &mut Asm<'_>, context: Value, words: &KeyWords, base: &Base) -> Value {
    let default = base.default_rule().map_or(NONE, u64::from);
    let best = asm.variable(default);
    let done = asm.block();
    // A subtable whose first rule is after the rule for all packets cannot be found.
    let parts = base.subtables().iter().filter(|part| u64::from(part.best()) < default);
    for (place, part) in parts.enumerate() {
        let next = asm.block();
        if place > 0 {
            let so_far = asm.get(best);
            // No rule in it precedes the rule found so far.
            let is_late = asm.is_number(IntCC::UnsignedLessThanOrEqual, so_far, part.best().into());
            asm.leave_if(is_late, done);
        }
        guard(asm, words, part.guard(), next);
        let find = Find { context, words, best, next };
        match part.body() {
            Body::Trie(trie) => find.trie(asm, trie),
            Body::One(packed) => find.packed(asm, packed),
            Body::Two(packed) => find.packed(asm, packed),
            Body::Four(packed) => find.packed(asm, packed),
            Body::Eight(packed) => find.packed(asm, packed),
            Body::Sixteen(packed) => find.packed(asm, packed),
            Body::More(packed) => find.packed(asm, packed),
        }
        asm.at(next);
    }
    asm.jump(done);
    asm.at(done);
    asm.get(best)
}

/// Branches to `miss` unless the key agrees with every term.
fn guard(asm: &mut Asm<'_>, words: &KeyWords, terms: &[Term], miss: Block) {
    let Some(differences) =
        differences(asm, terms.iter().map(|term| (words[usize::from(term.word)], term.mask, term.value)))
    else {
        return;
    };
    let hit = asm.block();
    asm.branch(differences, miss, hit);
    asm.at(hit);
}

/// Returns a value that is not 0 if any masked word differs from its value.
fn differences(asm: &mut Asm<'_>, terms: impl Iterator<Item = (Value, u64, u64)>) -> Option<Value> {
    let mut all = None;
    for (word, mask, value) in terms.filter(|(_, mask, _)| *mask != 0) {
        let masked = asm.and(word, mask);
        let difference = asm.xor_number(masked, value);
        all = Some(match all {
            Some(others) => asm.or(others, difference),
            None => difference,
        });
    }
    all
}

/// The search of one subtable.
struct Find<'w> {
    context: Value,
    words: &'w KeyWords,
    /// The best rule so far.
    best: Variable,
    /// The block to continue at.
    next: Block,
}

impl Find<'_> {
    /// Keeps a rule if it is better, and continues.
    fn improve(&self, asm: &mut Asm<'_>, rule: Value) {
        let best = asm.get(self.best);
        let is_better = asm.is(IntCC::UnsignedLessThan, rule, best);
        let best = asm.select(is_better, rule, best);
        asm.set(self.best, best);
        asm.jump(self.next);
    }

    fn trie(&self, asm: &mut Asm<'_>, trie: &Trie) {
        let part = trie.part();
        let word = self.words[usize::from(part.word)];
        let high = asm.shr(word, part.shift.into());
        let high = asm.shl(high, 64 - u32::from(part.bits.min(64)));
        let index = asm.shr(high, 64 - trie.first_bits());
        let entry = self.entry(asm, trie.first(), index);
        let found = asm.variable(0);
        asm.set(found, entry);
        let done = asm.block();
        let mut at = trie.first_bits();
        while at < u32::from(part.bits) && !trie.nodes().is_empty() {
            let entry = asm.get(found);
            let node = asm.and(entry, Trie::NODE.into());
            asm.leave_unless(node, done);
            let byte = if at < 64 {
                let byte = asm.shl(high, at);
                asm.shr(byte, 56)
            } else {
                let byte = asm.shl(self.words[usize::from(part.word) + 1], at - 64);
                asm.shr(byte, 56)
            };
            let node = asm.and(entry, (!Trie::NODE).into());
            let node = asm.shl(node, 8);
            let index = asm.or(node, byte);
            let entry = self.entry(asm, trie.nodes(), index);
            asm.set(found, entry);
            at += 8;
        }
        asm.jump(done);
        asm.at(done);
        let entry = asm.get(found);
        let is_empty = asm.is_number(IntCC::Equal, entry, Trie::EMPTY.into());
        let none = asm.number(NONE);
        let rule = asm.select(is_empty, none, entry);
        self.improve(asm, rule);
    }

    fn entry(&self, asm: &mut Asm<'_>, entries: &[u32], index: Value) -> Value {
        let start = asm.number(entries.as_ptr().expose_provenance() as u64);
        let offset = asm.shl(index, 2);
        let address = asm.add(start, offset);
        asm.load_32(address, 0)
    }

    fn packed<const N: usize>(&self, asm: &mut Asm<'_>, packed: &Packed<N>) {
        let key = self.pack::<N>(asm, &packed.lanes);
        match &packed.shape {
            Shape::Chain(entries) => self.chain(asm, &key, entries),
            Shape::Hash(hash) => self.hash(asm, &key, hash),
            Shape::Trees(_) => {
                let room = asm.stack(N);
                key.iter().zip(0..).for_each(|(lane, i)| asm.store(*lane, room, 8 * i));
                let address = asm.number(std::ptr::from_ref(packed).expose_provenance() as u64);
                let bound = asm.get(self.best);
                let callee: Callout = find_packed::<N>;
                let rule = asm.call(callee, [self.context, address, room, bound]);
                self.improve(asm, rule);
            }
        }
    }

    /// Emits what [`Lanes::pack`] does.
    fn pack<const N: usize>(&self, asm: &mut Asm<'_>, lanes: &Lanes) -> [Value; N] {
        let mut packed = [None; N];
        for piece in lanes.pieces() {
            let bits = asm.shr(self.words[usize::from(piece.word)], piece.shift.into());
            // A piece that reaches to the top of its word needs no mask.
            let needs_mask = piece.mask < u64::MAX >> piece.shift;
            let bits = if needs_mask { asm.and(bits, piece.mask) } else { bits };
            let bits = asm.shl(bits, piece.at.into());
            let lane = &mut packed[usize::from(piece.lane)];
            *lane = Some(match *lane {
                Some(others) => asm.or(others, bits),
                None => bits,
            });
        }
        packed.map(|lane| lane.unwrap_or_else(|| asm.number(0)))
    }

    fn chain<const N: usize>(&self, asm: &mut Asm<'_>, key: &[Value; N], entries: &[Entry<N>]) {
        for entry in entries {
            let hit = asm.block();
            let terms = (0..N).map(|lane| (key[lane], entry.mask[lane], entry.value[lane]));
            match differences(asm, terms) {
                Some(differences) => {
                    let on = asm.block();
                    asm.branch(differences, on, hit);
                    asm.at(hit);
                    let rule = asm.number(entry.rule.into());
                    self.improve(asm, rule);
                    asm.at(on);
                }
                None => {
                    asm.jump(hit);
                    asm.at(hit);
                    let rule = asm.number(entry.rule.into());
                    // The guard compares everything: no later entry is reached.
                    return self.improve(asm, rule);
                }
            }
        }
        asm.jump(self.next);
    }

    /// Emits what [`Hash`] does: linear probing from the mixed value.
    fn hash<const N: usize>(&self, asm: &mut Asm<'_>, key: &[Value; N], hash: &Hash<N>) {
        let masked: [Value; N] = std::array::from_fn(|lane| asm.and(key[lane], hash.mask()[lane]));
        let mut mixed = asm.number(0);
        let multiplier = asm.number(MULTIPLIER);
        for lane in masked {
            let word = asm.xor(mixed, lane);
            let word = asm.xor_number(word, OFFSET);
            let (low, high) = asm.wide_times(word, multiplier);
            mixed = asm.xor(high, low);
        }
        let last = hash.slots().len() as u64 - 1;
        let start = asm.number(hash.slots().as_ptr().expose_provenance() as u64);
        let at = asm.variable(0);
        let first = asm.and(mixed, last);
        asm.set(at, first);
        let (probe, hit, on) = (asm.block(), asm.block(), asm.block());
        asm.jump(probe);
        asm.at(probe);
        let index = asm.get(at);
        let offset = asm.times(index, size_of::<HashSlot<N>>() as u64);
        let slot = asm.add(start, offset);
        let rule = asm.load_32(slot, offset_of!(HashSlot<N>, rule) as i32);
        // The slot is free, or holds the value, or neither.
        let is_free = asm.is_number(IntCC::Equal, rule, NONE);
        asm.leave_if(is_free, self.next);
        let mut differences = None;
        for (lane, value) in masked.iter().enumerate().filter(|(lane, _)| hash.mask()[*lane] != 0) {
            let there = asm.load(slot, 8 * lane as i32);
            let difference = asm.xor(there, *value);
            differences = Some(match differences {
                Some(others) => asm.or(others, difference),
                None => difference,
            });
        }
        match differences {
            Some(differences) => asm.branch(differences, on, hit),
            None => asm.jump(hit),
        }
        asm.at(on);
        let index = asm.add_number(index, 1);
        let index = asm.and(index, last);
        asm.set(at, index);
        asm.jump(probe);
        asm.at(hit);
        self.improve(asm, rule);
    }
}

/// Descends the trees of a subtable, or whatever structure it has, with a packed key: returns the
/// number of the first rule before `bound`, or [`NONE`]. The context is not looked at.
///
/// # Safety
/// `packed` is the address of a `Packed<N>` that lives, and `key` that of `N` initialised words.
unsafe extern "C" fn find_packed<const N: usize>(_: *mut Context, packed: u64, key: u64, bound: u64) -> u64 {
    // SAFETY: the code was generated with the address of a `Packed<N>` of a plan that the code
    // keeps alive.
    let packed = unsafe { &*std::ptr::with_exposed_provenance::<Packed<N>>(packed as usize) };
    // SAFETY: the code passes the address of `N` words on its stack, all of them written.
    let key = unsafe { &*std::ptr::with_exposed_provenance::<[u64; N]>(key as usize) };
    packed.find_packed(key, bound as u32).into()
}
