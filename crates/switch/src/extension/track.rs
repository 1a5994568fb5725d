//! Frames as connection tracking sees them, and their translation by NAT.
//!
//! A frame that is not a whole IP packet cannot be tracked: fragments (the first too), packets of
//! ICMP that are neither query nor error, and packets that end inside their header. Checksums are
//! not verified: those of hosts on this machine are often not computed yet.

use crate::edit;
use crate::field::Field;
use crate::key::be;
use fastpath_conntrack::{FlowTuple, PacketKind, PacketView, TcpSegment, Translation};
use fastpath_wire::{Headers, NetworkLayer, checksum, protocol};

/// Bytes of a header of ICMP.
const ICMP_LEN: usize = 8;
/// Bytes of a header of UDP.
const UDP_LEN: usize = 8;

/// What a header of IP says.
pub(super) struct IpView {
    pub(super) tuple: FlowTuple,
    /// Where the next header begins, and where the packet ends.
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Returns what tracking needs to know; `None` if the frame cannot be tracked.
pub(crate) fn view(frame: &[u8]) -> Option<PacketView<'_>> {
    let headers = Headers::parse(frame);
    let IpView { tuple, start, end } = ip_of(&headers)?;
    let message = frame.get(start..end)?;
    if tuple.is_icmp() {
        return icmp(tuple, message);
    }
    let tuple = with_ports(tuple, message)?;
    let (kind, header_len) = match tuple.protocol {
        protocol::TCP => (PacketKind::Tcp(segment(message)?), usize::from(message[12] >> 4) * 4),
        _ => (PacketKind::Other, UDP_LEN),
    };
    Some(PacketView { tuple, kind, payload: message.get(header_len..).unwrap_or_default() })
}

pub(super) fn ip_of(headers: &Headers) -> Option<IpView> {
    let tuple = |src: u128, dst: u128, protocol: u8, is_v6: bool| FlowTuple {
        src,
        dst,
        protocol,
        is_v6,
        ..FlowTuple::default()
    };
    match headers.network {
        NetworkLayer::Ipv4(ip) if !ip.is_fragment() => Some(IpView {
            tuple: tuple(ip.src.to_bits().into(), ip.dst.to_bits().into(), ip.protocol, false),
            start: ip.payload_offset(),
            end: ip.end(),
        }),
        NetworkLayer::Ipv6(ip) if !ip.is_fragment() => Some(IpView {
            tuple: tuple(ip.src.to_bits(), ip.dst.to_bits(), ip.protocol, true),
            start: ip.payload_offset,
            end: ip.end(),
        }),
        _ => None,
    }
}

/// Adds the ports, for protocols that have them.
fn with_ports(tuple: FlowTuple, message: &[u8]) -> Option<FlowTuple> {
    if !matches!(tuple.protocol, protocol::TCP | protocol::UDP | protocol::SCTP) {
        return Some(tuple);
    }
    // Eight bytes is what an error repeats (RFC 792); UDP has no more.
    if message.len() < 8 {
        return None;
    }
    let (src_port, dst_port) = (be(message, 0, 2)? as u16, be(message, 2, 2)? as u16);
    Some(FlowTuple { src_port, dst_port, ..tuple })
}

fn segment(message: &[u8]) -> Option<TcpSegment> {
    let number = |at, len| be(message, at, len);
    let word = number(12, 2)? as u16;
    let header_len = usize::from(word >> 12) * 4;
    let options = message.get(20..header_len)?;
    Some(TcpSegment {
        flags: word & 0x1ff,
        seq: number(4, 4)? as u32,
        ack: number(8, 4)? as u32,
        window: number(14, 2)? as u16,
        len: (message.len() - header_len) as u32,
        scale: scale(options),
    })
}

/// Returns the shift of the window scale option (RFC 7323 §2.2).
fn scale(options: &[u8]) -> Option<u8> {
    let mut rest = options;
    // Options have at least one byte, so this ends.
    while let Some((&kind, after)) = rest.split_first() {
        match (kind, after) {
            (0, _) => return None,
            (1, _) => rest = after,
            (3, [3, shift, ..]) => return Some(*shift),
            (_, [len, ..]) => rest = rest.get(usize::from(*len).max(2)..)?,
            (_, []) => return None,
        }
    }
    None
}

/// Reads a packet of ICMP: a query, or an error about another packet.
fn icmp(tuple: FlowTuple, message: &[u8]) -> Option<PacketView<'static>> {
    let header: &[u8; ICMP_LEN] = message.first_chunk()?;
    let (kind, code) = (header[0], header[1]);
    let query = query(tuple, header);
    if query.is_query() {
        // RFC 792, RFC 4443: these have the code 0.
        return (code == 0).then_some(PacketView { tuple: query, kind: PacketKind::Other, payload: &[] });
    }
    let is_error = if tuple.is_v6 { matches!(kind, 1..=4) } else { matches!(kind, 3 | 4 | 5 | 11 | 12) };
    let inside = inner(&message[ICMP_LEN..], tuple.is_v6).filter(|_| is_error)?;
    // RFC 5508 §4.2: it is about a packet that the receiver sent.
    if inside.src != tuple.dst {
        return None;
    }
    Some(PacketView { tuple: inside.reversed(), kind: PacketKind::IcmpError, payload: &[] })
}

/// Returns the tuple of a query of ICMP.
fn query(tuple: FlowTuple, header: &[u8; ICMP_LEN]) -> FlowTuple {
    let src_port = u16::from_be_bytes([header[4], header[5]]);
    let dst_port = u16::from_be_bytes([header[0], header[1]]);
    FlowTuple { src_port, dst_port, ..tuple }
}

/// Returns the tuple of the packet in an error, of which only the beginning is there.
fn inner(packet: &[u8], is_v6: bool) -> Option<FlowTuple> {
    let (tuple, start) = match is_v6 {
        // The packet may have no extension headers here.
        true if packet.first()? >> 4 == 6 => {
            let (src, dst) = (be(packet, 8, 16)?, be(packet, 24, 16)?);
            (FlowTuple { src, dst, protocol: packet[6], is_v6, ..FlowTuple::default() }, 40)
        }
        false if packet.first()? >> 4 == 4 => {
            let (src, dst) = (be(packet, 12, 4)?, be(packet, 16, 4)?);
            let is_later = be(packet, 6, 2)? & 0x1fff != 0;
            let start = usize::from(packet[0] & 0xf) * 4;
            if is_later || start < 20 {
                return None;
            }
            (FlowTuple { src, dst, protocol: packet[9], is_v6, ..FlowTuple::default() }, start)
        }
        _ => return None,
    };
    let message = packet.get(start..)?;
    if tuple.is_icmp() {
        return Some(query(tuple, message.first_chunk()?)).filter(|tuple| tuple.is_query());
    }
    with_ports(tuple, message)
}

/// Changes addresses and ports of a frame, and of the packet in an error.
pub(super) fn translate(frame: &mut [u8], translation: &Translation, is_error: bool) {
    let Translation { from, to } = *translation;
    let (src, dst) = match from.is_v6 {
        true => (Field::Ipv6Src, Field::Ipv6Dst),
        false => (Field::Ipv4Src, Field::Ipv4Dst),
    };
    if from.src != to.src {
        edit::set_field(frame, src, to.src);
    }
    if from.dst != to.dst {
        edit::set_field(frame, dst, to.dst);
    }
    if is_error {
        return translate_inside(frame, &to.reversed());
    }
    let (src, dst) = match to.protocol {
        protocol::TCP => (Field::TcpSrc, Field::TcpDst),
        protocol::UDP => (Field::UdpSrc, Field::UdpDst),
        protocol::SCTP => (Field::SctpSrc, Field::SctpDst),
        _ if to.is_icmp() && from.src_port != to.src_port => {
            return edit::set_covered(frame, 4, &to.src_port.to_be_bytes());
        }
        _ => return,
    };
    if from.src_port != to.src_port {
        edit::set_field(frame, src, to.src_port.into());
    }
    if from.dst_port != to.dst_port {
        edit::set_field(frame, dst, to.dst_port.into());
    }
}

/// Gives the packet in an error another tuple (RFC 5508 §4.2).
fn translate_inside(frame: &mut [u8], to: &FlowTuple) {
    let Some(IpView { start, end, .. }) = ip_of(&Headers::parse(frame)) else { return };
    let Some(old) = frame.get(start + ICMP_LEN..end) else { return };
    let mut packet = old.to_vec();
    let (header, len) = if to.is_v6 { (40, 16) } else { (usize::from(packet[0] & 0xf) * 4, 4) };
    let at = if to.is_v6 { 8 } else { 12 };
    let addresses = [&to.src.to_be_bytes()[16 - len..], &to.dst.to_be_bytes()[16 - len..]].concat();
    // The checksum of the transport is there if the error repeats enough.
    let sum = header
        + match to.protocol {
            protocol::TCP => 16,
            protocol::UDP => 6,
            _ => 2,
        };
    let has_sum = match to.protocol {
        protocol::TCP => true,
        protocol::UDP => be(&packet, sum, 2) != Some(0),
        _ => to.is_icmp(),
    };
    let sum = (has_sum && packet.len() >= sum + 2).then_some(sum);
    let of_addresses = sum.filter(|_| to.is_v6 || !to.is_icmp());
    let of_header = (!to.is_v6).then_some(10);
    write(&mut packet, at, &addresses, &[of_addresses, of_header]);
    match to.protocol {
        protocol::TCP | protocol::UDP => {
            let ports = u32::from(to.src_port) << 16 | u32::from(to.dst_port);
            write(&mut packet, header, &ports.to_be_bytes(), &[sum]);
        }
        // The checksum of SCTP (CRC32c) covers what an error does not repeat.
        protocol::SCTP => {
            let ports = u32::from(to.src_port) << 16 | u32::from(to.dst_port);
            write(&mut packet, header, &ports.to_be_bytes(), &[]);
        }
        _ if to.is_icmp() => write(&mut packet, header + 4, &to.src_port.to_be_bytes(), &[sum]),
        _ => {}
    }
    edit::set_covered(frame, ICMP_LEN, &packet);
}

/// Writes 16-bit words, and updates checksums that cover them (RFC 1624).
fn write(packet: &mut [u8], at: usize, new: &[u8], sums: &[Option<usize>]) {
    for sum_at in sums.iter().flatten() {
        let word = |bytes: &[u8], at: usize| be(bytes, at, 2).unwrap_or(0) as u16;
        let old = word(packet, *sum_at);
        let pairs = (0..new.len()).step_by(2).map(|i| (word(packet, at + i), word(new, i)));
        let sum = pairs.fold(old, |sum, (old, new)| checksum::update(sum, old, new));
        if let Some(place) = packet.get_mut(*sum_at..*sum_at + 2) {
            place.copy_from_slice(&sum.to_be_bytes());
        }
    }
    if let Some(place) = packet.get_mut(at..at + new.len()) {
        place.copy_from_slice(new);
    }
}
