//! `nx_match`: a match as a list of fields, and the cookies that a request is restricted to.
//!
//! ```text
//!  NXM_OF_ETH_TYPE │ NXM_NX_IPV6_SRC_W │ NXM_NX_REG0 │ NXM_NX_COOKIE_W │ zeros
//!  ◀──────────────────── match_len ──────────────────────────────────▶ to a multiple of 8
//! ```
//!
//! Unlike an `ofp_match` of OpenFlow 1.3, it has no header: the message says its length. Any match
//! can be written so. Fields that Open vSwitch gives no number of its own have that of OpenFlow.
//!
//! Read first: `nicira-ext.h` of Open vSwitch, then ovs-fields(7).

use super::port_number;
use crate::message::bytes::{ByteReader, Write};
use crate::message::fault::Fault;
use crate::message::oxm;
use fastpath_switch::{Field, FieldMatch, Match, Refusal, nxm};

/// The number of NXM_NX_COOKIE in class [`nxm::NXM_NX`]. The TTL of MPLS has the same number, and
/// another length.
const COOKIE: u8 = 30;
/// Bytes of a cookie.
const COOKIE_LEN: u8 = 8;
/// The present bit and the id of a tag.
const TAG_ID: u128 = 0x1fff;
/// The bits of a tag above them: the priority.
const PRIORITY_SHIFT: u32 = 13;

/// What an `nx_match` says.
pub(super) struct NxMatch {
    pub(super) matching: Match,
    /// The required bits of the cookie.
    pub(super) cookie: u64,
    /// The bits of the cookie to compare; 0 for no restriction.
    pub(super) cookie_mask: u64,
}

/// Reads an `nx_match` of `len` bytes and its padding.
pub(super) fn read(r: &mut ByteReader<'_>, len: usize) -> Result<NxMatch, Fault> {
    let mut padded = r.part(len.next_multiple_of(8), Fault::MatchBadLen).map_err(|_| Fault::MatchBadLen)?;
    let mut rest = padded.part(len, Fault::MatchBadLen)?;
    let (mut fields, mut cookies) = (Vec::new(), None);
    while !rest.is_empty() {
        match read_cookie(&mut rest)? {
            Some(_) if cookies.is_some() => return Err(Refusal::MatchDuplicate("cookie").into()),
            Some(both) => cookies = Some(both),
            None => fields.extend(oxm::read_field(&mut rest)?),
        }
    }
    let (cookie, cookie_mask) = cookies.unwrap_or((0, 0));
    Ok(NxMatch { matching: Match::new(&fields)?, cookie, cookie_mask })
}

/// Reads an `nx_match` of a message that is about flows as they are: it has no restriction to
/// cookies.
pub(super) fn read_matching(r: &mut ByteReader<'_>, len: usize) -> Result<Match, Fault> {
    let read = read(r, len)?;
    if read.cookie_mask != 0 {
        return Err(Refusal::MatchBadField { class: nxm::NXM_NX, field: COOKIE }.into());
    }
    Ok(read.matching)
}

/// Reads a cookie and its mask, if that is the next field.
fn read_cookie(r: &mut ByteReader<'_>) -> Result<Option<(u64, u64)>, Fault> {
    let mut after = *r;
    let (class, head, len) = (after.u16()?, after.u8()?, after.u8()?);
    let has_mask = head & 1 != 0;
    if (class, head >> 1, len) != (nxm::NXM_NX, COOKIE, COOKIE_LEN << u8::from(has_mask)) {
        return Ok(None);
    }
    let value = after.u64()?;
    let mask = if has_mask { after.u64()? } else { u64::MAX };
    if value & !mask != 0 {
        return Err(Refusal::MatchBadWildcards("cookie").into());
    }
    *r = after;
    Ok(Some((value, mask)))
}

/// Writes a match and its padding; its length without the padding is written at `at`.
pub(super) fn write(out: &mut Vec<u8>, at: usize, matching: &Match) {
    write_restricted(out, at, matching, (0, 0));
}

/// Writes a match, the cookies to which a request is restricted (bits and mask), and the padding.
pub(super) fn write_restricted(out: &mut Vec<u8>, at: usize, matching: &Match, cookies: (u64, u64)) {
    let start = out.len();
    write_fields(out, matching);
    let (cookie, mask) = cookies;
    if mask != 0 {
        let has_mask = u8::from(mask != u64::MAX);
        out.u16(nxm::NXM_NX);
        out.u8(COOKIE << 1 | has_mask);
        out.u8(COOKIE_LEN << has_mask);
        out.u64(cookie & mask);
        if has_mask != 0 {
            out.u64(mask);
        }
    }
    out.length(start, at);
    out.pad(start);
}

fn write_fields(out: &mut Vec<u8>, matching: &Match) {
    let mut has_tag = false;
    for one in matching.fields() {
        match one.field {
            Field::InPort => match port_number::narrow(one.value as u32) {
                Some(number) => oxm::write_named(out, nxm_in_port(), number.into(), u16::MAX.into()),
                // NXM_OF_IN_PORT has 16 bits.
                None => oxm::write_standard(out, one),
            },
            // One field has what is compared of the tag.
            Field::VlanVid | Field::VlanPcp | Field::VlanTci if has_tag => {}
            Field::VlanVid | Field::VlanPcp | Field::VlanTci => {
                has_tag = true;
                write_tag(out, matching);
            }
            _ => nxm::parts(one)
                .into_iter()
                .for_each(|(named, value, mask)| oxm::write_named(out, named, value, mask)),
        }
    }
}

fn nxm_in_port() -> &'static nxm::NamedBits {
    match nxm::by_number(nxm::NXM_OF, 0) {
        Some(named) => named,
        None => unreachable!("NXM_OF_IN_PORT has a number"),
    }
}

/// Writes NXM_OF_VLAN_TCI.
fn write_tag(out: &mut Vec<u8>, matching: &Match) {
    let places = [(Field::VlanVid, 0), (Field::VlanPcp, PRIORITY_SHIFT), (Field::VlanTci, 0)];
    let (mut value, mut mask) = (0, 0);
    for (field, shift) in places {
        if let Some(part) = matching.field(field) {
            value |= part.value << shift;
            mask |= part.mask << shift;
        }
    }
    // No tag: then there is no priority either.
    if (value, mask) == (0, TAG_ID) {
        mask = Field::VlanTci.ones();
    }
    let tag = FieldMatch { field: Field::VlanTci, value, mask };
    nxm::parts(tag).into_iter().for_each(|(named, value, mask)| oxm::write_named(out, named, value, mask));
}
