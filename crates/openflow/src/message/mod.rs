//! The messages of OpenFlow 1.0, 1.3.5, 1.4 and 1.5, as values and as bytes. Pure: no I/O.
//!
//! ```text
//!  bytes ── frame_len ──▶ one message ── decode ──▶ (xid, Message) or Fault        Message ── encode ──▶ bytes
//! ```
//!
//! The values are those of 1.3. [`decode`] and [`Message::encode`] are of 1.3; [`Codec`] is of the
//! version of a connection.
//!
//! Messages of both directions can be read and written, so the controller's side can be tested too.
//! No input makes a decoder panic or use more memory than a small multiple of the message, which
//! has at most 64 KiB.
//!
//! Read first: OpenFlow 1.3.5 §7, then `v10/mod.rs`, `v14/mod.rs` and `v15/mod.rs`.

mod action;
mod bundle;
mod bundle_fault;
mod bytes;
mod codec;
pub(crate) mod continuation;
mod control;
mod fault;
mod flow_form;
pub mod flow_update;
mod modify;
mod multipart;
mod nicira;
mod nx_action;
mod nx_bits;
mod nx_controller;
mod nx_ct;
mod nx_learn;
mod nx_packet_in;
mod oxm;
mod packet;
mod pages;
mod table;
pub mod table_config;
mod v10;
mod v14;
mod v15;
mod versions;

pub(crate) use bundle::{BundleMessage, BundleStep, ONF, bundle_reply};
pub use bundle_fault::BundleFault;
pub use codec::Codec;
pub(crate) use codec::{has_port, write_items};
pub use control::{Async, AsyncMask, Config, ErrorMessage, Features, Hello, Role, RoleMessage, RoleStatus};
pub use fault::Fault;
pub use flow_update::{FlowUpdate, FullUpdate, MonitorRequest};
pub use modify::{NO_BUFFER, PortMod};
pub use multipart::{
    Description, FlowStats, GroupDescription, GroupFeatures, GroupStats, MORE, MeterDescription,
    MeterFeatures, MeterStats, NxFlowStats, PacketQueue, PortStats, QueueStats, Reply, Request, TableStats,
};
pub use nicira::{FlowFormat, Nicira, PacketInFormat};
pub use packet::{FlowRemoved, PacketIn, PacketOut, PortDescription, PortStatus};
pub use pages::Pages;
pub use table::{For, Property, TableFeatures};
pub use table_config::{TableConfig, TableMod, TableStatus, Vacancy};
pub(crate) use v10::ACTIONS as ACTIONS_10;
pub use versions::{ParseVersionsError, Versions};

use bytes::{ByteReader, Write};
use fastpath_switch::{FlowMod, GroupMod, MeterMod};
use nx_bits::NICIRA;

/// The protocol version: OpenFlow 1.3.
pub const VERSION: u8 = 4;
/// Bytes of the header of every message.
pub const HEADER_LEN: usize = 8;

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the specification names them")]
pub enum Message {
    Hello(Hello),
    Error(ErrorMessage),
    EchoRequest(Vec<u8>),
    EchoReply(Vec<u8>),
    Experimenter {
        experimenter: u32,
        kind: u32,
        data: Vec<u8>,
    },
    Nicira(Nicira),
    FeaturesRequest,
    FeaturesReply(Features),
    GetConfigRequest,
    GetConfigReply(Config),
    SetConfig(Config),
    PacketIn(PacketIn),
    /// NXT_RESUME: a packet that was paused goes on.
    Resume(PacketIn),
    FlowRemoved(FlowRemoved),
    PortStatus(PortStatus),
    PacketOut(PacketOut),
    FlowMod {
        /// A buffered packet to send through the new flow, or [`NO_BUFFER`].
        buffer_id: u32,
        request: FlowMod,
    },
    GroupMod(GroupMod),
    PortMod(PortMod),
    TableMod(TableMod),
    MultipartRequest {
        flags: u16,
        request: Request,
    },
    MultipartReply {
        flags: u16,
        reply: Reply,
    },
    BarrierRequest,
    BarrierReply,
    QueueGetConfigRequest {
        port: u32,
    },
    /// The queues of a port, or of all, without their properties, which are in parts of a rate that
    /// a port may not have.
    QueueGetConfigReply {
        port: u32,
        queues: Vec<PacketQueue>,
    },
    RoleRequest(RoleMessage),
    RoleReply(RoleMessage),
    GetAsyncRequest,
    GetAsyncReply(Async),
    SetAsync(Async),
    MeterMod(MeterMod),
    /// OFPT_SET_ASYNC of OpenFlow 1.4: other masks stay.
    ChangeAsync(Vec<AsyncMask>),
    /// OpenFlow 1.4.
    RoleStatus(RoleStatus),
    /// OpenFlow 1.4.
    TableStatus(TableStatus),
    /// OFPT_REQUESTFORWARD: a request of another controller, as a message. OpenFlow 1.4.
    RequestForward(Vec<u8>),
}

/// The header of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Version of the protocol.
    pub version: u8,
    /// Type of the message.
    pub kind: u8,
    /// Bytes of the whole message.
    pub len: u16,
    /// Transaction id: a reply carries that of its request.
    pub xid: u32,
}

impl Header {
    /// Reads the header at the beginning of `bytes`; `None` if it is incomplete.
    pub fn read(bytes: &[u8]) -> Option<Header> {
        let &[version, kind, l0, l1, x0, x1, x2, x3] = bytes.first_chunk()?;
        let (len, xid) = (u16::from_be_bytes([l0, l1]), u32::from_be_bytes([x0, x1, x2, x3]));
        Some(Header { version, kind, len, xid })
    }
}

/// Returns the length of the message at the beginning of `bytes`; `None` if its header is
/// incomplete.
///
/// The length is less than that of a header: nothing after it can be decoded.
pub fn frame_len(bytes: &[u8]) -> Result<Option<usize>, Fault> {
    match Header::read(bytes) {
        None => Ok(None),
        Some(header) if usize::from(header.len) < HEADER_LEN => Err(Fault::BadLen),
        Some(header) => Ok(Some(header.len.into())),
    }
}

/// Decodes one message of OpenFlow 1.3: `bytes` holds exactly this message.
///
/// What is wrong with it, for the error message.
pub fn decode(bytes: &[u8]) -> Result<(u32, Message), Fault> {
    let header = Header::read(bytes).ok_or(Fault::BadLen)?;
    if usize::from(header.len) != bytes.len() {
        return Err(Fault::BadLen);
    }
    // §6.3.1: a hello may be of any version, and its content may differ between versions.
    if header.version != VERSION && header.kind != 0 {
        return Err(Fault::BadVersion(header.version));
    }
    let body = ByteReader::new(&bytes[HEADER_LEN..], Fault::BadLen);
    Ok((header.xid, read_body(&header, body)?))
}

/// Reads what follows the header.
fn read_body(header: &Header, mut r: ByteReader<'_>) -> Result<Message, Fault> {
    let message = match header.kind {
        0..=4 => return read_common(header, r),
        5 => Message::FeaturesRequest,
        6 => Message::FeaturesReply(Features::read(&mut r)?),
        7 => Message::GetConfigRequest,
        8 => Message::GetConfigReply(Config { flags: r.u16()?, miss_send_len: r.u16()? }),
        9 => Message::SetConfig(Config { flags: r.u16()?, miss_send_len: r.u16()? }),
        10 => return Ok(Message::PacketIn(packet::read_packet_in(r)?)),
        11 => return Ok(Message::FlowRemoved(packet::read_flow_removed(r)?)),
        12 => return Ok(Message::PortStatus(packet::read_port_status(r, packet::read_port)?)),
        13 => return Ok(Message::PacketOut(packet::read_packet_out(r)?)),
        14 => {
            let (buffer_id, request) = modify::read_flow_mod(r, &action::FLOWS)?;
            return Ok(Message::FlowMod { buffer_id, request });
        }
        15 => return Ok(Message::GroupMod(modify::read_group_mod(r)?)),
        16 => return Ok(Message::PortMod(modify::read_port_mod(r)?)),
        17 => {
            let table_id = r.u8()?;
            r.skip(3)?;
            Message::TableMod(TableMod { table_id, config: r.u32()?, eviction: None, vacancy: None })
        }
        18 => {
            let (kind, flags) = (r.u16()?, r.u16()?);
            r.skip(4)?;
            return Ok(Message::MultipartRequest { flags, request: Request::read(kind, r)? });
        }
        19 => {
            let (kind, flags) = (r.u16()?, r.u16()?);
            r.skip(4)?;
            return Ok(Message::MultipartReply { flags, reply: Reply::read(kind, r)? });
        }
        20 => Message::BarrierRequest,
        21 => Message::BarrierReply,
        22 => {
            let port = r.u32()?;
            r.skip(4)?;
            Message::QueueGetConfigRequest { port }
        }
        23 => {
            let port = r.u32()?;
            r.skip(4)?;
            Message::QueueGetConfigReply { port, queues: PacketQueue::read_all(&mut r)? }
        }
        24 => Message::RoleRequest(RoleMessage::read(&mut r)?),
        25 => Message::RoleReply(RoleMessage::read(&mut r)?),
        26 => Message::GetAsyncRequest,
        27 => Message::GetAsyncReply(Async::read(&mut r)?),
        28 => Message::SetAsync(Async::read(&mut r)?),
        29 => return Ok(Message::MeterMod(modify::read_meter_mod(r)?)),
        kind => return Err(Fault::BadType(kind)),
    };
    r.end()?;
    Ok(message)
}

/// Reads what follows the header of a message that is the same in all versions.
fn read_common(header: &Header, mut r: ByteReader<'_>) -> Result<Message, Fault> {
    Ok(match header.kind {
        0 => Message::Hello(Hello::read(header.version, &mut r)),
        1 => Message::Error(ErrorMessage { kind: r.u16()?, code: r.u16()?, data: r.rest().to_vec() }),
        2 => Message::EchoRequest(r.rest().to_vec()),
        3 => Message::EchoReply(r.rest().to_vec()),
        4 => {
            let experimenter = r.u32()?;
            if experimenter == NICIRA {
                return match r.u32()? {
                    nx_packet_in::PACKET_IN2 => Ok(Message::PacketIn(nx_packet_in::read(r)?)),
                    nx_packet_in::RESUME => Ok(Message::Resume(nx_packet_in::read(r)?)),
                    kind => Ok(Message::Nicira(Nicira::read(kind, r)?)),
                };
            }
            // In OpenFlow 1.0 the type is a custom of experimenters.
            let kind = r.u32().map_err(|_| Fault::BadExperimenter(experimenter))?;
            Message::Experimenter { experimenter, kind, data: r.rest().to_vec() }
        }
        kind => return Err(Fault::BadType(kind)),
    })
}

impl Message {
    /// Returns the type in OpenFlow 1.3 (OFPT_).
    pub fn kind(&self) -> u8 {
        match self {
            Message::Hello(_) => 0,
            Message::Error(_) => 1,
            Message::EchoRequest(_) => 2,
            Message::EchoReply(_) => 3,
            Message::Experimenter { .. } | Message::Nicira(_) | Message::Resume(_) => 4,
            Message::FeaturesRequest => 5,
            Message::FeaturesReply(_) => 6,
            Message::GetConfigRequest => 7,
            Message::GetConfigReply(_) => 8,
            Message::SetConfig(_) => 9,
            Message::PacketIn(_) => 10,
            Message::FlowRemoved(_) => 11,
            Message::PortStatus(_) => 12,
            Message::PacketOut(_) => 13,
            Message::FlowMod { .. } => 14,
            Message::GroupMod(_) => 15,
            Message::PortMod(_) => 16,
            Message::TableMod(_) => 17,
            Message::MultipartRequest { .. } => 18,
            Message::MultipartReply { .. } => 19,
            Message::BarrierRequest => 20,
            Message::BarrierReply => 21,
            Message::QueueGetConfigRequest { .. } => 22,
            Message::QueueGetConfigReply { .. } => 23,
            Message::RoleRequest(_) => 24,
            Message::RoleReply(_) => 25,
            Message::GetAsyncRequest => 26,
            Message::GetAsyncReply(_) => 27,
            Message::SetAsync(_) | Message::ChangeAsync(_) => 28,
            Message::MeterMod(_) => 29,
            Message::RoleStatus(_) => 30,
            Message::TableStatus(_) => 31,
            Message::RequestForward(_) => 32,
        }
    }

    /// Appends the message of OpenFlow 1.3 to `out`. Panics if it exceeds 64 KiB; the caller splits
    /// longer replies (see [`Pages`]).
    pub fn encode(&self, xid: u32, out: &mut Vec<u8>) {
        let start = out.len();
        write_header(out, self.kind(), xid);
        self.write_body(out);
        end_message(out, start);
    }

    fn write_body(&self, out: &mut Vec<u8>) {
        match self {
            Message::FeaturesReply(features) => features.write(out),
            Message::PacketIn(packet) => packet::write_packet_in(out, packet),
            Message::FlowRemoved(flow) => packet::write_flow_removed(out, flow),
            Message::PortStatus(status) => packet::write_port_status(out, status, packet::write_port),
            Message::PacketOut(packet) => packet::write_packet_out(out, packet),
            Message::FlowMod { buffer_id, request } => {
                modify::write_flow_mod(out, *buffer_id, request, &action::FLOWS);
            }
            Message::GroupMod(request) => modify::write_group_mod(out, request),
            Message::PortMod(request) => modify::write_port_mod(out, request),
            Message::TableMod(TableMod { table_id, config, .. }) => {
                out.u8(*table_id);
                out.zeros(3);
                out.u32(*config);
            }
            Message::MultipartRequest { flags, request } => {
                out.u16(request.number());
                out.u16(*flags);
                out.u32(0);
                request.write(out);
            }
            Message::MultipartReply { flags, reply } => {
                out.u16(reply.number());
                out.u16(*flags);
                out.u32(0);
                reply.write(out);
            }
            Message::QueueGetConfigRequest { port } => {
                out.u32(*port);
                out.u32(0);
            }
            Message::QueueGetConfigReply { port, queues } => {
                out.u32(*port);
                out.u32(0);
                queues.iter().for_each(|queue| queue.write(out));
            }
            Message::RoleRequest(role) | Message::RoleReply(role) => role.write(out),
            Message::GetAsyncReply(masks) | Message::SetAsync(masks) => masks.write(out),
            Message::MeterMod(request) => modify::write_meter_mod(out, request),
            other => write_common(other, out),
        }
    }
}

/// Writes what follows the header of a message that is the same in all versions.
///
/// # Panics
/// If it is another message.
fn write_common(message: &Message, out: &mut Vec<u8>) {
    match message {
        Message::Hello(hello) => hello.write(out),
        Message::Error(error) => {
            out.u16(error.kind);
            out.u16(error.code);
            out.extend_from_slice(&error.data);
        }
        Message::EchoRequest(data) | Message::EchoReply(data) => out.extend_from_slice(data),
        Message::Experimenter { experimenter, kind, data } => {
            out.u32(*experimenter);
            out.u32(*kind);
            out.extend_from_slice(data);
        }
        Message::Nicira(message) => {
            out.u32(NICIRA);
            out.u32(message.kind());
            message.write(out);
        }
        Message::Resume(packet) => nx_packet_in::write(out, nx_packet_in::RESUME, packet),
        Message::GetConfigReply(config) | Message::SetConfig(config) => {
            out.u16(config.flags);
            out.u16(config.miss_send_len);
        }
        Message::FeaturesRequest
        | Message::GetConfigRequest
        | Message::BarrierRequest
        | Message::BarrierReply
        | Message::GetAsyncRequest => {}
        other => panic!("a message of type {} is not the same in all versions", other.kind()),
    }
}

/// Writes the length of the message that begins at `start` and has its end now.
fn end_message(out: &mut [u8], start: usize) {
    let len = out.len() - start;
    assert!(len <= usize::from(u16::MAX), "{len} bytes in one message of type {}", out[start + 1]);
    out[start + 2..start + 4].copy_from_slice(&(len as u16).to_be_bytes());
}

/// Writes a header of OpenFlow 1.3 without its length, which is written later.
fn write_header(out: &mut Vec<u8>, kind: u8, xid: u32) {
    out.u8(VERSION);
    out.u8(kind);
    out.u16(0);
    out.u32(xid);
}

#[cfg(test)]
mod tests;
