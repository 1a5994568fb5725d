//! The messages of OpenFlow 1.5 that differ from those of 1.4, as the same values.
//!
//! ```text
//!  bytes of 1.5 ── read_body ─┬─▶ Message
//!                             └─ the same in 1.4: read_body of 1.4
//! ```
//!
//! Read first: OpenFlow 1.5.1 §7.3, and `v14/mod.rs`.

mod action;
mod flow;
mod group;
mod multipart;
mod oxs;
mod packet;

pub(crate) use multipart::write_reply;

use super::bytes::ByteReader;
use super::fault::Fault;
use super::v14::{self, write_head};
use super::{Header, Message, modify};
use action::FLOWS;
use multipart::{read_reply, read_request, write_request};

/// Reads what follows the header.
pub(crate) fn read_body(header: &Header, mut r: ByteReader<'_>) -> Result<Message, Fault> {
    Ok(match header.kind {
        11 => Message::FlowRemoved(flow::read_removed(r)?),
        13 => Message::PacketOut(packet::read_packet_out(r)?),
        14 => {
            let (buffer_id, request) = modify::read_flow_mod(r, &FLOWS)?;
            Message::FlowMod { buffer_id, request }
        }
        15 => Message::GroupMod(group::read_mod(r)?),
        18 => {
            let (kind, flags) = (r.u16()?, r.u16()?);
            r.skip(4)?;
            Message::MultipartRequest { flags, request: read_request(kind, r)? }
        }
        19 => {
            let (kind, flags) = (r.u16()?, r.u16()?);
            r.skip(4)?;
            Message::MultipartReply { flags, reply: read_reply(kind, r)? }
        }
        _ => return v14::read_body(header, r),
    })
}

/// Writes what follows the header.
///
/// # Panics
/// If OpenFlow 1.5 has no such message.
pub(crate) fn write_body(message: &Message, out: &mut Vec<u8>) {
    match message {
        Message::FlowRemoved(flow) => flow::write_removed(out, flow),
        Message::PacketOut(packet) => packet::write_packet_out(out, packet),
        Message::FlowMod { buffer_id, request } => modify::write_flow_mod(out, *buffer_id, request, &FLOWS),
        Message::GroupMod(request) => group::write_mod(out, request),
        Message::MultipartRequest { flags, request } => {
            write_head(out, request.number(), *flags);
            write_request(out, request);
        }
        Message::MultipartReply { flags, reply } => {
            write_head(out, reply.number(), *flags);
            write_reply(out, reply);
        }
        other => v14::write_body(other, out),
    }
}

#[cfg(test)]
mod tests;
