//! UDP datagrams (RFC 768): their payload, and a change of one byte of it.

use crate::bytes::{be16, put16};
use crate::{Headers, NetworkLayer, checksum, protocol};
use std::ops::Range;

/// Bytes of a UDP header.
const HEADER_LEN: usize = 8;
/// The offset of the checksum in a UDP header.
const CHECKSUM: usize = 6;

/// Returns the place of the payload in a frame with these headers. `None` if it is not a UDP
/// datagram, a fragment of one, or has a length that contradicts the packet.
pub fn payload(frame: &[u8], headers: &Headers) -> Option<Range<usize>> {
    let transport = headers.transport.filter(|transport| transport.protocol == protocol::UDP)?;
    let is_fragment = match headers.network {
        NetworkLayer::Ipv4(ip) => ip.is_fragment(),
        NetworkLayer::Ipv6(ip) => ip.is_fragment(),
        NetworkLayer::Arp | NetworkLayer::Other | NetworkLayer::Malformed(_) => true,
    };
    let end = transport.offset + usize::from(be16(frame, transport.offset + 4)?);
    let start = transport.offset + HEADER_LEN;
    let fits = !is_fragment && start <= end && end <= headers.packet_end()?.min(frame.len());
    fits.then_some(start..end)
}

/// Returns whether the payload of a datagram is a QUIC Version Negotiation packet: a long header
/// with version 0 (RFC 8999 §6).
pub fn is_version_negotiation(payload: &[u8]) -> bool {
    matches!(payload, [first, 0, 0, 0, 0, _, ..] if first & 0x80 != 0)
}

/// Flips bits of the byte at `offset` of the payload, and updates the checksum, so that a correct
/// one stays correct (RFC 1624). A datagram without a checksum stays without. Nothing changes if
/// the frame, to which the headers belong, has no such byte.
pub fn flip(frame: &mut [u8], headers: &Headers, offset: usize, flips: u8) {
    let Some(payload) = payload(frame, headers).filter(|payload| offset < payload.len()) else { return };
    let header = payload.start - HEADER_LEN;
    let place = payload.start + offset;
    let old = u16::from(frame[place]);
    frame[place] ^= flips;
    let new = u16::from(frame[place]);
    let Some(sum) = be16(frame, header + CHECKSUM).filter(|sum| *sum != 0) else { return };
    // The header has an even length: a byte at an even offset is the upper one of its word.
    let shift = if offset.is_multiple_of(2) { 8 } else { 0 };
    let sum = checksum::update(sum, old << shift, new << shift);
    // A sum of 0 is sent as 0xffff (RFC 768).
    put16(frame, header + CHECKSUM, if sum == 0 { 0xffff } else { sum });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MacAddr;
    use crate::build::Ip;
    use crate::checksum::{ChecksumStatus, check_transport};
    use proptest::prelude::*;
    use std::net::IpAddr;

    fn frame(v6: bool, payload: &[u8]) -> Vec<u8> {
        let address = |n: u8| match v6 {
            false => IpAddr::from([10, 0, 0, n]),
            true => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(n)]),
        };
        let end = |n| (MacAddr::from_index(u32::from(n)), address(n));
        Ip::between(end(1), end(2)).udp(4433, 443, payload)
    }

    proptest! {
        #[test]
        fn a_changed_byte_keeps_the_checksum_correct(
            v6: bool, bytes in prop::collection::vec(any::<u8>(), 1..80), place: prop::sample::Index, flips in 1u8..,
        ) {
            let mut changed = frame(v6, &bytes);
            let headers = Headers::parse(&changed);
            let place = place.index(bytes.len());
            flip(&mut changed, &headers, place, flips);
            prop_assert_eq!(check_transport(&changed, &headers), ChecksumStatus::Good);
            let mut wanted = bytes.clone();
            wanted[place] ^= flips;
            prop_assert_eq!(&changed, &frame(v6, &wanted));
        }
    }

    #[test]
    fn a_datagram_without_checksum_stays_without_and_others_are_left_alone() {
        let mut bytes = frame(false, b"quic");
        let headers = Headers::parse(&bytes);
        let place = payload(&bytes, &headers).expect("a payload");
        assert_eq!(&bytes[place.clone()], b"quic");
        put16(&mut bytes, place.start - 2, 0);
        flip(&mut bytes, &headers, 0, 1);
        assert_eq!((&bytes[place.clone()], be16(&bytes, place.start - 2)), (&b"puic"[..], Some(0)));
        let before = bytes.clone();
        flip(&mut bytes, &headers, 4, 1);
        // The length of the datagram exceeds the packet.
        put16(&mut bytes, place.start - 4, 13);
        assert_eq!(payload(&bytes, &headers), None);
        flip(&mut bytes, &headers, 0, 1);
        put16(&mut bytes, place.start - 4, 12);
        assert_eq!(bytes, before);
    }

    #[test]
    fn version_negotiation_has_a_long_header_and_version_0() {
        assert!(is_version_negotiation(&[0x80, 0, 0, 0, 0, 0, 0]));
        for other in [&[0x40, 0, 0, 0, 0, 0, 0][..], &[0xc0, 0, 0, 0, 1, 0, 0], &[0x80, 0, 0, 0, 0], &[]] {
            assert!(!is_version_negotiation(other), "{other:?}");
        }
    }
}
