//! The Internet checksum: ones-complement sums (RFC 1071), incremental update (RFC 1624), and
//! verification as a receiver does it.
//!
//! All values are those of the big-endian field, independent of the byte order of the machine.

use crate::bytes::be16;
use crate::{Headers, NetworkLayer, protocol};
use std::net::{Ipv4Addr, Ipv6Addr};

/// A ones-complement sum, built piece by piece. Every piece except the last must have an even
/// length.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sum(u64);

/// The result of verifying the transport checksum of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChecksumStatus {
    /// The checksum is correct.
    Good,
    /// The checksum is wrong, or the transport header or length is invalid.
    Bad,
    /// A UDP datagram over IPv4 has no checksum (RFC 768: field 0).
    Absent,
    /// This frame cannot be verified: it is a fragment, it is not IP, or its protocol has no
    /// Internet checksum.
    NotApplicable,
}

impl Sum {
    /// The empty sum.
    pub const ZERO: Sum = Sum(0);

    /// Returns the sum of the pseudo-header of TCP or UDP over IPv4 (RFC 9293 §3.1). `len` is the
    /// length of transport header and payload in bytes.
    #[inline]
    pub fn pseudo_v4(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, len: u32) -> Sum {
        Sum::ZERO.bytes(&src.octets()).bytes(&dst.octets()).word32(u32::from(protocol)).word32(len)
    }

    /// Returns the sum of the pseudo-header of TCP, UDP or ICMPv6 over IPv6 (RFC 8200 §8.1). `len`
    /// is the length of transport header and payload in bytes.
    #[inline]
    pub fn pseudo_v6(src: Ipv6Addr, dst: Ipv6Addr, protocol: u8, len: u32) -> Sum {
        Sum::ZERO.bytes(&src.octets()).bytes(&dst.octets()).word32(u32::from(protocol)).word32(len)
    }

    /// Adds bytes; a last odd byte is padded with zero. Words are added in the byte order of the
    /// machine and swapped once at the end (RFC 1071 §2B). Words of 32 bits are added into 64 bits,
    /// so no carry is lost below 16 GiB.
    #[must_use]
    #[inline]
    pub fn bytes(self, bytes: &[u8]) -> Sum {
        let (words, rest) = bytes.as_chunks::<4>();
        let mut sum: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        sum += u64::from(u32::from_ne_bytes(last));
        Sum(self.0 + u64::from(u16::from_be(fold(sum))))
    }

    /// Adds one 16-bit field.
    #[must_use]
    #[inline]
    pub fn word(self, value: u16) -> Sum {
        Sum(self.0 + u64::from(value))
    }

    /// Adds one 32-bit field.
    #[must_use]
    #[inline]
    pub fn word32(self, value: u32) -> Sum {
        Sum(self.0 + u64::from(value))
    }

    /// Returns the sum folded to 16 bits, not complemented: the content of a partial checksum.
    #[inline]
    pub fn folded(self) -> u16 {
        fold(self.0)
    }

    /// Returns the checksum field: the complement of the folded sum. It is 0 if the summed data
    /// includes a correct checksum.
    #[inline]
    pub fn checksum(self) -> u16 {
        !self.folded()
    }

    /// Returns the checksum field of UDP. A sum of 0 is sent as 0xffff, because 0 means "no
    /// checksum" (RFC 768).
    #[inline]
    pub fn udp_checksum(self) -> u16 {
        match self.checksum() {
            0 => 0xffff,
            sum => sum,
        }
    }
}

/// Returns the checksum field for `bytes`. It is 0 if `bytes` includes a correct checksum.
#[inline]
pub fn of(bytes: &[u8]) -> u16 {
    Sum::ZERO.bytes(bytes).checksum()
}

/// Returns the checksum field after one 16-bit field of the summed data has changed from `old` to
/// `new` (RFC 1624 eqn. 3).
#[inline]
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    Sum::ZERO.word(!checksum).word(!old).word(new).checksum()
}

impl Headers {
    /// Returns whether the checksum of an IPv4 header is correct, or `None` if the frame is not
    /// IPv4.
    #[inline]
    pub fn ipv4_checksum_ok(&self, frame: &[u8]) -> Option<bool> {
        let NetworkLayer::Ipv4(ip) = self.network else { return None };
        let header = frame.get(ip.offset..ip.offset + ip.header_len)?;
        Some(of(header) == 0)
    }
}

/// Returns whether the checksum of a frame's transport header is right.
pub fn is_intact(frame: &[u8]) -> bool {
    check_transport(frame, &Headers::parse(frame)) == ChecksumStatus::Good
}

/// Verifies the TCP, UDP, ICMP or ICMPv6 checksum of a packet as its receiver does. If the packet
/// has an IPv6 routing header, its destination address must already be the final one.
pub fn check_transport(frame: &[u8], headers: &Headers) -> ChecksumStatus {
    let (protocol, start, end) = match headers.network {
        NetworkLayer::Ipv4(ip) if !ip.is_fragment() => (ip.protocol, ip.payload_offset(), ip.end()),
        NetworkLayer::Ipv6(ip) if !ip.is_fragment() => (ip.protocol, ip.payload_offset, ip.end()),
        _ => return ChecksumStatus::NotApplicable,
    };
    let Some(mut segment) = frame.get(start..end) else { return ChecksumStatus::NotApplicable };
    if protocol == protocol::UDP {
        match udp_length(segment) {
            Some(len) => segment = &segment[..len],
            None => return ChecksumStatus::Bad,
        }
        if be16(segment, 6) == Some(0) && matches!(headers.network, NetworkLayer::Ipv4(_)) {
            return ChecksumStatus::Absent;
        }
    }
    let len = segment.len() as u32;
    let (pseudo, len_min) = match (headers.network, protocol) {
        (NetworkLayer::Ipv4(_), protocol::ICMP) => (Sum::ZERO, 8),
        (NetworkLayer::Ipv4(ip), protocol::TCP) => (Sum::pseudo_v4(ip.src, ip.dst, protocol, len), 20),
        (NetworkLayer::Ipv4(ip), protocol::UDP) => (Sum::pseudo_v4(ip.src, ip.dst, protocol, len), 8),
        (NetworkLayer::Ipv6(ip), protocol::TCP) => (Sum::pseudo_v6(ip.src, ip.dst, protocol, len), 20),
        (NetworkLayer::Ipv6(ip), protocol::UDP) => (Sum::pseudo_v6(ip.src, ip.dst, protocol, len), 8),
        (NetworkLayer::Ipv6(ip), protocol::ICMPV6) => (Sum::pseudo_v6(ip.src, ip.dst, protocol, len), 4),
        _ => return ChecksumStatus::NotApplicable,
    };
    if segment.len() < len_min || pseudo.bytes(segment).checksum() != 0 {
        ChecksumStatus::Bad
    } else {
        ChecksumStatus::Good
    }
}

/// Returns the length field of a UDP header, or `None` if it exceeds the datagram.
fn udp_length(datagram: &[u8]) -> Option<usize> {
    let len = usize::from(be16(datagram, 4)?);
    (8..=datagram.len()).contains(&len).then_some(len)
}

fn fold(mut sum: u64) -> u16 {
    sum = (sum & 0xffff_ffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MacAddr;
    use crate::build::Ip;
    use proptest::prelude::*;

    /// RFC 1071 §4.1, one word at a time.
    fn naive(bytes: &[u8]) -> u16 {
        let mut sum: u32 = 0;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn rfc_1071_example() {
        // §3: the sum of 00 01 f2 03 f4 f5 f6 f7 is ddf2.
        let sum = Sum::ZERO.bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.folded(), 0xddf2);
        assert_eq!(sum.checksum(), 0x220d);
    }

    #[test]
    fn rfc_1624_example() {
        // §4: HC = dd2f, m = 5555, m' = 3285 gives 0000, which eqn. 2 of RFC 1141 gets wrong.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn a_udp_checksum_may_be_absent_in_ipv4_only() {
        let check = |src: [u16; 8], v4: [u8; 4]| {
            let mac = MacAddr::from_index(1);
            let over_v4 = Ip::between((mac, v4.into()), (mac, v4.into())).udp(1, 2, b"x");
            let over_v6 = Ip::between((mac, src.into()), (mac, src.into())).udp(1, 2, b"x");
            [(over_v4, 40), (over_v6, 60)].map(|(mut frame, at)| {
                frame[at..at + 2].fill(0);
                check_transport(&frame, &Headers::parse(&frame))
            })
        };
        assert_eq!(
            check([0xfe80, 0, 0, 0, 0, 0, 0, 1], [192, 0, 2, 1]),
            [ChecksumStatus::Absent, ChecksumStatus::Bad]
        );
    }

    #[test]
    fn invalid_transport_lengths_are_bad_and_fragments_are_not_checked() {
        let end = (MacAddr::from_index(1), [192, 0, 2, 1].into());
        let check = |frame: &[u8]| check_transport(frame, &Headers::parse(frame));
        let mut frame = Ip::between(end, end).udp(1, 2, b"x");
        frame[39] = 7;
        assert_eq!(check(&frame), ChecksumStatus::Bad, "UDP shorter than its header");
        frame[39] = 10;
        assert_eq!(check(&frame), ChecksumStatus::Bad, "UDP longer than its packet");
        frame[20] = 0x20;
        assert_eq!(check(&frame), ChecksumStatus::NotApplicable);
        assert_eq!(check(&Ip::between(end, end).packet(6, &[0; 19])), ChecksumStatus::Bad, "TCP cut");
        assert_eq!(check(&Ip::between(end, end).packet(132, &[0; 19])), ChecksumStatus::NotApplicable);
    }

    #[test]
    fn a_sum_of_all_ones_does_not_lose_its_carry() {
        assert_eq!(fold(u64::MAX), 0xffff);
        assert_eq!(of(&[0xff; 65536]), naive(&[0xff; 65536]));
    }

    proptest! {
        #[test]
        fn the_fast_sum_equals_the_naive_one(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            prop_assert_eq!(of(&bytes), naive(&bytes));
        }

        #[test]
        fn pieces_add_up(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0usize..100) {
            let cut = (cut * 2).min(bytes.len() & !1);
            prop_assert_eq!(Sum::ZERO.bytes(&bytes[..cut]).bytes(&bytes[cut..]).checksum(), naive(&bytes));
        }

        #[test]
        fn an_update_equals_a_new_sum(mut bytes in prop::collection::vec(any::<u8>(), 4..60), new: u16, at in 0usize..30) {
            let at = (at * 2).min((bytes.len() - 2) & !1);
            let (before, old) = (of(&bytes), u16::from_be_bytes([bytes[at], bytes[at + 1]]));
            bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
            // Over all-zero data both representations of zero are correct (RFC 1624 §3). Over
            // other data the two results are equal.
            prop_assert_eq!(update(before, old, new) % 0xffff, of(&bytes) % 0xffff);
        }
    }
}
