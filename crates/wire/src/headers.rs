//! Parses the headers of a frame in one pass: by value, without allocation, without trusting any
//! byte.
//!
//! ```text
//!  0          12          l2_len       Ipv4::offset      payload_offset
//!  dst  src   [802.1Q …]  ethertype    IP header [opts]  TCP/UDP/…
//! ```
//!
//! Headers above IP are not validated. A router must drop [`NetworkLayer::Malformed`] and can
//! forward everything else. Read first: RFC 791 §3.1, RFC 8200 §3–4, IEEE 802.1Q §9.

use crate::MacAddr;
use crate::bytes::{be16, mac, v4, v6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// EtherType values (IEEE 802 numbers).
pub mod ethertype {
    /// Internet Protocol version 4.
    pub const IPV4: u16 = 0x0800;
    /// Address Resolution Protocol.
    pub const ARP: u16 = 0x0806;
    /// IEEE 802.1Q customer tag.
    pub const VLAN: u16 = 0x8100;
    /// IEEE 802.1ad service tag.
    pub const SERVICE_VLAN: u16 = 0x88a8;
    /// Internet Protocol version 6.
    pub const IPV6: u16 = 0x86dd;
    /// MPLS with downstream-assigned labels.
    pub const MPLS: u16 = 0x8847;
    /// MPLS with upstream-assigned labels.
    pub const MPLS_UPSTREAM: u16 = 0x8848;
}

/// IP protocol numbers (IANA).
pub mod protocol {
    /// ICMP for IPv4.
    pub const ICMP: u8 = 1;
    /// Transmission Control Protocol.
    pub const TCP: u8 = 6;
    /// User Datagram Protocol.
    pub const UDP: u8 = 17;
    /// ICMP for IPv6.
    pub const ICMPV6: u8 = 58;
    /// Stream Control Transmission Protocol.
    pub const SCTP: u8 = 132;
}

/// The maximum number of VLAN tags read; frames with more are [`NetworkLayer::Other`].
const TAGS_MAX: usize = 8;
/// Bytes of an IPv6 header without extensions.
const IPV6_HEADER_LEN: usize = 40;
/// The maximum number of IPv6 extension headers read; packets with more have no
/// [`Headers::transport`].
const EXTENSIONS_MAX: usize = 16;

/// The headers of one frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Headers {
    /// Destination MAC; zero if the frame is shorter than an Ethernet header.
    pub dst: MacAddr,
    /// Source MAC; zero if the frame is shorter than an Ethernet header.
    pub src: MacAddr,
    /// The EtherType after all VLAN tags; a value below 0x0600 is an 802.3 length.
    pub ethertype: u16,
    /// Offset of the network header in bytes, VLAN tags included.
    pub l2_len: usize,
    /// The network layer.
    pub network: NetworkLayer,
    /// The ports of a TCP, UDP or SCTP packet; `None` for later fragments and for packets too short
    /// to contain the ports.
    pub transport: Option<Transport>,
}

/// The network layer of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NetworkLayer {
    /// IPv4 with a valid base header and valid lengths. The header checksum is *not* verified; see
    /// [`ipv4_checksum_ok`](Headers::ipv4_checksum_ok).
    Ipv4(Ipv4),
    /// IPv6 with a valid base header and valid lengths.
    Ipv6(Ipv6),
    /// The EtherType of ARP; `arp::Arp::parse` reads the message.
    Arp,
    /// Any other protocol, including MPLS: `l2_len` ends before the label stack.
    Other,
    /// The frame is too short, or its fields contradict each other. A bridge forwards the frame; a
    /// router drops and counts it.
    Malformed(Malformed),
}

/// What is wrong with a malformed frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Malformed {
    /// The frame is shorter than 14 bytes, or ends inside a VLAN tag.
    Ethernet,
    /// The IP header is truncated, its version contradicts the EtherType, or the IHL is below 5
    /// words.
    IpHeader,
    /// The IP length is smaller than the header, or exceeds the frame.
    IpLength,
}

/// An IPv4 header (RFC 791 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4 {
    /// Offset of the header in the frame.
    pub offset: usize,
    /// Length of the header with options, 20–60 bytes.
    pub header_len: usize,
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Time to live, in hops.
    pub ttl: u8,
    /// Protocol of the payload (see [`protocol`]).
    pub protocol: u8,
    /// Type of service: DSCP « 2 | ECN.
    pub tos: u8,
    /// Length of header and payload in bytes; the frame can be longer (Ethernet padding).
    pub total_len: u16,
    /// Identification, shared by the fragments of one datagram.
    pub id: u16,
    /// DF: routers must not fragment the packet.
    pub dont_fragment: bool,
    /// MF: this is not the last fragment.
    pub more_fragments: bool,
    /// Offset of the payload in the original datagram, in bytes.
    pub fragment_offset: u16,
}

/// An IPv6 header (RFC 8200 §3) and the protocol after its extension headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6 {
    /// Offset of the header in the frame.
    pub offset: usize,
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
    /// Hop limit.
    pub hop_limit: u8,
    /// Traffic class: DSCP « 2 | ECN.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Bytes after the 40-byte base header, extension headers included.
    pub payload_len: u16,
    /// Protocol after the extension headers (see [`protocol`]). If the chain of extension headers
    /// is truncated, the number of the truncated header.
    pub protocol: u8,
    /// Offset of the header of that protocol in the frame.
    pub payload_offset: usize,
    /// The M flag of the fragment header; false without a fragment header.
    pub more_fragments: bool,
    /// Offset of the payload in the original packet, in bytes; 0 without a fragment header.
    pub fragment_offset: u16,
}

/// The position of the transport header, and its ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transport {
    /// [`protocol::TCP`], [`protocol::UDP`] or [`protocol::SCTP`].
    pub protocol: u8,
    /// Offset of the header in the frame.
    pub offset: usize,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
}

impl Headers {
    /// Parses the headers of a complete frame.
    #[inline]
    pub fn parse(frame: &[u8]) -> Headers {
        Headers::parse_captured(frame, frame.len())
    }

    /// Parses the headers of a frame truncated by a capture's snap length. `frame` holds the first
    /// bytes, including all headers. `wire_len` is the length on the wire, against which the IP
    /// lengths are checked.
    pub fn parse_captured(frame: &[u8], wire_len: usize) -> Headers {
        let Some((ethertype, l2_len)) = parse_ethertype(frame) else { return Headers::truncated(frame) };
        let wire_len = wire_len.max(frame.len());
        let network = match ethertype {
            ethertype::IPV4 => parse_ipv4(frame, l2_len, wire_len),
            ethertype::IPV6 => parse_ipv6(frame, l2_len, wire_len),
            ethertype::ARP => NetworkLayer::Arp,
            _ => NetworkLayer::Other,
        };
        Headers {
            dst: mac(frame, 0).unwrap_or_default(),
            src: mac(frame, 6).unwrap_or_default(),
            ethertype,
            l2_len,
            network,
            transport: parse_transport(frame, &network),
        }
    }

    fn truncated(frame: &[u8]) -> Headers {
        Headers {
            dst: mac(frame, 0).unwrap_or_default(),
            src: mac(frame, 6).unwrap_or_default(),
            ethertype: 0,
            l2_len: frame.len(),
            network: NetworkLayer::Malformed(Malformed::Ethernet),
            transport: None,
        }
    }

    /// Returns the IPv4 TOS or IPv6 traffic class (DSCP « 2 | ECN), or 0 if the frame is not IP.
    #[inline]
    pub fn traffic_class(&self) -> u8 {
        match self.network {
            NetworkLayer::Ipv4(ip) => ip.tos,
            NetworkLayer::Ipv6(ip) => ip.traffic_class,
            NetworkLayer::Arp | NetworkLayer::Other | NetworkLayer::Malformed(_) => 0,
        }
    }

    /// Returns the source and destination address of an IP packet.
    #[inline]
    pub fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        match self.network {
            NetworkLayer::Ipv4(ip) => Some((ip.src.into(), ip.dst.into())),
            NetworkLayer::Ipv6(ip) => Some((ip.src.into(), ip.dst.into())),
            NetworkLayer::Arp | NetworkLayer::Other | NetworkLayer::Malformed(_) => None,
        }
    }

    /// Returns the end of an IP packet in the frame; Ethernet padding can follow.
    #[inline]
    pub fn packet_end(&self) -> Option<usize> {
        match self.network {
            NetworkLayer::Ipv4(ip) => Some(ip.end()),
            NetworkLayer::Ipv6(ip) => Some(ip.end()),
            NetworkLayer::Arp | NetworkLayer::Other | NetworkLayer::Malformed(_) => None,
        }
    }

    /// Returns a hash of the flow, which is the same on every machine and in every release. The key
    /// of an IP packet is source address, destination address, protocol and ports. The ports of
    /// fragments are excluded, so that all fragments of a datagram have one hash. The key of other
    /// frames is MACs and EtherType. The hash is not symmetric.
    ///
    /// Each 64-bit word `w` of the key is mixed by `h = (h ^ w) * 0x9e3779b97f4a7c15; h ^= h >>
    /// 32`, starting from 0. The hash is the upper 32 bits of a final multiplication.
    #[inline]
    pub fn flow_hash(&self) -> u32 {
        let h = match self.network {
            NetworkLayer::Ipv4(ip) => {
                let addresses = u64::from(ip.src.to_bits()) << 32 | u64::from(ip.dst.to_bits());
                mix(mix(0, addresses), self.protocol_and_ports(ip.protocol, ip.is_fragment()))
            }
            NetworkLayer::Ipv6(ip) => {
                let (src, dst) = (ip.src.to_bits(), ip.dst.to_bits());
                let words = [(src >> 64) as u64, src as u64, (dst >> 64) as u64, dst as u64];
                mix(words.into_iter().fold(0, mix), self.protocol_and_ports(ip.protocol, ip.is_fragment()))
            }
            NetworkLayer::Arp | NetworkLayer::Other | NetworkLayer::Malformed(_) => {
                let [a, b, c, d, e, f] = self.dst.0;
                let dst = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
                let [a, b, c, d, e, f] = self.src.0;
                let src = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
                mix(mix(0, dst), src << 16 | u64::from(self.ethertype))
            }
        };
        (h.wrapping_mul(MIX) >> 32) as u32
    }

    fn protocol_and_ports(&self, protocol: u8, is_fragment: bool) -> u64 {
        let ports = match self.transport {
            Some(t) if !is_fragment => u64::from(t.src_port) << 16 | u64::from(t.dst_port),
            _ => 0,
        };
        u64::from(protocol) << 32 | ports
    }
}

impl Ipv4 {
    /// Returns the offset of the payload in the frame.
    #[inline]
    pub fn payload_offset(&self) -> usize {
        self.offset + self.header_len
    }

    /// Returns the end of the packet in the frame; Ethernet padding can follow.
    pub fn end(&self) -> usize {
        self.offset + usize::from(self.total_len)
    }

    /// Returns whether the header has options, which routers handle on the slow path.
    #[inline]
    pub fn has_options(&self) -> bool {
        self.header_len > 20
    }

    /// Returns whether the packet is a fragment of a larger datagram, the first fragment included.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        self.more_fragments || self.fragment_offset != 0
    }
}

impl Ipv6 {
    /// Returns the end of the packet in the frame; Ethernet padding can follow.
    pub fn end(&self) -> usize {
        self.offset + IPV6_HEADER_LEN + usize::from(self.payload_len)
    }

    /// Returns whether the packet is a fragment of a larger packet, the first fragment included. An
    /// atomic fragment (RFC 6946) is not a fragment of a larger packet.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        self.more_fragments || self.fragment_offset != 0
    }
}

/// 2^64 divided by the golden ratio: an odd number with evenly distributed bits.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(h: u64, word: u64) -> u64 {
    let h = (h ^ word).wrapping_mul(MIX);
    h ^ (h >> 32)
}

/// Returns the EtherType after all VLAN tags and the offset of the network header, or `None` if the
/// frame ends before them.
fn parse_ethertype(frame: &[u8]) -> Option<(u16, usize)> {
    let mut ethertype = be16(frame, 12)?;
    let mut l2_len = 14;
    for _ in 0..TAGS_MAX {
        // 0x9100 and 0x9200 are older service tags, which still occur in captures.
        if !matches!(ethertype, ethertype::VLAN | ethertype::SERVICE_VLAN | 0x9100 | 0x9200) {
            break;
        }
        ethertype = be16(frame, l2_len + 2)?;
        l2_len += 4;
    }
    Some((ethertype, l2_len))
}

fn parse_ipv4(frame: &[u8], offset: usize, wire_len: usize) -> NetworkLayer {
    let Some(header) = frame.get(offset..).and_then(|rest| rest.first_chunk::<20>()) else {
        return NetworkLayer::Malformed(Malformed::IpHeader);
    };
    let header_len = usize::from(header[0] & 0x0f) * 4;
    if header[0] >> 4 != 4 || header_len < 20 || frame.len() - offset < header_len {
        return NetworkLayer::Malformed(Malformed::IpHeader);
    }
    let total_len = u16::from_be_bytes([header[2], header[3]]);
    if usize::from(total_len) < header_len || usize::from(total_len) > wire_len - offset {
        return NetworkLayer::Malformed(Malformed::IpLength);
    }
    let fragment = u16::from_be_bytes([header[6], header[7]]);
    NetworkLayer::Ipv4(Ipv4 {
        offset,
        header_len,
        src: v4(header, 12).unwrap_or(Ipv4Addr::UNSPECIFIED),
        dst: v4(header, 16).unwrap_or(Ipv4Addr::UNSPECIFIED),
        ttl: header[8],
        protocol: header[9],
        tos: header[1],
        total_len,
        id: u16::from_be_bytes([header[4], header[5]]),
        dont_fragment: fragment & 0x4000 != 0,
        more_fragments: fragment & 0x2000 != 0,
        fragment_offset: (fragment & 0x1fff) * 8,
    })
}

fn parse_ipv6(frame: &[u8], offset: usize, wire_len: usize) -> NetworkLayer {
    let Some(header) = frame.get(offset..).and_then(|rest| rest.first_chunk::<40>()) else {
        return NetworkLayer::Malformed(Malformed::IpHeader);
    };
    let word = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
    if word >> 28 != 6 {
        return NetworkLayer::Malformed(Malformed::IpHeader);
    }
    let payload_len = u16::from_be_bytes([header[4], header[5]]);
    if usize::from(payload_len) > wire_len - offset - IPV6_HEADER_LEN {
        return NetworkLayer::Malformed(Malformed::IpLength);
    }
    let mut ip = Ipv6 {
        offset,
        src: v6(header, 8).unwrap_or(Ipv6Addr::UNSPECIFIED),
        dst: v6(header, 24).unwrap_or(Ipv6Addr::UNSPECIFIED),
        hop_limit: header[7],
        traffic_class: (word >> 20) as u8,
        flow_label: word & 0x000f_ffff,
        payload_len,
        protocol: header[6],
        payload_offset: offset + IPV6_HEADER_LEN,
        more_fragments: false,
        fragment_offset: 0,
    };
    skip_extensions(frame, &mut ip);
    NetworkLayer::Ipv6(ip)
}

/// Follows the extension headers (RFC 8200 §4) to the upper-layer protocol. A truncated chain ends
/// the search but is not malformed, because routers do not have to read extension headers.
fn skip_extensions(frame: &[u8], ip: &mut Ipv6) {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const AUTHENTICATION: u8 = 51;
    const DESTINATION: u8 = 60;
    let packet = &frame[..frame.len().min(ip.end())];
    for _ in 0..EXTENSIONS_MAX {
        let Some(word) = be16(packet, ip.payload_offset) else { return };
        let (next, len) = ((word >> 8) as u8, usize::from(word & 0xff));
        let len = match ip.protocol {
            HOP_BY_HOP | ROUTING | DESTINATION => (len + 1) * 8,
            AUTHENTICATION => (len + 2) * 4,
            FRAGMENT => 8,
            _ => return,
        };
        if ip.payload_offset + len > packet.len() {
            return;
        }
        if ip.protocol == FRAGMENT {
            let field = be16(packet, ip.payload_offset + 2).unwrap_or(0);
            ip.fragment_offset = field & 0xfff8;
            ip.more_fragments = field & 1 != 0;
        }
        ip.protocol = next;
        ip.payload_offset += len;
        // A later fragment continues with the middle of a payload, not with a header.
        if ip.fragment_offset != 0 {
            return;
        }
    }
}

fn parse_transport(frame: &[u8], network: &NetworkLayer) -> Option<Transport> {
    let (protocol, offset, end, fragment_offset) = match network {
        NetworkLayer::Ipv4(ip) => (ip.protocol, ip.payload_offset(), ip.end(), ip.fragment_offset),
        NetworkLayer::Ipv6(ip) => (ip.protocol, ip.payload_offset, ip.end(), ip.fragment_offset),
        NetworkLayer::Arp | NetworkLayer::Other | NetworkLayer::Malformed(_) => return None,
    };
    if !matches!(protocol, protocol::TCP | protocol::UDP | protocol::SCTP)
        || fragment_offset != 0
        || offset + 4 > end
    {
        return None;
    }
    Some(Transport { protocol, offset, src_port: be16(frame, offset)?, dst_port: be16(frame, offset + 2)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 192.0.2.1:1000 → 198.51.100.2:53, UDP without payload, TOS 0xb9, DF, TTL 64.
    fn udp4() -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
        frame.extend([0x45, 0xb9, 0, 28, 0x12, 0x34, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2]);
        frame.extend([0x03, 0xe8, 0, 53, 0, 8, 0, 0]);
        frame
    }

    fn ipv4(frame: &[u8]) -> Ipv4 {
        match Headers::parse(frame).network {
            NetworkLayer::Ipv4(ip) => ip,
            other => panic!("not IPv4: {other:?}"),
        }
    }

    #[test]
    fn an_ipv4_frame_is_read_field_by_field() {
        let headers = Headers::parse(&udp4());
        assert_eq!((headers.dst, headers.src), (MacAddr::from_index(2), MacAddr::from_index(1)));
        assert_eq!((headers.ethertype, headers.l2_len), (ethertype::IPV4, 14));
        assert_eq!(headers.traffic_class(), 0xb9);
        let ip = ipv4(&udp4());
        assert_eq!((ip.ttl, ip.total_len, ip.id, ip.dont_fragment), (64, 28, 0x1234, true));
        assert_eq!((ip.payload_offset(), ip.end()), (34, 42));
        let udp = Transport { protocol: 17, offset: 34, src_port: 1000, dst_port: 53 };
        assert_eq!(headers.transport, Some(udp));
    }

    #[test]
    fn padding_is_not_part_of_the_packet_and_tags_move_it() {
        let mut frame = udp4();
        frame.extend([0; 18]);
        assert_eq!(ipv4(&frame).end(), 42);
        frame.splice(12..12, [0x88, 0xa8, 0, 1, 0x81, 0, 0, 2]);
        let headers = Headers::parse(&frame);
        assert_eq!((headers.l2_len, headers.ethertype), (22, ethertype::IPV4));
        assert_eq!(headers.transport.map(|t| t.offset), Some(42));
    }

    #[test]
    fn truncated_or_contradictory_frames_are_malformed() {
        let malformed = |frame: &[u8]| match Headers::parse(frame).network {
            NetworkLayer::Malformed(what) => what,
            other => panic!("not malformed: {other:?}"),
        };
        let change = |at: usize, byte: u8| {
            let mut frame = udp4();
            frame[at] = byte;
            frame
        };
        assert_eq!(malformed(&udp4()[..13]), Malformed::Ethernet);
        assert_eq!(malformed(&[&udp4()[..12], &[0x81, 0, 0][..]].concat()), Malformed::Ethernet);
        assert_eq!(malformed(&udp4()[..33]), Malformed::IpHeader);
        assert_eq!(malformed(&change(14, 0x44)), Malformed::IpHeader, "IHL of 16 bytes");
        assert_eq!(malformed(&change(14, 0x4f)), Malformed::IpHeader, "IHL beyond the frame");
        assert_eq!(malformed(&change(14, 0x65)), Malformed::IpHeader, "version 6");
        assert_eq!(malformed(&change(17, 29)), Malformed::IpLength, "longer than the frame");
        assert_eq!(malformed(&change(17, 19)), Malformed::IpLength, "shorter than its header");
    }

    #[test]
    fn a_frame_truncated_by_a_snap_length_is_checked_against_its_length_on_the_wire() {
        let frame = udp4();
        let headers = Headers::parse_captured(&frame[..38], 42);
        assert_eq!(headers.transport.map(|t| t.dst_port), Some(53));
        assert!(matches!(Headers::parse_captured(&frame[..38], 41).network, NetworkLayer::Malformed(_)));
    }

    #[test]
    fn frames_that_are_not_ip_are_other() {
        let frame = |start: &[u8]| [&udp4()[..12], start, &[0; 40]].concat();
        let deep: Vec<u8> = [0x81, 0, 0, 1].repeat(TAGS_MAX + 1);
        for (start, ethertype, l2_len) in [
            (&[0x88, 0x47, 0, 1, 0x11, 64][..], ethertype::MPLS, 14),
            (&[0, 40, 0xaa, 0xaa, 3], 40, 14),
            (&[0x81, 0, 0, 7, 0x88, 0xcc], 0x88cc, 18),
            (&deep[..], ethertype::VLAN, 14 + 4 * TAGS_MAX),
        ] {
            let headers = Headers::parse(&frame(start));
            let seen = (headers.network, headers.ethertype, headers.l2_len);
            assert_eq!(seen, (NetworkLayer::Other, ethertype, l2_len));
            assert_eq!((headers.traffic_class(), headers.transport), (0, None));
        }
        let arp = Headers::parse(&frame(&[8, 6]));
        assert_eq!((arp.network, arp.addresses()), (NetworkLayer::Arp, None));
    }

    #[test]
    fn fragments_of_a_datagram_have_one_hash_and_later_ones_have_no_ports() {
        let (mut first, mut later) = (udp4(), udp4());
        (first[20], later[20], later[21]) = (0x20, 0x00, 0x01);
        assert!(Headers::parse(&first).transport.is_some());
        assert!(Headers::parse(&later).transport.is_none());
        assert_eq!(Headers::parse(&first).flow_hash(), Headers::parse(&later).flow_hash());
    }

    #[test]
    fn the_flow_hash_is_frozen() {
        assert_eq!(Headers::parse(&udp4()).flow_hash(), 4_186_389_094);
    }

    #[test]
    fn ipv6_extension_headers_are_followed() {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd];
        frame.extend([0x6b, 0x91, 0x23, 0x45, 0, 24, 0, 9]);
        frame.extend(Ipv6Addr::LOCALHOST.octets());
        frame.extend(Ipv6Addr::LOCALHOST.octets());
        frame.extend([44, 0, 1, 4, 0, 0, 0, 0]); // hop-by-hop, then fragment
        frame.extend([17, 0, 0, 1, 0, 0, 0, 7]); // first fragment, more follow
        frame.extend([0x03, 0xe8, 0, 53, 0, 8, 0, 0]);
        let headers = Headers::parse(&frame);
        let NetworkLayer::Ipv6(ip) = headers.network else { panic!("{headers:?}") };
        assert_eq!((ip.traffic_class, ip.flow_label, ip.hop_limit), (0xb9, 0x12345, 9));
        assert_eq!((ip.protocol, ip.payload_offset, ip.end()), (17, 70, 78));
        assert_eq!((ip.more_fragments, ip.fragment_offset), (true, 0));
        assert_eq!(headers.transport.map(|t| (t.src_port, t.dst_port)), Some((1000, 53)));

        frame[54 + 8 + 3] = 8; // the second fragment
        let headers = Headers::parse(&frame);
        assert_eq!(headers.transport, None);
        frame[54 + 1] = 3; // a hop-by-hop header longer than the packet
        let NetworkLayer::Ipv6(ip) = Headers::parse(&frame).network else {
            panic!("a router does not have to read extension headers")
        };
        assert_eq!((ip.protocol, ip.payload_offset), (0, 54));
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic_and_stay_inside(frame in prop::collection::vec(any::<u8>(), 0..120), extra in 0usize..100, kind in 0usize..4) {
            let mut frame = frame;
            if frame.len() > 16 {
                let start: [u8; 3] = [[0x08, 0, 0x45], [0x86, 0xdd, 0x60], [0x81, 0, 0], [0, 0, 0]][kind];
                frame[12..15].copy_from_slice(&start);
            }
            let headers = Headers::parse_captured(&frame, frame.len() + extra);
            headers.flow_hash();
            headers.ipv4_checksum_ok(&frame);
            prop_assert!(headers.l2_len <= frame.len());
            if let NetworkLayer::Ipv4(ip) = headers.network {
                prop_assert!(ip.payload_offset() <= frame.len() && ip.end() <= frame.len() + extra);
            }
            if let Some(t) = headers.transport {
                prop_assert!(t.offset + 4 <= frame.len());
            }
        }
    }
}
