//! Messages with `nx_match` lose nothing of a match, no damage makes a decoder panic, and the bytes
//! are those of Open vSwitch (tests/ofp-print.at and tests/ovs-ofctl.at there).

use crate::message::tests::Draw;
use crate::message::v10::*;
use crate::message::{
    Codec, FlowRemoved, FlowStats, HEADER_LEN, NO_BUFFER, NxFlowStats, PacketIn, Pages, frame_len,
};
use fastpath_ofctl::{self as ofctl, FileRule, PortNames};
use fastpath_switch::field::REGISTERS;
use fastpath_switch::flow::ANY_GROUP;
use fastpath_switch::{
    Action, Counters, Field, FieldMatch, FlowCommand, FlowFilter, FlowMod, Instructions, Match, Version,
};
use fastpath_units::{Duration, Rng};
use proptest::prelude::*;

fn masked(d: &mut Draw, field: Field) -> FieldMatch {
    let mut any = || (u128::from(d.u64()) << 64 | u128::from(d.u64())) & field.ones();
    let (value, mask) = (any(), any() | 1);
    FieldMatch::masked(field, value & mask, mask)
}

fn exact(d: &mut Draw, field: Field) -> FieldMatch {
    FieldMatch::exact(field, (u128::from(d.u64()) << 64 | u128::from(d.u64())) & field.ones())
}

/// Adds what is compared of the tag.
fn add_tag(d: &mut Draw, fields: &mut Vec<FieldMatch>) {
    match d.below(6) {
        0 => fields.push(FieldMatch::exact(Field::VlanVid, 0)),
        1 => fields.push(FieldMatch::exact(Field::VlanVid, 0x1000 | u128::from(d.below(4096)))),
        2 => fields.push(FieldMatch::masked(Field::VlanVid, 0x1005, 0x10ff)),
        3 => fields.push(FieldMatch::masked(Field::VlanTci, 0x4000, 0x6000)),
        4 => {
            fields.push(FieldMatch::masked(Field::VlanVid, 0x1000, 0x1000));
            fields.push(FieldMatch::exact(Field::VlanPcp, d.below(8).into()));
        }
        _ => {}
    }
}

/// Adds fields of the network and transport layers.
fn add_network(d: &mut Draw, fields: &mut Vec<FieldMatch>) {
    let (eth_type, protocol, masks, exacts): (u128, Option<u128>, &[Field], &[Field]) = match d.below(6) {
        0 => (0x0800, Some(6), &[Field::Ipv4Src, Field::TcpDst, Field::TcpFlags], &[Field::IpDscp]),
        1 => (0x86dd, Some(17), &[Field::Ipv6Src, Field::UdpSrc, Field::Ipv6Flabel], &[Field::IpEcn]),
        2 => (0x0806, None, &[Field::ArpSpa, Field::ArpSha, Field::ArpTha], &[Field::ArpOp]),
        3 => (0x86dd, Some(132), &[Field::CtIpv6Dst, Field::SctpDst, Field::NwFrag], &[Field::NwTtl]),
        4 => (0x8847, None, &[], &[Field::MplsLabel, Field::MplsTtl, Field::MplsBos]),
        _ => return,
    };
    fields.push(FieldMatch::exact(Field::EthType, eth_type));
    fields.extend(protocol.map(|protocol| FieldMatch::exact(Field::IpProto, protocol)));
    fields.extend(masks.iter().map(|field| masked(d, *field)));
    fields.extend(exacts.iter().map(|field| exact(d, *field)));
}

fn matching(d: &mut Draw) -> Match {
    let mut fields = Vec::new();
    add_tag(d, &mut fields);
    add_network(d, &mut fields);
    let number = if d.below(2) == 0 { d.u32() } else { port_number::widen(d.u16()) };
    let mut others = vec![FieldMatch::exact(Field::InPort, number.into())];
    for field in [Field::ConjId, Field::CtZone] {
        others.push(exact(d, field));
    }
    let maskable =
        [Field::EthDst, Field::Metadata, Field::TunnelId, Field::TunSrc, Field::PktMark, Field::CtState];
    for field in maskable.into_iter().chain([Field::CtMark, Field::CtLabel]).chain(REGISTERS) {
        others.push(masked(d, field));
    }
    fields.extend(others.into_iter().filter(|_| d.below(3) == 0));
    Match::new(&fields).unwrap()
}

fn actions(d: &mut Draw) -> Instructions {
    Instructions::apply(d.list(3, |d| Action::Output { port: port_number::widen(d.u16()), max_len: d.u16() }))
}

fn flow_mod(d: &mut Draw) -> FlowMod {
    let (add, modify, delete) = (FlowCommand::Add, FlowCommand::Modify, FlowCommand::DeleteStrict);
    let command = [add, modify, delete][d.below(3) as usize];
    let cookie_mask = if command != add && d.below(2) == 0 { d.u64() | 1 } else { 0 };
    let cookie = if cookie_mask == 0 { d.u64() } else { d.u64() & cookie_mask };
    let sets_cookies = command == modify && cookie_mask != 0 && d.below(2) == 0;
    FlowMod {
        command,
        cookie,
        cookie_mask,
        new_cookie: sets_cookies.then(|| d.u64() >> 1),
        idle_timeout: d.u16(),
        hard_timeout: d.u16(),
        out_port: port_number::widen(d.u16()),
        flags: d.below(4) as u16,
        version: Version::V10,
        ..FlowMod::add(d.below(255) as u8, d.u16(), matching(d), actions(d))
    }
}

fn stats(d: &mut Draw) -> NxFlowStats {
    let flow = FlowStats {
        table_id: d.u8(),
        age: d.age(),
        priority: d.u16(),
        idle_timeout: d.u16(),
        hard_timeout: d.u16(),
        importance: 0,
        idle: None,
        flags: 0,
        cookie: d.u64(),
        counters: d.counters(),
        matching: matching(d),
        instructions: actions(d),
    };
    let mut age = || d.u16().checked_sub(1);
    NxFlowStats { flow, idle_age: age(), hard_age: age() }
}

fn filter(d: &mut Draw) -> FlowFilter {
    let cookie_mask = d.u64();
    FlowFilter {
        table_id: d.u8(),
        out_port: port_number::widen(d.u16()),
        out_group: ANY_GROUP,
        cookie: d.u64() & cookie_mask,
        cookie_mask,
        matching: matching(d),
    }
}

fn message(d: &mut Draw) -> Message {
    let flags = d.u16();
    match d.below(7) {
        0 => Message::FlowMod { buffer_id: d.u32(), request: flow_mod(d) },
        1 => Message::FlowRemoved(FlowRemoved {
            cookie: d.u64(),
            priority: d.u16(),
            reason: d.below(3) as u8,
            table_id: d.u8(),
            age: d.age(),
            idle_timeout: d.u16(),
            hard_timeout: 0,
            packets: d.u64(),
            bytes: d.u64(),
            matching: matching(d),
        }),
        2 => Message::PacketIn(PacketIn {
            userdata: Vec::new(),
            continuation: Vec::new(),
            buffer_id: d.u32(),
            total_len: d.u16(),
            reason: d.u8(),
            table_id: d.u8(),
            cookie: d.u64(),
            matching: matching(d),
            data: d.bytes(),
        }),
        3 => Message::MultipartRequest { flags, request: Request::NxFlow(filter(d)) },
        4 => Message::MultipartRequest { flags, request: Request::NxAggregate(filter(d)) },
        5 => Message::MultipartReply { flags, reply: Reply::NxFlow(d.list(3, stats)) },
        _ => {
            let reply = Reply::NxAggregate { counters: d.counters(), flows: d.u32() };
            Message::MultipartReply { flags, reply }
        }
    }
}

/// Returns a codec of a connection that has chosen all forms of Nicira.
fn codec() -> Codec {
    let mut codec = Codec::new(Version::V10);
    for choice in [
        Nicira::FlowModTableId(true),
        Nicira::SetFlowFormat(FlowFormat::Nxm),
        Nicira::SetPacketInFormat(PacketInFormat::Nxt),
    ] {
        codec.note(&Message::Nicira(choice));
    }
    codec
}

fn bytes_of(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec().encode(7, message, &mut bytes);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn every_match_survives_in_messages_of_nicira(seed: u64) {
        let message = message(&mut Draw(Rng::new(seed)));
        let bytes = bytes_of(&message);
        prop_assert_eq!(codec().decode(&bytes), Ok((7, message)));
    }

    #[test]
    fn damage_is_read_or_refused_and_what_is_read_can_be_written(seed: u64) {
        let mut draw = Draw(Rng::new(seed));
        let mut bytes = bytes_of(&message(&mut draw));
        for _ in 0..=draw.below(4) {
            let at = draw.below(bytes.len() as u64) as usize;
            bytes[at] = draw.u8();
        }
        bytes.truncate(HEADER_LEN.max(draw.below(2 * bytes.len() as u64) as usize));
        let len = bytes.len() as u16;
        bytes[2..4].copy_from_slice(&len.to_be_bytes());
        if let Ok((xid, message)) = codec().decode(&bytes) {
            let mut again = Vec::new();
            codec().encode(xid, &message, &mut again);
            prop_assert_eq!(codec().decode(&again), Ok((xid, message)));
        }
    }
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn match_of(text: &str) -> Match {
    let lines = ofctl::parse(&format!("{text},actions=drop"), &PortNames::new());
    let lines = lines.unwrap_or_else(|mistakes| panic!("{text}: {mistakes}"));
    match &lines[0].rule {
        FileRule::Flow(flow) => flow.matching.clone(),
        other => panic!("{other:?}"),
    }
}

/// Matches and the bytes that `ovs-ofctl parse-nx-match` of Open vSwitch has for them.
#[test]
fn matches_have_the_bytes_of_open_vswitch() {
    for (text, fields) in [
        ("in_port=LOCAL", "00000002 fffe"),
        ("dl_vlan=5", "00000904 1005 1fff"),
        ("dl_vlan=0xffff", "00000802 0000"),
        ("vlan_tci=0x7000/0xf000", "00000904 7000 f000"),
        ("dl_vlan=5,dl_vlan_pcp=3", "00000802 7005"),
        ("ip,nw_tos=184,nw_ecn=1", "00000602 0800 00000a01 b8 00013801 01"),
        ("ip,nw_frag=first", "00000602 0800 00013401 01"),
        ("tun_id=0x10/0xff", "00012110 0000000000000010 00000000000000ff"),
        ("reg0=0x1,reg5=0x2/0x3", "00010004 00000001 00010b08 00000002 00000003"),
        ("ct_state=+trk-new", "0001d308 00000020 00000021"),
        ("arp,arp_sha=02:00:00:00:00:01", "00000602 0806 00012206 020000000001"),
        (
            "icmp6,icmp_type=135,nd_target=fe80::1",
            "00000602 86dd 00000c01 3a 00012a01 87 00012e10 fe800000000000000000000000000001",
        ),
    ] {
        let (mut bytes, fields) = (vec![0; 2], hex(fields));
        nx_match::write(&mut bytes, 0, &match_of(text));
        assert_eq!(usize::from(bytes[1]), fields.len(), "{text}");
        assert_eq!(bytes[2..2 + fields.len()], fields, "{text}: {bytes:02x?}");
        assert!(bytes[2 + fields.len()..].iter().all(|byte| *byte == 0), "{text}");
        let mut reader = ByteReader::new(&bytes[2..], Fault::BadLen);
        assert_eq!(nx_match::read_matching(&mut reader, fields.len()), Ok(match_of(text)), "{text}");
        assert!(reader.is_empty(), "{text}");
    }
}

#[test]
fn messages_have_the_layout_of_the_header_file() {
    let request = FlowMod {
        command: FlowCommand::Modify,
        cookie: 5,
        cookie_mask: 0xff,
        new_cookie: Some(9),
        version: Version::V10,
        ..FlowMod::add(2, 0x8000, match_of("reg0=1"), Instructions::apply([Action::PopVlan]))
    };
    let stats = NxFlowStats {
        flow: FlowStats {
            table_id: 1,
            age: Duration::from_ns(3_000_000_004),
            priority: 9,
            idle_timeout: 6,
            hard_timeout: 7,
            importance: 0,
            idle: None,
            flags: 0,
            cookie: 5,
            counters: Counters { packets: 7, bytes: 8 },
            matching: match_of("reg0=1"),
            instructions: Instructions::apply([Action::PopVlan]),
        },
        idle_age: Some(2),
        hard_age: None,
    };
    let filter = FlowFilter { matching: match_of("reg0=1"), ..FlowFilter::all() };
    for (message, bytes) in [
        (
            Message::FlowMod { buffer_id: NO_BUFFER, request },
            "01 04 0058 00000007 00002320 0000000d 0000000000000009 0201 0000 0000 8000 ffffffff ffff 0000
             001c 000000000000 00010004 00000001 00013d10 0000000000000005 00000000000000ff 00000000
             0003 0008 00000000",
        ),
        (
            Message::MultipartRequest { flags: 0, request: Request::NxFlow(filter) },
            "01 10 0028 00000007 ffff 0000 00002320 00000000 00000000 ffff 0008 ff 000000 00010004 00000001",
        ),
        (
            Message::MultipartReply { flags: 0, reply: Reply::NxFlow(vec![stats]) },
            "01 11 0058 00000007 ffff 0000 00002320 00000000 00000000 0040 01 00 00000003 00000004 0009 0006 0007
             0008 0003 0000 0000000000000005 0000000000000007 0000000000000008 00010004 00000001 0003 0008 00000000",
        ),
    ] {
        let written = bytes_of(&message);
        assert_eq!(written, hex(bytes), "{message:?}: {written:02x?}");
        assert_eq!(codec().decode(&written), Ok((7, message)));
    }
}

#[test]
fn what_is_wrong_has_the_numbers_of_open_vswitch() {
    let request =
        FlowMod { version: Version::V10, ..FlowMod::add(0, 1, match_of("reg0=1"), Instructions::default()) };
    let right = bytes_of(&Message::FlowMod { buffer_id: NO_BUFFER, request });
    let refused = |changes: &[(usize, u8)]| {
        let mut bytes = right.clone();
        changes.iter().for_each(|(at, byte)| bytes[*at] = *byte);
        let fault = codec().decode(&bytes).expect_err("it is wrong");
        let error = codec().error(&fault, &[]);
        let inside = error.data.first_chunk::<8>().copied();
        match inside {
            Some([0, 0, 0x23, 0x20, k0, k1, c0, c1]) => {
                (u16::from_be_bytes([k0, k1]), u16::from_be_bytes([c0, c1]))
            }
            _ => (error.kind, error.code),
        }
    };
    assert_eq!(refused(&[(15, 99)]), (1, 4), "an unknown message");
    assert_eq!(refused(&[(50, 0xfe)]), (0, 263), "an unknown field");
    assert_eq!(refused(&[(41, 20)]), (1, 521), "a match that is longer than the message");
    assert_eq!(refused(&[(25, 9)]), (3, 4), "command");
    // NXM_OF_IP_TOS with bits of ECN; without an EtherType.
    assert_eq!(refused(&[(41, 5), (49, 0), (50, 10), (51, 1), (52, 1)]), (1, 258));
    assert_eq!(refused(&[(41, 5), (49, 0), (50, 10), (51, 1), (52, 4)]), (1, 260));
    assert_eq!(Fault::AdditionToCookies.numbers(), (5, 0));
    let error = codec().error(&Fault::AdditionToCookies, &[]);
    assert_eq!(error.data, [0, 0, 0x23, 0x20, 0, 1, 1, 0]);
}

#[test]
fn a_reply_that_is_too_long_for_one_message_is_cut_between_flows() {
    let mut draw = Draw(Rng::new(1));
    let flows: Vec<NxFlowStats> = (0..1000).map(|_| stats(&mut draw)).collect();
    let mut bytes = Vec::new();
    let mut pages = Pages::begin_nx_flow(&mut bytes, 5);
    for flow in &flows {
        pages.item(&mut bytes, |out| write_reply(out, &Reply::NxFlow(vec![flow.clone()])));
    }
    pages.end(&mut bytes, 0);
    let (mut rest, mut read, mut all_flags) = (&bytes[..], Vec::new(), Vec::new());
    while let Ok(Some(len)) = frame_len(rest) {
        let (_, message) = Codec::new(Version::V10).decode(&rest[..len]).unwrap();
        let Message::MultipartReply { flags, reply: Reply::NxFlow(part) } = message else {
            panic!("{message:?}")
        };
        read.extend(part);
        all_flags.push(flags);
        rest = &rest[len..];
    }
    assert!(all_flags.len() > 1 && all_flags[..all_flags.len() - 1].iter().all(|flags| *flags == 1));
    assert_eq!((read, all_flags.last()), (flows, Some(&0)));
}
