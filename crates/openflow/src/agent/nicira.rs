//! What the switch does with messages of Nicira.

use super::connection::{Connection, Election};
use crate::message::{Async, Fault, FlowFormat, Message, Nicira, PacketInFormat, Role};
use fastpath_switch::Version;

/// Handles a message. Returns the election that follows from it.
pub(super) fn answer(
    connection: &mut Connection,
    xid: u32,
    message: Nicira,
) -> Result<Option<Election>, Fault> {
    let is_later = connection.codec.version() != Version::V10;
    match message {
        Nicira::RoleRequest(role) => {
            connection.take_role(role);
            connection.say(xid, &Message::Nicira(Nicira::RoleReply(role)));
            return Ok((role == Role::Master).then_some(Election));
        }
        Nicira::RoleReply(_) => return Err(Fault::BadSubtype(message.kind())),
        // The messages of OpenFlow 1.3 can say all that those of Nicira can.
        Nicira::SetFlowFormat(FlowFormat::Nxm) if is_later => return Err(Fault::FormatUnsupported(2)),
        Nicira::SetPacketInFormat(PacketInFormat::Nxt) if is_later => {
            return Err(Fault::FormatUnsupported(1));
        }
        // The codec has done it.
        Nicira::SetFlowFormat(_) | Nicira::SetPacketInFormat(_) | Nicira::FlowModTableId(_) => {}
        // It names three types of messages. The masks of others stay.
        Nicira::SetAsync(Async { packet_in, port_status, flow_removed, .. }) => {
            let masks = Async { packet_in, port_status, flow_removed, ..connection.masks };
            connection.masks = masks.known(connection.codec.version());
        }
        Nicira::SetControllerId(id) => connection.controller_id = id,
    }
    Ok(None)
}
