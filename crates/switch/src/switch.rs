//! A switch: its tables, groups, meters and ports, and the requests that change them.
//!
//! Nothing here executes packets (`interp.rs` does). A request is accepted whole or refused whole.
//!
//! Read first: OpenFlow 1.3.5 §6.4 (flows), §6.5 (groups), §6.6 (meters).

mod buckets;
mod groups;

use crate::bridging::Bridging;
use crate::check::{self, ActionsOf, Targets};
use crate::connections::Connections;
use crate::flow::{
    ALL_TABLES, Counters, Flow, FlowCommand, FlowFilter, FlowMod, Rank, Removed, RemovedReason, flags,
};
use crate::group::{Group, GroupIdentity};
use crate::known_instructions::KnownInstructions;
use crate::learners::Lesson;
use crate::limits::Limits;
use crate::meter::{self, BandKind, Meter, MeterCommand, MeterMod};
use crate::normal::Normal;
use crate::outcome::{Learned, LearnedChange, has_room_for};
use crate::port::{self, Port, PortCounters};
use crate::table::{ClearedFlows, Table};
use crate::version::Version;
use crate::{Action, Refusal};
use fastpath_units::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, RangeInclusive};
use std::sync::Arc;

/// An OpenFlow switch.
#[derive(Clone, Debug)]
pub struct Switch {
    limits: Limits,
    tables: Vec<Table>,
    groups: BTreeMap<u32, Group>,
    meters: BTreeMap<u32, Meter>,
    ports: BTreeMap<u32, Port>,
    normal: Normal,
    known: KnownInstructions,
    connections: Connections,
    bridging: Arc<Bridging>,
    serial: u64,
    generation: u64,
    /// What groups use of the room.
    group_room: usize,
    /// At least what flows and groups use of the room: the sum over all tables is made when this
    /// exceeds the limit only.
    room_bound: usize,
}

impl Switch {
    /// Returns a switch without flows, groups, meters and ports.
    ///
    /// # Panics
    /// If `limits.tables` is 0 or 255.
    pub fn new(limits: Limits) -> Switch {
        assert!((1..ALL_TABLES).contains(&limits.tables), "{} tables; 1 to 254 are possible", limits.tables);
        Switch {
            limits,
            tables: vec![Table::default(); limits.tables.into()],
            groups: BTreeMap::new(),
            meters: BTreeMap::new(),
            ports: BTreeMap::new(),
            normal: Normal::default(),
            known: KnownInstructions::default(),
            connections: Connections::new(limits.connections),
            bridging: Arc::default(),
            serial: 0,
            generation: 0,
            group_room: 0,
            room_bound: 0,
        }
    }

    /// Returns the limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns a number that grows with every change of flows, groups, meters and ports. A result
    /// derived from a switch of a smaller number is out of date.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the tables, by number.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Returns a table.
    ///
    /// # Panics
    /// If the switch has no table of this number.
    pub fn table_mut(&mut self, id: u8) -> &mut Table {
        &mut self.tables[usize::from(id)]
    }

    /// Returns a port.
    pub fn port(&self, number: u32) -> Option<&Port> {
        self.ports.get(&number)
    }

    /// Returns the ports, by number.
    pub fn ports(&self) -> impl Iterator<Item = (u32, &Port)> {
        self.ports.iter().map(|(number, port)| (*number, port))
    }

    /// Adds a port or replaces it; its counters are those of `port`.
    pub fn set_port(&mut self, number: u32, port: Port) {
        self.ports.insert(number, port);
        self.generation += 1;
    }

    /// Removes a port, with its counters. Flows and groups that send to it drop.
    pub fn remove_port(&mut self, number: u32) -> Option<Port> {
        let removed = self.ports.remove(&number);
        self.generation += u64::from(removed.is_some());
        removed
    }

    /// Changes the configuration bits of `mask` (OFPT_PORT_MOD).
    ///
    /// The port does not exist.
    pub fn port_mod(&mut self, number: u32, config: u32, mask: u32) -> Result<(), Refusal> {
        let port = self.ports.get_mut(&number).ok_or(Refusal::PortUnknown(number))?;
        port.config = port.config & !mask | config & mask;
        self.generation += 1;
        Ok(())
    }

    /// Returns a port for counting.
    pub fn port_mut(&mut self, number: u32) -> Option<&mut Port> {
        self.ports.get_mut(&number)
    }

    /// Returns the addresses learned for outputs to NORMAL.
    pub fn normal(&self) -> &Normal {
        &self.normal
    }

    /// Returns the connections that actions track.
    pub fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Returns the VLANs of ports, and the mirrors.
    pub fn bridging(&self) -> &Arc<Bridging> {
        &self.bridging
    }

    /// Sets the VLANs of ports, and the mirrors. If the VLANs change, all learned addresses are
    /// forgotten: they may be behind ports that do not carry their VLAN any more.
    pub fn set_bridging(&mut self, bridging: Bridging) {
        let (old, new) = (&self.bridging, &bridging);
        if (&old.vlans, &old.flood_vlans) != (&new.vlans, &new.flood_vlans) {
            self.normal.forget();
        }
        self.bridging = Arc::new(bridging);
        self.generation += 1;
    }

    /// Returns a group.
    pub fn group(&self, id: u32) -> Option<&Group> {
        self.groups.get(&id)
    }

    /// Returns the groups, by number.
    pub fn groups(&self) -> impl Iterator<Item = (u32, &Group)> {
        self.groups.iter().map(|(id, group)| (*id, group))
    }

    fn targets(&self) -> Targets<'_> {
        Targets { limits: &self.limits, groups: &self.groups, meters: &self.meters }
    }

    /// Returns a group for counting.
    pub(crate) fn group_mut(&mut self, id: u32) -> Option<&mut Group> {
        self.groups.get_mut(&id)
    }

    /// Returns a meter.
    pub fn meter(&self, id: u32) -> Option<&Meter> {
        self.meters.get(&id)
    }

    /// Returns the meters, by number.
    pub fn meters(&self) -> impl Iterator<Item = (u32, &Meter)> {
        self.meters.iter().map(|(id, meter)| (*id, meter))
    }

    /// Returns a meter for metering packets.
    pub fn meter_mut(&mut self, id: u32) -> Option<&mut Meter> {
        self.meters.get_mut(&id)
    }

    /// Returns the number of flows and buckets that use a group (`ref_count` of its statistics).
    pub fn group_references(&self, id: u32) -> usize {
        let flows = self.tables.iter().flat_map(Table::flows).filter(|(_, flow)| flow.uses_group(id)).count();
        let buckets = self.groups.values().flat_map(|group| group.buckets.iter());
        flows + buckets.filter(|bucket| bucket.chained().any(|other| other == id)).count()
    }

    /// Returns the number of flows that use a meter (`flow_count` of its statistics).
    pub fn meter_references(&self, id: u32) -> usize {
        let flows = self.tables.iter().flat_map(Table::flows);
        flows.filter(|(_, flow)| flow.instructions.uses_meter(id)).count()
    }

    /// Returns the flows that a filter selects, in the order of tables and lookup.
    ///
    /// # Errors
    /// The table does not exist.
    pub fn flows<'a>(
        &'a self,
        filter: &'a FlowFilter,
    ) -> Result<impl Iterator<Item = (u8, &'a Rank, &'a Flow)>, Refusal> {
        let id = filter.table_id;
        if id != ALL_TABLES && id >= self.limits.tables {
            return Err(Refusal::RequestBadTable(id));
        }
        let tables = (0..self.limits.tables).filter(move |table| id == ALL_TABLES || *table == id);
        let flows = tables.flat_map(|table| {
            self.tables[usize::from(table)].flows().map(move |(rank, flow)| (table, rank, flow))
        });
        Ok(flows
            .filter(|(_, rank, flow)| filter.selects(flow) && rank.matching().is_within(&filter.matching)))
    }

    /// Returns the flows of all tables from a place in a table on, without a filter: for reading
    /// many flows in pieces.
    pub fn flows_from<'a>(
        &'a self,
        table_id: u8,
        start: Bound<&Rank>,
    ) -> impl Iterator<Item = (u8, &'a Rank, &'a Flow)> + use<'a> {
        let first = self.tables.get(usize::from(table_id)).map(|table| table.flows_from(start));
        let first = first.into_iter().flatten().map(move |(rank, flow)| (table_id, rank, flow));
        let rest = (table_id.saturating_add(1)..self.limits.tables)
            .flat_map(|id| self.tables[usize::from(id)].flows().map(move |(rank, flow)| (id, rank, flow)));
        first.chain(rest)
    }

    /// Returns how many flows and buckets use each group that is in use.
    pub fn all_group_references(&self) -> BTreeMap<u32, usize> {
        let mut counts = BTreeMap::new();
        let flows = self.tables.iter().flat_map(Table::flows);
        for (_, flow) in flows {
            // As in `group_references`, a flow that names a group twice counts once.
            let used = flow.instructions.actions().flat_map(Action::groups);
            used.collect::<BTreeSet<_>>().into_iter().for_each(|id| *counts.entry(id).or_default() += 1);
        }
        for bucket in self.groups.values().flat_map(|group| group.buckets.iter()) {
            let used: BTreeSet<u32> = bucket.chained().collect();
            used.into_iter().for_each(|id| *counts.entry(id).or_default() += 1);
        }
        counts
    }

    /// Returns how many flows use each meter that is in use.
    pub fn all_meter_references(&self) -> BTreeMap<u32, usize> {
        let mut counts = BTreeMap::new();
        let flows = self.tables.iter().flat_map(Table::flows);
        let used = flows.flat_map(|(_, flow)| flow.instructions.meters());
        used.for_each(|id| *counts.entry(id).or_default() += 1);
        counts
    }

    /// Checks a request to change flows, without what depends on the flows of the table.
    ///
    /// # Errors
    /// The request would be refused.
    pub fn check_flow_mod(&self, request: &FlowMod) -> Result<(), Refusal> {
        let FlowMod { command, table_id, matching, instructions, .. } = request;
        let is_delete = matches!(command, FlowCommand::Delete | FlowCommand::DeleteStrict);
        let may_name_all = is_delete || request.version == Version::V10 && *command != FlowCommand::Add;
        if *table_id >= self.limits.tables && !(may_name_all && *table_id == ALL_TABLES) {
            return Err(Refusal::FlowBadTable(*table_id));
        }
        if request.flags & !flags::ALL != 0 {
            return Err(Refusal::FlowBadFlags(request.flags));
        }
        if !is_delete {
            let owner = match request.version {
                Version::V10 => ActionsOf::FlowOf10,
                _ => ActionsOf::Flow(matching),
            };
            check::instructions(&self.targets(), *table_id, owner, instructions)?;
        }
        Ok(())
    }

    /// Changes flows (OFPT_FLOW_MOD). Returns the flows that were removed.
    ///
    /// # Errors
    /// The request is refused, and nothing has changed.
    pub fn flow_mod(&mut self, now: Time, request: &FlowMod) -> Result<Vec<Removed>, Refusal> {
        self.check_flow_mod(request)?;
        self.generation += 1;
        let mut removed = Vec::new();
        match request.command {
            FlowCommand::Add => removed.extend(self.add_or_evict(now, request)?),
            FlowCommand::Modify | FlowCommand::ModifyStrict => self.modify_flows(now, request)?,
            FlowCommand::Delete | FlowCommand::DeleteStrict => removed = self.delete_flows(now, request),
        }
        let tables = match request.table_id {
            ALL_TABLES => 0..=u8::MAX,
            one => one..=one,
        };
        removed.extend(self.forget(now, tables));
        Ok(removed)
    }

    /// Removes the flows of these tables and ranks that exist, as a deletion of each would.
    pub fn delete(&mut self, now: Time, flows: &[(u8, Rank)]) -> Vec<Removed> {
        self.generation += 1;
        let take = |(id, rank): &(u8, Rank)| {
            self.tables.get_mut(usize::from(*id))?.take(*id, rank, RemovedReason::Delete, now)
        };
        let mut removed = Vec::with_capacity(flows.len());
        removed.extend(flows.iter().filter_map(take));
        removed.extend(self.forget(now, 0..=u8::MAX));
        removed
    }

    /// Removes the flows of which the last that taught them has gone from one of these tables.
    fn forget(&mut self, now: Time, tables: RangeInclusive<u8>) -> Vec<Removed> {
        let mut removed = Vec::new();
        let mut open: Vec<usize> = tables.map(usize::from).take_while(|id| *id < self.tables.len()).collect();
        // Flows only go, so this ends.
        while let Some(id) = open.pop() {
            for lesson in self.tables[id].take_forgotten() {
                let Lesson { table, cookie } = lesson;
                if self.tables.iter().any(|table| table.teaches(lesson)) {
                    continue;
                }
                let Some(learned) = self.tables.get_mut(usize::from(table)) else { continue };
                let is_learned = |_: &Rank, flow: &Flow| flow.cookie == cookie && !flow.is_hidden();
                removed.extend(learned.take_all((table, RemovedReason::Delete, now), is_learned));
                open.push(table.into());
            }
        }
        removed
    }

    /// Returns whether other flows may go with a flow that goes (`delete_learned`).
    pub fn has_learners(&self) -> bool {
        self.tables.iter().any(Table::has_learners)
    }

    /// Empties the tables whose flows a deletion selects all, if the removal of none is to be
    /// reported. The time this takes does not grow with the number of flows; that of dropping the
    /// result does. Other flows that the deletion selects stay.
    pub fn clear(&mut self, request: &FlowMod) -> Vec<ClearedFlows> {
        let selects_all = request.command == FlowCommand::Delete && FlowFilter::of(request).selects_all();
        let tables =
            (0..).zip(&mut self.tables).filter(|(id, _)| [*id, ALL_TABLES].contains(&request.table_id));
        let cleared: Vec<_> = tables
            .filter(|(_, table)| {
                selects_all && !table.is_empty() && table.reports_none() && !table.has_learners()
            })
            .map(|(_, table)| table.clear())
            .collect();
        if !cleared.is_empty() {
            self.known.clear();
            self.generation += 1;
        }
        cleared
    }

    /// Adds packets counted elsewhere, the last of them at `last_used`, to the flow with this
    /// serial number. They are lost if the flow was removed.
    pub fn credit(&mut self, table_id: u8, rank: &Rank, serial: u64, counted: Counters, last_used: Time) {
        if let Some(table) = self.tables.get_mut(usize::from(table_id)) {
            table.credit(rank, serial, counted, last_used);
        }
    }

    /// Adds packets that were looked up elsewhere, and those of them that matched a flow.
    pub fn credit_hits(&mut self, table_id: u8, lookups: u64, matched: u64) {
        if let Some(table) = self.tables.get_mut(usize::from(table_id)) {
            table.lookups += lookups;
            table.matched += matched;
        }
    }

    /// Adds counts of a port made elsewhere. They are lost if there is no such port.
    pub fn credit_port(&mut self, number: u32, passed: &PortCounters) {
        if let Some(port) = self.ports.get_mut(&number) {
            port.counters += *passed;
        }
    }

    /// Adds counts of a group and of each of its buckets, made elsewhere while it had this
    /// identity. They are lost if the group was removed, as those of a bucket that was replaced.
    pub fn credit_group(&mut self, id: u32, of: &GroupIdentity, counted: Counters, buckets: &[Counters]) {
        let Some(group) = self.groups.get_mut(&id).filter(|group| group.identity.group == of.group) else {
            return;
        };
        group.counters += counted;
        for (place, (serial, more)) in of.buckets.iter().zip(buckets).enumerate() {
            // Mostly the buckets are the same.
            let now = &group.identity.buckets;
            let is_same = now.get(place) == Some(serial);
            let place = if is_same { Some(place) } else { now.iter().position(|other| other == serial) };
            if let Some(place) = place {
                group.bucket_counters[place] += *more;
            }
        }
    }

    /// Returns the earliest time at which a flow may expire: call [`Switch::expire`] then.
    pub fn next_at(&self) -> Option<Time> {
        self.tables.iter().filter_map(Table::next_at).min()
    }

    /// Returns the flows that [`Switch::expire`] would look at, in this order.
    pub fn due(&self, now: Time) -> impl Iterator<Item = (u8, Rank)> {
        let tables = (0..).zip(&self.tables);
        tables.flat_map(move |(id, table)| table.due(now).map(move |rank| (id, rank.clone())))
    }

    /// Removes the flows whose timeouts have passed by `now`.
    pub fn expire(&mut self, now: Time) -> Vec<Removed> {
        self.expire_some(now, usize::MAX)
    }

    /// As [`Switch::expire`], but looks at most at this many of the flows of [`Switch::due`].
    pub fn expire_some(&mut self, now: Time, mut most: usize) -> Vec<Removed> {
        let mut removed = Vec::new();
        for (id, table) in self.tables.iter_mut().enumerate() {
            table.expire(id as u8, now, &mut most, &mut removed);
        }
        if !removed.is_empty() {
            removed.extend(self.forget(now, 0..=u8::MAX));
        }
        self.generation += u64::from(!removed.is_empty());
        removed
    }

    /// Changes flows as a packet has it. Returns what has changed for executors.
    pub fn learn(&mut self, now: Time, learned: &Learned) -> LearnedChange {
        match learned {
            Learned::Flow { flow, limit } => {
                let Some(table) = self.tables.get(usize::from(flow.table_id)) else {
                    return LearnedChange::None;
                };
                // Other workers may have added flows since the packet counted them.
                if has_room_for((flow, *limit), table, &[]) {
                    self.learn_flow(now, flow)
                } else {
                    LearnedChange::None
                }
            }
            Learned::Timeouts { table_id, rank, serial, idle, hard } => {
                if let Some(table) = self.tables.get_mut(usize::from(*table_id)) {
                    table.shorten((rank, *serial), *idle, *hard);
                }
                LearnedChange::None
            }
        }
    }

    /// Does what [`Switch::learn`] does for all of these, in order. Returns what has changed, and
    /// the tables that were learned into.
    pub fn learn_all<'l>(
        &mut self,
        now: Time,
        all: impl IntoIterator<Item = &'l Learned>,
    ) -> (LearnedChange, Vec<u8>) {
        let (mut change, mut tables) = (LearnedChange::None, Vec::new());
        for one in all {
            let changed = self.learn(now, one);
            change = change.max(changed);
            if changed != LearnedChange::None && !tables.contains(&one.table_id()) {
                tables.push(one.table_id());
            }
        }
        (change, tables)
    }

    /// Adds the flow that a packet learned. An equal flow is renewed: its timeouts start again and
    /// nothing else changes.
    fn learn_flow(&mut self, now: Time, request: &FlowMod) -> LearnedChange {
        let id = request.table_id;
        let Some(table) = self.tables.get_mut(usize::from(id)) else { return LearnedChange::None };
        let rank = Rank::new(request.priority, request.matching.clone());
        if table.renew(&rank, now, request) {
            return LearnedChange::None;
        }
        self.generation += 1;
        let is_added = self.add_flow(now, request).is_ok();
        let gone = self.forget(now, id..=id);
        match gone.iter().any(|one| one.table_id != id) {
            true => LearnedChange::OtherTables,
            false if is_added || !gone.is_empty() => LearnedChange::Flows,
            false => LearnedChange::None,
        }
    }

    /// Adds a flow that is not of a controller, in the place of one of the same match and priority.
    /// No limit counts it, and it is never evicted.
    ///
    /// # Panics
    /// If the switch has no such table.
    pub fn add_hidden(&mut self, now: Time, request: &FlowMod) {
        let request = FlowMod { flags: flags::HIDDEN, ..request.clone() };
        if self.add_flow(now, &request).is_ok() {
            self.generation += 1;
        }
    }

    /// Makes a table evict flows when it is full, or ends that (OFPTC_EVICTION).
    ///
    /// # Panics
    /// If the switch has no table of this number.
    pub fn set_evicts(&mut self, table_id: u8, evicts: bool) {
        self.table_mut(table_id).set_evicts(evicts);
    }

    /// Adds a flow. A full table may evict another, which is returned.
    fn add_or_evict(&mut self, now: Time, request: &FlowMod) -> Result<Option<Removed>, Refusal> {
        let added = self.add_flow(now, request);
        let (Err(full @ Refusal::FlowTableFull(id)), Some(table)) =
            (added, self.tables.get_mut(usize::from(request.table_id)))
        else {
            return added.map(|()| None);
        };
        // A lack of room for actions is not mended by one flow less.
        if table.len() < self.limits.flows {
            return Err(full);
        }
        let Some(rank) = table.evictable(request.importance).cloned() else { return Err(full) };
        let evicted = table.take(id, &rank, RemovedReason::Eviction, now);
        match self.add_flow(now, request) {
            Ok(()) => Ok(evicted),
            Err(refusal) => {
                // It comes back as it was.
                let table = self.table_mut(id);
                if let Some(removed) = evicted {
                    let _ = table.insert(removed.rank, |_| Ok::<_, Refusal>(removed.flow));
                }
                Err(refusal)
            }
        }
    }

    fn add_flow(&mut self, now: Time, request: &FlowMod) -> Result<(), Refusal> {
        let rank = Rank::new(request.priority, request.matching.clone());
        let is_hidden = request.flags & flags::HIDDEN != 0;
        let more = if is_hidden { 0 } else { request.instructions.room() };
        if self.room_bound + more > self.limits.room {
            self.room_bound = self.room();
        }
        let Switch { tables, limits, serial, room_bound, known, .. } = self;
        let table = &mut tables[usize::from(request.table_id)];
        if request.flags & flags::CHECK_OVERLAP != 0 && table.has_overlap(&rank) {
            return Err(Refusal::FlowOverlap);
        }
        let len = table.len();
        table.insert(rank, |old| {
            let has_room = *room_bound - old.map_or(0, Flow::room) + more <= limits.room;
            let is_full = old.is_none_or(Flow::is_hidden) && len >= limits.flows;
            if !is_hidden && (is_full || !has_room) {
                return Err(Refusal::FlowTableFull(request.table_id));
            }
            // §6.4: the identical flow is replaced without a flow-removed. Its counters are kept
            // unless they are to be reset. It keeps its serial number with them, so that counts of
            // an executor still find it.
            let keeps = request.flags & flags::RESET_COUNTS == 0 && request.version != Version::V10;
            let kept = old.filter(|old| keeps && !old.is_hidden() && !is_hidden);
            let kept = kept.map(|flow| (flow.serial, flow.counters));
            *serial += 1;
            *room_bound += more;
            let (serial, counters) = kept.unwrap_or((*serial, Counters::default()));
            Ok(Flow {
                serial,
                cookie: request.cookie,
                flags: request.flags,
                idle_timeout: request.idle_timeout,
                hard_timeout: request.hard_timeout,
                importance: request.importance,
                instructions: known.share(&request.instructions),
                counters,
                added: now,
                renewed: now,
                last_used: now,
            })
        })
    }

    fn modify_flows(&mut self, now: Time, request: &FlowMod) -> Result<(), Refusal> {
        let instructions = self.known.share(&request.instructions);
        let reset = request.flags & flags::RESET_COUNTS != 0;
        let selected = self.selected_by(request);
        if selected.is_empty() && request.may_add() {
            let table_id = if request.table_id == ALL_TABLES { 0 } else { request.table_id };
            return self.add_flow(now, &FlowMod { table_id, ..request.clone() });
        }
        let flows = selected.iter().filter_map(|(table, rank)| self.tables[usize::from(*table)].flow(rank));
        let gone: usize = flows.map(Flow::room).sum();
        if self.room() - gone + selected.len() * instructions.room() > self.limits.room {
            return Err(Refusal::FlowTableFull(request.table_id));
        }
        self.room_bound += selected.len() * instructions.room();
        for (table, rank) in selected {
            self.serial += u64::from(reset);
            let serial = self.serial;
            self.tables[usize::from(table)].update(&rank, |flow| {
                flow.instructions = Arc::clone(&instructions);
                if let Some(cookie) = request.modified_cookie() {
                    flow.cookie = cookie;
                }
                if reset {
                    // Counts under the old serial number do not belong to it any more.
                    (flow.serial, flow.counters) = (serial, Counters::default());
                }
            });
        }
        Ok(())
    }

    /// Returns what flows and groups use of the room.
    fn room(&self) -> usize {
        self.group_room + self.tables.iter().map(Table::room).sum::<usize>()
    }

    fn delete_flows(&mut self, now: Time, request: &FlowMod) -> Vec<Removed> {
        if request.command == FlowCommand::DeleteStrict {
            let selected = self.selected_by(request);
            let take = |(table, rank): (u8, Rank)| {
                self.tables[usize::from(table)].take(table, &rank, RemovedReason::Delete, now)
            };
            return selected.into_iter().filter_map(take).collect();
        }
        let filter = FlowFilter::of(request);
        let is_selected =
            |rank: &Rank, flow: &Flow| filter.selects(flow) && rank.matching().is_within(&filter.matching);
        let tables = (0..).zip(&mut self.tables);
        let tables = tables.filter(|(id, _)| request.table_id == ALL_TABLES || *id == request.table_id);
        tables.flat_map(|(id, table)| table.take_all((id, RemovedReason::Delete, now), is_selected)).collect()
    }

    /// Returns the flows that a modification or strict deletion applies to.
    pub(crate) fn selected_by(&self, request: &FlowMod) -> Vec<(u8, Rank)> {
        let filter = FlowFilter::of(request);
        if matches!(request.command, FlowCommand::ModifyStrict | FlowCommand::DeleteStrict) {
            let rank = Rank::new(request.priority, request.matching.clone());
            let last = self.limits.tables - 1;
            let ids =
                if request.table_id == ALL_TABLES { 0..=last } else { request.table_id..=request.table_id };
            let flow = |id: u8| self.tables.get(usize::from(id))?.flow(&rank);
            let is_selected = |id: &u8| flow(*id).is_some_and(|flow| filter.selects(flow));
            return ids.filter(is_selected).map(|id| (id, rank.clone())).collect();
        }
        let flows = self.flows(&filter).into_iter().flatten();
        flows.map(|(table, rank, _)| (table, rank.clone())).collect()
    }

    fn remove_flows(
        &mut self,
        now: Time,
        reason: RemovedReason,
        is_selected: impl Fn(&Flow) -> bool,
    ) -> Vec<Removed> {
        let tables = (0..).zip(&mut self.tables);
        let gone =
            tables.flat_map(|(id, table)| table.take_all((id, reason, now), |_, flow| is_selected(flow)));
        let mut removed: Vec<Removed> = gone.collect();
        removed.extend(self.forget(now, 0..=u8::MAX));
        removed
    }

    /// Changes meters (OFPT_METER_MOD). Returns the flows that were removed with their meter.
    ///
    /// The request is refused, and nothing has changed.
    pub fn meter_mod(&mut self, now: Time, request: &MeterMod) -> Result<Vec<Removed>, Refusal> {
        let id = request.id;
        match request.command {
            MeterCommand::Delete if id == meter::ALL => {
                self.meters.clear();
                self.generation += 1;
                let uses_one = |flow: &Flow| flow.instructions.meters().next().is_some();
                return Ok(self.remove_flows(now, RemovedReason::MeterDelete, uses_one));
            }
            MeterCommand::Delete => {
                // As with groups, deleting a meter that does not exist is not an error.
                if self.meters.remove(&id).is_none() {
                    return Ok(Vec::new());
                }
                self.generation += 1;
                let uses_it = |flow: &Flow| flow.instructions.uses_meter(id);
                return Ok(self.remove_flows(now, RemovedReason::MeterDelete, uses_it));
            }
            MeterCommand::Add if self.meters.contains_key(&id) => return Err(Refusal::MeterExists(id)),
            MeterCommand::Add if self.meters.len() >= self.limits.meters => {
                return Err(Refusal::MetersFull(self.limits.meters));
            }
            MeterCommand::Modify if !self.meters.contains_key(&id) => return Err(Refusal::MeterUnknown(id)),
            MeterCommand::Add | MeterCommand::Modify => {}
        }
        self.check_meter(request)?;
        let mut meter = Meter::new(request.flags, &request.bands, now);
        if let Some(old) = self.meters.get(&id) {
            meter.added = old.added;
            meter.counters = old.counters;
        }
        self.meters.insert(id, meter);
        self.generation += 1;
        Ok(Vec::new())
    }

    fn check_meter(&self, request: &MeterMod) -> Result<(), Refusal> {
        use meter::flags::{BURST, KBPS, PKTPS, STATS};
        let MeterMod { id, flags, bands, .. } = request;
        if *id == 0 || *id > meter::MAX {
            return Err(Refusal::MeterInvalid(*id));
        }
        let both = KBPS | PKTPS;
        if flags & !(both | BURST | STATS) != 0 || flags & both == both {
            return Err(Refusal::MeterBadFlags(*flags));
        }
        if bands.len() > self.limits.bands {
            return Err(Refusal::MeterTooManyBands(self.limits.bands));
        }
        for band in bands {
            if band.rate == 0 {
                return Err(Refusal::MeterBadRate(*id));
            }
            if flags & BURST != 0 && band.burst == 0 {
                return Err(Refusal::MeterBadBurst(*id));
            }
            if band.kind == BandKind::DscpRemark(0) {
                return Err(Refusal::MeterBadBandValue(*id));
            }
        }
        Ok(())
    }
}

/// Returns whether a packet-out may name `in_port` as its port of entry (§7.3.7).
pub(crate) fn may_enter_by(switch: &Switch, in_port: u32) -> bool {
    matches!(in_port, port::CONTROLLER | port::LOCAL) || switch.port(in_port).is_some()
}

/// Checks the actions of a packet-out.
pub(crate) fn check_packet_out(switch: &Switch, in_port: u32, actions: &[Action]) -> Result<(), Refusal> {
    if !may_enter_by(switch, in_port) {
        return Err(Refusal::RequestBadPort(in_port));
    }
    check::actions(&switch.targets(), ActionsOf::PacketOut, actions)
}
