//! Which asynchronous messages a controller receives (OpenFlow 1.4 §7.3.10), and the change of its
//! role (§7.4.4). A request sets the masks that it has properties for.

use super::properties;
use crate::message::bytes::{ByteReader, Write};
use crate::message::control::{Async, AsyncMask, Role, RoleMessage, RoleStatus};
use crate::message::fault::Fault;

/// The types of messages, in the order of their properties (OFPACPT_): for slaves the even number,
/// for masters and equals the next.
const KINDS: usize = 6;

pub(crate) fn read_masks(mut r: ByteReader<'_>) -> Result<Vec<AsyncMask>, Fault> {
    let mut masks = Vec::new();
    properties::read(&mut r, |kind, body| {
        if usize::from(kind) >= 2 * KINDS {
            return Err(properties::unknown(kind, body));
        }
        let mask = body.u32()?;
        masks.push(AsyncMask { message: kind / 2, is_of_slaves: kind & 1 == 0, mask });
        body.end()
    })?;
    Ok(masks)
}

pub(crate) fn write_masks(out: &mut Vec<u8>, masks: &[AsyncMask]) {
    for AsyncMask { message, is_of_slaves, mask } in masks {
        properties::write(out, 2 * message + u16::from(!is_of_slaves), |out| out.u32(*mask));
    }
}

/// Reads all masks; those that are not there are 0.
pub(crate) fn read(r: ByteReader<'_>) -> Result<Async, Fault> {
    let mut all = Async::NONE;
    read_masks(r)?.into_iter().for_each(|mask| all.set(mask));
    Ok(all)
}

pub(crate) fn write(out: &mut Vec<u8>, all: &Async) {
    write_masks(out, &all.masks());
}

pub(crate) fn read_role_status(mut r: ByteReader<'_>) -> Result<RoleStatus, Fault> {
    let (number, reason) = (r.u32()?, r.u8()?);
    r.skip(3)?;
    let generation_id = r.u64()?;
    properties::read(&mut r, |_, _| Ok(()))?;
    let role = Role::from_number(number)?;
    Ok(RoleStatus { reason, role: RoleMessage { role, generation_id } })
}

pub(crate) fn write_role_status(out: &mut Vec<u8>, status: &RoleStatus) {
    out.u32(status.role.role.number());
    out.u8(status.reason);
    out.zeros(3);
    out.u64(status.role.generation_id);
}
