//! What is left to do for a paused packet, as bytes that only this switch reads: the controller
//! returns them in NXT_RESUME. A keyed hash guards them, so that what is damaged or is of another
//! switch is refused.
//!
//! They are a property, as Open vSwitch's own are, so that its programs pass over it.

use super::action::{
    read_action_by, read_instructions_by, read_list_by, write_action_by, write_instructions_by,
};
use super::bytes::{ByteReader, Write};
use super::fault::Fault;
use fastpath_switch::connections::{CtState, FlowTuple};
use fastpath_switch::continuation::{Continuation, FlowName, Step};
use fastpath_switch::extension::Extension;
use fastpath_switch::key::{ConnectionFields, PipelineFields, TunnelOptions};
use fastpath_switch::{Action, ActionSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// The type of the property.
const PROPERTY: u16 = 0;
/// Bytes of its head.
const HEAD_LEN: usize = 4;
/// Types of actions that OpenFlow 1.3 does not have.
const SET_VLAN_VID: u16 = 1;
const SET_VLAN_PCP: u16 = 2;
const METER: u16 = 29;
const ENQUEUE: u16 = 100;

/// Returns the bytes for a packet with these fields outside of its frame.
pub(crate) fn seal(key: &RandomState, fields: &PipelineFields, continuation: &Continuation) -> Vec<u8> {
    let mut out = Vec::new();
    out.u16(PROPERTY);
    out.u16(0);
    write(&mut out, fields, continuation);
    let hash = key.hash_one(&out[HEAD_LEN..]);
    out.u64(hash);
    out.length(0, 2);
    out.pad(0);
    out
}

/// Reads the bytes. Of the fields, they have those that packet-ins do not report.
pub(crate) fn open(key: &RandomState, bytes: &[u8]) -> Result<(PipelineFields, Continuation), Fault> {
    let mut r = ByteReader::new(bytes, Fault::ContinuationStale);
    let (PROPERTY, len) = (r.u16()?, usize::from(r.u16()?)) else { return Err(Fault::ContinuationStale) };
    let inside = r.take(len.saturating_sub(HEAD_LEN))?;
    match inside.split_last_chunk() {
        Some((body, hash)) if key.hash_one(body) == u64::from_be_bytes(*hash) => {
            read(ByteReader::new(body, Fault::ContinuationStale))
        }
        _ => Err(Fault::ContinuationStale),
    }
}

fn write(out: &mut Vec<u8>, fields: &PipelineFields, continuation: &Continuation) {
    let Continuation { queue, stack, translated: (zone, translated), set, steps } = continuation;
    out.u32(*queue);
    out.u16(stack.len() as u16);
    stack.iter().for_each(|value| out.number(*value, 16));
    out.u16(*zone);
    out.u8(translated.bits());
    fields.tunnel_options.words().iter().for_each(|word| out.u64(*word));
    let ConnectionFields { state, zone, mark, label, original } = fields.connection;
    let FlowTuple { src, dst, src_port, dst_port, protocol, is_v6 } = original;
    out.u8(state.bits());
    out.u16(zone);
    out.u32(mark);
    [label, src, dst].into_iter().for_each(|value| out.number(value, 16));
    [src_port, dst_port].into_iter().for_each(|port| out.u16(port));
    [protocol, is_v6.into()].into_iter().for_each(|byte| out.u8(byte));
    measured(out, |out| write_actions(out, set));
    for Step { flow: FlowName { table_id, cookie, is_miss }, rest } in steps {
        out.u8(*table_id);
        out.u8((*is_miss).into());
        out.u64(*cookie);
        measured(out, |out| write_instructions_by(write_actions, out, rest));
    }
}

fn read(mut r: ByteReader<'_>) -> Result<(PipelineFields, Continuation), Fault> {
    let (queue, depth) = (r.u32()?, r.u16()?);
    let stack = (0..depth).map(|_| r.number(16)).collect::<Result<_, _>>()?;
    let translated = (r.u16()?, CtState::from_bits(r.u8()?));
    let mut words = [0; TunnelOptions::WORDS];
    for word in &mut words {
        *word = r.u64()?;
    }
    let (state, zone, mark, label) = (CtState::from_bits(r.u8()?), r.u16()?, r.u32()?, r.number(16)?);
    let (src, dst, src_port, dst_port) = (r.number(16)?, r.number(16)?, r.u16()?, r.u16()?);
    let original = FlowTuple { src, dst, src_port, dst_port, protocol: r.u8()?, is_v6: r.u8()? != 0 };
    let connection = ConnectionFields { state, zone, mark, label, original };
    let tunnel_options = TunnelOptions::from_words(words);
    let fields = PipelineFields { connection, tunnel_options, ..PipelineFields::default() };
    let set = read_actions(part(&mut r)?)?;
    let set = ActionSet::of(&set).all().cloned().collect();
    let mut steps = Vec::new();
    while !r.is_empty() {
        let (table_id, is_miss, cookie) = (r.u8()?, r.u8()? != 0, r.u64()?);
        let rest = read_instructions_by(read_actions, part(&mut r)?)?;
        steps.push(Step { flow: FlowName { table_id, cookie, is_miss }, rest });
    }
    Ok((fields, Continuation { queue, stack, translated, set, steps }))
}

/// Returns a reader of bytes behind their number.
fn part<'a>(r: &mut ByteReader<'a>) -> Result<ByteReader<'a>, Fault> {
    let len = r.u32()? as usize;
    r.part(len, Fault::ContinuationStale)
}

/// Writes bytes behind their number.
fn measured(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let mut inside = Vec::new();
    body(&mut inside);
    out.u32(inside.len() as u32);
    out.extend_from_slice(&inside);
}

/// Writes actions, each as it is: versions of OpenFlow write some as others.
fn write_actions(out: &mut Vec<u8>, actions: &[Action]) {
    for action in actions {
        let own = match action {
            Action::ModVlanVid(id) => Some((SET_VLAN_VID, u32::from(*id), 0)),
            Action::ModVlanPcp(level) => Some((SET_VLAN_PCP, u32::from(*level), 0)),
            Action::Extension(extension) => match **extension {
                Extension::Meter(id) => Some((METER, id, 0)),
                Extension::Enqueue { port, queue } => Some((ENQUEUE, port, queue)),
                _ => None,
            },
            _ => None,
        };
        let Some((kind, first, second)) = own else {
            write_action_by(write_actions, out, action);
            continue;
        };
        out.u16(kind);
        out.u16(16);
        [first, second, 0].into_iter().for_each(|number| out.u32(number));
    }
}

fn read_actions(reader: ByteReader<'_>) -> Result<Vec<Action>, Fault> {
    let read = |kind, len, mut body: ByteReader<'_>| {
        Ok(match kind {
            SET_VLAN_VID => Action::ModVlanVid(body.u32()? as u16),
            SET_VLAN_PCP => Action::ModVlanPcp(body.u32()? as u8),
            METER => Action::Extension(Arc::new(Extension::Meter(body.u32()?))),
            ENQUEUE => {
                let (port, queue) = (body.u32()?, body.u32()?);
                Action::Extension(Arc::new(Extension::Enqueue { port, queue }))
            }
            _ => return read_action_by(read_actions, kind, len, body),
        })
    };
    read_list_by(read, reader)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_switch::{Instructions, port};

    #[test]
    fn what_is_left_to_do_survives_and_nothing_that_is_changed_is_taken() {
        let inner = vec![Action::ModVlanVid(5), Action::Extension(Arc::new(Extension::Meter(3)))];
        let enqueue = Extension::Enqueue { port: port::LOCAL, queue: 7 };
        let apply = [Action::Extension(Arc::new(Extension::Clone(inner))), Action::ModVlanPcp(2)];
        let apply = [&apply[..], &[Action::Extension(Arc::new(enqueue)), Action::output(2)]].concat();
        let rest =
            Instructions { goto: Some(4), write: vec![Action::Group(9)], ..Instructions::apply(apply) };
        let flow = FlowName { table_id: 3, cookie: 0x11, is_miss: true };
        let continuation = Continuation {
            queue: 1,
            stack: vec![u128::MAX, 2],
            translated: (4, CtState::NEW),
            set: vec![Action::PopVlan, Action::output(1)],
            steps: vec![Step { flow, rest }, Step::default()],
        };
        let original = FlowTuple { src: 1, dst: 2, src_port: 3, dst_port: 4, protocol: 17, is_v6: true };
        let connection = ConnectionFields { state: CtState::NEW, zone: 5, mark: 6, label: 7, original };
        let fields = PipelineFields { connection, ..PipelineFields::default() };
        let key = RandomState::new();
        let bytes = seal(&key, &fields, &continuation);
        assert_eq!(open(&key, &bytes), Ok((fields, continuation)));
        let len = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
        for at in 0..len {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(open(&key, &damaged), Err(Fault::ContinuationStale), "{at}");
            assert_eq!(open(&key, &bytes[..at]), Err(Fault::ContinuationStale), "{at}");
        }
        assert_eq!(open(&RandomState::new(), &bytes), Err(Fault::ContinuationStale));
    }
}
