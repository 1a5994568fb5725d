//! Matches and single fields as OXM TLVs (§7.2.3).

use super::bytes::{ByteReader, Write};
use super::fault::Fault;
use fastpath_switch::extension::{Bits, Extension};
use fastpath_switch::nxm::{self, NamedBits};
use fastpath_switch::{Action, Field, FieldMatch, Match, Refusal, port};
use std::sync::Arc;

/// OFPXMC_OPENFLOW_BASIC.
const BASIC: u16 = 0x8000;
/// OFPXMT_OFB_PACKET_TYPE.
const PACKET_TYPE: u8 = 44;
/// Bytes of the number of an experimenter, which are part of the length that its fields say.
const EXPERIMENTER_LEN: usize = 4;

/// Reads an `ofp_match` with its padding.
pub(crate) fn read_match(reader: &mut ByteReader<'_>) -> Result<Match, Fault> {
    let fields = read_fields(reader)?;
    Ok(Match::new(&fields)?)
}

/// Reads the fields of an `ofp_match` with its padding, without checking that they fit together.
pub(crate) fn read_fields(reader: &mut ByteReader<'_>) -> Result<Vec<FieldMatch>, Fault> {
    let (kind, len) = (reader.u16()?, usize::from(reader.u16()?));
    if kind != 1 {
        return Err(Fault::MatchBadType(kind));
    }
    let inside = len.checked_sub(4).ok_or(Fault::MatchBadLen)?;
    let mut rest = reader.part(inside, Fault::MatchBadLen).map_err(|_| Fault::MatchBadLen)?;
    let mut fields = Vec::new();
    while !rest.is_empty() {
        fields.extend(read_field(&mut rest)?);
    }
    reader.skip(len.next_multiple_of(8) - len)?;
    Ok(fields)
}

/// Reads one field: header, value, and mask if there is one. The tag as a whole may be two.
pub(crate) fn read_field(reader: &mut ByteReader<'_>) -> Result<Vec<FieldMatch>, Fault> {
    let Tlv { class, experimenter, number, has_mask, len } = Tlv::read(reader)?;
    if (class, number) == (BASIC, PACKET_TYPE) {
        return read_packet_type(has_mask, len, reader);
    }
    let Some(named) = nxm::by_full_number(class, experimenter, number) else {
        return Err(Refusal::MatchBadField { class, field: number }.into());
    };
    let width = usize::from(named.len);
    if len != if has_mask { 2 * width } else { width } {
        return Err(Fault::MatchBadLen);
    }
    let value = reader.number(width)?;
    let mask = if has_mask { Some(reader.number(width)?) } else { None };
    named_match(named, value, mask)
}

/// The type of a packet, in OpenFlow 1.5: all packets here are of Ethernet.
fn read_packet_type(
    has_mask: bool,
    len: usize,
    reader: &mut ByteReader<'_>,
) -> Result<Vec<FieldMatch>, Fault> {
    match (has_mask, len) {
        (true, _) => Err(Refusal::MatchBadMask("packet_type").into()),
        (false, 4) if reader.u32()? == 0 => Ok(Vec::new()),
        (false, 4) => Err(Refusal::MatchBadValue("packet_type").into()),
        _ => Err(Fault::MatchBadLen),
    }
}

/// The bytes before the value of a field.
struct Tlv {
    class: u16,
    /// 0 in classes without.
    experimenter: u32,
    number: u8,
    has_mask: bool,
    /// Bytes of value and mask.
    len: usize,
}

impl Tlv {
    fn read(reader: &mut ByteReader<'_>) -> Result<Tlv, Fault> {
        let (class, head, len) = (reader.u16()?, reader.u8()?, usize::from(reader.u8()?));
        let (experimenter, before) = match class {
            nxm::EXPERIMENTERS => (reader.u32()?, EXPERIMENTER_LEN),
            _ => (0, 0),
        };
        let len = len.checked_sub(before).ok_or(Fault::MatchBadLen)?;
        Ok(Tlv { class, experimenter, number: head >> 1, has_mask: head & 1 != 0, len })
    }
}

/// Returns the match of a named field with a value and a mask as messages have them.
fn named_match(named: &NamedBits, value: u128, mask: Option<u128>) -> Result<Vec<FieldMatch>, Fault> {
    let Bits { field, from, .. } = named.bits;
    let ones = named.bits.ones() << named.below;
    let mask = mask.unwrap_or(ones);
    if field == Field::VlanTci {
        return Ok(FieldMatch::of_tag(value, mask));
    }
    if field == Field::InPort {
        return Ok(vec![FieldMatch::exact(field, port::of_16_bits(value as u32).into())]);
    }
    // The type of service includes two bits of another field.
    if named.below > 0 && value & !ones != 0 {
        return Err(Refusal::MatchBadValue(field.name()).into());
    }
    let is_part = from > 0 || named.bits.width < field.bits() as u8 || named.below > 0;
    let (value, mask) = match is_part {
        true => (value >> named.below << from, (mask >> named.below & named.bits.ones()) << from),
        false => (value, mask),
    };
    // The unused bits above a field of 20, 13, … bits may have any value under a mask.
    let mask = if mask & field.ones() == field.ones() { field.ones() } else { mask };
    Ok(vec![FieldMatch { field, value, mask }])
}

/// Writes an `ofp_match` with its padding.
pub(crate) fn write_match(out: &mut Vec<u8>, matching: &Match) {
    write_fields(out, matching.fields());
}

pub(crate) fn write_fields(out: &mut Vec<u8>, fields: impl Iterator<Item = FieldMatch>) {
    let start = out.len();
    out.u16(1);
    out.u16(0);
    write_list(out, fields);
    out.length(start, start + 2);
    out.pad(start);
}

/// Writes fields one after the other.
pub(crate) fn write_list(out: &mut Vec<u8>, fields: impl Iterator<Item = FieldMatch>) {
    for one in fields {
        if !one.field.is_standard() {
            nxm::parts(one).into_iter().for_each(|(named, value, mask)| write_named(out, named, value, mask));
        } else {
            write_standard(out, one);
        }
    }
}

/// Writes a field of OpenFlow 1.3.
pub(crate) fn write_standard(out: &mut Vec<u8>, one: FieldMatch) {
    let FieldMatch { field, value, mask } = one;
    let has_mask = mask != field.ones();
    let width = field.oxm_len();
    write_header(out, field, has_mask);
    out.number(value, width);
    if has_mask {
        out.number(mask, width);
    }
}

/// Returns the four bytes before a field's value.
pub(crate) fn write_header(out: &mut Vec<u8>, field: Field, has_mask: bool) {
    out.u16(BASIC);
    out.u8((field as u8) << 1 | u8::from(has_mask));
    out.u8((field.oxm_len() << u8::from(has_mask)) as u8);
}

/// Writes the header, the value and, unless every bit counts, the mask of a named field.
pub(crate) fn write_named(out: &mut Vec<u8>, named: &NamedBits, value: u128, mask: u128) {
    let has_mask = mask != named.bits.ones();
    let (below, len) = (named.below, usize::from(named.len));
    let experimenter = Some(named.experimenter).filter(|number| *number != 0);
    out.u16(named.class);
    out.u8(named.number << 1 | u8::from(has_mask));
    let before = experimenter.map_or(0, |_| EXPERIMENTER_LEN as u8);
    out.u8(before + (named.len << u8::from(has_mask)));
    experimenter.into_iter().for_each(|number| out.u32(number));
    out.number(value << below, len);
    if has_mask {
        out.number(mask << below, len);
    }
}

/// Reads a value for bits of a field: header, value, and mask if there is one. Returns value and
/// mask
/// in the place of the bits.
pub(crate) fn read_value(reader: &mut ByteReader<'_>) -> Result<(Field, u128, u128), Fault> {
    let Tlv { class, experimenter, number, has_mask, len } = Tlv::read(reader)?;
    let named = nxm::by_full_number(class, experimenter, number).ok_or(Fault::ActionBadSetType)?;
    let width = usize::from(named.len);
    if len != if has_mask { 2 * width } else { width } {
        return Err(Fault::ActionBadSetLen);
    }
    let Bits { field, from, .. } = named.bits;
    let value = reader.number(width)? >> named.below;
    let ones = named.bits.ones();
    let mask = if has_mask { reader.number(width)? >> named.below & ones } else { ones };
    if value & !ones != 0 || mask == 0 {
        return Err(Refusal::ActionBadSetArgument(field.name()).into());
    }
    Ok((field, (value & mask) << from, mask << from))
}

/// Reads what a set-field action sets, which begins after type and length: a whole field, or a part
/// that has a name of its own.
pub(crate) fn read_set_field(reader: &mut ByteReader<'_>) -> Result<Action, Fault> {
    let Tlv { class, experimenter, number, has_mask, len } = Tlv::read(reader)?;
    let named = nxm::by_full_number(class, experimenter, number).ok_or(Fault::ActionBadSetType)?;
    if has_mask || len != usize::from(named.len) {
        return Err(Fault::ActionBadSetLen);
    }
    let value = reader.number(len)?;
    let Bits { field, from, width } = named.bits;
    if u32::from(width) == field.bits() {
        return Ok(Action::SetField(field, value >> named.below));
    }
    let (value, mask) = (value >> named.below & named.bits.ones(), named.bits.mask());
    Ok(Action::Extension(Arc::new(Extension::Set { field, value: value << from, mask, is_load: false })))
}
