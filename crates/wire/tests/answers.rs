//! Answers of routers and neighbors, compared with bytes from the RFCs and with etherparse.

use etherparse::{Icmpv4Type, Icmpv6Type, SlicedPacket, TransportSlice, icmpv4, icmpv6};
use fastpath_wire::arp::{Arp, ArpOperation};
use fastpath_wire::build::{Ip, Tcp, ethernet};
use fastpath_wire::checksum::{ChecksumStatus, check_transport};
use fastpath_wire::icmp::{self, IcmpError};
use fastpath_wire::nd::{self, Neighbor, Role, Solicitation};
use fastpath_wire::{Headers, MacAddr, NetworkLayer, ethertype};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const ROUTER_MAC: MacAddr = MacAddr::from_index(0xff);
const HOST_MAC: MacAddr = MacAddr::from_index(1);

fn v4(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

fn v6(last: u16) -> IpAddr {
    IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last])
}

/// The fields of a frame from the host to another network by way of the router.
fn through(src: IpAddr, dst: IpAddr) -> Ip {
    Ip::between((HOST_MAC, src), (ROUTER_MAC, dst))
}

fn error(frame: &[u8], problem: IcmpError) -> Option<Vec<u8>> {
    let headers = Headers::parse(frame);
    let from = if matches!(headers.network, NetworkLayer::Ipv6(_)) { v6(254) } else { v4(254) };
    icmp::error(frame, &headers, problem, (ROUTER_MAC, from))
}

/// Verifies the checksums of an answer and returns its MACs and IP addresses.
fn ends(frame: &[u8]) -> (MacAddr, MacAddr, IpAddr, IpAddr) {
    let headers = Headers::parse(frame);
    assert_ne!(headers.ipv4_checksum_ok(frame), Some(false));
    assert_eq!(check_transport(frame, &headers), ChecksumStatus::Good);
    let (src, dst) = headers.addresses().expect("answers are IP");
    (headers.src, headers.dst, src, dst)
}

#[test]
fn each_problem_has_its_icmp_message() {
    use icmpv4::{DestUnreachableHeader as Unreachable, TimeExceededCode};
    let frame = through(v4(1), v4(2)).udp(1, 2, &[7; 1000]);
    for (problem, message) in [
        (IcmpError::HopLimit, Icmpv4Type::TimeExceeded(TimeExceededCode::TtlExceededInTransit)),
        (IcmpError::NoRoute, Icmpv4Type::DestinationUnreachable(Unreachable::Network)),
        (IcmpError::HostUnreachable, Icmpv4Type::DestinationUnreachable(Unreachable::Host)),
        (IcmpError::PortUnreachable, Icmpv4Type::DestinationUnreachable(Unreachable::Port)),
        (
            IcmpError::TooBig { mtu: 1400 },
            Icmpv4Type::DestinationUnreachable(Unreachable::FragmentationNeeded { next_hop_mtu: 1400 }),
        ),
    ] {
        let answer = error(&frame, problem).expect("an answer");
        assert_eq!(ends(&answer), (ROUTER_MAC, HOST_MAC, v4(254), v4(1)));
        let packet = SlicedPacket::from_ethernet(&answer).unwrap();
        let Some(TransportSlice::Icmpv4(icmp)) = packet.transport else { panic!("{problem:?}") };
        assert_eq!(icmp.icmp_type(), message);
        assert_eq!(answer.len() - 14, 576, "the quote has the maximum length (RFC 1812 §4.3.2.3)");
        assert_eq!(icmp.payload(), &frame[14..14 + 548]);
    }
}

#[test]
fn each_problem_has_its_icmpv6_message() {
    use icmpv6::{DestUnreachableCode, TimeExceededCode};
    let frame = through(v6(1), v6(2)).udp(1, 2, &[7; 1400]);
    for (problem, message) in [
        (IcmpError::HopLimit, Icmpv6Type::TimeExceeded(TimeExceededCode::HopLimitExceeded)),
        (IcmpError::NoRoute, Icmpv6Type::DestinationUnreachable(DestUnreachableCode::NoRoute)),
        (IcmpError::HostUnreachable, Icmpv6Type::DestinationUnreachable(DestUnreachableCode::Address)),
        (IcmpError::PortUnreachable, Icmpv6Type::DestinationUnreachable(DestUnreachableCode::Port)),
        (IcmpError::TooBig { mtu: 1400 }, Icmpv6Type::PacketTooBig { mtu: 1400 }),
    ] {
        let answer = error(&frame, problem).expect("an answer");
        assert_eq!(ends(&answer), (ROUTER_MAC, HOST_MAC, v6(254), v6(1)));
        let packet = SlicedPacket::from_ethernet(&answer).unwrap();
        let Some(TransportSlice::Icmpv6(icmp)) = packet.transport else { panic!("{problem:?}") };
        assert_eq!(icmp.icmp_type(), message);
        assert_eq!(answer.len() - 14, 1280, "the quote fills the minimum MTU (RFC 4443 §2.4c)");
        assert_eq!(icmp.payload(), &frame[14..14 + 1232]);
    }
}

#[test]
fn a_short_packet_is_quoted_completely_without_padding_and_the_error_has_its_tags() {
    let mut frame = through(v4(1), v4(2)).udp(1, 2, b"hi");
    frame.extend([0; 16]);
    frame.splice(12..12, [0x81, 0, 0, 7]);
    let answer = error(&frame, IcmpError::HopLimit).expect("an answer");
    assert_eq!(&answer[12..18], [0x81, 0, 0, 7, 8, 0]);
    assert_eq!(&answer[18 + 28..], &frame[18..18 + 30]);
}

#[test]
fn no_error_is_sent_about_these() {
    let silent = |frame: &[u8]| error(frame, IcmpError::HopLimit).is_none();
    let good = through(v4(1), v4(2)).udp(1, 2, b"x");
    assert!(!silent(&good));
    let from = |src: [u8; 4]| through(src.into(), v4(2)).udp(1, 2, b"x");
    for src in [[0; 4], [0, 0, 0, 9], [127, 0, 0, 1], [224, 0, 0, 1], [240, 0, 0, 1], [255; 4]] {
        assert!(silent(&from(src)), "source {src:?} is not a single host");
    }
    for dst in [[224, 0, 0, 251], [255; 4]] {
        assert!(silent(&through(v4(1), dst.into()).udp(1, 2, b"x")), "destination {dst:?} is a group");
    }
    let broadcast = Ip { dst_mac: MacAddr::BROADCAST, ..through(v4(1), v4(2)) };
    assert!(silent(&broadcast.udp(1, 2, b"x")), "link-layer broadcast");
    let mut fragment = good.clone();
    fragment[21] = 1;
    assert!(silent(&fragment), "a later fragment");
    fragment[20..22].copy_from_slice(&[0x20, 0]);
    assert!(!silent(&fragment), "the first fragment");
    let quoted = error(&good, IcmpError::NoRoute).expect("an answer");
    assert!(silent(&quoted), "an ICMP error");
    assert!(!silent(&through(v4(1), v4(2)).echo_request(1, 1, b"")), "an echo request");
    assert!(
        silent(&good[..30])
            && silent(&Arp::request(HOST_MAC, Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST).to_frame())
    );
    let headers = Headers::parse(&good);
    assert_eq!(
        icmp::error(&good, &headers, IcmpError::NoRoute, (ROUTER_MAC, v6(1))),
        None,
        "the other family"
    );
}

#[test]
fn no_icmpv6_error_is_sent_about_these() {
    let group = IpAddr::from([0xff02, 0, 0, 0, 0, 0, 0, 1]);
    let to_group = through(v6(1), group).udp(1, 2, &[0; 1400]);
    assert!(error(&to_group, IcmpError::HopLimit).is_none());
    assert!(error(&to_group, IcmpError::TooBig { mtu: 1280 }).is_some(), "RFC 4443 §2.4 (e.3)");
    for src in [Ipv6Addr::UNSPECIFIED, Ipv6Addr::LOCALHOST, Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1)] {
        assert!(error(&through(src.into(), v6(2)).udp(1, 2, b"x"), IcmpError::HopLimit).is_none(), "{src}");
    }
    let quoted = error(&through(v6(1), v6(2)).udp(1, 2, b"x"), IcmpError::NoRoute).expect("an answer");
    assert!(error(&quoted, IcmpError::HopLimit).is_none(), "an ICMPv6 error");
    let redirect = {
        let mut frame = through(v6(1), v6(2)).echo_request(1, 1, b"");
        frame[54] = 137;
        frame
    };
    assert!(error(&redirect, IcmpError::HopLimit).is_none(), "a redirect");
    assert!(error(&through(v6(1), v6(2)).echo_request(1, 1, b""), IcmpError::HopLimit).is_some());
}

#[test]
fn an_echo_request_is_answered_and_nothing_else_is() {
    for (src, dst) in [(v4(1), v4(254)), (v6(1), v6(254))] {
        let ip = Ip { traffic_class: 0xb8, ttl: 3, ..through(src, dst) };
        let request = ip.echo_request(0x1234, 7, b"odd");
        let reply = icmp::echo_reply(&request, &Headers::parse(&request)).expect("a reply");
        let back = Ip {
            traffic_class: 0xb8,
            dont_fragment: false,
            ..Ip::between((ROUTER_MAC, dst), (HOST_MAC, src))
        };
        assert_eq!(reply, back.echo_reply(0x1234, 7, b"odd"));
        assert_eq!(icmp::echo_reply(&reply, &Headers::parse(&reply)), None, "a reply");
        let mut corrupt = request.clone();
        *corrupt.last_mut().unwrap() ^= 1;
        assert_eq!(icmp::echo_reply(&corrupt, &Headers::parse(&corrupt)), None, "a wrong checksum");
        let udp = ip.udp(8, 0, b"xxxxxxxx");
        assert_eq!(icmp::echo_reply(&udp, &Headers::parse(&udp)), None, "not ICMP");
    }
}

#[test]
fn an_arp_request_has_exactly_these_bytes() {
    let request = Arp::request(HOST_MAC, Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 254));
    #[rustfmt::skip]
    let golden = [
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6, // Ethernet
        0, 1, 8, 0, 6, 4, 0, 1, // Ethernet, IPv4, lengths, request
        2, 0, 0, 0, 0, 1, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 192, 0, 2, 254,
    ];
    assert_eq!(request.to_frame(), golden);
    assert_eq!(Arp::parse(&golden, &Headers::parse(&golden)), Some(request));
    let reply = request.answer(ROUTER_MAC);
    let frame = reply.to_frame();
    assert_eq!(Arp::parse(&frame, &Headers::parse(&frame)), Some(reply));
    let headers = Headers::parse(&frame);
    assert_eq!((headers.src, headers.dst, reply.operation), (ROUTER_MAC, HOST_MAC, ArpOperation::Reply));
    assert_eq!((reply.sender_ip, reply.target_ip), (request.target_ip, request.sender_ip));

    for (at, byte) in [(15, 6), (16, 9), (18, 8), (19, 16), (21, 3)] {
        let mut other = golden;
        other[at] = byte;
        assert_eq!(Arp::parse(&other, &Headers::parse(&other)), None, "byte {at}");
    }
    assert_eq!(Arp::parse(&golden[..41], &Headers::parse(&golden[..41])), None);
}

#[test]
fn solicited_node_groups_are_those_of_the_rfcs() {
    // RFC 4291 §2.7.1 and RFC 2464 §7.
    let group = nd::solicited_node("4037::01:800:200E:8C6C".parse().unwrap());
    assert_eq!(group, "FF02::1:FF0E:8C6C".parse::<Ipv6Addr>().unwrap());
    assert_eq!(nd::multicast_mac(group), MacAddr([0x33, 0x33, 0xff, 0x0e, 0x8c, 0x6c]));
}

fn solicitation() -> Solicitation {
    let (IpAddr::V6(source), IpAddr::V6(target)) = (v6(1), v6(0xfe)) else { unreachable!("both are IPv6") };
    Solicitation { source, source_mac: HOST_MAC, target }
}

#[test]
fn a_solicitation_is_read_and_answered() {
    let question = solicitation();
    let frame = question.to_frame();
    assert_eq!(ends(&frame).1, MacAddr([0x33, 0x33, 0xff, 0, 0, 0xfe]));
    assert_eq!(Neighbor::parse(&frame, &Headers::parse(&frame)), Some(Neighbor::Solicitation(question)));

    let answer = question.answer(ROUTER_MAC, Role::Router);
    assert_eq!(ends(&answer), (ROUTER_MAC, HOST_MAC, v6(0xfe), v6(1)));
    assert_eq!(answer[54 + 4], 0xe0, "router, solicited, override");
    assert_eq!(question.answer(ROUTER_MAC, Role::Host)[54 + 4], 0x60);
    let Some(Neighbor::Advertisement(learned)) = Neighbor::parse(&answer, &Headers::parse(&answer)) else {
        panic!("an advertisement");
    };
    assert_eq!((learned.target, learned.target_mac), (question.target, ROUTER_MAC));
}

#[test]
fn duplicate_address_detection_is_answered_to_all_nodes() {
    let question = Solicitation { source: Ipv6Addr::UNSPECIFIED, ..solicitation() };
    let frame = question.to_frame();
    assert_eq!(Neighbor::parse(&frame, &Headers::parse(&frame)), Some(Neighbor::Solicitation(question)));
    let answer = question.answer(ROUTER_MAC, Role::Host);
    let (_, mac, _, dst) = ends(&answer);
    assert_eq!((mac, dst), (MacAddr([0x33, 0x33, 0, 0, 0, 1]), IpAddr::V6(nd::ALL_NODES)));
    assert_eq!(answer[54 + 4], 0x20, "override only");
}

#[test]
fn solicitations_that_must_be_ignored_are() {
    let good = solicitation().to_frame();
    let ignored = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = good.clone();
        change(&mut frame);
        Neighbor::parse(&frame, &Headers::parse(&frame)).is_none()
    };
    assert!(ignored(&|f| f[21] = 254), "a hop limit below 255: it passed a router");
    assert!(ignored(&|f| f[60] ^= 1), "a wrong checksum");
    assert!(ignored(&|f| f.truncate(80)), "a truncated frame");
    // The option length becomes 0. Two bytes at the same position in their words are swapped, so
    // the checksum stays correct (RFC 1071 §2A).
    assert!(ignored(&|f| f[78..82].copy_from_slice(&[1, 0, 2, 1])), "an option of length zero");
}

proptest! {
    #[test]
    fn random_frames_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..120), start in 0usize..5) {
        let mut frame = match start {
            0 => Vec::new(),
            1 => through(v4(1), v4(2)).echo_request(1, 2, b"abc"),
            2 => through(v6(1), v6(2)).tcp(&Tcp::default(), b"abc"),
            3 => solicitation().to_frame(),
            _ => ethernet(HOST_MAC, ROUTER_MAC, ethertype::ARP, &[0, 1, 8, 0, 6, 4]),
        };
        for (at, byte) in bytes.iter().enumerate().filter(|(_, byte)| **byte < 20) {
            if let Some(place) = frame.get_mut(at) {
                *place = *byte;
            }
        }
        frame.extend(bytes);
        let headers = Headers::parse(&frame);
        Arp::parse(&frame, &headers);
        Neighbor::parse(&frame, &headers);
        icmp::echo_reply(&frame, &headers);
        check_transport(&frame, &headers);
        for problem in [IcmpError::HopLimit, IcmpError::TooBig { mtu: 1280 }] {
            if let Some(answer) = error(&frame, problem) {
                prop_assert_eq!(check_transport(&answer, &Headers::parse(&answer)), ChecksumStatus::Good);
                prop_assert!(error(&answer, problem).is_none(), "no errors about errors");
            }
        }
    }
}
