//! Segmenting and merging super-packets: no byte is lost, all checksums verify, and each operation
//! is the inverse of the other.

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use fastpath_wire::build::{Ip, Tcp, set_macs, tcp_flags};
use fastpath_wire::checksum::{ChecksumStatus, check_transport};
use fastpath_wire::coalesce::Coalescer;
use fastpath_wire::segment::{SegmentError, SuperPacket, segment};
use fastpath_wire::vnet::{Gso, GsoKind, VnetHeader};
use fastpath_wire::{Headers, MacAddr, NetworkLayer};
use proptest::prelude::*;
use std::net::IpAddr;

/// 192.0.2.1 → 192.0.2.2 or 2001:db8::1 → 2001:db8::2.
fn ip(kind: GsoKind) -> Ip {
    let address = |i: u8| match kind {
        GsoKind::TcpV4 | GsoKind::Udp => IpAddr::from([192, 0, 2, i]),
        GsoKind::TcpV6 => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(i)]),
    };
    Ip {
        id: 0xfffe,
        ..Ip::between((MacAddr::from_index(1), address(1)), (MacAddr::from_index(2), address(2)))
    }
}

/// The first `len` bytes of a payload without repetitions.
fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(2_654_435_761) >> 7) as u8).collect()
}

/// A super-packet with `flags` and VLAN tags `tags`; its sequence numbers wrap.
fn big(kind: GsoKind, len: usize, flags: u8, tags: &[u8]) -> Vec<u8> {
    let tcp = Tcp { src_port: 1, dst_port: 2, seq: u32::MAX - 1000, ack: 9, flags, window: 512 };
    let mut frame = match kind {
        GsoKind::Udp => ip(kind).udp(1, 2, &payload(len)),
        GsoKind::TcpV4 | GsoKind::TcpV6 => ip(kind).tcp(&tcp, &payload(len)),
    };
    frame.splice(12..12, tags.iter().copied());
    frame
}

fn cut(frame: &[u8], header: &VnetHeader) -> Vec<Vec<u8>> {
    let (mut scratch, mut segments) = (Vec::new(), Vec::new());
    segment(frame, header, &mut scratch, |s| segments.push(s.to_vec())).expect("a valid super-packet");
    segments
}

fn gso(kind: GsoKind, size: u16) -> VnetHeader {
    VnetHeader { gso: Some(Gso { kind, size, ecn: false }), ..VnetHeader::default() }
}

/// Merges frames and returns the packets with their virtio headers.
fn join(frames: &[Vec<u8>]) -> Vec<(VnetHeader, Vec<u8>)> {
    let (mut coalescer, mut packets, mut rest) = (Coalescer::default(), Vec::new(), frames);
    while !rest.is_empty() {
        let count = rest.iter().take_while(|frame| coalescer.append(frame)).count();
        let joined = coalescer.take().expect("an empty coalescer takes any frame");
        let payloads = rest[..count].iter().flat_map(|frame| &frame[joined.skip..]);
        packets.push((joined.vnet, joined.headers.iter().chain(payloads).copied().collect()));
        rest = &rest[count..];
    }
    assert!(coalescer.take().is_none());
    packets
}

/// Verifies both checksums with etherparse and returns sequence number, flags and payload.
fn verified(frame: &[u8]) -> (Option<u32>, u8, Vec<u8>) {
    let packet = SlicedPacket::from_ethernet(frame).expect("etherparse reads every segment");
    if let Some(NetSlice::Ipv4(ip)) = &packet.net {
        assert_eq!(ip.header().header_checksum(), ip.header().to_header().calc_header_checksum());
    }
    match (packet.net.as_ref().unwrap(), packet.transport.as_ref().unwrap()) {
        (NetSlice::Ipv4(ip), TransportSlice::Tcp(tcp)) => {
            let (src, dst) = (ip.header().source(), ip.header().destination());
            assert_eq!(tcp.checksum(), tcp.calc_checksum_ipv4(src, dst).unwrap());
            (Some(tcp.sequence_number()), tcp.slice()[13], tcp.payload().to_vec())
        }
        (NetSlice::Ipv6(ip), TransportSlice::Tcp(tcp)) => {
            let (src, dst) = (ip.header().source(), ip.header().destination());
            assert_eq!(tcp.checksum(), tcp.calc_checksum_ipv6(src, dst).unwrap());
            (Some(tcp.sequence_number()), tcp.slice()[13], tcp.payload().to_vec())
        }
        (NetSlice::Ipv4(ip), TransportSlice::Udp(udp)) => {
            let sum = udp.to_header().calc_checksum_ipv4(&ip.header().to_header(), udp.payload());
            assert_eq!(udp.checksum(), sum.unwrap());
            (None, 0, udp.payload().to_vec())
        }
        other => panic!("unexpected protocols: {other:?}"),
    }
}

const KINDS: [GsoKind; 3] = [GsoKind::TcpV4, GsoKind::TcpV6, GsoKind::Udp];

#[test]
fn flags_and_numbers_go_where_a_network_card_puts_them() {
    let flags = tcp_flags::ACK | tcp_flags::PSH | tcp_flags::FIN | tcp_flags::CWR | tcp_flags::ECE;
    let frame = big(GsoKind::TcpV4, 2500, flags, &[]);
    let segments = cut(&frame, &gso(GsoKind::TcpV4, 1000));
    let seen: Vec<_> = segments.iter().map(|s| (verified(s).0, verified(s).1, s.len())).collect();
    let (ack, ece, cwr) = (tcp_flags::ACK, tcp_flags::ECE, tcp_flags::CWR);
    let first = (Some(u32::MAX - 1000), ack | ece | cwr, 1054);
    let second = (Some(u32::MAX), ack | ece, 1054);
    let third = (Some(999), ack | ece | tcp_flags::PSH | tcp_flags::FIN, 554);
    assert_eq!(seen, [first, second, third]);
    let ids: Vec<_> = segments
        .iter()
        .map(|s| match Headers::parse(s).network {
            NetworkLayer::Ipv4(ip) => ip.id,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ids, [0xfffe, 0xffff, 0]);
}

#[test]
fn a_frame_that_contradicts_its_virtio_header_is_rejected() {
    let frame = big(GsoKind::TcpV4, 100, tcp_flags::ACK, &[]);
    let refused = |frame: &[u8], kind, size| {
        segment(frame, &gso(kind, size), &mut Vec::new(), |_| panic!("no segment")).unwrap_err()
    };
    assert_eq!(refused(&frame, GsoKind::TcpV6, 10), SegmentError::Mismatch(GsoKind::TcpV6));
    assert_eq!(refused(&frame, GsoKind::Udp, 10), SegmentError::Mismatch(GsoKind::Udp));
    assert_eq!(refused(&frame, GsoKind::TcpV4, 0), SegmentError::ZeroSize);
    assert_eq!(refused(&frame[..100], GsoKind::TcpV4, 10), SegmentError::Mismatch(GsoKind::TcpV4));
}

#[test]
fn frames_that_differ_are_not_merged() {
    let segments = cut(&big(GsoKind::TcpV4, 3000, tcp_flags::ACK, &[]), &gso(GsoKind::TcpV4, 1000));
    assert_eq!(join(&segments).len(), 1);
    let apart = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut changed = segments.clone();
        change(&mut changed[1]);
        join(&changed).len()
    };
    assert_eq!(apart(&|f| set_macs(f, MacAddr::from_index(9), MacAddr::from_index(2))), 3, "another station");
    assert_eq!(apart(&|f| f[60] ^= 1), 3, "a corrupted byte");
    assert_eq!(apart(&|f| f.push(0)), 3, "padding");
    let reordered = [segments[1].clone(), segments[0].clone(), segments[2].clone()];
    assert_eq!(join(&reordered).len(), 3, "out of order");
    for flags in
        [tcp_flags::FIN, tcp_flags::SYN, tcp_flags::RST, tcp_flags::URG, tcp_flags::ECE, tcp_flags::CWR]
    {
        let special =
            cut(&big(GsoKind::TcpV4, 2000, tcp_flags::ACK | flags, &[]), &gso(GsoKind::TcpV4, 1000));
        // CWR is on the first segment only and FIN on the last only. Such a segment is not merged.
        assert_eq!(join(&special).len(), 2, "{flags:#x}");
    }
}

#[test]
fn a_corrupted_frame_is_not_merged_and_not_changed() {
    let mut segments = cut(&big(GsoKind::TcpV4, 3000, tcp_flags::ACK, &[]), &gso(GsoKind::TcpV4, 1000));
    segments[0][60] ^= 1;
    let packets = join(&segments);
    assert_eq!(packets[0], (VnetHeader::default(), segments[0].clone()));
    assert_eq!(packets.len(), 2);
}

#[test]
fn a_super_packet_stays_within_64_kib() {
    let tcp =
        |i: u32| Tcp { src_port: 1, dst_port: 2, seq: i * 1448, ack: 1, flags: tcp_flags::ACK, window: 1 };
    let ip = |i: u32| Ip { id: i as u16, ..ip(GsoKind::TcpV4) };
    let frames: Vec<_> = (0..100).map(|i| ip(i).tcp(&tcp(i), &payload(1448))).collect();
    let packets = join(&frames);
    assert_eq!(packets.iter().map(|(_, p)| (p.len() - 54) / 1448).collect::<Vec<_>>(), [45, 45, 10]);
    let again: Vec<_> = packets.iter().flat_map(|(header, packet)| cut(packet, header)).collect();
    assert_eq!(again, frames);
}

proptest! {
    #[test]
    fn segments_have_correct_checksums_and_contain_the_payload(
        kind in prop::sample::select(&KINDS[..]), len in 0usize..20_000, size in 200u16..3000, tagged: bool,
    ) {
        let tags: &[u8] = if tagged { &[0x81, 0, 0, 7] } else { &[] };
        let frame = big(kind, len, tcp_flags::ACK | tcp_flags::PSH, tags);
        let segments = cut(&frame, &gso(kind, size));
        prop_assert_eq!(segments.len(), len.div_ceil(size.into()).max(1));
        let mut conserved = Vec::new();
        for (i, segment) in segments.iter().enumerate() {
            prop_assert_eq!(check_transport(segment, &Headers::parse(segment)), ChecksumStatus::Good);
            let (_, _, part) = verified(segment);
            prop_assert_eq!(part.len() == usize::from(size), i + 1 < segments.len() || (len > 0 && len % usize::from(size) == 0));
            conserved.extend(part);
        }
        prop_assert_eq!(conserved, payload(len));
    }

    #[test]
    fn merging_is_the_inverse_of_segmenting(tcp_v6: bool, len in 1usize..20_000, size in 200u16..3000, push: bool) {
        let kind = if tcp_v6 { GsoKind::TcpV6 } else { GsoKind::TcpV4 };
        let flags = if push { tcp_flags::ACK | tcp_flags::PSH } else { tcp_flags::ACK };
        let frame = big(kind, len, flags, &[]);
        let packets = join(&cut(&frame, &gso(kind, size)));
        prop_assert_eq!(packets.len(), 1);
        let (header, packet) = &packets[0];
        let finished = cut(packet, &VnetHeader { gso: None, ..*header });
        prop_assert_eq!(&finished[0], &frame);
        prop_assert_eq!(header.gso.map(|g| g.size), (len > usize::from(size)).then_some(size));
    }

    #[test]
    fn a_part_segments_into_its_own_segments(
        kind in prop::sample::select(&KINDS[..]), len in 1usize..20_000, size in 200u16..3000, flags: u8,
        runs in prop::collection::vec(1usize..12, 100), tagged: bool,
    ) {
        let tags: &[u8] = if tagged { &[0x81, 0, 0, 7] } else { &[] };
        let frame = big(kind, len, flags, tags);
        let packet = SuperPacket::new(&frame, Gso { kind, size, ecn: false }).unwrap();
        let segments = cut(&frame, &gso(kind, size));
        let (mut from, mut headers) = (0, Vec::new());
        for run in runs {
            let to = packet.count().min(from + run);
            if from == to {
                break;
            }
            let (header, payload) = packet.part(from..to, &mut headers);
            let whole = [&headers[..], payload].concat();
            prop_assert_eq!(header.gso.is_some(), to - from > 1);
            let has_cwr = header.gso.is_some_and(|gso| gso.ecn);
            prop_assert!(!has_cwr || (from == 0 && kind != GsoKind::Udp && flags & tcp_flags::CWR != 0));
            prop_assert_eq!(&cut(&whole, &header)[..], &segments[from..to]);
            from = to;
        }
    }

    #[test]
    fn segmenting_is_the_inverse_of_merging(lens in prop::collection::vec((1usize..400, any::<bool>(), 0u32..12), 1..20), tcp_v6: bool) {
        let kind = if tcp_v6 { GsoKind::TcpV6 } else { GsoKind::TcpV4 };
        let (mut seq, mut id) = (7u32, 0xfff8u16);
        let mut frames = Vec::new();
        for (len, push, gap) in lens {
            // Most segments have equal length and follow each other; some have a gap before them.
            let len = if len < 300 { 300 } else { len };
            seq = seq.wrapping_add(if gap == 0 { 5 } else { 0 });
            let flags = if push { tcp_flags::ACK | tcp_flags::PSH } else { tcp_flags::ACK };
            let tcp = Tcp { src_port: 1, dst_port: 2, seq, ack: 1, flags, window: 1 };
            frames.push(Ip { id, ..ip(kind) }.tcp(&tcp, &payload(len)));
            seq = seq.wrapping_add(len as u32);
            id = id.wrapping_add(1);
        }
        let again: Vec<_> = join(&frames).iter().flat_map(|(header, packet)| cut(packet, header)).collect();
        prop_assert_eq!(again, frames);
    }

    #[test]
    fn random_frames_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), start in 0usize..4, header: [u8; 12]) {
        let mut frame = match start {
            0 => Vec::new(),
            i => big(KINDS[i - 1], 100, tcp_flags::ACK, &[]),
        };
        for (at, byte) in bytes.iter().enumerate().filter(|(_, byte)| **byte < 20) {
            if let Some(place) = frame.get_mut(at) {
                *place = *byte;
            }
        }
        frame.extend(&bytes);
        let (mut scratch, mut total) = (Vec::new(), 0);
        if let Ok(header) = VnetHeader::parse(&header) {
            let _whatever = segment(&frame, &header, &mut scratch, |s| total += s.len());
        }
        for kind in KINDS {
            let _whatever = segment(&frame, &gso(kind, 10), &mut scratch, |s| total += s.len());
        }
        prop_assert_eq!(join(&[frame.clone(), frame]).len(), 2);
    }
}
