//! Prints matches as ovs-ofctl does; the output can be parsed again.

use crate::ct_state::print_state;
use crate::fields::{FRAGMENTS, PROTOCOLS, print_flags};
use crate::value::{show, show_mask};
use fastpath_switch::field::{Field, VLAN_PRESENT};
use fastpath_switch::nxm::{self, NamedBits};
use fastpath_switch::{FieldMatch, Match};

/// Prints the fields of a match, separated by commas; nothing for the match of all packets.
pub fn print_match(matching: &Match) -> String {
    let exact = |field| matching.field(field).filter(FieldMatch::is_exact).map(|f| f.value);
    let (eth_type, ip_proto) = (exact(Field::EthType), exact(Field::IpProto));
    let means = |kind: u16, protocol: Option<u8>| {
        eth_type == Some(kind.into()) && (protocol.is_none() || protocol.map(u128::from) == ip_proto)
    };
    // Keywords with a protocol come first in the list.
    let word = PROTOCOLS.iter().find(|(_, kind, protocol)| means(*kind, *protocol));
    let mut words: Vec<String> = word.map(|(name, ..)| (*name).to_owned()).into_iter().collect();
    for FieldMatch { field, value, mask } in matching.fields() {
        let is_printed = match field {
            Field::EthType => word.is_some(),
            Field::IpProto => word.is_some_and(|(_, _, protocol)| protocol.is_some()),
            _ => false,
        };
        if is_printed {
            continue;
        }
        if field.is_standard() {
            words.push(print_field(field, value, mask));
            continue;
        }
        for (named, value, mask) in nxm::parts(FieldMatch { field, value, mask }) {
            words.push(print_other(named, value, mask));
        }
    }
    words.join(",")
}

/// Prints a field of Open vSwitch.
fn print_other(named: &NamedBits, value: u128, mask: u128) -> String {
    let (name, field) = (&named.short, named.bits.field);
    let is_exact = mask == named.bits.ones();
    match field {
        Field::NwFrag => {
            let word = FRAGMENTS.iter().find(|(_, v, m)| (*v, *m) == (value, mask)).map(|(word, ..)| *word);
            let bits = if is_exact { value.to_string() } else { format!("{value}/{mask}") };
            format!("{name}={}", word.map_or(bits, str::to_owned))
        }
        Field::TcpFlags if !is_exact => format!("{name}={}", print_flags(value, mask)),
        Field::CtState => format!("{name}={}", print_state(value, mask)),
        Field::TunFlags => format!("{name}={}oam", if value == 1 { '+' } else { '-' }),
        Field::TunSrc
        | Field::TunDst
        | Field::TunIpv6Src
        | Field::TunIpv6Dst
        | Field::ActsetOutput
        | Field::CtNwSrc
        | Field::CtNwDst
        | Field::CtIpv6Src
        | Field::CtIpv6Dst
        | Field::CtTpSrc
        | Field::CtTpDst => format!("{name}={}{}", show(field, value), show_mask(field, mask)),
        _ if is_exact && is_decimal(field) => {
            format!("{name}={value}")
        }
        _ if is_exact => format!("{name}={value:#x}"),
        _ => format!("{name}={value:#x}/{mask:#x}"),
    }
}

/// Returns whether a field of Open vSwitch is a decimal number.
fn is_decimal(field: Field) -> bool {
    use Field::{ConjId, CtNwProto, CtZone, MplsTtl, NwTtl};
    use Field::{NshFlags, NshMdtype, NshNp, NshSi, NshTtl};
    use Field::{TunErspanDir, TunErspanVer, TunGbpId, TunGtpuMsgtype};
    matches!(field, NwTtl | MplsTtl | ConjId | CtZone | CtNwProto)
        || matches!(field, TunGbpId | TunErspanVer | TunErspanDir | TunGtpuMsgtype)
        || matches!(field, NshFlags | NshMdtype | NshNp | NshSi | NshTtl)
}

pub(super) fn print_field(field: Field, value: u128, mask: u128) -> String {
    let name = match field {
        Field::EthDst => "dl_dst",
        Field::EthSrc => "dl_src",
        Field::EthType => "dl_type",
        Field::VlanPcp => "dl_vlan_pcp",
        Field::IpProto => "nw_proto",
        Field::Ipv4Src => "nw_src",
        Field::Ipv4Dst => "nw_dst",
        Field::IpEcn => "nw_ecn",
        Field::TcpSrc | Field::UdpSrc | Field::SctpSrc => "tp_src",
        Field::TcpDst | Field::UdpDst | Field::SctpDst => "tp_dst",
        Field::Icmpv4Type | Field::Icmpv6Type => "icmp_type",
        Field::Icmpv4Code | Field::Icmpv6Code => "icmp_code",
        Field::Ipv6Flabel => "ipv6_label",
        Field::TunnelId => "tun_id",
        Field::VlanVid if mask == field.ones() && value == 0 => return "dl_vlan=0xffff".to_owned(),
        Field::VlanVid if mask == field.ones() => {
            return format!("dl_vlan={}", value ^ u128::from(VLAN_PRESENT));
        }
        _ => field.name(),
    };
    format!("{name}={}{}", show(field, value), show_mask(field, mask))
}
