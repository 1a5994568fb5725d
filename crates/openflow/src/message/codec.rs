//! The messages of one connection in its version of OpenFlow.
//!
//! ```text
//!  bytes ── Codec::decode ──▶ (xid, Message) or Fault        Message ── Codec::encode ──▶ bytes
//! ```

use super::bytes::{ByteReader, Write};
use super::control::ErrorMessage;
use super::fault::{EXPERIMENTER, Fault};
use super::monitor_message;
use super::multipart::Reply;
use super::nx_bits::NICIRA;
use super::nx_packet_in;
use super::packet::PacketIn;
use super::v10::{self, Forms};
use super::{HEADER_LEN, Header, Message, ONF, end_message};
use super::{v14, v15};
use fastpath_switch::Version;

/// OFPT_EXPERIMENTER, OFPT_VENDOR.
const EXPERIMENTER_MESSAGE: u8 = 4;
/// The most bytes of a message: its length is a number of 16 bits.
const MESSAGE_MAX: usize = u16::MAX as usize;
/// What a packet-in may grow by when its frame is cut: padding, and a property with the whole
/// length.
const CUT_MAX: usize = 16;

/// Reads and writes the messages of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Codec {
    version: Version,
    /// The forms of messages about packets and, in OpenFlow 1.0, of those about flows. The
    /// controller chooses them.
    forms: Forms,
}

impl Codec {
    /// Returns the codec of a new connection.
    pub fn new(version: Version) -> Codec {
        Codec { version, forms: Forms::default() }
    }

    /// Returns the version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Decodes one message: `bytes` holds exactly this message.
    ///
    /// # Errors
    /// What is wrong with it, for the error message.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<(u32, Message), Fault> {
        let header = Header::read(bytes).ok_or(Fault::BadLen)?;
        if usize::from(header.len) != bytes.len() {
            return Err(Fault::BadLen);
        }
        if header.version != self.version.number() && header.kind != 0 {
            return Err(Fault::BadVersion(header.version));
        }
        let body = ByteReader::new(&bytes[HEADER_LEN..], Fault::BadLen);
        let message = match self.version {
            Version::V10 => v10::read_body(&header, body, self.forms)?,
            Version::V13 => super::read_body(&header, body)?,
            Version::V14 => v14::read_body(&header, body)?,
            Version::V15 => v15::read_body(&header, body)?,
        };
        self.note(&message);
        Ok((header.xid, message))
    }

    /// Notes the forms of other messages that a message of the controller chooses. The codec of the
    /// controller must note what it sends; that of the switch notes what it decodes.
    pub fn note(&mut self, message: &Message) {
        if let Message::Nicira(message) = message {
            self.forms.note(message);
        }
    }

    /// Appends a message to `out`.
    ///
    /// # Panics
    /// If it exceeds 64 KiB, or this version has no such message.
    pub fn encode(&self, xid: u32, message: &Message, out: &mut Vec<u8>) {
        let start = out.len();
        self.write(xid, message, out);
        end_message(out, start);
    }

    /// Returns a message; `None` if it exceeds 64 KiB. What fits one message of another version may
    /// not fit one of this. Of the frame of a packet-in, as much is in the message as fits, unless
    /// it comes back to go on.
    ///
    /// # Panics
    /// If this version has no such message.
    pub(crate) fn encoded(&self, xid: u32, message: &Message) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.write(xid, message, &mut out);
        let excess = out.len().saturating_sub(MESSAGE_MAX);
        if excess > 0 {
            let Message::PacketIn(packet) = message else { return None };
            let is_whole = !packet.continuation.is_empty() && self.forms.are_packet_ins_properties();
            let len = packet.data.len().checked_sub(excess + CUT_MAX).filter(|_| !is_whole)?;
            out.clear();
            let cut = PacketIn { data: packet.data[..len].to_vec(), ..packet.clone() };
            self.write(xid, &Message::PacketIn(cut), &mut out);
        }
        end_message(&mut out, 0);
        Some(out)
    }

    /// Writes a message without its length.
    fn write(&self, xid: u32, message: &Message, out: &mut Vec<u8>) {
        out.u8(self.version.number());
        if let Message::PacketIn(packet) = message
            && self.forms.are_packet_ins_properties()
        {
            out.u8(EXPERIMENTER_MESSAGE);
            out.u16(0);
            out.u32(xid);
            return nx_packet_in::write(out, nx_packet_in::PACKET_IN2, packet);
        }
        let author = if self.version == Version::V10 { NICIRA } else { ONF };
        if self.version < Version::V14 {
            let start = out.len();
            out.u8(EXPERIMENTER_MESSAGE);
            out.u16(0);
            out.u32(xid);
            if monitor_message::write(author, out, message) {
                return;
            }
            out.truncate(start);
        }
        out.u8(match self.version {
            Version::V10 => v10::kind(message, self.forms),
            Version::V13 => message.kind(),
            Version::V14 | Version::V15 => v14::kind(message),
        });
        out.u16(0);
        out.u32(xid);
        match self.version {
            Version::V10 => v10::write_body(message, out, self.forms),
            Version::V13 => message.write_body(out),
            Version::V14 => v14::write_body(message, out),
            Version::V15 => v15::write_body(message, out),
        }
    }

    /// Returns the error message for a request that begins with `data`.
    pub fn error(&self, fault: &Fault, data: &[u8]) -> ErrorMessage {
        let (kind, code) = match self.version {
            Version::V10 => return v10::error_message(fault, data),
            Version::V13 => fault.numbers_of_13(),
            Version::V14 | Version::V15 => v14::numbers(fault),
        };
        // §7.4.4: errors of an experimenter name it before the request.
        let author = if matches!(fault, Fault::Bundle(_)) { ONF } else { NICIRA };
        let experimenter = if kind == EXPERIMENTER { author.to_be_bytes().to_vec() } else { Vec::new() };
        ErrorMessage { kind, code, data: [&experimenter, data].concat() }
    }
}

/// Returns whether a port has a number in this version.
pub(crate) fn has_port(version: Version, port: u32) -> bool {
    version != Version::V10 || v10::narrow(port).is_some()
}

/// Writes the items of a reply.
pub(crate) fn write_items(version: Version, out: &mut Vec<u8>, reply: &Reply) {
    match version {
        Version::V10 => v10::write_reply(out, reply),
        Version::V13 => reply.write(out),
        Version::V14 => v14::write_reply(out, reply),
        Version::V15 => v15::write_reply(out, reply),
    }
}
