//! The names and numbers that Open vSwitch gives to fields, and to parts of them (ovs-fields(7)):
//! `NXM_NX_REG3`, `reg3` and number 3 of class 1 are 32 bits of [`Field::Registers0`].

use crate::extension::Bits;
use crate::field::{FIELDS, Field, REGISTERS, STANDARD};
use crate::matching::FieldMatch;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Class of the fields of OpenFlow 1.0, in messages (NXM_OF).
pub const NXM_OF: u16 = 0;
/// Class of other fields of Open vSwitch (NXM_NX).
pub const NXM_NX: u16 = 1;
/// Class of the fields of OpenFlow (OXM_OF).
pub const OXM_OF: u16 = 0x8000;
/// Class of the fields of experimenters, whose number follows.
pub const EXPERIMENTERS: u16 = 0xffff;
/// The Open Networking Foundation as an experimenter.
const ONF: u32 = 0x4f4e_4600;
/// Nicira as an experimenter.
const NICIRA: u32 = 0x2320;
/// The experimenter of the fields of NSH.
const NSH: u32 = 0x005a_d650;
/// Class of packet registers, of OpenFlow 1.5 (OXM_OF_PKT_REG).
pub const PACKET_REGISTERS: u16 = 0x8001;

/// Bits of a field with a name and a number of their own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedBits {
    /// Class in messages.
    pub class: u16,
    /// The experimenter of class [`EXPERIMENTERS`]; 0 in others.
    pub experimenter: u32,
    /// Number in the class.
    pub number: u8,
    /// Name in actions, such as `NXM_NX_REG3`.
    pub name: String,
    /// Name in matches, such as `reg3`.
    pub short: String,
    /// The bits.
    pub bits: Bits,
    /// Bits below them that the name includes and the field does not have: 2 of `NXM_OF_IP_TOS`.
    pub below: u8,
    /// Bytes of the value in messages.
    pub len: u8,
}

/// The fields whose name in Open vSwitch is not that of OpenFlow: class, number, names, field,
/// width
/// and bytes.
const OTHERS: &[(u16, u8, &str, &str, Field, u8)] = &[
    (NXM_OF, 0, "NXM_OF_IN_PORT", "in_port", Field::InPort, 2),
    (NXM_OF, 1, "NXM_OF_ETH_DST", "dl_dst", Field::EthDst, 6),
    (NXM_OF, 2, "NXM_OF_ETH_SRC", "dl_src", Field::EthSrc, 6),
    (NXM_OF, 3, "NXM_OF_ETH_TYPE", "dl_type", Field::EthType, 2),
    (NXM_OF, 4, "NXM_OF_VLAN_TCI", "vlan_tci", Field::VlanTci, 2),
    (NXM_OF, 5, "NXM_OF_IP_TOS", "nw_tos", Field::IpDscp, 1),
    (NXM_OF, 6, "NXM_OF_IP_PROTO", "nw_proto", Field::IpProto, 1),
    (NXM_OF, 7, "NXM_OF_IP_SRC", "nw_src", Field::Ipv4Src, 4),
    (NXM_OF, 8, "NXM_OF_IP_DST", "nw_dst", Field::Ipv4Dst, 4),
    (NXM_OF, 9, "NXM_OF_TCP_SRC", "tcp_src", Field::TcpSrc, 2),
    (NXM_OF, 10, "NXM_OF_TCP_DST", "tcp_dst", Field::TcpDst, 2),
    (NXM_OF, 11, "NXM_OF_UDP_SRC", "udp_src", Field::UdpSrc, 2),
    (NXM_OF, 12, "NXM_OF_UDP_DST", "udp_dst", Field::UdpDst, 2),
    (NXM_OF, 13, "NXM_OF_ICMP_TYPE", "icmp_type", Field::Icmpv4Type, 1),
    (NXM_OF, 14, "NXM_OF_ICMP_CODE", "icmp_code", Field::Icmpv4Code, 1),
    (NXM_OF, 15, "NXM_OF_ARP_OP", "arp_op", Field::ArpOp, 2),
    (NXM_OF, 16, "NXM_OF_ARP_SPA", "arp_spa", Field::ArpSpa, 4),
    (NXM_OF, 17, "NXM_OF_ARP_TPA", "arp_tpa", Field::ArpTpa, 4),
    (NXM_NX, 16, "NXM_NX_TUN_ID", "tun_id", Field::TunnelId, 8),
    (NXM_NX, 17, "NXM_NX_ARP_SHA", "arp_sha", Field::ArpSha, 6),
    (NXM_NX, 18, "NXM_NX_ARP_THA", "arp_tha", Field::ArpTha, 6),
    (NXM_NX, 19, "NXM_NX_IPV6_SRC", "ipv6_src", Field::Ipv6Src, 16),
    (NXM_NX, 20, "NXM_NX_IPV6_DST", "ipv6_dst", Field::Ipv6Dst, 16),
    (NXM_NX, 21, "NXM_NX_ICMPV6_TYPE", "icmpv6_type", Field::Icmpv6Type, 1),
    (NXM_NX, 22, "NXM_NX_ICMPV6_CODE", "icmpv6_code", Field::Icmpv6Code, 1),
    (NXM_NX, 23, "NXM_NX_ND_TARGET", "nd_target", Field::Ipv6NdTarget, 16),
    (NXM_NX, 24, "NXM_NX_ND_SLL", "nd_sll", Field::Ipv6NdSll, 6),
    (NXM_NX, 25, "NXM_NX_ND_TLL", "nd_tll", Field::Ipv6NdTll, 6),
    (NXM_NX, 26, "NXM_NX_IP_FRAG", "nw_frag", Field::NwFrag, 1),
    (NXM_NX, 27, "NXM_NX_IPV6_LABEL", "ipv6_label", Field::Ipv6Flabel, 4),
    (NXM_NX, 28, "NXM_NX_IP_ECN", "nw_ecn", Field::IpEcn, 1),
    (NXM_NX, 29, "NXM_NX_IP_TTL", "nw_ttl", Field::NwTtl, 1),
    (NXM_NX, 30, "NXM_NX_MPLS_TTL", "mpls_ttl", Field::MplsTtl, 1),
    (NXM_NX, 31, "NXM_NX_TUN_IPV4_SRC", "tun_src", Field::TunSrc, 4),
    (NXM_NX, 32, "NXM_NX_TUN_IPV4_DST", "tun_dst", Field::TunDst, 4),
    (NXM_NX, 33, "NXM_NX_PKT_MARK", "pkt_mark", Field::PktMark, 4),
    (NXM_NX, 34, "NXM_NX_TCP_FLAGS", "tcp_flags", Field::TcpFlags, 2),
    (NXM_NX, 37, "NXM_NX_CONJ_ID", "conj_id", Field::ConjId, 4),
    (NXM_NX, 38, "NXM_NX_TUN_GBP_ID", "tun_gbp_id", Field::TunGbpId, 2),
    (NXM_NX, 39, "NXM_NX_TUN_GBP_FLAGS", "tun_gbp_flags", Field::TunGbpFlags, 1),
    (NXM_NX, 104, "NXM_NX_TUN_FLAGS", "tun_flags", Field::TunFlags, 2),
    (NXM_NX, 109, "NXM_NX_TUN_IPV6_SRC", "tun_ipv6_src", Field::TunIpv6Src, 16),
    (NXM_NX, 110, "NXM_NX_TUN_IPV6_DST", "tun_ipv6_dst", Field::TunIpv6Dst, 16),
    (NXM_NX, 105, "NXM_NX_CT_STATE", "ct_state", Field::CtState, 4),
    (NXM_NX, 106, "NXM_NX_CT_ZONE", "ct_zone", Field::CtZone, 2),
    (NXM_NX, 107, "NXM_NX_CT_MARK", "ct_mark", Field::CtMark, 4),
    (NXM_NX, 108, "NXM_NX_CT_LABEL", "ct_label", Field::CtLabel, 16),
    (NXM_NX, 119, "NXM_NX_CT_NW_PROTO", "ct_nw_proto", Field::CtNwProto, 1),
    (NXM_NX, 120, "NXM_NX_CT_NW_SRC", "ct_nw_src", Field::CtNwSrc, 4),
    (NXM_NX, 121, "NXM_NX_CT_NW_DST", "ct_nw_dst", Field::CtNwDst, 4),
    (NXM_NX, 122, "NXM_NX_CT_IPV6_SRC", "ct_ipv6_src", Field::CtIpv6Src, 16),
    (NXM_NX, 123, "NXM_NX_CT_IPV6_DST", "ct_ipv6_dst", Field::CtIpv6Dst, 16),
    (NXM_NX, 124, "NXM_NX_CT_TP_SRC", "ct_tp_src", Field::CtTpSrc, 2),
    (NXM_NX, 125, "NXM_NX_CT_TP_DST", "ct_tp_dst", Field::CtTpDst, 2),
    (OXM_OF, 42, "OXM_OF_TCP_FLAGS", "tcp_flags", Field::TcpFlags, 2),
];

/// The fields of experimenters, as [`OTHERS`].
const EXPERIMENTAL: &[(u32, u8, &str, &str, Field, u8)] = &[
    (ONF, 42, "ONFOXM_ET_TCP_FLAGS", "tcp_flags", Field::TcpFlags, 2),
    (ONF, 43, "ONFOXM_ET_ACTSET_OUTPUT", "actset_output", Field::ActsetOutput, 4),
    (NICIRA, 11, "NXOXM_ET_ERSPAN_IDX", "tun_erspan_idx", Field::TunErspanIdx, 4),
    (NICIRA, 12, "NXOXM_ET_ERSPAN_VER", "tun_erspan_ver", Field::TunErspanVer, 1),
    (NICIRA, 13, "NXOXM_ET_ERSPAN_DIR", "tun_erspan_dir", Field::TunErspanDir, 1),
    (NICIRA, 14, "NXOXM_ET_ERSPAN_HWID", "tun_erspan_hwid", Field::TunErspanHwid, 1),
    (NICIRA, 15, "NXOXM_ET_GTPU_FLAGS", "tun_gtpu_flags", Field::TunGtpuFlags, 1),
    (NICIRA, 16, "NXOXM_ET_GTPU_MSGTYPE", "tun_gtpu_msgtype", Field::TunGtpuMsgtype, 1),
    (NSH, 1, "NXOXM_NSH_FLAGS", "nsh_flags", Field::NshFlags, 1),
    (NSH, 2, "NXOXM_NSH_MDTYPE", "nsh_mdtype", Field::NshMdtype, 1),
    (NSH, 3, "NXOXM_NSH_NP", "nsh_np", Field::NshNp, 1),
    (NSH, 4, "NXOXM_NSH_SPI", "nsh_spi", Field::NshSpi, 4),
    (NSH, 5, "NXOXM_NSH_SI", "nsh_si", Field::NshSi, 1),
    (NSH, 6, "NXOXM_NSH_C1", "nsh_c1", Field::NshC1, 4),
    (NSH, 7, "NXOXM_NSH_C2", "nsh_c2", Field::NshC2, 4),
    (NSH, 8, "NXOXM_NSH_C3", "nsh_c3", Field::NshC3, 4),
    (NSH, 9, "NXOXM_NSH_C4", "nsh_c4", Field::NshC4, 4),
    (NSH, 10, "NXOXM_NSH_TTL", "nsh_ttl", Field::NshTtl, 1),
];

static NAMES: LazyLock<Vec<NamedBits>> = LazyLock::new(names);

/// By class, experimenter and number; of several the first.
static BY_NUMBER: LazyLock<BTreeMap<(u16, u32, u8), &NamedBits>> = LazyLock::new(|| {
    let keys = NAMES.iter().map(|named| ((named.class, named.experimenter, named.number), named));
    keys.rev().collect()
});

fn names() -> Vec<NamedBits> {
    let mut names = Vec::new();
    let named = |(class, number): (u16, u8), name: &str, short: &str, bits: Bits, len: u8| NamedBits {
        class,
        experimenter: 0,
        number,
        name: name.to_owned(),
        short: short.to_owned(),
        bits,
        below: if name == "NXM_OF_IP_TOS" { 2 } else { 0 },
        len,
    };
    for n in 0..16 {
        let (name, short) = (format!("NXM_NX_REG{n}"), format!("reg{n}"));
        names.push(named((NXM_NX, n), &name, &short, Bits::register(n), 4));
    }
    for n in 0..8u8 {
        let bits = Bits { from: 64 * (1 - n % 2), width: 64, ..Bits::all(REGISTERS[usize::from(n / 2)]) };
        names.push(named((PACKET_REGISTERS, n), &format!("OXM_OF_PKT_REG{n}"), &format!("xreg{n}"), bits, 8));
    }
    for (n, field) in (0..).zip(REGISTERS) {
        let (name, short) = (format!("NXM_NX_XXREG{n}"), format!("xxreg{n}"));
        names.push(named((NXM_NX, 111 + n), &name, &short, Bits::all(field), 16));
    }
    for (class, number, name, short, field, len) in OTHERS {
        let mut bits = Bits::all(*field);
        bits.width = bits.width.min(8 * len);
        names.push(named((*class, *number), name, short, bits, *len));
    }
    for (experimenter, number, name, short, field, len) in EXPERIMENTAL {
        let bits = Bits::all(*field);
        let one = named((EXPERIMENTERS, *number), name, short, bits, *len);
        names.push(NamedBits { experimenter: *experimenter, ..one });
    }
    // That of OpenFlow 1.5, which is read in every version.
    let bits = Bits::all(Field::ActsetOutput);
    names.push(named((OXM_OF, 43), "OXM_OF_ACTSET_OUTPUT", "actset_output", bits, 4));
    for info in &FIELDS[..STANDARD] {
        let (name, bits) = (oxm_name(info.name), Bits::all(info.field));
        names.push(named((OXM_OF, info.field as u8), &name, info.name, bits, info.field.oxm_len() as u8));
    }
    names
}

fn oxm_name(short: &str) -> String {
    let name = short.to_ascii_uppercase();
    if name.starts_with("ND_") { format!("OXM_OF_IPV6_{name}") } else { format!("OXM_OF_{name}") }
}

/// Returns the bits of a name in actions or matches, in any case.
pub fn by_name(name: &str) -> Option<&'static NamedBits> {
    let is_it =
        |named: &&NamedBits| named.name.eq_ignore_ascii_case(name) || named.short.eq_ignore_ascii_case(name);
    NAMES.iter().find(is_it)
}

/// Returns the bits of a number in messages, of a class that is not of experimenters.
pub fn by_number(class: u16, number: u8) -> Option<&'static NamedBits> {
    by_full_number(class, 0, number)
}

/// Returns the bits of a number in messages; the experimenter is 0 in classes without.
pub fn by_full_number(class: u16, experimenter: u32, number: u8) -> Option<&'static NamedBits> {
    BY_NUMBER.get(&(class, experimenter, number)).copied()
}

/// Returns the name of the smallest part of a field that has these bits, for messages of Open
/// vSwitch.
pub fn of_bits(bits: Bits) -> &'static NamedBits {
    let last = bits.from + (bits.width - 1);
    let holds = |named: &&NamedBits| {
        let own = named.bits;
        own.field == bits.field && own.from <= bits.from && last <= own.from + (own.width - 1)
    };
    match NAMES.iter().find(holds) {
        Some(named) => named,
        None => unreachable!("every field has a name"),
    }
}

/// Returns a match of a field as matches of named parts: each register by itself, any other field
/// as
/// it is.
pub fn parts(whole: FieldMatch) -> Vec<(&'static NamedBits, u128, u128)> {
    let FieldMatch { field, value, mask } = whole;
    if !REGISTERS.contains(&field) {
        return vec![(of_bits(Bits::all(field)), value, mask)];
    }
    let quarters = (0..4u8).rev().map(|place| Bits { field, from: 32 * place, width: 32 });
    let of = |bits: Bits| (of_bits(bits), value >> bits.from & bits.ones(), mask >> bits.from & bits.ones());
    quarters.map(of).filter(|(_, _, mask)| *mask != 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_a_name_and_a_number_that_lead_back_to_it() {
        for info in &FIELDS {
            let named = of_bits(Bits::all(info.field));
            assert_eq!(named.bits.field, info.field, "{}", info.name);
            assert_eq!(by_full_number(named.class, named.experimenter, named.number), Some(named));
            assert_eq!(by_name(&named.name), Some(named));
        }
    }

    #[test]
    fn a_register_is_a_part_of_a_larger_one() {
        let bits = |name: &str| by_name(name).unwrap().bits;
        assert_eq!(bits("reg5"), Bits { field: Field::Registers4, from: 64, width: 32 });
        assert_eq!(bits("NXM_NX_REG0").mask(), 0xffff_ffff << 96);
        assert_eq!(bits("xreg1").mask(), u64::MAX.into());
        assert_eq!(bits("xxreg3"), Bits::all(Field::Registers12));
        assert_eq!(of_bits(Bits { field: Field::Registers0, from: 32, width: 5 }).short, "reg2");
        assert_eq!(of_bits(Bits { field: Field::Registers0, from: 32, width: 33 }).short, "xxreg0");
        assert_eq!(of_bits(Bits { field: Field::Registers0, from: 31, width: 2 }).short, "xreg1");
    }
}
