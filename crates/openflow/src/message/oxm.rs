//! Matches and single fields as OXM TLVs (§7.2.3).

use super::bytes::{ByteReader, Write};
use super::fault::Fault;
use fastpath_switch::{Field, FieldMatch, Match, Refusal};

/// OFPXMC_OPENFLOW_BASIC.
const BASIC: u16 = 0x8000;

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
        let (class, head, len) = (rest.u16()?, rest.u8()?, usize::from(rest.u8()?));
        let (number, has_mask) = (head >> 1, head & 1 != 0);
        let field = Field::from_number(number).filter(|_| class == BASIC);
        let Some(field) = field else {
            return Err(Refusal::MatchBadField { class, field: number }.into());
        };
        let width = field.oxm_len();
        if len != if has_mask { 2 * width } else { width } {
            return Err(Fault::MatchBadLen);
        }
        let value = rest.number(width)?;
        let mask = if has_mask { rest.number(width)? } else { field.ones() };
        // The unused bits above a field of 20, 13, … bits may have any value under a mask.
        let mask = if has_mask && mask & field.ones() == field.ones() { field.ones() } else { mask };
        fields.push(FieldMatch { field, value, mask });
    }
    reader.skip(len.next_multiple_of(8) - len)?;
    Ok(fields)
}

/// Writes an `ofp_match` with its padding.
pub(crate) fn write_match(out: &mut Vec<u8>, matching: &Match) {
    write_fields(out, matching.fields());
}

pub(crate) fn write_fields(out: &mut Vec<u8>, fields: impl Iterator<Item = FieldMatch>) {
    let start = out.len();
    out.u16(1);
    out.u16(0);
    for FieldMatch { field, value, mask } in fields {
        let has_mask = mask != field.ones();
        let width = field.oxm_len();
        write_header(out, field, has_mask);
        out.number(value, width);
        if has_mask {
            out.number(mask, width);
        }
    }
    out.length(start, start + 2);
    out.pad(start);
}

/// Returns the four bytes before a field's value.
pub(crate) fn write_header(out: &mut Vec<u8>, field: Field, has_mask: bool) {
    out.u16(BASIC);
    out.u8((field as u8) << 1 | u8::from(has_mask));
    out.u8((field.oxm_len() << u8::from(has_mask)) as u8);
}

/// Reads the field of a set-field action, which begins after type and length. The whole action has
/// `len` bytes.
pub(crate) fn read_set_field(reader: &mut ByteReader<'_>) -> Result<(Field, u128), Fault> {
    let (class, head, len) = (reader.u16()?, reader.u8()?, usize::from(reader.u8()?));
    let field = Field::from_number(head >> 1).filter(|_| class == BASIC).ok_or(Fault::ActionBadSetType)?;
    if head & 1 != 0 || len != field.oxm_len() {
        return Err(Fault::ActionBadSetLen);
    }
    let value = reader.number(len)?;
    Ok((field, value))
}
