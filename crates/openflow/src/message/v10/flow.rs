//! Flow mods and flow-removed messages (OpenFlow 1.0.0 §5.3.3, §5.4.3).

use super::{action, matching, port_number};
use crate::message::bytes::{ByteReader, Write};
use crate::message::fault::Fault;
use crate::message::packet::{FlowRemoved, read_age, write_age};
use fastpath_switch::flow::{ALL_TABLES, ANY_GROUP, flags};
use fastpath_switch::{FlowCommand, FlowMod, Instructions, Refusal, Version};

/// OFPFF_EMERG: the flow is for the time without a controller.
const EMERGENCY: u16 = 1 << 2;
/// OFPFF_ bits that a flow may have.
pub(super) const FLAGS: u16 = flags::SEND_FLOW_REM | flags::CHECK_OVERLAP;

/// Where flow mods have the number of their table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum TableIds {
    /// They have none: flows are added to table 0, and other commands apply to all tables.
    #[default]
    None,
    /// In the upper byte of the command (NXT_FLOW_MOD_TABLE_ID).
    InCommand,
}

/// Reads a flow mod and the buffer that it names.
pub(crate) fn read_flow_mod(mut r: ByteReader<'_>, tables: TableIds) -> Result<(u32, FlowMod), Fault> {
    let matched = matching::read(&mut r)?;
    let (cookie, command) = (r.u64()?, r.u16()?);
    let (idle_timeout, hard_timeout, priority) = (r.u16()?, r.u16()?, r.u16()?);
    let (buffer_id, out_port, flags) = (r.u32()?, port_number::read(&mut r)?, r.u16()?);
    let (command, table_id) = read_command(command, tables)?;
    check_flags(flags, idle_timeout | hard_timeout)?;
    let actions = action::read(r, &matched.matching)?;
    let request = FlowMod {
        command,
        table_id,
        cookie,
        cookie_mask: 0,
        new_cookie: None,
        idle_timeout,
        hard_timeout,
        importance: 0,
        // §3.4: a flow that compares every field has the highest priority.
        priority: if matched.is_exact { u16::MAX } else { priority },
        out_port,
        out_group: ANY_GROUP,
        flags,
        matching: matched.matching,
        instructions: Instructions::apply(actions),
        version: Version::V10,
    };
    Ok((buffer_id, request))
}

/// Reads a command and its table.
pub(super) fn read_command(command: u16, tables: TableIds) -> Result<(FlowCommand, u8), Fault> {
    let [high, low] = command.to_be_bytes();
    let table_id = match tables {
        TableIds::InCommand => high,
        TableIds::None if high == 0 => ALL_TABLES,
        TableIds::None => return Err(Refusal::FlowBadCommand(u8::MAX).into()),
    };
    let command = match low {
        0 => FlowCommand::Add,
        1 => FlowCommand::Modify,
        2 => FlowCommand::ModifyStrict,
        3 => FlowCommand::Delete,
        4 => FlowCommand::DeleteStrict,
        other => return Err(Refusal::FlowBadCommand(other).into()),
    };
    let is_added_anywhere = command == FlowCommand::Add && table_id == ALL_TABLES;
    Ok((command, if is_added_anywhere { 0 } else { table_id }))
}

/// Writes a command and its table.
pub(super) fn write_command(out: &mut Vec<u8>, request: &FlowMod, tables: TableIds) {
    out.u8(if tables == TableIds::InCommand { request.table_id } else { 0 });
    out.u8(request.command as u8);
}

/// Checks the flags of a flow mod; `timeouts` is not 0 if it has any.
pub(super) fn check_flags(flags: u16, timeouts: u16) -> Result<(), Fault> {
    match flags & !FLAGS {
        0 => Ok(()),
        EMERGENCY if timeouts != 0 => Err(Fault::EmergencyTimeout),
        EMERGENCY => Err(Fault::EmergencyFlow),
        _ => Err(Refusal::FlowBadFlags(flags).into()),
    }
}

/// Writes a flow mod. What OpenFlow 1.0 cannot say of its match and actions is left out.
pub(crate) fn write_flow_mod(out: &mut Vec<u8>, buffer_id: u32, request: &FlowMod, tables: TableIds) {
    matching::write(out, &request.matching);
    out.u64(request.cookie);
    write_command(out, request, tables);
    [request.idle_timeout, request.hard_timeout, request.priority]
        .into_iter()
        .for_each(|number| out.u16(number));
    out.u32(buffer_id);
    port_number::write(out, request.out_port);
    out.u16(request.flags & FLAGS);
    action::write(out, &request.instructions.apply);
}

/// Reads a flow-removed message. It does not say the table, nor the hard timeout.
pub(crate) fn read_flow_removed(mut r: ByteReader<'_>) -> Result<FlowRemoved, Fault> {
    let matching = matching::read(&mut r)?.matching;
    let (cookie, priority, reason) = (r.u64()?, r.u16()?, known_reason(r.u8()?));
    r.skip(1)?;
    let (age, idle_timeout) = (read_age(&mut r)?, r.u16()?);
    r.skip(2)?;
    let (packets, bytes) = (r.u64()?, r.u64()?);
    r.end()?;
    Ok(FlowRemoved {
        cookie,
        priority,
        reason,
        table_id: ALL_TABLES,
        age,
        idle_timeout,
        hard_timeout: 0,
        packets,
        bytes,
        matching,
    })
}

pub(crate) fn write_flow_removed(out: &mut Vec<u8>, flow: &FlowRemoved) {
    matching::write(out, &flow.matching);
    out.u64(flow.cookie);
    out.u16(flow.priority);
    out.u8(known_reason(flow.reason));
    out.u8(0);
    write_age(out, flow.age);
    out.u16(flow.idle_timeout);
    out.u16(0);
    out.u64(flow.packets);
    out.u64(flow.bytes);
}

/// Returns the reason of a removal (OFPRR_). There are no groups: a flow that goes with its group
/// was deleted.
pub(super) fn known_reason(reason: u8) -> u8 {
    if reason == 3 { 2 } else { reason }
}
