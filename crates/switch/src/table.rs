//! One table: its flows in the order of lookup, their deadlines, and the changes since they were
//! last taken.

use crate::cookies::{CookieCounts, FlowsOfCookies};
use crate::eviction::EvictionOrder;
use crate::extension;
use crate::field::Field;
use crate::flow::{Counters, Flow, FlowMod, Rank, Removed, RemovedReason, Rule};
use crate::key::Key;
use crate::learners::{Learners, Lesson};
use fastpath_units::Time;
use std::collections::btree_map::Entry as MapEntry;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::ops::Bound;

/// Changed ranks that are kept; with more, [`Changes::Many`].
const CHANGES_MAX: usize = 1 << 20;
/// The most changes for which there is room in advance.
const LISTED_AGAIN: usize = 256;

/// A flow table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    flows: BTreeMap<Rank, FlowEntry>,
    /// The time to check each flow that has timeouts. A matching packet does not update this time,
    /// so it may be early.
    deadlines: BTreeSet<(Time, Rank)>,
    /// What the flows use of the switch's room.
    room: usize,
    /// The flows whose removal is reported.
    reported: usize,
    /// The flows that are clauses of conjunctions.
    clauses: usize,
    /// The flows that are not of a controller.
    hidden: usize,
    cookies: CookieCounts,
    learners: Learners,
    eviction: EvictionOrder,
    changes: Changes,
    /// Packets that were looked up here.
    pub(crate) lookups: u64,
    /// Packets that found a flow here.
    pub(crate) matched: u64,
}

/// The flows that were in a table before it was cleared. Dropping them takes long if they are many.
#[derive(Debug)]
pub struct ClearedFlows {
    _flows: BTreeMap<Rank, FlowEntry>,
    _deadlines: BTreeSet<(Time, Rank)>,
}

/// A flow and its entry in the deadlines.
#[derive(Clone, Debug)]
struct FlowEntry {
    flow: Flow,
    listed: Option<Time>,
}

/// The flows that were added, removed or got other instructions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Changes {
    /// These, in their order. A rank may occur more than once.
    Few(Vec<FlowChange>),
    /// Too many flows to list.
    Many,
}

/// A flow that was added, removed, or got other instructions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowChange {
    /// Its priority and match.
    pub rank: Rank,
    /// Its rule now; `None` if it was removed.
    pub rule: Option<Rule>,
}

impl Default for Changes {
    fn default() -> Changes {
        Changes::Few(Vec::new())
    }
}

impl Table {
    /// Returns the flows in the order of lookup: the first that matches wins.
    pub fn flows(&self) -> impl ExactSizeIterator<Item = (&Rank, &Flow)> {
        self.flows.iter().map(|(rank, entry)| (rank, &entry.flow))
    }

    /// Returns the flows from a place on, whether or not the table has a flow of this rank.
    pub(crate) fn flows_from<'a>(
        &'a self,
        start: Bound<&Rank>,
    ) -> impl Iterator<Item = (&'a Rank, &'a Flow)> + use<'a> {
        self.flows.range((start, Bound::Unbounded)).map(|(rank, entry)| (rank, &entry.flow))
    }

    /// Returns the flow of a rank.
    pub fn flow(&self, rank: &Rank) -> Option<&Flow> {
        self.flows.get(rank).map(|entry| &entry.flow)
    }

    /// Returns what its flows use of the switch's room.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// Returns the number of flows, without those that are hidden.
    pub fn len(&self) -> usize {
        self.flows.len() - self.hidden
    }

    /// Returns whether the table has no flows but those that are hidden.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many flows have each cookie, without those that are hidden.
    pub fn cookies(&self) -> &CookieCounts {
        &self.cookies
    }

    /// Returns the packets that were looked up, and those of them that matched a flow.
    pub fn hits(&self) -> (u64, u64) {
        (self.lookups, self.matched)
    }

    /// Returns the changes since the last call.
    pub fn take_changes(&mut self) -> Changes {
        // As many as this time may follow.
        let room = if let Changes::Few(list) = &self.changes { list.len().min(LISTED_AGAIN) } else { 0 };
        mem::replace(&mut self.changes, Changes::Few(Vec::with_capacity(room)))
    }

    /// Returns the earliest time at which a flow may expire; never later than the true one.
    pub fn next_at(&self) -> Option<Time> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Returns the flow for a packet, and its rank.
    pub(crate) fn find(&mut self, key: &Key) -> Option<(&Rank, &mut Flow)> {
        let rank = self.search(key).cloned()?;
        self.entry(&rank)
    }

    /// Returns the rank of the flow for a packet: the first that matches, unless clauses of higher
    /// priority match that together stand for another.
    fn search(&self, key: &Key) -> Option<&Rank> {
        let first = |key: &Key| {
            let mut flows = self.flows();
            flows.find(|(rank, flow)| rank.matching().matches(key) && !flow.instructions.is_clause())
        };
        let plain = first(key).map(|(rank, _)| rank);
        if self.clauses == 0 {
            return plain;
        }
        let matching = self.flows().filter(|(rank, _)| rank.matching().matches(key));
        let clauses = matching
            .flat_map(|(rank, flow)| flow.instructions.clauses().map(|clause| (rank.priority(), clause)));
        let mut satisfied = *key;
        let of_conjunction = |id: u32| {
            satisfied.put(Field::ConjId, id.into());
            first(&satisfied).map(|(rank, _)| rank)
        };
        extension::decide(clauses, plain.map(Rank::priority), of_conjunction).or(plain)
    }

    /// Returns the flow of a rank, with the table's own copy of the rank.
    pub(crate) fn entry(&mut self, rank: &Rank) -> Option<(&Rank, &mut Flow)> {
        self.flows.range_mut(rank..=rank).next().map(|(rank, entry)| (rank, &mut entry.flow))
    }

    /// Returns whether a flow of the same priority and another match overlaps.
    pub(crate) fn has_overlap(&self, rank: &Rank) -> bool {
        let same_priority = self.flows.keys().filter(|other| other.priority() == rank.priority());
        same_priority.into_iter().any(|other| other != rank && other.matching().overlaps(rank.matching()))
    }

    /// Adds the flow that `make` returns, given the flow of this rank if there is one, which it
    /// replaces. `Err` of `make` changes nothing.
    pub(crate) fn insert<E>(
        &mut self,
        rank: Rank,
        make: impl FnOnce(Option<&Flow>) -> Result<Flow, E>,
    ) -> Result<(), E> {
        // Finding the place of a flow is most of the work in a large table: it is done once.
        let mut flows = mem::take(&mut self.flows);
        let made = match flows.entry(rank) {
            MapEntry::Occupied(mut old) => make(Some(&old.get().flow)).map(|flow| {
                self.forget(old.key(), old.get());
                let entry = self.entered(old.key(), flow);
                old.insert(entry);
            }),
            MapEntry::Vacant(free) => make(None).map(|flow| {
                let entry = self.entered(free.key(), flow);
                free.insert(entry);
            }),
        };
        self.flows = flows;
        made
    }

    /// Counts a flow that is added.
    fn entered(&mut self, rank: &Rank, flow: Flow) -> FlowEntry {
        let listed = flow.deadline().map(|(at, _)| at);
        if let Some(at) = listed {
            self.deadlines.insert((at, rank.clone()));
        }
        self.changes.note(rank, Some(&flow));
        self.room += flow.room();
        self.reported += usize::from(flow.is_reported());
        self.clauses += usize::from(flow.instructions.is_clause());
        self.learners.add(&flow.instructions);
        if flow.is_hidden() {
            self.hidden += 1;
        } else {
            self.cookies.add(flow.cookie);
            self.eviction.add(rank, &flow, listed);
        }
        FlowEntry { flow, listed }
    }

    /// Stops counting a flow that goes.
    fn forget(&mut self, rank: &Rank, FlowEntry { flow, listed }: &FlowEntry) {
        if let Some(at) = *listed {
            self.deadlines.remove(&(at, rank.clone()));
        }
        if flow.is_hidden() {
            self.hidden -= 1;
        } else {
            self.cookies.remove(flow.cookie);
            self.eviction.remove(rank, flow, *listed);
        }
        self.room -= flow.room();
        self.reported -= usize::from(flow.is_reported());
        self.clauses -= usize::from(flow.instructions.is_clause());
        self.learners.remove(&flow.instructions);
    }

    /// Changes one flow in place. Its match, priority and timeouts stay.
    pub(crate) fn update(&mut self, rank: &Rank, change: impl FnOnce(&mut Flow)) {
        if let Some(FlowEntry { flow, .. }) = self.flows.get_mut(rank) {
            self.room -= flow.room();
            self.clauses -= usize::from(flow.instructions.is_clause());
            self.learners.remove(&flow.instructions);
            let cookie = flow.cookie;
            change(flow);
            if cookie != flow.cookie && !flow.is_hidden() {
                self.cookies.remove(cookie);
                self.cookies.add(flow.cookie);
            }
            self.learners.add(&flow.instructions);
            self.room += flow.room();
            self.clauses += usize::from(flow.instructions.is_clause());
            self.changes.note(rank, Some(flow));
        }
    }

    /// Starts the timeouts of a flow again. Returns false, and changes nothing, if there is no flow
    /// of
    /// this rank that is as requested.
    pub(crate) fn renew(&mut self, rank: &Rank, now: Time, request: &FlowMod) -> bool {
        let Some(FlowEntry { flow, .. }) = self.flows.get_mut(rank) else { return false };
        let timeouts = (flow.idle_timeout, flow.hard_timeout);
        let is_equal = timeouts == (request.idle_timeout, request.hard_timeout)
            && (flow.cookie, flow.flags) == (request.cookie, request.flags)
            && *flow.instructions == request.instructions;
        if is_equal {
            flow.renewed = flow.renewed.max(now);
            flow.last_used = flow.last_used.max(now);
        }
        is_equal
    }

    /// Lowers the timeouts of a flow, unless it was replaced; 0 leaves one.
    pub(crate) fn shorten(&mut self, (rank, serial): (&Rank, u64), idle: u16, hard: u16) {
        let Some(entry) = self.flows.get_mut(rank).filter(|entry| entry.flow.serial == serial) else {
            return;
        };
        let lower = |old: &mut u16, new: u16| {
            if new != 0 && (*old == 0 || *old > new) {
                *old = new;
            }
        };
        lower(&mut entry.flow.idle_timeout, idle);
        lower(&mut entry.flow.hard_timeout, hard);
        // Its entry in the deadlines may be early, but not late.
        let due = entry.flow.deadline().map(|(at, _)| at);
        if let Some(due) = due.filter(|due| entry.listed.is_none_or(|listed| *due < listed)) {
            self.eviction.remove(rank, &entry.flow, entry.listed);
            if let Some(at) = entry.listed.replace(due) {
                self.deadlines.remove(&(at, rank.clone()));
            }
            self.deadlines.insert((due, rank.clone()));
            self.eviction.add(rank, &entry.flow, entry.listed);
        }
    }

    pub(crate) fn remove(&mut self, rank: &Rank) -> Option<Flow> {
        let entry = self.flows.remove(rank)?;
        self.forget(rank, &entry);
        self.changes.note(rank, None);
        Some(entry.flow)
    }

    /// Returns whether the removal of no flow is reported.
    pub fn reports_none(&self) -> bool {
        self.reported == 0
    }

    /// Returns whether it evicts flows when it is full.
    pub fn evicts(&self) -> bool {
        self.eviction.is_on()
    }

    /// Begins or ends to evict flows when it is full.
    pub(crate) fn set_evicts(&mut self, evicts: bool) {
        if !evicts {
            self.eviction.end();
        } else if !self.evicts() {
            let flows = self.flows.iter().filter(|(_, entry)| !entry.flow.is_hidden());
            self.eviction.begin(flows.map(|(rank, entry)| (rank, &entry.flow, entry.listed)));
        }
    }

    /// Returns the flow that goes first to make room for one of this importance.
    pub(crate) fn evictable(&self, importance: u16) -> Option<&Rank> {
        self.eviction.first(importance)
    }

    /// Returns whether a flow teaches others that go with it.
    pub(crate) fn has_learners(&self) -> bool {
        !self.learners.is_empty()
    }

    /// Returns whether a flow teaches this.
    pub(crate) fn teaches(&self, lesson: Lesson) -> bool {
        self.learners.teach(lesson)
    }

    /// Takes what its flows do not teach any more.
    pub(crate) fn take_forgotten(&mut self) -> Vec<Lesson> {
        self.learners.take_forgotten()
    }

    /// Removes all flows without a report.
    pub(crate) fn clear(&mut self) -> ClearedFlows {
        let Table { flows, deadlines, room, reported, clauses, hidden, changes, eviction, cookies, .. } =
            self;
        eviction.clear();
        cookies.clear();
        (*room, *reported, *clauses, *hidden, *changes) = (0, 0, 0, 0, Changes::Many);
        ClearedFlows { _flows: mem::take(flows), _deadlines: mem::take(deadlines) }
    }

    /// Returns the flows whose deadline has passed by `now`, earliest first.
    pub(crate) fn due(&self, now: Time) -> impl Iterator<Item = &Rank> {
        self.deadlines.iter().take_while(move |(at, _)| *at <= now).map(|(_, rank)| rank)
    }

    pub(crate) fn credit(&mut self, rank: &Rank, serial: u64, counted: Counters, last_used: Time) {
        if let Some(entry) = self.flows.get_mut(rank).filter(|entry| entry.flow.serial == serial) {
            entry.flow.credit(counted, last_used);
        }
    }

    /// Removes the flows whose deadline has passed by `now`; looks at most at this many.
    pub(crate) fn expire(&mut self, table_id: u8, now: Time, most: &mut usize, removed: &mut Vec<Removed>) {
        while *most > 0
            && let Some((at, rank)) = self.deadlines.first().cloned().filter(|(at, _)| *at <= now)
        {
            *most -= 1;
            let Some(entry) = self.flows.get_mut(&rank) else {
                unreachable!("a deadline at {at} of a flow that was removed")
            };
            match entry.flow.deadline() {
                Some((due, reason)) if due <= now => {
                    removed.extend(self.take(table_id, &rank, reason, now));
                }
                // It was used since then: check it again at its new deadline.
                later => {
                    self.eviction.remove(&rank, &entry.flow, entry.listed);
                    entry.listed = later.map(|(due, _)| due);
                    self.eviction.add(&rank, &entry.flow, entry.listed);
                    self.deadlines.remove(&(at, rank.clone()));
                    self.deadlines.extend(later.map(|(due, _)| (due, rank)));
                }
            }
        }
    }

    /// Removes a flow and reports it.
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

    /// Removes all selected flows and reports them, in the order of lookup.
    pub(crate) fn take_all(
        &mut self,
        (table_id, reason, at): (u8, RemovedReason, Time),
        is_selected: impl Fn(&Rank, &Flow) -> bool,
    ) -> Vec<Removed> {
        let mut flows = mem::take(&mut self.flows);
        let gone = flows.extract_if(.., |rank, entry| is_selected(rank, &entry.flow));
        let removed = gone.map(|(rank, entry)| {
            self.forget(&rank, &entry);
            self.changes.note(&rank, None);
            Removed { table_id, rank, flow: entry.flow, reason, at }
        });
        let removed = removed.collect();
        self.flows = flows;
        removed
    }
}

impl FlowsOfCookies for Table {
    fn count(&self, cookie: u64) -> usize {
        self.cookies.of(cookie)
    }

    fn has(&self, rank: &Rank, cookie: u64) -> bool {
        let is_it =
            |flow: &Flow| flow.cookie == cookie && !flow.is_hidden() && !flow.instructions.is_clause();
        self.flow(rank).is_some_and(is_it)
    }
}

impl Changes {
    fn note(&mut self, rank: &Rank, flow: Option<&Flow>) {
        if let Changes::Few(changes) = self {
            if changes.len() == CHANGES_MAX {
                *self = Changes::Many;
            } else {
                let rule = flow.map(|flow| Rule::of((rank, flow)));
                changes.push(FlowChange { rank: rank.clone(), rule });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Action, FlowMod, Instructions, Limits, Match, Switch};
    use fastpath_units::{Duration, Time};

    #[test]
    fn a_flow_has_one_deadline_however_often_it_is_replaced_and_none_when_it_has_gone() {
        let mut switch = Switch::new(Limits::default());
        let rule = FlowMod::add(0, 1, Match::any(), Instructions::apply([Action::output(1)]));
        for second in 0..100 {
            let now = Time::ZERO + Duration::from_secs(second);
            switch.flow_mod(now, &FlowMod { idle_timeout: 60, ..rule.clone() }).unwrap();
        }
        let table = &switch.tables()[0];
        assert_eq!((table.deadlines.len(), table.room), (1, 2));
        assert_eq!(table.next_at(), Some(Time::ZERO + Duration::from_secs(99 + 60)));
        switch.flow_mod(Time::ZERO, &FlowMod::delete_all()).unwrap();
        assert_eq!((switch.tables()[0].deadlines.len(), switch.tables()[0].room), (0, 0));
    }

    #[test]
    fn a_flow_that_was_used_is_looked_at_again_and_goes_when_it_was_not() {
        let mut switch = Switch::new(Limits::default());
        let at = |second| Time::ZERO + Duration::from_secs(second);
        let rule = FlowMod { idle_timeout: 10, ..FlowMod::add(0, 1, Match::any(), Instructions::default()) };
        switch.flow_mod(at(0), &rule).unwrap();
        switch.set_port(1, crate::Port::up());
        crate::interp(&mut switch, at(7), 1, &[0; 60]);
        assert_eq!(switch.next_at(), Some(at(10)), "early");
        assert!(switch.expire(at(10)).is_empty());
        assert_eq!(switch.next_at(), Some(at(17)));
        assert_eq!(switch.expire(at(17)).len(), 1);
        assert_eq!(switch.next_at(), None);
    }
}
