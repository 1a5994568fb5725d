//! What flow monitors select, and what they tell (OpenFlow 1.4 §7.3.5.20). `monitors.rs` adds
//! monitors and notes changes.
//!
//! Flows that packets learn are not told until they go.

use crate::message::flow_update::monitor_flags as flags;
use crate::message::{FlowUpdate, FullUpdate, Message, Reply};
use fastpath_switch::flow::ALL_TABLES;
use fastpath_switch::{Flow, FlowFilter, Instructions, Rank, RemovedReason, Version};
use std::collections::BTreeMap;

/// The monitors of a connection, by number.
#[derive(Debug, Default)]
pub(super) struct Monitors {
    pub(super) by_id: BTreeMap<u32, Monitor>,
}

/// The flows that are monitored, and what is told of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Monitor {
    pub(super) flags: u16,
    pub(super) filter: FlowFilter,
}

/// Who changes flows: a connection, and the transaction id of its request.
pub(super) type Author = Option<(usize, u32)>;

/// A change of a flow.
#[derive(Clone, Debug)]
pub(super) struct FlowEvent {
    pub(super) what: FlowFate,
    pub(super) table_id: u8,
    pub(super) rank: Rank,
    pub(super) flow: Flow,
    pub(super) author: Author,
}

/// What has become of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FlowFate {
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
            FlowFate::Added => flags::ADD,
            FlowFate::Removed(_) => flags::REMOVED,
            FlowFate::Modified => flags::MODIFY,
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
                FlowFate::Added => ((1, 0), false),
                FlowFate::Removed(reason) => ((2, removed_reason(version, reason)), true),
                FlowFate::Modified => ((3, 0), false),
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

/// Returns the number of a reason for which a flow goes (OFPRR_). Before OpenFlow 1.4 a meter that
/// goes and a full table have none: the flow was deleted.
pub(super) fn removed_reason(version: Version, reason: RemovedReason) -> u8 {
    match reason {
        RemovedReason::MeterDelete | RemovedReason::Eviction if version < Version::V14 => {
            RemovedReason::Delete as u8
        }
        other => other as u8,
    }
}
