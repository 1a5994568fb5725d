//! Flow monitors: controllers that are told of changes of flows (OpenFlow 1.4 §7.3.5.20).
//!
//! ```text
//!  change of flows ─▶ FlowEvent ─▶ AsyncMessages ─▶ each connection whose monitors select it
//! ```
//!
//! Read first: `flow_events.rs`.

use super::changes::change_one;
use super::connection::{Connection, Dump, DumpOf};
use super::event::Event;
use super::flow_events::{Author, FlowEvent, FlowFate, Monitor};
use super::switch_state::SwitchState;
use crate::message::flow_update::monitor_flags as flags;
use crate::message::{Fault, Message, MonitorRequest};
use fastpath_switch::flow::ALL_TABLES;
use fastpath_switch::{FlowCommand, Rank, Removed, Switch};
use fastpath_units::Time;

/// Most monitors of a connection.
const MONITORS_MAX: usize = 1024;

/// Adds, changes and deletes monitors. The flows that are there already follow.
pub(super) fn answer(
    state: &mut SwitchState,
    connection: &mut Connection,
    xid: u32,
    requests: Vec<MonitorRequest>,
) -> Result<(), Fault> {
    let tables = state.control.peek(|switch| switch.limits().tables);
    let mut shown = Vec::new();
    // A request that is refused changes nothing.
    let mut known = connection.monitors.by_id.clone();
    for MonitorRequest { id, command, flags, filter } in requests {
        match command {
            0 if known.contains_key(&id) => return Err(Fault::MonitorExists(id)),
            0 if known.len() >= MONITORS_MAX => return Err(Fault::MonitorsFull(MONITORS_MAX)),
            1 | 2 if !known.contains_key(&id) => return Err(Fault::MonitorUnknown(id)),
            2 => {
                known.remove(&id);
                continue;
            }
            0 | 1 => {}
            other => return Err(Fault::MonitorBadCommand(other)),
        }
        if flags & !flags::ALL != 0 || flags == 0 {
            return Err(Fault::MonitorBadFlags(flags));
        }
        if filter.table_id >= tables && filter.table_id != ALL_TABLES {
            return Err(Fault::MonitorBadTable(filter.table_id));
        }
        let monitor = Monitor { flags, filter };
        if flags & flags::INITIAL != 0 {
            shown.push(monitor.clone());
        }
        known.insert(id, monitor);
    }
    connection.monitors.by_id = known;
    state.are_flows_monitored |= !connection.monitors.is_empty();
    connection.dump = Some(Dump { xid, of: DumpOf::Monitored { monitors: shown, next: None } });
    Ok(())
}

/// Makes a change, and adds the events of what it does to flows.
pub(super) fn change_observed(
    switch: &mut Switch,
    now: Time,
    request: &Message,
    author: Author,
    events: &mut Vec<Event>,
) -> Result<Vec<Removed>, Fault> {
    let before = match request {
        Message::FlowMod { request, .. } => switch.modified_by(request),
        _ => Vec::new(),
    };
    let removed = change_one(switch, now, request)?;
    events.extend(removed.iter().map(|one| Event::of_removed(one, author)));
    let told = |what, table_id: u8, rank: &Rank| {
        let flow = switch.tables().get(usize::from(table_id))?.flow(rank)?.clone();
        let event = FlowEvent { what, table_id, rank: rank.clone(), flow, author };
        Some(Event::FlowChange(Box::new(event)))
    };
    if let Message::FlowMod { request, .. } = request
        && request.command == FlowCommand::Add
    {
        let rank = Rank::new(request.priority, request.matching.clone());
        events.extend(told(FlowFate::Added, request.table_id, &rank));
    }
    for (table_id, rank, old) in before {
        let after = switch.tables().get(usize::from(table_id)).and_then(|table| table.flow(&rank));
        let is_changed =
            after.is_some_and(|flow| flow.instructions != old.instructions || flow.cookie != old.cookie);
        if is_changed {
            events.extend(told(FlowFate::Modified, table_id, &rank));
        }
    }
    Ok(removed)
}
