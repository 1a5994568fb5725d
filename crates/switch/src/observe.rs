//! What requests do to flows, for those that monitor them (OpenFlow 1.4 §7.3.5.20).

use crate::error::Refusal;
use crate::flow::{ALL_TABLES, Flow, FlowCommand, FlowMod, Instructions, Rank, Removed, RemovedReason};
use crate::switch::Switch;
use fastpath_units::Time;
use std::sync::Arc;

/// A change of a flow.
#[derive(Clone, Debug)]
pub struct FlowEvent {
    /// What has become of it.
    pub what: FlowFate,
    /// Its table.
    pub table_id: u8,
    /// Its priority and match.
    pub rank: Rank,
    /// The flow after the change, or as it was when it went.
    pub flow: Flow,
    /// Its instructions before, if it was there.
    pub before: Option<Arc<Instructions>>,
}

/// What has become of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowFate {
    /// It was added, perhaps in the place of another.
    Added,
    /// It is gone.
    Removed(RemovedReason),
    /// Its instructions or its cookie are others.
    Modified,
}

impl FlowEvent {
    /// Returns the event of a flow that has gone.
    pub fn of_removed(removed: &Removed) -> FlowEvent {
        let Removed { table_id, rank, flow, reason, .. } = removed.clone();
        FlowEvent { what: FlowFate::Removed(reason), table_id, rank, flow, before: None }
    }

    /// Returns about how much memory it takes. What several share counts for each.
    pub fn bytes(&self) -> usize {
        let instructions = [Some(&self.flow.instructions), self.before.as_ref()];
        let instructions = instructions.into_iter().flatten().map(|one| one.bytes()).sum::<usize>();
        size_of::<FlowEvent>() + size_of_val(self.rank.matching().terms()) + instructions
    }
}

impl Switch {
    /// Changes flows as [`Switch::flow_mod`] does, and adds what becomes of each to `events`.
    ///
    /// # Errors
    /// The request is refused, and nothing has changed.
    pub fn flow_mod_observed(
        &mut self,
        now: Time,
        request: &FlowMod,
        events: &mut Vec<FlowEvent>,
    ) -> Result<Vec<Removed>, Refusal> {
        let modified = self.modified_by(request);
        let rank = Rank::new(request.priority, request.matching.clone());
        let table_id = if request.table_id == ALL_TABLES { 0 } else { request.table_id };
        let replaced = self.flow(table_id, &rank);
        let removed = self.flow_mod(now, request)?;
        events.extend(removed.iter().map(FlowEvent::of_removed));
        // A modification of no flow may add one (OpenFlow 1.0).
        let is_added = match request.command {
            FlowCommand::Add => true,
            FlowCommand::Modify | FlowCommand::ModifyStrict => modified.is_empty() && replaced.is_none(),
            FlowCommand::Delete | FlowCommand::DeleteStrict => false,
        };
        if is_added && let Some(flow) = self.flow(table_id, &rank) {
            let before = replaced.map(|old| old.instructions);
            events.push(FlowEvent { what: FlowFate::Added, table_id, rank, flow, before });
        }
        for (table_id, rank, old) in modified {
            let Some(flow) = self.flow(table_id, &rank) else { continue };
            if flow.instructions != old.instructions || flow.cookie != old.cookie {
                let (what, before) = (FlowFate::Modified, Some(old.instructions));
                events.push(FlowEvent { what, table_id, rank, flow, before });
            }
        }
        Ok(removed)
    }

    fn flow(&self, table_id: u8, rank: &Rank) -> Option<Flow> {
        self.tables().get(usize::from(table_id))?.flow(rank).cloned()
    }

    /// Returns the flows that a modification would change, as they are; none for other requests.
    fn modified_by(&self, request: &FlowMod) -> Vec<(u8, Rank, Flow)> {
        if !matches!(request.command, FlowCommand::Modify | FlowCommand::ModifyStrict) {
            return Vec::new();
        }
        let known = |(table_id, rank): (u8, Rank)| {
            let flow = self.flow(table_id, &rank)?;
            Some((table_id, rank, flow))
        };
        self.selected_by(request).into_iter().filter_map(known).collect()
    }
}
