//! Changes IPv4 packets: TTL, fragmentation, ECN marks.

use crate::bytes::{be16, put16};
use crate::{Headers, Ipv4, NetworkLayer, checksum};

/// The decision of a router after decrementing the TTL or hop limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HopResult {
    /// The field was decremented: forward the packet.
    Forward,
    /// The field expired: drop the packet. It is unchanged, so that a time-exceeded message can
    /// quote it.
    Expired,
}

/// Decrements the TTL of the header at `offset` ([`crate::Ipv4::offset`]). The checksum is updated
/// incrementally, so a wrong checksum stays wrong. Panics if the frame ends inside the header.
#[inline]
pub fn decrement_ttl(frame: &mut [u8], offset: usize) -> HopResult {
    let header = &mut frame[offset..offset + 20];
    if header[8] <= 1 {
        return HopResult::Expired;
    }
    rewrite(header, 8, |word| word - 0x0100);
    HopResult::Forward
}

/// Why a packet cannot be fragmented.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FragmentError {
    /// The frame is not a complete IPv4 packet.
    #[error("the frame is not a complete IPv4 packet")]
    NotIpv4,
    /// DF is set: report [`TooBig`](crate::icmp::IcmpError::TooBig) to the sender.
    #[error("the packet has DF set; send \"fragmentation needed\" instead")]
    DontFragment,
    /// Fewer than eight bytes of payload fit after the header.
    #[error("an MTU of {mtu} bytes has no room for payload after a header of {header_len} bytes")]
    MtuTooSmall {
        /// The requested MTU, in bytes of IP packet.
        mtu: usize,
        /// Length of the IP header in bytes.
        header_len: usize,
    },
}

/// Splits a packet into frames whose IP packets have at most `mtu` bytes (RFC 791 §3.2). Each frame
/// has the Ethernet header and VLAN tags of the original; padding is removed. A packet that fits is
/// returned as the only frame. Fragments can be fragmented again. The caller must have verified the
/// header checksum, because the checksums of the fragments are computed from scratch.
pub fn fragment(frame: &[u8], mtu: usize) -> Result<Vec<Vec<u8>>, FragmentError> {
    let NetworkLayer::Ipv4(ip) = Headers::parse(frame).network else { return Err(FragmentError::NotIpv4) };
    if usize::from(ip.total_len) <= mtu {
        return Ok(vec![frame[..ip.end()].to_vec()]);
    }
    if ip.dont_fragment {
        return Err(FragmentError::DontFragment);
    }
    let room = mtu.saturating_sub(ip.header_len) & !7;
    if room == 0 {
        return Err(FragmentError::MtuTooSmall { mtu, header_len: ip.header_len });
    }
    let payload = &frame[ip.payload_offset()..ip.end()];
    let last = payload.len().div_ceil(room) - 1;
    let pieces = payload.chunks(room).enumerate();
    Ok(pieces.map(|(i, piece)| one_fragment(frame, &ip, piece, i * room, i == last)).collect())
}

/// Builds the fragment of `frame` that carries `piece`, which starts `at` bytes into the payload.
fn one_fragment(frame: &[u8], ip: &Ipv4, piece: &[u8], at: usize, is_last: bool) -> Vec<u8> {
    let mut fragment = frame[..ip.payload_offset()].to_vec();
    let header = &mut fragment[ip.offset..];
    if at != 0 {
        blank_uncopied_options(&mut header[20..]);
    }
    put16(header, 2, (ip.header_len + piece.len()) as u16);
    let more = if is_last && !ip.more_fragments { 0 } else { 0x2000 };
    put16(header, 6, more | ((usize::from(ip.fragment_offset) + at) / 8) as u16);
    put16(header, 10, 0);
    let sum = checksum::of(header);
    put16(header, 10, sum);
    fragment.extend_from_slice(piece);
    fragment
}

/// Replaces options without the copied flag by no-operations: these options belong in the first
/// fragment only.
fn blank_uncopied_options(mut options: &mut [u8]) {
    const END: u8 = 0;
    const NOP: u8 = 1;
    while let Some(&kind) = options.first() {
        let len = match (kind, options.get(1)) {
            (END, _) => return,
            (NOP, _) => 1,
            (_, Some(&len)) if len >= 2 && usize::from(len) <= options.len() => usize::from(len),
            _ => return,
        };
        let (option, rest) = options.split_at_mut(len);
        if kind & 0x80 == 0 {
            option.fill(NOP);
        }
        options = rest;
    }
}

/// Sets the ECN field of the header at `offset` to Congestion Experienced (RFC 3168 §5).
pub(crate) fn set_ce(frame: &mut [u8], offset: usize) {
    rewrite(&mut frame[offset..offset + 20], 0, |word| word | 0b11);
}

/// Changes the 16-bit field at `at` of an IPv4 header and updates the header checksum.
fn rewrite(header: &mut [u8], at: usize, change: impl FnOnce(u16) -> u16) {
    let old = u16::from_be_bytes([header[at], header[at + 1]]);
    let new = change(old);
    put16(header, at, new);
    let sum = be16(header, 10).unwrap_or(0);
    put16(header, 10, checksum::update(sum, old, new));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Ip;
    use crate::{MacAddr, ecn};
    use proptest::prelude::*;
    use std::net::{IpAddr, Ipv4Addr};

    fn ip() -> Ip {
        let end = |i: u8| (MacAddr::from_index(i.into()), IpAddr::V4(Ipv4Addr::new(192, 0, 2, i)));
        Ip { dont_fragment: false, id: 7, ..Ip::between(end(1), end(2)) }
    }

    /// A packet with one option of each kind: a record route (not copied), then a router alert
    /// (copied).
    fn with_options(payload: &[u8]) -> Vec<u8> {
        let mut frame = ip().packet(17, payload);
        frame.splice(34..34, [7, 4, 4, 0, 0x94, 4, 0, 0]);
        frame[14] = 0x47;
        put16(&mut frame, 16, (28 + payload.len()) as u16);
        put16(&mut frame, 24, 0);
        let sum = checksum::of(&frame[14..42]);
        put16(&mut frame, 24, sum);
        frame
    }

    fn parsed(frame: &[u8]) -> Ipv4 {
        let headers = Headers::parse(frame);
        assert_eq!(headers.ipv4_checksum_ok(frame), Some(true));
        match headers.network {
            NetworkLayer::Ipv4(ip) => ip,
            other => panic!("not IPv4: {other:?}"),
        }
    }

    #[test]
    fn a_hop_keeps_a_correct_checksum_correct_and_a_wrong_one_wrong() {
        for ttl in 2..=255 {
            let mut frame = Ip { ttl, ..ip() }.udp(1, 2, b"x");
            assert_eq!(decrement_ttl(&mut frame, 14), HopResult::Forward);
            assert_eq!(parsed(&frame).ttl, ttl - 1);
            frame[24] ^= 0x40;
            decrement_ttl(&mut frame, 14);
            assert_eq!(Headers::parse(&frame).ipv4_checksum_ok(&frame), Some(false));
        }
    }

    #[test]
    fn the_last_hop_changes_nothing() {
        for ttl in [0, 1] {
            let frame = Ip { ttl, ..ip() }.udp(1, 2, b"x");
            let mut after = frame.clone();
            assert_eq!(decrement_ttl(&mut after, 14), HopResult::Expired);
            assert_eq!(after, frame);
        }
    }

    #[test]
    fn congestion_is_marked_only_on_capable_packets() {
        for (before, after) in [(0xb8, 0xb8), (0xb9, 0xbb), (0xba, 0xbb), (0xbb, 0xbb)] {
            let mut frame = Ip { traffic_class: before, ..ip() }.udp(1, 2, b"x");
            let headers = Headers::parse(&frame);
            ecn::set_ce(&mut frame, &headers);
            assert_eq!(parsed(&frame).tos, after);
        }
    }

    #[test]
    fn options_that_are_not_copied_stay_in_the_first_fragment() {
        let frame = with_options(&[0xab; 100]);
        let fragments = fragment(&frame, 28 + 64).unwrap();
        let options: Vec<&[u8]> = fragments.iter().map(|f| &f[34..42]).collect();
        assert_eq!(options, [[7, 4, 4, 0, 0x94, 4, 0, 0], [1, 1, 1, 1, 0x94, 4, 0, 0]]);
    }

    #[test]
    fn df_and_tiny_mtus_are_refused() {
        let df = Ip { dont_fragment: true, ..ip() }.udp(1, 2, &[0; 100]);
        assert_eq!(fragment(&df, 100), Err(FragmentError::DontFragment));
        assert_eq!(fragment(&df, 128).map(|f| f.len()), Ok(1), "it fits");
        let free = ip().udp(1, 2, &[0; 100]);
        assert_eq!(fragment(&free, 27), Err(FragmentError::MtuTooSmall { mtu: 27, header_len: 20 }));
        assert_eq!(fragment(&free[..30], 100), Err(FragmentError::NotIpv4));
    }

    /// Reassembles the fragments of one datagram, which are in order of offset.
    fn reassemble(fragments: &[Vec<u8>]) -> Vec<u8> {
        let mut payload = Vec::new();
        for (i, frame) in fragments.iter().enumerate() {
            let ip = parsed(frame);
            assert_eq!(usize::from(ip.fragment_offset), payload.len());
            assert_eq!(ip.more_fragments, i + 1 < fragments.len());
            assert_eq!(frame.len(), ip.end());
            payload.extend_from_slice(&frame[ip.payload_offset()..ip.end()]);
        }
        payload
    }

    proptest! {
        #[test]
        fn fragments_fit_and_reassemble(len in 0usize..3000, mtu in 28usize..1600, again in 28usize..1600) {
            let payload: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
            let frame = ip().packet(17, &payload);
            let once = fragment(&frame, mtu).unwrap();
            prop_assert_eq!(reassemble(&once), payload.clone());
            let twice: Vec<_> = once.iter().flat_map(|f| fragment(f, again).unwrap()).collect();
            prop_assert_eq!(reassemble(&twice), payload);
            prop_assert!(twice.iter().all(|f| f.len() - 14 <= mtu.min(again)));
        }

        #[test]
        fn random_options_never_panic(options in prop::collection::vec(any::<u8>(), 0..40)) {
            blank_uncopied_options(&mut options.clone());
        }
    }
}
