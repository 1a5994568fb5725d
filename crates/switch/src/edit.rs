//! Edits frames: pushes and pops tags, sets fields, decrements TTLs, and updates checksums.
//!
//! Checksums are updated by the difference (RFC 1624), so a wrong one stays wrong and the receiver
//! still detects it. The CRC of SCTP is computed again if it was right. A frame of at least
//! Ethernet's minimum length does not become shorter than that. An edit of a header that the frame
//! does not have does nothing. Each function parses the headers again: this is the obvious
//! implementation, not the fast one.
//!
//! Read first: OpenFlow 1.3.5 §5.12 and §7.2.5.

use crate::field::{ETHERTYPE_PBB, Field, VLAN_PRESENT};
use crate::key::{be, neighbor_option};
use crate::nsh;
use fastpath_wire::{Headers, Ipv6, Malformed, NetworkLayer, checksum, ethertype, protocol, sctp};
use std::ops::Range;

/// The result of decrementing a TTL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ttl {
    /// The packet continues, or has no such TTL.
    Alive,
    /// The TTL was 1 or 0, and is unchanged: an invalid TTL (OFPR_INVALID_TTL).
    Invalid,
}

/// Inserts an outermost VLAN tag. Its id and priority are those of the tag that was outermost, or
/// 0.
pub fn push_vlan(frame: &mut Vec<u8>, ethertype: u16) {
    let headers = Headers::parse(frame);
    let [high, low] = if is_tagged(&headers) { [frame[14] & 0xef, frame[15]] } else { [0, 0] };
    let [first, second] = ethertype.to_be_bytes();
    frame.splice(12..12, [first, second, high, low]);
}

/// Sets bits of the outermost tag, which is inserted if there is none; those of `keep` stay.
pub(crate) fn set_vlan(frame: &mut Vec<u8>, keep: u16, value: u16) {
    if !is_tagged(&Headers::parse(frame)) {
        push_vlan(frame, ethertype::VLAN);
    }
    merge(frame, 14, keep, value);
}

/// Sets the outermost tag as Open vSwitch shows it: without the present bit there is none.
pub(crate) fn set_vlan_tci(frame: &mut Vec<u8>, tci: u16) {
    match tci & VLAN_PRESENT {
        0 => pop_vlan(frame),
        _ => set_vlan(frame, VLAN_PRESENT, tci & !VLAN_PRESENT),
    }
}

/// Removes the outermost VLAN tag.
pub(crate) fn pop_vlan(frame: &mut Vec<u8>) {
    if is_tagged(&Headers::parse(frame)) {
        remove(frame, 12..16);
    }
}

/// Inserts an MPLS entry directly behind the Ethernet header, before any tag (§5.12). Label, class
/// and TTL are those of the outermost entry; without one, the TTL is that of the IP header and the
/// rest is 0.
pub fn push_mpls(frame: &mut Vec<u8>, ethertype: u16) {
    let headers = Headers::parse(frame);
    let entry = match (outer_label(frame, &headers), headers.network) {
        (Some(at), _) => u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]),
        (None, NetworkLayer::Ipv4(ip)) => ip.ttl.into(),
        (None, NetworkLayer::Ipv6(ip)) => ip.hop_limit.into(),
        (None, _) => 0,
    };
    let on_label = matches!(be(frame, 12, 2), Some(0x8847 | 0x8848));
    let bottom = if on_label { 0 } else { 0x100 };
    frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
    frame.splice(14..14, (entry & !0x100 | bottom).to_be_bytes());
}

/// Removes the outermost MPLS entry; `ethertype` is that of the payload behind it.
pub(crate) fn pop_mpls(frame: &mut Vec<u8>, ethertype: u16) {
    let headers = Headers::parse(frame);
    if let Some(at) = outer_label(frame, &headers) {
        frame[at - 2..at].copy_from_slice(&ethertype.to_be_bytes());
        remove(frame, at..at + 4);
    }
}

/// Wraps the frame in a PBB service instance with the same MAC addresses. The instance is that of
/// the outermost I-TAG, or 0; the priority is that of the VLAN tag, or 0.
pub fn push_pbb(frame: &mut Vec<u8>, ethertype: u16) {
    let headers = Headers::parse(frame);
    let mut tag = [0; 4];
    if let Some(at) = service_tag(frame, &headers) {
        tag[1..].copy_from_slice(&frame[at + 1..at + 4]);
    }
    if is_tagged(&headers) {
        tag[0] = frame[14] & 0xe0;
    }
    let mut header = [0; 18];
    header[..2].copy_from_slice(&ethertype.to_be_bytes());
    header[2..6].copy_from_slice(&tag);
    header[6..].copy_from_slice(&frame[..12]);
    frame.splice(12..12, header);
}

/// Removes the outermost PBB encapsulation: everything before the frame that it carries.
pub(crate) fn pop_pbb(frame: &mut Vec<u8>) {
    let headers = Headers::parse(frame);
    // The payload must hold an Ethernet header.
    if let Some(at) = service_tag(frame, &headers).filter(|at| at + 18 <= frame.len()) {
        remove(frame, 0..at + 4);
    }
}

/// Removes bytes. A frame of at least Ethernet's minimum length is padded to that length, as a MAC
/// does before it sends (IEEE 802.3 §4.2.3.3; without FCS).
fn remove(frame: &mut Vec<u8>, bytes: Range<usize>) {
    const LEN_MIN: usize = 60;
    let len = frame.len();
    frame.drain(bytes);
    if len >= LEN_MIN && frame.len() < LEN_MIN {
        frame.resize(LEN_MIN, 0);
    }
}

/// Sets the TTL of the outermost MPLS entry.
pub(crate) fn set_mpls_ttl(frame: &mut [u8], ttl: u8) {
    if let Some(at) = outer_label(frame, &Headers::parse(frame)) {
        frame[at + 3] = ttl;
    }
}

/// Decrements the TTL of the outermost MPLS entry.
pub(crate) fn dec_mpls_ttl(frame: &mut [u8]) -> Ttl {
    match outer_label(frame, &Headers::parse(frame)) {
        Some(at) if frame[at + 3] <= 1 => Ttl::Invalid,
        Some(at) => {
            frame[at + 3] -= 1;
            Ttl::Alive
        }
        None => Ttl::Alive,
    }
}

/// Sets the TTL or hop limit of the IP header.
pub(crate) fn set_nw_ttl(frame: &mut [u8], ttl: u8) {
    match Headers::parse(frame).network {
        NetworkLayer::Ipv4(ip) => patch(frame, ip.offset, ip.offset + 8, &[ttl], &[ip.offset + 10]),
        NetworkLayer::Ipv6(ip) => frame[ip.offset + 7] = ttl,
        _ => {}
    }
}

/// Decrements the TTL or hop limit of the IP header.
pub fn dec_nw_ttl(frame: &mut [u8]) -> Ttl {
    let ttl = match Headers::parse(frame).network {
        NetworkLayer::Ipv4(ip) => ip.ttl,
        NetworkLayer::Ipv6(ip) => ip.hop_limit,
        _ => return Ttl::Alive,
    };
    if ttl <= 1 {
        return Ttl::Invalid;
    }
    set_nw_ttl(frame, ttl - 1);
    Ttl::Alive
}

/// Copies the TTL of the second header that has one to the outermost (from MPLS to MPLS, or from IP
/// to MPLS).
pub(crate) fn copy_ttl_out(frame: &mut [u8]) {
    let Some(outer) = outer_label(frame, &Headers::parse(frame)) else { return };
    if let Some(inner) = inner_ttl(frame, outer) {
        frame[outer + 3] = frame[inner.at];
    }
}

/// Copies the TTL of the outermost header to the second that has one (MPLS to MPLS, or MPLS to IP).
pub(crate) fn copy_ttl_in(frame: &mut [u8]) {
    let Some(outer) = outer_label(frame, &Headers::parse(frame)) else { return };
    let ttl = frame[outer + 3];
    match inner_ttl(frame, outer) {
        Some(InnerTtl { at, checksum: Some(sum) }) => patch(frame, at, at, &[ttl], &[sum]),
        Some(InnerTtl { at, checksum: None }) => frame[at] = ttl,
        None => {}
    }
}

/// Raises the drop precedence of an assured-forwarding code point (RFC 2597) by `levels`, to at
/// most 3 (meter band dscp-remark). Other packets stay as they are.
pub fn raise_drop_precedence(frame: &mut [u8], levels: u8) {
    let dscp = Headers::parse(frame).traffic_class() >> 2;
    let (class, precedence) = (dscp >> 3, dscp >> 1 & 3);
    if !(1..=4).contains(&class) || precedence == 0 || dscp & 1 != 0 {
        return;
    }
    let raised = precedence.saturating_add(levels).min(3);
    set_field(frame, Field::IpDscp, (class << 3 | raised << 1).into());
}

/// Sets a header field. Metadata, tunnel id and port of entry are not in the frame; the caller sets
/// those.
pub fn set_field(frame: &mut [u8], field: Field, value: u128) {
    let headers = Headers::parse(frame);
    if headers.network == NetworkLayer::Malformed(Malformed::Ethernet) {
        return;
    }
    let bytes = value.to_be_bytes();
    let low = |len: usize| &bytes[16 - len..];
    match field {
        Field::EthDst => frame[..6].copy_from_slice(low(6)),
        Field::EthSrc => frame[6..12].copy_from_slice(low(6)),
        Field::EthType => frame[headers.l2_len - 2..headers.l2_len].copy_from_slice(low(2)),
        Field::VlanVid if is_tagged(&headers) => merge(frame, 14, 0xf000, value as u16 & 0x0fff),
        Field::VlanPcp if is_tagged(&headers) => merge(frame, 14, 0x1fff, (value as u16) << 13),
        Field::NwTtl => set_nw_ttl(frame, value as u8),
        Field::MplsTtl => set_mpls_ttl(frame, value as u8),
        Field::MplsLabel | Field::MplsTc | Field::MplsBos => set_mpls(frame, &headers, field, value as u32),
        Field::PbbIsid => {
            if let Some(at) = service_tag(frame, &headers) {
                frame[at + 1..at + 4].copy_from_slice(low(3));
            }
        }
        Field::ArpOp => set_arp(frame, &headers, 6, low(2)),
        Field::ArpSha => set_arp(frame, &headers, 8, low(6)),
        Field::ArpSpa => set_arp(frame, &headers, 14, low(4)),
        Field::ArpTha => set_arp(frame, &headers, 18, low(6)),
        Field::ArpTpa => set_arp(frame, &headers, 24, low(4)),
        Field::IpDscp | Field::IpEcn | Field::IpProto | Field::Ipv4Src | Field::Ipv4Dst => {
            set_ip(frame, &headers, field, value);
        }
        Field::Ipv6Src | Field::Ipv6Dst | Field::Ipv6Flabel => set_ipv6(frame, &headers, field, value),
        _ if field >= Field::NshFlags => nsh::set(frame, &headers, field, value as u32),
        _ => set_transport(frame, &headers, field, value),
    }
}

fn set_mpls(frame: &mut [u8], headers: &Headers, field: Field, value: u32) {
    let Some(at) = outer_label(frame, headers) else { return };
    let entry = u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
    let entry = match field {
        Field::MplsLabel => entry & 0xfff | value << 12,
        Field::MplsTc => entry & !0xe00 | (value & 7) << 9,
        _ => entry & !0x100 | (value & 1) << 8,
    };
    frame[at..at + 4].copy_from_slice(&entry.to_be_bytes());
}

fn set_arp(frame: &mut [u8], headers: &Headers, at: usize, bytes: &[u8]) {
    let start = headers.l2_len + at;
    let is_ethernet_ipv4 = be(frame, headers.l2_len + 4, 2) == Some(0x0604);
    if headers.network == NetworkLayer::Arp && is_ethernet_ipv4 && frame.len() >= start + bytes.len() {
        frame[start..start + bytes.len()].copy_from_slice(bytes);
    }
}

fn set_ip(frame: &mut [u8], headers: &Headers, field: Field, value: u128) {
    let class = headers.traffic_class();
    let class = match field {
        Field::IpDscp => class & 0x03 | (value as u8) << 2,
        _ => class & 0xfc | value as u8 & 3,
    };
    match (headers.network, field) {
        (NetworkLayer::Ipv4(ip), Field::IpDscp | Field::IpEcn) => {
            patch(frame, ip.offset, ip.offset + 1, &[class], &[ip.offset + 10]);
        }
        (NetworkLayer::Ipv4(ip), Field::IpProto) => {
            patch_protocol(frame, headers, value as u8);
            patch(frame, ip.offset, ip.offset + 9, &[value as u8], &[ip.offset + 10]);
        }
        (NetworkLayer::Ipv4(ip), Field::Ipv4Src | Field::Ipv4Dst) => {
            let at = ip.offset + if field == Field::Ipv4Src { 12 } else { 16 };
            let address = (value as u32).to_be_bytes();
            patch_covered(frame, headers, at, &address);
            // The transport checksum was updated first. Now the header's own, which needs the old
            // bytes.
            patch(frame, ip.offset, at, &address, &[ip.offset + 10]);
        }
        (NetworkLayer::Ipv6(ip), Field::IpDscp | Field::IpEcn) => {
            merge(frame, ip.offset, 0xf00f, u16::from(class) << 4);
        }
        (NetworkLayer::Ipv6(ip), Field::IpProto) => {
            patch_protocol(frame, headers, value as u8);
            let at = last_next_header(frame, &ip);
            frame[at] = value as u8;
        }
        _ => {}
    }
}

fn set_ipv6(frame: &mut [u8], headers: &Headers, field: Field, value: u128) {
    let NetworkLayer::Ipv6(ip) = headers.network else { return };
    let address = value.to_be_bytes();
    match field {
        Field::Ipv6Flabel => {
            let word = be(frame, ip.offset, 4).unwrap_or(0) as u32;
            let word = word & 0xfff0_0000 | value as u32 & 0x000f_ffff;
            frame[ip.offset..ip.offset + 4].copy_from_slice(&word.to_be_bytes());
        }
        Field::Ipv6Src => {
            patch_covered(frame, headers, ip.offset + 8, &address);
            frame[ip.offset + 8..ip.offset + 24].copy_from_slice(&address);
        }
        _ => {
            // While a routing header has segments left, the checksum covers the final destination,
            // not this address.
            if !is_source_routed(frame, &ip) {
                patch_covered(frame, headers, ip.offset + 24, &address);
            }
            frame[ip.offset + 24..ip.offset + 40].copy_from_slice(&address);
        }
    }
}

/// Sets a field of TCP, UDP, SCTP, ICMP or neighbour discovery.
fn set_transport(frame: &mut [u8], headers: &Headers, field: Field, value: u128) {
    let Some((protocol, start, end)) = transport(frame, headers) else { return };
    let ports = (protocol, headers.transport.is_some());
    let is_v6 = matches!(headers.network, NetworkLayer::Ipv6(_));
    let icmp = if is_v6 { protocol::ICMPV6 } else { protocol::ICMP };
    let at = match (field, ports) {
        (Field::TcpSrc, (protocol::TCP, true)) | (Field::UdpSrc, (protocol::UDP, true)) => 0,
        (Field::TcpDst, (protocol::TCP, true)) | (Field::UdpDst, (protocol::UDP, true)) => 2,
        (Field::SctpSrc, (protocol::SCTP, true)) => return set_sctp(frame, start, end, 0, value as u16),
        (Field::SctpDst, (protocol::SCTP, true)) => return set_sctp(frame, start, end, 2, value as u16),
        (Field::Icmpv4Type, (protocol::ICMP, _)) | (Field::Icmpv6Type, (protocol::ICMPV6, _)) => 0,
        (Field::Icmpv4Code, (protocol::ICMP, _)) | (Field::Icmpv6Code, (protocol::ICMPV6, _)) => 1,
        (Field::Ipv6NdTarget | Field::Ipv6NdSll | Field::Ipv6NdTll, (protocol::ICMPV6, _)) if is_v6 => {
            let message = &frame[start..end];
            let at = match field {
                Field::Ipv6NdTarget => (message.len() >= 24).then_some(8),
                Field::Ipv6NdSll => neighbor_option(message, 1),
                _ => neighbor_option(message, 2),
            };
            let Some(at) = at else { return };
            at
        }
        _ => return,
    };
    let is_icmp_field = !matches!(field, Field::TcpSrc | Field::TcpDst | Field::UdpSrc | Field::UdpDst);
    let len = field.oxm_len();
    if start + at + len > end || (is_icmp_field && protocol != icmp) {
        return;
    }
    patch_covered(frame, headers, start + at, &value.to_be_bytes()[16 - len..]);
    frame[start + at..start + at + len].copy_from_slice(&value.to_be_bytes()[16 - len..]);
}

/// Returns the protocol, start and end of the transport header and payload, unless the IP packet is
/// a later fragment.
fn transport(frame: &[u8], headers: &Headers) -> Option<(u8, usize, usize)> {
    let (protocol, start, end) = match headers.network {
        NetworkLayer::Ipv4(ip) if ip.fragment_offset == 0 => (ip.protocol, ip.payload_offset(), ip.end()),
        NetworkLayer::Ipv6(ip) if ip.fragment_offset == 0 => (ip.protocol, ip.payload_offset, ip.end()),
        _ => return None,
    };
    (start <= end && end <= frame.len()).then_some((protocol, start, end))
}

/// Updates the transport checksum for another protocol in the pseudo-header. Its position stays:
/// the bytes behind the IP header do not change.
fn patch_protocol(frame: &mut [u8], headers: &Headers, new: u8) {
    let is_v6 = matches!(headers.network, NetworkLayer::Ipv6(_));
    let Some((protocol, sum_at)) = transport_sum(frame, headers) else { return };
    if protocol == protocol::ICMP && !is_v6 {
        return;
    }
    let old = u16::from_be_bytes([frame[sum_at], frame[sum_at + 1]]);
    let sum = checksum::update(old, protocol.into(), new.into());
    frame[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Returns the protocol and the offset of its 16-bit checksum, if there is one and it is in use.
fn transport_sum(frame: &[u8], headers: &Headers) -> Option<(u8, usize)> {
    let (protocol, start, end) = transport(frame, headers)?;
    let is_v6 = matches!(headers.network, NetworkLayer::Ipv6(_));
    let sum_at = start
        + match protocol {
            protocol::TCP => 16,
            protocol::UDP => 6,
            protocol::ICMPV6 if is_v6 => 2,
            protocol::ICMP if !is_v6 => 2,
            _ => return None,
        };
    let is_unused = protocol == protocol::UDP && !is_v6 && frame.get(sum_at..sum_at + 2) == Some(&[0, 0]);
    (sum_at + 2 <= end && !is_unused).then_some((protocol, sum_at))
}

/// Updates the transport checksum for `new` bytes at `at`, which it covers. Writes only the
/// checksum.
fn patch_covered(frame: &mut [u8], headers: &Headers, at: usize, new: &[u8]) {
    let Some((_, start, _)) = transport(frame, headers) else { return };
    let Some((protocol, sum_at)) = transport_sum(frame, headers) else { return };
    // ICMP over IPv4 has no pseudo-header: its checksum does not cover addresses.
    if protocol == protocol::ICMP && at < start {
        return;
    }
    let old = u16::from_be_bytes([frame[sum_at], frame[sum_at + 1]]);
    // Addresses and transport fields begin at even offsets of their header.
    let base = if at >= start { start } else { at };
    let sum = difference(frame, base, at, new, old);
    let sum = if protocol == protocol::UDP && sum == 0 { 0xffff } else { sum };
    frame[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Writes bytes at an offset of the transport header, and updates its checksum.
pub(crate) fn set_covered(frame: &mut [u8], offset: usize, new: &[u8]) {
    let headers = Headers::parse(frame);
    let Some((_, start, end)) = transport(frame, &headers) else { return };
    let at = start + offset;
    if at + new.len() <= end {
        patch_covered(frame, &headers, at, new);
        frame[at..at + new.len()].copy_from_slice(new);
    }
}

/// Writes `new` at `at` and updates the checksums at `sums`, which cover 16-bit words counted from
/// `base`.
fn patch(frame: &mut [u8], base: usize, at: usize, new: &[u8], sums: &[usize]) {
    for &sum_at in sums {
        let sum = u16::from_be_bytes([frame[sum_at], frame[sum_at + 1]]);
        let sum = difference(frame, base, at, new, sum);
        frame[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    frame[at..at + new.len()].copy_from_slice(new);
}

/// Returns the checksum `sum` after the bytes at `at` become `new` (RFC 1624 eqn. 3). Words are
/// counted from `base`.
fn difference(frame: &[u8], base: usize, at: usize, new: &[u8], sum: u16) -> u16 {
    let start = at - (at - base) % 2;
    let end = at + new.len();
    let byte = |i: usize, is_new: bool| match i {
        i if is_new && (at..end).contains(&i) => new[i - at],
        i => frame.get(i).copied().unwrap_or(0),
    };
    let word = |i: usize, is_new: bool| u16::from_be_bytes([byte(i, is_new), byte(i + 1, is_new)]);
    (start..end).step_by(2).fold(sum, |sum, i| checksum::update(sum, word(i, false), word(i, true)))
}

/// Keeps the bits of `keep` in the big-endian word at `at` and sets those of `value`.
fn merge(frame: &mut [u8], at: usize, keep: u16, value: u16) {
    let old = u16::from_be_bytes([frame[at], frame[at + 1]]);
    frame[at..at + 2].copy_from_slice(&(old & keep | value & !keep).to_be_bytes());
}

/// Returns whether the frame has a complete VLAN tag.
fn is_tagged(headers: &Headers) -> bool {
    headers.l2_len > 14 && headers.network != NetworkLayer::Malformed(Malformed::Ethernet)
}

/// Returns the offset of the outermost MPLS entry.
fn outer_label(frame: &[u8], headers: &Headers) -> Option<usize> {
    let is_mpls = matches!(headers.ethertype, ethertype::MPLS | ethertype::MPLS_UPSTREAM);
    (is_mpls && frame.len() >= headers.l2_len + 4).then_some(headers.l2_len)
}

/// Returns the offset of the outermost I-TAG.
fn service_tag(frame: &[u8], headers: &Headers) -> Option<usize> {
    (headers.ethertype == ETHERTYPE_PBB && frame.len() >= headers.l2_len + 4).then_some(headers.l2_len)
}

/// The offset of a TTL byte and of the checksum that covers it, which is an even number of bytes
/// away.
struct InnerTtl {
    at: usize,
    checksum: Option<usize>,
}

/// Returns the TTL behind the MPLS entry at `outer`: that of the next entry, or of what looks like
/// an IP header.
fn inner_ttl(frame: &[u8], outer: usize) -> Option<InnerTtl> {
    let next = outer + 4;
    if frame[outer + 2] & 1 == 0 {
        return (frame.len() >= next + 4).then_some(InnerTtl { at: next + 3, checksum: None });
    }
    match frame.get(next)? >> 4 {
        4 if frame.len() >= next + 20 => Some(InnerTtl { at: next + 8, checksum: Some(next + 10) }),
        6 if frame.len() >= next + 40 => Some(InnerTtl { at: next + 7, checksum: None }),
        _ => None,
    }
}

/// Returns the offset of the next-header byte that names the transport protocol.
fn last_next_header(frame: &[u8], ip: &Ipv6) -> usize {
    let mut at = ip.offset + 6;
    for (start, kind) in extensions(frame, ip) {
        debug_assert_eq!(frame[at], kind);
        at = start;
    }
    at
}

/// Returns whether a routing header has segments left.
fn is_source_routed(frame: &[u8], ip: &Ipv6) -> bool {
    extensions(frame, ip)
        .any(|(start, kind)| kind == 43 && frame.get(start + 3).is_some_and(|left| *left != 0))
}

/// Returns the offset and type of each extension header that [`Headers::parse`] visited.
fn extensions(frame: &[u8], ip: &Ipv6) -> impl Iterator<Item = (usize, u8)> {
    let (mut at, mut kind, end) = (ip.offset + 40, frame[ip.offset + 6], ip.payload_offset);
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let found = (at, kind);
        let len = usize::from(frame[at + 1]);
        at += match kind {
            51 => (len + 2) * 4,
            44 => 8,
            _ => (len + 1) * 8,
        };
        kind = frame[found.0];
        Some(found)
    })
}

/// Sets a port of the SCTP packet at `start..end`, and its CRC32c if that was right (RFC 9260
/// §6.8).
fn set_sctp(frame: &mut [u8], start: usize, end: usize, at: usize, port: u16) {
    let packet = &mut frame[start..end];
    let was_right = packet.get(sctp::CHECKSUM).is_some_and(|found| found == sctp::checksum(packet));
    packet[at..at + 2].copy_from_slice(&port.to_be_bytes());
    if was_right {
        let sum = sctp::checksum(packet);
        packet[sctp::CHECKSUM].copy_from_slice(&sum);
    }
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
