//! Changes IPv6 packets: hop limit and ECN marks. IPv6 has no header checksum.

use crate::ipv4::HopResult;

/// Decrements the hop limit of the header at `offset` ([`crate::Ipv6::offset`]). Panics if the
/// frame ends before the field.
#[inline]
pub fn decrement_hop_limit(frame: &mut [u8], offset: usize) -> HopResult {
    let hop_limit = &mut frame[offset + 7];
    if *hop_limit <= 1 {
        return HopResult::Expired;
    }
    *hop_limit -= 1;
    HopResult::Forward
}

/// Sets the ECN field of the header at `offset` to Congestion Experienced (RFC 3168 §5).
pub(crate) fn set_ce(frame: &mut [u8], offset: usize) {
    // The header starts with 4 bits of version and 8 bits of traffic class. The ECN bits are the
    // last two of the traffic class: 0x30 of the second byte.
    frame[offset + 1] |= 0b0011_0000;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Ip;
    use crate::{Headers, MacAddr, NetworkLayer, ecn};
    use std::net::{IpAddr, Ipv6Addr};

    fn ip() -> Ip {
        let end = |i: u16| {
            (MacAddr::from_index(i.into()), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, i)))
        };
        Ip::between(end(1), end(2))
    }

    fn hop_limit(frame: &[u8]) -> u8 {
        match Headers::parse(frame).network {
            NetworkLayer::Ipv6(ip) => ip.hop_limit,
            other => panic!("not IPv6: {other:?}"),
        }
    }

    #[test]
    fn the_hop_limit_is_decremented_until_it_expires() {
        let mut frame = Ip { ttl: 2, ..ip() }.udp(1, 2, b"x");
        assert_eq!((decrement_hop_limit(&mut frame, 14), hop_limit(&frame)), (HopResult::Forward, 1));
        assert_eq!((decrement_hop_limit(&mut frame, 14), hop_limit(&frame)), (HopResult::Expired, 1));
        frame[21] = 0;
        assert_eq!((decrement_hop_limit(&mut frame, 14), hop_limit(&frame)), (HopResult::Expired, 0));
    }

    #[test]
    fn congestion_is_marked_only_on_capable_packets() {
        for (before, after) in [(0xb8, 0xb8), (0xb9, 0xbb), (0xba, 0xbb), (0xbb, 0xbb)] {
            let plain = Ip { traffic_class: after, ..ip() }.udp(1, 2, b"x");
            let mut frame = Ip { traffic_class: before, ..ip() }.udp(1, 2, b"x");
            let headers = Headers::parse(&frame);
            ecn::set_ce(&mut frame, &headers);
            assert_eq!(frame, plain, "{before:#x}");
        }
    }
}
