//! Frames: every reader of frames, and what is answered to or done with them.

use fastpath_wire::arp::Arp;
use fastpath_wire::icmp::{self, IcmpError};
use fastpath_wire::ipv4::{self, HopResult};
use fastpath_wire::nd::{Neighbor, Role};
use fastpath_wire::{Headers, MacAddr, NetworkLayer, checksum, ecn, ipv6};
use std::net::{Ipv4Addr, Ipv6Addr};

/// A frame from anywhere: every reader of frames copes, and what is answered or changed is sound
/// again.
pub fn wire(frame: &[u8]) {
    let headers = Headers::parse(frame);
    let _ = (headers.flow_hash(), headers.addresses(), checksum::check_transport(frame, &headers));
    for wire_len in [0, 60, frame.len() + 1, usize::from(u16::MAX) * 2] {
        Headers::parse_captured(frame, wire_len).flow_hash();
    }
    if let Some(arp) = Arp::parse(frame, &headers) {
        sound(&arp.answer(MacAddr::from_index(1)).to_frame());
    }
    if let Some(Neighbor::Solicitation(solicitation)) = Neighbor::parse(frame, &headers) {
        sound(&solicitation.answer(MacAddr::from_index(1), Role::Router));
    }
    icmp::echo_reply(frame, &headers).iter().for_each(|reply| sound(reply));
    let problems = [
        IcmpError::HopLimit,
        IcmpError::NoRoute,
        IcmpError::HostUnreachable,
        IcmpError::PortUnreachable,
        IcmpError::TooBig { mtu: 1280 },
    ];
    for problem in problems {
        for from in [Ipv4Addr::new(10, 0, 0, 1).into(), Ipv6Addr::LOCALHOST.into()] {
            let error = icmp::error(frame, &headers, problem, (MacAddr::from_index(1), from));
            error.iter().for_each(|error| sound(error));
        }
    }
    hop(frame, &headers);
}

/// What a router does to a frame it forwards keeps a right header checksum right.
fn hop(frame: &[u8], headers: &Headers) {
    let mut forwarded = frame.to_vec();
    ecn::set_ce(&mut forwarded, headers);
    let hop = match headers.network {
        NetworkLayer::Ipv4(ip) => ipv4::decrement_ttl(&mut forwarded, ip.offset),
        NetworkLayer::Ipv6(ip) => ipv6::decrement_hop_limit(&mut forwarded, ip.offset),
        NetworkLayer::Arp | NetworkLayer::Other | NetworkLayer::Malformed(_) => return,
    };
    if hop == HopResult::Forward {
        let after = Headers::parse(&forwarded);
        assert_eq!(after.ipv4_checksum_ok(&forwarded), headers.ipv4_checksum_ok(frame));
        assert_eq!(after.addresses(), headers.addresses());
    }
}

/// A frame of our own making parses, and its checksums are right.
fn sound(frame: &[u8]) {
    let headers = Headers::parse(frame);
    assert!(!matches!(headers.network, NetworkLayer::Malformed(_) | NetworkLayer::Other), "{headers:?}");
    assert_ne!(headers.ipv4_checksum_ok(frame), Some(false));
    if headers.network != NetworkLayer::Arp {
        assert_eq!(checksum::check_transport(frame, &headers), checksum::ChecksumStatus::Good);
    }
}
