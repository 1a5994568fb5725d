//! `controller` in messages: NXAST_CONTROLLER, and NXAST_CONTROLLER2 with properties.
//!
//! A property has a type and a length of 16 bits each; numbers are in 32 bits, and the next one
//! begins at a multiple of eight bytes.
//!
//! Read first: `nx_action_controller2` in `ofp-actions.c` of Open vSwitch.

use super::bytes::{ByteReader, Write};
use super::fault::Fault;
use super::nx_bits::action;
use fastpath_switch::extension::Controller;
use fastpath_switch::outcome::PacketInReason;
use fastpath_switch::port;

/// NXAST_CONTROLLER.
const CONTROLLER: u16 = 20;
/// NXAST_CONTROLLER2.
pub(super) const CONTROLLER2: u16 = 37;
/// NXAC2PT_.
const MAX_LEN: u16 = 0;
const ID: u16 = 1;
const REASON: u16 = 2;
const USERDATA: u16 = 3;
const PAUSE: u16 = 4;
const METER: u16 = 5;
/// The meter that means none (NX_CTLR_NO_METER).
const NO_METER: u32 = 0;
/// Bytes of the head of a property.
const HEAD_LEN: usize = 4;

/// Returns the reason of a number.
pub(super) fn reason(number: u8) -> Result<PacketInReason, Fault> {
    PacketInReason::ALL.get(usize::from(number)).copied().ok_or(Fault::ActionBadArgument)
}

/// Reads NXAST_CONTROLLER2, after the subtype.
pub(super) fn read(r: &mut ByteReader<'_>) -> Result<Controller, Fault> {
    let (max_len, reason) = (port::NO_BUFFER, PacketInReason::Action);
    let mut read = Controller { max_len, reason, id: 0, userdata: Vec::new(), meter: None, pauses: false };
    r.skip(6)?;
    while !r.is_empty() {
        let (kind, len) = (r.u16()?, usize::from(r.u16()?));
        let inside = len.checked_sub(HEAD_LEN).ok_or(Fault::ActionBadArgument)?;
        let mut body = r.part(inside, Fault::ActionBadLen)?;
        r.skip((len.next_multiple_of(8) - len).min(r.len()))?;
        match kind {
            MAX_LEN => read.max_len = body.u16()?,
            ID => read.id = body.u16()?,
            REASON => read.reason = self::reason(body.u8()?)?,
            USERDATA => read.userdata = body.rest().to_vec(),
            PAUSE => read.pauses = true,
            METER => read.meter = Some(body.u32()?).filter(|meter| *meter != NO_METER),
            _ => return Err(Fault::ActionBadArgument),
        }
    }
    Ok(read)
}

/// Writes the action, in the form that has all of it.
pub(super) fn write(out: &mut Vec<u8>, controller: &Controller) {
    let Controller { max_len, reason, id, userdata, meter, pauses } = controller;
    if userdata.is_empty() && meter.is_none() && !pauses {
        return action(out, CONTROLLER, |out| {
            out.u16(*max_len);
            out.u16(*id);
            out.u8(*reason as u8);
        });
    }
    action(out, CONTROLLER2, |out| {
        out.zeros(6);
        if *max_len != port::NO_BUFFER {
            property(out, MAX_LEN, &max_len.to_be_bytes());
        }
        if *id != 0 {
            property(out, ID, &id.to_be_bytes());
        }
        if *reason != PacketInReason::Action {
            property(out, REASON, &[*reason as u8]);
        }
        if !userdata.is_empty() {
            write_property(out, USERDATA, userdata);
        }
        if *pauses {
            write_property(out, PAUSE, &[]);
        }
        if let Some(meter) = meter {
            property(out, METER, &meter.to_be_bytes());
        }
    });
}

/// Writes a property with a number, which takes 32 bits.
fn property(out: &mut Vec<u8>, kind: u16, number: &[u8]) {
    let mut word = [0; 4];
    word[..number.len()].copy_from_slice(number);
    write_property(out, kind, &word);
}

fn write_property(out: &mut Vec<u8>, kind: u16, body: &[u8]) {
    out.u16(kind);
    out.u16((HEAD_LEN + body.len()) as u16);
    out.extend_from_slice(body);
    out.zeros((HEAD_LEN + body.len()).next_multiple_of(8) - HEAD_LEN - body.len());
}
