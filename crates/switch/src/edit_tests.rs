//! Tests of frame edits: the cases of os-ken's switch tests, and checksums that stay right.

use super::*;
use crate::key::{Key, PipelineFields};
use fastpath_wire::MacAddr;
use fastpath_wire::build::{Ip, Tcp};
use fastpath_wire::checksum::{ChecksumStatus, check_transport};
use proptest::prelude::*;

fn v4() -> Ip {
    let end = |n: u8| (MacAddr::from_index(n.into()), [192, 0, 2, n].into());
    Ip { traffic_class: 72, ..Ip::between(end(1), end(2)) }
}

fn v6() -> Ip {
    let end = |n: u16| (MacAddr::from_index(n.into()), [0x2001, 0xdb8, 0, 0, 0, 0, 0, n].into());
    Ip { traffic_class: 72, ..Ip::between(end(1), end(2)) }
}

fn get(frame: &[u8], field: Field) -> Option<u128> {
    Key::extract(frame, &Headers::parse(frame), PipelineFields::default()).get(field)
}

fn assert_sums_right(frame: &[u8]) {
    let headers = Headers::parse(frame);
    assert_ne!(headers.ipv4_checksum_ok(frame), Some(false));
    assert!(!matches!(check_transport(frame, &headers), ChecksumStatus::Bad), "{frame:02x?}");
}

#[test]
fn a_pushed_vlan_tag_copies_the_one_below_and_pops_again() {
    let untouched = v4().udp(1, 2, b"x");
    let mut frame = untouched.clone();
    push_vlan(&mut frame, 0x8100);
    assert_eq!(get(&frame, Field::VlanVid), Some(0x1000));
    set_field(&mut frame, Field::VlanVid, 0x1064);
    set_field(&mut frame, Field::VlanPcp, 3);
    push_vlan(&mut frame, 0x88a8);
    assert_eq!(frame[12..20], [0x88, 0xa8, 0x60, 0x64, 0x81, 0x00, 0x60, 0x64]);
    pop_vlan(&mut frame);
    pop_vlan(&mut frame);
    assert_eq!(frame, untouched);
    pop_vlan(&mut frame);
    assert_eq!(frame, untouched, "nothing to pop");
}

#[test]
fn a_pushed_label_takes_the_ttl_and_only_the_lowest_is_the_bottom() {
    let untouched = v4().udp(1, 2, b"x");
    let mut frame = untouched.clone();
    push_mpls(&mut frame, 0x8847);
    assert_eq!(frame[12..18], [0x88, 0x47, 0, 0, 1, 64]);
    set_field(&mut frame, Field::MplsLabel, 100);
    set_field(&mut frame, Field::MplsTc, 3);
    push_mpls(&mut frame, 0x8847);
    assert_eq!(frame[12..22], [0x88, 0x47, 0, 6, 0x46, 64, 0, 6, 0x47, 64]);
    pop_mpls(&mut frame, 0x8847);
    pop_mpls(&mut frame, 0x0800);
    assert_eq!(frame, untouched);
}

#[test]
fn a_label_goes_before_tags_and_pops_back_to_them() {
    let mut frame = v4().udp(1, 2, b"x");
    push_vlan(&mut frame, 0x8100);
    let tagged = frame.clone();
    push_mpls(&mut frame, 0x8847);
    assert_eq!(frame[12..20], [0x88, 0x47, 0, 0, 1, 64, 0, 0]);
    pop_mpls(&mut frame, 0x8100);
    assert_eq!(frame, tagged);
}

#[test]
fn a_service_instance_wraps_the_whole_frame() {
    let untouched = v4().udp(1, 2, b"x");
    let mut frame = untouched.clone();
    push_pbb(&mut frame, 0x88e7);
    assert_eq!(frame[..12], untouched[..12]);
    assert_eq!(frame[12..18], [0x88, 0xe7, 0, 0, 0, 0]);
    assert_eq!(frame[18..], untouched);
    set_field(&mut frame, Field::PbbIsid, 203);
    assert_eq!(get(&frame, Field::PbbIsid), Some(203));
    pop_pbb(&mut frame);
    // The rest is short, so it keeps Ethernet's minimum length.
    assert_eq!((&frame[..untouched.len()], frame.len()), (&untouched[..], 60));
}

#[test]
fn hops_are_counted_until_one_is_left() {
    for build in [v4(), v6()] {
        let mut frame = Ip { ttl: 2, ..build }.udp(1, 2, b"x");
        assert_eq!(dec_nw_ttl(&mut frame), Ttl::Alive);
        assert_sums_right(&frame);
        let before = frame.clone();
        assert_eq!(dec_nw_ttl(&mut frame), Ttl::Invalid);
        assert_eq!(frame, before);
        push_mpls(&mut frame, 0x8847);
        assert_eq!(dec_mpls_ttl(&mut frame), Ttl::Invalid);
        set_mpls_ttl(&mut frame, 9);
        assert_eq!(dec_mpls_ttl(&mut frame), Ttl::Alive);
        assert_eq!(frame[17], 8);
    }
}

#[test]
fn ttls_are_copied_between_labels_and_to_the_header_below() {
    for build in [v4(), v6()] {
        let mut frame = Ip { ttl: 32, ..build }.udp(1, 2, b"x");
        let ethertype = [frame[12], frame[13]];
        push_mpls(&mut frame, 0x8847);
        set_mpls_ttl(&mut frame, 64);
        copy_ttl_in(&mut frame);
        push_mpls(&mut frame, 0x8847);
        set_mpls_ttl(&mut frame, 7);
        copy_ttl_out(&mut frame);
        assert_eq!(frame[17], 64, "label from label");
        set_mpls_ttl(&mut frame, 5);
        copy_ttl_in(&mut frame);
        assert_eq!(frame[21], 5, "label to label");
        pop_mpls(&mut frame, 0x8847);
        pop_mpls(&mut frame, u16::from_be_bytes(ethertype));
        assert_sums_right(&frame);
        assert_eq!(dec_nw_ttl(&mut frame), Ttl::Alive);
        let headers = Headers::parse(&frame);
        assert!(
            matches!(headers.network, NetworkLayer::Ipv4(ip) if ip.ttl == 63)
                || matches!(headers.network, NetworkLayer::Ipv6(ip) if ip.hop_limit == 63)
        );
    }
}

#[test]
fn drop_precedence_rises_to_three_within_its_class() {
    // TOS 72 is AF21 (DSCP 18); os-ken expects AF22 (20) after one level.
    for (tos, levels, expected) in [(72, 1, 20), (72, 2, 22), (72, 9, 22), (0, 1, 0), (0xb8, 1, 46)] {
        let mut frame = Ip { traffic_class: tos, ..v4() }.udp(1, 2, b"x");
        raise_drop_precedence(&mut frame, levels);
        assert_eq!(get(&frame, Field::IpDscp), Some(expected), "TOS {tos} by {levels}");
        assert_sums_right(&frame);
    }
}

#[test]
fn the_sctp_crc_follows_the_ports() {
    let mut packet = vec![0, 1, 0, 2, 0, 0, 0, 9, 0, 0, 0, 0, 1, 2, 3, 4];
    let crc = sctp::checksum(&packet);
    packet[8..12].copy_from_slice(&crc);
    let mut frame = v4().packet(132, &packet);
    set_field(&mut frame, Field::SctpDst, 4000);
    assert_eq!(get(&frame, Field::SctpDst), Some(4000));
    assert_eq!(sctp::checksum(&frame[34..50]), frame[42..46]);
    frame[42] ^= 1;
    let wrong = frame[42..46].to_vec();
    set_field(&mut frame, Field::SctpDst, 1);
    assert_eq!(frame[42..46], wrong, "a wrong one stays wrong");
}

#[test]
fn the_protocol_of_ipv6_is_named_by_the_last_extension_header() {
    let mut chain = vec![6, 0, 0, 0, 0, 0, 0, 0];
    chain.extend([0; 20]);
    let mut frame = v6().packet(60, &chain);
    set_field(&mut frame, Field::IpProto, 17);
    assert_eq!((frame[20], frame[54]), (60, 17));
    assert_eq!(get(&frame, Field::IpProto), Some(17));
}

#[test]
fn an_absent_udp_checksum_stays_absent() {
    let mut frame = v4().udp(1, 2, b"x");
    frame[40..42].fill(0);
    set_field(&mut frame, Field::Ipv4Src, 0x0a00_0001);
    set_field(&mut frame, Field::UdpDst, 9);
    assert_eq!(frame[40..42], [0, 0]);
}

#[test]
fn neighbour_discovery_fields_are_set_under_the_checksum() {
    let mut message = vec![135, 0, 0, 0, 0, 0, 0, 0];
    message.extend([0xfe; 16]);
    message.extend([1, 1, 2, 0, 0, 0, 0, 5]);
    let mut frame = v6().packet(58, &message);
    let sum = {
        let NetworkLayer::Ipv6(ip) = Headers::parse(&frame).network else { panic!("IPv6") };
        checksum::Sum::pseudo_v6(ip.src, ip.dst, 58, 32).bytes(&message).checksum()
    };
    frame[56..58].copy_from_slice(&sum.to_be_bytes());
    for (field, value) in
        [(Field::Ipv6NdTarget, 0x77), (Field::Ipv6NdSll, 0x0200_0000_0009), (Field::Icmpv6Code, 1)]
    {
        set_field(&mut frame, field, value);
        assert_sums_right(&frame);
        assert_eq!(get(&frame, field), Some(value));
    }
}

proptest! {
    #[test]
    fn set_fields_read_back_and_every_checksum_stays_right(which in 0usize..53, value: u128, kind in 0usize..4, tags in 0u8..3) {
        let field = crate::field::FIELDS[which].field;
        let build = if kind % 2 == 0 { v4() } else { v6() };
        let mut frame = match kind {
            0 | 1 => build.udp(1000, 53, b"payload"),
            _ => build.tcp(&Tcp { src_port: 1, dst_port: 2, ..Tcp::default() }, b"payl"),
        };
        for _ in 0..tags {
            push_vlan(&mut frame, 0x8100);
        }
        let value = value & field.ones();
        let had = get(&frame, field).is_some();
        // With another protocol or EtherType, other bytes of the packet are the checksum.
        let is_in_frame = !PipelineFields::default().set(field, 0);
        if is_in_frame && field.is_settable() && !matches!(field, Field::EthType | Field::IpProto) {
            set_field(&mut frame, field, value);
            assert_sums_right(&frame);
            let expected = match field {
                Field::VlanVid if tags == 0 => Some(0),
                Field::VlanVid => Some(value | 0x1000),
                _ => had.then_some(value),
            };
            prop_assert_eq!(get(&frame, field), expected);
        }
    }

    #[test]
    fn no_frame_makes_a_change_panic(frame in prop::collection::vec(any::<u8>(), 14..120), kind in 0usize..6, which in 0usize..53, value: u128) {
        let mut frame = frame;
        let kinds = [[8u8, 0], [0x86, 0xdd], [8, 6], [0x88, 0x47], [0x88, 0xe7], [0x81, 0]];
        frame[12..14].copy_from_slice(&kinds[kind]);
        if frame.len() > 30 {
            frame[14] = if kind == 1 { 0x60 } else { 0x45 };
            frame[16] = 0;
            frame[18] = 0;
            if kind == 0 {
                frame[17] = (frame.len() - 14) as u8;
            }
        }
        let field = crate::field::FIELDS[which].field;
        set_field(&mut frame.clone(), field, value & field.ones());
        dec_nw_ttl(&mut frame);
        dec_mpls_ttl(&mut frame);
        copy_ttl_in(&mut frame);
        copy_ttl_out(&mut frame);
        raise_drop_precedence(&mut frame, 1);
        push_vlan(&mut frame, 0x8100);
        push_mpls(&mut frame, 0x8847);
        pop_vlan(&mut frame);
        pop_mpls(&mut frame, 0x0800);
        pop_pbb(&mut frame);
        push_pbb(&mut frame, 0x88e7);
        pop_pbb(&mut frame);
    }
}

#[test]
fn a_frame_that_a_pop_leaves_short_is_padded_as_a_mac_would_and_a_short_one_is_not() {
    for (len, after) in [(60, 60), (63, 60), (64, 60), (65, 61), (59, 55), (20, 16)] {
        let mut frame = vec![7; len];
        frame[12..16].copy_from_slice(&[0x81, 0, 0, 5]);
        pop_vlan(&mut frame);
        assert_eq!(frame.len(), after, "{len}");
        assert!(frame[len.min(after) - 4..].iter().all(|byte| *byte == 0 || *byte == 7));
    }
}

#[test]
fn another_ip_protocol_keeps_the_checksum_that_covers_it_right_where_it_is() {
    let ends: [[std::net::IpAddr; 2]; 2] = [
        [[192, 0, 2, 1].into(), [192, 0, 2, 2].into()],
        ["2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap()],
    ];
    for [src, dst] in ends {
        let mac = MacAddr::from_index;
        let mut frame = Ip::between((mac(1), src), (mac(2), dst)).tcp(&Tcp::default(), b"payload");
        let before = frame.clone();
        set_field(&mut frame, Field::IpProto, 253);
        let headers = Headers::parse(&before);
        let at = match headers.network {
            NetworkLayer::Ipv4(ip) => ip.payload_offset(),
            NetworkLayer::Ipv6(ip) => ip.payload_offset,
            _ => panic!("{:?}", headers.network),
        } + 16;
        // In ones' complement, the sum decreases by as much as the protocol increases: 253 - 6.
        let sum = |frame: &[u8]| u32::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
        assert_eq!((sum(&frame) + 247) % 0xffff, sum(&before) % 0xffff);
    }
}
