//! What flow monitors select, and what they tell (OpenFlow 1.4 §7.3.5.20). `monitors.rs` adds
//! monitors and notes changes.
//!
//! Flows that packets learn are not told until they go.

use crate::message::flow_update::monitor_flags as flags;
use crate::message::{FlowUpdate, FullUpdate, Reply};
use fastpath_switch::flow::ALL_TABLES;
use fastpath_switch::observe::{FlowEvent, FlowFate};
use fastpath_switch::{Flow, FlowFilter, Instructions, Rank, Version};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The monitors of a connection, by number.
#[derive(Debug, Default)]
pub(super) struct Monitors {
    pub(super) by_id: BTreeMap<u32, Monitor>,
    /// The last changes of which the connection was told that its own request is done.
    abbreviated: Option<u64>,
    /// While the controller does not read: the flows that have been added or modified since.
    pub(super) held: Option<BTreeMap<(u8, Rank), FlowFate>>,
}

/// The flows that are monitored, and what is told of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Monitor {
    pub(super) flags: u16,
    pub(super) filter: FlowFilter,
}

/// Who changes flows: a connection, and the transaction id of its request.
pub(super) type Author = Option<(usize, u32)>;

/// The changes of flows of one request, or of one timeout.
#[derive(Debug)]
pub(super) struct FlowChanges {
    /// Tells them from others.
    pub(super) number: u64,
    pub(super) author: Author,
    pub(super) flows: Vec<FlowEvent>,
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

impl FlowChanges {
    /// Returns whether a connection made them.
    fn are_of(&self, own: usize) -> bool {
        self.author.is_some_and(|(author, _)| author == own)
    }
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

    /// Returns what a connection with these monitors is told of each of these changes; `None` for
    /// nothing. That its own request is done it is told once.
    pub(super) fn tellings(&self, own: usize, changes: &FlowChanges) -> Vec<Option<Telling>> {
        let mut is_abbreviated = self.abbreviated == Some(changes.number);
        let is_own = changes.are_of(own);
        let tell = |event: &FlowEvent| {
            let (is_full, instructions) = self.told(is_own, event)?;
            let telling = if is_full { Telling::Full(instructions) } else { Telling::Abbreviated };
            let is_repeated = telling == Telling::Abbreviated && std::mem::replace(&mut is_abbreviated, true);
            (!is_repeated).then_some(telling)
        };
        changes.flows.iter().map(tell).collect()
    }

    /// Notes that the connection has been told of these changes so.
    pub(super) fn note(&mut self, changes: &FlowChanges, tellings: &[Option<Telling>]) {
        if tellings.contains(&Some(Telling::Abbreviated)) {
            self.abbreviated = Some(changes.number);
        }
    }

    /// Holds changes back, because the controller does not read. Returns what is told in spite of
    /// that: of flows that were there when it began, that they go.
    pub(super) fn hold(&mut self, own: usize, changes: &FlowChanges) -> Vec<Option<Telling>> {
        let is_own = changes.are_of(own);
        let full = |event| self.told(is_own, event).map(|(_, what)| Telling::Full(what));
        let tellings: Vec<_> = changes.flows.iter().map(full).collect();
        if self.held.is_none() && tellings.iter().all(Option::is_none) {
            return tellings;
        }
        let held = self.held.get_or_insert_default();
        let hold = |(event, telling): (&FlowEvent, Option<Telling>)| {
            let key = (event.table_id, event.rank.clone());
            match event.what {
                FlowFate::Removed(_) => telling.filter(|_| held.remove(&key) != Some(FlowFate::Added)),
                FlowFate::Added | FlowFate::Modified => {
                    let is_new = event.what == FlowFate::Added && event.before.is_none();
                    let what = if is_new { FlowFate::Added } else { FlowFate::Modified };
                    telling.and_then(|_| {
                        held.entry(key).or_insert(what);
                        None
                    })
                }
            }
        };
        changes.flows.iter().zip(tellings).map(hold).collect()
    }

    /// Returns what a connection is told of each of the flows that were held back.
    pub(super) fn after_hold(&self, changes: &FlowChanges) -> Vec<Option<Telling>> {
        let full = |event| self.told(true, event).map(|(_, what)| Telling::Full(what));
        changes.flows.iter().map(full).collect()
    }

    /// Returns whether an event is told in full, and what of it; `None` if it is not told.
    fn told(&self, is_own: bool, event: &FlowEvent) -> Option<(bool, WithInstructions)> {
        let bit = match event.what {
            FlowFate::Added => flags::ADD,
            FlowFate::Removed(_) => flags::REMOVED,
            FlowFate::Modified => flags::MODIFY,
        };
        let is_told = |monitor: &&Monitor| {
            monitor.flags & bit != 0
                && (is_own || monitor.flags & flags::ONLY_OWN == 0)
                && (monitor.selects(event.table_id, &event.rank, &event.flow)
                    || event.before.as_ref().is_some_and(|before| {
                        let flow = Flow { instructions: Arc::clone(before), ..event.flow.clone() };
                        monitor.selects(event.table_id, &event.rank, &flow)
                    }))
        };
        let (mut told, mut is_full, mut instructions) = (false, !is_own, WithInstructions::No);
        for monitor in self.by_id.values().filter(is_told) {
            told = true;
            is_full |= monitor.flags & flags::NO_ABBREV != 0;
            if monitor.instructions() == WithInstructions::Yes {
                instructions = WithInstructions::Yes;
            }
        }
        told.then_some((is_full, instructions))
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

/// Returns the update that tells of an event.
pub(super) fn update(version: Version, author: Author, event: &FlowEvent, telling: Telling) -> FlowUpdate {
    let instructions = match (telling, author) {
        (Telling::Abbreviated, Some((_, xid))) => return FlowUpdate::Abbreviated(xid),
        (Telling::Full(instructions), _) => instructions,
        (Telling::Abbreviated, None) => WithInstructions::No,
    };
    let numbers = match event.what {
        FlowFate::Added => (1, 0),
        FlowFate::Removed(reason) => (2, reason.number_in(version)),
        FlowFate::Modified => (3, 0),
    };
    FlowUpdate::Full(full(numbers, event.table_id, &event.rank, &event.flow, instructions))
}
