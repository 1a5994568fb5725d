//! A match: the set of packets that a flow entry applies to.
//!
//! A match is a set of (field, value, mask). It is stored as a masked comparison of the few key
//! words that its fields are in, including the presence word. Matches are cheap to clone. They are
//! ordered, so that ties between equal priorities break the same way everywhere: usually the more
//! specific match (more fields, longer prefixes) is first.
//!
//! Read first: OpenFlow 1.3.5 §7.2.3 (structure, masks, prerequisites).

use crate::Refusal;
use crate::field::{FIELDS, Field, Info, LATER_WORDS, Needs, PRESENCE_BITS, REGISTERS, VLAN_PRESENT, WORDS};
use crate::key::Key;
use std::cmp::{Ordering, Reverse};
use std::fmt;
use std::sync::Arc;

/// One field of a match: packets whose field equals `value` in the bits of `mask`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FieldMatch {
    /// The field.
    pub field: Field,
    /// Its value, right-aligned.
    pub value: u128,
    /// The bits to compare; [`Field::ones`] for an exact match.
    pub mask: u128,
}

/// One word of a match: keys with `key[word] & mask == value`. Terms are ordered by word, then
/// larger masks first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Term {
    /// The word of the key.
    pub word: u8,
    /// The bits to compare; never 0.
    pub mask: u64,
    /// Their required values; within `mask`.
    pub value: u64,
}

/// The packets that agree with every term. The default matches all packets.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Match {
    /// Ordered by word; at most one per word.
    terms: Arc<[Term]>,
}

impl FieldMatch {
    /// Matches a field of this value.
    pub fn exact(field: Field, value: u128) -> FieldMatch {
        FieldMatch { field, value, mask: field.ones() }
    }

    /// Matches a field that agrees with `value` in the bits of `mask`.
    pub fn masked(field: Field, value: u128, mask: u128) -> FieldMatch {
        FieldMatch { field, value, mask }
    }

    /// Returns the match of the outermost tag as Open vSwitch has it: priority in the upper three
    /// bits,
    /// then the present bit, then the id; 0 without a tag (ovs-fields(7), `vlan_tci`).
    pub fn of_tag(value: u128, mask: u128) -> Vec<FieldMatch> {
        let (value, present) = (value & mask, u128::from(VLAN_PRESENT));
        let id = Field::VlanVid.ones();
        let mut fields = Vec::new();
        if mask & id != 0 {
            fields.push(FieldMatch::masked(Field::VlanVid, value & id, mask & id));
        }
        let is_untagged = mask & present != 0 && value & present == 0;
        match (mask >> 13, value >> 13) {
            (0, _) => fields,
            // Without a tag there is no priority to compare.
            (_, 0) if is_untagged => fields,
            (7, priority) if value & present != 0 => {
                fields.push(FieldMatch::exact(Field::VlanPcp, priority));
                fields
            }
            _ => vec![FieldMatch::masked(Field::VlanTci, value, mask)],
        }
    }

    /// Returns whether every bit of the field is compared.
    pub fn is_exact(&self) -> bool {
        self.mask == self.field.ones()
    }

    fn check(&self) -> Result<(), Refusal> {
        let name = self.field.name();
        if self.value & !self.field.ones() != 0 || self.mask & !self.field.ones() != 0 {
            return Err(Refusal::MatchBadValue(name));
        }
        if self.value & !self.mask != 0 {
            return Err(Refusal::MatchBadWildcards(name));
        }
        if !self.is_exact() && !self.field.is_maskable() {
            return Err(Refusal::MatchBadMask(name));
        }
        // §7.2.3.8: an exact VLAN_VID is either "no tag" (0) or has OFPVID_PRESENT.
        let tagged = self.value & u128::from(VLAN_PRESENT) != 0;
        if self.field == Field::VlanVid && self.is_exact() && self.value != 0 && !tagged {
            return Err(Refusal::MatchBadValue(name));
        }
        Ok(())
    }
}

impl Ord for Term {
    #[inline]
    fn cmp(&self, other: &Term) -> Ordering {
        let order = |term: &Term| (term.word, Reverse(term.mask), term.value);
        order(self).cmp(&order(other))
    }
}

impl PartialOrd for Term {
    #[inline]
    fn partial_cmp(&self, other: &Term) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Term {
    /// Returns whether every key that agrees with this term agrees with `wider`.
    pub(crate) fn is_within(&self, wider: &Term) -> bool {
        self.word == wider.word
            && self.mask & wider.mask == wider.mask
            && self.value & wider.mask == wider.value
    }
}

impl Match {
    /// Makes the match of all these fields. A field with an all-zero mask is ignored (§7.2.3.5).
    ///
    /// Returns the first field that occurs twice, has an impossible value or mask, or lacks its
    /// prerequisite.
    pub fn new(fields: &[FieldMatch]) -> Result<Match, Refusal> {
        let (mut values, mut masks) = (Key::EMPTY, Key::EMPTY);
        let mut seen = 0u128;
        for field_match in fields {
            let FieldMatch { field, value, mask } = *field_match;
            let name = field.name();
            // Registers are parts of one field.
            let is_other_part = REGISTERS.contains(&field) && masks.bits(field) & mask == 0;
            if seen & field.presence() != 0 && !is_other_part {
                return Err(Refusal::MatchDuplicate(name));
            }
            seen |= field.presence();
            field_match.check()?;
            check_prerequisite(field, fields)?;
            if mask == 0 {
                continue;
            }
            // In-port and physical in-port share bits; different numbers for both can never match.
            if (values.bits(field) ^ value) & masks.bits(field) & mask != 0 {
                return Err(Refusal::MatchBadValue(name));
            }
            // What other fields at the same place say stays: parts of a register, of a tag.
            values.put(field, values.bits(field) | value);
            masks.put(field, masks.bits(field) | mask);
        }
        Ok(Match::from_words(values.words(), masks.words()))
    }

    /// Returns the match of all packets.
    pub fn any() -> Match {
        Match { terms: Arc::from([]) }
    }

    fn from_words(values: &[u64; WORDS], masks: &[u64; WORDS]) -> Match {
        let terms = values.iter().zip(masks).enumerate().filter(|(_, (_, mask))| **mask != 0);
        Match { terms: terms.map(|(word, (v, m))| Term { word: word as u8, mask: *m, value: *v }).collect() }
    }

    /// Makes the match of these comparisons, ordered by word.
    pub(crate) fn of_terms(terms: Vec<Term>) -> Match {
        Match { terms: terms.into() }
    }

    /// Returns the comparisons, ordered by word, at most one per word.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Returns whether this is the match of all packets.
    pub fn is_any(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns whether a packet with this key matches.
    pub fn matches(&self, key: &Key) -> bool {
        let words = key.words();
        self.terms.iter().all(|term| words[usize::from(term.word)] & term.mask == term.value)
    }

    /// Returns whether `wider` matches every packet that this matches.
    pub fn is_within(&self, wider: &Match) -> bool {
        wider.terms.iter().all(|wanted| self.terms.iter().any(|term| term.is_within(wanted)))
    }

    /// Returns whether some packet could match both (§6.4: overlapping entries).
    pub fn overlaps(&self, other: &Match) -> bool {
        self.terms.iter().all(|a| {
            let b = other.terms.iter().find(|b| b.word == a.word);
            b.is_none_or(|b| (a.value ^ b.value) & a.mask & b.mask == 0)
        })
    }

    /// Returns the fields, in the order of their numbers.
    pub fn fields(&self) -> impl Iterator<Item = FieldMatch> {
        let (mut values, mut masks) = ([0; WORDS], [0; WORDS]);
        for term in &*self.terms {
            values[usize::from(term.word)] = term.value;
            masks[usize::from(term.word)] = term.mask;
        }
        let (values, masks) = (Key::from_words(values), Key::from_words(masks));
        let presence = self.presence();
        let fields = FIELDS.iter().map(|info| info.field);
        let fields = fields.filter(move |field| presence & field.presence() != 0);
        fields.map(move |field| FieldMatch { field, value: values.bits(field), mask: masks.bits(field) })
    }

    /// Returns the presence bits of the matched fields.
    pub fn presence(&self) -> u128 {
        let first = self.terms.first().filter(|term| term.word == 0).map_or(0, |term| term.mask);
        self.terms.iter().filter(|term| usize::from(term.word) >= LATER_WORDS).fold(
            first.into(),
            |all, term| {
                let is_matched = |info: &&Info| info.bits_in(term.word) & term.mask != 0;
                let fields = FIELDS[PRESENCE_BITS..].iter().filter(is_matched);
                fields.fold(all, |all, info| all | info.field.presence())
            },
        )
    }

    /// Returns the part of the match on one field.
    pub fn field(&self, field: Field) -> Option<FieldMatch> {
        let word = |word: u8| {
            let term = self.terms.iter().find(|term| term.word == word);
            term.map_or((0, 0), |term| (term.value, term.mask))
        };
        let info = field.info();
        let low = word(info.word);
        let high = if info.bits == 128 { word(info.word - 1) } else { (0, 0) };
        let part = |low: u64, high: u64| match info.bits {
            128 => u128::from(high) << 64 | u128::from(low),
            _ => u128::from(low >> info.shift) & field.ones(),
        };
        let (value, mask) = (part(low.0, high.0), part(low.1, high.1));
        let is_matched = match field.presence_bit() {
            0 => mask != 0,
            bit => word(0).1 & bit != 0,
        };
        is_matched.then_some(FieldMatch { field, value, mask })
    }
}

impl Default for Match {
    fn default() -> Match {
        Match::any()
    }
}

impl fmt::Debug for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.fields()).finish()
    }
}

/// Checks that the other fields of a match include the prerequisite of `field` (§7.2.3.6).
fn check_prerequisite(field: Field, fields: &[FieldMatch]) -> Result<(), Refusal> {
    let exactly = |wanted: Field, values: &[u16]| {
        let found = fields.iter().find(|f| f.field == wanted && f.is_exact());
        found.is_some_and(|f| values.iter().any(|v| u128::from(*v) == f.value))
    };
    let present = u128::from(VLAN_PRESENT);
    let fulfilled = match field.info().needs {
        Needs::Nothing => true,
        Needs::VlanTag => fields.iter().any(|f| f.field == Field::VlanVid && f.value & present != 0),
        Needs::EthType(types) => exactly(Field::EthType, types),
        Needs::IpProto(types, protocol) => {
            exactly(Field::EthType, types) && exactly(Field::IpProto, &[protocol.into()])
        }
        Needs::Icmpv6(kinds) => {
            let kinds: Vec<u16> = kinds.iter().map(|kind| u16::from(*kind)).collect();
            exactly(Field::EthType, &[0x86dd])
                && exactly(Field::IpProto, &[58])
                && exactly(Field::Icmpv6Type, &kinds)
        }
    };
    if fulfilled { Ok(()) } else { Err(Refusal::MatchBadPrerequisite(field.name())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip() -> FieldMatch {
        FieldMatch::exact(Field::EthType, 0x0800)
    }

    #[test]
    fn a_match_gives_back_its_fields() {
        let fields = [
            ip(),
            FieldMatch::exact(Field::IpProto, 6),
            FieldMatch::masked(Field::Ipv4Dst, 0x0a00_0000, 0xff00_0000),
            FieldMatch::exact(Field::TcpDst, 80),
        ];
        let matching = Match::new(&fields).unwrap();
        assert_eq!(matching.fields().collect::<Vec<_>>(), fields);
        assert_eq!(matching.terms().len(), 5);
    }

    #[test]
    fn what_the_specification_refuses_is_refused() {
        let code = |fields: &[FieldMatch]| Match::new(fields).map_err(|refusal| refusal.numbers());
        let prefix = |value, mask| FieldMatch::masked(Field::Ipv4Dst, value, mask);
        assert_eq!(code(&[prefix(0, 0xff00_0000)]), Err((4, 9)), "prerequisite");
        assert_eq!(code(&[ip(), ip()]), Err((4, 10)), "twice");
        assert_eq!(code(&[ip(), prefix(1, 0xff00_0000)]), Err((4, 5)), "ones outside the mask");
        assert_eq!(code(&[FieldMatch::masked(Field::EthType, 0x0800, 0xff00)]), Err((4, 8)), "mask");
        assert_eq!(
            code(&[FieldMatch::exact(Field::VlanVid, 100)]),
            Err((4, 7)),
            "vid without the present bit"
        );
        assert_eq!(code(&[FieldMatch::exact(Field::VlanPcp, 1)]), Err((4, 9)), "pcp without a tag");
        assert_eq!(code(&[FieldMatch::exact(Field::InPort, 1 << 32)]), Err((4, 7)), "too wide");
        let both = [FieldMatch::exact(Field::InPort, 1), FieldMatch::exact(Field::InPhyPort, 2)];
        assert_eq!(code(&both), Err((4, 7)), "one port is not two");
    }

    #[test]
    fn within_and_overlap_are_about_packets() {
        let prefix = |value: u128, len: u32| {
            let mask = u128::from(u32::MAX) << (32 - len) & u128::from(u32::MAX);
            Match::new(&[ip(), FieldMatch::masked(Field::Ipv4Dst, value, mask)]).unwrap()
        };
        let (wide, narrow, other) = (prefix(0x0a00_0000, 8), prefix(0x0a01_0000, 16), prefix(0x0b00_0000, 8));
        assert!(narrow.is_within(&wide) && !wide.is_within(&narrow));
        assert!(narrow.overlaps(&wide) && wide.overlaps(&narrow) && !other.overlaps(&wide));
        assert!(wide.is_within(&Match::any()) && Match::any().overlaps(&wide));
    }

    #[test]
    fn one_field_is_what_it_is_among_all() {
        let mut random = fastpath_units::Rng::new(39);
        for _ in 0..500 {
            let (mut values, mut masks) = (Key::EMPTY, Key::EMPTY);
            for info in FIELDS.iter().filter(|_| random.below(8) == 0).collect::<Vec<_>>() {
                let drawn = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
                masks.put(info.field, drawn);
                values.put(info.field, drawn >> 1 & drawn);
            }
            let matching = Match::from_words(values.words(), masks.words());
            for info in FIELDS {
                let among_all = matching.fields().find(|one| one.field == info.field);
                assert_eq!(matching.field(info.field), among_all, "{matching:?}");
            }
        }
    }

    #[test]
    fn an_all_zero_mask_is_no_field() {
        let matching = Match::new(&[FieldMatch::masked(Field::EthDst, 0, 0)]).unwrap();
        assert!(matching.is_any());
    }
}
