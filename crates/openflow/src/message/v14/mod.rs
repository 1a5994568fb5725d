//! The messages of OpenFlow 1.4 that differ from those of 1.3, as the same values.
//!
//! ```text
//!  bytes of 1.4 ── read_body ─┬─▶ Message
//!                             └─ the same in 1.3: read_body of 1.3
//! ```
//!
//! Bundles are the experimenter messages of 1.3 ([`ONF`]) with types of their own.
//!
//! Read first: OpenFlow 1.4.1 §7.3, and `message/mod.rs`.

mod asynchronous;
mod errors;
mod multipart;
mod port;
mod properties;
mod queue;
mod table;

pub(crate) use errors::numbers;
pub(crate) use multipart::{read_reply, read_request, write_reply, write_request};
pub(crate) use properties::{read as read_properties, unknown as unknown_property, write as write_property};

use super::bundle::{ADD, CONTROL, ONF};
use super::bytes::{ByteReader, Write};
use super::fault::Fault;
use super::packet::{read_port_status, write_port_status};
use super::{Header, Message, modify};
use multipart::FLOWS;

/// OFPT_EXPERIMENTER.
const EXPERIMENTER: u8 = 4;
/// OFPT_BUNDLE_CONTROL and OFPT_BUNDLE_ADD_MESSAGE, with their types as experimenter messages.
const BUNDLES: [(u8, u32); 2] = [(33, CONTROL), (34, ADD)];

/// Reads what follows the header.
pub(crate) fn read_body(header: &Header, mut r: ByteReader<'_>) -> Result<Message, Fault> {
    let message = match header.kind {
        12 => Message::PortStatus(read_port_status(r, port::read)?),
        14 => {
            let (buffer_id, request) = modify::read_flow_mod(r, &FLOWS)?;
            Message::FlowMod { buffer_id, request }
        }
        16 => Message::PortMod(port::read_mod(r)?),
        17 => Message::TableMod(table::read_mod(r)?),
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
        // Queues have multipart messages now.
        kind @ 22..=23 => return Err(Fault::BadType(kind)),
        27 => Message::GetAsyncReply(asynchronous::read(r)?),
        28 => Message::ChangeAsync(asynchronous::read_masks(r)?),
        30 => Message::RoleStatus(asynchronous::read_role_status(r)?),
        31 => Message::TableStatus(table::read_status(r)?),
        32 => Message::RequestForward(r.rest().to_vec()),
        number => match BUNDLES.into_iter().find(|(own, _)| *own == number) {
            Some((_, kind)) => Message::Experimenter { experimenter: ONF, kind, data: r.rest().to_vec() },
            None => return read_other(header, r),
        },
    };
    Ok(message)
}

/// Reads what follows the header of a message that is as in OpenFlow 1.3.
fn read_other(header: &Header, r: ByteReader<'_>) -> Result<Message, Fault> {
    let message = super::read_body(header, r)?;
    match message {
        // Its messages have types of their own here.
        Message::Experimenter { experimenter: ONF, .. } => Err(Fault::BadExperimenter(ONF)),
        other => Ok(other),
    }
}

/// Returns the type (OFPT_) of a message.
///
/// # Panics
/// If OpenFlow 1.4 has no such message.
pub(crate) fn kind(message: &Message) -> u8 {
    match message {
        Message::Experimenter { experimenter: ONF, kind, .. } => {
            let own = BUNDLES.into_iter().find(|(_, experimental)| experimental == kind);
            own.map_or(EXPERIMENTER, |(own, _)| own)
        }
        other => other.kind(),
    }
}

/// Writes what follows the header.
///
/// # Panics
/// If OpenFlow 1.4 has no such message.
pub(crate) fn write_body(message: &Message, out: &mut Vec<u8>) {
    match message {
        Message::PortStatus(status) => write_port_status(out, status, port::write),
        Message::FlowMod { buffer_id, request } => modify::write_flow_mod(out, *buffer_id, request, &FLOWS),
        Message::PortMod(request) => port::write_mod(out, request),
        Message::TableMod(request) => table::write_mod(out, request),
        Message::MultipartRequest { flags, request } => {
            write_head(out, request.number(), *flags);
            write_request(out, request);
        }
        Message::MultipartReply { flags, reply } => {
            write_head(out, reply.number(), *flags);
            write_reply(out, reply);
        }
        Message::QueueGetConfigRequest { .. }
        | Message::QueueGetConfigReply { .. }
        | Message::SetAsync(_) => {
            panic!("OpenFlow 1.4 has no message of type {} as in 1.3", message.kind())
        }
        Message::GetAsyncReply(all) => asynchronous::write(out, all),
        Message::ChangeAsync(masks) => asynchronous::write_masks(out, masks),
        Message::RoleStatus(status) => asynchronous::write_role_status(out, status),
        Message::TableStatus(status) => table::write_status(out, status),
        Message::RequestForward(request) => out.extend_from_slice(request),
        Message::Experimenter { data, .. } if kind(message) != EXPERIMENTER => out.extend_from_slice(data),
        other => other.write_body(out),
    }
}

/// Writes what precedes the body of a multipart message.
pub(crate) fn write_head(out: &mut Vec<u8>, kind: u16, flags: u16) {
    out.u16(kind);
    out.u16(flags);
    out.u32(0);
}
