//! Parts of fields, as actions of Open vSwitch name them: `NXM_NX_REG0[0..15]`.

use crate::{Wrong, value, wrong};
use fastpath_switch::extension::Bits;
use fastpath_switch::field::Field;
use fastpath_switch::nxm;

/// Parses `NAME[FIRST..LAST]`, `NAME[BIT]`, `NAME[]` or `NAME`.
pub(crate) fn parse_bits(text: &str) -> Result<Bits, Wrong> {
    let (name, range) = match text.split_once('[') {
        None => (text, ""),
        Some((name, rest)) => match rest.strip_suffix(']') {
            Some(range) => (name, range),
            None => return wrong(format!("'{text}' has no ] at its end"), format!("write {text}]")),
        },
    };
    let Some(named) = nxm::by_name(name) else {
        return wrong(
            format!("unknown field '{name}'"),
            "write a field of ovs-fields(7), for example NXM_NX_REG0[] or eth_src",
        );
    };
    let mut bits = named.bits;
    if range.is_empty() {
        return Ok(bits);
    }
    let number = |text: &str| value::number("a bit", text.trim(), 127);
    let (first, last) = match range.split_once("..") {
        Some((first, last)) => (number(first)?, number(last)?),
        None => (number(range)?, number(range)?),
    };
    let width = u64::from(bits.width) + u64::from(named.below);
    if first > last || last >= width || first < u64::from(named.below) {
        return wrong(
            format!("'{text}' has no bits {first} to {last}"),
            format!("write bits from {} to {}, the lower one first", named.below, width - 1),
        );
    }
    bits.from += first as u8 - named.below;
    bits.width = (last - first + 1) as u8;
    Ok(bits)
}

/// Prints bits as [`parse_bits`] reads them.
pub(crate) fn print_bits(bits: Bits) -> String {
    let named = nxm::of_bits(bits);
    if bits == named.bits && named.below == 0 {
        return format!("{}[]", named.name);
    }
    let first = bits.from - named.bits.from + named.below;
    match bits.width {
        1 => format!("{}[{first}]", named.name),
        width => format!("{}[{first}..{}]", named.name, first + (width - 1)),
    }
}

/// Returns whether a text is the name of bits, and not a number or a port.
pub(crate) fn names_bits(text: &str) -> bool {
    nxm::by_name(text.split('[').next().unwrap_or_default()).is_some()
}

/// Parses a value for bits: a number, or an address if they are a whole field of addresses.
pub(crate) fn parse_value(key: &str, bits: Bits, text: &str) -> Result<u128, Wrong> {
    let read = number(key, text, bits.ones());
    let is_whole = bits == Bits::all(bits.field) && !is_plain(bits.field);
    if is_whole && read.is_err() { value::bits(key, bits.field, text) } else { read }
}

/// Parses a number of up to 128 bits.
pub(crate) fn number(key: &str, text: &str, max: u128) -> Result<u128, Wrong> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    match parsed.filter(|number| *number <= max && !text.starts_with('+')) {
        Some(number) => Ok(number),
        None => wrong(format!("{key} cannot be '{text}'"), format!("write a number from 0 to {max:#x}")),
    }
}

/// Returns whether values of the field are always numbers.
fn is_plain(field: Field) -> bool {
    use Field::{TunDst, TunFlags, TunIpv6Dst, TunIpv6Src, TunSrc};
    !field.is_standard() && !matches!(field, TunSrc | TunDst | TunIpv6Src | TunIpv6Dst | TunFlags)
}
