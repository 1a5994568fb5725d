//! The execution of a packet in Rust, where generated code does not do it: from one action to the
//! rest of the pipeline.
//!
//! Actions are executed by [`perform`], as in the interpreter; this module gives it the counters
//! and ports of one of several workers. Tested against the interpreter, outcome by outcome.
//!
//! Read first: `switch/src/interp.rs`.

use crate::cells::{PortCell, TableCell, add};
use crate::port_table::flags;
use crate::program::{Choice, GroupView, Program, TableData};
use fastpath_plan::{Rule, RuleNumber, TablePlan};
use fastpath_switch::connections::{PacketView, TrackRequest, Tracked};
use fastpath_switch::continuation::FlowName;
use fastpath_switch::edit;
use fastpath_switch::execute::{Effects, Ending, FloodScope, Packet, PacketInRequest, perform};
use fastpath_switch::extension::{DEPTH_MAX, RESUBMITS_MAX};
use fastpath_switch::flow::ClearActions;
use fastpath_switch::group;
use fastpath_switch::meter::MeterResult;
use fastpath_switch::normal::ForwardingDecision;
use fastpath_switch::outcome::{DropReason, Learned, OUTCOMES_MAX, PacketIn, PacketInReason, has_room_for};
use fastpath_switch::reason::ActionsIn;
use fastpath_switch::{
    Action, ActionSet, Bridging, CookieCounts, FlowMod, FlowsOfCookies, Instructions, Key, PacketOutcome,
    Rank, port,
};
use fastpath_units::Time;
use fastpath_wire::Headers;
use std::mem;
use std::ops::ControlFlow::{self, Break, Continue};
use std::ops::Range;
use std::sync::{Arc, PoisonError};

/// The counters of one worker.
#[derive(Clone, Copy)]
pub(crate) struct OwnCells<'a> {
    pub(crate) worker: usize,
    pub(crate) tables: &'a [TableCell],
    pub(crate) ports: &'a [PortCell],
}

/// The execution of one packet, or of a part of its pipeline.
pub(crate) struct Walk<'a> {
    pub(crate) program: &'a Program,
    pub(crate) cells: OwnCells<'a>,
    pub(crate) now: Time,
    pub(crate) outcomes: &'a mut Vec<PacketOutcome>,
    /// The table and rule that the packet is at, which a packet-in reports.
    pub(crate) table_id: u8,
    pub(crate) found: RuleNumber,
    /// The action set.
    pub(crate) set: ActionSet,
    /// What the actions that are executed now are part of.
    pub(crate) actions_in: ActionsIn,
    /// How the packet changes flows.
    pub(crate) learned: &'a mut Vec<Learned>,
    /// Resubmits, clones and groups inside each other, and all resubmits so far.
    pub(crate) depth: usize,
    pub(crate) resubmits: &'a mut usize,
}

/// The flows of a table, for limits of `learn`.
struct PlannedFlows<'a> {
    plan: &'a TablePlan,
    cookies: &'a CookieCounts,
}

impl FlowsOfCookies for PlannedFlows<'_> {
    fn count(&self, cookie: u64) -> usize {
        self.cookies.of(cookie)
    }

    fn has(&self, rank: &Rank, cookie: u64) -> bool {
        self.plan.rule_of(rank).is_some_and(|rule| rule.cookie == cookie)
    }
}

impl Walk<'_> {
    /// Returns the rule that the packet is at.
    pub(crate) fn rule(&self) -> Option<&Rule> {
        self.program.tables.get(usize::from(self.table_id))?.plan.rule(self.found)
    }

    /// Returns whether the packet may have a further outcome.
    fn has_room(&mut self) -> bool {
        if self.outcomes.len() == OUTCOMES_MAX {
            self.outcomes.push(PacketOutcome::Drop(DropReason::TooManyCopies));
        }
        self.outcomes.len() < OUTCOMES_MAX
    }

    /// Executes the pipeline from the rule that the packet is at to the end.
    pub(crate) fn rest(&mut self, packet: &mut Packet) {
        let end = self.tables(packet);
        self.conclude(packet, end);
        if (end.is_continue() || packet.ending == Ending::Exit) && self.outcomes.is_empty() {
            self.drop(DropReason::NoOutput);
        }
    }

    /// Executes rules from the one that the packet is at until one has no goto-table instruction.
    fn tables(&mut self, packet: &mut Packet) -> ControlFlow<()> {
        loop {
            let Some(rule) = self.rule() else {
                self.drop(DropReason::TableMiss);
                return Break(());
            };
            let instructions = rule.instructions.clone();
            self.execute(packet, &instructions)?;
            let Some(next) = instructions.goto else { return Continue(()) };
            self.enter(next, packet)?;
        }
    }

    /// Executes the action set.
    pub(crate) fn finish(&mut self, packet: &mut Packet) {
        self.conclude(packet, Continue(()));
        if self.outcomes.is_empty() {
            self.drop(DropReason::NoOutput);
        }
    }

    /// Executes the action set of a packet whose actions have ended, or sends it to the controllers
    /// that resume it.
    fn conclude(&mut self, packet: &mut Packet, end: ControlFlow<()>) {
        if end.is_continue() || packet.ending == Ending::Exit {
            let actions: Vec<Action> = mem::take(&mut self.set).in_order().cloned().collect();
            let outer = std::mem::replace(&mut self.actions_in, ActionsIn::Set);
            let _ = self.apply(packet, &actions, None);
            self.actions_in = outer;
            self.set.clear();
        }
        if let Some(packet_in) = packet.take_paused(&self.set) {
            self.report(packet_in);
        }
    }

    /// Executes a list of actions in order, after which other instructions may follow.
    fn apply(
        &mut self,
        packet: &mut Packet,
        actions: &[Action],
        after: Option<&Instructions>,
    ) -> ControlFlow<()> {
        for (place, action) in (1..).zip(actions) {
            if perform(action, packet, self).is_break() {
                packet.keep_rest(self.flow_name(), &actions[place..], after);
                return Break(());
            }
        }
        Continue(())
    }

    /// Sends a packet-in.
    fn report(&mut self, packet_in: PacketIn) {
        let (_, bits) = self.program.ports.get(packet_in.context.in_port);
        // §7.2.1: the bit suppresses the packet-ins of table misses only.
        if packet_in.reason == PacketInReason::NoMatch && bits & flags::NO_PACKET_IN != 0 {
            return self.drop(DropReason::NoPacketIn);
        }
        if self.has_room() {
            self.outcomes.push(PacketOutcome::Controller(Box::new(packet_in)));
        }
    }

    /// §5.3: finds the rule in a table and counts the packet; without one it is dropped.
    pub(crate) fn enter(&mut self, table_id: u8, packet: &Packet) -> ControlFlow<()> {
        if self.find(table_id, packet).is_none() {
            self.drop(DropReason::TableMiss);
            return Break(());
        }
        Continue(())
    }

    /// Goes to the rule for the packet in a table, if there is one.
    #[inline(never)]
    fn find(&mut self, table_id: u8, packet: &Packet) -> Option<()> {
        let program = self.program;
        let table = program.tables.get(usize::from(table_id))?;
        let cell = self.cells.tables.get(usize::from(table_id))?;
        add(&cell.lookups, 1);
        let key = Key::extract(&packet.frame, &Headers::parse(&packet.frame), packet.context);
        let found = table.plan.find(&key);
        match table.cell(self.cells.worker, found) {
            Some(flow) => flow.count(self.now, packet.frame.len()),
            None => {
                add(&cell.misses, 1);
                return None;
            }
        }
        (self.table_id, self.found) = (table_id, found);
        Some(())
    }

    /// §5.9: executes the instructions of a rule except goto.
    fn execute(&mut self, packet: &mut Packet, instructions: &Instructions) -> ControlFlow<()> {
        self.meter(packet, instructions.meter)?;
        self.apply(packet, &instructions.apply, Some(instructions))?;
        write(&mut self.set, instructions);
        packet.context.actset_output = self.set.output();
        if let Some(write) = instructions.metadata {
            packet.context.metadata = packet.context.metadata & !write.mask | write.value & write.mask;
        }
        Continue(())
    }

    /// Sends the copies of mirrors of a packet that arrived as `frame` and has its outcomes.
    pub(crate) fn mirror(&mut self, in_port: u32, frame: &[u8]) {
        let program = self.program;
        let all = program.ports.cells().map(|(number, _)| number);
        let mut ports: Vec<u32> = all.filter(|number| self.may_send(*number)).collect();
        ports.sort_unstable();
        for copy in program.bridging.mirrored(in_port, frame, self.outcomes, &ports) {
            let packet = Packet { queue: copy.queue, ..Packet::new(copy.frame, in_port) };
            self.send(&packet, copy.port);
        }
    }

    /// Returns what a meter says of a packet of `len` bytes; without one it passes.
    fn measure(&self, len: usize, id: Option<u32>) -> MeterResult {
        let Some(meter) = id.and_then(|id| self.program.meters.get(&id)) else { return MeterResult::Pass };
        // A meter is consistent between calls, also after a panic.
        meter.lock().unwrap_or_else(PoisonError::into_inner).apply(self.now, len)
    }

    /// §5.7: applies a meter.
    pub(crate) fn meter(&mut self, packet: &mut Packet, id: Option<u32>) -> ControlFlow<()> {
        match self.measure(packet.frame.len(), id) {
            MeterResult::Pass => {}
            MeterResult::Remark(levels) => edit::raise_drop_precedence(&mut packet.frame, levels),
            MeterResult::Drop => {
                self.drop(DropReason::Meter);
                return Break(());
            }
        }
        Continue(())
    }
}

impl Effects for Walk<'_> {
    fn send(&mut self, packet: &Packet, number: u32) {
        if !self.has_room() {
            return;
        }
        let (cell, bits) = self.program.ports.get(number);
        let cell = &self.cells.ports[cell];
        if bits & flags::SENDS != 0 {
            add(&cell.tx_packets, 1);
            add(&cell.tx_bytes, packet.frame.len() as u64);
            let (queue, frame) = (packet.queue, packet.frame.clone());
            self.outcomes.push(PacketOutcome::Output { port: number, queue, frame });
        } else {
            if bits & flags::EXISTS != 0 {
                add(&cell.tx_dropped, 1);
            }
            self.drop(DropReason::Egress);
        }
    }

    fn resubmit(
        &mut self,
        packet: &mut Packet,
        in_port: Option<u32>,
        table: Option<u8>,
        is_original: bool,
    ) -> ControlFlow<()> {
        if self.depth >= DEPTH_MAX || *self.resubmits >= RESUBMITS_MAX {
            self.drop(DropReason::TooManyResubmits);
            packet.ending = Ending::Bound;
            return Break(());
        }
        *self.resubmits += 1;
        let here = (self.table_id, self.found);
        let outer = self.actions_in;
        if outer == ActionsIn::Bucket {
            self.actions_in = ActionsIn::Flow;
        }
        let port = packet.context.in_port;
        packet.context.in_port = in_port.unwrap_or(port);
        packet.context.is_original = is_original;
        let found = self.find(table.unwrap_or(self.table_id), packet);
        packet.context.in_port = port;
        packet.context.is_original = false;
        if found.is_some() {
            self.depth += 1;
            let _ = self.tables(packet);
            self.depth -= 1;
        }
        (self.table_id, self.found) = here;
        self.actions_in = outer;
        if packet.ending == Ending::None { Continue(()) } else { Break(()) }
    }

    fn recirculate(&mut self, packet: &mut Packet, table: u8) -> ControlFlow<()> {
        if self.depth >= DEPTH_MAX || *self.resubmits >= RESUBMITS_MAX {
            self.drop(DropReason::TooManyResubmits);
            packet.ending = Ending::Bound;
            return Break(());
        }
        *self.resubmits += 1;
        let here = (self.table_id, self.found);
        let outer = (self.set.clone(), mem::take(&mut self.actions_in));
        self.depth += 1;
        let end = match self.enter(table, packet) {
            Continue(()) => self.tables(packet),
            end => end,
        };
        self.conclude(packet, end);
        self.depth -= 1;
        (self.set, self.actions_in) = outer;
        (self.table_id, self.found) = here;
        if packet.ending == Ending::Bound { Break(()) } else { Continue(()) }
    }

    fn track(&mut self, packet: Option<&PacketView<'_>>, request: &TrackRequest) -> Tracked {
        self.program.connections.track(self.now, packet, request)
    }

    fn may_send(&self, number: u32) -> bool {
        self.program.ports.get(number).1 & flags::SENDS != 0
    }

    fn clone_of(&mut self, packet: &Packet, actions: &[Action]) {
        let (outer, mut copy) = (self.set.clone(), packet.clone());
        self.depth += 1;
        let end = self.apply(&mut copy, actions, None);
        self.conclude(&mut copy, end);
        self.depth -= 1;
        self.set = outer;
    }

    fn learn(&mut self, flow: FlowMod, limit: u32) -> bool {
        let table = usize::from(flow.table_id);
        let Some(TableData { plan, .. }) = self.program.tables.get(table) else { return false };
        let flows = PlannedFlows { plan, cookies: &self.program.cookies[table] };
        let has_room = has_room_for((&flow, limit), &flows, self.learned);
        if has_room && self.learned.len() < OUTCOMES_MAX {
            self.learned.push(Learned::Flow { flow, limit });
        }
        has_room
    }

    fn shorten(&mut self, idle: u16, hard: u16) {
        let Some(rule) = self.rule() else { return };
        let (rank, serial, table_id) = (rule.rank.clone(), rule.serial, self.table_id);
        if self.learned.len() < OUTCOMES_MAX {
            self.learned.push(Learned::Timeouts { table_id, rank, serial, idle, hard });
        }
    }

    fn police(&mut self, packet: &mut Packet, meter: u32) -> ControlFlow<()> {
        self.meter(packet, Some(meter))
    }

    fn flood(&mut self, packet: &Packet, scope: FloodScope) {
        let (program, in_port) = (self.program, packet.context.in_port);
        let local = (scope == FloodScope::WithLocal && self.may_send(port::LOCAL)).then_some(port::LOCAL);
        let all = || program.ports.flood.iter().copied().chain(local).filter(|number| *number != in_port);
        if all().next().is_none() {
            self.drop(DropReason::NoOtherPort);
        }
        all().for_each(|number| self.send(packet, number));
    }

    fn flood_ports(&self, in_port: u32, scope: FloodScope) -> Vec<u32> {
        let local = (scope == FloodScope::WithLocal && self.may_send(port::LOCAL)).then_some(port::LOCAL);
        let all = self.program.ports.flood.iter().copied().chain(local);
        all.filter(|number| *number != in_port).collect()
    }

    fn bridging(&self) -> &Arc<Bridging> {
        &self.program.bridging
    }

    fn locate(&mut self, packet: &Packet, vlan: u16) -> ForwardingDecision {
        let (in_port, frame) = (packet.context.in_port, &packet.frame);
        self.program.normal.forward(self.now, in_port, vlan, frame, |number| self.may_send(number))
    }

    fn passes_meter(&mut self, packet: &mut Packet, id: u32) -> bool {
        match self.measure(packet.frame.len(), Some(id)) {
            MeterResult::Pass => {}
            MeterResult::Remark(levels) => edit::raise_drop_precedence(&mut packet.frame, levels),
            MeterResult::Drop => return false,
        }
        true
    }

    fn flow_name(&self) -> FlowName {
        let (is_miss, cookie) =
            self.rule().map_or((false, u64::MAX), |rule| (rule.rank.is_table_miss(), rule.cookie));
        FlowName { table_id: self.table_id, cookie, is_miss }
    }

    fn packet_in(&mut self, packet: &Packet, request: PacketInRequest<'_>) {
        let flow = self.flow_name();
        self.report(PacketIn {
            reason: request.reason.unwrap_or(self.actions_in.reason(flow.usual_reason())),
            table_id: flow.table_id,
            cookie: flow.cookie,
            max_len: request.max_len,
            context: packet.context.reported(),
            controller: request.controller,
            userdata: request.userdata.to_vec(),
            continuation: None,
            frame: packet.frame.clone(),
        });
    }

    /// Not reached: packet-outs are interpreted, and flows and buckets may not output to TABLE.
    fn enter_tables(&mut self, _: &Packet) {
        self.drop(DropReason::Egress);
    }

    /// §5.6: each selected bucket processes its own copy.
    fn group(&mut self, packet: &Packet, id: u32) {
        let program = self.program;
        let Some((group, choice)) = program.groups.get(&id) else { return self.drop(DropReason::NoBucket) };
        let cells = &group.cells[self.cells.worker];
        cells.group.count(packet.frame.len());
        let chosen = choose(group, choice, &packet.frame);
        if chosen.is_empty() {
            return self.drop(DropReason::NoBucket);
        }
        for index in chosen {
            if !self.has_room() {
                return;
            }
            cells.buckets[index].count(packet.frame.len());
            let before = self.outcomes.len();
            // A bucket is an action set of its own.
            let outer = (mem::take(&mut self.set), self.actions_in);
            self.actions_in = ActionsIn::Bucket;
            let mut copy = packet.clone();
            self.depth += 1;
            let end = self.apply(&mut copy, &group.actions[index], None);
            self.set.clear();
            self.conclude(&mut copy, end);
            self.depth -= 1;
            (self.set, self.actions_in) = outer;
            if self.outcomes.len() == before {
                self.drop(DropReason::NoOutput);
            }
        }
    }

    fn drop(&mut self, reason: DropReason) {
        if self.has_room() {
            self.outcomes.push(PacketOutcome::Drop(reason));
        }
    }
}

/// Clears and writes the action set as instructions say.
pub(crate) fn write(set: &mut ActionSet, instructions: &Instructions) {
    if instructions.clear == ClearActions::Clear {
        set.clear();
    }
    set.write(&instructions.write);
}

/// Returns the buckets that a frame is processed by.
fn choose(group: &GroupView, choice: &Choice, frame: &[u8]) -> Range<usize> {
    let one = |index: Option<usize>| index.map_or(0..0, |index| index..index + 1);
    match choice {
        Choice::Each => 0..group.buckets.len(),
        Choice::First(live) => one(*live),
        Choice::Share(shares) => {
            one(group::select(shares, |_| true, group::select_hash(&Headers::parse(frame), frame)))
        }
    }
}
