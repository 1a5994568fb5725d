//! The flow key: the fields of a packet that tables match on.
//!
//! This is not a parser of its own. [`Headers`] finds the layers; this module adds the fields that
//! only tables need (ARP, ICMP, neighbour discovery, MPLS, PBB, extension headers). A field that
//! the frame does not have is absent, and no match on it succeeds.
//!
//! Read first: `field.rs`, which defines the position of each field.

use crate::field::{
    ALWAYS_PRESENT, ETHERTYPE_NSH, ETHERTYPE_PBB, FIELDS, Field, LATER_WORDS, Needs, PRESENCE_BITS,
    REGISTERS, VLAN_PRESENT, WORDS, exthdr,
};
use crate::{nsh, port};
use fastpath_conntrack::{CtState, FlowTuple};
use fastpath_wire::{Headers, NetworkLayer, ethertype, protocol};

/// The bits of [`Field::NshMdtype`] in its word.
const NSH_MDTYPE: u64 = Field::NshMdtype.info().bits_in(Field::NshMdtype.info().word);
/// The least EtherType; smaller values are lengths of IEEE 802.3 frames.
pub const ETH_TYPE_MIN: u16 = 0x0600;
/// The EtherType of frames that have none (OFP_DL_TYPE_NOT_ETH_TYPE).
const NOT_ETH_TYPE: u16 = 0x05ff;

/// The ports of each protocol, or its type and code.
const TRANSPORT: [(u8, [Field; 2]); 5] = [
    (protocol::TCP, [Field::TcpSrc, Field::TcpDst]),
    (protocol::UDP, [Field::UdpSrc, Field::UdpDst]),
    (protocol::SCTP, [Field::SctpSrc, Field::SctpDst]),
    (protocol::ICMP, [Field::Icmpv4Type, Field::Icmpv4Code]),
    (protocol::ICMPV6, [Field::Icmpv6Type, Field::Icmpv6Code]),
];

/// The fields of one packet, packed. `words()[0]` has a bit for each field that is present.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct Key {
    words: [u64; WORDS],
}

/// The pipeline fields of OpenFlow: values that go with a packet through the tables but are not in
/// its headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PipelineFields {
    /// The port of entry.
    pub in_port: u32,
    /// The metadata register; 0 at the first table.
    pub metadata: u64,
    /// The tunnel id; 0 unless a port or an action set it.
    pub tunnel_id: u64,
    /// The registers of Open vSwitch, four in each; 0 until an action sets them.
    pub registers: [u128; 4],
    /// The mark of the packet.
    pub mark: u32,
    /// Outer source and destination of a tunnel, as IPv4 addresses.
    pub tunnel: (u32, u32),
    /// Other fields of tunnels.
    pub tunnel_options: TunnelOptions,
    /// The output of the action set.
    pub actset_output: Option<u32>,
    /// What connection tracking says.
    pub connection: ConnectionFields,
    /// Whether keys have protocol, addresses and ports of the first packet of the connection, and
    /// those of this packet in their place (`resubmit(,,ct)`).
    pub is_original: bool,
}

/// Words of a key with fields of tunnels.
const TUNNEL_WORDS: usize = 6;

/// The fields of tunnels from [`Field::TunGbpId`] to [`Field::TunIpv6Dst`]; all zero unless a port
/// or an action set them. They are as in a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TunnelOptions([u64; TUNNEL_WORDS]);

impl TunnelOptions {
    /// The number of words.
    pub const WORDS: usize = TUNNEL_WORDS;

    /// Returns the words.
    pub fn words(&self) -> &[u64; TUNNEL_WORDS] {
        &self.0
    }

    /// Makes the fields of the words that [`TunnelOptions::words`] returned.
    pub fn from_words(words: [u64; TUNNEL_WORDS]) -> TunnelOptions {
        TunnelOptions(words)
    }

    /// Changes a field; returns false if it is none of these.
    fn set(&mut self, field: Field, value: u128) -> bool {
        if !(Field::TunGbpId..=Field::TunIpv6Dst).contains(&field) {
            return false;
        }
        let mut key = Key::EMPTY;
        key.words[LATER_WORDS..LATER_WORDS + TUNNEL_WORDS].copy_from_slice(&self.0);
        key.put(field, value);
        self.0.copy_from_slice(&key.words[LATER_WORDS..LATER_WORDS + TUNNEL_WORDS]);
        true
    }
}

/// What connection tracking says of a packet; all zero before `ct`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConnectionFields {
    /// The state.
    pub state: CtState,
    /// The zone.
    pub zone: u16,
    /// The mark of the connection.
    pub mark: u32,
    /// The label of the connection.
    pub label: u128,
    /// The tuple of the first packet of the connection.
    pub original: FlowTuple,
}

impl PipelineFields {
    /// Returns the fields of a packet that has just arrived by a port.
    pub fn of_port(in_port: u32) -> PipelineFields {
        PipelineFields { in_port, ..PipelineFields::default() }
    }

    /// Returns the value of a field that registers are parts of; 0 for another.
    pub fn register(&self, field: Field) -> u128 {
        let place = REGISTERS.iter().position(|other| *other == field);
        place.map_or(0, |place| self.registers[place])
    }

    /// Returns the fields that a packet-in reports: all but the output of the action set.
    pub fn reported(self) -> PipelineFields {
        PipelineFields { actset_output: None, ..self }
    }

    /// Changes a field that is not in the frame; returns false if it is in the frame, or none that
    /// can be changed.
    pub fn set(&mut self, field: Field, value: u128) -> bool {
        match field {
            Field::InPort => self.in_port = value as u32,
            Field::Metadata => self.metadata = value as u64,
            Field::TunnelId => self.tunnel_id = value as u64,
            Field::PktMark => self.mark = value as u32,
            Field::TunSrc => self.tunnel.0 = value as u32,
            Field::TunDst => self.tunnel.1 = value as u32,
            _ => match REGISTERS.iter().position(|other| *other == field) {
                Some(place) => self.registers[place] = value,
                None => return self.tunnel_options.set(field, value),
            },
        }
        true
    }
}

/// How deep into a packet fields are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Depth {
    /// Not in the frame: port of entry, metadata, tunnel id.
    Nothing,
    /// MACs, VLAN tag, EtherType.
    Link,
    /// IP, ARP, MPLS, PBB.
    Network,
    /// Ports, ICMP, neighbour discovery.
    Transport,
    /// What only the whole parser reads: TCP flags, fragments, TTLs, NSH, and the output of the
    /// action set.
    Everything,
}

impl Depth {
    /// Returns the depth of the deepest of some fields, given by their presence bits.
    pub fn of(presence: u128) -> Depth {
        let depth = |field: Field| match field {
            _ if u128::from(ALWAYS_PRESENT) & field.presence() != 0 => Depth::Nothing,
            _ if (Field::TunGbpId..=Field::TunIpv6Dst).contains(&field) => Depth::Nothing,
            _ if !field.is_standard() => Depth::Everything,
            Field::EthDst | Field::EthSrc | Field::EthType | Field::VlanVid | Field::VlanPcp => Depth::Link,
            _ => match field.info().needs {
                Needs::IpProto(..) | Needs::Icmpv6(_) => Depth::Transport,
                Needs::Nothing | Needs::VlanTag | Needs::EthType(_) => Depth::Network,
            },
        };
        let fields = FIELDS.iter().map(|info| info.field).filter(|field| presence & field.presence() != 0);
        fields.map(depth).max().unwrap_or(Depth::Nothing)
    }
}

impl Key {
    /// The key without fields.
    pub const EMPTY: Key = Key { words: [0; WORDS] };

    /// Reads the fields of a frame with these headers.
    #[inline]
    pub fn extract(frame: &[u8], headers: &Headers, context: PipelineFields) -> Key {
        let mut key = Key::EMPTY;
        let PipelineFields { in_port, metadata, tunnel_id, actset_output, .. } = context;
        key.read(frame, headers, in_port, (metadata, tunnel_id), actset_output);
        key.put_registers(&context);
        if context.is_original {
            key.exchange_tuples(context.connection.original.is_v6);
        }
        key
    }

    /// Replaces the fields by those of a frame with these headers whose registers, marks, tunnel
    /// and connection are all 0, as those of most packets are.
    #[inline]
    pub fn read(
        &mut self,
        frame: &[u8],
        headers: &Headers,
        in_port: u32,
        (metadata, tunnel_id): (u64, u64),
        actset_output: Option<u32>,
    ) {
        *self = Key::EMPTY;
        self.words[0] = ALWAYS_PRESENT;
        self.put(Field::InPort, in_port.into());
        self.put(Field::InPhyPort, in_port.into());
        self.put(Field::Metadata, metadata.into());
        self.put(Field::TunnelId, tunnel_id.into());
        self.put(Field::ActsetOutput, actset_output.unwrap_or(port::UNSET).into());
        if frame.len() >= 14 {
            self.extract_link(frame, headers);
        }
    }

    /// Exchanges protocol, addresses and ports with those of the first packet of the connection.
    fn exchange_tuples(&mut self, is_v6: bool) {
        let addresses = match is_v6 {
            true => [(Field::Ipv6Src, Field::CtIpv6Src), (Field::Ipv6Dst, Field::CtIpv6Dst)],
            false => [(Field::Ipv4Src, Field::CtNwSrc), (Field::Ipv4Dst, Field::CtNwDst)],
        };
        let others = [
            (Field::IpProto, Field::CtNwProto),
            (Field::TcpSrc, Field::CtTpSrc),
            (Field::TcpDst, Field::CtTpDst),
        ];
        // Ports and types of all protocols are at the same place.
        for (own, original) in addresses.into_iter().chain(others) {
            let (mine, first) = (self.bits(own), self.bits(original));
            self.or_bits(own, !own.ones(), first);
            self.or_bits(original, !original.ones(), mine);
        }
        let known = TRANSPORT.iter().flat_map(|(_, fields)| fields);
        known.for_each(|field| self.words[0] &= !field.presence_bit());
        let protocol = self.bits(Field::IpProto) as u8;
        let fields = TRANSPORT.iter().filter(|(of, _)| *of == protocol).flat_map(|(_, fields)| fields);
        fields.for_each(|field| self.words[0] |= field.presence_bit());
    }

    /// Returns the packed words, for lookup structures and generated code.
    #[inline]
    pub fn words(&self) -> &[u64; WORDS] {
        &self.words
    }

    /// Returns the packed words for writing.
    #[inline]
    pub fn words_mut(&mut self) -> &mut [u64; WORDS] {
        &mut self.words
    }

    /// Makes a key of the words that [`Key::words`] returned.
    #[inline]
    pub fn from_words(words: [u64; WORDS]) -> Key {
        Key { words }
    }

    /// Returns whether the packet has the field.
    #[inline]
    pub fn has(&self, field: Field) -> bool {
        match field as usize {
            ..PRESENCE_BITS => self.words[0] & field.presence_bit() != 0,
            _ if field < Field::NshFlags => true,
            _ => self.words[usize::from(Field::NshMdtype.info().word)] & NSH_MDTYPE != 0,
        }
    }

    /// Returns the value of a field, right-aligned; `None` if the packet does not have it.
    #[inline]
    pub fn get(&self, field: Field) -> Option<u128> {
        self.has(field).then(|| self.bits(field))
    }

    /// Returns the bits at the position of the field, whether or not it is present.
    pub fn bits(&self, field: Field) -> u128 {
        let info = field.info();
        let word = usize::from(info.word);
        if info.bits == 128 {
            return u128::from(self.words[word - 1]) << 64 | u128::from(self.words[word]);
        }
        u128::from(self.words[word] >> info.shift) & field.ones()
    }

    /// Sets a field. Bits of `value` beyond the field's width are ignored.
    #[inline]
    pub fn put(&mut self, field: Field, value: u128) {
        self.words[0] |= field.presence_bit();
        self.or_bits(field, !field.ones(), value & field.ones());
    }

    /// Keeps the bits of `keep` at the position of the field, then sets those of `value`.
    pub(crate) fn or_bits(&mut self, field: Field, keep: u128, value: u128) {
        let info = field.info();
        let word = usize::from(info.word);
        if info.bits == 128 {
            self.words[word - 1] = self.words[word - 1] & (keep >> 64) as u64 | (value >> 64) as u64;
            self.words[word] = self.words[word] & keep as u64 | value as u64;
            return;
        }
        let clear = (!keep & field.ones()) as u64;
        self.words[word] = self.words[word] & !(clear << info.shift) | (value as u64) << info.shift;
    }

    /// Sets what only actions of Open vSwitch set. Most packets have nothing there.
    #[inline]
    fn put_registers(&mut self, context: &PipelineFields) {
        if context.registers != [0; 4] {
            REGISTERS.into_iter().zip(context.registers).for_each(|(field, four)| self.put(field, four));
        }
        if context.tunnel_options != TunnelOptions::default() {
            self.words[LATER_WORDS..LATER_WORDS + TUNNEL_WORDS].copy_from_slice(&context.tunnel_options.0);
        }
        self.put(Field::PktMark, context.mark.into());
        self.put(Field::TunSrc, context.tunnel.0.into());
        self.put(Field::TunDst, context.tunnel.1.into());
        if context.connection.state != CtState::default() {
            self.put_connection(&context.connection);
        }
    }

    fn put_connection(&mut self, connection: &ConnectionFields) {
        let ConnectionFields { state, zone, mark, label, original } = *connection;
        let (src, dst) = match original.is_v6 {
            true => (Field::CtIpv6Src, Field::CtIpv6Dst),
            false => (Field::CtNwSrc, Field::CtNwDst),
        };
        let (src_port, dst_port) = original.ports();
        self.put(Field::CtState, state.bits().into());
        self.put(Field::CtZone, zone.into());
        self.put(Field::CtMark, mark.into());
        self.put(Field::CtLabel, label);
        self.put(src, original.src);
        self.put(dst, original.dst);
        self.put(Field::CtNwProto, original.protocol.into());
        self.put(Field::CtTpSrc, src_port.into());
        self.put(Field::CtTpDst, dst_port.into());
    }

    fn extract_link(&mut self, frame: &[u8], headers: &Headers) {
        self.put(Field::EthDst, big_endian(&headers.dst.0));
        self.put(Field::EthSrc, big_endian(&headers.src.0));
        self.put(Field::EthType, eth_type(frame, headers).into());
        if headers.l2_len > 14
            && let Some(tci) = be(frame, 14, 2)
        {
            self.put(Field::VlanVid, tci & 0x0fff | u128::from(VLAN_PRESENT));
            self.put(Field::VlanPcp, tci >> 13);
        } else {
            self.put(Field::VlanVid, 0);
        }
        self.words[0] |= Field::VlanTci.presence_bit();
        match headers.network {
            NetworkLayer::Ipv4(ip) => {
                self.put(Field::Ipv4Src, ip.src.to_bits().into());
                self.put(Field::Ipv4Dst, ip.dst.to_bits().into());
                self.put_ip(ip.tos, ip.protocol);
                self.put_fragment(ip.fragment_offset, ip.more_fragments);
                self.put(Field::NwTtl, ip.ttl.into());
                if ip.protocol == protocol::ICMP && ip.fragment_offset == 0 {
                    let message = frame.get(ip.payload_offset()..ip.end()).unwrap_or_default();
                    self.put_icmp(message, Field::Icmpv4Type, Field::Icmpv4Code);
                }
            }
            NetworkLayer::Ipv6(ip) => {
                self.put(Field::Ipv6Src, ip.src.to_bits());
                self.put(Field::Ipv6Dst, ip.dst.to_bits());
                self.put(Field::Ipv6Flabel, ip.flow_label.into());
                self.put(Field::Ipv6Exthdr, extension_headers(frame, ip.offset, ip.end()).into());
                self.put_ip(ip.traffic_class, ip.protocol);
                self.put_fragment(ip.fragment_offset, ip.more_fragments);
                self.put(Field::NwTtl, ip.hop_limit.into());
                if ip.protocol == protocol::ICMPV6 && ip.fragment_offset == 0 {
                    let message = frame.get(ip.payload_offset..ip.end()).unwrap_or_default();
                    self.put_icmp(message, Field::Icmpv6Type, Field::Icmpv6Code);
                    self.extract_neighbor_discovery(message);
                }
            }
            NetworkLayer::Arp => self.extract_arp(frame.get(headers.l2_len..).unwrap_or_default()),
            NetworkLayer::Other => {
                self.extract_tag(frame.get(headers.l2_len..).unwrap_or_default(), headers.ethertype)
            }
            NetworkLayer::Malformed(_) => {}
        }
        self.extract_ports(frame, headers);
    }

    fn extract_ports(&mut self, frame: &[u8], headers: &Headers) {
        if let Some(transport) = headers.transport {
            let (src, dst) = match transport.protocol {
                protocol::TCP => (Field::TcpSrc, Field::TcpDst),
                protocol::UDP => (Field::UdpSrc, Field::UdpDst),
                _ => (Field::SctpSrc, Field::SctpDst),
            };
            self.put(src, transport.src_port.into());
            self.put(dst, transport.dst_port.into());
            // RFC 9293 §3.1: the data offset has the upper four bits.
            if let Some(flags) = be(frame, transport.offset + 12, 2)
                && transport.protocol == protocol::TCP
            {
                self.put(Field::TcpFlags, flags);
            }
        }
    }

    fn put_ip(&mut self, traffic_class: u8, protocol: u8) {
        self.put(Field::IpDscp, (traffic_class >> 2).into());
        self.put(Field::IpEcn, traffic_class.into());
        self.put(Field::IpProto, protocol.into());
    }

    fn put_fragment(&mut self, offset: u16, more: bool) {
        let later = u128::from(offset != 0);
        self.put(Field::NwFrag, later << 1 | u128::from(more) | later);
    }

    fn put_icmp(&mut self, message: &[u8], kind: Field, code: Field) {
        if let Some(&[first, second]) = message.first_chunk() {
            self.put(kind, first.into());
            self.put(code, second.into());
        }
    }

    /// Reads ARP (RFC 826). Only Ethernet with IPv4 has addresses; other ARP has an operation only.
    fn extract_arp(&mut self, message: &[u8]) {
        let Some(header) = message.first_chunk::<8>() else { return };
        self.put(Field::ArpOp, big_endian(&header[6..]));
        if header[4..6] != [6, 4] || message.len() < 28 {
            return;
        }
        self.put(Field::ArpSha, big_endian(&message[8..14]));
        self.put(Field::ArpSpa, big_endian(&message[14..18]));
        self.put(Field::ArpTha, big_endian(&message[18..24]));
        self.put(Field::ArpTpa, big_endian(&message[24..28]));
    }

    /// Reads neighbour discovery (RFC 4861 §4.3, §4.4): solicitation (135) and advertisement (136).
    fn extract_neighbor_discovery(&mut self, message: &[u8]) {
        let (Some(&kind @ (135 | 136)), Some(target)) = (message.first(), be(message, 8, 16)) else { return };
        self.put(Field::Ipv6NdTarget, target);
        let (wanted, field) = if kind == 135 { (1, Field::Ipv6NdSll) } else { (2, Field::Ipv6NdTll) };
        if let Some(at) = neighbor_option(message, wanted) {
            self.put(field, big_endian(&message[at..at + 6]));
        }
    }

    fn extract_tag(&mut self, rest: &[u8], ethertype: u16) {
        let Some(word) = be(rest, 0, 4) else { return };
        match ethertype {
            ethertype::MPLS | ethertype::MPLS_UPSTREAM => {
                self.put(Field::MplsLabel, word >> 12);
                self.put(Field::MplsTc, word >> 9);
                self.put(Field::MplsBos, word >> 8);
                self.put(Field::MplsTtl, word);
            }
            ETHERTYPE_PBB => self.put(Field::PbbIsid, word),
            ETHERTYPE_NSH => nsh::fields(rest, |field, value| self.put(field, value)),
            _ => {}
        }
    }
}

/// Returns the EtherType as OXM_OF_ETH_TYPE has it. A value below 0x0600 is the length of an IEEE
/// 802.3 frame: with SNAP and OUI 0 the type is that behind the SNAP header, else there is none and
/// it is [`NOT_ETH_TYPE`].
fn eth_type(frame: &[u8], headers: &Headers) -> u16 {
    if headers.ethertype >= ETH_TYPE_MIN {
        return headers.ethertype;
    }
    match frame.get(headers.l2_len..headers.l2_len + 8) {
        Some([0xaa, 0xaa, 0x03, 0, 0, 0, high, low]) => match u16::from_be_bytes([*high, *low]) {
            inner if inner >= ETH_TYPE_MIN => inner,
            _ => NOT_ETH_TYPE,
        },
        _ => NOT_ETH_TYPE,
    }
}

/// Returns the offset of the link-layer address in the option `kind` of a neighbour discovery
/// message.
pub(crate) fn neighbor_option(message: &[u8], kind: u8) -> Option<usize> {
    let mut at = 24;
    // Options have at least 8 bytes, so their number is bounded.
    while let Some(&[option, words]) = message.get(at..).and_then(|rest| rest.first_chunk()) {
        if words == 0 {
            return None;
        }
        if option == kind {
            return (at + 8 <= message.len()).then_some(at + 2);
        }
        at += usize::from(words) * 8;
    }
    None
}

/// Returns the OFPXMT_OFB_IPV6_EXTHDR bits of the IPv6 packet at `offset..end` (OpenFlow 1.3.5
/// §7.2.3.8, RFC 8200 §4.1).
fn extension_headers(frame: &[u8], offset: usize, end: usize) -> u16 {
    /// Longer chains are not followed, as in [`Headers::parse`].
    const CHAIN_MAX: usize = 16;
    let packet = &frame[..end.min(frame.len())];
    let mut bits = 0;
    let mut next = packet.get(offset + 6).copied();
    let mut at = offset + 40;
    let mut last_rank = 0;
    for _ in 0..CHAIN_MAX {
        let Some(header) = next else { break };
        // The rank is the position that RFC 8200 §4.1 recommends. Destination options may come
        // before the routing header and last.
        let (bit, rank) = match header {
            0 => (exthdr::HOP, 1),
            60 if bits & exthdr::ROUTER == 0 && last_rank < 3 => (exthdr::DEST, 2),
            60 => (exthdr::DEST, 7),
            43 => (exthdr::ROUTER, 3),
            44 => (exthdr::FRAGMENT, 4),
            51 => (exthdr::AUTH, 5),
            50 => (exthdr::ESP, 6),
            59 => (exthdr::NO_NEXT, 8),
            _ => break,
        };
        let is_second_destination = header == 60 && rank == 7 && last_rank != 7;
        if bits & bit != 0 && !is_second_destination {
            bits |= exthdr::REPEATED;
        } else if rank < last_rank {
            bits |= exthdr::UNORDERED;
        }
        bits |= bit;
        last_rank = last_rank.max(rank);
        let (Some(&following), Some(&len)) = (packet.get(at), packet.get(at + 1)) else { break };
        let is_later_fragment = header == 44 && be(packet, at + 2, 2).unwrap_or(0) & 0xfff8 != 0;
        if matches!(header, 50 | 59) || is_later_fragment {
            break;
        }
        at += match header {
            51 => (usize::from(len) + 2) * 4,
            44 => 8,
            _ => (usize::from(len) + 1) * 8,
        };
        next = (at <= packet.len()).then_some(following);
    }
    bits
}

/// Returns the big-endian number in `bytes`, at most 16 of them.
pub fn big_endian(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// Returns the big-endian number of `len` bytes at `at`.
pub(crate) fn be(bytes: &[u8], at: usize, len: usize) -> Option<u128> {
    bytes.get(at..)?.get(..len).map(big_endian)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_wire::MacAddr;
    use fastpath_wire::build::Ip;
    use proptest::prelude::*;

    fn key(frame: &[u8]) -> Key {
        Key::extract(
            frame,
            &Headers::parse(frame),
            PipelineFields { in_port: 7, ..PipelineFields::default() },
        )
    }

    fn udp() -> Vec<u8> {
        let end = |n: u8| (MacAddr::from_index(n.into()), [192, 0, 2, n].into());
        Ip { traffic_class: 0xb9, ..Ip::between(end(1), end(2)) }.udp(1000, 53, b"x")
    }

    #[test]
    fn a_snap_frame_has_its_inner_ethertype_and_plain_llc_has_none() {
        let eth_type = |payload: &[u8], tag: &[u8]| {
            let mut frame = [&[2; 12], tag, &[0, 46], payload].concat();
            frame.resize(60, 0);
            let key = Key::extract(&frame, &Headers::parse(&frame), PipelineFields::default());
            key.get(Field::EthType)
        };
        let snap = [0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x06];
        assert_eq!(eth_type(&snap, &[]), Some(0x0806));
        assert_eq!(eth_type(&snap, &[0x81, 0, 0, 5]), Some(0x0806), "behind a tag");
        assert_eq!(eth_type(&[0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0], &[]), Some(0x05ff), "another OUI");
        assert_eq!(eth_type(&[0xaa, 0xaa, 3, 0, 0, 0, 0, 4], &[]), Some(0x05ff), "no EtherType");
        assert_eq!(eth_type(&[0x42, 0x42, 3], &[]), Some(0x05ff), "spanning tree");
    }

    #[test]
    fn the_fields_of_a_udp_packet_are_read_and_no_others() {
        let key = key(&udp());
        let expected = [
            (Field::InPort, 7),
            (Field::InPhyPort, 7),
            (Field::Metadata, 0),
            (Field::EthDst, 0x0200_0000_0002),
            (Field::EthSrc, 0x0200_0000_0001),
            (Field::EthType, 0x0800),
            (Field::VlanVid, 0),
            (Field::IpDscp, 46),
            (Field::IpEcn, 1),
            (Field::IpProto, 17),
            (Field::Ipv4Src, 0xc000_0201),
            (Field::Ipv4Dst, 0xc000_0202),
            (Field::UdpSrc, 1000),
            (Field::UdpDst, 53),
            (Field::TunnelId, 0),
            (Field::NwFrag, 0),
            (Field::NwTtl, 64),
            (Field::Registers0, 0),
            (Field::Registers4, 0),
            (Field::Registers8, 0),
            (Field::Registers12, 0),
            (Field::ConjId, 0),
            (Field::PktMark, 0),
            (Field::TunSrc, 0),
            (Field::TunDst, 0),
            (Field::VlanTci, 0),
            (Field::CtState, 0),
            (Field::CtZone, 0),
            (Field::CtMark, 0),
            (Field::CtLabel, 0),
            (Field::CtNwSrc, 0),
            (Field::CtNwDst, 0),
            (Field::CtIpv6Src, 0),
            (Field::CtIpv6Dst, 0),
            (Field::CtNwProto, 0),
            (Field::CtTpSrc, 0),
            (Field::CtTpDst, 0),
            (Field::ActsetOutput, port::UNSET.into()),
            (Field::TunGbpId, 0),
            (Field::TunGbpFlags, 0),
            (Field::TunFlags, 0),
            (Field::TunErspanVer, 0),
            (Field::TunErspanDir, 0),
            (Field::TunErspanHwid, 0),
            (Field::TunGtpuFlags, 0),
            (Field::TunGtpuMsgtype, 0),
            (Field::TunErspanIdx, 0),
            (Field::TunIpv6Src, 0),
            (Field::TunIpv6Dst, 0),
        ];
        let fields = crate::field::FIELDS.map(|info| info.field);
        let found: Vec<_> = fields.iter().filter_map(|f| Some((*f, key.get(*f)?))).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_outermost_tag_is_the_vlan_and_the_type_is_behind_all_tags() {
        let mut frame = udp();
        frame.splice(12..12, [0x88, 0xa8, 0x60, 0x0a, 0x81, 0x00, 0x20, 0x64]);
        let key = key(&frame);
        assert_eq!((key.get(Field::VlanVid), key.get(Field::VlanPcp)), (Some(0x100a), Some(3)));
        assert_eq!((key.get(Field::EthType), key.get(Field::UdpDst)), (Some(0x0800), Some(53)));
    }

    #[test]
    fn mpls_and_pbb_hide_what_they_carry() {
        let mut frame = udp();
        frame.splice(12..12, [0x88, 0x47, 0x00, 0x06, 0x47, 0x40]);
        let mpls = key(&frame);
        assert_eq!(mpls.get(Field::MplsLabel), Some(100));
        assert_eq!((mpls.get(Field::MplsTc), mpls.get(Field::MplsBos)), (Some(3), Some(1)));
        assert_eq!(mpls.get(Field::Ipv4Src), None);
        frame[12..18].copy_from_slice(&[0x88, 0xe7, 0, 0, 0, 203]);
        assert_eq!(key(&frame).get(Field::PbbIsid), Some(203));
    }

    #[test]
    fn arp_is_read_field_by_field() {
        let mut frame = vec![0xff; 12];
        frame.extend([
            8, 6, 0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 2, 0, 0, 0, 0, 2, 10, 0, 0, 2,
        ]);
        let key = key(&frame);
        assert_eq!((key.get(Field::ArpOp), key.get(Field::ArpSpa)), (Some(2), Some(0x0a00_0001)));
        assert_eq!(
            (key.get(Field::ArpTpa), key.get(Field::ArpSha)),
            (Some(0x0a00_0002), Some(0x0200_0000_0001))
        );
        assert_eq!(key.get(Field::ArpTha), Some(0x0200_0000_0002));
    }

    #[test]
    fn a_neighbour_solicitation_shows_its_target_and_source_address() {
        let end = |n: u16| (MacAddr::from_index(n.into()), [0xfe80, 0, 0, 0, 0, 0, 0, n].into());
        let mut message = vec![135, 0, 0, 0, 0, 0, 0, 0];
        message.extend([0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
        message.extend([1, 1, 2, 0, 0, 0, 0, 5]);
        let key = key(&Ip::between(end(1), end(2)).packet(58, &message));
        assert_eq!((key.get(Field::Icmpv6Type), key.get(Field::Icmpv6Code)), (Some(135), Some(0)));
        assert_eq!(key.get(Field::Ipv6NdTarget), Some(0x2001_0000_0000_0000_0000_0000_0000_0009));
        assert_eq!((key.get(Field::Ipv6NdSll), key.get(Field::Ipv6NdTll)), (Some(0x0200_0000_0005), None));
    }

    #[test]
    fn extension_headers_are_told_by_kind_order_and_number() {
        let end = |n: u16| (MacAddr::from_index(n.into()), [0xfe80, 0, 0, 0, 0, 0, 0, n].into());
        // Each header has 8 bytes (AUTH: 12); its first byte is the number of the next one.
        let bits = |chain: &[u8]| {
            let mut bytes = Vec::new();
            for (i, header) in chain.iter().enumerate() {
                let next = *chain.get(i + 1).unwrap_or(&6);
                let len = if *header == 51 { 12 } else { 8 };
                bytes.extend([next, u8::from(*header == 51)]);
                bytes.resize(bytes.len() + len - 2, 0);
            }
            bytes.extend([0; 20]);
            let frame = Ip::between(end(1), end(2)).packet(*chain.first().unwrap_or(&6), &bytes);
            key(&frame).get(Field::Ipv6Exthdr)
        };
        assert_eq!(bits(&[]), Some(0));
        assert_eq!(bits(&[0, 51]), Some(0x44));
        assert_eq!(bits(&[0, 60, 43, 44, 51, 60]), Some(0x7c));
        assert_eq!(bits(&[43, 43]), Some(0xa0), "twice");
        assert_eq!(bits(&[43, 0]), Some(0x160), "hop-by-hop must be first");
        assert_eq!(bits(&[59]), Some(0x01));
    }

    proptest! {
        #[test]
        fn what_is_put_is_got_and_nothing_else_moves(value: u128, which in 0usize..FIELDS.len()) {
            let field = crate::field::FIELDS[which].field;
            let mut key = Key::EMPTY;
            key.put(field, value);
            prop_assert_eq!(key.bits(field), value & field.ones());
            prop_assert!(key.has(field) || field >= Field::NshFlags);
            prop_assert_eq!(key.words().iter().map(|w| w.count_ones()).sum::<u32>(),
                u32::from(which < PRESENCE_BITS) + (value & field.ones()).count_ones());
        }

        #[test]
        fn no_frame_makes_extraction_panic(frame in prop::collection::vec(any::<u8>(), 0..200), kind in 0usize..6) {
            let mut frame = frame;
            if frame.len() > 30 {
                let kinds = [[8u8, 0], [0x86, 0xdd], [8, 6], [0x88, 0x47], [0x88, 0xe7], [0x81, 0]];
                frame[12..14].copy_from_slice(&kinds[kind]);
                frame[14] = if kind == 1 { 0x60 } else { 0x45 };
                frame[16] = 0;
                frame[18] = 0;
            }
            key(&frame);
        }
    }
}
