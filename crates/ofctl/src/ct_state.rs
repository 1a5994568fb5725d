//! The field `ct_state`, parsed and printed (ovs-fields(7)).

use crate::subfield::number;
use crate::{Wrong, wrong};
use fastpath_switch::connections::CtState;
use fastpath_switch::{Field, FieldMatch};

/// Parses `+FLAG-FLAG…`, `FLAG|FLAG…` or `VALUE/MASK` of `ct_state`.
pub(crate) fn parse_state(text: &str) -> Result<FieldMatch, Wrong> {
    let field = Field::CtState;
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        let (value, mask) = text.split_once('/').map_or((text, None), |(value, mask)| (value, Some(mask)));
        let mask = mask.map_or(Ok(field.ones()), |mask| number("ct_state", mask, field.ones()))?;
        return Ok(FieldMatch::masked(field, number("ct_state", value, field.ones())? & mask, mask));
    }
    if text.is_empty() {
        return wrong("ct_state is empty", "write for example +trk+est-new");
    }
    let (mut value, mut mask) = (0u128, 0u128);
    let is_signed = text.starts_with(['+', '-']);
    let mut rest = text;
    while !rest.is_empty() {
        let (sign, more) = if is_signed { rest.split_at(1) } else { ("+", rest) };
        let end = more.find(['+', '-', '|']).unwrap_or(more.len());
        let (name, after) = more.split_at(end);
        let known = CtState::NAMES.iter().position(|flag| *flag == name);
        let Some(bit) = known.filter(|_| "+-".contains(sign)) else {
            return wrong(
                format!("ct_state cannot be '{text}'"),
                format!("write for example +trk+est-new, of {}", CtState::NAMES.join(", ")),
            );
        };
        if mask & 1 << bit != 0 {
            return wrong(format!("{name} is given twice"), "write it once");
        }
        mask |= 1 << bit;
        value |= u128::from(sign == "+") << bit;
        rest = if is_signed { after } else { after.trim_start_matches('|') };
    }
    let mask = if is_signed { mask } else { field.ones() };
    Ok(FieldMatch::masked(field, value, mask))
}

/// Prints `ct_state` as [`parse_state`] reads it.
pub(crate) fn print_state(value: u128, mask: u128) -> String {
    let is_exact = mask == Field::CtState.ones();
    let flags = (1u128 << CtState::NAMES.len()) - 1;
    if is_exact && value & !flags == 0 && value != 0 {
        let set = CtState::NAMES.iter().enumerate().filter(|(bit, _)| value >> bit & 1 != 0);
        return set.map(|(_, name)| *name).collect::<Vec<_>>().join("|");
    }
    if mask & !flags != 0 {
        let mask = if is_exact { String::new() } else { format!("/{mask:#x}") };
        return format!("{value:#x}{mask}");
    }
    let bits = CtState::NAMES.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 != 0);
    bits.map(|(bit, name)| format!("{}{name}", if value >> bit & 1 != 0 { '+' } else { '-' })).collect()
}
