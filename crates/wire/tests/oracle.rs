//! Compares built and parsed frames with etherparse, an independent implementation.

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use fastpath_wire::build::{Ip, Tcp, tcp_flags};
use fastpath_wire::checksum::{ChecksumStatus, check_transport};
use fastpath_wire::{Headers, MacAddr, NetworkLayer};
use proptest::prelude::*;
use std::net::IpAddr;

fn ends() -> impl Strategy<Value = Ip> {
    let v4 = (any::<[u8; 4]>(), any::<[u8; 4]>()).prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b)));
    let v6 = (any::<[u8; 16]>(), any::<[u8; 16]>()).prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b)));
    (prop_oneof![v4, v6], any::<[u8; 6]>(), any::<[u8; 6]>(), any::<(u8, u8, u16, bool)>()).prop_map(
        |((src, dst), src_mac, dst_mac, (ttl, traffic_class, id, dont_fragment))| Ip {
            ttl,
            traffic_class,
            id,
            dont_fragment,
            ..Ip::between((MacAddr(src_mac), src), (MacAddr(dst_mac), dst))
        },
    )
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..300)
}

/// Asserts that both parsers read the same fields and that both accept the checksums.
fn agree(frame: &[u8], ip: &Ip) -> Result<(), TestCaseError> {
    let ours = Headers::parse(frame);
    let theirs = SlicedPacket::from_ethernet(frame).expect("etherparse reads what we build");
    let (src, dst) = ours.addresses().expect("it is IP");
    match theirs.net.as_ref().expect("it is IP") {
        NetSlice::Ipv4(slice) => {
            let header = slice.header();
            prop_assert_eq!(header.header_checksum(), header.to_header().calc_header_checksum());
            prop_assert_eq!(ours.ipv4_checksum_ok(frame), Some(true));
            prop_assert_eq!((src, dst), (header.source_addr().into(), header.destination_addr().into()));
            let NetworkLayer::Ipv4(v4) = ours.network else { panic!("{ours:?}") };
            prop_assert_eq!((v4.ttl, v4.id, v4.dont_fragment), (ip.ttl, ip.id, ip.dont_fragment));
            prop_assert_eq!(
                (v4.ttl, v4.id, v4.dont_fragment),
                (header.ttl(), header.identification(), header.dont_fragment())
            );
            prop_assert_eq!((v4.tos, v4.tos >> 2), (ip.traffic_class, header.dcp().value()));
        }
        NetSlice::Ipv6(slice) => {
            let header = slice.header();
            prop_assert_eq!((src, dst), (header.source_addr().into(), header.destination_addr().into()));
            let NetworkLayer::Ipv6(v6) = ours.network else { panic!("{ours:?}") };
            prop_assert_eq!((v6.hop_limit, v6.traffic_class), (ip.ttl, ip.traffic_class));
            prop_assert_eq!((v6.hop_limit, v6.traffic_class), (header.hop_limit(), header.traffic_class()));
        }
        NetSlice::Arp(_) => panic!("it is IP"),
    }
    prop_assert_eq!(check_transport(frame, &ours), ChecksumStatus::Good);
    let sum_of_theirs = transport_checksums(&theirs);
    prop_assert_eq!(sum_of_theirs.0, sum_of_theirs.1);
    Ok(())
}

/// Returns the transport checksum in the frame and the one that etherparse computes.
fn transport_checksums(packet: &SlicedPacket) -> (u16, u16) {
    let net = packet.net.as_ref().expect("it is IP");
    match (net, packet.transport.as_ref().expect("it has a transport")) {
        (NetSlice::Ipv4(ip), TransportSlice::Udp(udp)) => (
            udp.checksum(),
            udp.to_header().calc_checksum_ipv4(&ip.header().to_header(), udp.payload()).unwrap(),
        ),
        (NetSlice::Ipv6(ip), TransportSlice::Udp(udp)) => (
            udp.checksum(),
            udp.to_header().calc_checksum_ipv6(&ip.header().to_header(), udp.payload()).unwrap(),
        ),
        (NetSlice::Ipv4(ip), TransportSlice::Tcp(tcp)) => {
            (tcp.checksum(), tcp.calc_checksum_ipv4(ip.header().source(), ip.header().destination()).unwrap())
        }
        (NetSlice::Ipv6(ip), TransportSlice::Tcp(tcp)) => {
            (tcp.checksum(), tcp.calc_checksum_ipv6(ip.header().source(), ip.header().destination()).unwrap())
        }
        (_, TransportSlice::Icmpv4(icmp)) => {
            (icmp.checksum(), icmp.icmp_type().calc_checksum(icmp.payload()))
        }
        (NetSlice::Ipv6(ip), TransportSlice::Icmpv6(icmp)) => {
            let h = ip.header();
            (
                icmp.checksum(),
                icmp.icmp_type().calc_checksum(h.source(), h.destination(), icmp.payload()).unwrap(),
            )
        }
        other => panic!("not built in this test: {other:?}"),
    }
}

proptest! {
    #[test]
    fn udp_is_parsed_as_by_etherparse(ip in ends(), ports: (u16, u16), payload in payload()) {
        let frame = ip.udp(ports.0, ports.1, &payload);
        agree(&frame, &ip)?;
        let transport = Headers::parse(&frame).transport.expect("UDP");
        prop_assert_eq!((transport.src_port, transport.dst_port), ports);
        prop_assert_eq!(&frame[transport.offset + 8..], &payload[..]);
    }

    #[test]
    fn tcp_is_parsed_as_by_etherparse(ip in ends(), ports: (u16, u16), numbers: (u32, u32, u16), payload in payload()) {
        let (seq, ack, window) = numbers;
        let tcp = Tcp { src_port: ports.0, dst_port: ports.1, seq, ack, flags: tcp_flags::ACK, window };
        agree(&ip.tcp(&tcp, &payload), &ip)?;
    }

    #[test]
    fn echoes_are_parsed_as_by_etherparse(ip in ends(), ids: (u16, u16), payload in payload()) {
        agree(&ip.echo_request(ids.0, ids.1, &payload), &ip)?;
        agree(&ip.echo_reply(ids.0, ids.1, &payload), &ip)?;
    }

    #[test]
    fn mangled_frames_are_parsed_as_by_etherparse(ip in ends(), tags in 0usize..3, length in any::<u16>(), mangled in prop::collection::vec((14usize..80, any::<u8>()), 0..4)) {
        let mut frame = ip.udp(1000, 53, &[0; 40]);
        for _ in 0..tags {
            frame.splice(12..12, [0x81, 0, 0, 7]);
        }
        for (at, byte) in mangled {
            frame[at] = byte;
        }
        frame.truncate(frame.len().saturating_sub(usize::from(length % 40).saturating_sub(20)));
        // Frames that etherparse accepts must be parsed in the same way.
        let ours = Headers::parse(&frame);
        let Ok(theirs) = SlicedPacket::from_ethernet(&frame) else { return Ok(()) };
        match &theirs.net {
            Some(NetSlice::Ipv4(slice)) => {
                let header = slice.header();
                let NetworkLayer::Ipv4(v4) = ours.network else { panic!("{ours:?}") };
                prop_assert_eq!((v4.src, v4.dst, v4.protocol), (header.source_addr(), header.destination_addr(), header.protocol().0));
                prop_assert_eq!((v4.total_len, v4.more_fragments), (header.total_len(), header.more_fragments()));
                prop_assert_eq!(v4.fragment_offset, header.fragments_offset().byte_offset());
                prop_assert_eq!(v4.has_options(), !header.options().is_empty());
            }
            Some(NetSlice::Ipv6(slice)) => {
                let header = slice.header();
                let NetworkLayer::Ipv6(v6) = ours.network else { panic!("{ours:?}") };
                prop_assert_eq!((v6.src, v6.dst), (header.source_addr(), header.destination_addr()));
                prop_assert_eq!((v6.payload_len, v6.flow_label), (header.payload_length(), header.flow_label().value()));
                prop_assert_eq!(v6.protocol, slice.payload().ip_number.0);
            }
            Some(NetSlice::Arp(_)) => prop_assert_eq!(ours.network, NetworkLayer::Arp),
            None => prop_assert!(!matches!(ours.network, NetworkLayer::Ipv4(_) | NetworkLayer::Ipv6(_))),
        }
        let ports = match &theirs.transport {
            Some(TransportSlice::Udp(udp)) => Some((udp.source_port(), udp.destination_port())),
            Some(TransportSlice::Tcp(tcp)) => Some((tcp.source_port(), tcp.destination_port())),
            _ => None,
        };
        if let Some(ports) = ports {
            prop_assert_eq!(ours.transport.map(|t| (t.src_port, t.dst_port)), Some(ports));
        }
    }

    #[test]
    fn a_flipped_bit_is_a_bad_checksum(ip in ends(), payload in payload(), at in any::<prop::sample::Index>(), bit in 0u32..8) {
        let mut frame = ip.udp(1, 2, &payload);
        // Any byte except the length field, which changes the summed range.
        let udp = Headers::parse(&frame).transport.expect("UDP").offset;
        let places: Vec<usize> = (udp..udp + 4).chain(udp + 6..frame.len()).collect();
        frame[places[at.index(places.len())]] ^= 1u8 << bit;
        prop_assert_ne!(check_transport(&frame, &Headers::parse(&frame)), ChecksumStatus::Good);
    }
}
