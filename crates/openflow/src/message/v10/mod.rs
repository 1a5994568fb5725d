//! The messages of OpenFlow 1.0, as the values that those of 1.3 have.
//!
//! ```text
//!  bytes of 1.0 ── read_body ──▶ Message ◀── read_body of 1.3 ── bytes of 1.3
//! ```
//!
//! A message that OpenFlow 1.0 can say survives writing and reading. Of flows, what it cannot say
//! is left out: fields and masks of a match, instructions other than apply-actions, and actions.
//! The messages of Nicira can say every match: the controller chooses them ([`Forms`]), or asks by
//! them.
//!
//! Read first: OpenFlow 1.0.0 §5, then `nicira.rs`.

pub(crate) mod action;
mod errors;
mod features;
mod flow;
mod matching;
mod nicira;
mod nx_match;
mod nx_statistics;
mod packet;
mod port;
mod port_number;
mod statistics;

pub(crate) use action::SUPPORTED as ACTIONS;
pub(crate) use errors::message as error_message;
pub(crate) use flow::TableIds;
pub(crate) use port_number::narrow;
pub(crate) use statistics::write_reply;

use super::bytes::{ByteReader, Write};
use super::control::Config;
use super::multipart::{self, Reply, Request, write_nicira};
use super::nicira::{FlowFormat, Nicira, PacketInFormat};
use super::packet::{read_port_status, write_port_status};
use super::{Header, Message, fault::Fault, read_common, write_common};

/// OFPT_STATS_REPLY.
pub(crate) const STATS_REPLY: u8 = 17;

/// OFPT_VENDOR.
const VENDOR: u8 = 4;

/// The forms that the controller has chosen for messages about flows and packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Forms {
    /// Where flow mods name their table.
    tables: TableIds,
    /// The form of flow mods and flow-removed messages that are written.
    flows: FlowFormat,
    /// The form of packet-ins that are written.
    packet_ins: PacketInFormat,
}

impl Forms {
    /// Notes what a message of the controller chooses.
    pub(crate) fn note(&mut self, message: &Nicira) {
        match message {
            Nicira::FlowModTableId(true) => self.tables = TableIds::InCommand,
            Nicira::FlowModTableId(false) => self.tables = TableIds::None,
            Nicira::SetFlowFormat(format) => self.flows = *format,
            Nicira::SetPacketInFormat(format) => self.packet_ins = *format,
            Nicira::RoleRequest(_)
            | Nicira::RoleReply(_)
            | Nicira::SetAsync(_)
            | Nicira::SetControllerId(_) => {}
        }
    }

    /// Returns whether packet-ins are written as NXT_PACKET_IN2, in any version.
    pub(crate) fn are_packet_ins_properties(&self) -> bool {
        self.packet_ins == PacketInFormat::Nxt2
    }

    /// Returns whether a message is written as one of Nicira.
    fn is_nicira(&self, message: &Message) -> bool {
        match message {
            Message::FlowMod { .. } | Message::FlowRemoved(_) => self.flows == FlowFormat::Nxm,
            Message::PacketIn(_) => self.packet_ins == PacketInFormat::Nxt,
            _ => false,
        }
    }
}

/// Reads what follows the header.
pub(crate) fn read_body(header: &Header, mut r: ByteReader<'_>, forms: Forms) -> Result<Message, Fault> {
    let message = match header.kind {
        VENDOR => {
            let message = nicira::read(r, forms.tables)?;
            return message.map_or_else(|| read_common(header, r), Ok);
        }
        0..=3 => return read_common(header, r),
        5 => Message::FeaturesRequest,
        6 => Message::FeaturesReply(features::read(&mut r)?),
        7 => Message::GetConfigRequest,
        8 => Message::GetConfigReply(Config { flags: r.u16()?, miss_send_len: r.u16()? }),
        9 => Message::SetConfig(Config { flags: r.u16()?, miss_send_len: r.u16()? }),
        10 => return Ok(Message::PacketIn(packet::read_packet_in(r)?)),
        11 => return Ok(Message::FlowRemoved(flow::read_flow_removed(r)?)),
        12 => return Ok(Message::PortStatus(read_port_status(r, port::read)?)),
        13 => return Ok(Message::PacketOut(packet::read_packet_out(r)?)),
        14 => {
            let (buffer_id, request) = flow::read_flow_mod(r, forms.tables)?;
            return Ok(Message::FlowMod { buffer_id, request });
        }
        15 => return Ok(Message::PortMod(port::read_mod(r)?)),
        16 => {
            let (kind, flags) = (r.u16()?, r.u16()?);
            return Ok(Message::MultipartRequest { flags, request: read_request(kind, r)? });
        }
        STATS_REPLY => {
            let (kind, flags) = (r.u16()?, r.u16()?);
            return Ok(Message::MultipartReply { flags, reply: read_reply(kind, r)? });
        }
        18 => Message::BarrierRequest,
        19 => Message::BarrierReply,
        20 => {
            let port = port_number::read(&mut r)?;
            r.skip(2)?;
            Message::QueueGetConfigRequest { port }
        }
        21 => {
            let port = port_number::read(&mut r)?;
            r.skip(6)?;
            Message::QueueGetConfigReply { port, queues: statistics::read_queues(port, &mut r)? }
        }
        kind => return Err(Fault::BadType(kind)),
    };
    r.end()?;
    Ok(message)
}

fn read_request(kind: u16, r: ByteReader<'_>) -> Result<Request, Fault> {
    let request = if kind == multipart::VENDOR { nx_statistics::read_request(r)? } else { None };
    request.map_or_else(|| statistics::read_request(kind, r), Ok)
}

fn read_reply(kind: u16, r: ByteReader<'_>) -> Result<Reply, Fault> {
    let reply = if kind == multipart::VENDOR { nx_statistics::read_reply(r)? } else { None };
    reply.map_or_else(|| statistics::read_reply(kind, r), Ok)
}

/// Returns the type (OFPT_) of a message.
///
/// # Panics
/// If OpenFlow 1.0 has no such message.
pub(crate) fn kind(message: &Message, forms: Forms) -> u8 {
    match message {
        message if forms.is_nicira(message) => VENDOR,
        Message::MultipartRequest { .. } => 16,
        Message::MultipartReply { .. } => STATS_REPLY,
        Message::BarrierRequest => 18,
        Message::BarrierReply => 19,
        Message::QueueGetConfigRequest { .. } => 20,
        Message::QueueGetConfigReply { .. } => 21,
        Message::PortMod(_) => 15,
        other if other.kind() <= 14 => other.kind(),
        other => panic!("OpenFlow 1.0 has no message like type {} of 1.3", other.kind()),
    }
}

/// Writes what follows the header.
pub(crate) fn write_body(message: &Message, out: &mut Vec<u8>, forms: Forms) {
    match message {
        message if forms.is_nicira(message) => nicira::write(out, message, forms.tables),
        Message::FeaturesReply(reply) => features::write(out, reply),
        Message::PacketIn(one) => packet::write_packet_in(out, one),
        Message::FlowRemoved(one) => flow::write_flow_removed(out, one),
        Message::PortStatus(status) => write_port_status(out, status, port::write),
        Message::PacketOut(one) => packet::write_packet_out(out, one),
        Message::FlowMod { buffer_id, request } => {
            flow::write_flow_mod(out, *buffer_id, request, forms.tables);
        }
        Message::PortMod(request) => port::write_mod(out, request),
        Message::MultipartRequest { flags, request } => {
            let is_monitor = matches!(request, Request::FlowMonitor(_));
            out.u16(if is_monitor { multipart::VENDOR } else { request.number() });
            out.u16(*flags);
            statistics::write_request(out, request);
        }
        Message::MultipartReply { flags, reply } => {
            out.u16(if reply.nicira_subtype().is_some() { multipart::VENDOR } else { reply.number() });
            out.u16(*flags);
            if let Some(subtype) = reply.nicira_subtype() {
                write_nicira(out, subtype);
            }
            statistics::write_reply(out, reply);
        }
        Message::QueueGetConfigRequest { port } => {
            port_number::write(out, *port);
            out.u16(0);
        }
        Message::QueueGetConfigReply { port, queues } => {
            port_number::write(out, *port);
            out.zeros(6);
            for queue in queues {
                out.u32(queue.number);
                out.u16(8);
                out.zeros(2);
            }
        }
        other => write_common(other, out),
    }
}

#[cfg(test)]
mod tests;
