//! NXT_PACKET_IN2 and NXT_RESUME: a packet-in as a list of properties, the same in every version of
//! OpenFlow.
//!
//! A property has a type and a length of 16 bits each, and the next one begins at a multiple of
//! eight bytes.
//!
//! Read first: `enum nx_packet_in2_prop_type` in `nicira-ext.h` of Open vSwitch.

use super::bytes::{ByteReader, Write};
use super::fault::Fault;
use super::modify::NO_BUFFER;
use super::nx_bits::NICIRA;
use super::oxm;
use super::packet::PacketIn;
use fastpath_switch::Match;

/// The type of the message.
pub(super) const PACKET_IN2: u32 = 30;
/// The type of NXT_RESUME, which has the same properties.
pub(super) const RESUME: u32 = 28;
/// The types of properties (NXPINT_).
const PACKET: u16 = 0;
const FULL_LEN: u16 = 1;
const BUFFER_ID: u16 = 2;
const TABLE_ID: u16 = 3;
const COOKIE: u16 = 4;
const REASON: u16 = 5;
const METADATA: u16 = 6;
const USERDATA: u16 = 7;
const CONTINUATION: u16 = 8;
/// The cookie of a packet-in that no flow has sent.
const NO_COOKIE: u64 = u64::MAX;
/// Bytes of the head of a property.
const HEAD_LEN: usize = 4;

/// Reads what follows the type.
pub(super) fn read(mut r: ByteReader<'_>) -> Result<PacketIn, Fault> {
    let mut packet = PacketIn {
        buffer_id: NO_BUFFER,
        total_len: 0,
        reason: 0,
        table_id: 0,
        cookie: NO_COOKIE,
        matching: Match::any(),
        userdata: Vec::new(),
        continuation: Vec::new(),
        data: Vec::new(),
    };
    let mut full_len = None;
    while !r.is_empty() {
        let (kind, len) = (r.u16()?, usize::from(r.u16()?));
        let mut body = r.part(len.checked_sub(HEAD_LEN).ok_or(Fault::BadLen)?, Fault::BadLen)?;
        r.skip((len.next_multiple_of(8) - len).min(r.len()))?;
        match kind {
            PACKET => packet.data = body.rest().to_vec(),
            FULL_LEN => full_len = Some(body.u32()?),
            BUFFER_ID => packet.buffer_id = body.u32()?,
            TABLE_ID => packet.table_id = body.u8()?,
            COOKIE => {
                body.skip(4)?;
                packet.cookie = body.u64()?;
            }
            REASON => packet.reason = body.u8()?,
            METADATA => {
                let mut fields = Vec::new();
                while !body.is_empty() {
                    fields.extend(oxm::read_field(&mut body)?);
                }
                packet.matching = Match::new(&fields)?;
            }
            USERDATA => packet.userdata = body.rest().to_vec(),
            CONTINUATION => {
                body.skip(4)?;
                packet.continuation = body.rest().to_vec();
            }
            _ => {}
        }
    }
    let len = full_len.map_or(packet.data.len(), |len| len as usize);
    packet.total_len = u16::try_from(len).unwrap_or(u16::MAX);
    Ok(packet)
}

/// Writes a message of this type behind its header.
pub(super) fn write(out: &mut Vec<u8>, kind: u32, packet: &PacketIn) {
    out.u32(NICIRA);
    out.u32(kind);
    property(out, PACKET, |out| out.extend_from_slice(&packet.data));
    if usize::from(packet.total_len) != packet.data.len() {
        property(out, FULL_LEN, |out| out.u32(packet.total_len.into()));
    }
    property(out, TABLE_ID, |out| out.u32(u32::from(packet.table_id) << 24));
    if packet.cookie != NO_COOKIE {
        property(out, COOKIE, |out| {
            out.u32(0);
            out.u64(packet.cookie);
        });
    }
    property(out, REASON, |out| out.u32(u32::from(packet.reason) << 24));
    property(out, METADATA, |out| oxm::write_list(out, packet.matching.fields()));
    if !packet.userdata.is_empty() {
        property(out, USERDATA, |out| out.extend_from_slice(&packet.userdata));
    }
    if !packet.continuation.is_empty() {
        property(out, CONTINUATION, |out| {
            out.u32(0);
            out.extend_from_slice(&packet.continuation);
        });
    }
}

fn property(out: &mut Vec<u8>, kind: u16, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.u16(kind);
    out.u16(0);
    body(out);
    out.length(start, start + 2);
    out.pad(start);
}
