//! Builds whole frames from fields, with correct lengths and checksums. Probes, tests and the
//! messages of routers are built this way.
//!
//! IP options, TCP options and IPv6 extension headers are not supported.

use crate::bytes::put16;
use crate::checksum::{self, Sum};
use crate::{MacAddr, ethertype, protocol};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The Ethernet and IP fields of a frame to build. Start with [`Ip::between`] and replace single
/// fields: `Ip { ttl: 1, ..Ip::between(a, b) }`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ip {
    /// Source MAC.
    pub src_mac: MacAddr,
    /// Destination MAC.
    pub dst_mac: MacAddr,
    /// Source and destination address.
    pub addresses: Addresses,
    /// TTL or hop limit.
    pub ttl: u8,
    /// TOS or traffic class: DSCP « 2 | ECN.
    pub traffic_class: u8,
    /// IPv4 identification; ignored for IPv6.
    pub id: u16,
    /// The DF flag of IPv4; ignored for IPv6.
    pub dont_fragment: bool,
}

/// Source and destination address of one address family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Addresses {
    /// IPv4.
    V4 {
        /// Source.
        src: Ipv4Addr,
        /// Destination.
        dst: Ipv4Addr,
    },
    /// IPv6.
    V6 {
        /// Source.
        src: Ipv6Addr,
        /// Destination.
        dst: Ipv6Addr,
    },
}

/// The TCP fields of a frame to build.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tcp {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number of the first payload byte.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// The flag byte, CWR to FIN (see [`tcp_flags`]).
    pub flags: u8,
    /// Window, unscaled.
    pub window: u16,
}

/// Bits of the TCP flag byte (RFC 9293 §3.1).
pub mod tcp_flags {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronise sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement number is valid.
    pub const ACK: u8 = 0x10;
    /// The urgent pointer is valid.
    pub const URG: u8 = 0x20;
    /// ECN echo (RFC 3168).
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u8 = 0x80;
}

impl Addresses {
    /// Returns both addresses, or `None` if their families differ.
    pub fn new(src: IpAddr, dst: IpAddr) -> Option<Addresses> {
        match (src, dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => Some(Addresses::V4 { src, dst }),
            (IpAddr::V6(src), IpAddr::V6(dst)) => Some(Addresses::V6 { src, dst }),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => None,
        }
    }

    fn pseudo_header(self, protocol: u8, len: usize) -> Sum {
        match self {
            Addresses::V4 { src, dst } => Sum::pseudo_v4(src, dst, protocol, len as u32),
            Addresses::V6 { src, dst } => Sum::pseudo_v6(src, dst, protocol, len as u32),
        }
    }
}

impl Ip {
    /// Returns the fields of a frame between two stations, each given by MAC and IP address: TTL
    /// 64, DF set, everything else 0. Panics if the address families differ.
    pub fn between(src: (MacAddr, IpAddr), dst: (MacAddr, IpAddr)) -> Ip {
        let addresses = Addresses::new(src.1, dst.1);
        Ip {
            src_mac: src.0,
            dst_mac: dst.0,
            addresses: addresses
                .unwrap_or_else(|| panic!("{} and {} have different address families", src.1, dst.1)),
            ttl: 64,
            traffic_class: 0,
            id: 0,
            dont_fragment: true,
        }
    }

    /// Returns the length of the IP header, bytes.
    pub fn header_len(&self) -> usize {
        match self.addresses {
            Addresses::V4 { .. } => 20,
            Addresses::V6 { .. } => 40,
        }
    }

    /// Returns the address they are sent to.
    pub fn destination(&self) -> IpAddr {
        match self.addresses {
            Addresses::V4 { dst, .. } => dst.into(),
            Addresses::V6 { dst, .. } => dst.into(),
        }
    }

    /// Builds a frame with `payload` after the IP header. Like the other builders, it panics if the
    /// packet would exceed 65 535 bytes.
    pub fn packet(&self, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = self.start(protocol, payload.len());
        frame.extend_from_slice(payload);
        frame
    }

    /// Builds a UDP datagram.
    pub fn udp(&self, src_port: u16, dst_port: u16, payload: &[u8]) -> Vec<u8> {
        let len = 8 + payload.len();
        let mut frame = self.start(protocol::UDP, len);
        let at = frame.len();
        for field in [src_port, dst_port, len as u16, 0] {
            frame.extend(field.to_be_bytes());
        }
        frame.extend_from_slice(payload);
        let sum = self.addresses.pseudo_header(protocol::UDP, len).bytes(&frame[at..]).udp_checksum();
        put16(&mut frame, at + 6, sum);
        frame
    }

    /// Builds a TCP segment without options.
    pub fn tcp(&self, tcp: &Tcp, payload: &[u8]) -> Vec<u8> {
        let len = 20 + payload.len();
        let mut frame = self.start(protocol::TCP, len);
        let at = frame.len();
        frame.extend(tcp.src_port.to_be_bytes());
        frame.extend(tcp.dst_port.to_be_bytes());
        frame.extend(tcp.seq.to_be_bytes());
        frame.extend(tcp.ack.to_be_bytes());
        frame.extend([5 << 4, tcp.flags]);
        frame.extend(tcp.window.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend_from_slice(payload);
        let sum = self.addresses.pseudo_header(protocol::TCP, len).bytes(&frame[at..]).checksum();
        put16(&mut frame, at + 16, sum);
        frame
    }

    /// Builds an ICMP or ICMPv6 echo request, depending on the address family.
    pub fn echo_request(&self, id: u16, seq: u16, payload: &[u8]) -> Vec<u8> {
        let kind = match self.addresses {
            Addresses::V4 { .. } => 8,
            Addresses::V6 { .. } => 128,
        };
        self.icmp(kind, 0, u32::from(id) << 16 | u32::from(seq), payload)
    }

    /// Builds an ICMP or ICMPv6 echo reply, depending on the address family.
    pub fn echo_reply(&self, id: u16, seq: u16, payload: &[u8]) -> Vec<u8> {
        let kind = match self.addresses {
            Addresses::V4 { .. } => 0,
            Addresses::V6 { .. } => 129,
        };
        self.icmp(kind, 0, u32::from(id) << 16 | u32::from(seq), payload)
    }

    /// Builds an ICMP message of any type; `word` is the second word of its header.
    pub(crate) fn icmp(&self, kind: u8, code: u8, word: u32, body: &[u8]) -> Vec<u8> {
        let len = 8 + body.len();
        let (protocol, pseudo) = match self.addresses {
            Addresses::V4 { .. } => (protocol::ICMP, Sum::ZERO),
            Addresses::V6 { .. } => (protocol::ICMPV6, self.addresses.pseudo_header(protocol::ICMPV6, len)),
        };
        let mut frame = self.start(protocol, len);
        let at = frame.len();
        frame.extend([kind, code, 0, 0]);
        frame.extend(word.to_be_bytes());
        frame.extend_from_slice(body);
        let sum = pseudo.bytes(&frame[at..]).checksum();
        put16(&mut frame, at + 2, sum);
        frame
    }

    /// Returns the Ethernet and IP headers of a packet with `payload_len` bytes of payload.
    fn start(&self, protocol: u8, payload_len: usize) -> Vec<u8> {
        let mut frame = Vec::with_capacity(54 + payload_len);
        frame.extend(self.dst_mac.0);
        frame.extend(self.src_mac.0);
        match self.addresses {
            Addresses::V4 { src, dst } => {
                let total_len =
                    u16::try_from(20 + payload_len).expect("an IPv4 packet has at most 65535 bytes");
                frame.extend(ethertype::IPV4.to_be_bytes());
                frame.extend([0x45, self.traffic_class]);
                frame.extend(total_len.to_be_bytes());
                frame.extend(self.id.to_be_bytes());
                frame.extend([if self.dont_fragment { 0x40 } else { 0 }, 0, self.ttl, protocol, 0, 0]);
                frame.extend(src.octets());
                frame.extend(dst.octets());
                let sum = checksum::of(&frame[14..]);
                put16(&mut frame, 24, sum);
            }
            Addresses::V6 { src, dst } => {
                let len = u16::try_from(payload_len)
                    .expect("an IPv6 packet has at most 65535 bytes after its header");
                frame.extend(ethertype::IPV6.to_be_bytes());
                frame.extend((6 << 28 | u32::from(self.traffic_class) << 20).to_be_bytes());
                frame.extend(len.to_be_bytes());
                frame.extend([protocol, self.ttl]);
                frame.extend(src.octets());
                frame.extend(dst.octets());
            }
        }
        frame
    }
}

/// Builds an Ethernet frame of any EtherType.
pub fn ethernet(src: MacAddr, dst: MacAddr, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&dst.0[..], &src.0, &ethertype.to_be_bytes(), payload].concat()
}

/// Replaces both MACs of a frame, as a router does. Panics if the frame is shorter than 12 bytes.
pub fn set_macs(frame: &mut [u8], src: MacAddr, dst: MacAddr) {
    frame[..6].copy_from_slice(&dst.0);
    frame[6..12].copy_from_slice(&src.0);
}
