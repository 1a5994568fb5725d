//! Fields and bits of them, and the frame of actions, as messages of the experimenter Nicira name
//! them.

use super::bytes::{ByteReader, Write};
use super::fault::Fault;
use fastpath_switch::Action;
use fastpath_switch::extension::Bits;
use fastpath_switch::nxm::{self, NamedBits};

/// OFPAT_VENDOR, OFPAT_EXPERIMENTER.
pub(super) const EXPERIMENTER: u16 = 0xffff;
/// The number of the experimenter (NX_VENDOR_ID).
pub(crate) const NICIRA: u32 = 0x2320;

/// How actions inside an action are read and written: they are those of the message's version.
pub(crate) type ReadActions = fn(ByteReader<'_>) -> Result<Vec<Action>, Fault>;
pub(crate) type WriteActions = fn(&mut Vec<u8>, &[Action]);

/// Reads the bytes that name a field: four, or eight for those of experimenters.
pub(super) fn read_header(r: &mut ByteReader<'_>) -> Result<&'static NamedBits, Fault> {
    let (class, head, _len) = (r.u16()?, r.u8()?, r.u8()?);
    let experimenter = if class == nxm::EXPERIMENTERS { r.u32()? } else { 0 };
    nxm::by_full_number(class, experimenter, head >> 1).ok_or(Fault::ActionBadSetType)
}

/// Returns `width` bits of a named field from bit `from`.
pub(super) fn bits(named: &NamedBits, from: u16, width: u16) -> Result<Bits, Fault> {
    let most = u16::from(named.bits.width) + u16::from(named.below);
    let below = u16::from(named.below);
    // All bits of a name include those that the field does not have.
    let (from, width) =
        if below > 0 && (from, width) == (0, 8) { (below, width - below) } else { (from, width) };
    if width == 0 || from < below || from.checked_add(width).is_none_or(|end| end > most) {
        return Err(Fault::ActionBadArgument);
    }
    Ok(Bits { from: named.bits.from + (from - below) as u8, width: width as u8, ..named.bits })
}

/// Returns the name of the smallest part that has some bits, and the first of them in it.
pub(super) fn name_and_bit(bits: Bits) -> (&'static NamedBits, u16) {
    let named = nxm::of_bits(bits);
    (named, u16::from(bits.from - named.bits.from + named.below))
}

pub(super) fn write_header(out: &mut Vec<u8>, named: &NamedBits) {
    out.u16(named.class);
    out.u8(named.number << 1);
    match named.experimenter {
        0 => out.u8(named.len),
        number => {
            out.u8(named.len + 4);
            out.u32(number);
        }
    }
}

/// Returns the bits of a range in 16 bits: the first, and the width less one in six bits.
pub(super) fn packed(range: u16, named: &NamedBits) -> Result<Bits, Fault> {
    bits(named, range >> 6, (range & 63) + 1)
}

/// Writes a range in 16 bits, and the field.
pub(super) fn write_packed(out: &mut Vec<u8>, bits: Bits) {
    let (named, from) = name_and_bit(bits);
    out.u16(from << 6 | (u16::from(bits.width) - 1).min(63));
    write_header(out, named);
}

/// Writes one action of Nicira, padded.
pub(super) fn action(out: &mut Vec<u8>, subtype: u16, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.u16(EXPERIMENTER);
    out.u16(0);
    out.u32(NICIRA);
    out.u16(subtype);
    body(out);
    out.pad(start);
    out.length(start, start + 2);
}
