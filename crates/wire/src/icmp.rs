//! ICMP and ICMPv6 messages of routers: errors about a frame, and echo replies.
//!
//! An [`IcmpError`] stands for the error message of both address families; the offending frame
//! determines the family. Rate limiting (RFC 4443 §2.4f, RFC 1812 §4.3.2.8) needs a clock and is
//! left to the caller. Read first: RFC 1812 §4.3.2, RFC 4443 §2.4 and §3.

use crate::build::Ip;
use crate::bytes::be32;
use crate::checksum::{self, ChecksumStatus};
use crate::{Headers, Ipv4, Ipv6, MacAddr, NetworkLayer, protocol};
use std::net::{IpAddr, Ipv4Addr};

/// Why a packet could not be delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum IcmpError {
    /// The TTL or hop limit expired: ICMP 11/0, ICMPv6 3/0.
    HopLimit,
    /// There is no route to the destination: ICMP 3/0, ICMPv6 1/0.
    NoRoute,
    /// The destination does not answer ARP or Neighbor Discovery: ICMP 3/1, ICMPv6 1/3.
    HostUnreachable,
    /// The packet is addressed to a port of the router, which is closed: ICMP 3/3, ICMPv6 1/4.
    PortUnreachable,
    /// The IP packet exceeds the MTU of the next link: ICMP 3/4, ICMPv6 2/0.
    TooBig {
        /// The MTU to report, in bytes of IP packet (RFC 1191, RFC 8201).
        mtu: u32,
    },
}

/// The maximum size of an ICMP error datagram over IPv4 (RFC 1812 §4.3.2.3).
const V4_BYTES_MAX: usize = 576;
/// The maximum size of an ICMPv6 error packet: the minimum IPv6 MTU (RFC 4443 §2.4c).
const V6_BYTES_MAX: usize = 1280;

/// Builds the error message about `frame` for its sender, with the VLAN tags of `frame`. Returns
/// `None` if no error may be sent ([`may_answer`]) or if `from` has another address family.
/// `headers` must be those of `frame`. `from` is the router interface that received the frame.
pub fn error(
    frame: &[u8],
    headers: &Headers,
    problem: IcmpError,
    from: (MacAddr, IpAddr),
) -> Option<Vec<u8>> {
    if !may_answer(frame, headers, problem) {
        return None;
    }
    let (to, start, end, quote_max) = match headers.network {
        NetworkLayer::Ipv4(ip) => (IpAddr::V4(ip.src), ip.offset, ip.end(), V4_BYTES_MAX - 28),
        NetworkLayer::Ipv6(ip) => (IpAddr::V6(ip.src), ip.offset, ip.end(), V6_BYTES_MAX - 48),
        _ => return None,
    };
    if to.is_ipv4() != from.1.is_ipv4() {
        return None;
    }
    let quote = &frame[start..end.min(frame.len()).min(start + quote_max)];
    let (kind, code, word) = if to.is_ipv4() { problem.in_v4() } else { problem.in_v6() };
    // RFC 1812 §4.3.2.5: precedence INTERNETWORK CONTROL.
    let traffic_class = if to.is_ipv4() { 0xc0 } else { 0 };
    let ip = Ip { traffic_class, dont_fragment: false, ..Ip::between(from, (headers.src, to)) };
    Some(tagged_like(frame, headers, ip.icmp(kind, code, word, quote)))
}

/// Returns whether an error about `frame` may be sent (RFC 1122 §3.2.2, RFC 1812 §4.3.2.7, RFC 4443
/// §2.4e). It may not be sent about an ICMP error, a broadcast, a multicast (except ICMPv6
/// packet-too-big), a later IPv4 fragment, or a packet whose source is not a single host. The
/// caller must check for the directed broadcast of a subnet.
pub fn may_answer(frame: &[u8], headers: &Headers, problem: IcmpError) -> bool {
    match headers.network {
        NetworkLayer::Ipv4(ip) => !headers.dst.is_multicast() && may_answer_v4(frame, &ip),
        NetworkLayer::Ipv6(ip) => {
            let to_group = headers.dst.is_multicast() || ip.dst.is_multicast();
            (!to_group || matches!(problem, IcmpError::TooBig { .. })) && may_answer_v6(frame, &ip)
        }
        NetworkLayer::Arp | NetworkLayer::Other | NetworkLayer::Malformed(_) => false,
    }
}

/// Builds the reply to an echo request, with the VLAN tags of the request. The source of the reply
/// is the destination of the request. Returns `None` for other packets, fragments, wrong checksums,
/// and multicast sources or destinations.
pub fn echo_reply(frame: &[u8], headers: &Headers) -> Option<Vec<u8>> {
    let (start, end, request) = match headers.network {
        NetworkLayer::Ipv4(ip) if ip.protocol == protocol::ICMP && may_answer_v4(frame, &ip) => {
            (ip.payload_offset(), ip.end(), 8)
        }
        NetworkLayer::Ipv6(ip) if ip.protocol == protocol::ICMPV6 && may_answer_v6(frame, &ip) => {
            (ip.payload_offset, ip.end(), 128)
        }
        _ => return None,
    };
    let (src, dst) = headers.addresses()?;
    if headers.dst.is_multicast()
        || dst.is_multicast()
        || checksum::check_transport(frame, headers) != ChecksumStatus::Good
    {
        return None;
    }
    let message = frame.get(start..end)?;
    if message.len() < 8 || message[0] != request || message[1] != 0 {
        return None;
    }
    let word = be32(message, 4)?;
    let ip = Ip {
        traffic_class: headers.traffic_class(),
        dont_fragment: false,
        ..Ip::between((headers.dst, dst), (headers.src, src))
    };
    let reply = ip.echo_reply((word >> 16) as u16, word as u16, &message[8..]);
    Some(tagged_like(frame, headers, reply))
}

impl IcmpError {
    /// Returns type, code and second header word (RFC 792, RFC 1191 §4).
    fn in_v4(self) -> (u8, u8, u32) {
        match self {
            IcmpError::HopLimit => (11, 0, 0),
            IcmpError::NoRoute => (3, 0, 0),
            IcmpError::HostUnreachable => (3, 1, 0),
            IcmpError::PortUnreachable => (3, 3, 0),
            IcmpError::TooBig { mtu } => (3, 4, mtu.min(0xffff)),
        }
    }

    /// Returns type, code and second header word (RFC 4443 §3).
    fn in_v6(self) -> (u8, u8, u32) {
        match self {
            IcmpError::HopLimit => (3, 0, 0),
            IcmpError::NoRoute => (1, 0, 0),
            IcmpError::HostUnreachable => (1, 3, 0),
            IcmpError::PortUnreachable => (1, 4, 0),
            IcmpError::TooBig { mtu } => (2, 0, mtu),
        }
    }
}

fn may_answer_v4(frame: &[u8], ip: &Ipv4) -> bool {
    // Queries and replies. Unknown ICMP types count as errors, as in Linux.
    let is_query = |kind: &u8| matches!(*kind, 0 | 8..=10 | 13..=18 | 42 | 43);
    let icmp_error = ip.protocol == protocol::ICMP && !frame.get(ip.payload_offset()).is_some_and(is_query);
    let src_is_one_host =
        ip.src.octets()[0] != 0 && !ip.src.is_loopback() && ip.src < Ipv4Addr::new(224, 0, 0, 0);
    // 224.0.0.0 and above: multicast, class E and 255.255.255.255.
    let dst_is_one_host = ip.dst < Ipv4Addr::new(224, 0, 0, 0);
    ip.fragment_offset == 0 && src_is_one_host && dst_is_one_host && !icmp_error
}

fn may_answer_v6(frame: &[u8], ip: &Ipv6) -> bool {
    // RFC 4443 §2.4e has no rule about fragments. A later fragment of an ICMPv6 message does not
    // contain the type, so it counts as an error.
    let is_informational = |kind: &u8| *kind >= 128 && *kind != 137 && ip.fragment_offset == 0;
    let icmp_error =
        ip.protocol == protocol::ICMPV6 && !frame.get(ip.payload_offset).is_some_and(is_informational);
    let src_is_one_host = !ip.src.is_unspecified() && !ip.src.is_loopback() && !ip.src.is_multicast();
    src_is_one_host && !icmp_error
}

/// Inserts the VLAN tags of `frame` into the untagged frame `answer`.
fn tagged_like(frame: &[u8], headers: &Headers, mut answer: Vec<u8>) -> Vec<u8> {
    answer.splice(12..12, frame[12..headers.l2_len - 2].iter().copied());
    answer
}
