//! One table: its flows in the order of lookup, their deadlines, and what changed since somebody last looked.

use crate::flow::{Counters, Flow, Rank, Removed, RemovedReason};
use crate::key::Key;
use fastpath_units::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::ops::Bound;

/// Changed ranks remembered; with more, [`Changes::Many`].
const CHANGES_MAX: usize = 4096;

/// A flow table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    flows: BTreeMap<Rank, Flow>,
    /// When to look at a flow again. Matching a packet does not move its flow's entry, so an entry may be early.
    deadlines: BTreeSet<(Time, Rank)>,
    changes: Changes,
    /// Packets that were looked up here.
    pub(crate) lookups: u64,
    /// Packets that found a flow here.
    pub(crate) matched: u64,
}

/// Which flows came, went or got other instructions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Changes {
    /// These.
    Few(BTreeSet<Rank>),
    /// Too many to say.
    Many,
}

impl Default for Changes {
    fn default() -> Changes {
        Changes::Few(BTreeSet::new())
    }
}

impl Table {
    /// The flows in the order of lookup: the first that matches is the one.
    pub fn flows(&self) -> impl ExactSizeIterator<Item = (&Rank, &Flow)> {
        self.flows.iter()
    }

    /// The flows after a place, whether or not a flow is there.
    pub(crate) fn flows_after<'a>(
        &'a self,
        after: Option<&'a Rank>,
    ) -> impl Iterator<Item = (&'a Rank, &'a Flow)> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.flows.range((start, Bound::Unbounded))
    }

    /// The flow of this match and priority.
    pub fn flow(&self, rank: &Rank) -> Option<&Flow> {
        self.flows.get(rank)
    }

    /// Number of flows.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether there are no flows.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Packets looked up, and those of them that found a flow.
    pub fn hits(&self) -> (u64, u64) {
        (self.lookups, self.matched)
    }

    /// What changed since this was last called.
    pub fn take_changes(&mut self) -> Changes {
        mem::take(&mut self.changes)
    }

    /// The earliest time at which a flow may have to go; never later than the true one.
    pub fn next_at(&self) -> Option<Time> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// The flow for a packet, and its rank.
    pub(crate) fn find(&mut self, key: &Key) -> Option<(&Rank, &mut Flow)> {
        self.flows.iter_mut().find(|(rank, _)| rank.matching().matches(key))
    }

    /// The flow of this match and priority, with its rank.
    pub(crate) fn entry(&mut self, rank: &Rank) -> Option<(&Rank, &mut Flow)> {
        self.flows.range_mut(rank..=rank).next()
    }

    /// Whether a flow of the same priority and another match overlaps.
    pub(crate) fn has_overlap(&self, rank: &Rank) -> bool {
        let same_priority = self.flows.keys().filter(|other| other.priority() == rank.priority());
        same_priority.into_iter().any(|other| other != rank && other.matching().overlaps(rank.matching()))
    }

    pub(crate) fn insert(&mut self, rank: Rank, flow: Flow) {
        if let Some((at, _)) = flow.deadline() {
            self.deadlines.insert((at, rank.clone()));
        }
        self.note(&rank);
        self.flows.insert(rank, flow);
    }

    /// Changes one flow in place; its match, priority and timeouts stay.
    pub(crate) fn update(&mut self, rank: &Rank, change: impl FnOnce(&mut Flow)) {
        if let Some(flow) = self.flows.get_mut(rank) {
            change(flow);
            self.note(rank);
        }
    }

    pub(crate) fn remove(&mut self, rank: &Rank) -> Option<Flow> {
        let flow = self.flows.remove(rank)?;
        self.note(rank);
        Some(flow)
    }

    pub(crate) fn credit(&mut self, rank: &Rank, serial: u64, counted: Counters, last_used: Time) {
        if let Some(flow) = self.flows.get_mut(rank).filter(|flow| flow.serial == serial) {
            flow.credit(counted, last_used);
        }
    }

    /// Takes out the flows whose time has come by `now`.
    pub(crate) fn expire(&mut self, table_id: u8, now: Time, removed: &mut Vec<Removed>) {
        while let Some((at, rank)) = self.deadlines.first().cloned().filter(|(at, _)| *at <= now) {
            self.deadlines.remove(&(at, rank.clone()));
            match self.flows.get(&rank).and_then(Flow::deadline) {
                Some((due, reason)) if due <= now => {
                    removed.extend(self.take(table_id, &rank, reason, now));
                }
                // It was used since, or is another flow of the same rank by now: look again then.
                Some((due, _)) => {
                    self.deadlines.insert((due, rank));
                }
                None => {}
            }
        }
    }

    /// Removes a flow and tells its story.
    pub(crate) fn take(
        &mut self,
        table_id: u8,
        rank: &Rank,
        reason: RemovedReason,
        at: Time,
    ) -> Option<Removed> {
        let flow = self.remove(rank)?;
        Some(Removed { table_id, rank: rank.clone(), flow, reason, at })
    }

    fn note(&mut self, rank: &Rank) {
        if let Changes::Few(ranks) = &mut self.changes {
            ranks.insert(rank.clone());
            if ranks.len() > CHANGES_MAX {
                self.changes = Changes::Many;
            }
        }
    }
}
