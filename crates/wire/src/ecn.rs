//! Explicit congestion notification in the IP header (RFC 3168 §5).

use crate::{Headers, NetworkLayer, ipv4, ipv6};

/// Congestion Experienced: both ECN bits of a traffic class are set.
pub const CE: u8 = 0b11;

/// Returns whether a traffic class is ECN-capable: ECT(0), ECT(1) or CE.
#[inline]
pub const fn is_capable(traffic_class: u8) -> bool {
    traffic_class & CE != 0
}

/// Marks a packet Congestion Experienced and updates its IPv4 header checksum incrementally.
/// Packets that are not ECN-capable and frames that are not IP remain unchanged. `headers` must be
/// those of `frame`.
#[inline]
pub fn set_ce(frame: &mut [u8], headers: &Headers) {
    if !is_capable(headers.traffic_class()) {
        return;
    }
    match headers.network {
        NetworkLayer::Ipv4(ip) => ipv4::set_ce(frame, ip.offset),
        NetworkLayer::Ipv6(ip) => ipv6::set_ce(frame, ip.offset),
        NetworkLayer::Arp | NetworkLayer::Other | NetworkLayer::Malformed(_) => {}
    }
}
