//! Actions and instructions (OpenFlow 1.5.1 §7.2.6, §7.2.5): fields are set under masks and copied,
//! and a meter is an action.

use crate::message::action::{
    SET_FIELD, read_action_by, read_instructions_by, read_list_by, write_action_by, write_instructions_by,
    write_list_by,
};
use crate::message::bytes::{ByteReader, Write};
use crate::message::fault::Fault;
use crate::message::flow_form::FlowForm;
use crate::message::nx_bits::{bits, name_and_bit, read_header, write_header};
use crate::message::oxm;
use fastpath_switch::extension::{Bits, Extension};
use fastpath_switch::{Action, Instructions, Refusal, nxm};
use std::sync::Arc;

/// OFPAT_COPY_FIELD.
const COPY_FIELD: u16 = 28;
/// OFPAT_METER.
const METER: u16 = 29;
/// The meter instruction of earlier versions.
const OLD_METER: u16 = 6;
/// OFPIT_STAT_TRIGGER.
const STAT_TRIGGER: u16 = 7;

/// How flows are said in OpenFlow 1.5.
pub(crate) const FLOWS: FlowForm =
    FlowForm { has_importance: true, read: read_instructions, write: write_instructions };

/// Reads actions until the end.
pub(crate) fn read_actions(reader: ByteReader<'_>) -> Result<Vec<Action>, Fault> {
    read_list_by(read_action, reader)
}

fn read_action(kind: u16, len: usize, mut body: ByteReader<'_>) -> Result<Action, Fault> {
    let extension = match kind {
        SET_FIELD => return read_set_field(len, body),
        COPY_FIELD => {
            let (width, from, to) = (body.u16()?, body.u16()?, body.u16()?);
            body.skip(2)?;
            let from = bits(read_header(&mut body)?, from, width)?;
            Extension::Move { from, to: bits(read_header(&mut body)?, to, width)? }
        }
        METER if len != 8 => return Err(Refusal::ActionBadLen(kind).into()),
        METER => Extension::Meter(body.u32()?),
        _ => return read_action_by(read_actions, kind, len, body),
    };
    Ok(Action::Extension(Arc::new(extension)))
}

fn read_set_field(len: usize, mut body: ByteReader<'_>) -> Result<Action, Fault> {
    let before = body.len();
    let (field, value, mask) = oxm::read_value(&mut body)?;
    if len != (4 + before - body.len()).next_multiple_of(8) {
        return Err(Fault::ActionBadSetLen);
    }
    Ok(match mask == field.ones() {
        true => Action::SetField(field, value),
        false => Action::Extension(Arc::new(Extension::Set { field, value, mask, is_load: false })),
    })
}

pub(crate) fn write_actions(out: &mut Vec<u8>, actions: &[Action]) {
    write_list_by(write_action, out, actions);
}

fn write_action(out: &mut Vec<u8>, action: &Action) {
    let start = out.len();
    let Action::Extension(extension) = action else { return write_action_by(write_actions, out, action) };
    match **extension {
        Extension::Set { field, value, mask, .. } => {
            let from = mask.trailing_zeros() as u8;
            let width = (u128::BITS - mask.leading_zeros()) as u8 - from;
            let named = nxm::of_bits(Bits { field, from, width });
            let from = named.bits.from;
            out.u16(SET_FIELD);
            out.u16(0);
            oxm::write_named(out, named, value >> from, mask >> from);
        }
        Extension::Move { from, to } => {
            let ((source, from_bit), (target, to_bit)) = (name_and_bit(from), name_and_bit(to));
            out.u16(COPY_FIELD);
            out.u16(0);
            [from.width.into(), from_bit, to_bit, 0].into_iter().for_each(|number| out.u16(number));
            write_header(out, source);
            write_header(out, target);
        }
        Extension::Meter(id) => {
            out.u16(METER);
            out.u16(0);
            out.u32(id);
        }
        _ => return write_action_by(write_actions, out, action),
    }
    out.pad(start);
    out.length(start, start + 2);
}

/// Reads instructions until the end. A meter before all other actions is the meter of the flow.
fn read_instructions(reader: ByteReader<'_>) -> Result<Instructions, Fault> {
    check_types(reader)?;
    let mut instructions = read_instructions_by(read_actions, reader)?;
    if let Some(Action::Extension(first)) = instructions.apply.first()
        && let Extension::Meter(id) = **first
    {
        instructions.apply.remove(0);
        instructions.meter = Some(id);
    }
    Ok(instructions)
}

/// Refuses the types of instructions that OpenFlow 1.3 has or does not have.
fn check_types(mut r: ByteReader<'_>) -> Result<(), Fault> {
    while let (Ok(kind), Ok(len)) = (r.u16(), r.u16()) {
        match kind {
            OLD_METER => return Err(Refusal::InstructionUnknown(kind).into()),
            STAT_TRIGGER => return Err(Fault::InstructionUnsupported(kind)),
            _ => {}
        }
        // Lengths are checked when the instructions are read.
        if r.skip(usize::from(len).saturating_sub(4)).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

fn write_instructions(out: &mut Vec<u8>, instructions: &Instructions) {
    let Some(id) = instructions.meter else {
        return write_instructions_by(write_actions, out, instructions);
    };
    let meter = Action::Extension(Arc::new(Extension::Meter(id)));
    let apply = [&[meter], &instructions.apply[..]].concat();
    write_instructions_by(write_actions, out, &Instructions { meter: None, apply, ..instructions.clone() });
}
