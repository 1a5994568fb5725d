//! Actions of the experimenter Nicira (NXAST_), which Open vSwitch has in every version of
//! OpenFlow.
//!
//! To add one: its arm in [`read`] and in [`write`].
//!
//! Read first: `nicira-ext.h` and `ofp-actions.c` of Open vSwitch.

use super::bytes::{ByteReader, Write};
use super::fault::Fault;
use super::nx_bits::{
    NICIRA, ReadActions, WriteActions, action, bits, name_and_bit, packed, read_header, write_header,
    write_packed,
};
use super::nx_controller;
use super::nx_ct;
use super::nx_learn;
use super::oxm;
use fastpath_switch::extension::{Algorithm, Bits, Bundle, Controller, Extension, HashFields, Multipath};
use fastpath_switch::nxm;
use fastpath_switch::{Action, Field, port};
use std::sync::Arc;

/// The numbers of reserved ports in messages of 16 bits begin here.
const RESERVED: u32 = 0xffff_ff00;
/// The NXM header of the port of entry: members of bundles are ports.
const MEMBERS_ARE_PORTS: u32 = 0x0000_0002;

/// NXAST_RESUBMIT_TABLE_CT.
const RESUBMIT_CT: u16 = 44;

/// Reads an action of an experimenter, which begins after type and length.
pub(crate) fn read(mut r: ByteReader<'_>, inner: ReadActions) -> Result<Action, Fault> {
    let vendor = r.u32()?;
    if vendor != NICIRA {
        return Err(Fault::ActionBadExperimenter(vendor));
    }
    let subtype = r.u16()?;
    if let Some(action) = read_standard(subtype, r)? {
        return Ok(action);
    }
    let extension = match subtype {
        1 => Extension::Resubmit { in_port: read_in_port(&mut r)?, table: None, is_original: false },
        5 => Extension::PopQueue,
        6 => {
            let (width, from, to) = (r.u16()?, r.u16()?, r.u16()?);
            let from = bits(read_header(&mut r)?, from, width)?;
            Extension::Move { from, to: bits(read_header(&mut r)?, to, width)? }
        }
        7 => {
            let range = r.u16()?;
            let to = packed(range, read_header(&mut r)?)?;
            let value = u128::from(r.u64()?);
            if value & !to.ones() != 0 {
                return Err(Fault::ActionBadArgument);
            }
            Extension::Set { field: to.field, value: value << to.from, mask: to.mask(), is_load: true }
        }
        8 => Extension::Note(r.rest().to_vec()),
        10 => read_multipath(&mut r)?,
        12 | 13 => read_bundle(&mut r, subtype == 13)?,
        14 | RESUBMIT_CT => {
            let in_port = read_in_port(&mut r)?;
            let table = Some(r.u8()?).filter(|table| *table != 255);
            Extension::Resubmit { in_port, table, is_original: subtype == RESUBMIT_CT }
        }
        15 => {
            let range = r.u16()?;
            let port = packed(range, read_header(&mut r)?)?;
            Extension::OutputTo { port, max_len: r.u16()? }
        }
        nx_learn::LEARN | nx_learn::LEARN_LIMITED => Extension::Learn(nx_learn::read(subtype, r)?),
        17 => Extension::Exit,
        19 => Extension::FinTimeout { idle: r.u16()?, hard: r.u16()? },
        20 => {
            let (max_len, id, reason) = (r.u16()?, r.u16()?, r.u8()?);
            let reason = nx_controller::reason(reason)?;
            let (userdata, meter, pauses) = (Vec::new(), None, false);
            Extension::Controller(Controller { max_len, reason, id, userdata, meter, pauses })
        }
        27.. => return read_later(subtype, r, inner),
        other => return Err(Fault::ActionBadSubtype(other)),
    };
    Ok(Action::Extension(Arc::new(extension)))
}

/// Reads the actions of later versions of Open vSwitch.
fn read_later(subtype: u16, mut r: ByteReader<'_>, inner: ReadActions) -> Result<Action, Fault> {
    let extension = match subtype {
        27 | 28 => {
            let (from, header, width) = (r.u16()?, read_header(&mut r)?, r.u16()?);
            let bits = bits(header, from, width)?;
            if subtype == 27 { Extension::Push(bits) } else { Extension::Pop(bits) }
        }
        29 | 38 | 41 => read_sample(&mut r, subtype)?,
        32 => {
            let (range, max_len) = (r.u16()?, r.u16()?);
            Extension::OutputTo { port: packed(range, read_header(&mut r)?)?, max_len }
        }
        33 => {
            r.skip(6)?;
            let (field, value, mask) = oxm::read_value(&mut r)?;
            Extension::Set { field, value, mask, is_load: false }
        }
        nx_ct::CT => Extension::Ct(nx_ct::read(&mut r, inner)?),
        nx_controller::CONTROLLER2 => Extension::Controller(nx_controller::read(&mut r)?),
        43 => Extension::CtClear,
        254 => Extension::DebugSlow,
        255 => Extension::DebugRecirc,
        34 => {
            let (clause, clauses) = (r.u8()?, r.u8()?);
            Extension::Conjunction { id: r.u32()?, clause, clauses }
        }
        39 => Extension::Truncated { port: port::of_16_bits(r.u16()?.into()), max_len: r.u32()? },
        42 => {
            r.skip(6)?;
            Extension::Clone(inner(r.deeper().ok_or(Fault::ActionBadArgument)?)?)
        }
        49 => {
            let (longer_than, from) = (r.u16()?, r.u16()?);
            Extension::CheckLen { longer_than, to: bits(read_header(&mut r)?, from, 1)? }
        }
        other => return Err(Fault::ActionBadSubtype(other)),
    };
    Ok(Action::Extension(Arc::new(extension)))
}

/// Reads the actions that later versions of OpenFlow have themselves.
fn read_standard(subtype: u16, mut r: ByteReader<'_>) -> Result<Option<Action>, Fault> {
    let action = match subtype {
        2 | 4 => {
            r.skip(2)?;
            let number = r.u32()?;
            if subtype == 2 {
                Action::SetField(Field::TunnelId, number.into())
            } else {
                Action::SetQueue(number)
            }
        }
        9 => {
            r.skip(6)?;
            Action::SetField(Field::TunnelId, r.u64()?.into())
        }
        18 => Action::DecNwTtl,
        21 => match (r.u16()?, r.skip(4), r.u16()?) {
            (1, Ok(()), 0) => Action::DecNwTtl,
            _ => return Err(Fault::ActionBadArgument),
        },
        23 => Action::PushMpls(r.u16()?),
        24 => Action::PopMpls(r.u16()?),
        25 => Action::SetMplsTtl(r.u8()?),
        26 => Action::DecMplsTtl,
        30 => {
            r.skip(2)?;
            Action::SetField(Field::MplsLabel, (r.u32()? & 0xf_ffff).into())
        }
        31 => Action::SetField(Field::MplsTc, (r.u8()? & 7).into()),
        40 => Action::Group(r.u32()?),
        _ => return Ok(None),
    };
    Ok(Some(action))
}

fn read_in_port(r: &mut ByteReader<'_>) -> Result<Option<u32>, Fault> {
    let number = port::of_16_bits(r.u16()?.into());
    Ok(Some(number).filter(|number| *number != port::IN_PORT))
}

fn read_multipath(r: &mut ByteReader<'_>) -> Result<Extension, Fault> {
    let (fields, basis) = (r.u16()?, r.u16()?);
    r.skip(2)?;
    let (algorithm, last, argument) = (r.u16()?, r.u16()?, r.u32()?);
    r.skip(2)?;
    let range = r.u16()?;
    Ok(Extension::Multipath(Multipath {
        fields: *HashFields::ALL.get(usize::from(fields)).ok_or(Fault::ActionBadArgument)?,
        basis,
        algorithm: *Algorithm::ALL.get(usize::from(algorithm)).ok_or(Fault::ActionBadArgument)?,
        links: u32::from(last) + 1,
        argument,
        to: packed(range, read_header(r)?)?,
    }))
}

fn read_bundle(r: &mut ByteReader<'_>, loads: bool) -> Result<Extension, Fault> {
    let (algorithm, fields, basis, kind) = (r.u16()?, r.u16()?, r.u16()?, r.u32()?);
    let (count, range, header) = (r.u16()?, r.u16()?, r.array::<4>()?);
    r.skip(4)?;
    if kind != MEMBERS_ARE_PORTS || algorithm > 1 {
        return Err(Fault::ActionBadArgument);
    }
    let to = match loads {
        true => Some(packed(range, read_header(&mut ByteReader::new(&header, Fault::ActionBadLen))?)?),
        false => None,
    };
    let members = (0..count).map(|_| Ok(port::of_16_bits(r.u16()?.into()))).collect::<Result<_, Fault>>()?;
    let fields = *HashFields::ALL.get(usize::from(fields)).ok_or(Fault::ActionBadArgument)?;
    Ok(Extension::Bundle(Bundle { fields, basis, is_backup: algorithm == 0, members, to }))
}

fn read_sample(r: &mut ByteReader<'_>, subtype: u16) -> Result<Extension, Fault> {
    let (probability, collector_set, domain, point) = (r.u16()?, r.u32()?, r.u32()?, r.u32()?);
    let (sampling_port, direction) = match subtype {
        29 => (0, 0),
        38 => (port::of_16_bits(r.u16()?.into()), 0),
        _ => (port::of_16_bits(r.u16()?.into()), r.u8()?),
    };
    if probability == 0 || direction > 2 {
        return Err(Fault::ActionBadArgument);
    }
    Ok(Extension::Sample { probability, collector_set, domain, point, sampling_port, direction })
}

/// Writes an action of Open vSwitch.
pub(crate) fn write(out: &mut Vec<u8>, extension: &Extension, inner: WriteActions) {
    match extension {
        Extension::Set { field, value, mask, is_load } => write_set(out, *field, (*value, *mask), *is_load),
        Extension::Move { from, to } => action(out, 6, |out| {
            let (source, from_bit) = name_and_bit(*from);
            let (target, to_bit) = name_and_bit(*to);
            out.u16(from.width.into());
            out.u16(from_bit);
            out.u16(to_bit);
            write_header(out, source);
            write_header(out, target);
        }),
        Extension::Push(bits) => write_stack(out, 27, *bits),
        Extension::Pop(bits) => write_stack(out, 28, *bits),
        Extension::OutputTo { port, max_len } => action(out, 15, |out| {
            write_packed(out, *port);
            out.u16(*max_len);
            out.zeros(6);
        }),
        Extension::Truncated { port, max_len } => action(out, 39, |out| {
            write_port(out, *port);
            out.u32(*max_len);
        }),
        Extension::Resubmit { in_port, table: None, is_original: false } => action(out, 1, |out| {
            write_port(out, in_port.unwrap_or(port::IN_PORT));
            out.zeros(4);
        }),
        Extension::Resubmit { in_port, table, is_original } => {
            action(out, if *is_original { RESUBMIT_CT } else { 14 }, |out| {
                write_port(out, in_port.unwrap_or(port::IN_PORT));
                out.u8(table.unwrap_or(255));
                out.zeros(3);
            });
        }
        Extension::Learn(learn) => action(out, nx_learn::subtype(learn), |out| nx_learn::write(out, learn)),
        // Apart, because there are many.
        other => write_other(out, other, inner),
    }
}

fn write_multipath(out: &mut Vec<u8>, multipath: &Multipath) {
    action(out, 10, |out| {
        out.u16(multipath.fields as u16);
        out.u16(multipath.basis);
        out.zeros(2);
        out.u16(multipath.algorithm as u16);
        out.u16((multipath.links - 1) as u16);
        out.u32(multipath.argument);
        out.zeros(2);
        write_packed(out, multipath.to);
    });
}

fn write_other(out: &mut Vec<u8>, extension: &Extension, inner: WriteActions) {
    match extension {
        Extension::Multipath(multipath) => write_multipath(out, multipath),
        Extension::Bundle(bundle) => write_bundle(out, bundle),
        Extension::Note(bytes) => action(out, 8, |out| out.extend_from_slice(bytes)),
        Extension::Clone(actions) => action(out, 42, |out| {
            out.zeros(6);
            inner(out, actions);
        }),
        Extension::Conjunction { id, clause, clauses } => action(out, 34, |out| {
            out.u8(*clause);
            out.u8(*clauses);
            out.u32(*id);
        }),
        Extension::Ct(ct) => nx_ct::write(out, ct, inner),
        Extension::CtClear => action(out, 43, |out| out.zeros(6)),
        Extension::Sample { .. } => write_sample(out, extension),
        Extension::Exit => action(out, 17, |out| out.zeros(6)),
        Extension::FinTimeout { idle, hard } => action(out, 19, |out| {
            out.u16(*idle);
            out.u16(*hard);
        }),
        Extension::DebugSlow => action(out, 254, |out| out.zeros(6)),
        Extension::DebugRecirc => action(out, 255, |out| out.zeros(6)),
        Extension::Controller(controller) => nx_controller::write(out, controller),
        // A queue of its own, and back: other versions than 1.0 have no enqueue.
        Extension::Enqueue { port, queue } => {
            inner(out, &[Action::SetQueue(*queue), Action::output(*port)]);
            action(out, 5, |out| out.zeros(6));
        }
        Extension::PopQueue => action(out, 5, |out| out.zeros(6)),
        Extension::CheckLen { longer_than, to } => action(out, 49, |out| {
            let (named, from) = name_and_bit(*to);
            out.u16(*longer_than);
            out.u16(from);
            write_header(out, named);
            out.zeros(6);
        }),
        // The caller has them. Only OpenFlow 1.5 has meters as actions.
        Extension::Meter(_)
        | Extension::Set { .. }
        | Extension::Move { .. }
        | Extension::Push(_)
        | Extension::Pop(_)
        | Extension::OutputTo { .. }
        | Extension::Truncated { .. }
        | Extension::Resubmit { .. }
        | Extension::Learn(_) => {}
    }
}

/// Writes, as actions of Nicira, those of later versions that OpenFlow 1.0 does not have; nothing
/// for
/// others.
pub(crate) fn write_for_10(out: &mut Vec<u8>, one: &Action) {
    match one {
        Action::SetQueue(queue) => action(out, 4, |out| {
            out.zeros(2);
            out.u32(*queue);
        }),
        Action::SetField(Field::TunnelId, id) => action(out, 9, |out| {
            out.zeros(6);
            out.u64(*id as u64);
        }),
        Action::DecNwTtl => action(out, 18, |out| out.zeros(6)),
        Action::PushMpls(kind) => action(out, 23, |out| out.u16(*kind)),
        Action::PopMpls(kind) => action(out, 24, |out| out.u16(*kind)),
        Action::SetMplsTtl(ttl) => action(out, 25, |out| out.u8(*ttl)),
        Action::DecMplsTtl => action(out, 26, |_| {}),
        Action::SetField(Field::MplsLabel, label) => action(out, 30, |out| {
            out.zeros(2);
            out.u32(*label as u32);
        }),
        Action::SetField(Field::MplsTc, class) => action(out, 31, |out| out.u8(*class as u8)),
        Action::Group(id) => action(out, 40, |out| out.u32(*id)),
        Action::SetField(field, value) => {
            let to = Bits::all(*field);
            write_set(out, *field, (*value, to.mask()), true);
        }
        _ => {}
    }
}

fn write_set(out: &mut Vec<u8>, field: Field, (value, mask): (u128, u128), is_load: bool) {
    let from = mask.trailing_zeros().min(127);
    let width = (128 - mask.leading_zeros()).saturating_sub(from).max(1);
    let span = Bits { field, from: from as u8, width: width as u8 };
    let named = nxm::of_bits(span);
    // A load has room for the number of an experimenter only as a set-field.
    if is_load && span.mask() == mask && width <= 64 && named.experimenter == 0 {
        return action(out, 7, |out| {
            write_packed(out, span);
            out.u64((value >> from) as u64);
        });
    }
    let part = named.bits;
    let (value, mask) = (value >> part.from & part.ones(), mask >> part.from & part.ones());
    action(out, 33, |out| {
        out.zeros(6);
        oxm::write_named(out, named, value, mask);
    });
}

fn write_stack(out: &mut Vec<u8>, subtype: u16, bits: Bits) {
    action(out, subtype, |out| {
        let (named, from) = name_and_bit(bits);
        out.u16(from);
        write_header(out, named);
        out.u16(bits.width.into());
    });
}

fn write_sample(out: &mut Vec<u8>, sample: &Extension) {
    let Extension::Sample { probability, collector_set, domain, point, sampling_port, direction } = sample
    else {
        return;
    };
    let kind = if *direction > 0 { 41 } else { 38 };
    let kind = if (*sampling_port, *direction) == (0, 0) { 29 } else { kind };
    action(out, kind, |out| {
        out.u16(*probability);
        out.u32(*collector_set);
        out.u32(*domain);
        out.u32(*point);
        if kind != 29 {
            write_port(out, *sampling_port);
            out.u8(*direction);
        }
    });
}

fn write_bundle(out: &mut Vec<u8>, bundle: &Bundle) {
    action(out, if bundle.to.is_some() { 13 } else { 12 }, |out| {
        out.u16(u16::from(!bundle.is_backup));
        out.u16(bundle.fields as u16);
        out.u16(bundle.basis);
        out.u32(MEMBERS_ARE_PORTS);
        out.u16(bundle.members.len() as u16);
        match bundle.to {
            Some(to) => write_packed(out, to),
            None => out.zeros(6),
        }
        out.zeros(4);
        bundle.members.iter().for_each(|port| write_port(out, *port));
    });
}

/// Writes a port in 16 bits.
fn write_port(out: &mut Vec<u8>, number: u32) {
    out.u16(if number >= RESERVED { number as u16 } else { number.min(0xfeff) as u16 });
}
