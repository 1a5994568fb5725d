//! Actions, instructions and buckets (§7.2.4, §7.2.5). Functions that end in `_by` take the
//! functions of another version for the actions inside.

use super::bytes::{ByteReader, Write};
use super::fault::Fault;
use super::flow_form::FlowForm;
use super::flow_update::{OldForm, write_measured};
use super::nx_bits::{ReadActions, WriteActions};
use super::{nx_action, oxm};
use fastpath_switch::action::{self, Action, Argument};
use fastpath_switch::extension::{Bits, Extension};
use fastpath_switch::flow::{ClearActions, WriteMetadata};
use fastpath_switch::group::BUCKET_UNNUMBERED;
use fastpath_switch::nxm::{self, NamedBits};
use fastpath_switch::{Bucket, Field, Instructions, Refusal};
use fastpath_wire::ethertype;

/// OFPAT_OUTPUT.
const OUTPUT: u16 = 0;
/// OFPAT_SET_FIELD.
pub(crate) const SET_FIELD: u16 = 25;
/// OFPAT_EXPERIMENTER and OFPIT_EXPERIMENTER.
const EXPERIMENTER: u16 = 0xffff;

/// How flows are said in OpenFlow 1.3.
pub(crate) const FLOWS: FlowForm =
    FlowForm { has_importance: false, read: read_instructions, write: write_instructions };

/// How updates of monitored flows say a flow in OpenFlow 1.3.
pub(crate) const UPDATES: OldForm = OldForm {
    read: |mut r, _| Ok((oxm::read_match(&mut r)?, read_instructions(r)?)),
    write: |out, at, update| {
        write_measured(out, at, &update.matching);
        write_instructions(out, &update.instructions);
    },
};

/// Reads actions until the end.
pub(crate) fn read_actions(reader: ByteReader<'_>) -> Result<Vec<Action>, Fault> {
    read_list_by(|kind, len, body| read_action_by(read_actions, kind, len, body), reader)
}

/// Reads actions until the end, each by its type, its length and the bytes after these.
pub(crate) fn read_list_by(
    read: impl Fn(u16, usize, ByteReader<'_>) -> Result<Action, Fault>,
    mut reader: ByteReader<'_>,
) -> Result<Vec<Action>, Fault> {
    let mut actions = Vec::new();
    while !reader.is_empty() {
        let (kind, len) = (reader.u16()?, usize::from(reader.u16()?));
        if len < 8 || !len.is_multiple_of(8) || len - 4 > reader.len() {
            return Err(Refusal::ActionBadLen(kind).into());
        }
        let body = reader.part(len - 4, Fault::ActionBadLen)?;
        actions.push(read(kind, len, body)?);
    }
    Ok(actions)
}

/// Reads an action; `inner` reads those inside it.
pub(crate) fn read_action_by(
    inner: ReadActions,
    kind: u16,
    len: usize,
    mut body: ByteReader<'_>,
) -> Result<Action, Fault> {
    let Some(info) = action::by_number(kind).filter(|info| info.is_of_13()) else {
        return match kind {
            EXPERIMENTER => nx_action::read(body, inner),
            _ => Err(Refusal::ActionBadType(kind).into()),
        };
    };
    let wanted = match kind {
        OUTPUT => 16,
        SET_FIELD => len,
        _ => 8,
    };
    if len != wanted {
        return Err(Refusal::ActionBadLen(kind).into());
    }
    let action = match &info.argument {
        Argument::None(action) => action.clone(),
        Argument::Ttl(make) => make(body.u8()?),
        Argument::EtherType(make) => make(body.u16()?),
        Argument::Number { make, .. } => make(body.u32()?),
        Argument::Own if kind == OUTPUT => Action::Output { port: body.u32()?, max_len: body.u16()? },
        Argument::Own => {
            let before = body.len();
            let action = oxm::read_set_field(&mut body)?;
            if len != (4 + before - body.len()).next_multiple_of(8) {
                return Err(Fault::ActionBadSetLen);
            }
            action
        }
    };
    Ok(action)
}

pub(crate) fn write_actions(out: &mut Vec<u8>, actions: &[Action]) {
    write_list_by(|out, action| write_action_by(write_actions, out, action), out, actions);
}

/// Writes actions, each by `write`.
pub(crate) fn write_list_by(write: impl Fn(&mut Vec<u8>, &Action), out: &mut Vec<u8>, actions: &[Action]) {
    for action in actions {
        // As Open vSwitch shows flows that a controller of OpenFlow 1.0 added.
        let (field, value) = match *action {
            Action::ModVlanVid(id) => (Field::VlanVid, id | 0x1000),
            Action::ModVlanPcp(level) => (Field::VlanPcp, level.into()),
            _ => {
                write(out, action);
                continue;
            }
        };
        write(out, &Action::PushVlan(ethertype::VLAN));
        write(out, &Action::SetField(field, value.into()));
    }
}

/// Writes an action; `inner` writes those inside it.
pub(crate) fn write_action_by(inner: WriteActions, out: &mut Vec<u8>, action: &Action) {
    if let Action::Extension(extension) = action {
        return match set_part(extension) {
            Some((named, value)) => write_set(out, named, value),
            None => nx_action::write(out, extension, inner),
        };
    }
    if let Action::SetField(field, value) = action
        && !field.is_standard()
    {
        return write_set(out, nxm::of_bits(Bits::all(*field)), *value);
    }
    let start = out.len();
    let (kind, argument) = action.parts();
    out.u16(kind);
    out.u16(0);
    match (action, &action.info().argument) {
        (Action::Output { port, max_len }, _) => {
            out.u32(*port);
            out.u16(*max_len);
        }
        (Action::SetField(field, value), _) => {
            oxm::write_header(out, *field, false);
            out.number(*value, field.oxm_len());
        }
        (_, Argument::Ttl(_)) => out.u8(argument as u8),
        (_, Argument::EtherType(_)) => out.u16(argument as u16),
        (_, Argument::Number { .. } | Argument::None(_) | Argument::Own) => out.u32(argument),
    }
    out.pad(start);
    out.length(start, start + 2);
}

/// Returns the named part that an action sets as a whole, and its value.
fn set_part(extension: &Extension) -> Option<(&'static NamedBits, u128)> {
    let Extension::Set { field, value, mask, is_load: false } = extension else { return None };
    let from = mask.trailing_zeros();
    let width = mask.count_ones();
    let named = nxm::of_bits(Bits { field: *field, from: from as u8, width: width.max(1) as u8 });
    (named.bits.mask() == *mask && named.below == 0).then_some((named, value >> from))
}

/// Writes a set-field action of a named part.
fn write_set(out: &mut Vec<u8>, named: &NamedBits, value: u128) {
    let start = out.len();
    out.u16(SET_FIELD);
    out.u16(0);
    oxm::write_named(out, named, value, named.bits.ones());
    out.pad(start);
    out.length(start, start + 2);
}

/// Reads instructions until the end.
pub(crate) fn read_instructions(reader: ByteReader<'_>) -> Result<Instructions, Fault> {
    read_instructions_by(read_actions, reader)
}

/// Reads instructions until the end.
pub(crate) fn read_instructions_by(
    actions: ReadActions,
    mut reader: ByteReader<'_>,
) -> Result<Instructions, Fault> {
    let mut instructions = Instructions::default();
    let mut seen = 0u8;
    while !reader.is_empty() {
        let (kind, len) = (reader.u16()?, usize::from(reader.u16()?));
        if len < 8 || !len.is_multiple_of(8) || len - 4 > reader.len() {
            return Err(Fault::InstructionBadLen);
        }
        let mut body = reader.part(len - 4, Fault::InstructionBadLen)?;
        let wanted = match kind {
            1 | 5 | 6 => Some(8),
            2 => Some(24),
            _ => None,
        };
        if wanted.is_some_and(|wanted| len != wanted) {
            return Err(Fault::InstructionBadLen);
        }
        match kind {
            1 => instructions.goto = Some(body.u8()?),
            2 => {
                body.skip(4)?;
                instructions.metadata = Some(WriteMetadata { value: body.u64()?, mask: body.u64()? });
            }
            3 | 4 => {
                body.skip(4)?;
                let actions = actions(body.part(len - 8, Fault::ActionBadLen)?)?;
                *if kind == 3 { &mut instructions.write } else { &mut instructions.apply } = actions;
            }
            5 => instructions.clear = ClearActions::Clear,
            6 => instructions.meter = Some(body.u32()?),
            EXPERIMENTER => return Err(Fault::InstructionBadExperimenter(body.u32()?)),
            _ => return Err(Refusal::InstructionUnknown(kind).into()),
        }
        if seen & 1 << kind != 0 {
            return Err(Refusal::InstructionDuplicate.into());
        }
        seen |= 1 << kind;
    }
    Ok(instructions)
}

pub(crate) fn write_instructions(out: &mut Vec<u8>, instructions: &Instructions) {
    write_instructions_by(write_actions, out, instructions);
}

pub(crate) fn write_instructions_by(actions: WriteActions, out: &mut Vec<u8>, instructions: &Instructions) {
    if let Some(meter) = instructions.meter {
        out.u16(6);
        out.u16(8);
        out.u32(meter);
    }
    write_list(actions, out, 4, &instructions.apply);
    if instructions.clear == ClearActions::Clear {
        out.u16(5);
        out.u16(8);
        out.u32(0);
    }
    write_list(actions, out, 3, &instructions.write);
    if let Some(WriteMetadata { value, mask }) = instructions.metadata {
        out.u16(2);
        out.u16(24);
        out.u32(0);
        out.u64(value);
        out.u64(mask);
    }
    if let Some(table) = instructions.goto {
        out.u16(1);
        out.u16(8);
        out.u8(table);
        out.zeros(3);
    }
}

fn write_list(write: WriteActions, out: &mut Vec<u8>, kind: u16, actions: &[Action]) {
    if actions.is_empty() {
        return;
    }
    let start = out.len();
    out.u16(kind);
    out.u16(0);
    out.u32(0);
    write(out, actions);
    out.length(start, start + 2);
}

/// Reads buckets until the end.
pub(crate) fn read_buckets(mut reader: ByteReader<'_>) -> Result<Vec<Bucket>, Fault> {
    let mut buckets = Vec::new();
    while !reader.is_empty() {
        let len = usize::from(reader.u16()?);
        if len < 16 || !len.is_multiple_of(8) || len - 2 > reader.len() {
            return Err(Fault::BucketBadLen);
        }
        let mut body = reader.part(len - 2, Fault::BucketBadLen)?;
        let (weight, watch_port, watch_group) = (body.u16()?, body.u32()?, body.u32()?);
        body.skip(4)?;
        let actions = read_actions(body)?;
        buckets.push(Bucket { id: BUCKET_UNNUMBERED, weight, watch_port, watch_group, actions });
    }
    Ok(buckets)
}

pub(crate) fn write_buckets(out: &mut Vec<u8>, buckets: &[Bucket]) {
    for bucket in buckets {
        let start = out.len();
        out.u16(0);
        out.u16(bucket.weight);
        out.u32(bucket.watch_port);
        out.u32(bucket.watch_group);
        out.u32(0);
        write_actions(out, &bucket.actions);
        out.length(start, start);
    }
}
