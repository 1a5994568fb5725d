//! Groups whose buckets have numbers (OpenFlow 1.5.1 §7.3.4.3, §7.3.5.11).

use super::action::{read_actions, write_actions};
use crate::message::bytes::{ByteReader, Write, measured};
use crate::message::fault::Fault;
use crate::message::modify::group_kind;
use crate::message::multipart::GroupDescription;
use crate::message::v14::{read_properties, unknown_property, write_property};
use fastpath_switch::flow::ANY_GROUP;
use fastpath_switch::{Bucket, GroupCommand, GroupKind, GroupMod, Refusal, port};

/// OFPGBPT_WEIGHT.
const WEIGHT: u16 = 0;
/// OFPGBPT_WATCH_PORT.
const WATCH_PORT: u16 = 1;
/// OFPGBPT_WATCH_GROUP.
const WATCH_GROUP: u16 = 2;

pub(crate) fn read_mod(mut r: ByteReader<'_>) -> Result<GroupMod, Fault> {
    let (command, kind) = (r.u16()?, r.u8()?);
    r.skip(1)?;
    let (id, len) = (r.u32()?, usize::from(r.u16()?));
    r.skip(2)?;
    let bucket = r.u32()?;
    let command = match command {
        0 => GroupCommand::Add,
        1 => GroupCommand::Modify,
        2 => GroupCommand::Delete,
        3 => GroupCommand::InsertBuckets(bucket),
        5 => GroupCommand::RemoveBuckets(bucket),
        _ => return Err(Refusal::GroupBadCommand(command).into()),
    };
    let kind = group_kind(kind).ok_or(Refusal::GroupBadType(kind))?;
    let buckets = read_buckets(kind, r.part(len, Fault::BucketBadLen)?)?;
    read_properties(&mut r, |kind, body| Err(unknown_property(kind, body)))?;
    Ok(GroupMod { command, id, kind, buckets })
}

pub(crate) fn write_mod(out: &mut Vec<u8>, request: &GroupMod) {
    let (command, bucket) = match request.command {
        GroupCommand::Add => (0, 0),
        GroupCommand::Modify => (1, 0),
        GroupCommand::Delete => (2, 0),
        GroupCommand::InsertBuckets(bucket) => (3, bucket),
        GroupCommand::RemoveBuckets(bucket) => (5, bucket),
    };
    out.u16(command);
    out.u8(request.kind as u8);
    out.u8(0);
    out.u32(request.id);
    let at = out.len();
    out.u32(0);
    out.u32(bucket);
    let start = out.len();
    write_buckets(out, request.kind, &request.buckets);
    out.length(start, at);
}

pub(crate) fn read_description(r: &mut ByteReader<'_>) -> Result<GroupDescription, Fault> {
    let mut r = measured(r)?;
    let kind = r.u8()?;
    r.skip(1)?;
    let kind = group_kind(kind).ok_or(Refusal::GroupBadType(kind))?;
    let (id, len) = (r.u32()?, usize::from(r.u16()?));
    r.skip(6)?;
    let buckets = read_buckets(kind, r.part(len, Fault::BucketBadLen)?)?;
    Ok(GroupDescription { id, kind, buckets })
}

pub(crate) fn write_description(out: &mut Vec<u8>, group: &GroupDescription) {
    let start = out.len();
    out.u16(0);
    out.u8(group.kind as u8);
    out.u8(0);
    out.u32(group.id);
    out.u64(0);
    let first = out.len();
    write_buckets(out, group.kind, &group.buckets);
    out.length(first, first - 8);
    out.length(start, start);
}

/// Reads buckets until the end. As in Open vSwitch, those of a select group that give no weight
/// have 1.
fn read_buckets(kind: GroupKind, mut reader: ByteReader<'_>) -> Result<Vec<Bucket>, Fault> {
    let mut buckets = Vec::new();
    while !reader.is_empty() {
        let len = usize::from(reader.u16()?);
        if len < 8 || !len.is_multiple_of(8) || len - 2 > reader.len() {
            return Err(Fault::BucketBadLen);
        }
        let mut body = reader.part(len - 2, Fault::BucketBadLen)?;
        let (actions_len, id) = (usize::from(body.u16()?), body.u32()?);
        let actions = read_actions(body.part(actions_len, Fault::ActionBadLen)?)?;
        let weight = u16::from(kind == GroupKind::Select);
        let mut bucket = Bucket { id, weight, ..Bucket::new(actions) };
        read_properties(&mut body, |kind, body| {
            match kind {
                WEIGHT => {
                    bucket.weight = body.u16()?;
                    body.skip(2)?;
                }
                WATCH_PORT => bucket.watch_port = body.u32()?,
                WATCH_GROUP => bucket.watch_group = body.u32()?,
                other => return Err(unknown_property(other, body)),
            }
            body.end()
        })?;
        buckets.push(bucket);
    }
    Ok(buckets)
}

fn write_buckets(out: &mut Vec<u8>, kind: GroupKind, buckets: &[Bucket]) {
    for bucket in buckets {
        let start = out.len();
        out.u32(0);
        out.u32(bucket.id);
        let first = out.len();
        write_actions(out, &bucket.actions);
        out.length(first, start + 2);
        if bucket.weight != 0 || kind == GroupKind::Select {
            write_property(out, WEIGHT, |out| {
                out.u16(bucket.weight);
                out.u16(0);
            });
        }
        if bucket.watch_port != port::ANY {
            write_property(out, WATCH_PORT, |out| out.u32(bucket.watch_port));
        }
        if bucket.watch_group != ANY_GROUP {
            write_property(out, WATCH_GROUP, |out| out.u32(bucket.watch_group));
        }
        out.length(start, start);
    }
}
