//! Actions and fields of Open vSwitch survive encoding and decoding in both versions, and have the
//! bytes that `ovs-ofctl` writes (tests/ofp-actions.at and tests/nx-match.at of Open vSwitch).

use crate::message::bytes::ByteReader;
use crate::message::packet::PacketIn;
use crate::message::{Codec, Fault, Message, NO_BUFFER, Nicira, PacketInFormat, action, decode, oxm, v10};
use fastpath_ofctl::{self as ofctl, FileRule, PortNames};
use fastpath_switch::action::Controller;
use fastpath_switch::field::REGISTERS;
use fastpath_switch::limits::USERDATA_MAX;
use fastpath_switch::outcome::PacketInReason;
use fastpath_switch::{
    Action, Extension, Field, FieldMatch, FlowMod, Instructions, Limits, Match, Refusal, Switch, Version,
};
use fastpath_units::{Rng, Time};
use std::sync::Arc;

/// Actions and the bytes that Open vSwitch has for them in OpenFlow 1.3.
const ACTIONS: [(&str, &str); 48] = [
    ("resubmit:5", "ffff 0010 00002320 0001 0005 00000000"),
    ("resubmit(10,5)", "ffff 0010 00002320 000e 000a 05 000000"),
    ("pop_queue", "ffff 0010 00002320 0005 000000000000"),
    ("move:NXM_OF_IN_PORT[]->NXM_OF_VLAN_TCI[]", "ffff 0018 00002320 0006 0010 0000 0000 00000002 00000802"),
    ("load:0xf009->NXM_OF_VLAN_TCI[]", "ffff 0018 00002320 0007 000f 00000802 000000000000f009"),
    ("load:0x7->NXM_NX_REG0[4..7]", "ffff 0018 00002320 0007 0103 00010004 0000000000000007"),
    ("note:11.e9.9a.ad.67.f3", "ffff 0010 00002320 0008 11e99aad67f3"),
    (
        "multipath(eth_src,50,modulo_n,1,0,NXM_NX_REG0[])",
        "ffff 0020 00002320 000a 0000 0032 0000 0000 0000 00000000 0000 001f 00010004",
    ),
    (
        "bundle(eth_src,0,hrw,ofport,members:4,8)",
        "ffff 0028 00002320 000c 0001 0000 0000 00000002 0002 0000 00000000 00000000 0004 0008 00000000",
    ),
    (
        "bundle_load(eth_src,0,hrw,ofport,NXM_NX_REG0[],members:4,8)",
        "ffff 0028 00002320 000d 0001 0000 0000 00000002 0002 001f 00010004 00000000 0004 0008 00000000",
    ),
    ("output:NXM_NX_REG1[5..10]", "ffff 0018 00002320 000f 0145 00010204 ffff 000000000000"),
    (
        "learn(table=2,idle_timeout=10,hard_timeout=20,priority=80,cookie=0x123456789abcdef0,\
         NXM_OF_VLAN_TCI[0..11],NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[])",
        "ffff 0048 00002320 0010 000a 0014 0050 123456789abcdef0 0000 02 00 0000 0000 \
         000c 00000802 0000 00000802 0000 0030 00000406 0000 00000206 0000 1010 00000002 0000 00000000",
    ),
    ("exit", "ffff 0010 00002320 0011 000000000000"),
    ("controller(reason=invalid_ttl,max_len=1234)", "ffff 0010 00002320 0014 04d2 0000 02 00"),
    ("push:NXM_NX_REG1[4..7]", "ffff 0018 00002320 001b 0004 00010204 0004 000000000000"),
    ("pop:NXM_NX_REG1[]", "ffff 0018 00002320 001c 0000 00010204 0020 000000000000"),
    (
        "sample(probability=12345,collector_set_id=23456,obs_domain_id=34567,obs_point_id=45678)",
        "ffff 0018 00002320 001d 3039 00005ba0 00008707 0000b26e",
    ),
    ("conjunction(3735928559,1/2)", "ffff 0010 00002320 0022 00 02 deadbeef"),
    ("output(port=1,max_len=100)", "ffff 0010 00002320 0027 0001 00000064"),
    ("clone(exit)", "ffff 0020 00002320 002a 000000000000 ffff 0010 00002320 0011 000000000000"),
    ("ct", "ffff 0018 00002320 0023 0000 00000000 0000 ff 000000 0000"),
    ("ct(commit)", "ffff 0018 00002320 0023 0001 00000000 0000 ff 000000 0000"),
    ("ct(commit,force)", "ffff 0018 00002320 0023 0003 00000000 0000 ff 000000 0000"),
    ("ct(table=10,zone=5)", "ffff 0018 00002320 0023 0000 00000000 0005 0a 000000 0000"),
    ("ct(zone=NXM_NX_REG0[0..15])", "ffff 0018 00002320 0023 0000 00010004 000f ff 000000 0000"),
    (
        "ct(commit,exec(load:0xf009->NXM_NX_CT_MARK[]))",
        "ffff 0030 00002320 0023 0001 00000000 0000 ff 000000 0000 ffff 0018 00002320 0007 001f 0001d604 000000000000f009",
    ),
    (
        "ct(nat)",
        "ffff 0028 00002320 0023 0000 00000000 0000 ff 000000 0000 ffff 0010 00002320 0024 00 00 0000 0000",
    ),
    (
        "ct(commit,nat(src=10.0.0.240,random))",
        "ffff 0030 00002320 0023 0001 00000000 0000 ff 000000 0000 \
         ffff 0018 00002320 0024 00 00 0011 0001 0a0000f0 00000000",
    ),
    ("ct(commit,alg=ftp)", "ffff 0018 00002320 0023 0001 00000000 0000 ff 000000 0015"),
    ("ct(commit,zone=9,alg=tftp)", "ffff 0018 00002320 0023 0001 00000000 0009 ff 000000 0045"),
    ("resubmit(,5,ct)", "ffff 0010 00002320 002c fff8 05 000000"),
    ("resubmit(7,5,ct)", "ffff 0010 00002320 002c 0007 05 000000"),
    ("fin_timeout(idle_timeout=10,hard_timeout=20)", "ffff 0010 00002320 0013 000a 0014 0000"),
    ("debug_recirc", "ffff 0010 00002320 00ff 000000000000"),
    ("debug_slow", "ffff 0010 00002320 00fe 000000000000"),
    (
        "learn(table=3,fin_idle_timeout=2,fin_hard_timeout=4,NXM_OF_ETH_DST[])",
        "ffff 0030 00002320 0010 0000 0000 8000 0000000000000000 0000 03 00 0002 0004 \
         0030 00000206 0000 00000206 0000 0000",
    ),
    (
        "learn(table=3,limit=7,result_dst=NXM_NX_REG2[5],NXM_OF_ETH_DST[])",
        "ffff 0040 00002320 002d 0000 0000 8000 0000000000000000 0004 03 00 0000 0000 \
         00000007 0005 0000 00010404 0030 00000206 0000 00000206 0000 000000000000",
    ),
    (
        "move:ONFOXM_ET_ACTSET_OUTPUT[]->NXM_NX_REG0[]",
        "ffff 0020 00002320 0006 0020 0000 0000 ffff5608 4f4e4600 00010004 00000000",
    ),
    ("push:NXOXM_ET_ERSPAN_DIR[]", "ffff 0018 00002320 001b 0000 ffff1a05 00002320 0001 0000"),
    ("set_field:0x7->tun_erspan_idx", "0019 0010 ffff1608 00002320 00000007"),
    ("set_field:fe80::1->tun_ipv6_dst", "0019 0018 0001dc10 fe800000000000000000000000000001"),
    ("controller(userdata=01.02.03)", "ffff 0018 00002320 0025 000000000000 0003 0007 010203 00"),
    ("controller(pause)", "ffff 0018 00002320 0025 000000000000 0004 0004 00000000"),
    (
        "controller(max_len=64,id=5,userdata=ff,pause,meter_id=3)",
        "ffff 0038 00002320 0025 000000000000 0000 0008 0040 0000 0001 0008 0005 0000 \
         0003 0005 ff 000000 0004 0004 00000000 0005 0008 00000003",
    ),
    ("controller(reason=no_match,id=7)", "ffff 0010 00002320 0014 ffff 0007 00 00"),
    ("ct_clear", "ffff 0010 00002320 002b 000000000000"),
    ("set_field:0x5->reg1", "0019 0010 00010204 00000005 00000000"),
    ("set_field:0x5/0xff->reg1", "ffff 0020 00002320 0021 000000000000 00010308 00000005 000000ff 00000000"),
];

fn flow(text: &str) -> FlowMod {
    let lines = ofctl::parse(text, &PortNames::new()).unwrap_or_else(|mistakes| panic!("{text}: {mistakes}"));
    match &lines[0].rule {
        FileRule::Flow(flow) => flow.clone(),
        other => panic!("{other:?}"),
    }
}

fn actions(text: &str) -> Vec<Action> {
    flow(&format!("actions={text}")).instructions.apply
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(|c| !c.is_whitespace()).collect();
    digits.chunks(2).map(|two| u8::from_str_radix(&two.iter().collect::<String>(), 16).unwrap()).collect()
}

fn read(bytes: &[u8]) -> Result<Vec<Action>, Fault> {
    action::read_actions(ByteReader::new(bytes, Fault::ActionBadLen))
}

#[test]
fn actions_have_the_bytes_of_open_vswitch() {
    for (text, hex) in ACTIONS {
        let (wanted, actions) = (bytes_of(hex), actions(text));
        let mut written = Vec::new();
        action::write_actions(&mut written, &actions);
        assert_eq!(read(&wanted).as_ref(), Ok(&actions), "{text}");
        // Behind the reason of a packet-in there are zeros.
        assert_eq!(written[..wanted.len()], wanted, "{text}: {written:02x?}");
        assert!(written[wanted.len()..].iter().all(|byte| *byte == 0), "{text}");
    }
}

#[test]
fn actions_survive_in_openflow_1_0_too() {
    for (text, _) in
        ACTIONS.into_iter().filter(|(text, _)| !text.starts_with("set_field:") || text.contains('/'))
    {
        let mut written = Vec::new();
        v10::action::write(&mut written, &actions(text));
        let reader = ByteReader::new(&written, Fault::ActionBadLen);
        assert_eq!(v10::action::read(reader, &Match::any()), Ok(actions(text)), "{text}");
    }
}

#[test]
fn fields_survive_and_have_the_numbers_of_open_vswitch() {
    for (text, hex) in [
        ("reg0=0x5", "0001 000c 00010004 00000005 00000000"),
        ("reg15=0x5/0xff", "0001 0010 00011f08 00000005 000000ff"),
        ("ip,nw_frag=yes", "0001 0010 80000a02 0800 00013502 01 01"),
        ("pkt_mark=0x7", "0001 000c 00014204 00000007 00000000"),
        ("ct_state=+new-est", "0001 0010 0001d308 00000001 00000003"),
        ("ct_zone=5", "0001 000a 0001d402 0005 000000000000"),
        ("ct_mark=0x10/0xf0", "0001 0010 0001d708 00000010 000000f0"),
        ("actset_output=unset", "0001 0010 ffff5608 4f4e4600 fffffff7"),
        (
            "tun_gbp_id=5,tun_gbp_flags=0x3,tun_ipv6_src=fe80::/16",
            "0001 0033 00014c02 0005 00014e01 03 \
             0001db20 fe800000000000000000000000000000 ffff0000000000000000000000000000 0000000000",
        ),
        (
            "tun_erspan_ver=2,tun_erspan_hwid=0xf/0x1,tun_gtpu_flags=0x30,tun_erspan_idx=7",
            "0001 002c ffff1805 00002320 02 ffff1d06 00002320 01 01 ffff1e05 00002320 30 ffff1608 00002320 00000007 00000000",
        ),
        (
            "dl_type=0x894f,nsh_mdtype=1,nsh_spi=0x1234,nsh_c1=0x44/0xff",
            "0001 002f 80000a02 894f ffff0405 005ad650 01 ffff0808 005ad650 00001234 \
             ffff0d0c 005ad650 00000044 000000ff 00",
        ),
        ("conj_id=3", "0001 000c 00014a04 00000003 00000000"),
    ] {
        let matching = flow(&format!("{text},actions=drop")).matching;
        let mut written = Vec::new();
        oxm::write_match(&mut written, &matching);
        assert_eq!(written, bytes_of(hex), "{text}");
        let mut reader = ByteReader::new(&written, Fault::MatchBadLen);
        assert_eq!(oxm::read_match(&mut reader), Ok(matching), "{text}");
    }
    // All packets are Ethernet.
    let typed = bytes_of("0001 000c 80005804 00000000 00000000");
    let mut reader = ByteReader::new(&typed, Fault::MatchBadLen);
    assert_eq!(oxm::read_match(&mut reader), Ok(Match::any()));
    // The TCP flags as OpenFlow 1.3 has them: a field of the Open Networking Foundation.
    let flags = bytes_of("0001 0019 80000a02 0800 80001401 06 ffff5406 4f4e4600 0012 00000000000000");
    let mut reader = ByteReader::new(&flags, Fault::MatchBadLen);
    let wanted = flow("tcp,tcp_flags=0x12,actions=drop").matching;
    assert_eq!(oxm::read_match(&mut reader), Ok(wanted));
}

#[test]
fn what_is_not_there_is_refused_by_its_number() {
    for (hex, numbers) in [
        ("ffff 0010 00002320 0003 000000000000", (2, 3)),
        ("ffff 0010 00002321 0001 000000000000", (2, 2)),
        ("ffff 0018 00002320 0007 07df 00010004 0000000000000007", (2, 5)),
        ("ffff 0018 00002320 0007 0103 00010004 0000000000000017", (2, 5)),
        ("ffff 0018 00002320 0007 0103 0001fe04 0000000000000007", (2, 13)),
        ("ffff 0010 00002320 000a 000000000000", (2, 1)),
    ] {
        assert_eq!(read(&bytes_of(hex)).map_err(|fault| fault.numbers()), Err(numbers), "{hex}");
    }
}

#[test]
fn no_damage_makes_a_decoder_panic() {
    let mut rng = Rng::new(7);
    for _ in 0..20_000 {
        let mut bytes = bytes_of(ACTIONS[rng.below(ACTIONS.len() as u64) as usize].1);
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = if rng.below(2) == 0 { rng.next_u64() as u8 } else { bytes[at] ^ 1 << rng.below(8) };
        }
        if let Ok(actions) = read(&bytes) {
            let mut written = Vec::new();
            action::write_actions(&mut written, &actions);
            // What was read is written so that it reads the same.
            assert_eq!(read(&written), Ok(actions), "{bytes:02x?}");
        }
    }
}

#[test]
fn the_flows_of_the_file_survive_as_text_and_as_messages_and_a_switch_accepts_them() {
    let mut switch = Switch::new(Limits::default());
    let lines = include_str!("../../../tests/flow_lines.txt").lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let request = flow(line);
        let (matching, actions) =
            (ofctl::print_match(&request.matching), ofctl::print_instructions(&request.instructions));
        assert_eq!(flow(&format!("{matching},actions={actions}")), request, "{line}: {matching} {actions}");
        let message = Message::FlowMod { buffer_id: NO_BUFFER, request: request.clone() };
        let mut bytes = Vec::new();
        message.encode(1, &mut bytes);
        assert_eq!(decode(&bytes), Ok((1, message)), "{line}");
        let accepted = switch.flow_mod(Time::ZERO, &request);
        assert!(accepted.is_ok(), "{line}: {accepted:?}");
    }
}

#[test]
fn a_packet_in_of_properties_has_the_bytes_that_ovs_ofctl_reads() {
    let bytes = bytes_of(
        "0404 0068 00000001 00002320 0000001e 0000 0014 0202020202020101010101010888aabb 00000000 \
         0003 0008 05000000 0004 0010 00000000 0000000000000007 0005 0008 01000000 \
         0006 0014 80000004 00000002 00010004 00000009 00000000 0007 0007 010203 00",
    );
    let mut codec = Codec::new(Version::V13);
    codec.note(&Message::Nicira(Nicira::SetPacketInFormat(PacketInFormat::Nxt2)));
    let (xid, message) = codec.decode(&bytes).unwrap();
    let Message::PacketIn(packet) = &message else { panic!("{message:?}") };
    assert_eq!((packet.table_id, packet.cookie, packet.total_len), (5, 7, 16));
    assert_eq!(
        (&packet.userdata[..], packet.matching.clone()),
        (&[1, 2, 3][..], flow("in_port=2,reg0=9,actions=drop").matching)
    );
    let mut written = Vec::new();
    codec.encode(xid, &message, &mut written);
    assert_eq!(written, bytes);
}

/// A packet-in with every field that is not in the frame.
fn full_packet_in(userdata: usize, data: usize) -> PacketIn {
    let exact =
        |field: Field| FieldMatch::exact(field, if field == Field::InPort { 2 } else { field.ones() });
    let outside = [
        Field::InPort,
        Field::Metadata,
        Field::TunnelId,
        Field::PktMark,
        Field::TunSrc,
        Field::TunDst,
        Field::CtState,
        Field::CtZone,
        Field::CtMark,
        Field::CtLabel,
    ];
    let half =
        |field: Field| FieldMatch::masked(field, u32::MAX.into(), u128::from(u32::MAX) << 64 | 0xffff_ffff);
    let fields: Vec<_> = outside.map(exact).into_iter().chain(REGISTERS.map(half)).collect();
    PacketIn {
        buffer_id: NO_BUFFER,
        total_len: data as u16,
        reason: 1,
        table_id: 3,
        cookie: 7,
        matching: Match::new(&fields).unwrap(),
        userdata: vec![1; userdata],
        continuation: Vec::new(),
        data: (0..data).map(|at| at as u8).collect(),
    }
}

#[test]
fn of_the_frame_of_a_packet_in_as_much_is_told_as_fits_beside_the_rest() {
    let formats = [PacketInFormat::Standard, PacketInFormat::Nxt, PacketInFormat::Nxt2];
    for (version, format) in [Version::V10, Version::V13, Version::V15].into_iter().zip(formats).chain([
        (Version::V10, PacketInFormat::Nxt),
        (Version::V10, PacketInFormat::Nxt2),
        (Version::V13, PacketInFormat::Nxt2),
    ]) {
        let mut codec = Codec::new(version);
        if version == Version::V10 || format == PacketInFormat::Nxt2 {
            codec.note(&Message::Nicira(Nicira::SetPacketInFormat(format)));
        }
        for (userdata, data) in
            [(0, 60), (0, 65_000), (0, 65_535), (40_000, 60_000), (USERDATA_MAX, 0), (USERDATA_MAX, 1500)]
        {
            let packet = full_packet_in(userdata, data);
            let bytes = codec.encoded(9, &Message::PacketIn(packet.clone())).unwrap();
            assert!(bytes.len() <= 65_535, "{version:?} {format:?} {userdata} {data}");
            let (_, Message::PacketIn(read)) = codec.decode(&bytes).unwrap() else {
                panic!("not a packet-in")
            };
            assert_eq!(read.data[..], packet.data[..read.data.len()]);
            assert_eq!(read.total_len, packet.total_len);
            let is_cut = read.data.len() < data;
            // What is cut off is what has no room, and little more.
            assert!(!is_cut || bytes.len() > 65_535 - 40, "{version:?} {format:?} {userdata} {data}");
            assert!(is_cut || data < 65_000 || userdata > 0 || bytes.len() > 65_000);
        }
    }
}

#[test]
fn userdata_that_fits_no_packet_in_is_refused() {
    let flow = |len| {
        let (max_len, reason) = (u16::MAX, PacketInReason::Action);
        let to = Controller { max_len, reason, id: 0, userdata: vec![0; len], meter: None, pauses: false };
        let send = Action::Extension(Arc::new(Extension::Controller(to)));
        FlowMod::add(0, 1, Match::any(), Instructions::apply([send]))
    };
    let mut switch = Switch::new(Limits::default());
    assert_eq!(switch.flow_mod(Time::ZERO, &flow(USERDATA_MAX)), Ok(Vec::new()));
    let refused = switch.flow_mod(Time::ZERO, &flow(USERDATA_MAX + 1)).unwrap_err();
    assert_eq!((refused, refused.numbers()), (Refusal::UserdataTooLong(USERDATA_MAX + 1), (2, 1)));
}
