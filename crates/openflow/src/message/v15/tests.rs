//! Messages of OpenFlow 1.4 and 1.5 survive encoding and decoding, no input makes a decoder panic,
//! and what is new has the bytes and the numbers of the specification.

use crate::message::tests::Draw;
use crate::message::{
    AsyncMask, Codec, Fault, HEADER_LEN, Message, NO_BUFFER, PacketOut, Reply, Request, RoleStatus,
    TableConfig, TableMod, TableStatus, Vacancy,
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
        &[0, 28, 0, 24, 0, 16, 0, 8, 0, 4, 0, 0, 0x00, 0, 4, 6, 0x80, 0, 4, 8, 0, 0, 0, 0],
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
