//! Messages of Nicira that are those of OpenFlow 1.0 with another match: `nx_match` says what an
//! `ofp_match` cannot, such as registers, IPv6 addresses and the state of a connection.
//!
//! | message | here |
//! |---|---|
//! | NXT_FLOW_MOD | [`Message::FlowMod`] |
//! | NXT_FLOW_REMOVED | [`Message::FlowRemoved`] |
//! | NXT_PACKET_IN | [`Message::PacketIn`] |
//!
//! Statistics are in `nx_statistics.rs`.
//!
//! Read first: `nicira-ext.h` of Open vSwitch.

use super::flow::{self, TableIds};
use super::{action, nx_match, port_number};
use crate::message::Message;
use crate::message::bytes::{ByteReader, Write};
use crate::message::fault::Fault;
use crate::message::nx_bits::NICIRA;
use crate::message::packet::{FlowRemoved, PacketIn, read_age, write_age};
use fastpath_switch::flow::{ALL_TABLES, ANY_GROUP};
use fastpath_switch::{FlowCommand, FlowMod, Instructions, Version};

/// NXT_FLOW_MOD.
const FLOW_MOD: u32 = 13;
/// NXT_FLOW_REMOVED.
const FLOW_REMOVED: u32 = 14;
/// NXT_PACKET_IN.
const PACKET_IN: u32 = 17;

/// Reads a message of Nicira, which begins with the number of its author, if it is one of these.
pub(super) fn read(mut r: ByteReader<'_>, tables: TableIds) -> Result<Option<Message>, Fault> {
    let (Ok(NICIRA), Ok(kind)) = (r.u32(), r.u32()) else { return Ok(None) };
    Ok(Some(match kind {
        FLOW_MOD => {
            let (buffer_id, request) = read_flow_mod(r, tables)?;
            Message::FlowMod { buffer_id, request }
        }
        FLOW_REMOVED => Message::FlowRemoved(read_flow_removed(r)?),
        PACKET_IN => Message::PacketIn(read_packet_in(r)?),
        _ => return Ok(None),
    }))
}

/// Writes a message as one of Nicira.
///
/// # Panics
/// If it is not one of these.
pub(super) fn write(out: &mut Vec<u8>, message: &Message, tables: TableIds) {
    match message {
        Message::FlowMod { buffer_id, request } => write_flow_mod(out, *buffer_id, request, tables),
        Message::FlowRemoved(removed) => write_flow_removed(out, removed),
        Message::PacketIn(packet) => write_packet_in(out, packet),
        other => panic!("Nicira has no message like type {} of 1.3", other.kind()),
    }
}

fn write_head(out: &mut Vec<u8>, kind: u32) {
    out.u32(NICIRA);
    out.u32(kind);
}

fn read_flow_mod(mut r: ByteReader<'_>, tables: TableIds) -> Result<(u32, FlowMod), Fault> {
    let (new_cookie, command) = (r.u64()?, r.u16()?);
    let (idle_timeout, hard_timeout, priority) = (r.u16()?, r.u16()?, r.u16()?);
    let (buffer_id, out_port, flags) = (r.u32()?, port_number::read(&mut r)?, r.u16()?);
    let match_len = usize::from(r.u16()?);
    r.skip(6)?;
    let nx_match::NxMatch { matching, cookie, cookie_mask } = nx_match::read(&mut r, match_len)?;
    let (command, table_id) = flow::read_command(command, tables)?;
    if command == FlowCommand::Add && cookie_mask != 0 {
        return Err(Fault::AdditionToCookies);
    }
    flow::check_flags(flags, idle_timeout | hard_timeout)?;
    let actions = action::read(r, &matching)?;
    let is_modification = matches!(command, FlowCommand::Modify | FlowCommand::ModifyStrict);
    let is_restricted = cookie_mask != 0;
    let request = FlowMod {
        importance: 0,
        command,
        table_id,
        cookie: if is_restricted { cookie } else { new_cookie },
        cookie_mask,
        new_cookie: (is_restricted && is_modification && new_cookie != u64::MAX).then_some(new_cookie),
        idle_timeout,
        hard_timeout,
        priority,
        out_port,
        out_group: ANY_GROUP,
        flags,
        matching,
        instructions: Instructions::apply(actions),
        version: Version::V10,
    };
    Ok((buffer_id, request))
}

fn write_flow_mod(out: &mut Vec<u8>, buffer_id: u32, request: &FlowMod, tables: TableIds) {
    write_head(out, FLOW_MOD);
    let is_restricted = request.cookie_mask != 0;
    out.u64(if is_restricted { request.new_cookie.unwrap_or(u64::MAX) } else { request.cookie });
    flow::write_command(out, request, tables);
    [request.idle_timeout, request.hard_timeout, request.priority]
        .into_iter()
        .for_each(|number| out.u16(number));
    out.u32(buffer_id);
    port_number::write(out, request.out_port);
    out.u16(request.flags & flow::FLAGS);
    let at = out.len();
    out.zeros(8);
    nx_match::write_restricted(out, at, &request.matching, (request.cookie, request.cookie_mask));
    action::write(out, &request.instructions.apply);
}

/// Reads NXT_FLOW_REMOVED. It does not say the hard timeout.
fn read_flow_removed(mut r: ByteReader<'_>) -> Result<FlowRemoved, Fault> {
    let (cookie, priority, reason) = (r.u64()?, r.u16()?, flow::known_reason(r.u8()?));
    // One more than the table; 0 if it is not known.
    let table_id = r.u8()?.checked_sub(1).unwrap_or(ALL_TABLES);
    let (age, idle_timeout, match_len) = (read_age(&mut r)?, r.u16()?, usize::from(r.u16()?));
    let (packets, bytes) = (r.u64()?, r.u64()?);
    let matching = nx_match::read_matching(&mut r, match_len)?;
    r.end()?;
    Ok(FlowRemoved {
        cookie,
        priority,
        reason,
        table_id,
        age,
        idle_timeout,
        hard_timeout: 0,
        packets,
        bytes,
        matching,
    })
}

fn write_flow_removed(out: &mut Vec<u8>, flow: &FlowRemoved) {
    write_head(out, FLOW_REMOVED);
    out.u64(flow.cookie);
    out.u16(flow.priority);
    out.u8(flow::known_reason(flow.reason));
    out.u8(flow.table_id.wrapping_add(1));
    write_age(out, flow.age);
    out.u16(flow.idle_timeout);
    let at = out.len();
    out.u16(0);
    out.u64(flow.packets);
    out.u64(flow.bytes);
    nx_match::write(out, at, &flow.matching);
}

fn read_packet_in(mut r: ByteReader<'_>) -> Result<PacketIn, Fault> {
    let (buffer_id, total_len, reason, table_id, cookie) = (r.u32()?, r.u16()?, r.u8()?, r.u8()?, r.u64()?);
    let match_len = usize::from(r.u16()?);
    r.skip(6)?;
    let matching = nx_match::read_matching(&mut r, match_len)?;
    r.skip(2)?;
    let (userdata, continuation, data) = (Vec::new(), Vec::new(), r.rest().to_vec());
    Ok(PacketIn { buffer_id, total_len, reason, table_id, cookie, matching, userdata, continuation, data })
}

fn write_packet_in(out: &mut Vec<u8>, packet: &PacketIn) {
    write_head(out, PACKET_IN);
    out.u32(packet.buffer_id);
    out.u16(packet.total_len);
    out.u8(packet.reason);
    out.u8(packet.table_id);
    out.u64(packet.cookie);
    let at = out.len();
    out.zeros(8);
    nx_match::write(out, at, &packet.matching);
    out.u16(0);
    out.extend_from_slice(&packet.data);
}
