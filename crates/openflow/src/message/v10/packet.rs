//! Packet-ins and packet-outs (OpenFlow 1.0.0 §5.3.6, §5.4.1).

use super::{action, port_number};
use crate::message::bytes::{ByteReader, Write};
use crate::message::fault::Fault;
use crate::message::packet::{PacketIn, PacketOut};
use fastpath_switch::{Field, FieldMatch, Match, port};

/// The cookie of a packet-in that names no flow.
const NO_COOKIE: u64 = u64::MAX;

/// Reads a packet-in. Its table and the cookie of its flow are not in the message.
pub(crate) fn read_packet_in(mut r: ByteReader<'_>) -> Result<PacketIn, Fault> {
    let (buffer_id, total_len, in_port, reason) = (r.u32()?, r.u16()?, port_number::read(&mut r)?, r.u8()?);
    r.skip(1)?;
    let matching = Match::new(&[FieldMatch::exact(Field::InPort, in_port.into())])?;
    let data = r.rest().to_vec();
    let (table_id, cookie, userdata, continuation) = (0, NO_COOKIE, Vec::new(), Vec::new());
    Ok(PacketIn { buffer_id, total_len, reason, table_id, cookie, matching, userdata, continuation, data })
}

pub(crate) fn write_packet_in(out: &mut Vec<u8>, packet: &PacketIn) {
    let in_port = packet.matching.field(Field::InPort).map_or(port::ANY, |field| field.value as u32);
    out.u32(packet.buffer_id);
    out.u16(packet.total_len);
    port_number::write(out, in_port);
    out.u8(packet.reason);
    out.u8(0);
    out.extend_from_slice(&packet.data);
}

/// Reads a packet-out. One that names no port of entry (OFPP_NONE) comes from the controller.
pub(crate) fn read_packet_out(mut r: ByteReader<'_>) -> Result<PacketOut, Fault> {
    let (buffer_id, in_port, actions_len) = (r.u32()?, port_number::read(&mut r)?, usize::from(r.u16()?));
    let in_port = if in_port == port::ANY { port::CONTROLLER } else { in_port };
    let actions = action::read(r.part(actions_len, Fault::ActionBadLen)?, &Match::any())?;
    Ok(PacketOut { buffer_id, in_port, fields: Vec::new(), actions, data: r.rest().to_vec() })
}

pub(crate) fn write_packet_out(out: &mut Vec<u8>, packet: &PacketOut) {
    out.u32(packet.buffer_id);
    port_number::write(out, packet.in_port);
    let at = out.len();
    out.u16(0);
    let start = out.len();
    action::write(out, &packet.actions);
    out.length(start, at);
    out.extend_from_slice(&packet.data);
}
