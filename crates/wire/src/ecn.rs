//! Explicit congestion notification in the IP header (RFC 3168 §5).

use crate::{Headers, Network, ipv4, ipv6};

/// The two ECN bits of a traffic class: Congestion Experienced.
pub const CE: u8 = 0b11;

/// Whether a traffic class says that its sender understands marks (ECT(0), ECT(1) or already CE).
pub const fn is_capable(traffic_class: u8) -> bool {
    traffic_class & CE != 0
}

/// Marks a packet Congestion Experienced, updating an IPv4 header checksum incrementally. Packets
/// that are not ECN-capable, and frames that are not IP, stay as they are. `headers` are those of
/// `frame`.
pub fn set_ce(frame: &mut [u8], headers: &Headers) {
    if !is_capable(headers.traffic_class()) {
        return;
    }
    match headers.network {
        Network::Ipv4(ip) => ipv4::set_ce(frame, ip.offset),
        Network::Ipv6(ip) => ipv6::set_ce(frame, ip.offset),
        Network::Arp | Network::Other | Network::Malformed(_) => {}
    }
}
