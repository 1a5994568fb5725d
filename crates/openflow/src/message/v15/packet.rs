//! Packet-outs, whose fields outside of the packet are a match (OpenFlow 1.5.1 §7.3.6).

use super::action::{read_actions, write_actions};
use crate::message::bytes::{ByteReader, Write};
use crate::message::fault::Fault;
use crate::message::oxm;
use crate::message::packet::PacketOut;
use fastpath_switch::{Field, FieldMatch, PipelineFields, Refusal, port};

pub(crate) fn read_packet_out(mut r: ByteReader<'_>) -> Result<PacketOut, Fault> {
    let (buffer_id, actions_len) = (r.u32()?, usize::from(r.u16()?));
    r.skip(2)?;
    let (mut in_port, mut fields) = (None, Vec::new());
    for one in oxm::read_fields(&mut r)? {
        let field = one.field;
        // A register of Open vSwitch is a part of a field.
        if field.is_standard() && !one.is_exact() {
            return Err(Refusal::MatchBadMask(field.name()).into());
        }
        match field {
            Field::InPort => in_port = Some(one.value as u32),
            _ if !PipelineFields::default().set(field, one.value) => {
                return Err(Fault::PipelineFieldsOnly(field.name()));
            }
            _ => fields.push(one),
        }
    }
    let in_port = in_port.ok_or(Refusal::RequestBadPort(port::ANY))?;
    let actions = read_actions(r.part(actions_len, Fault::ActionBadLen)?)?;
    Ok(PacketOut { buffer_id, in_port, fields, actions, data: r.rest().to_vec() })
}

pub(crate) fn write_packet_out(out: &mut Vec<u8>, packet: &PacketOut) {
    out.u32(packet.buffer_id);
    let at = out.len();
    out.u32(0);
    let in_port = FieldMatch::exact(Field::InPort, packet.in_port.into());
    oxm::write_fields(out, [in_port].into_iter().chain(packet.fields.iter().copied()));
    let start = out.len();
    write_actions(out, &packet.actions);
    out.length(start, at);
    out.extend_from_slice(&packet.data);
}
