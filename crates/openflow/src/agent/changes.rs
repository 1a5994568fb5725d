//! Changes of flows, groups and meters, one at a time.

use crate::message::{Fault, Message, NO_BUFFER};
use fastpath_switch::observe::FlowEvent;
use fastpath_switch::{FlowCommand, FlowMod, Removed, Switch};
use fastpath_units::Time;

/// Makes the change that a message asks for, and returns the flows that it removed.
pub(super) fn change_one(switch: &mut Switch, now: Time, request: &Message) -> Result<Vec<Removed>, Fault> {
    let removed = match request {
        Message::FlowMod { buffer_id, request } => {
            check_buffer(*buffer_id, request)?;
            switch.flow_mod(now, request)?
        }
        Message::GroupMod(request) => switch.group_mod(now, request)?,
        Message::MeterMod(request) => switch.meter_mod(now, request)?,
        _ => Vec::new(),
    };
    Ok(removed)
}

/// As [`change_one`], and adds what becomes of flows to `events`.
pub(super) fn change_observed(
    switch: &mut Switch,
    now: Time,
    request: &Message,
    events: &mut Vec<FlowEvent>,
) -> Result<Vec<Removed>, Fault> {
    if let Message::FlowMod { buffer_id, request } = request {
        check_buffer(*buffer_id, request)?;
        return Ok(switch.flow_mod_observed(now, request, events)?);
    }
    let removed = change_one(switch, now, request)?;
    events.extend(removed.iter().map(FlowEvent::of_removed));
    Ok(removed)
}

/// Refuses packets that wait in a buffer: there are none. Deletions ignore it (§7.3.4.2).
fn check_buffer(buffer_id: u32, request: &FlowMod) -> Result<(), Fault> {
    let is_delete = matches!(request.command, FlowCommand::Delete | FlowCommand::DeleteStrict);
    if buffer_id == NO_BUFFER || is_delete { Ok(()) } else { Err(Fault::BufferUnknown(buffer_id)) }
}
