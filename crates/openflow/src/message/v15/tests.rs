//! Messages of OpenFlow 1.4 and 1.5 survive encoding and decoding, no input makes a decoder panic,
//! and what is new has the bytes and the numbers of the specification.

use crate::message::tests::Draw;
use crate::message::{
    AsyncMask, Codec, Fault, FlowStats, HEADER_LEN, Message, NO_BUFFER, PacketOut, Reply, Request,
    RoleStatus, TableConfig, TableFeatures, TableMod, TableStatus, Vacancy,
};
use fastpath_switch::extension::{Bits, Extension};
use fastpath_switch::group::BUCKET_LAST;
use fastpath_switch::{
    Action, Bucket, Field, FieldMatch, FlowMod, GroupCommand, GroupKind, GroupMod, Instructions, Match,
    Version, port,
};
use fastpath_units::Rng;
use proptest::prelude::*;
use std::sync::Arc;

const VERSIONS: [Version; 2] = [Version::V14, Version::V15];

fn extension(extension: Extension) -> Action {
    Action::Extension(Arc::new(extension))
}

fn table(d: &mut Draw) -> TableConfig {
    let vacancy = Vacancy { down: d.u8(), up: d.u8(), now: d.u8() };
    let (eviction, vacancy) = ((d.below(2) == 0).then(|| d.u32()), (d.below(2) == 0).then_some(vacancy));
    TableConfig { table_id: d.u8(), config: d.u32(), eviction, vacancy }
}

fn masks(d: &mut Draw) -> Vec<AsyncMask> {
    d.list(5, |d| AsyncMask { message: d.below(6) as u16, is_of_slaves: d.below(2) == 0, mask: d.u32() })
}

/// Returns a message of a version: one that differs from 1.3, or one of 1.3.
fn message(d: &mut Draw, version: Version) -> Message {
    let is_15 = version == Version::V15;
    let mut message = match d.below(10) {
        0 => Message::ChangeAsync(masks(d)),
        1 => Message::RoleStatus(RoleStatus { reason: d.u8(), role: d.role() }),
        2 => Message::TableStatus(TableStatus { reason: d.u8(), table: table(d) }),
        3 => {
            let TableConfig { table_id, config, eviction, vacancy } = table(d);
            Message::TableMod(TableMod { table_id, config, eviction, vacancy })
        }
        4 => Message::MultipartReply { flags: d.u16(), reply: Reply::TableDesc(d.list(3, table)) },
        5 => {
            let request = [Request::TableDesc, Request::QueueDesc { port: d.u32(), queue: d.u32() }];
            Message::MultipartRequest { flags: d.u16(), request: request[d.below(2) as usize].clone() }
        }
        _ => d.message(),
    };
    match &mut message {
        Message::QueueGetConfigRequest { .. } | Message::SetAsync(_) => return Message::BarrierRequest,
        Message::QueueGetConfigReply { queues, .. } => {
            let reply = Reply::QueueDesc(std::mem::take(queues));
            return Message::MultipartReply { flags: 0, reply };
        }
        Message::FlowMod { request, .. } => request.importance = d.u16(),
        Message::MultipartReply { reply: Reply::Flow(flows), .. } => {
            for flow in flows {
                flow.importance = d.u16();
                flow.idle = is_15.then(|| d.age());
            }
        }
        Message::GroupMod(request) if is_15 => {
            request.command = [GroupCommand::Add, GroupCommand::InsertBuckets(d.u32())][d.below(2) as usize];
            request.buckets.iter_mut().for_each(|bucket| bucket.id = d.u32());
        }
        Message::MultipartReply { reply: Reply::GroupDesc(groups), .. } if is_15 => {
            groups.iter_mut().flat_map(|group| &mut group.buckets).for_each(|bucket| bucket.id = d.u32());
        }
        Message::PacketOut(packet) if is_15 => {
            packet.fields.push(FieldMatch::exact(Field::Metadata, d.u64().into()));
        }
        _ => {}
    }
    message
}

fn encoded(version: Version, message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    Codec::new(version).encode(7, message, &mut bytes);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_message_of_14_and_15_survives_encoding_and_decoding(seed: u64) {
        for version in VERSIONS {
            let message = message(&mut Draw(Rng::new(seed)), version);
            let bytes = encoded(version, &message);
            prop_assert_eq!(Codec::new(version).decode(&bytes), Ok((7, message)));
        }
    }

    #[test]
    fn a_damaged_message_is_read_or_refused_and_what_is_read_can_be_written(seed: u64) {
        for version in VERSIONS {
            let mut draw = Draw(Rng::new(seed));
            let mut bytes = encoded(version, &message(&mut draw, version));
            for _ in 0..=draw.below(4) {
                let at = draw.below(bytes.len() as u64) as usize;
                bytes[at] = draw.u8();
            }
            bytes.truncate(HEADER_LEN.max(draw.below(2 * bytes.len() as u64) as usize));
            let len = bytes.len() as u16;
            bytes[2..4].copy_from_slice(&len.to_be_bytes());
            if let Ok((_, message)) = Codec::new(version).decode(&bytes) {
                let again = encoded(version, &message);
                prop_assert_eq!(Codec::new(version).decode(&again), Ok((7, message)));
            }
        }
    }
}

/// The numbers of the error with which a message is refused.
fn refused(version: Version, bytes: &[u8]) -> (u16, u16) {
    let mut bytes = bytes.to_vec();
    let len = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&len.to_be_bytes());
    let fault = Codec::new(version).decode(&bytes).unwrap_err();
    let error = Codec::new(version).error(&fault, &[]);
    (error.kind, error.code)
}

#[test]
fn a_flow_of_15_has_masks_copies_and_meters_among_its_actions() {
    let bits = |field, from, width| Bits { field, from, width };
    let vlan = Extension::Set { field: Field::Metadata, value: 0x500, mask: 0xff00, is_load: false };
    let copy = Extension::Move { from: bits(Field::EthSrc, 8, 16), to: bits(Field::Metadata, 4, 16) };
    let actions = [extension(vlan), extension(copy), extension(Extension::Meter(9)), Action::output(2)];
    let instructions = Instructions { meter: Some(3), ..Instructions::apply(actions) };
    let request = FlowMod { importance: 0x1234, ..FlowMod::add(0, 1, Match::any(), instructions) };
    let flow_mod = Message::FlowMod { buffer_id: NO_BUFFER, request };
    let bytes = encoded(Version::V15, &flow_mod);
    assert_eq!(bytes[..4], [6, 14, 0, bytes.len() as u8]);
    assert_eq!(bytes[46..48], [0x12, 0x34], "importance");
    let applied = [
        &[0, 4, 0, 96, 0, 0, 0, 0][..],
        &[0, 29, 0, 8, 0, 0, 0, 3],
        &[0, 25, 0, 24, 0x80, 0, 5, 16, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0xff, 0],
        &[0, 28, 0, 24, 0, 16, 0, 8, 0, 4, 0, 0, 0x80, 0, 8, 6, 0x80, 0, 4, 8, 0, 0, 0, 0],
        &[0, 29, 0, 8, 0, 0, 0, 9],
        &[0, 0, 0, 16, 0, 0, 0, 2, 0xff, 0xff, 0, 0, 0, 0, 0, 0],
    ];
    let mut applied = applied.concat();
    applied[3] = applied.len() as u8;
    assert_eq!(bytes[56..], applied);
    assert_eq!(Codec::new(Version::V15).decode(&bytes), Ok((7, flow_mod)));
    let head = &bytes[..56];
    let of = |instruction: &[u8]| refused(Version::V15, &[head, instruction].concat());
    assert_eq!(of(&[0, 6, 0, 8, 0, 0, 0, 3]), (3, 0), "the meter instruction");
    let trigger = [&[0, 7, 0, 16, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0][..]].concat();
    assert_eq!(of(&trigger), (3, 1), "stat trigger");
}

#[test]
fn the_output_of_the_action_set_has_its_number_of_15_in_15_only() {
    let matching = Match::new(&[FieldMatch::exact(Field::ActsetOutput, 5)]).unwrap();
    let stats = |d: &mut Draw| match d.message() {
        Message::MultipartReply { reply: Reply::Flow(mut flows), .. } => flows.pop(),
        _ => None,
    };
    let mut draw = Draw(Rng::new(1));
    let flow = (0..10_000).find_map(|_| stats(&mut draw)).expect("one of many");
    let flow = FlowStats { matching, importance: 0, ..flow };
    let message = Message::MultipartReply { flags: 0, reply: Reply::Flow(vec![flow]) };
    let bytes = VERSIONS.map(|version| encoded(version, &message));
    let has = |bytes: &[u8], wanted: &[u8]| bytes.windows(wanted.len()).any(|part| part == wanted);
    let numbers: [&[u8]; 2] = [&[0xff, 0xff, 0x56, 8, 0x4f, 0x4e, 0x46, 0], &[0x80, 0, 0x56, 4, 0, 0, 0, 5]];
    assert!(has(&bytes[0], numbers[0]) && !has(&bytes[0], numbers[1]));
    assert!(has(&bytes[1], numbers[1]) && !has(&bytes[1], numbers[0]));
    let Message::MultipartReply { reply: Reply::Flow(read), .. } =
        Codec::new(Version::V15).decode(&bytes[1]).unwrap().1
    else {
        panic!("another message")
    };
    assert_eq!(read[0].matching.field(Field::ActsetOutput).unwrap().value, 5);
}

#[test]
fn a_port_of_14_has_properties_and_a_table_thresholds() {
    let ports = encoded(
        Version::V14,
        &Message::MultipartReply { flags: 0, reply: Reply::PortDesc(vec![Draw(Rng::new(1)).port()]) },
    );
    assert_eq!(ports.len(), 16 + 72);
    assert_eq!(ports[20..22], [0, 72], "length");
    assert_eq!(ports[56..60], [0, 0, 0, 32], "the property of Ethernet");
    let vacancy = Some(Vacancy { down: 10, up: 20, now: 0 });
    let request = TableMod { table_id: 3, config: 12, eviction: Some(6), vacancy };
    let bytes = encoded(Version::V14, &Message::TableMod(request));
    assert_eq!(bytes[8..], [3, 0, 0, 0, 0, 0, 0, 12, 0, 2, 0, 8, 0, 0, 0, 6, 0, 3, 0, 8, 10, 20, 0, 0]);
    let with = |property: &[u8]| refused(Version::V14, &[&bytes[..16], property].concat());
    assert_eq!(with(&[0, 9, 0, 8, 0, 0, 0, 0]), (14, 0));
    assert_eq!(with(&[0, 2, 0, 9, 0, 0, 0, 0]), (14, 1));
    assert_eq!(with(&[0, 2, 0, 8, 0, 0, 0, 0, 0, 2, 0, 8, 0, 0, 0, 0]), (14, 4));
    assert_eq!(with(&[0xff, 0xff, 0, 12, 0, 0, 0x23, 0x20, 0, 0, 0, 0, 0, 0, 0, 0]), (14, 5));
}

#[test]
fn a_group_of_15_has_numbered_buckets_with_properties() {
    let bucket = Bucket { id: 5, weight: 7, watch_port: 2, ..Bucket::new([Action::output(1)]) };
    let command = GroupCommand::InsertBuckets(BUCKET_LAST);
    let request = GroupMod { command, id: 9, kind: GroupKind::Select, buckets: vec![bucket] };
    let bytes = encoded(Version::V15, &Message::GroupMod(request.clone()));
    let wanted = [
        &[0, 3, 1, 0, 0, 0, 0, 9, 0, 40, 0, 0, 0xff, 0xff, 0xff, 0xfe][..],
        &[0, 40, 0, 16, 0, 0, 0, 5],
        &[0, 0, 0, 16, 0, 0, 0, 1, 0xff, 0xff, 0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 8, 0, 7, 0, 0],
        &[0, 1, 0, 8, 0, 0, 0, 2],
    ];
    assert_eq!(bytes[8..], wanted.concat());
    assert_eq!(Codec::new(Version::V15).decode(&bytes), Ok((7, Message::GroupMod(request))));
    let mut unknown = bytes.clone();
    unknown[9] = 4;
    assert_eq!(refused(Version::V15, &unknown), (6, 11));
}

#[test]
fn a_packet_out_of_15_has_fields_outside_of_the_packet_only() {
    let fields = vec![FieldMatch::exact(Field::TunnelId, 77)];
    let out = PacketOut {
        buffer_id: NO_BUFFER,
        in_port: port::CONTROLLER,
        fields,
        actions: Vec::new(),
        data: vec![1],
    };
    let bytes = encoded(Version::V15, &Message::PacketOut(out.clone()));
    assert_eq!(Codec::new(Version::V15).decode(&bytes), Ok((7, Message::PacketOut(out.clone()))));
    let inside = PacketOut { fields: vec![FieldMatch::exact(Field::EthType, 5)], ..out.clone() };
    assert_eq!(refused(Version::V15, &encoded(Version::V15, &Message::PacketOut(inside))), (1, 17));
    let mut nowhere = encoded(Version::V15, &Message::PacketOut(out));
    // Its port of entry becomes another tunnel.
    nowhere[22] = 0x4c;
    assert!(Codec::new(Version::V15).decode(&nowhere).is_err());
}

#[test]
fn table_features_of_15_replace_ingress_tables() {
    let table = TableFeatures {
        table_id: 3,
        name: "acl".to_owned(),
        metadata_match: 0,
        metadata_write: 0,
        config: 0,
        entries: 9,
        properties: Vec::new(),
    };
    let request = Request::TableFeatures(vec![table]);
    let bytes = encoded(Version::V15, &Message::MultipartRequest { flags: 0, request });
    assert_eq!(bytes[16..24], [0, 64, 3, 0, 0, 0, 0, 1]);
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        refused(Version::V15, &bytes)
    };
    assert_eq!(with(19, 1), (13, 9), "a command");
    assert_eq!(with(23, 2), (13, 8), "an egress table");
}

#[test]
fn bundles_have_types_of_their_own_and_errors_of_their_own() {
    let open = [5, 33, 0, 16, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 3];
    let (_, message) = Codec::new(Version::V14).decode(&open).unwrap();
    assert_eq!(encoded(Version::V14, &message), open);
    let experimental = [5, 4, 0, 24, 0, 0, 0, 7, 0x4f, 0x4e, 0x46, 0, 0, 0, 8, 0xfc, 0, 0, 0, 1, 0, 0, 0, 3];
    assert_eq!(refused(Version::V14, &experimental), (1, 3));
    let fault = Fault::from(crate::message::BundleFault::BadId(1));
    let error = |version| Codec::new(version).error(&fault, &[]);
    assert_eq!((error(Version::V14).kind, error(Version::V14).code), (17, 2));
    assert_eq!((error(Version::V13).kind, error(Version::V13).code), (0xffff, 2302));
}

/// Messages as os-ken 3.0 writes them.
const OF_OSKEN: [&str; 14] = [
    "060e009800000007000000000000000500000000000000000200000000000009ffffffff000000000000000000001234\
     0001000c8000000400000003000000000004005000000000001d000800000009001c00180010000800040000800008068000040800000000\
     00190018800005100000000000000500000000000000ff000000001000000002ffe50000000000000001000804000000",
    "060f004000000007000301000000000900280000fffffffe00280010000000050000001000000001ffe5000000000000\
     00000008000700000001000800000002",
    "060d003a00000007ffffffff0010000000010018800000040000000180004c08000000000000004d\
     0000001000000002ffe50000000000000102",
    "06120038000000070011000000000000ff000000ffffffffffffffff00000000000000000000000000000000000000000001000400000000",
    "06120038000000070001000000000000ff000000ffffffffffffffff00000000000000000000000000000000000000000001000400000000",
    "0612001800000007000d000000000000ffffffff00000000",
    "061200180000000700070000000000000000000900000000",
    "0612001800000007000f00000000000000000003ffffffff",
    "0511002000000007030000000000000c0002000800000006000300080a140000",
    "051c00180000000700000008000000030009000800000018",
    "050e006000000007000000000000000500000000000000000200000000000009ffffffff000000000000000000001234\
     0001000c800000040000000300000000000600080000000300040018000000000000001000000002ffe5000000000000",
    "05210010000000070000000100000003",
    "051200300000000700100000000000000000000500000002ffffffff001fff000001000c800000040000000300000000",
    "0512001000000007000e000000000000",
];

#[test]
fn messages_of_osken_are_read_and_written_as_they_were() {
    for text in OF_OSKEN {
        let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b' ').collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        let bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
        let version = Version::from_number(bytes[0]).unwrap();
        let (xid, message) =
            Codec::new(version).decode(&bytes).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        assert_eq!(xid, 7);
        let again: String = encoded(version, &message).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(again.as_bytes(), digits);
    }
}
