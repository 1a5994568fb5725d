//! The match fields of OpenFlow 1.3 (OXM) and of Open vSwitch beyond it: widths, prerequisites, and
//! positions in a [`Key`](crate::Key).
//!
//! A key has 64-bit words. Word 0 has one bit for each field that the frame has; the other
//! words hold the values. Fields that no packet has together share bits (TCP and UDP ports; IPv4
//! addresses, ARP addresses and MPLS labels). The presence bit, which every match requires,
//! distinguishes them. So matching is a masked comparison of a few words.
//!
//! The first [`HEADER_WORDS`] hold port, metadata and headers; registers, marks and what
//! connection tracking says are behind them. All presence bits are in use. Further fields, of
//! tunnels, of the action set and of NSH, have words of their own, and so need none.
//!
//! Read first: OpenFlow 1.3.5 §7.2.3.7; ovs-fields(7) for the fields of Open vSwitch.

use crate::field::Needs::{EthType, Icmpv6, IpProto, Nothing, VlanTag};
use fastpath_wire::{ethertype, protocol};

/// EtherType of a provider backbone (802.1ah) I-TAG.
pub const ETHERTYPE_PBB: u16 = 0x88e7;
/// The bit of VLAN_VID that is set when there is a tag (OFPVID_PRESENT).
pub const VLAN_PRESENT: u16 = 0x1000;
/// Words of a key.
pub const WORDS: usize = 43;
/// Words of a key before those of registers and marks.
pub const HEADER_WORDS: usize = 16;
/// The first word of a key with fields that need no presence bit: those from number
/// [`PRESENCE_BITS`] on.
pub const LATER_WORDS: usize = 34;
/// The number of presence bits. Fields from this number on share bits with no other, and
/// are in every packet or, with NSH, beside [`Field::NshMdtype`], which is never 0.
pub const PRESENCE_BITS: usize = 64;
/// EtherType of a network service header (RFC 8300 §7).
pub const ETHERTYPE_NSH: u16 = 0x894f;
/// The fields of OpenFlow 1.3: the first of [`FIELDS`].
pub const STANDARD: usize = 40;

/// A match field. Its number is that of its presence bit if it has one, and for the first
/// [`STANDARD`] that of the OXM field (§7.2.3.7, Table 11). The others are those of Open vSwitch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Field {
    /// The port of entry.
    InPort = 0,
    /// The physical port of entry. It equals [`Field::InPort`], because no port is made of others
    /// here.
    InPhyPort = 1,
    /// The metadata that earlier tables wrote.
    Metadata = 2,
    /// Destination MAC.
    EthDst = 3,
    /// Source MAC.
    EthSrc = 4,
    /// EtherType after VLAN tags.
    EthType = 5,
    /// VLAN id of the outermost tag with OFPVID_PRESENT (0x1000); 0 without a tag.
    VlanVid = 6,
    /// Priority of the outermost VLAN tag.
    VlanPcp = 7,
    /// Upper six bits of TOS or traffic class.
    IpDscp = 8,
    /// Lower two bits of TOS or traffic class.
    IpEcn = 9,
    /// IPv4 protocol, or IPv6 protocol after extension headers.
    IpProto = 10,
    /// IPv4 source.
    Ipv4Src = 11,
    /// IPv4 destination.
    Ipv4Dst = 12,
    /// TCP source port.
    TcpSrc = 13,
    /// TCP destination port.
    TcpDst = 14,
    /// UDP source port.
    UdpSrc = 15,
    /// UDP destination port.
    UdpDst = 16,
    /// SCTP source port.
    SctpSrc = 17,
    /// SCTP destination port.
    SctpDst = 18,
    /// ICMP type.
    Icmpv4Type = 19,
    /// ICMP code.
    Icmpv4Code = 20,
    /// ARP operation.
    ArpOp = 21,
    /// ARP sender's IPv4 address.
    ArpSpa = 22,
    /// ARP target's IPv4 address.
    ArpTpa = 23,
    /// ARP sender's MAC.
    ArpSha = 24,
    /// ARP target's MAC.
    ArpTha = 25,
    /// IPv6 source.
    Ipv6Src = 26,
    /// IPv6 destination.
    Ipv6Dst = 27,
    /// IPv6 flow label.
    Ipv6Flabel = 28,
    /// ICMPv6 type.
    Icmpv6Type = 29,
    /// ICMPv6 code.
    Icmpv6Code = 30,
    /// Target of a neighbour solicitation or advertisement.
    Ipv6NdTarget = 31,
    /// Source link-layer address of a neighbour solicitation.
    Ipv6NdSll = 32,
    /// Target link-layer address of a neighbour advertisement.
    Ipv6NdTll = 33,
    /// Label of the outermost MPLS entry.
    MplsLabel = 34,
    /// Traffic class of the outermost MPLS entry.
    MplsTc = 35,
    /// Bottom-of-stack bit of the outermost MPLS entry.
    MplsBos = 36,
    /// Service instance of a PBB I-TAG.
    PbbIsid = 37,
    /// The tunnel id, as a tunnel port or a set-field set it.
    TunnelId = 38,
    /// The IPv6 extension headers that are present (OFPIEH_ bits).
    Ipv6Exthdr = 39,
    /// TCP flags (RFC 9293 §3.1): FIN is bit 0.
    TcpFlags = 40,
    /// Fragments: bit 0 for any, bit 1 for a later one.
    NwFrag = 41,
    /// TTL of the IPv4, hop limit of the IPv6 header.
    NwTtl = 42,
    /// TTL of the outermost MPLS entry.
    MplsTtl = 43,
    /// Registers 0 to 3; the first in the highest bits.
    Registers0 = 44,
    /// Registers 4 to 7.
    Registers4 = 45,
    /// Registers 8 to 11.
    Registers8 = 46,
    /// Registers 12 to 15.
    Registers12 = 47,
    /// The conjunction that the packet satisfies, in the lookup for it; else 0.
    ConjId = 48,
    /// The mark that goes with a packet through the host (skb mark).
    PktMark = 49,
    /// Outer source of the tunnel, or what an action set.
    TunSrc = 50,
    /// Outer destination of the tunnel, or what an action set.
    TunDst = 51,
    /// The outermost tag: priority, present bit, id; 0 without a tag.
    VlanTci = 52,
    /// What connection tracking said of the packet (`ct_state`); 0 before `ct`.
    CtState = 53,
    /// The zone in which it was tracked.
    CtZone = 54,
    /// The mark of its connection. Only `exec` of `ct` sets it.
    CtMark = 55,
    /// The label of its connection. Only `exec` of `ct` sets it.
    CtLabel = 56,
    /// IPv4 source of the first packet of its connection.
    CtNwSrc = 57,
    /// IPv4 destination of that packet.
    CtNwDst = 58,
    /// IPv6 source of that packet.
    CtIpv6Src = 59,
    /// IPv6 destination of that packet.
    CtIpv6Dst = 60,
    /// IP protocol of that packet.
    CtNwProto = 61,
    /// Source port of that packet, or the type of ICMP.
    CtTpSrc = 62,
    /// Destination port of that packet, or the code of ICMP.
    CtTpDst = 63,
    /// The output of the action set; [`port::UNSET`](crate::port::UNSET) without one.
    ActsetOutput = 64,
    /// The group policy of a VXLAN tunnel.
    TunGbpId = 65,
    /// The flags of that policy.
    TunGbpFlags = 66,
    /// Whether a tunnel carries operation and maintenance (OAM).
    TunFlags = 67,
    /// The version of ERSPAN.
    TunErspanVer = 68,
    /// The direction of ERSPAN version 2.
    TunErspanDir = 69,
    /// The hardware of ERSPAN version 2.
    TunErspanHwid = 70,
    /// The flags of GTP-U.
    TunGtpuFlags = 71,
    /// The type of a message of GTP-U.
    TunGtpuMsgtype = 72,
    /// The index of ERSPAN version 1.
    TunErspanIdx = 73,
    /// Outer IPv6 source of the tunnel, or what an action set.
    TunIpv6Src = 74,
    /// Outer IPv6 destination of the tunnel, or what an action set.
    TunIpv6Dst = 75,
    /// The flags of a network service header (RFC 8300 §2.2).
    NshFlags = 76,
    /// The type of its metadata.
    NshMdtype = 77,
    /// The protocol that it carries.
    NshNp = 78,
    /// Its service path.
    NshSpi = 79,
    /// Its service index.
    NshSi = 80,
    /// Its TTL.
    NshTtl = 81,
    /// The first context word of metadata type 1.
    NshC1 = 82,
    /// The second context word.
    NshC2 = 83,
    /// The third context word.
    NshC3 = 84,
    /// The fourth context word.
    NshC4 = 85,
}

/// The prerequisite of a field: what a match must also contain to match it (§7.2.3.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// A VLAN tag: VLAN_VID that does not mean "no tag".
    VlanTag,
    /// One of these EtherTypes.
    EthType(&'static [u16]),
    /// This IP protocol over IPv4, IPv6, or either.
    IpProto(&'static [u16], u8),
    /// ICMPv6 of one of these types.
    Icmpv6(&'static [u8]),
}

/// Whether a match may mask a field, and whether an action may set it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Matched exactly only, never set.
    Exact,
    /// Matched exactly only; an action may set it.
    ExactSet,
    /// Matched under any mask, never set.
    Masked,
    /// Matched under any mask; an action may set it.
    MaskedSet,
}

/// The definition of one field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info {
    /// The field.
    pub field: Field,
    /// The name in rule files.
    pub name: &'static str,
    /// Width in bits.
    pub bits: u8,
    /// The key word with its lowest bits. A field wider than 64 bits has its high half in the word
    /// before.
    pub word: u8,
    /// Lowest bit in that word.
    pub shift: u8,
    /// Whether masks and set-field are allowed.
    pub usage: Use,
    /// Prerequisite.
    pub needs: Needs,
}

const IP: &[u16] = &[ethertype::IPV4, ethertype::IPV6];
const V4: &[u16] = &[ethertype::IPV4];
const V6: &[u16] = &[ethertype::IPV6];
const ARP: Needs = EthType(&[ethertype::ARP]);
const MPLS: Needs = EthType(&[ethertype::MPLS, ethertype::MPLS_UPSTREAM]);
const NSH: Needs = EthType(&[ETHERTYPE_NSH]);
const TCP: Needs = IpProto(IP, protocol::TCP);
const UDP: Needs = IpProto(IP, protocol::UDP);
const SCTP: Needs = IpProto(IP, protocol::SCTP);
const ICMP: Needs = IpProto(V4, protocol::ICMP);
const ICMPV6: Needs = IpProto(V6, protocol::ICMPV6);

const fn info(field: Field, name: &'static str, bits: u8, at: (u8, u8), usage: Use, needs: Needs) -> Info {
    Info { field, name, bits, word: at.0, shift: at.1, usage, needs }
}

/// All fields, in the order of their numbers. Transport ports may be masked, which §7.2.3.7 does
/// not require, because rule sets express port ranges by masks.
pub const FIELDS: [Info; 86] = [
    info(Field::InPort, "in_port", 32, (1, 32), Use::Exact, Nothing),
    info(Field::InPhyPort, "in_phy_port", 32, (1, 32), Use::Exact, Nothing),
    info(Field::Metadata, "metadata", 64, (2, 0), Use::MaskedSet, Nothing),
    info(Field::EthDst, "eth_dst", 48, (4, 0), Use::MaskedSet, Nothing),
    info(Field::EthSrc, "eth_src", 48, (5, 0), Use::MaskedSet, Nothing),
    info(Field::EthType, "eth_type", 16, (1, 16), Use::ExactSet, Nothing),
    info(Field::VlanVid, "vlan_vid", 13, (1, 0), Use::MaskedSet, Nothing),
    info(Field::VlanPcp, "vlan_pcp", 3, (1, 13), Use::ExactSet, VlanTag),
    info(Field::IpDscp, "ip_dscp", 6, (4, 56), Use::ExactSet, EthType(IP)),
    info(Field::IpEcn, "ip_ecn", 2, (4, 62), Use::ExactSet, EthType(IP)),
    info(Field::IpProto, "ip_proto", 8, (4, 48), Use::ExactSet, EthType(IP)),
    info(Field::Ipv4Src, "ipv4_src", 32, (6, 32), Use::MaskedSet, EthType(V4)),
    info(Field::Ipv4Dst, "ipv4_dst", 32, (6, 0), Use::MaskedSet, EthType(V4)),
    info(Field::TcpSrc, "tcp_src", 16, (7, 16), Use::MaskedSet, TCP),
    info(Field::TcpDst, "tcp_dst", 16, (7, 0), Use::MaskedSet, TCP),
    info(Field::UdpSrc, "udp_src", 16, (7, 16), Use::MaskedSet, UDP),
    info(Field::UdpDst, "udp_dst", 16, (7, 0), Use::MaskedSet, UDP),
    info(Field::SctpSrc, "sctp_src", 16, (7, 16), Use::MaskedSet, SCTP),
    info(Field::SctpDst, "sctp_dst", 16, (7, 0), Use::MaskedSet, SCTP),
    info(Field::Icmpv4Type, "icmpv4_type", 8, (7, 16), Use::ExactSet, ICMP),
    info(Field::Icmpv4Code, "icmpv4_code", 8, (7, 0), Use::ExactSet, ICMP),
    info(Field::ArpOp, "arp_op", 16, (7, 0), Use::ExactSet, ARP),
    info(Field::ArpSpa, "arp_spa", 32, (6, 32), Use::MaskedSet, ARP),
    info(Field::ArpTpa, "arp_tpa", 32, (6, 0), Use::MaskedSet, ARP),
    info(Field::ArpSha, "arp_sha", 48, (14, 0), Use::MaskedSet, ARP),
    info(Field::ArpTha, "arp_tha", 48, (15, 0), Use::MaskedSet, ARP),
    info(Field::Ipv6Src, "ipv6_src", 128, (9, 0), Use::MaskedSet, EthType(V6)),
    info(Field::Ipv6Dst, "ipv6_dst", 128, (11, 0), Use::MaskedSet, EthType(V6)),
    info(Field::Ipv6Flabel, "ipv6_flabel", 20, (6, 0), Use::MaskedSet, EthType(V6)),
    info(Field::Icmpv6Type, "icmpv6_type", 8, (7, 16), Use::ExactSet, ICMPV6),
    info(Field::Icmpv6Code, "icmpv6_code", 8, (7, 0), Use::ExactSet, ICMPV6),
    info(Field::Ipv6NdTarget, "nd_target", 128, (13, 0), Use::MaskedSet, Icmpv6(&[135, 136])),
    info(Field::Ipv6NdSll, "nd_sll", 48, (14, 0), Use::MaskedSet, Icmpv6(&[135])),
    info(Field::Ipv6NdTll, "nd_tll", 48, (15, 0), Use::MaskedSet, Icmpv6(&[136])),
    info(Field::MplsLabel, "mpls_label", 20, (6, 0), Use::ExactSet, MPLS),
    info(Field::MplsTc, "mpls_tc", 3, (6, 32), Use::ExactSet, MPLS),
    info(Field::MplsBos, "mpls_bos", 1, (6, 35), Use::ExactSet, MPLS),
    info(Field::PbbIsid, "pbb_isid", 24, (6, 0), Use::MaskedSet, EthType(&[ETHERTYPE_PBB])),
    info(Field::TunnelId, "tunnel_id", 64, (3, 0), Use::MaskedSet, Nothing),
    info(Field::Ipv6Exthdr, "ipv6_exthdr", 9, (7, 32), Use::Masked, EthType(V6)),
    info(Field::TcpFlags, "tcp_flags", 12, (5, 48), Use::Masked, TCP),
    info(Field::NwFrag, "nw_frag", 2, (7, 41), Use::Masked, EthType(IP)),
    info(Field::NwTtl, "nw_ttl", 8, (7, 43), Use::ExactSet, EthType(IP)),
    info(Field::MplsTtl, "mpls_ttl", 8, (6, 36), Use::ExactSet, MPLS),
    info(Field::Registers0, "xxreg0", 128, (17, 0), Use::MaskedSet, Nothing),
    info(Field::Registers4, "xxreg1", 128, (19, 0), Use::MaskedSet, Nothing),
    info(Field::Registers8, "xxreg2", 128, (21, 0), Use::MaskedSet, Nothing),
    info(Field::Registers12, "xxreg3", 128, (23, 0), Use::MaskedSet, Nothing),
    info(Field::ConjId, "conj_id", 32, (24, 0), Use::Exact, Nothing),
    info(Field::PktMark, "pkt_mark", 32, (24, 32), Use::MaskedSet, Nothing),
    info(Field::TunSrc, "tun_src", 32, (25, 32), Use::MaskedSet, Nothing),
    info(Field::TunDst, "tun_dst", 32, (25, 0), Use::MaskedSet, Nothing),
    info(Field::VlanTci, "vlan_tci", 16, (1, 0), Use::Masked, Nothing),
    info(Field::CtState, "ct_state", 32, (26, 32), Use::Masked, Nothing),
    info(Field::CtZone, "ct_zone", 16, (26, 16), Use::Exact, Nothing),
    info(Field::CtMark, "ct_mark", 32, (27, 32), Use::Masked, Nothing),
    info(Field::CtLabel, "ct_label", 128, (29, 0), Use::Masked, Nothing),
    info(Field::CtNwSrc, "ct_nw_src", 32, (31, 0), Use::Masked, EthType(V4)),
    info(Field::CtNwDst, "ct_nw_dst", 32, (33, 0), Use::Masked, EthType(V4)),
    info(Field::CtIpv6Src, "ct_ipv6_src", 128, (31, 0), Use::Masked, EthType(V6)),
    info(Field::CtIpv6Dst, "ct_ipv6_dst", 128, (33, 0), Use::Masked, EthType(V6)),
    info(Field::CtNwProto, "ct_nw_proto", 8, (26, 0), Use::Exact, EthType(IP)),
    info(Field::CtTpSrc, "ct_tp_src", 16, (27, 16), Use::Masked, EthType(IP)),
    info(Field::CtTpDst, "ct_tp_dst", 16, (27, 0), Use::Masked, EthType(IP)),
    info(Field::ActsetOutput, "actset_output", 32, (35, 32), Use::Exact, Nothing),
    info(Field::TunGbpId, "tun_gbp_id", 16, (34, 0), Use::MaskedSet, Nothing),
    info(Field::TunGbpFlags, "tun_gbp_flags", 8, (34, 16), Use::MaskedSet, Nothing),
    info(Field::TunFlags, "tun_flags", 1, (34, 24), Use::MaskedSet, Nothing),
    info(Field::TunErspanVer, "tun_erspan_ver", 4, (34, 25), Use::MaskedSet, Nothing),
    info(Field::TunErspanDir, "tun_erspan_dir", 1, (34, 29), Use::MaskedSet, Nothing),
    info(Field::TunErspanHwid, "tun_erspan_hwid", 6, (34, 30), Use::MaskedSet, Nothing),
    info(Field::TunGtpuFlags, "tun_gtpu_flags", 8, (34, 36), Use::Masked, Nothing),
    info(Field::TunGtpuMsgtype, "tun_gtpu_msgtype", 8, (34, 44), Use::Masked, Nothing),
    info(Field::TunErspanIdx, "tun_erspan_idx", 20, (35, 0), Use::MaskedSet, Nothing),
    info(Field::TunIpv6Src, "tun_ipv6_src", 128, (37, 0), Use::MaskedSet, Nothing),
    info(Field::TunIpv6Dst, "tun_ipv6_dst", 128, (39, 0), Use::MaskedSet, Nothing),
    info(Field::NshFlags, "nsh_flags", 8, (40, 0), Use::MaskedSet, NSH),
    info(Field::NshMdtype, "nsh_mdtype", 8, (40, 8), Use::Exact, NSH),
    info(Field::NshNp, "nsh_np", 8, (40, 16), Use::Exact, NSH),
    info(Field::NshSpi, "nsh_spi", 24, (40, 24), Use::ExactSet, NSH),
    info(Field::NshSi, "nsh_si", 8, (40, 48), Use::ExactSet, NSH),
    info(Field::NshTtl, "nsh_ttl", 8, (40, 56), Use::ExactSet, NSH),
    info(Field::NshC1, "nsh_c1", 32, (41, 32), Use::MaskedSet, NSH),
    info(Field::NshC2, "nsh_c2", 32, (41, 0), Use::MaskedSet, NSH),
    info(Field::NshC3, "nsh_c3", 32, (42, 32), Use::MaskedSet, NSH),
    info(Field::NshC4, "nsh_c4", 32, (42, 0), Use::MaskedSet, NSH),
];

/// The registers, in order.
pub const REGISTERS: [Field; 4] =
    [Field::Registers0, Field::Registers4, Field::Registers8, Field::Registers12];

/// The presence bits of fields that every packet has, whatever its headers.
pub const ALWAYS_PRESENT: u64 = always_present();

const fn always_present() -> u64 {
    let mut bits = 0;
    let mut at = 0;
    while at < FIELDS.len() {
        let info = &FIELDS[at];
        let is_pipeline =
            matches!(info.field, Field::InPort | Field::InPhyPort | Field::Metadata | Field::TunnelId);
        if at < PRESENCE_BITS && (is_pipeline || info.word as usize >= HEADER_WORDS) {
            bits |= info.field.presence_bit();
        }
        at += 1;
    }
    bits
}

/// Bits of [`Field::Ipv6Exthdr`] (OFPIEH_, §7.2.3.7).
pub(crate) mod exthdr {
    /// "No next header" was found.
    pub(crate) const NO_NEXT: u16 = 1 << 0;
    /// Encrypted payload.
    pub(crate) const ESP: u16 = 1 << 1;
    /// Authentication.
    pub(crate) const AUTH: u16 = 1 << 2;
    /// One or two destination options headers.
    pub(crate) const DEST: u16 = 1 << 3;
    /// Fragment.
    pub(crate) const FRAGMENT: u16 = 1 << 4;
    /// Routing.
    pub(crate) const ROUTER: u16 = 1 << 5;
    /// Hop-by-hop options.
    pub(crate) const HOP: u16 = 1 << 6;
    /// A header occurs more often than RFC 8200 §4.1 expects.
    pub(crate) const REPEATED: u16 = 1 << 7;
    /// Headers are in another order than RFC 8200 §4.1 recommends.
    pub(crate) const UNORDERED: u16 = 1 << 8;
}

impl Info {
    /// Returns the bits of the field in a word of a key.
    pub const fn bits_in(&self, word: u8) -> u64 {
        if self.bits == 128 {
            return if word == self.word || word + 1 == self.word { u64::MAX } else { 0 };
        }
        if word == self.word { (self.field.ones() as u64) << self.shift } else { 0 }
    }
}

impl Field {
    /// Returns the definition of the field.
    #[inline]
    pub const fn info(self) -> &'static Info {
        &FIELDS[self as usize]
    }

    /// Returns the field of an OXM number of class OFPXMC_OPENFLOW_BASIC.
    #[inline]
    pub fn from_number(number: u8) -> Option<Field> {
        FIELDS[..STANDARD].get(usize::from(number)).map(|info| info.field)
    }

    /// Returns whether OpenFlow 1.3 has it.
    pub const fn is_standard(self) -> bool {
        (self as usize) < STANDARD
    }

    /// Returns the name in rule files.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// Returns the width in bits, 1 to 128.
    #[inline]
    pub const fn bits(self) -> u32 {
        self.info().bits as u32
    }

    /// Returns the bytes of its value in an OXM TLV (§7.2.3.7, Table 12: 20 bits take four).
    #[inline]
    pub const fn oxm_len(self) -> usize {
        match self.info().bits as usize {
            20 => 4,
            bits => bits.div_ceil(8),
        }
    }

    /// Returns all ones, as wide as the field.
    #[inline]
    pub const fn ones(self) -> u128 {
        u128::MAX >> (128 - self.bits())
    }

    /// Returns the bit that stands for the field in a set of fields. The lower 64 are those of word
    /// 0 of a key.
    #[inline]
    pub const fn presence(self) -> u128 {
        1 << self as u8
    }

    /// Returns the field's bit in word 0 of a key; 0 for a field that needs none.
    #[inline]
    pub const fn presence_bit(self) -> u64 {
        self.presence() as u64
    }

    /// Returns whether the field goes with a packet through the tables but is not in the frame:
    /// ports, metadata, registers, marks, tunnels.
    pub fn is_pipeline(self) -> bool {
        let is_late = self.presence_bit() == 0 && !self.info().name.starts_with("nsh_");
        is_late || ALWAYS_PRESENT & self.presence_bit() != 0
    }

    /// Returns whether a match may mask it.
    #[inline]
    pub fn is_maskable(self) -> bool {
        matches!(self.info().usage, Use::Masked | Use::MaskedSet)
    }

    /// Returns whether an action may set it.
    #[inline]
    pub fn is_settable(self) -> bool {
        matches!(self.info().usage, Use::ExactSet | Use::MaskedSet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_numbers_and_fits_the_words() {
        for (number, info) in FIELDS.iter().enumerate() {
            assert_eq!(info.field as usize, number, "{}", info.name);
            let end = u32::from(info.shift) + u32::from(info.bits);
            assert!(end <= 64 || (info.shift == 0 && info.bits == 128 && info.word >= 9), "{}", info.name);
            assert!(usize::from(info.word) < WORDS);
        }
    }

    /// Source: OpenFlow 1.3.5, openflow.h, the third argument of OXM_HEADER.
    #[test]
    fn values_take_as_many_bytes_as_in_the_header_file_of_the_specification() {
        let lens: Vec<usize> = FIELDS[..STANDARD].iter().map(|info| info.field.oxm_len()).collect();
        let wanted = [
            4, 4, 8, 6, 6, 2, 2, 1, 1, 1, 1, 4, 4, 2, 2, 2, 2, 2, 2, 1, 1, 2, 4, 4, 6, 6, 16, 16, 4, 1, 1,
            16, 6, 6, 4, 1, 1, 3, 8, 2,
        ];
        assert_eq!(lens, wanted);
    }

    /// Every pair that shares bits has EtherTypes, IP versions and protocols, or ICMPv6 types that
    /// exclude each other.
    #[test]
    fn only_fields_that_no_packet_has_together_share_bits() {
        let types = |needs| match needs {
            EthType(types) | IpProto(types, _) => types.to_vec(),
            Icmpv6(_) => V6.to_vec(),
            Nothing | VlanTag => vec![0],
        };
        let proto = |needs| match needs {
            IpProto(_, protocol) => Some(protocol),
            _ => None,
        };
        for a in &FIELDS {
            for b in &FIELDS[a.field as usize + 1..] {
                let apart = a.word != b.word || a.shift >= b.shift + b.bits || b.shift >= a.shift + a.bits;
                let exclusive = types(a.needs).iter().all(|t| !types(b.needs).contains(t))
                    || proto(a.needs) != proto(b.needs)
                        && proto(a.needs).is_some()
                        && proto(b.needs).is_some();
                let same =
                    (a.field, b.field) == (Field::InPort, Field::InPhyPort) || b.field == Field::VlanTci;
                // A field of 128 bits has the word before too.
                let apart =
                    apart && (a.bits < 128 || b.word + 1 != a.word) && (b.bits < 128 || a.word + 1 != b.word);
                assert!(apart || exclusive || same, "{} and {}", a.name, b.name);
            }
        }
    }
}
