//! Translates the addresses and ports of IPv4 packets, as a NAT does (RFC 3022 §4), also in the
//! packet that an ICMP error quotes (RFC 5508 §4).
//!
//! All checksums are updated incrementally (RFC 1624), so a wrong checksum stays wrong. The
//! identifier of an ICMP query stands for a port: of the source in a request, of the destination in
//! a reply.

use crate::bytes::{be16, put16, v4};
use crate::checksum::{self, ChecksumStatus};
use crate::{Headers, Ipv4, NetworkLayer, protocol};
use std::net::{Ipv4Addr, SocketAddrV4};

/// The endpoints of an IPv4 packet that has ports, or an identifier in place of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowAddresses {
    /// The kind of the packet.
    pub content: Content,
    /// The source. The port is 0 in ICMP errors and replies.
    pub src: SocketAddrV4,
    /// The destination. The port is 0 in ICMP errors and requests.
    pub dst: SocketAddrV4,
}

/// What a packet is to a NAT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// A UDP datagram.
    Udp,
    /// A TCP segment.
    Tcp {
        /// Its flags ([`crate::build::tcp_flags`]).
        flags: u8,
    },
    /// An ICMP query, such as an echo request.
    IcmpRequest,
    /// The reply to an ICMP query.
    IcmpReply,
    /// An ICMP error, which quotes a packet.
    IcmpError,
}

/// What to write in place of the endpoints of a packet. `None` leaves an endpoint as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rewrite {
    /// The new source.
    pub src: Option<SocketAddrV4>,
    /// The new destination.
    pub dst: Option<SocketAddrV4>,
}

/// The packet that an ICMP error quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quoted {
    /// Its endpoints.
    pub flow: FlowAddresses,
    packet: Packet,
}

/// Where an IPv4 packet, or the beginning of one, is in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Packet {
    offset: usize,
    payload: usize,
    end: usize,
    protocol: u8,
    /// Whether the transport header is here: not in a later fragment.
    is_first: bool,
}

impl Packet {
    fn of(ip: &Ipv4) -> Packet {
        Packet {
            offset: ip.offset,
            payload: ip.payload_offset(),
            end: ip.end(),
            protocol: ip.protocol,
            is_first: ip.fragment_offset == 0,
        }
    }

    fn flow(&self, frame: &[u8], src: Ipv4Addr, dst: Ipv4Addr) -> Option<FlowAddresses> {
        let bytes = frame.get(self.payload..self.end.min(frame.len())).filter(|_| self.is_first)?;
        let ports = |content| {
            let (from, to) = (be16(bytes, 0)?, be16(bytes, 2)?);
            Some(FlowAddresses {
                content,
                src: SocketAddrV4::new(src, from),
                dst: SocketAddrV4::new(dst, to),
            })
        };
        match self.protocol {
            protocol::UDP => ports(Content::Udp),
            // A quoted segment may end before its flags.
            protocol::TCP => ports(Content::Tcp { flags: bytes.get(13).copied().unwrap_or_default() }),
            protocol::ICMP => {
                let content = Content::of_icmp(*bytes.first()?)?;
                let id = if content == Content::IcmpError { 0 } else { be16(bytes, 4)? };
                let [from, to] = if content == Content::IcmpRequest { [id, 0] } else { [0, id] };
                Some(FlowAddresses {
                    content,
                    src: SocketAddrV4::new(src, from),
                    dst: SocketAddrV4::new(dst, to),
                })
            }
            _ => None,
        }
    }

    fn rewrite(&self, frame: &mut [u8], rewrite: &Rewrite) {
        let transport = match self.protocol {
            protocol::TCP => Some(self.payload + 16),
            protocol::UDP if be16(frame, self.payload + 6) != Some(0) => Some(self.payload + 6),
            protocol::ICMP => Some(self.payload + 2),
            _ => None,
        };
        let transport = transport.filter(|at| self.is_first && at + 2 <= self.end.min(frame.len()));
        let is_icmp = self.protocol == protocol::ICMP;
        for (place, endpoint) in [rewrite.src, rewrite.dst].into_iter().enumerate() {
            let Some(endpoint) = endpoint else { continue };
            let address = self.offset + 12 + 4 * place;
            let bits = endpoint.ip().to_bits();
            for (at, word) in [(address, (bits >> 16) as u16), (address + 2, bits as u16)] {
                let old = be16(frame, at).unwrap_or_default();
                put16(frame, at, word);
                self.update(frame, Some(self.offset + 10), old, word);
                // ICMP has no pseudo-header.
                self.update(frame, transport.filter(|_| !is_icmp), old, word);
            }
            let port = match (is_icmp, frame.get(self.payload).copied().and_then(Content::of_icmp)) {
                (false, _) => Some(self.payload + 2 * place),
                (true, Some(Content::IcmpRequest)) if place == 0 => Some(self.payload + 4),
                (true, Some(Content::IcmpReply)) if place == 1 => Some(self.payload + 4),
                (true, _) => None,
            };
            if let Some(at) = port.filter(|at| self.is_first && at + 2 <= self.end.min(frame.len())) {
                let old = be16(frame, at).unwrap_or_default();
                put16(frame, at, endpoint.port());
                self.update(frame, transport, old, endpoint.port());
            }
        }
    }

    /// Updates the checksum at `at` for a field that changed.
    fn update(&self, frame: &mut [u8], at: Option<usize>, old: u16, new: u16) {
        let Some((at, sum)) = at.and_then(|at| Some((at, be16(frame, at)?))) else { return };
        let updated = checksum::update(sum, old, new);
        // RFC 768: 0 means that there is no checksum.
        let is_udp = self.protocol == protocol::UDP && at == self.payload + 6;
        put16(frame, at, if is_udp && updated == 0 { 0xffff } else { updated });
    }
}

impl Content {
    /// RFC 792, RFC 950: what an ICMP message of this type is. `None`: neither query nor error.
    fn of_icmp(kind: u8) -> Option<Content> {
        match kind {
            8 | 13 | 15 | 17 => Some(Content::IcmpRequest),
            0 | 14 | 16 | 18 => Some(Content::IcmpReply),
            3 | 4 | 11 | 12 => Some(Content::IcmpError),
            _ => None,
        }
    }
}

impl FlowAddresses {
    /// Returns the endpoints of a packet. `None` if it is not IPv4, a later fragment, too short, or
    /// of another protocol than TCP, UDP and ICMP.
    pub fn of(frame: &[u8], headers: &Headers) -> Option<FlowAddresses> {
        let NetworkLayer::Ipv4(ip) = headers.network else { return None };
        let flow = Packet::of(&ip).flow(frame, ip.src, ip.dst)?;
        let has_flags = ip.end() >= ip.payload_offset() + 14;
        (has_flags || !matches!(flow.content, Content::Tcp { .. })).then_some(flow)
    }
}

impl Rewrite {
    /// Writes the new endpoints into a packet. Of a later fragment only the addresses are written.
    /// `headers` are those of the packet as it is.
    pub fn apply(&self, frame: &mut [u8], headers: &Headers) {
        if let NetworkLayer::Ipv4(ip) = headers.network {
            Packet::of(&ip).rewrite(frame, self);
        }
    }
}

impl Quoted {
    /// Returns the packet that an ICMP error quotes. `None` if the message is a fragment, one of
    /// its checksums is wrong (RFC 5508 REQ-3), or the quoted packet has no ports.
    pub fn of(frame: &[u8], headers: &Headers) -> Option<Quoted> {
        let NetworkLayer::Ipv4(ip) = headers.network else { return None };
        let offset = ip.payload_offset() + 8;
        let is_good = checksum::check_transport(frame, headers) == ChecksumStatus::Good;
        let quoted = frame.get(offset..ip.end()).filter(|bytes| is_good && bytes.len() >= 20)?;
        let header_len = usize::from(quoted[0] & 0xf) * 4;
        if quoted[0] >> 4 != 4 || header_len < 20 || checksum::of(quoted.get(..header_len)?) != 0 {
            return None;
        }
        let packet = Packet {
            offset,
            payload: offset + header_len,
            end: ip.end(),
            protocol: quoted[9],
            is_first: be16(quoted, 6)? & 0x1fff == 0,
        };
        Some(Quoted { flow: packet.flow(frame, v4(quoted, 12)?, v4(quoted, 16)?)?, packet })
    }

    /// Writes new endpoints into the quoted packet, and `outer` into the ICMP error around it.
    pub fn rewrite(&self, frame: &mut [u8], headers: &Headers, quoted: &Rewrite, outer: &Rewrite) {
        let NetworkLayer::Ipv4(ip) = headers.network else { return };
        self.packet.rewrite(frame, quoted);
        outer.apply(frame, headers);
        // The checksum was right: see `of`.
        put16(frame, ip.payload_offset() + 2, 0);
        let sum = checksum::of(&frame[ip.payload_offset()..ip.end()]);
        put16(frame, ip.payload_offset() + 2, sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{Ip, Tcp};
    use crate::icmp::{self, IcmpError};
    use crate::{MacAddr, checksum::check_transport};
    use proptest::prelude::*;

    fn end(text: &str) -> SocketAddrV4 {
        text.parse().unwrap()
    }

    fn between(src: Ipv4Addr, dst: Ipv4Addr) -> Ip {
        let [from, to] = [1, 2].map(MacAddr::from_index);
        Ip { id: 7, dont_fragment: false, ..Ip::between((from, src.into()), (to, dst.into())) }
    }

    /// A packet of one of the protocols with these endpoints.
    fn packet(kind: usize, src: SocketAddrV4, dst: SocketAddrV4, payload: &[u8]) -> Vec<u8> {
        let ip = between(*src.ip(), *dst.ip());
        match kind {
            0 => ip.udp(src.port(), dst.port(), payload),
            1 => {
                let tcp = Tcp { src_port: src.port(), dst_port: dst.port(), ..Tcp::default() };
                ip.tcp(&tcp, payload)
            }
            2 => ip.echo_request(src.port(), 3, payload),
            _ => ip.echo_reply(dst.port(), 3, payload),
        }
    }

    proptest! {
        #[test]
        fn a_translated_packet_is_the_packet_built_with_the_new_endpoints(
            kind in 0usize..4, src: [u32; 2], dst: [u32; 2], ports: [u16; 4], which in 0usize..4,
            payload in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let ends = |i: usize| {
                let end = |address: u32, port: u16| SocketAddrV4::new(address.into(), port);
                (end(src[i], ports[2 * i]), end(dst[i], ports[2 * i + 1]))
            };
            let ((old_src, old_dst), (new_src, new_dst)) = (ends(0), ends(1));
            let rewrite = Rewrite { src: (which & 1 > 0).then_some(new_src), dst: (which & 2 > 0).then_some(new_dst) };
            let mut frame = packet(kind, old_src, old_dst, &payload);
            let headers = Headers::parse(&frame);
            rewrite.apply(&mut frame, &headers);
            let built = packet(kind, rewrite.src.unwrap_or(old_src), rewrite.dst.unwrap_or(old_dst), &payload);
            let (now, wanted) = (Headers::parse(&frame), Headers::parse(&built));
            prop_assert_eq!(now.addresses(), wanted.addresses());
            prop_assert_eq!(FlowAddresses::of(&frame, &now), FlowAddresses::of(&built, &wanted));
            prop_assert_eq!(now.ipv4_checksum_ok(&frame), Some(true));
            prop_assert_eq!(check_transport(&frame, &now), check_transport(&built, &wanted));
            // The two zeros of ones-complement arithmetic are equal; all other bytes are too.
            let differ = frame.iter().zip(&built).filter(|(a, b)| a != b && !matches!((a, b), (0 | 255, 0 | 255)));
            prop_assert_eq!(differ.count(), 0);
        }

        #[test]
        fn random_bytes_are_translated_without_a_crash(
            mut frame in proptest::collection::vec(any::<u8>(), 14..120), is_icmp: bool,
        ) {
            frame[12..14].copy_from_slice(&[8, 0]);
            if frame.len() > 24 {
                frame[14] = 0x45;
                let len = (frame.len() - 14) as u16;
                put16(&mut frame, 16, len);
                frame[23] = if is_icmp { 1 } else { 6 };
            }
            let headers = Headers::parse(&frame);
            let (a, b) = (end("10.0.0.1:1"), end("192.0.2.1:2"));
            let both = Rewrite { src: Some(a), dst: Some(b) };
            if let Some(quoted) = Quoted::of(&frame, &headers) {
                quoted.rewrite(&mut frame, &headers, &both, &both);
            }
            let _ = FlowAddresses::of(&frame, &headers);
            both.apply(&mut frame, &headers);
        }
    }

    #[test]
    fn the_quoted_packet_of_an_icmp_error_is_translated_with_its_checksums() {
        let (inside, outside, remote) = (end("10.0.0.5:700"), end("192.0.2.1:4000"), end("198.51.100.9:53"));
        let router = (MacAddr::from_index(9), "203.0.113.1".parse().unwrap());
        for kind in 0..3 {
            let remote = if kind == 2 { SocketAddrV4::new(*remote.ip(), 0) } else { remote };
            let sent = packet(kind, outside, remote, &[1; 600]);
            let mut frame = icmp::error(&sent, &Headers::parse(&sent), IcmpError::HopLimit, router).unwrap();
            let headers = Headers::parse(&frame);
            let quoted = Quoted::of(&frame, &headers).unwrap();
            assert_eq!((quoted.flow.src, quoted.flow.dst), (outside, remote));
            let back = Rewrite { src: Some(inside), dst: None };
            let to = Rewrite { src: None, dst: Some(SocketAddrV4::new(*inside.ip(), 0)) };
            quoted.rewrite(&mut frame, &headers, &back, &to);
            let original = packet(kind, inside, remote, &[1; 600]);
            let expected =
                icmp::error(&original, &Headers::parse(&original), IcmpError::HopLimit, router).unwrap();
            assert_eq!(frame, expected, "as if there were no NAT");
            frame[60] ^= 1;
            assert_eq!(Quoted::of(&frame, &Headers::parse(&frame)), None, "RFC 5508 REQ-3");
        }
    }

    #[test]
    fn a_later_fragment_keeps_its_bytes_and_an_absent_checksum_stays_absent() {
        let (a, b, c) = (end("10.0.0.1:1"), end("192.0.2.1:2"), end("203.0.113.7:99"));
        let whole = packet(0, a, b, &[7; 3000]);
        let fragments = crate::ipv4::fragment(&whole, 1500).unwrap();
        let mut later = fragments[1].clone();
        let headers = Headers::parse(&later);
        assert_eq!(FlowAddresses::of(&later, &headers), None);
        Rewrite { src: Some(c), dst: None }.apply(&mut later, &headers);
        assert_eq!(later[34..], fragments[1][34..]);
        assert_eq!(Headers::parse(&later).ipv4_checksum_ok(&later), Some(true));
        let mut absent = packet(0, a, b, &[7]);
        put16(&mut absent, 40, 0);
        let headers = Headers::parse(&absent);
        Rewrite { src: Some(c), dst: None }.apply(&mut absent, &headers);
        assert_eq!(be16(&absent, 40), Some(0));
    }
}
