//! `ct` in a switch: states, NAT and its checksums, errors of ICMP, marks.

use crate::connections::CtState;
use crate::flow::{FlowMod, Instructions};
use crate::outcome::{DropReason, PacketOutcome};
use crate::{Limits, Port, Switch, interp};
use fastpath_units::{Duration, Time};
use fastpath_wire::Headers;
use std::net::Ipv4Addr;

use crate::action::{Action, Ct, Extension, Zone};
use crate::field::Field;
use crate::matching::{FieldMatch, Match};
use fastpath_conntrack::{Commit, NatRequest, NatSide, NatSpec, PortChoice};
use std::sync::Arc;

mod alg;

const SYN: u16 = 2;
const ACK: u16 = 16;

fn action(extension: Extension) -> Action {
    Action::Extension(Arc::new(extension))
}

fn ct(ct: Ct) -> Action {
    action(Extension::Ct(ct))
}

/// Returns a match of IPv4 packets with these flags of `ct_state`.
fn ip(value: CtState, mask: CtState) -> Match {
    let state = FieldMatch::masked(Field::CtState, value.bits().into(), mask.bits().into());
    Match::new(&[FieldMatch::exact(Field::EthType, 0x0800), state]).expect("a match")
}

fn any_ip() -> Match {
    ip(CtState::default(), CtState::default())
}

fn switch(flows: &[(u8, u16, Match, Vec<Action>)]) -> Switch {
    let mut switch = Switch::new(Limits { tables: 4, ..Limits::default() });
    (1..=3).for_each(|number| switch.set_port(number, Port::up()));
    for (table, priority, matching, actions) in flows {
        let what = Instructions::apply(actions.clone());
        let flow = FlowMod::add(*table, *priority, matching.clone(), what);
        switch.flow_mod(Time::ZERO, &flow).expect("accepted");
    }
    switch
}

/// A firewall: port 1 may begin connections to port 2, and only replies come back.
fn firewall() -> Switch {
    let track = |zone| ct(Ct { table: Some(1), zone: Zone::Number(zone), ..Ct::default() });
    let commit = ct(Ct { commit: Commit::Yes, zone: Zone::Number(7), ..Ct::default() });
    let trk_new = CtState::TRACKED | CtState::NEW;
    let trk_est = CtState::TRACKED | CtState::ESTABLISHED;
    let from = |port: u128, state: CtState| {
        let all = [
            FieldMatch::exact(Field::EthType, 0x0800),
            FieldMatch::exact(Field::InPort, port),
            FieldMatch::masked(Field::CtState, state.bits().into(), state.bits().into()),
        ];
        Match::new(&all).expect("a match")
    };
    switch(&[
        (0, 1, any_ip(), vec![track(7)]),
        (1, 2, from(1, trk_new), vec![commit, Action::output(2)]),
        (1, 2, from(1, trk_est), vec![Action::output(2)]),
        (1, 2, from(2, trk_est), vec![Action::output(1)]),
        (1, 2, from(2, CtState::RELATED), vec![Action::output(1)]),
        (1, 0, Match::any(), vec![]),
    ])
}

fn header(protocol: u8, src: [u8; 4], dst: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let len = (20 + payload.len()) as u16;
    let mut ip = vec![0x45, 0, (len >> 8) as u8, len as u8, 0, 1, 0, 0, 64, protocol, 0, 0];
    ip.extend(src.iter().chain(&dst));
    let sum = sum_of(&[&ip]);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip.extend(payload);
    ip
}

/// The checksum of the Internet, word by word (RFC 1071).
fn sum_of(parts: &[&[u8]]) -> u16 {
    let bytes = parts.concat();
    let word = |two: &[u8]| u32::from(two[0]) << 8 | u32::from(*two.get(1).unwrap_or(&0));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn pseudo(protocol: u8, src: [u8; 4], dst: [u8; 4], len: usize) -> Vec<u8> {
    [&src[..], &dst[..], &[0, protocol, (len >> 8) as u8, len as u8]].concat()
}

fn frame(packet: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0][..], packet].concat()
}

fn tcp_packet(src: ([u8; 4], u16), dst: ([u8; 4], u16), flags: u16, seq: u32, ack: u32) -> Vec<u8> {
    let mut tcp = [src.1.to_be_bytes(), dst.1.to_be_bytes()].concat();
    tcp.extend([seq.to_be_bytes(), ack.to_be_bytes()].concat());
    tcp.extend([0x50, flags as u8, 0xff, 0xff, 0, 0, 0, 0]);
    let sum = sum_of(&[&pseudo(6, src.0, dst.0, tcp.len()), &tcp]);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    header(6, src.0, dst.0, &tcp)
}

fn tcp(src: ([u8; 4], u16), dst: ([u8; 4], u16), flags: u16, seq: u32, ack: u32) -> Vec<u8> {
    frame(&tcp_packet(src, dst, flags, seq, ack))
}

fn udp_packet(src: ([u8; 4], u16), dst: ([u8; 4], u16)) -> Vec<u8> {
    let mut udp = [src.1.to_be_bytes(), dst.1.to_be_bytes(), [0, 12], [0, 0]].concat();
    udp.extend(b"ping");
    let sum = sum_of(&[&pseudo(17, src.0, dst.0, udp.len()), &udp]);
    udp[6..8].copy_from_slice(&sum.to_be_bytes());
    header(17, src.0, dst.0, &udp)
}

/// An error of ICMP: the port is unreachable.
fn unreachable(from: [u8; 4], about: &[u8]) -> Vec<u8> {
    let to: [u8; 4] = about[12..16].try_into().expect("four bytes");
    let mut icmp = vec![3, 3, 0, 0, 0, 0, 0, 0];
    icmp.extend(&about[..28]);
    let sum = sum_of(&[&icmp]);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    frame(&header(1, from, to, &icmp))
}

/// Checks every checksum of a frame: of IP, of the transport, and of the packet in an error.
fn check_sums(frame: &[u8]) {
    let ip = &frame[14..];
    assert_eq!(sum_of(&[&ip[..20]]), 0, "header {ip:02x?}");
    let (src, dst): ([u8; 4], [u8; 4]) = (ip[12..16].try_into().unwrap(), ip[16..20].try_into().unwrap());
    let end = usize::from(ip[2]) << 8 | usize::from(ip[3]);
    let rest = &ip[20..end];
    match ip[9] {
        1 => {
            assert_eq!(sum_of(&[rest]), 0, "icmp {rest:02x?}");
            if rest[0] == 3 {
                assert_eq!(sum_of(&[&rest[8..28]]), 0, "inner header {rest:02x?}");
            }
        }
        protocol => assert_eq!(sum_of(&[&pseudo(protocol, src, dst, rest.len()), rest]), 0, "{rest:02x?}"),
    }
}

fn sent(switch: &mut Switch, now: Time, in_port: u32, frame: &[u8]) -> Option<(u32, Vec<u8>)> {
    interp(switch, now, in_port, frame).into_iter().find_map(|outcome| match outcome {
        PacketOutcome::Output { port, frame, .. } => Some((port, frame)),
        _ => None,
    })
}

fn passes(switch: &mut Switch, now: Time, in_port: u32, frame: &[u8]) -> bool {
    sent(switch, now, in_port, frame).is_some()
}

const INSIDE: ([u8; 4], u16) = ([10, 0, 0, 1], 4000);
const OUTSIDE: ([u8; 4], u16) = ([192, 0, 2, 1], 80);

fn at(seconds: u64) -> Time {
    Time::ZERO.saturating_add(Duration::from_secs(seconds))
}

#[test]
fn replies_pass_a_firewall_and_nothing_else_from_outside() {
    let mut switch = firewall();
    assert!(!passes(&mut switch, at(0), 2, &tcp(OUTSIDE, INSIDE, SYN, 1, 0)), "a stranger begins");
    assert!(passes(&mut switch, at(1), 1, &tcp(INSIDE, OUTSIDE, SYN, 100, 0)));
    assert!(passes(&mut switch, at(1), 2, &tcp(OUTSIDE, INSIDE, SYN | ACK, 500, 101)));
    assert!(passes(&mut switch, at(1), 1, &tcp(INSIDE, OUTSIDE, ACK, 101, 501)));
    assert!(!passes(&mut switch, at(1), 2, &tcp((OUTSIDE.0, 81), INSIDE, ACK, 1, 1)), "another port");
    let wrong = tcp(OUTSIDE, INSIDE, 4, 0x7000_0000, 0);
    assert!(!passes(&mut switch, at(1), 2, &wrong), "a reset far outside the window");
    assert!(passes(&mut switch, at(86_400), 2, &tcp(OUTSIDE, INSIDE, ACK, 501, 101)), "within a day");
    assert!(!passes(&mut switch, at(3 * 86_400), 2, &tcp(OUTSIDE, INSIDE, ACK, 501, 101)), "forgotten");
}

#[test]
fn an_error_about_a_connection_is_related_to_it() {
    let mut switch = firewall();
    let packet = udp_packet(INSIDE, OUTSIDE);
    assert!(!passes(&mut switch, at(0), 2, &unreachable([203, 0, 113, 9], &packet)), "about nothing");
    assert!(passes(&mut switch, at(0), 1, &frame(&packet)));
    assert!(passes(&mut switch, at(0), 2, &unreachable([203, 0, 113, 9], &packet)));
}

fn nat(side: NatSide, to: u128, ports: Option<(u16, u16)>) -> NatRequest {
    let addresses = Some((to, to));
    let (is_v6, choice, is_persistent) = (false, PortChoice::Default, false);
    NatRequest::New(NatSpec { side, addresses, is_v6, ports, choice, is_persistent })
}

/// Everything from port 1 leaves by port 2 with another address; everything else goes back.
fn translator(request: NatRequest) -> Switch {
    let commit = ct(Ct { commit: Commit::Yes, nat: Some(request), ..Ct::default() });
    let back = ct(Ct { table: Some(1), nat: Some(NatRequest::Existing), ..Ct::default() });
    let from = |port: u128| {
        let all = [FieldMatch::exact(Field::EthType, 0x0800), FieldMatch::exact(Field::InPort, port)];
        Match::new(&all).expect("a match")
    };
    let known = CtState::TRACKED | CtState::DST_NAT;
    switch(&[
        (0, 1, from(1), vec![commit, Action::output(2)]),
        (0, 1, from(2), vec![back]),
        (1, 1, ip(known, known), vec![Action::output(1)]),
        (1, 0, Match::any(), vec![]),
    ])
}

const PUBLIC: [u8; 4] = [203, 0, 113, 1];

#[test]
fn nat_changes_addresses_and_checksums_there_and_back() {
    let mut switch = translator(nat(NatSide::Source, u32::from_be_bytes(PUBLIC).into(), Some((6000, 6001))));
    let mut seen = Vec::new();
    for host in 1..=2 {
        let inside = ([10, 0, 0, host], 4000);
        let (_, out) = sent(&mut switch, at(0), 1, &frame(&udp_packet(inside, OUTSIDE))).expect("sent");
        check_sums(&out);
        let headers = Headers::parse(&out);
        let port = headers.transport.expect("ports").src_port;
        assert_eq!(headers.addresses().expect("IP").0, Ipv4Addr::from(PUBLIC));
        assert!((6000..=6001).contains(&port) && !seen.contains(&port), "{port} {seen:?}");
        seen.push(port);
        let reply = frame(&udp_packet(OUTSIDE, (PUBLIC, port)));
        let (_, back) = sent(&mut switch, at(0), 2, &reply).expect("sent back");
        check_sums(&back);
        let headers = Headers::parse(&back);
        assert_eq!(headers.addresses().expect("IP").1, Ipv4Addr::from(inside.0));
        assert_eq!(headers.transport.expect("ports").dst_port, 4000);
        // An error about the translated packet, from a router on the way.
        let error = unreachable([198, 51, 100, 1], &udp_packet((PUBLIC, port), OUTSIDE));
        let (_, back) = sent(&mut switch, at(0), 2, &error).expect("sent back");
        check_sums(&back);
        assert_eq!(back[14 + 16..14 + 20], inside.0, "to the host");
        assert_eq!(back[14 + 28 + 12..14 + 28 + 16], inside.0, "about its packet");
        assert_eq!(back[14 + 28 + 20..14 + 28 + 22], 4000u16.to_be_bytes());
        let sum = &back[14 + 28 + 26..14 + 28 + 28];
        assert_eq!(sum, &udp_packet(inside, OUTSIDE)[26..28], "the checksum of its packet");
    }
    let third = frame(&udp_packet(([10, 0, 0, 3], 4000), OUTSIDE));
    let outcomes = interp(&mut switch, at(0), 1, &third);
    assert_eq!(outcomes, [PacketOutcome::Drop(DropReason::NoFreeTuple)], "both ports are in use");
}

#[test]
fn destinations_are_translated_too() {
    let server = ([10, 0, 0, 9], 8080);
    let mut switch = translator(nat(NatSide::Destination, 0x0a00_0009, Some((8080, 8080))));
    let (_, out) = sent(&mut switch, at(0), 1, &tcp(INSIDE, OUTSIDE, SYN, 1, 0)).expect("sent");
    check_sums(&out);
    let headers = Headers::parse(&out);
    assert_eq!(headers.addresses().expect("IP").1, Ipv4Addr::from(server.0));
    assert_eq!(headers.transport.expect("ports").dst_port, 8080);
}

#[test]
fn a_mark_stays_with_its_connection() {
    let exec = vec![
        Action::SetField(Field::CtMark, 0x15),
        action(Extension::Set { field: Field::CtLabel, value: 1 << 100, mask: 3 << 100, is_load: false }),
    ];
    let commit = ct(Ct { commit: Commit::Yes, exec, ..Ct::default() });
    let track = ct(Ct { table: Some(1), ..Ct::default() });
    let marked = [
        FieldMatch::exact(Field::EthType, 0x0800),
        FieldMatch::exact(Field::CtMark, 0x15),
        FieldMatch::masked(Field::CtLabel, 1 << 100, 3 << 100),
        FieldMatch::exact(Field::CtNwSrc, 0x0a00_0001),
        FieldMatch::exact(Field::CtTpSrc, 4000),
    ];
    let clear = action(Extension::CtClear);
    let mut switch = switch(&[
        (0, 1, any_ip(), vec![track]),
        (1, 9, Match::new(&marked).expect("a match"), vec![Action::output(3)]),
        (1, 1, ip(CtState::TRACKED, CtState::TRACKED), vec![clear, commit, Action::output(2)]),
    ]);
    let (first, reply) = (tcp(INSIDE, OUTSIDE, SYN, 1, 0), tcp(OUTSIDE, INSIDE, SYN | ACK, 9, 2));
    assert_eq!(sent(&mut switch, at(0), 1, &first).expect("sent").0, 2);
    assert_eq!(sent(&mut switch, at(0), 2, &reply).expect("sent").0, 3, "by its mark");
    let list = switch.connections().list(at(0));
    assert_eq!((list.len(), list[0].mark, list[0].label), (1, 0x15, 1 << 100));
    assert_eq!(switch.connections().flush(None), 1);
    assert_eq!(sent(&mut switch, at(0), 2, &reply), None, "a SYN with ACK begins nothing");
}

#[test]
fn actions_that_cannot_be_are_refused() {
    let mut switch = switch(&[]);
    let mut refused = |matching: Match, ct: Ct| {
        let flow = FlowMod::add(0, 1, matching, Instructions::apply([action(Extension::Ct(ct))]));
        switch.flow_mod(Time::ZERO, &flow).is_err()
    };
    let mark = || vec![Action::SetField(Field::CtMark, 1)];
    assert!(!refused(any_ip(), Ct::default()));
    assert!(refused(Match::any(), Ct::default()), "not IP");
    assert!(refused(any_ip(), Ct { exec: mark(), ..Ct::default() }), "exec without commit");
    assert!(refused(any_ip(), Ct { nat: Some(nat(NatSide::Source, 1, None)), ..Ct::default() }));
    let other = vec![Action::SetField(Field::Metadata, 1)];
    assert!(refused(any_ip(), Ct { commit: Commit::Yes, exec: other, ..Ct::default() }));
    assert!(refused(any_ip(), Ct { table: Some(200), ..Ct::default() }));
}

#[test]
fn a_loop_of_tracked_packets_ends() {
    let again = ct(Ct { table: Some(0), ..Ct::default() });
    let mut switch = switch(&[(0, 1, any_ip(), vec![again.clone(), again])]);
    let outcomes = interp(&mut switch, at(0), 1, &tcp(INSIDE, OUTSIDE, SYN, 1, 0));
    assert_eq!(outcomes, [PacketOutcome::Drop(DropReason::TooManyResubmits)]);
}
