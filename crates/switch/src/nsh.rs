//! The network service header (RFC 8300): its fields in frames.
//!
//! ```text
//!  0: version, O and U bits, TTL, length │ 2: metadata type, 3: next protocol
//!  4: service path (24 bits), 7: service index
//!  8: four context words, of metadata type 1 only
//! ```
//!
//! Flags are the O and U bits, as Open vSwitch numbers them.

use crate::field::{ETHERTYPE_NSH, Field};
use fastpath_wire::Headers;

/// Bytes of the header without metadata.
const BASE_LEN: usize = 8;
/// Bytes of the header with metadata of type 1.
const CONTEXT_LEN: usize = 24;

/// Where a field is: the word of 32 bits, its lowest bit in it, and its width.
fn place(field: Field) -> Option<(usize, u32, u32)> {
    Some(match field {
        Field::NshFlags => (0, 28, 2),
        Field::NshTtl => (0, 22, 6),
        Field::NshMdtype => (0, 8, 4),
        Field::NshNp => (0, 0, 8),
        Field::NshSpi => (1, 8, 24),
        Field::NshSi => (1, 0, 8),
        Field::NshC1 => (2, 0, 32),
        Field::NshC2 => (3, 0, 32),
        Field::NshC3 => (4, 0, 32),
        Field::NshC4 => (5, 0, 32),
        _ => return None,
    })
}

/// All fields; those of the context are the last four.
const FIELDS: [Field; 10] = [
    Field::NshFlags,
    Field::NshTtl,
    Field::NshMdtype,
    Field::NshNp,
    Field::NshSpi,
    Field::NshSi,
    Field::NshC1,
    Field::NshC2,
    Field::NshC3,
    Field::NshC4,
];

/// Returns the fields that a header has; none if it is not complete.
fn of_header(header: &[u8]) -> &'static [Field] {
    let Some(base) = header.first_chunk::<BASE_LEN>() else { return &[] };
    let (version, len, kind) = (base[0] >> 6, usize::from(base[1] & 0x3f) * 4, base[2] & 0xf);
    match (version, kind) {
        (0, 1) if len == CONTEXT_LEN && header.len() >= CONTEXT_LEN => &FIELDS,
        (0, 2) if len >= BASE_LEN && header.len() >= len => &FIELDS[..6],
        _ => &[],
    }
}

fn word(header: &[u8], number: usize) -> u32 {
    let at = number * 4;
    u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

/// Tells the fields of a header.
pub(crate) fn fields(header: &[u8], mut tell: impl FnMut(Field, u128)) {
    for field in of_header(header) {
        if let Some((number, shift, width)) = place(*field) {
            tell(*field, (word(header, number) >> shift & (u32::MAX >> (32 - width))).into());
        }
    }
}

/// Sets a field of the header behind the Ethernet header of a frame, if it has that.
pub(crate) fn set(frame: &mut [u8], headers: &Headers, field: Field, value: u32) {
    let header = match headers.ethertype {
        ETHERTYPE_NSH => frame.get_mut(headers.l2_len..).unwrap_or_default(),
        _ => return,
    };
    let Some((number, shift, width)) = place(field).filter(|_| of_header(header).contains(&field)) else {
        return;
    };
    let mask = u32::MAX >> (32 - width) << shift;
    let new = word(header, number) & !mask | value << shift & mask;
    header[number * 4..number * 4 + 4].copy_from_slice(&new.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit;
    use crate::key::{Key, PipelineFields};

    fn frame(kind: u8) -> Vec<u8> {
        let mut frame = vec![2; 12];
        let (len, words) = if kind == 1 { (6, 4) } else { (2, 0) };
        frame.extend([0x89, 0x4f, 0x2f, 0xc0 | len, kind, 3, 0x12, 0x34, 0x56, 0xff]);
        (1..=words).for_each(|n: u32| frame.extend((n << 24 | n).to_be_bytes()));
        frame.extend([0; 30]);
        frame
    }

    fn get(frame: &[u8], field: Field) -> Option<u128> {
        Key::extract(frame, &Headers::parse(frame), PipelineFields::default()).get(field)
    }

    #[test]
    fn a_header_has_its_fields_and_they_can_be_set() {
        let mut bytes = frame(1);
        let wanted = [2, 0x3f, 1, 3, 0x12_3456, 0xff, 0x0100_0001, 0x0200_0002, 0x0300_0003, 0x0400_0004];
        for (field, value) in FIELDS.into_iter().zip(wanted) {
            assert_eq!(get(&bytes, field), Some(value), "{}", field.name());
        }
        for field in FIELDS.into_iter().filter(|field| field.is_settable()) {
            edit::set_field(&mut bytes, field, 1);
            assert_eq!(get(&bytes, field), Some(1), "{}", field.name());
        }
        assert_eq!(get(&bytes, Field::NshNp), Some(3));
    }

    #[test]
    fn metadata_of_type_2_has_no_context_words_and_other_frames_have_no_header() {
        assert_eq!((get(&frame(2), Field::NshSi), get(&frame(2), Field::NshC1)), (Some(255), Some(0)));
        assert_eq!((get(&frame(3), Field::NshSi), get(&[0; 60], Field::NshSi)), (None, None));
    }
}
