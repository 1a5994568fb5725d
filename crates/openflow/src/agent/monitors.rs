//! Flow monitors: controllers that are told of changes of flows (OpenFlow 1.4 §7.3.5.20).
//!
//! ```text
//!  change of flows ─▶ FlowEvent ─▶ AsyncMessages ─▶ each connection whose monitors select it
//! ```
//!
//! Flows that packets learn are not told until they go.

use super::changes::change_one;
use super::connection::{Connection, Dump, DumpOf};
use super::event::{Event, removed_reason};
use super::switch_state::SwitchState;
use crate::message::flow_update::monitor_flags as flags;
use crate::message::{Fault, FlowUpdate, FullUpdate, Message, MonitorRequest, Reply};
use fastpath_switch::flow::ALL_TABLES;
use fastpath_switch::{
    Flow, FlowCommand, FlowFilter, Instructions, Rank, Removed, RemovedReason, Switch, Version,
};
use fastpath_units::Time;
use std::collections::BTreeMap;

/// Most monitors of a connection.
const MONITORS_MAX: usize = 1024;

/// The monitors of a connection, by number.
#[derive(Debug, Default)]
pub(super) struct Monitors {
    by_id: BTreeMap<u32, Monitor>,
}

/// The flows that are monitored, and what is told of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Monitor {
    flags: u16,
    filter: FlowFilter,
}

/// Who changes flows: a connection, and the transaction id of its request.
pub(super) type Author = Option<(usize, u32)>;

/// A change of a flow.
#[derive(Clone, Debug)]
pub(super) struct FlowEvent {
    what: SeenChange,
    table_id: u8,
    rank: Rank,
    flow: Flow,
    author: Author,
}

/// What has become of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SeenChange {
    Added,
    Removed(RemovedReason),
    Modified,
}

/// What a connection is told of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Telling {
    /// All, with or without its instructions.
    Full(WithInstructions),
    /// That its own request is done.
    Abbreviated,
}

/// Whether instructions are told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WithInstructions {
    Yes,
    No,
}

impl Monitor {
    /// Returns whether it selects a flow.
    fn selects(&self, table_id: u8, rank: &Rank, flow: &Flow) -> bool {
        [ALL_TABLES, table_id].contains(&self.filter.table_id)
            && self.filter.selects(flow)
            && rank.matching().is_within(&self.filter.matching)
    }

    fn instructions(&self) -> WithInstructions {
        if self.flags & flags::INSTRUCTIONS == 0 { WithInstructions::No } else { WithInstructions::Yes }
    }
}

impl Monitors {
    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Returns what a connection with these monitors is told of an event; `None` for nothing.
    pub(super) fn telling(&self, own: usize, event: &FlowEvent) -> Option<Telling> {
        let bit = match event.what {
            SeenChange::Added => flags::ADD,
            SeenChange::Removed(_) => flags::REMOVED,
            SeenChange::Modified => flags::MODIFY,
        };
        let is_own = event.author.is_some_and(|(author, _)| author == own);
        let is_told = |monitor: &&Monitor| {
            monitor.flags & bit != 0
                && (is_own || monitor.flags & flags::ONLY_OWN == 0)
                && monitor.selects(event.table_id, &event.rank, &event.flow)
        };
        let (mut told, mut is_full, mut instructions) = (false, !is_own, WithInstructions::No);
        for monitor in self.by_id.values().filter(is_told) {
            told = true;
            is_full |= monitor.flags & flags::NO_ABBREV != 0;
            if monitor.instructions() == WithInstructions::Yes {
                instructions = WithInstructions::Yes;
            }
        }
        told.then_some(if is_full { Telling::Full(instructions) } else { Telling::Abbreviated })
    }
}

/// Adds, changes and deletes monitors. The flows that are there already follow.
pub(super) fn answer(
    state: &mut SwitchState,
    connection: &mut Connection,
    xid: u32,
    requests: Vec<MonitorRequest>,
) -> Result<(), Fault> {
    let tables = state.control.peek(|switch| switch.limits().tables);
    let mut shown = Vec::new();
    for MonitorRequest { id, command, flags, filter } in requests {
        let known = &mut connection.monitors.by_id;
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
    state.are_flows_monitored |= !connection.monitors.is_empty();
    connection.dump = Some(Dump { xid, of: DumpOf::Monitored { monitors: shown, next: None } });
    Ok(())
}

/// Returns the reply that shows a flow which was there before its monitors, if one selects it.
pub(super) fn initial(monitors: &[Monitor], table_id: u8, rank: &Rank, flow: &Flow) -> Option<Reply> {
    let mut selecting = monitors.iter().filter(|monitor| monitor.selects(table_id, rank, flow)).peekable();
    selecting.peek()?;
    let has_instructions = selecting.any(|monitor| monitor.instructions() == WithInstructions::Yes);
    let instructions = if has_instructions { WithInstructions::Yes } else { WithInstructions::No };
    let update = full((0, 0), table_id, rank, flow, instructions);
    Some(Reply::FlowMonitor(vec![FlowUpdate::Full(update)]))
}

/// Returns an update with these numbers of event and reason.
fn full(
    (event, reason): (u16, u8),
    table_id: u8,
    rank: &Rank,
    flow: &Flow,
    instructions: WithInstructions,
) -> FullUpdate {
    FullUpdate {
        event,
        table_id,
        reason,
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        priority: rank.priority(),
        cookie: flow.cookie,
        matching: rank.matching().clone(),
        instructions: match instructions {
            WithInstructions::Yes => (*flow.instructions).clone(),
            WithInstructions::No => Instructions::default(),
        },
    }
}

/// Returns the message that tells of an event.
pub(super) fn message(version: Version, event: &FlowEvent, telling: Telling) -> Message {
    let update = match (telling, event.author) {
        (Telling::Abbreviated, Some((_, xid))) => FlowUpdate::Abbreviated(xid),
        (Telling::Abbreviated, None) | (Telling::Full(_), _) => {
            let (numbers, is_gone) = match event.what {
                SeenChange::Added => ((1, 0), false),
                SeenChange::Removed(reason) => ((2, removed_reason(version, reason)), true),
                SeenChange::Modified => ((3, 0), false),
            };
            let instructions = match telling {
                Telling::Full(instructions) if !is_gone => instructions,
                _ => WithInstructions::No,
            };
            FlowUpdate::Full(full(numbers, event.table_id, &event.rank, &event.flow, instructions))
        }
    };
    Message::MultipartReply { flags: 0, reply: Reply::FlowMonitor(vec![update]) }
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
    events.extend(removed.iter().map(|one| of_removed(one, author)));
    let told = |what, table_id: u8, rank: &Rank| {
        let flow = switch.tables().get(usize::from(table_id))?.flow(rank)?.clone();
        let event = FlowEvent { what, table_id, rank: rank.clone(), flow, author };
        Some(Event::FlowChange(Box::new(event)))
    };
    if let Message::FlowMod { request, .. } = request
        && request.command == FlowCommand::Add
    {
        let rank = Rank::new(request.priority, request.matching.clone());
        events.extend(told(SeenChange::Added, request.table_id, &rank));
    }
    for (table_id, rank, old) in before {
        let after = switch.tables().get(usize::from(table_id)).and_then(|table| table.flow(&rank));
        let is_changed =
            after.is_some_and(|flow| flow.instructions != old.instructions || flow.cookie != old.cookie);
        if is_changed {
            events.extend(told(SeenChange::Modified, table_id, &rank));
        }
    }
    Ok(removed)
}

/// Returns the event of a flow that has gone.
pub(super) fn of_removed(removed: &Removed, author: Author) -> Event {
    Event::FlowChange(Box::new(FlowEvent {
        what: SeenChange::Removed(removed.reason),
        table_id: removed.table_id,
        rank: removed.rank.clone(),
        flow: removed.flow.clone(),
        author,
    }))
}
