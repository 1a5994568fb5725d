//! Prints flows, groups and meters as ovs-ofctl does; the output can be parsed again.

use super::actions::{print_actions, print_instructions};
use super::fields::PROTOCOLS;
use super::value::{show, show_mask};
use crate::field::{Field, VLAN_PRESENT};
use crate::flow::{ANY_GROUP, Flow, Rank, flags};
use crate::group::{Group, GroupKind};
use crate::matching::{FieldMatch, Match};
use crate::meter::{self, BandKind, Meter};
use crate::port;

/// Prints a flow with its counters: `cookie=…, table=…, n_packets=…, n_bytes=…, priority=…,MATCH
/// actions=…`.
pub fn print_flow(table_id: u8, rank: &Rank, flow: &Flow) -> String {
    let counters = flow.counters;
    let mut text = format!(
        "cookie={:#x}, table={table_id}, n_packets={}, n_bytes={}, ",
        flow.cookie, counters.packets, counters.bytes
    );
    for (name, seconds) in [("idle_timeout", flow.idle_timeout), ("hard_timeout", flow.hard_timeout)] {
        if seconds != 0 {
            text += &format!("{name}={seconds}, ");
        }
    }
    for (name, flag) in [
        ("send_flow_rem", flags::SEND_FLOW_REM),
        ("check_overlap", flags::CHECK_OVERLAP),
        ("reset_counts", flags::RESET_COUNTS),
        ("no_packet_counts", flags::NO_PACKET_COUNTS),
        ("no_byte_counts", flags::NO_BYTE_COUNTS),
    ] {
        if flow.flags & flag != 0 {
            text += &format!("{name}, ");
        }
    }
    let matching = print_match(rank.matching());
    let comma = if matching.is_empty() { "" } else { "," };
    let actions = print_instructions(&flow.instructions);
    text + &format!("priority={}{comma}{matching} actions={actions}", rank.priority())
}

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
        if !is_printed {
            words.push(print_field(field, value, mask));
        }
    }
    words.join(",")
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

/// Prints a group: `group_id=…,type=…,bucket=…`.
pub fn print_group(id: u32, group: &Group) -> String {
    let kind = match group.kind {
        GroupKind::All => "all",
        GroupKind::Select => "select",
        GroupKind::Indirect => "indirect",
        GroupKind::FastFailover => "ff",
    };
    let mut text = format!("group_id={id},type={kind}");
    for bucket in &*group.buckets {
        text += ",bucket=";
        if group.kind == GroupKind::Select || bucket.weight != 0 {
            text += &format!("weight:{},", bucket.weight);
        }
        if bucket.watch_port != port::ANY {
            text += &format!("watch_port:{},", bucket.watch_port);
        }
        if bucket.watch_group != ANY_GROUP {
            text += &format!("watch_group:{},", bucket.watch_group);
        }
        text += &format!("actions={}", print_actions(&bucket.actions));
    }
    text
}

/// Prints a meter: `meter=…,kbps,bands=type=…,rate=…`.
pub fn print_meter(id: u32, meter: &Meter) -> String {
    let mut text = format!("meter={id}");
    for (name, flag) in [
        ("kbps", meter::flags::KBPS),
        ("pktps", meter::flags::PKTPS),
        ("burst", meter::flags::BURST),
        ("stats", meter::flags::STATS),
    ] {
        if meter.flags & flag != 0 {
            text += &format!(",{name}");
        }
    }
    text += ",bands=";
    let bands = meter.bands().map(|(band, _)| {
        let (kind, levels) = match band.kind {
            BandKind::Drop => ("drop", String::new()),
            BandKind::DscpRemark(levels) => ("dscp_remark", format!(",prec_level={levels}")),
        };
        let burst = if meter.flags & meter::flags::BURST != 0 {
            format!(",burst_size={}", band.burst)
        } else {
            String::new()
        };
        format!("type={kind},rate={}{burst}{levels}", band.rate)
    });
    text + &bands.collect::<Vec<_>>().join(",")
}
