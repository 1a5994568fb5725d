//! Helpers: connections of data of FTP and TFTP are related, also behind NAT.

use super::*;
use fastpath_conntrack::Alg;

const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 4000);
const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 21);
const PSH: u16 = 8;

/// Returns a segment with payload, and with a block of SACK if one is given.
fn segment(
    (src, dst): (([u8; 4], u16), ([u8; 4], u16)),
    flags: u16,
    (seq, ack): (u32, u32),
    payload: &str,
    sack: Option<(u32, u32)>,
) -> Vec<u8> {
    let mut tcp = [src.1.to_be_bytes(), dst.1.to_be_bytes()].concat();
    tcp.extend([seq.to_be_bytes(), ack.to_be_bytes()].concat());
    tcp.extend([0x50, flags as u8, 0xff, 0xff, 0, 0, 0, 0]);
    if let Some((left, right)) = sack {
        tcp[12] = 0x80;
        tcp.extend([1, 1, 5, 10]);
        tcp.extend([left.to_be_bytes(), right.to_be_bytes()].concat());
    }
    tcp.extend(payload.bytes());
    let sum = sum_of(&[&pseudo(6, src.0, dst.0, tcp.len()), &tcp]);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    frame(&header(6, src.0, dst.0, &tcp))
}

/// Tracks everything in one zone. From port 1 everything begins connections; from port 2 only what
/// is related.
fn gateway(nat: Option<NatRequest>, alg: Alg) -> Switch {
    let existing = nat.map(|_| NatRequest::Existing);
    let track = ct(Ct { table: Some(1), nat: existing, ..Ct::default() });
    let commit = ct(Ct { commit: Commit::Yes, nat, alg: Some(alg), ..Ct::default() });
    let related = ct(Ct { commit: Commit::Yes, nat: existing, ..Ct::default() });
    let with = |port: u128, state: CtState, without: CtState| {
        let mask = (state | without).bits();
        let all = [
            FieldMatch::exact(Field::EthType, 0x0800),
            FieldMatch::exact(Field::InPort, port),
            FieldMatch::masked(Field::CtState, state.bits().into(), mask.into()),
        ];
        Match::new(&all).expect("a match")
    };
    let protocol = if alg == Alg::Ftp { 6 } else { 17 };
    let first = [
        FieldMatch::exact(Field::EthType, 0x0800),
        FieldMatch::exact(Field::InPort, 1),
        FieldMatch::exact(Field::IpProto, protocol),
        FieldMatch::masked(Field::CtState, CtState::NEW.bits().into(), CtState::NEW.bits().into()),
    ];
    let first = Match::new(&first).expect("a match");
    let none = CtState::default();
    switch(&[
        (0, 1, any_ip(), vec![track]),
        (1, 9, with(1, CtState::INVALID, none), vec![]),
        (1, 9, with(2, CtState::INVALID, none), vec![]),
        (1, 5, with(1, CtState::NEW | CtState::RELATED, none), vec![related.clone(), Action::output(2)]),
        (1, 5, with(2, CtState::NEW | CtState::RELATED, none), vec![related, Action::output(1)]),
        (1, 3, first, vec![commit, Action::output(2)]),
        (1, 3, with(1, CtState::ESTABLISHED, none), vec![Action::output(2)]),
        (1, 3, with(2, CtState::ESTABLISHED, none), vec![Action::output(1)]),
        (1, 0, Match::any(), vec![]),
    ])
}

/// Opens a connection of control. `outside` is the client as the server sees it.
fn open(switch: &mut Switch, outside: ([u8; 4], u16)) {
    assert!(passes(switch, at(0), 1, &segment((CLIENT, SERVER), SYN, (99, 0), "", None)));
    assert!(passes(switch, at(0), 2, &segment((SERVER, outside), SYN | ACK, (499, 100), "", None)));
    assert!(passes(switch, at(0), 1, &segment((CLIENT, SERVER), ACK, (100, 500), "", None)));
}

fn payload(frame: &[u8]) -> String {
    let ip = &frame[14..];
    let end = usize::from(ip[2]) << 8 | usize::from(ip[3]);
    let start = 20 + usize::from(ip[32] >> 4) * 4;
    String::from_utf8_lossy(&ip[start..end]).into_owned()
}

fn number(frame: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(frame[34 + at..34 + at + 4].try_into().expect("four bytes"))
}

#[test]
fn data_connections_of_ftp_are_related() {
    let mut switch = gateway(None, Alg::Ftp);
    open(&mut switch, CLIENT);
    let syn = |from: ([u8; 4], u16), to: ([u8; 4], u16)| segment((from, to), SYN, (1, 0), "", None);
    let data = ([10, 0, 0, 1], 1025);
    assert!(!passes(&mut switch, at(1), 2, &syn((SERVER.0, 20), data)), "nothing was agreed on");
    let port = segment((CLIENT, SERVER), ACK | PSH, (100, 500), "PORT 10,0,0,1,4,1\r\n", None);
    assert!(passes(&mut switch, at(1), 1, &port));
    assert!(passes(&mut switch, at(1), 2, &syn((SERVER.0, 20), data)));
    let back = segment((data, (SERVER.0, 20)), SYN | ACK, (7, 2), "", None);
    assert!(passes(&mut switch, at(1), 1, &back), "it is a connection");
    assert!(!passes(&mut switch, at(1), 2, &syn((SERVER.0, 20), (data.0, 1026))), "another port");
    assert!(!passes(&mut switch, at(1), 2, &syn(([192, 0, 2, 2], 20), data)), "another host");
    let list = switch.connections().list(at(1));
    assert_eq!(list.iter().filter(|one| one.parent.is_some()).count(), 1, "{list:?}");
    assert_eq!(list.iter().filter(|one| one.alg == Some(Alg::Ftp)).count(), 1, "{list:?}");
    let elsewhere = segment((CLIENT, SERVER), ACK | PSH, (119, 500), "PORT 10,0,0,7,4,1\r\n", None);
    assert!(!passes(&mut switch, at(1), 1, &elsewhere), "the address of a third host");
}

#[test]
fn passive_data_connections_know_their_parent() {
    let mut switch = gateway(None, Alg::Ftp);
    open(&mut switch, CLIENT);
    let answer = "227 Entering Passive Mode (192,0,2,1,78,32).\r\n";
    assert!(passes(&mut switch, at(1), 2, &segment((SERVER, CLIENT), ACK | PSH, (500, 100), answer, None)));
    let data = segment((([10, 0, 0, 1], 5000), (SERVER.0, 20_000)), SYN, (1, 0), "", None);
    assert!(passes(&mut switch, at(1), 1, &data));
    let list = switch.connections().list(at(1));
    let parent = list.iter().find(|one| one.parent.is_some()).and_then(|one| one.parent);
    assert_eq!(parent.map(|parent| (parent.src_port, parent.dst_port)), Some((4000, 21)));
}

#[test]
fn addresses_in_ftp_are_translated_and_numbers_behind_them_move() {
    let source = nat(NatSide::Source, u32::from_be_bytes(PUBLIC).into(), None);
    let mut switch = gateway(Some(source), Alg::Ftp);
    let outside = (PUBLIC, 4000);
    open(&mut switch, outside);
    let send = |switch: &mut Switch, port: u32, frame: &[u8]| {
        let (_, out) = sent(switch, at(1), port, frame).expect("sent");
        check_sums(&out);
        out
    };
    let text = "PORT 10,0,0,1,4,1\r\n";
    let moved = "PORT 203,0,113,1,4,1\r\n";
    let command = segment((CLIENT, SERVER), ACK | PSH, (100, 500), text, None);
    let out = send(&mut switch, 1, &command);
    assert_eq!((payload(&out).as_str(), number(&out, 4)), (moved, 100));
    let again = send(&mut switch, 1, &command);
    assert_eq!(again, out, "sent again it is the same");
    let longer = (moved.len() - text.len()) as u32;
    // The server acknowledges what it received; the client knows what it sent.
    let end = 100 + moved.len() as u32;
    let sack = Some((end + 10, end + 20));
    let answer = send(&mut switch, 2, &segment((SERVER, outside), ACK | PSH, (500, end), "200 ok\r\n", sack));
    assert_eq!((number(&answer, 4), number(&answer, 8)), (500, end - longer));
    assert_eq!((number(&answer, 24), number(&answer, 28)), (end + 10 - longer, end + 20 - longer));
    let next = segment((CLIENT, SERVER), ACK | PSH, (end - longer, 508), "LIST\r\n", None);
    let out = send(&mut switch, 1, &next);
    assert_eq!((payload(&out).as_str(), number(&out, 4), number(&out, 8)), ("LIST\r\n", end, 508));
    // The connection of data comes to the address that was told, and reaches the client.
    let data = segment(((SERVER.0, 20), (PUBLIC, 1025)), SYN, (1, 0), "", None);
    let out = send(&mut switch, 2, &data);
    assert_eq!(&out[14 + 16..14 + 20], &CLIENT.0);
    let back = segment((([10, 0, 0, 1], 1025), (SERVER.0, 20)), SYN | ACK, (9, 2), "", None);
    assert_eq!(&send(&mut switch, 1, &back)[14 + 12..14 + 16], &PUBLIC);
}

#[test]
fn hosts_behind_one_address_may_offer_the_same_port() {
    let source = nat(NatSide::Source, u32::from_be_bytes(PUBLIC).into(), None);
    let mut switch = gateway(Some(source), Alg::Ftp);
    let mut told = Vec::new();
    for host in 1..=2u8 {
        let client = ([10, 0, 0, host], 4000);
        let (_, out) =
            sent(&mut switch, at(0), 1, &segment((client, SERVER), SYN, (99, 0), "", None)).expect("sent");
        let outside = (PUBLIC, u16::from_be_bytes([out[34], out[35]]));
        assert!(passes(&mut switch, at(0), 2, &segment((SERVER, outside), SYN | ACK, (499, 100), "", None)));
        let text = format!("EPRT |1|10.0.0.{host}|5000|\r\n");
        let command = segment((client, SERVER), ACK | PSH, (100, 500), &text, None);
        let (_, out) = sent(&mut switch, at(0), 1, &command).expect("sent");
        let text = payload(&out);
        let port: u16 = text.split('|').nth(3).and_then(|port| port.parse().ok()).expect("a port");
        told.push(port);
        let data = segment(((SERVER.0, 20), (PUBLIC, port)), SYN, (1, 0), "", None);
        let (_, out) = sent(&mut switch, at(0), 2, &data).expect("sent");
        check_sums(&out);
        assert_eq!((&out[14 + 16..14 + 20], &out[36..38]), (&client.0[..], &5000u16.to_be_bytes()[..]));
    }
    assert_eq!(told, [5000, 5001]);
}

#[test]
fn a_transfer_of_tftp_comes_from_another_port() {
    let mut switch = gateway(None, Alg::Tftp);
    let server = ([192, 0, 2, 1], 69);
    let datagram = |src: ([u8; 4], u16), dst: ([u8; 4], u16), payload: &[u8]| {
        let len = (8 + payload.len()) as u16;
        let ends = [src.1.to_be_bytes(), dst.1.to_be_bytes(), len.to_be_bytes(), [0, 0]].concat();
        let mut udp = [&ends[..], payload].concat();
        let sum = sum_of(&[&pseudo(17, src.0, dst.0, udp.len()), &udp]);
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
        frame(&header(17, src.0, dst.0, &udp))
    };
    let block = datagram((server.0, 3000), CLIENT, &[0, 3, 0, 1, 7]);
    assert!(!passes(&mut switch, at(0), 2, &block));
    assert!(passes(&mut switch, at(0), 1, &datagram(CLIENT, server, b"\0\x01file\0octet\0")));
    assert!(passes(&mut switch, at(0), 2, &block), "the transfer");
    assert!(passes(&mut switch, at(0), 1, &datagram(CLIENT, (server.0, 3000), &[0, 4, 0, 1])));
    assert!(!passes(&mut switch, at(0), 2, &datagram((server.0, 3000), (CLIENT.0, 4001), &[0, 3, 0, 1])));
}
