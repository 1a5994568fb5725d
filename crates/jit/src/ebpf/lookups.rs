//! Tables as the program looks them up: parts, each with the maps of its length of keys.
//!
//! ```text
//!  subtables of the plan ─▶ prefixes: LPM trie │ rules of one mask: hash │ one or two rules: compared
//! ```
//!
//! The trees of a plan are hashes here, one for each mask.

use super::maps::map;
use super::{KernelError, MASKS_MAX};
use fastpath_plan::TablePlan;
use fastpath_plan::{Body, KeyBits, Rule, Subtable};
use fastpath_switch::field::WORDS;
use fastpath_switch::{Match, Term};
use fastpath_sys::bpf::{Map, MapKind};
use std::collections::BTreeMap;

/// Rules of one mask up to which comparing costs less than a hash.
const COMPARED_MAX: usize = 2;
/// Bits of the number of the part, with which all prefixes of a part begin.
pub(super) const NUMBER_BITS: u32 = 32;

/// A part of a table.
pub(super) struct TablePart<'p> {
    /// Its number among the parts of all tables, which begins its keys.
    pub(super) number: u32,
    /// The first of its rules.
    pub(super) best: u32,
    /// What all its rules require.
    pub(super) guard: &'p [Term],
    pub(super) body: PartBody,
}

pub(super) enum PartBody {
    /// Rules that are compared, each by these terms.
    Compared(Vec<(Vec<Term>, u32)>),
    /// Rules of one mask.
    Hash { masks: Vec<(u8, u64)>, entries: Vec<(Vec<u64>, u32)> },
    /// Prefixes, left-aligned.
    Prefixes { bits: KeyBits, entries: Vec<(u32, u128, u32)> },
}

/// The maps of all parts: one for each length of keys, since a program has at most 64.
#[derive(Debug)]
pub(super) struct Lookups {
    /// By the number of words of the key behind the number of the part.
    pub(super) hashes: BTreeMap<usize, Map>,
    /// By the bytes of the prefixes.
    pub(super) prefixes: BTreeMap<usize, Map>,
}

impl Lookups {
    /// Makes and fills the maps of these parts.
    pub(super) fn new(tables: &[Vec<TablePart<'_>>]) -> Result<Lookups, KernelError> {
        let (mut hashes, mut prefixes): (BTreeMap<_, Vec<_>>, BTreeMap<_, Vec<_>>) = Default::default();
        for part in tables.iter().flatten() {
            match &part.body {
                PartBody::Compared(_) => {}
                PartBody::Hash { masks, entries } => {
                    let key = |words: &[u64]| {
                        let words = [u64::from(part.number)].into_iter().chain(words.iter().copied());
                        words.flat_map(u64::to_ne_bytes).collect::<Vec<u8>>()
                    };
                    let of_length = hashes.entry(masks.len()).or_default();
                    of_length.extend(entries.iter().map(|(words, rule)| (key(words), *rule)));
                }
                PartBody::Prefixes { bits, entries } => {
                    let data = data_of(*bits);
                    let key = |len: u32, value: u128| {
                        let head = [NUMBER_BITS + len, part.number].into_iter().flat_map(u32::to_ne_bytes);
                        head.chain(value.to_be_bytes().into_iter().take(data)).collect::<Vec<u8>>()
                    };
                    let of_length = prefixes.entry(data).or_default();
                    of_length.extend(entries.iter().map(|(len, value, rule)| (key(*len, *value), *rule)));
                }
            }
        }
        Ok(Lookups {
            hashes: filled(MapKind::Hash, "fp_hash", hashes)?,
            prefixes: filled(MapKind::LpmTrie, "fp_prefixes", prefixes)?,
        })
    }
}

/// The key of an entry, and its rule.
type LookupEntry = (Vec<u8>, u32);

fn filled(
    kind: MapKind,
    name: &str,
    entries: BTreeMap<usize, Vec<LookupEntry>>,
) -> Result<BTreeMap<usize, Map>, KernelError> {
    let mut maps = BTreeMap::new();
    for (length, entries) in entries {
        let key = entries.first().map_or(0, |(key, _)| key.len());
        let of_length = map(kind, name, key as u32, 4, entries.len())?;
        for (key, rule) in entries {
            of_length.update(&key, &rule.to_ne_bytes())?;
        }
        maps.insert(length, of_length);
    }
    Ok(maps)
}

/// Returns the bytes of a prefix.
pub(super) fn data_of(bits: KeyBits) -> usize {
    match bits.bits {
        ..=32 => 4,
        33..=64 => 8,
        _ => 16,
    }
}

/// Returns the parts of a table, the one with the first rule first, numbered from `first` on.
pub(super) fn parts(plan: &TablePlan, first: usize) -> Result<Vec<TablePart<'_>>, KernelError> {
    let mut parts = Vec::new();
    for subtable in plan.base().subtables() {
        match subtable.body() {
            Body::Trie(trie) => {
                let (best, guard) = (subtable.best(), subtable.guard());
                let entries = prefixes(plan.rules(), subtable, trie.part());
                parts.push(TablePart {
                    number: 0,
                    best,
                    guard,
                    body: PartBody::Prefixes { bits: trie.part(), entries },
                });
            }
            _ => by_mask(plan.rules(), subtable, &mut parts),
        }
    }
    if parts.len() > MASKS_MAX {
        return Err(KernelError::InUser(format!("a table has {} masks, more than {MASKS_MAX}", parts.len())));
    }
    parts.sort_by_key(|part| part.best);
    (first as u32..).zip(&mut parts).for_each(|(number, part)| part.number = number);
    Ok(parts)
}

/// Words of the key, and the bits of each that are compared.
type Masks = Vec<(u8, u64)>;

/// Divides the rules of a subtable by their masks.
fn by_mask<'p>(rules: &[Rule], subtable: &'p Subtable, parts: &mut Vec<TablePart<'p>>) {
    let guard = subtable.guard();
    let mut groups: BTreeMap<Masks, Vec<(Vec<u64>, u32)>> = BTreeMap::new();
    for rule in subtable.members() {
        let terms = beyond(rules[*rule as usize].rank.matching(), guard);
        let (masks, values) = terms.iter().map(|term| ((term.word, term.mask), term.value)).unzip();
        groups.entry(masks).or_default().push((values, *rule));
    }
    for (masks, mut entries) in groups {
        let best = entries[0].1;
        // Of rules of one value, the first hides the others.
        entries.sort();
        entries.dedup_by(|later, first| later.0 == first.0);
        let body = if entries.len() <= COMPARED_MAX {
            let term =
                |((word, mask), value): (&(u8, u64), &u64)| Term { word: *word, mask: *mask, value: *value };
            entries.sort_by_key(|(_, rule)| *rule);
            let rules =
                entries.iter().map(|(values, rule)| (masks.iter().zip(values).map(term).collect(), *rule));
            PartBody::Compared(rules.collect())
        } else {
            PartBody::Hash { masks, entries }
        };
        parts.push(TablePart { number: 0, best, guard, body });
    }
}

/// Returns what a match requires beside the guard.
fn beyond(matching: &Match, guard: &[Term]) -> Vec<Term> {
    let known =
        |term: &Term| guard.iter().find(|other| other.word == term.word).map_or(0, |other| other.mask);
    let rest = matching.terms().iter().map(|term| {
        let mask = term.mask & !known(term);
        Term { word: term.word, mask, value: term.value & mask }
    });
    rest.filter(|term| term.mask != 0).collect()
}

/// Returns the prefixes of a subtable with the first rule of each: its own, or that of a shorter
/// one around it, so that the longest match is the right one whatever the priorities.
fn prefixes(rules: &[Rule], subtable: &Subtable, bits: KeyBits) -> Vec<(u32, u128, u32)> {
    let mut best: BTreeMap<(u32, u128), u32> = BTreeMap::new();
    for rule in subtable.members() {
        let (mut masks, mut values) = ([0; WORDS + 1], [0; WORDS + 1]);
        for term in rules[*rule as usize].rank.matching().terms() {
            (masks[usize::from(term.word)], values[usize::from(term.word)]) = (term.mask, term.value);
        }
        let left = |words: &[u64; WORDS + 1]| {
            let word = usize::from(bits.word);
            match bits.bits {
                128 => u128::from(words[word]) << 64 | u128::from(words[word + 1]),
                width => u128::from(words[word] >> bits.shift) << (128 - u32::from(width)),
            }
        };
        let len = left(&masks).leading_ones();
        best.entry((len, left(&values) & leading(len))).or_insert(*rule);
    }
    let best = &best;
    let around = |len: u32, value: u128| {
        (0..len).filter_map(move |shorter| best.get(&(shorter, value & leading(shorter))))
    };
    let of = |((len, value), rule): (&(u32, u128), &u32)| {
        (*len, *value, around(*len, *value).copied().min().map_or(*rule, |other| other.min(*rule)))
    };
    best.iter().map(of).collect()
}

/// Returns a mask of the highest `len` bits.
fn leading(len: u32) -> u128 {
    if len == 0 { 0 } else { u128::MAX << (128 - len) }
}
