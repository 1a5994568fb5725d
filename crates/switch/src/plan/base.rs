//! A set of rules turned into the cheapest structures that fit it: parts, each with a shape, asked in the order of
//! their best rule until none can improve on what was found.
//!
//! ```text
//!  rules ─▶ by fields matched ─▶ one mask: hash │ one prefix: trie │ else: trees by prefix length │ few: chain
//! ```
//!
//! Immutable once made. What every rule of a part demands alike is its guard, compared once.

use super::NONE;
use super::entry::{Entry, first};
use super::hash::Hash;
use super::lanes::{Lanes, Words, spread};
use super::tree::Tree;
use super::trie::{Part as TriePart, Prefix, Trie};
use crate::field::{FIELDS, Field, WORDS};
use crate::key::Key;
use crate::matching::{Match, Term};
use std::collections::{BTreeMap, BTreeSet};

/// Rules up to which comparing one after the other is cheapest (`benches/lookup.rs`, `chain`).
const CHAIN_MAX: usize = 8;
/// Rules from which a part of its own pays.
const PART_MIN: usize = 8;
/// Rules from which a trie, whose first level alone is 256 KiB, beats a chain or tree (`benches/lookup.rs`).
const TRIE_MIN: usize = 16;
/// Masks up to which a hash for each beats a tree (`benches/lookup.rs`, `masks`).
const HASHES_MAX: usize = 3;

/// Rules in the order of lookup, as structures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Base {
    parts: Vec<Part>,
    /// The first rule that matches everything.
    default: u32,
}

/// Some of the rules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The first of its rules.
    best: u32,
    /// How many rules it holds.
    rules: usize,
    guard: Guard,
    body: Body,
}

/// What all rules of a part demand.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Guard {
    /// Most guards are presence and EtherType, so two terms are compared without a loop; a missing one demands nothing.
    two: [Term; 2],
    /// All of them.
    terms: Vec<Term>,
}

/// How a part finds its rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// Prefixes of one field.
    Trie(Trie),
    /// Over one packed lane.
    One(Packed<1>),
    /// Over two.
    Two(Packed<2>),
    /// Over three or four.
    Four(Packed<4>),
    /// Over five to eight.
    Eight(Packed<8>),
    /// Over more.
    Sixteen(Packed<16>),
}

/// A shape over packed lanes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packed<const N: usize> {
    /// How keys are packed.
    pub lanes: Lanes,
    /// What is done with them.
    pub shape: Shape<N>,
}

/// What is done with a packed key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shape<const N: usize> {
    /// Compare with one rule after the other.
    Chain(Vec<Entry<N>>),
    /// Look up the masked key.
    Hash(Hash<N>),
    /// Descend a decision tree.
    Tree(Tree<N>),
}

/// What a set of rules shall become.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Wish {
    Chain,
    Hash,
    Tree,
    Trie(Field),
}

/// A rule to be placed.
struct Rule {
    index: u32,
    masks: Words,
    values: Words,
}

impl Base {
    /// The structures for matches in the order of lookup; a rule is known by its index.
    pub fn new<'a>(matches: impl Iterator<Item = &'a Match>) -> Base {
        Base::by(matches, partition)
    }

    /// A hash for every mask, whatever would be cheaper: tuple-space search, to compare with.
    pub fn hash_per_mask<'a>(matches: impl Iterator<Item = &'a Match>) -> Base {
        let partition =
            |rules| grouped(rules, |rule| rule.masks).into_values().map(|group| (Wish::Hash, group));
        Base::by(matches, |rules| partition(rules).collect())
    }

    fn by<'a>(
        matches: impl Iterator<Item = &'a Match>,
        partition: impl Fn(Vec<Rule>) -> Vec<(Wish, Vec<Rule>)>,
    ) -> Base {
        let mut rules = Vec::new();
        let mut default = NONE;
        for (index, matching) in matches.enumerate() {
            let index = index as u32;
            if matching.is_any() {
                // Nothing after it can be found.
                default = index;
                break;
            }
            let (masks, values) = spread(matching);
            rules.push(Rule { index, masks, values });
        }
        let parts = partition(rules).into_iter().map(|(wish, rules)| Part::new(wish, &rules));
        let mut parts: Vec<Part> = parts.collect();
        parts.sort_by_key(|part| part.best);
        Base { parts, default }
    }

    /// The first rule that matches.
    #[inline]
    pub fn lookup(&self, key: &Key) -> Option<u32> {
        let mut best = self.default;
        for part in &self.parts {
            if part.best >= best {
                break;
            }
            best = best.min(part.find(key.words(), best));
        }
        (best != NONE).then_some(best)
    }

    /// The parts, the one with the first rule first.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The rule for packets that match no other.
    pub fn default_rule(&self) -> Option<u32> {
        (self.default != NONE).then_some(self.default)
    }

    /// Memory it takes.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(Part::bytes).sum()
    }
}

impl Part {
    fn new(wish: Wish, rules: &[Rule]) -> Part {
        let guard = guard_of(rules);
        let mut wanted = [0; WORDS];
        for rule in rules {
            (0..WORDS).for_each(|word| wanted[word] |= rule.masks[word]);
        }
        // What the guard has compared need not be packed.
        guard.terms.iter().for_each(|term| wanted[usize::from(term.word)] &= !term.mask);
        let lanes = Lanes::of(&wanted);
        let body = match (wish, lanes.count()) {
            (Wish::Trie(field), _) => Body::Trie(trie(field, rules)),
            (_, 1) => Body::One(Packed::new(wish, lanes, rules, &wanted)),
            (_, 2) => Body::Two(Packed::new(wish, lanes, rules, &wanted)),
            (_, 3..=4) => Body::Four(Packed::new(wish, lanes, rules, &wanted)),
            (_, 5..=8) => Body::Eight(Packed::new(wish, lanes, rules, &wanted)),
            _ => Body::Sixteen(Packed::new(wish, lanes, rules, &wanted)),
        };
        Part { best: rules[0].index, rules: rules.len(), guard, body }
    }

    /// The part's first rule before `bound` that matches, or [`NONE`]; a hash or trie may answer a later one.
    #[inline]
    fn find(&self, words: &Words, bound: u32) -> u32 {
        if !self.guard.holds(words) {
            return NONE;
        }
        match &self.body {
            Body::Trie(trie) => trie.find(words),
            Body::One(packed) => packed.find(words, bound),
            Body::Two(packed) => packed.find(words, bound),
            Body::Four(packed) => packed.find(words, bound),
            Body::Eight(packed) => packed.find(words, bound),
            Body::Sixteen(packed) => packed.find(words, bound),
        }
    }

    /// The first of its rules.
    pub fn best(&self) -> u32 {
        self.best
    }

    /// How many rules it holds.
    pub fn rules(&self) -> usize {
        self.rules
    }

    /// What all its rules demand.
    pub fn guard(&self) -> &[Term] {
        &self.guard.terms
    }

    /// How it finds its rule.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Memory it takes.
    pub fn bytes(&self) -> usize {
        match &self.body {
            Body::Trie(trie) => trie.bytes(),
            Body::One(packed) => packed.bytes(),
            Body::Two(packed) => packed.bytes(),
            Body::Four(packed) => packed.bytes(),
            Body::Eight(packed) => packed.bytes(),
            Body::Sixteen(packed) => packed.bytes(),
        }
    }
}

impl<const N: usize> Packed<N> {
    fn new(wish: Wish, lanes: Lanes, rules: &[Rule], wanted: &Words) -> Packed<N> {
        let entry = |rule: &Rule| {
            let keep = |words: &Words| -> Words { std::array::from_fn(|word| words[word] & wanted[word]) };
            let (mask, value) = (lanes.pack(&keep(&rule.masks)), lanes.pack(&keep(&rule.values)));
            Entry { mask, value, rule: rule.index }
        };
        let entries: Vec<Entry<N>> = rules.iter().map(entry).collect();
        let shape = match wish {
            Wish::Hash => Shape::Hash(Hash::new(&entries)),
            Wish::Tree => Shape::Tree(Tree::new(&entries)),
            Wish::Chain | Wish::Trie(_) => Shape::Chain(entries),
        };
        Packed { lanes, shape }
    }

    #[inline]
    fn find(&self, words: &Words, bound: u32) -> u32 {
        let key = self.lanes.pack(words);
        match &self.shape {
            Shape::Chain(entries) => first(entries, &key, bound),
            Shape::Hash(hash) => hash.find(&key),
            Shape::Tree(tree) => tree.find(&key, bound),
        }
    }

    fn bytes(&self) -> usize {
        match &self.shape {
            Shape::Chain(entries) => size_of_val(&entries[..]),
            Shape::Hash(hash) => hash.bytes(),
            Shape::Tree(tree) => tree.bytes(),
        }
    }
}

/// Which rules go together, and what they become.
fn partition(rules: Vec<Rule>) -> Vec<(Wish, Vec<Rule>)> {
    if rules.is_empty() {
        return Vec::new();
    }
    if rules.len() <= CHAIN_MAX {
        return vec![(Wish::Chain, rules)];
    }
    let mut parts = Vec::new();
    let mut rest = Vec::new();
    // Word 0 of the mask says which fields are matched; fields of different EtherTypes share bits.
    for (_, group) in grouped(rules, |rule| (rule.masks[0], kind(rule))) {
        if group.len() < PART_MIN {
            rest.extend(group);
        } else if group.iter().all(|rule| rule.masks == group[0].masks) {
            parts.push((Wish::Hash, group));
        } else if let Some(field) = prefix_field(&group).filter(|_| group.len() >= TRIE_MIN) {
            parts.push((Wish::Trie(field), group));
        } else {
            rest.extend(group);
        }
    }
    rest.sort_by_key(|rule| rule.index);
    parts.extend(partition_rest(rest));
    parts
}

/// Rules without a structure of their own: a chain, a hash for each mask, or trees.
fn partition_rest(rest: Vec<Rule>) -> Vec<(Wish, Vec<Rule>)> {
    if rest.is_empty() {
        return Vec::new();
    }
    if rest.len() <= CHAIN_MAX {
        return vec![(Wish::Chain, rest)];
    }
    let masks: BTreeSet<Words> = rest.iter().map(|rule| rule.masks).collect();
    if masks.len() <= HASHES_MAX {
        return grouped(rest, |rule| rule.masks).into_values().map(|group| (Wish::Hash, group)).collect();
    }
    let trees = grouped(rest, |rule| (kind(rule), long_prefixes(rule)));
    let (large, small): (Vec<_>, Vec<_>) = trees.into_values().partition(|group| group.len() > CHAIN_MAX);
    let mut parts: Vec<_> = large.into_iter().map(|group| (Wish::Tree, group)).collect();
    let mut leftover: Vec<Rule> = small.into_iter().flatten().collect();
    leftover.sort_by_key(|rule| rule.index);
    match leftover.len() {
        0 => {}
        len if len <= CHAIN_MAX => parts.push((Wish::Chain, leftover)),
        _ => parts.push((Wish::Tree, leftover)),
    }
    parts
}

fn grouped<K: Ord>(rules: Vec<Rule>, key: impl Fn(&Rule) -> K) -> BTreeMap<K, Vec<Rule>> {
    let mut groups: BTreeMap<K, Vec<Rule>> = BTreeMap::new();
    for rule in rules {
        groups.entry(key(&rule)).or_default().push(rule);
    }
    groups
}

/// The EtherType a rule demands; 0 for none.
fn kind(rule: &Rule) -> u64 {
    let info = Field::EthType.info();
    rule.values[usize::from(info.word)] >> info.shift & 0xffff
}

/// For each wide field, whether the rule fixes at least half its bits: rules that do and rules that do not are cut
/// badly by the same tree.
fn long_prefixes(rule: &Rule) -> u64 {
    let mut long = 0;
    for info in FIELDS.iter().filter(|info| info.bits >= 32 && rule.masks[0] & info.field.presence() != 0) {
        let fixed = Key::from_words(rule.masks).bits(info.field).count_ones();
        long |= u64::from(fixed >= u32::from(info.bits) / 2) << info.field as u64;
    }
    long
}

/// The field whose prefixes are all that the rules differ in, when there is one.
fn prefix_field(rules: &[Rule]) -> Option<Field> {
    let one = &rules[0];
    let (masks, values) = (Key::from_words(one.masks), Key::from_words(one.values));
    let differs = |field: &Field| {
        rules.iter().any(|rule| {
            let (m, v) = (Key::from_words(rule.masks), Key::from_words(rule.values));
            m.bits(*field) != masks.bits(*field) || v.bits(*field) != values.bits(*field)
        })
    };
    let matched = FIELDS.iter().map(|info| info.field).filter(|field| one.masks[0] & field.presence() != 0);
    let mut varying = matched.filter(differs);
    let field = varying.next().filter(|field| field.bits() > 16)?;
    let is_prefix = |rule: &Rule| {
        let mask = Key::from_words(rule.masks).bits(field) << (128 - field.bits());
        mask.count_zeros() == mask.trailing_zeros()
    };
    (varying.next().is_none() && rules.iter().all(is_prefix)).then_some(field)
}

fn trie(field: Field, rules: &[Rule]) -> Trie {
    let info = field.info();
    let left = 128 - field.bits();
    let prefix = |rule: &Rule| Prefix {
        value: Key::from_words(rule.values).bits(field) << left,
        len: Key::from_words(rule.masks).bits(field).count_ones(),
        rule: rule.index,
    };
    let prefixes: Vec<Prefix> = rules.iter().map(prefix).collect();
    let word = if info.bits == 128 { info.word - 1 } else { info.word };
    Trie::new(TriePart { word, shift: info.shift, bits: info.bits }, &prefixes)
}

/// The bits on which all rules agree.
fn guard_of(rules: &[Rule]) -> Guard {
    let mut masks = rules[0].masks;
    for rule in rules {
        for (word, mask) in masks.iter_mut().enumerate() {
            *mask &= rule.masks[word] & !(rule.values[word] ^ rules[0].values[word]);
        }
    }
    let used = (0..WORDS).filter(|word| masks[*word] != 0);
    let term =
        |word| Term { word: word as u8, mask: masks[word], value: rules[0].values[word] & masks[word] };
    let terms: Vec<Term> = used.map(term).collect();
    let nothing = Term { word: 0, mask: 0, value: 0 };
    Guard { two: [0, 1].map(|i| terms.get(i).copied().unwrap_or(nothing)), terms }
}

impl Guard {
    #[inline]
    fn holds(&self, words: &Words) -> bool {
        let difference = |term: &Term| (words[usize::from(term.word) % WORDS] & term.mask) ^ term.value;
        let [first, second] = &self.two;
        difference(first) | difference(second) == 0
            && (self.terms.len() <= 2 || self.terms[2..].iter().all(|term| difference(term) == 0))
    }
}
