//! Numbers, addresses and masks, as rule files write them.

use crate::{Wrong, wrong};
use fastpath_switch::field::Field;
use fastpath_switch::port;
use fastpath_wire::MacAddr;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Parses a number, decimal or with `0x`, of at most `max`.
pub(crate) fn number(key: &str, text: &str, max: u64) -> Result<u64, Wrong> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    match parsed.filter(|number| *number <= max && !text.starts_with('+')) {
        Some(number) => Ok(number),
        None => wrong(format!("{key} cannot be '{text}'"), format!("write {key}=N with N from 0 to {max}")),
    }
}

/// Parses the TOS byte, of which the upper six bits are the DSCP. ECN bits are a mistake, as in
/// ovs-ofctl: they would be ignored.
pub(crate) fn dscp_of_tos(key: &str, text: &str) -> Result<u128, Wrong> {
    let tos = number(key, text, 255)?;
    match tos & 3 {
        0 => Ok((tos >> 2).into()),
        _ => wrong(
            format!("{key} cannot be '{text}': its two lowest bits are the ECN"),
            format!("write {key}={}; nw_ecn is a field of its own", tos & !3),
        ),
    }
}

/// Parses the value and mask of a field: `VALUE` or `VALUE/MASK` (for IP addresses also
/// `VALUE/LENGTH`).
pub(crate) fn masked(key: &str, field: Field, text: &str) -> Result<(u128, u128), Wrong> {
    let (value, mask) = text.split_once('/').map_or((text, None), |(value, mask)| (value, Some(mask)));
    let value = bits(key, field, value)?;
    let mask = match mask {
        None => field.ones(),
        Some(len) if is_ip(field) && !len.contains(['.', ':']) => {
            let bits = field.bits();
            let Some(len) = len.parse::<u32>().ok().filter(|len| *len <= bits) else {
                return wrong(
                    format!("{key} cannot have a prefix of '{len}' bits"),
                    format!("write {key}=ADDRESS/N with N from 0 to {bits}"),
                );
            };
            if len == 0 { 0 } else { field.ones() >> (field.bits() - len) << (field.bits() - len) }
        }
        Some(mask) => bits(key, field, mask)?,
    };
    // As in ovs-ofctl, bits outside the mask count as zero.
    Ok((value & mask, mask))
}

/// Parses the value of a field in its notation.
pub(crate) fn bits(key: &str, field: Field, text: &str) -> Result<u128, Wrong> {
    let (parsed, example) = match field {
        Field::EthDst
        | Field::EthSrc
        | Field::ArpSha
        | Field::ArpTha
        | Field::Ipv6NdSll
        | Field::Ipv6NdTll => {
            let mac = text.parse::<MacAddr>().ok();
            (mac.map(|mac| fastpath_switch::key::big_endian(&mac.0)), "02:00:00:00:00:01")
        }
        Field::Ipv4Src
        | Field::Ipv4Dst
        | Field::ArpSpa
        | Field::ArpTpa
        | Field::TunSrc
        | Field::TunDst
        | Field::CtNwSrc
        | Field::CtNwDst => (
            text.parse::<Ipv4Addr>().ok().map(|address| address.to_bits().into()),
            "192.0.2.1 or 192.0.2.0/24",
        ),
        Field::Ipv6Src
        | Field::Ipv6Dst
        | Field::Ipv6NdTarget
        | Field::CtIpv6Src
        | Field::CtIpv6Dst
        | Field::TunIpv6Src
        | Field::TunIpv6Dst => {
            (text.parse::<Ipv6Addr>().ok().map(Ipv6Addr::to_bits), "2001:db8::1 or 2001:db8::/32")
        }
        // Flags, of which there is one.
        Field::TunFlags if text == "oam" => return Ok(1),
        Field::ActsetOutput if text.eq_ignore_ascii_case("unset") => return Ok(port::UNSET.into()),
        _ => return number(key, text, u64::try_from(field.ones()).unwrap_or(u64::MAX)).map(u128::from),
    };
    match parsed {
        Some(bits) => Ok(bits),
        None => wrong(format!("{key} cannot be '{text}'"), format!("write for example {key}={example}")),
    }
}

/// Returns whether masks of the field may be prefix lengths.
pub(crate) fn is_ip(field: Field) -> bool {
    use Field::{ArpSpa, ArpTpa, Ipv4Dst, Ipv4Src, Ipv6Dst, Ipv6NdTarget, Ipv6Src, TunDst, TunSrc};
    use Field::{CtIpv6Dst, CtIpv6Src, CtNwDst, CtNwSrc, TunIpv6Dst, TunIpv6Src};
    matches!(field, Ipv4Src | Ipv4Dst | ArpSpa | ArpTpa | Ipv6Src | Ipv6Dst | Ipv6NdTarget | TunSrc | TunDst)
        || matches!(field, CtNwSrc | CtNwDst | CtIpv6Src | CtIpv6Dst | TunIpv6Src | TunIpv6Dst)
}

/// Prints a value in the field's notation.
pub(crate) fn show(field: Field, value: u128) -> String {
    match field {
        Field::EthDst
        | Field::EthSrc
        | Field::ArpSha
        | Field::ArpTha
        | Field::Ipv6NdSll
        | Field::Ipv6NdTll => {
            let [.., a, b, c, d, e, f] = value.to_be_bytes();
            MacAddr([a, b, c, d, e, f]).to_string()
        }
        Field::Ipv4Src
        | Field::Ipv4Dst
        | Field::ArpSpa
        | Field::ArpTpa
        | Field::TunSrc
        | Field::TunDst
        | Field::CtNwSrc
        | Field::CtNwDst => Ipv4Addr::from_bits(value as u32).to_string(),
        Field::Ipv6Src
        | Field::Ipv6Dst
        | Field::Ipv6NdTarget
        | Field::CtIpv6Src
        | Field::CtIpv6Dst
        | Field::TunIpv6Src
        | Field::TunIpv6Dst => Ipv6Addr::from_bits(value).to_string(),
        Field::EthType => format!("0x{value:04x}"),
        Field::TunFlags if value == 1 => "oam".to_owned(),
        Field::ActsetOutput if value == u128::from(port::UNSET) => "UNSET".to_owned(),
        Field::Metadata
        | Field::TunnelId
        | Field::VlanVid
        | Field::Ipv6Flabel
        | Field::PbbIsid
        | Field::CtMark
        | Field::CtLabel
        | Field::TunGbpFlags
        | Field::TunErspanIdx
        | Field::TunErspanHwid
        | Field::TunGtpuFlags
        | Field::NshSpi
        | Field::NshC1
        | Field::NshC2
        | Field::NshC3
        | Field::NshC4 => {
            format!("{value:#x}")
        }
        _ => value.to_string(),
    }
}

/// Prints a mask in the field's notation, with the slash before it; nothing if every bit is
/// compared.
pub(crate) fn show_mask(field: Field, mask: u128) -> String {
    let left = mask << (128 - field.bits());
    if mask == field.ones() {
        String::new()
    } else if is_ip(field) && left.count_zeros() == left.trailing_zeros() {
        format!("/{}", mask.count_ones())
    } else if is_ip(field) || show(field, mask).contains(':') {
        format!("/{}", show(field, mask))
    } else {
        format!("/{mask:#x}")
    }
}
