//! Flow monitors: controllers that are told of changes of flows (OpenFlow 1.4 §7.3.5.20).
//!
//! ```text
//!  change of flows ─▶ FlowChanges ─▶ AsyncMessages ─▶ each connection whose monitors select it
//! ```
//!
//! Read first: `flow_events.rs`.

use super::connection::{Connection, Dump, DumpOf};
use super::flow_events::Monitor;
use super::switch_state::SwitchState;
use crate::message::flow_update::monitor_flags as flags;
use crate::message::{Fault, MonitorRequest};
use fastpath_switch::Version;
use fastpath_switch::flow::ALL_TABLES;

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
    let is_old = connection.codec.version() < Version::V14;
    let is_end = is_old && requests.iter().any(|one| one.command == 2);
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
        let known_flags = if is_old { flags::ALL & !flags::ONLY_OWN } else { flags::ALL };
        let wanted = if is_old { flags::ADD | flags::REMOVED | flags::MODIFY } else { flags::ALL };
        if flags & !known_flags != 0 || flags & wanted == 0 {
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
    // Before OpenFlow 1.4 what ends monitors is a message without a reply.
    if is_end {
        return Ok(());
    }
    connection.dump = Some(Dump { xid, of: DumpOf::Monitored { monitors: shown, next: None } });
    Ok(())
}
