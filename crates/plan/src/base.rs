//! A set of rules as the cheapest structures that fit it. The rules are divided into subtables,
//! each with one shape. A lookup visits subtables in the order of their best rule until no later
//! one can improve the result.
//!
//! ```text
//!  rules ─▶ by matched fields ─▶ few: chain │ one mask: hash │ one prefix: trie │ else: trees
//! ```
//!
//! A base is immutable. The terms that every rule of a subtable requires are its guard, which is
//! compared once.

use crate::NONE;
use crate::by_mask::ByMask;
use crate::entry::{Entry, first};
use crate::hash::Hash;
use crate::lanes::{KeyWords, Lanes, spread};
use crate::tree::Tree;
use crate::trie::{KeyBits, Prefix, Trie};
use fastpath_switch::field::{FIELDS, Field, WORDS};
use fastpath_switch::key::Key;
use fastpath_switch::{Match, Term};
use std::collections::{BTreeMap, BTreeSet};

/// The number of rules up to which comparing one by one is cheapest: about a nanosecond per rule,
/// where a trie or hash takes five (`benches/lookup.rs`: 4 routes are compared, 5 are in a trie).
const CHAIN_MAX: usize = 4;
/// The number of rules from which a separate subtable pays.
const PART_MIN: usize = 5;
/// The number of masks up to which each mask gets a hash. The cuts and the leaf of a tree cost
/// about as much as three probes.
const HASHES_MAX: usize = 3;

/// The number of rules of a subtable up to which those behind a removed one are listed.
const LISTED_MAX: usize = 64;
/// The number of rules from which a class of rules gets a tree of its own.
const TREE_MIN: usize = 16;

/// Rules, in the order of lookup, as lookup structures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Base {
    parts: Vec<Subtable>,
    /// The first rule that matches all packets.
    default: u32,
    /// The rules that may be found instead of a removed one whose subtable does not tell which.
    hidden: ByMask,
}

/// Some of the rules, in one lookup structure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subtable {
    /// The first of its rules.
    best: u32,
    /// Its rules, in order.
    rules: Box<[u32]>,
    guard: Guard,
    body: Body,
}

/// The terms that all rules of a subtable require.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Guard {
    /// The first two terms, which are compared without a loop: most guards are presence and
    /// EtherType. A missing term requires nothing.
    two: [Term; 2],
    /// All terms.
    terms: Vec<Term>,
}

/// The lookup structure of a subtable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// Prefixes of one field.
    Trie(Trie),
    /// A shape over one packed lane.
    One(Packed<1>),
    /// A shape over two lanes.
    Two(Packed<2>),
    /// A shape over three or four lanes.
    Four(Packed<4>),
    /// A shape over five to eight lanes.
    Eight(Packed<8>),
    /// A shape over nine to sixteen lanes.
    Sixteen(Packed<16>),
    /// A shape over more lanes: registers too.
    More(Packed<32>),
}

/// A shape over packed lanes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packed<const N: usize> {
    /// The packing of keys.
    pub lanes: Lanes,
    /// The lookup over the packed key.
    pub shape: Shape<N>,
}

/// A lookup over packed keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shape<const N: usize> {
    /// Compares the rules one by one.
    Chain(Vec<Entry<N>>),
    /// Looks up the masked key in a hash.
    Hash(Hash<N>),
    /// Descends decision trees, the one with the first rule first.
    Trees(Vec<Tree<N>>),
}

/// The shape chosen for a set of rules.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum ChosenShape {
    Chain,
    Hash,
    Tree,
    Trie(Field),
}

/// A rule to be put into a subtable.
#[derive(Clone, Copy)]
struct ShapedRule<'a> {
    index: u32,
    matching: &'a Match,
}

impl ShapedRule<'_> {
    /// Returns its masks, laid out like a key. They are unpacked on demand: a million unpacked
    /// rules take 256 MB.
    fn masks(&self) -> KeyWords {
        spread(self.matching).0
    }

    /// Returns its values, laid out like a key.
    fn values(&self) -> KeyWords {
        spread(self.matching).1
    }
}

impl Base {
    /// Builds the structures for matches in the order of lookup. A rule is known by its index.
    pub fn new<'a>(matches: impl Iterator<Item = &'a Match>) -> Base {
        Base::by(matches, partition)
    }

    /// Builds a hash for every mask (tuple-space search), whatever would be cheaper: for
    /// comparison.
    pub fn hash_per_mask<'a>(matches: impl Iterator<Item = &'a Match>) -> Base {
        let partition =
            |rules| grouped(rules, ShapedRule::masks).into_values().map(|group| (ChosenShape::Hash, group));
        Base::by(matches, |rules| partition(rules).collect())
    }

    fn by<'a>(
        matches: impl Iterator<Item = &'a Match>,
        partition: impl Fn(Vec<ShapedRule<'a>>) -> Vec<(ChosenShape, Vec<ShapedRule<'a>>)>,
    ) -> Base {
        let all: Vec<&Match> = matches.collect();
        let default = all.iter().position(|matching| matching.is_any());
        // No rule after one that matches all packets can be found.
        let count = default.unwrap_or(all.len());
        let rules = (0..).zip(&all[..count]).map(|(index, matching)| ShapedRule { index, matching });
        let parts = partition(rules.collect()).into_iter().map(|(wish, rules)| Subtable::new(wish, &rules));
        let mut parts: Vec<Subtable> = parts.collect();
        parts.sort_by_key(|part| part.best);
        let unknown = parts.iter().filter(|part| !part.knows_behind());
        let mut hidden: Vec<u32> = unknown.flat_map(|part| part.rules.iter().copied()).collect();
        hidden.extend((count..all.len()).skip(1).map(|index| index as u32));
        hidden.sort_unstable();
        let hidden = ByMask::new(hidden.into_iter().map(|index| (index, all[index as usize])));
        Base { parts, default: default.map_or(NONE, |index| index as u32), hidden }
    }

    /// Returns the first rule that matches.
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

    /// Returns what [`Base::lookup`] would if some rules were removed. `instead` maps the first
    /// rule of a subtable that matches to the rule of that subtable that remains, or to all ones
    /// for none.
    pub(crate) fn lookup_but_for(&self, key: &Key, instead: impl Fn(u32) -> u32) -> Option<u32> {
        let mut best = if self.default == NONE { NONE } else { instead(self.default) };
        for part in &self.parts {
            if part.best >= best {
                break;
            }
            match part.find(key.words(), best) {
                NONE => {}
                found => best = best.min(instead(found)),
            }
        }
        (best != NONE).then_some(best)
    }

    /// Returns the rules that may be found instead of a removed one, in order: later rules of the
    /// same subtable, which may overlap with it or not. `None` if [`Base::first_behind`] finds
    /// them.
    pub(crate) fn behind(&self, rule: u32) -> Option<Vec<u32>> {
        self.parts.iter().filter(|part| part.knows_behind()).find_map(|part| part.behind(rule))
    }

    /// Returns the first rule for a packet that passes the test, of those that [`Base::behind`]
    /// does not list, or [`NONE`].
    pub(crate) fn first_behind(&self, key: &Key, passes: impl FnMut(u32) -> bool) -> u32 {
        self.hidden.first(key.words(), NONE, passes)
    }

    /// Returns the subtables, the one with the first rule first.
    pub fn subtables(&self) -> &[Subtable] {
        &self.parts
    }

    /// Returns the rule for packets that match no other rule.
    pub fn default_rule(&self) -> Option<u32> {
        (self.default != NONE).then_some(self.default)
    }

    /// Returns the memory it uses, in bytes.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(Subtable::bytes).sum::<usize>() + self.hidden.bytes()
    }
}

impl Subtable {
    fn new(wish: ChosenShape, rules: &[ShapedRule<'_>]) -> Subtable {
        let guard = guard_of(rules);
        let mut wanted = [0; WORDS];
        for rule in rules {
            rule.matching.terms().iter().for_each(|term| wanted[usize::from(term.word)] |= term.mask);
        }
        // Bits that the guard compares need no packing.
        guard.terms.iter().for_each(|term| wanted[usize::from(term.word)] &= !term.mask);
        let lanes = Lanes::of(&wanted);
        let body = match (wish, lanes.count()) {
            (ChosenShape::Trie(field), _) => Body::Trie(trie(field, rules)),
            (_, 1) => Body::One(Packed::new(wish, lanes, rules, &wanted)),
            (_, 2) => Body::Two(Packed::new(wish, lanes, rules, &wanted)),
            (_, 3..=4) => Body::Four(Packed::new(wish, lanes, rules, &wanted)),
            (_, 5..=8) => Body::Eight(Packed::new(wish, lanes, rules, &wanted)),
            (_, 9..=16) => Body::Sixteen(Packed::new(wish, lanes, rules, &wanted)),
            _ => Body::More(Packed::new(wish, lanes, rules, &wanted)),
        };
        Subtable { best: rules[0].index, rules: rules.iter().map(|rule| rule.index).collect(), guard, body }
    }

    /// Returns whether [`Subtable::behind`] takes a short time for every rule.
    fn knows_behind(&self) -> bool {
        let hides_none = match &self.body {
            Body::Trie(trie) => trie.knows_beneath(),
            Body::One(packed) => packed.hides_none(),
            Body::Two(packed) => packed.hides_none(),
            Body::Four(packed) => packed.hides_none(),
            Body::Eight(packed) => packed.hides_none(),
            Body::Sixteen(packed) => packed.hides_none(),
            Body::More(packed) => packed.hides_none(),
        };
        hides_none || self.rules.len() <= LISTED_MAX
    }

    /// Returns the later rules that may match the packets of one of its rules, in order.
    fn behind(&self, rule: u32) -> Option<Vec<u32>> {
        let place = self.rules.binary_search(&rule).ok()?;
        let known = match &self.body {
            Body::Trie(trie) => trie.beneath(place, &self.rules),
            Body::One(packed) => packed.hides_none().then(Vec::new),
            Body::Two(packed) => packed.hides_none().then(Vec::new),
            Body::Four(packed) => packed.hides_none().then(Vec::new),
            Body::Eight(packed) => packed.hides_none().then(Vec::new),
            Body::Sixteen(packed) => packed.hides_none().then(Vec::new),
            Body::More(packed) => packed.hides_none().then(Vec::new),
        };
        Some(known.unwrap_or_else(|| self.rules[place + 1..].to_vec()))
    }

    /// Returns the subtable's first rule before `bound` that matches, or [`NONE`]. A hash or trie
    /// may return a later one.
    #[inline]
    fn find(&self, words: &KeyWords, bound: u32) -> u32 {
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
            Body::More(packed) => packed.find(words, bound),
        }
    }

    /// The first of its rules.
    pub fn best(&self) -> u32 {
        self.best
    }

    /// Returns the number of its rules.
    pub fn rules(&self) -> usize {
        self.rules.len()
    }

    /// Returns its rules, in order.
    pub fn members(&self) -> &[u32] {
        &self.rules
    }

    /// Returns the terms that all its rules require.
    pub fn guard(&self) -> &[Term] {
        &self.guard.terms
    }

    /// Returns the name of its shape: chain, hash, tree or trie.
    pub fn shape(&self) -> &'static str {
        match &self.body {
            Body::Trie(_) => "trie",
            Body::One(packed) => packed.name(),
            Body::Two(packed) => packed.name(),
            Body::Four(packed) => packed.name(),
            Body::Eight(packed) => packed.name(),
            Body::Sixteen(packed) => packed.name(),
            Body::More(packed) => packed.name(),
        }
    }

    /// Returns its lookup structure.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Returns the memory it uses, in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.rules[..])
            + match &self.body {
                Body::Trie(trie) => trie.bytes(),
                Body::One(packed) => packed.bytes(),
                Body::Two(packed) => packed.bytes(),
                Body::Four(packed) => packed.bytes(),
                Body::Eight(packed) => packed.bytes(),
                Body::Sixteen(packed) => packed.bytes(),
                Body::More(packed) => packed.bytes(),
            }
    }
}

impl<const N: usize> Packed<N> {
    fn new(wish: ChosenShape, lanes: Lanes, rules: &[ShapedRule<'_>], wanted: &KeyWords) -> Packed<N> {
        let entry = |rule: &ShapedRule<'_>| {
            let keep =
                |words: &KeyWords| -> KeyWords { std::array::from_fn(|word| words[word] & wanted[word]) };
            let (mask, value) = (lanes.pack(&keep(&rule.masks())), lanes.pack(&keep(&rule.values())));
            Entry { mask, value, rule: rule.index }
        };
        let entries: Vec<Entry<N>> = rules.iter().map(entry).collect();
        let shape = match wish {
            ChosenShape::Hash => Shape::Hash(Hash::new(&entries)),
            ChosenShape::Tree => Shape::Trees(trees(rules, &entries)),
            ChosenShape::Chain | ChosenShape::Trie(_) => Shape::Chain(entries),
        };
        Packed { lanes, shape }
    }

    #[inline]
    fn find(&self, words: &KeyWords, bound: u32) -> u32 {
        self.find_packed(&self.lanes.pack(words), bound)
    }

    /// Returns the first rule before `bound` for a packed key, or `u32::MAX`. A hash may return a
    /// later one.
    #[inline]
    pub fn find_packed(&self, key: &[u64; N], bound: u32) -> u32 {
        match &self.shape {
            Shape::Chain(entries) => first(entries, key, bound),
            Shape::Hash(hash) => hash.find(key),
            Shape::Trees(trees) => trees.iter().fold(NONE, |best, tree| {
                let bound = bound.min(best);
                if tree.best() < bound { best.min(tree.find(key, bound)) } else { best }
            }),
        }
    }

    fn name(&self) -> &'static str {
        match &self.shape {
            Shape::Chain(_) => "chain",
            Shape::Hash(_) => "hash",
            Shape::Trees(_) => "tree",
        }
    }

    /// Returns whether the shape never hides a rule behind another.
    fn hides_none(&self) -> bool {
        matches!(&self.shape, Shape::Hash(hash) if !hash.hides())
    }

    fn bytes(&self) -> usize {
        match &self.shape {
            Shape::Chain(entries) => size_of_val(&entries[..]),
            Shape::Hash(hash) => hash.bytes(),
            Shape::Trees(trees) => trees.iter().map(Tree::bytes).sum(),
        }
    }
}

/// Divides the rules into subtables and chooses a shape for each.
fn partition(rules: Vec<ShapedRule<'_>>) -> Vec<(ChosenShape, Vec<ShapedRule<'_>>)> {
    if rules.is_empty() {
        return Vec::new();
    }
    if rules.len() <= CHAIN_MAX {
        return vec![(ChosenShape::Chain, rules)];
    }
    let mut parts = Vec::new();
    let mut rest = Vec::new();
    // Word 0 of the mask has the matched fields; fields of different EtherTypes share bits.
    for (_, group) in grouped(rules, |rule| (rule.matching.presence(), kind(rule))) {
        if group.len() < PART_MIN {
            rest.extend(group);
        } else if group.iter().all(|rule| rule.masks() == group[0].masks()) {
            parts.push((ChosenShape::Hash, group));
        } else if let Some(field) = prefix_field(&group) {
            parts.push((ChosenShape::Trie(field), group));
        } else {
            rest.extend(group);
        }
    }
    rest.sort_by_key(|rule| rule.index);
    parts.extend(partition_rest(rest));
    parts
}

/// Chooses shapes for the remaining rules: a chain, a hash for each mask, or trees.
fn partition_rest(rest: Vec<ShapedRule<'_>>) -> Vec<(ChosenShape, Vec<ShapedRule<'_>>)> {
    if rest.is_empty() {
        return Vec::new();
    }
    if rest.len() <= CHAIN_MAX {
        return vec![(ChosenShape::Chain, rest)];
    }
    let masks: BTreeSet<KeyWords> = rest.iter().map(ShapedRule::masks).collect();
    if masks.len() <= HASHES_MAX {
        return grouped(rest, ShapedRule::masks)
            .into_values()
            .map(|group| (ChosenShape::Hash, group))
            .collect();
    }
    // Rules of different EtherTypes have hardly a bit in common.
    let kinds = grouped(rest, kind).into_values();
    kinds
        .map(|group| (if group.len() <= CHAIN_MAX { ChosenShape::Chain } else { ChosenShape::Tree }, group))
        .collect()
}

/// Builds trees over one packing: one for rules that fix both addresses, one for rules that fix
/// only the source, and so on. Classes with few rules share one.
fn trees<const N: usize>(rules: &[ShapedRule<'_>], entries: &[Entry<N>]) -> Vec<Tree<N>> {
    let mut kinds: BTreeMap<u128, Vec<Entry<N>>> = BTreeMap::new();
    for (rule, entry) in rules.iter().zip(entries) {
        kinds.entry(long_prefixes(rule)).or_default().push(*entry);
    }
    let (mut sets, few): (Vec<_>, Vec<_>) = kinds.into_values().partition(|set| set.len() > TREE_MIN);
    let mut few: Vec<Entry<N>> = few.into_iter().flatten().collect();
    few.sort_by_key(|entry| entry.rule);
    if !few.is_empty() {
        sets.push(few);
    }
    sets.sort_by_key(|set| set[0].rule);
    sets.iter().map(|set| Tree::new(set)).collect()
}

fn grouped<'a, K: Ord>(
    rules: Vec<ShapedRule<'a>>,
    key: impl Fn(&ShapedRule<'a>) -> K,
) -> BTreeMap<K, Vec<ShapedRule<'a>>> {
    let mut groups: BTreeMap<K, Vec<ShapedRule<'a>>> = BTreeMap::new();
    for rule in rules {
        groups.entry(key(&rule)).or_default().push(rule);
    }
    groups
}

/// Returns the EtherType that a rule requires; 0 for none.
fn kind(rule: &ShapedRule<'_>) -> u64 {
    let info = Field::EthType.info();
    rule.values()[usize::from(info.word)] >> info.shift & 0xffff
}

/// Returns, for each wide field, whether the rule fixes at least half its bits. One tree cuts rules
/// that do and rules that do not badly.
fn long_prefixes(rule: &ShapedRule<'_>) -> u128 {
    let mut long = 0;
    for info in
        FIELDS.iter().filter(|info| info.bits >= 32 && rule.matching.presence() & info.field.presence() != 0)
    {
        let fixed = Key::from_words(rule.masks()).bits(info.field).count_ones();
        long |= u128::from(fixed >= u32::from(info.bits) / 2) << info.field as u32;
    }
    long
}

/// Returns the field whose prefixes are the only difference between the rules, if there is one.
fn prefix_field(rules: &[ShapedRule<'_>]) -> Option<Field> {
    let one = &rules[0];
    let (masks, values) = (Key::from_words(one.masks()), Key::from_words(one.values()));
    let differs = |field: &Field| {
        rules.iter().any(|rule| {
            let (m, v) = (Key::from_words(rule.masks()), Key::from_words(rule.values()));
            m.bits(*field) != masks.bits(*field) || v.bits(*field) != values.bits(*field)
        })
    };
    let matched =
        FIELDS.iter().map(|info| info.field).filter(|field| one.matching.presence() & field.presence() != 0);
    let mut varying = matched.filter(differs);
    let field = varying.next().filter(|field| field.bits() > 16)?;
    let is_prefix = |rule: &ShapedRule<'_>| {
        let mask = Key::from_words(rule.masks()).bits(field) << (128 - field.bits());
        mask.count_zeros() == mask.trailing_zeros()
    };
    (varying.next().is_none() && rules.iter().all(is_prefix)).then_some(field)
}

fn trie(field: Field, rules: &[ShapedRule<'_>]) -> Trie {
    let info = field.info();
    let left = 128 - field.bits();
    let prefix = |rule: &ShapedRule<'_>| Prefix {
        value: Key::from_words(rule.values()).bits(field) << left,
        len: Key::from_words(rule.masks()).bits(field).count_ones(),
        rule: rule.index,
    };
    let prefixes: Vec<Prefix> = rules.iter().map(prefix).collect();
    let word = if info.bits == 128 { info.word - 1 } else { info.word };
    Trie::new(KeyBits { word, shift: info.shift, bits: info.bits }, &prefixes)
}

/// Returns the bits on which all rules agree.
fn guard_of(rules: &[ShapedRule<'_>]) -> Guard {
    let (mut masks, first) = (rules[0].masks(), rules[0].values());
    for rule in rules {
        let (other, values) = spread(rule.matching);
        for (word, mask) in masks.iter_mut().enumerate() {
            *mask &= other[word] & !(values[word] ^ first[word]);
        }
    }
    let used = (0..WORDS).filter(|word| masks[*word] != 0);
    let term = |word| Term { word: word as u8, mask: masks[word], value: first[word] & masks[word] };
    let terms: Vec<Term> = used.map(term).collect();
    let nothing = Term { word: 0, mask: 0, value: 0 };
    Guard { two: [0, 1].map(|i| terms.get(i).copied().unwrap_or(nothing)), terms }
}

impl Guard {
    #[inline]
    fn holds(&self, words: &KeyWords) -> bool {
        let difference = |term: &Term| (words[usize::from(term.word) % WORDS] & term.mask) ^ term.value;
        let [first, second] = &self.two;
        difference(first) | difference(second) == 0
            && (self.terms.len() <= 2 || self.terms[2..].iter().all(|term| difference(term) == 0))
    }
}
