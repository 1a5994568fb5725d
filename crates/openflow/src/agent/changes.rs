//! Changes of flows, groups and meters, one at a time.

use crate::message::{Fault, Message, NO_BUFFER};
use fastpath_switch::{FlowCommand, Removed, Switch};
use fastpath_units::Time;

/// Makes the change that a message asks for, and returns the flows that it removed.
pub(super) fn change_one(switch: &mut Switch, now: Time, request: &Message) -> Result<Vec<Removed>, Fault> {
    let removed = match request {
        Message::FlowMod { buffer_id, request } => {
            // Deletions ignore it (§7.3.4.2).
            let is_delete = matches!(request.command, FlowCommand::Delete | FlowCommand::DeleteStrict);
            if *buffer_id != NO_BUFFER && !is_delete {
                return Err(Fault::BufferUnknown(*buffer_id));
            }
            switch.flow_mod(now, request)?
        }
        Message::GroupMod(request) => switch.group_mod(now, request)?,
        Message::MeterMod(request) => switch.meter_mod(now, request)?,
        _ => Vec::new(),
    };
    Ok(removed)
}
