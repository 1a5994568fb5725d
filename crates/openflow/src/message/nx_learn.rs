//! The body of NXAST_LEARN: the settings of the new flow, and its specs.
//!
//! A spec begins with a header of 16 bits: 1 << 13 for a value instead of bits of the packet, what
//! becomes of it (0 match, 1 load, 2 output) at bit 11, and the width in the lowest eleven.

use super::bytes::{ByteReader, Write};
use super::fault::Fault;
use super::nx_bits::{bits, name_and_bit, read_header, write_header};
use fastpath_switch::extension::{Bits, Learn, Source, Spec, Target};

/// The source is a value.
const IS_VALUE: u16 = 1 << 13;
/// The bits of a header that say what becomes of the value.
const TARGET: u16 = 3 << 11;
const MATCH: u16 = 0;
const LOAD: u16 = 1 << 11;
const OUTPUT: u16 = 2 << 11;
/// The bits of a header with the width.
const WIDTH: u16 = 0x7ff;
/// NX_LEARN_F_SEND_FLOW_REM.
const SEND_FLOW_REM: u16 = 1;
/// NX_LEARN_F_DELETE_LEARNED.
const DELETE_LEARNED: u16 = 2;
/// NX_LEARN_F_WRITE_RESULT.
const WRITE_RESULT: u16 = 4;

/// NXAST_LEARN.
pub(super) const LEARN: u16 = 16;
/// NXAST_LEARN2: with a limit and the place of the result.
pub(super) const LEARN_LIMITED: u16 = 45;

/// Reads what follows the subtype.
pub(super) fn read(subtype: u16, mut r: ByteReader<'_>) -> Result<Learn, Fault> {
    let (idle_timeout, hard_timeout, priority, cookie) = (r.u16()?, r.u16()?, r.u16()?, r.u64()?);
    let (flags, table) = (r.u16()?, r.u8()?);
    r.skip(1)?;
    let (fin_idle_timeout, fin_hard_timeout) = (r.u16()?, r.u16()?);
    let known = SEND_FLOW_REM | DELETE_LEARNED | if subtype == LEARN_LIMITED { WRITE_RESULT } else { 0 };
    if flags & !known != 0 {
        return Err(Fault::ActionBadArgument);
    }
    let (mut limit, mut result) = (0, None);
    if subtype == LEARN_LIMITED {
        limit = r.u32()?;
        let from = r.u16()?;
        r.skip(2)?;
        match flags & WRITE_RESULT {
            0 if from != 0 => return Err(Fault::ActionBadArgument),
            0 => {}
            _ => result = Some(bits(read_header(&mut r)?, from, 1)?),
        }
    }
    let mut specs = Vec::new();
    while r.len() >= 2 {
        let header = r.u16()?;
        // The rest is padding.
        if header == 0 {
            break;
        }
        specs.push(read_spec(header, &mut r)?);
    }
    let (send_flow_rem, delete_learned) = (flags & SEND_FLOW_REM != 0, flags & DELETE_LEARNED != 0);
    Ok(Learn {
        table,
        priority,
        cookie,
        idle_timeout,
        hard_timeout,
        send_flow_rem,
        delete_learned,
        fin_idle_timeout,
        fin_hard_timeout,
        limit,
        result,
        specs,
    })
}

fn read_bits(r: &mut ByteReader<'_>, width: u16) -> Result<Bits, Fault> {
    let named = read_header(r)?;
    bits(named, r.u16()?, width)
}

fn read_spec(header: u16, r: &mut ByteReader<'_>) -> Result<Spec, Fault> {
    let width = header & WIDTH;
    let source = match header & IS_VALUE {
        0 => Source::Packet(read_bits(r, width)?),
        _ if width > 128 => return Err(Fault::ActionBadArgument),
        _ => Source::Value(r.number(value_len(width))?),
    };
    let target = match header & TARGET {
        MATCH => Target::Match(read_bits(r, width)?),
        LOAD => Target::Load(read_bits(r, width)?),
        OUTPUT if matches!(source, Source::Value(port) if port > 0xffff) => {
            return Err(Fault::ActionBadArgument);
        }
        OUTPUT => Target::Output,
        _ => return Err(Fault::ActionBadArgument),
    };
    Ok(Spec { source, target })
}

/// Returns the bytes of a value: whole words of 16 bits.
fn value_len(width: u16) -> usize {
    2 * usize::from(width.div_ceil(16))
}

/// Returns the subtype of a template.
pub(super) fn subtype(learn: &Learn) -> u16 {
    if learn.limit != 0 || learn.result.is_some() { LEARN_LIMITED } else { LEARN }
}

/// Writes what follows the subtype.
pub(super) fn write(out: &mut Vec<u8>, learn: &Learn) {
    out.u16(learn.idle_timeout);
    out.u16(learn.hard_timeout);
    out.u16(learn.priority);
    out.u64(learn.cookie);
    let flag = |is_set: bool, flag: u16| if is_set { flag } else { 0 };
    let flags = flag(learn.send_flow_rem, SEND_FLOW_REM) | flag(learn.delete_learned, DELETE_LEARNED);
    out.u16(flags | flag(learn.result.is_some(), WRITE_RESULT));
    out.u8(learn.table);
    out.zeros(1);
    out.u16(learn.fin_idle_timeout);
    out.u16(learn.fin_hard_timeout);
    if subtype(learn) == LEARN_LIMITED {
        let result = learn.result.map(name_and_bit);
        out.u32(learn.limit);
        out.u16(result.map_or(0, |(_, from)| from));
        out.zeros(2);
        result.into_iter().for_each(|(named, _)| write_header(out, named));
    }
    for Spec { source, target } in &learn.specs {
        let (kind, width) = match (source, target) {
            (_, Target::Match(bits)) => (MATCH, bits.width),
            (_, Target::Load(bits)) => (LOAD, bits.width),
            (Source::Packet(bits), Target::Output) => (OUTPUT, bits.width),
            (Source::Value(_), Target::Output) => (OUTPUT, 16),
        };
        let is_value = if matches!(source, Source::Value(_)) { IS_VALUE } else { 0 };
        out.u16(is_value | kind | u16::from(width));
        match source {
            Source::Value(value) => out.number(*value, value_len(width.into())),
            Source::Packet(bits) => write_bits(out, *bits),
        }
        if let Target::Match(bits) | Target::Load(bits) = target {
            write_bits(out, *bits);
        }
    }
}

fn write_bits(out: &mut Vec<u8>, bits: Bits) {
    let (named, from) = name_and_bit(bits);
    write_header(out, named);
    out.u16(from);
}
