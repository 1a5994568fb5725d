//! The interpreter: executes packets on a switch, step by step as §5 describes it.
//!
//! This is the specification. It parses every header again after every change, and compares a
//! packet with every flow in turn. Faster executors must produce the same outcomes and the same
//! counters.
//!
//! Read first: OpenFlow 1.3.5 §5.3 (matching), §5.9 (instructions), §5.10 (action set).

use crate::Refusal;
use crate::action::{Action, ActionSet};
use crate::bridging::Bridging;
use crate::continuation::{Continuation, FlowName};
use crate::edit;
use crate::execute::effects::{Effects, Ending, FloodScope, Packet, PacketInRequest};
use crate::execute::perform::perform;
use crate::extension::{DEPTH_MAX, RESUBMITS_MAX};
use crate::flow::{ClearActions, FlowMod, Instructions, Rank};
use crate::group::{self, GroupKind};
use crate::key::{ConnectionFields, Key, PipelineFields};
use crate::meter::MeterResult;
use crate::normal::ForwardingDecision;
use crate::outcome::{
    DropReason, Learned, OUTCOMES_MAX, PacketIn, PacketInReason, PacketOutcome, has_room_for,
};
use crate::port::{self, Port};
use crate::reason::ActionsIn;
use crate::switch::{self, Switch};
use crate::trace::{Lookup, Trace, TraceEvent, Tracer};
use fastpath_conntrack::{PacketView, TrackRequest, Tracked};
use fastpath_units::Time;
use fastpath_wire::Headers;
use std::mem;
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;

/// Executes a frame that arrived on `in_port` at `now`: sends it through the tables.
pub fn interp(switch: &mut Switch, now: Time, in_port: u32, frame: &[u8]) -> Vec<PacketOutcome> {
    receive(Walk::new(switch, now, in_port, frame))
}

/// Finds the flow of a packet sooner than by comparing every one.
pub trait FindFlow {
    /// Returns the rank of the flow that a packet with this key matches in a table.
    fn find_flow(&self, table_id: u8, key: &Key) -> Option<&Rank>;
}

/// Executes as [`interp`] does, but finds flows by an up-to-date `finder`: the same outcomes,
/// sooner.
pub fn interp_by(
    finder: &dyn FindFlow,
    switch: &mut Switch,
    now: Time,
    in_port: u32,
    frame: &[u8],
) -> Vec<PacketOutcome> {
    receive(Walk { finder: Some(finder), ..Walk::new(switch, now, in_port, frame) })
}

/// Executes as [`interp`] does, and also returns the path of the packet.
pub fn trace(switch: &mut Switch, now: Time, in_port: u32, frame: &[u8]) -> Trace {
    let mut tracer = Tracer::new(key_of(&Packet::new(frame.to_vec(), in_port)));
    let outcomes = receive(Walk { tracer: Some(&mut tracer), ..Walk::new(switch, now, in_port, frame) });
    tracer.finish(outcomes)
}

fn key_of(packet: &Packet) -> Key {
    Key::extract(&packet.frame, &Headers::parse(&packet.frame), packet.context)
}

fn receive(mut walk: Walk<'_>) -> Vec<PacketOutcome> {
    let len = walk.packet.frame.len() as u64;
    let is_taken = match walk.switch.port_mut(walk.packet.context.in_port) {
        Some(port) if port.may_receive() => {
            port.counters.rx_packets += 1;
            port.counters.rx_bytes += len;
            true
        }
        Some(port) => {
            port.counters.rx_dropped += 1;
            false
        }
        None => false,
    };
    if !is_taken {
        walk.arrived = None;
        walk.drop(DropReason::Ingress);
    } else if walk.is_of_mirror() {
        walk.drop(DropReason::MirrorPort);
    } else {
        walk.pipeline();
    }
    walk.finish()
}

/// Executes the actions of a packet-out.
///
/// The request is refused, and nothing has happened.
pub fn packet_out(
    switch: &mut Switch,
    now: Time,
    in_port: u32,
    actions: &[Action],
    frame: &[u8],
) -> Result<Vec<PacketOutcome>, Refusal> {
    packet_out_with(switch, now, &PipelineFields::of_port(in_port), actions, frame)
}

/// As [`packet_out`], for a packet that has further fields outside of its frame (OpenFlow 1.5). It
/// also enters the tables with them.
///
/// The request is refused, and nothing has happened.
pub fn packet_out_with(
    switch: &mut Switch,
    now: Time,
    fields: &PipelineFields,
    actions: &[Action],
    frame: &[u8],
) -> Result<Vec<PacketOutcome>, Refusal> {
    switch::check_packet_out(switch, fields.in_port, actions)?;
    let mut walk = Walk::new(switch, now, fields.in_port, frame);
    (walk.entry, walk.packet.context) = (*fields, *fields);
    walk.actions_in = ActionsIn::PacketOut;
    if frame.len() < 14 {
        walk.drop(DropReason::Runt);
    } else if walk.is_of_mirror() {
        walk.drop(DropReason::MirrorPort);
    } else {
        let mut packet = walk.packet.clone();
        let end = walk.apply(&mut packet, actions);
        walk.conclude(&mut packet, end);
    }
    Ok(walk.finish())
}

/// Resumes a packet that was paused, with its frame and the fields outside of it as the controller
/// wants them.
pub fn resume(
    switch: &mut Switch,
    now: Time,
    fields: &PipelineFields,
    continuation: &Continuation,
    frame: &[u8],
) -> Vec<PacketOutcome> {
    let mut walk = Walk::new(switch, now, fields.in_port, frame);
    walk.entry = *fields;
    // What arrived was mirrored then.
    if let Some((in_port, _)) = &mut walk.arrived {
        *in_port = port::CONTROLLER;
    }
    let Continuation { queue, stack, translated, set, steps } = continuation;
    let (queue, stack, translated) = (*queue, stack.clone(), *translated);
    let mut packet = Packet { queue, stack, translated, ..walk.packet.clone() };
    if frame.len() < 14 {
        walk.drop(DropReason::Runt);
        return walk.finish();
    }
    walk.set = ActionSet::of(set);
    packet.context = PipelineFields { actset_output: walk.set.output(), ..*fields };
    let mut end = Continue(());
    for step in steps {
        if packet.ending == Ending::None {
            walk.name(step.flow);
            end = walk.run(&mut packet, &step.rest);
        } else {
            packet.keep(step);
        }
    }
    walk.conclude(&mut packet, end);
    walk.finish()
}

/// The execution of one packet.
struct Walk<'a> {
    switch: &'a mut Switch,
    /// Finds the flows; without it, every flow is compared.
    finder: Option<&'a dyn FindFlow>,
    /// Collects the steps, for [`trace`].
    tracer: Option<&'a mut Tracer>,
    now: Time,
    packet: Packet,
    /// The fields outside of the frame with which the packet enters the tables.
    entry: PipelineFields,
    set: ActionSet,
    /// Resubmits and clones inside each other, and all resubmits so far.
    depth: usize,
    resubmits: usize,
    /// How the packet changes flows.
    learned: Vec<Learned>,
    /// The contents of a packet-in that is sent now.
    table_id: u8,
    cookie: u64,
    reason: PacketInReason,
    /// What the actions that are executed now are part of.
    actions_in: ActionsIn,
    /// The flow that is executed now, with its serial number.
    flow: Option<(Rank, u64)>,
    outcomes: Vec<PacketOutcome>,
    /// The port and the frame that mirrors see, if there are any.
    arrived: Option<(u32, Vec<u8>)>,
}

impl<'a> Walk<'a> {
    fn new(switch: &'a mut Switch, now: Time, in_port: u32, frame: &[u8]) -> Walk<'a> {
        let packet = Packet::new(frame.to_vec(), in_port);
        let reason = PacketInReason::Action;
        let has_mirrors = !switch.bridging().mirrors.is_empty();
        Walk {
            arrived: has_mirrors.then(|| (in_port, frame.to_vec())),
            switch,
            finder: None,
            tracer: None,
            now,
            entry: packet.context,
            packet,
            set: ActionSet::default(),
            depth: 0,
            resubmits: 0,
            learned: Vec::new(),
            table_id: 0,
            cookie: u64::MAX,
            reason,
            actions_in: ActionsIn::Flow,
            flow: None,
            outcomes: Vec::new(),
        }
    }

    /// Ends the packet: it has at least one outcome. What it learned is in force for the next one.
    fn finish(mut self) -> Vec<PacketOutcome> {
        if self.outcomes.is_empty() {
            self.drop(DropReason::NoOutput);
        }
        self.mirror();
        for learned in mem::take(&mut self.learned) {
            self.switch.learn(self.now, &learned);
            self.outcomes.push(PacketOutcome::Learn(Box::new(learned)));
        }
        self.outcomes
    }

    /// Returns whether the packet came from the output of a mirror, and makes no copies of it then.
    fn is_of_mirror(&mut self) -> bool {
        let Some((in_port, _)) = &self.arrived else { return false };
        let is_output = self.switch.bridging().is_mirror_output(*in_port);
        if is_output {
            self.arrived = None;
        }
        is_output
    }

    /// Sends the copies of mirrors.
    fn mirror(&mut self) {
        let Some((in_port, frame)) = self.arrived.take() else { return };
        let bridging = Arc::clone(self.switch.bridging());
        let ports = self.switch.ports().filter(|(_, port)| port.may_send());
        let ports: Vec<u32> = ports.map(|(number, _)| number).collect();
        for copy in bridging.mirrored(in_port, &frame, &self.outcomes, &ports) {
            let packet = Packet { queue: copy.queue, ..Packet::new(copy.frame, in_port) };
            self.send(&packet, copy.port);
        }
    }

    /// Returns whether the packet may have a further outcome.
    fn has_room(&mut self) -> bool {
        if self.outcomes.len() == OUTCOMES_MAX {
            self.outcomes.push(PacketOutcome::Drop(DropReason::TooManyCopies));
        }
        self.outcomes.len() < OUTCOMES_MAX
    }

    /// §5.1: executes tables from table 0 until a flow has no goto-table instruction.
    fn pipeline(&mut self) {
        let mut packet = self.packet.clone();
        if packet.frame.len() < 14 {
            return self.drop(DropReason::Runt);
        }
        let outer = mem::take(&mut self.set);
        let end = self.enter(0, &mut packet);
        self.conclude(&mut packet, end);
        self.set = outer;
        if let Some(tracer) = &mut self.tracer {
            tracer.now = key_of(&packet);
        }
    }

    /// Executes the action set of a packet whose actions have ended, or sends it to the controllers
    /// that resume it.
    fn conclude(&mut self, packet: &mut Packet, end: ControlFlow<()>) {
        if end.is_continue() || packet.ending == Ending::Exit {
            let actions: Vec<Action> = mem::take(&mut self.set).in_order().cloned().collect();
            if !actions.is_empty() {
                self.note(|| TraceEvent::ActionSet);
            }
            let outer = self.actions_in;
            self.actions_in = outer.inner(ActionsIn::Set);
            let _ = self.apply(packet, &actions);
            self.actions_in = outer;
            // What tables wrote that the set itself entered is not executed.
            self.set.clear();
        }
        if let Some(packet_in) = packet.take_paused(&self.set) {
            self.report(packet_in);
        }
    }

    /// Makes a flow the one that packet-ins name.
    fn name(&mut self, flow: FlowName) {
        (self.table_id, self.cookie, self.reason, self.flow) =
            (flow.table_id, flow.cookie, flow.usual_reason(), None);
    }

    /// Sends a packet-in.
    fn report(&mut self, packet_in: PacketIn) {
        let in_port = self.switch.port(packet_in.context.in_port);
        // §7.2.1: the bit suppresses the packet-ins of table misses only.
        if packet_in.reason == PacketInReason::NoMatch
            && in_port.is_some_and(|port| port.config & port::config::NO_PACKET_IN != 0)
        {
            return self.drop(DropReason::NoPacketIn);
        }
        if self.has_room() {
            self.outcomes.push(PacketOutcome::Controller(Box::new(packet_in)));
        }
    }

    /// Executes instructions, and the tables that they lead to.
    fn run(&mut self, packet: &mut Packet, instructions: &Instructions) -> ControlFlow<()> {
        self.execute(packet, instructions)?;
        instructions.goto.map_or(Continue(()), |next| self.enter(next, packet))
    }

    /// Executes tables from this one until a flow has no goto-table instruction.
    fn enter(&mut self, first: u8, packet: &mut Packet) -> ControlFlow<()> {
        let mut next = Some(first);
        // A goto-table instruction leads to a later table only, so this ends.
        while let Some(table_id) = next {
            let Some((_, instructions)) = self.lookup(table_id, packet) else {
                self.drop(DropReason::TableMiss);
                return Break(());
            };
            self.execute(packet, &instructions)?;
            next = instructions.goto;
        }
        Continue(())
    }

    /// §5.3: finds the matching flow of the highest priority and counts it.
    #[inline(never)]
    fn lookup(&mut self, table_id: u8, packet: &Packet) -> Option<(Rank, Arc<Instructions>)> {
        let found = self.find(table_id, packet);
        if let Some(tracer) = &mut self.tracer {
            let (rank, instructions) = found.clone().unzip();
            let instructions = instructions.unwrap_or_default();
            tracer.now = key_of(packet);
            tracer.look_up(&self.switch.tables()[usize::from(table_id)], rank.as_ref());
            let (connection, key) = (packet.context.connection, tracer.now);
            let lookup = Lookup { table_id, rank, instructions, connection, key };
            tracer.note(self.depth, TraceEvent::Lookup(Box::new(lookup)));
        }
        found
    }

    /// Notes a step of the packet, for [`trace`].
    #[inline]
    fn note(&mut self, event: impl FnOnce() -> TraceEvent) {
        if let Some(tracer) = &mut self.tracer {
            tracer.note(self.depth, event());
        }
    }

    fn find(&mut self, table_id: u8, packet: &Packet) -> Option<(Rank, Arc<Instructions>)> {
        let key = key_of(packet);
        let now = self.now;
        let table = self.switch.table_mut(table_id);
        table.lookups += 1;
        let (rank, cookie, serial, instructions) = {
            let (rank, flow) = match self.finder {
                None => table.find(&key)?,
                Some(finder) => table.entry(finder.find_flow(table_id, &key)?)?,
            };
            flow.count(now, packet.frame.len());
            (rank.clone(), flow.cookie, flow.serial, Arc::clone(&flow.instructions))
        };
        table.matched += 1;
        self.table_id = table_id;
        self.cookie = cookie;
        self.flow = Some((rank.clone(), serial));
        self.reason = if rank.is_table_miss() { PacketInReason::NoMatch } else { PacketInReason::Action };
        Some((rank, instructions))
    }

    /// §5.9: executes the instructions of a flow except goto.
    fn execute(&mut self, packet: &mut Packet, instructions: &Instructions) -> ControlFlow<()> {
        if let Some(id) = instructions.meter {
            self.police(packet, id)?;
        }
        self.apply_before(packet, &instructions.apply, Some(instructions))?;
        if instructions.clear == ClearActions::Clear {
            self.set.clear();
        }
        self.set.write(&instructions.write);
        packet.context.actset_output = self.set.output();
        if let Some(write) = instructions.metadata {
            packet.context.metadata = packet.context.metadata & !write.mask | write.value & write.mask;
        }
        Continue(())
    }

    /// Executes a list of actions in order.
    fn apply(&mut self, packet: &mut Packet, actions: &[Action]) -> ControlFlow<()> {
        self.apply_before(packet, actions, None)
    }

    /// Executes a list of actions in order, after which other instructions follow.
    fn apply_before(
        &mut self,
        packet: &mut Packet,
        actions: &[Action],
        after: Option<&Instructions>,
    ) -> ControlFlow<()> {
        for (place, action) in (1..).zip(actions) {
            self.note(|| TraceEvent::Action(action.clone()));
            if perform(action, packet, self).is_break() {
                packet.keep_rest(self.flow_name(), &actions[place..], after);
                return Break(());
            }
        }
        Continue(())
    }

    fn choose(&self, packet: &Packet, id: u32) -> Vec<usize> {
        let Some(group) = self.switch.group(id) else { return Vec::new() };
        let is_live = |bucket: &group::Bucket| self.switch.is_live(bucket);
        match group.kind {
            GroupKind::All | GroupKind::Indirect => (0..group.buckets.len()).collect(),
            GroupKind::Select => {
                let hash = group::select_hash(&Headers::parse(&packet.frame), &packet.frame);
                group::select(&group.buckets, is_live, hash).into_iter().collect()
            }
            GroupKind::FastFailover => group.buckets.iter().position(is_live).into_iter().collect(),
        }
    }
}

impl Effects for Walk<'_> {
    fn send(&mut self, packet: &Packet, number: u32) {
        if !self.has_room() {
            return;
        }
        let len = packet.frame.len() as u64;
        match self.switch.port_mut(number) {
            Some(port) if port.may_send() => {
                port.counters.tx_packets += 1;
                port.counters.tx_bytes += len;
                let (queue, frame) = (packet.queue, packet.frame.clone());
                self.outcomes.push(PacketOutcome::Output { port: number, queue, frame });
            }
            Some(port) => {
                port.counters.tx_dropped += 1;
                self.drop(DropReason::Egress);
            }
            None => self.drop(DropReason::Egress),
        }
    }

    fn flood(&mut self, packet: &Packet, scope: FloodScope) {
        let others = self.flood_ports(packet.context.in_port, scope);
        if others.is_empty() {
            self.drop(DropReason::NoOtherPort);
        }
        for number in others {
            self.send(packet, number);
        }
    }

    fn flood_ports(&self, in_port: u32, scope: FloodScope) -> Vec<u32> {
        let last = match scope {
            FloodScope::Ordinary => port::MAX,
            FloodScope::WithLocal => port::LOCAL,
        };
        let others = self
            .switch
            .ports()
            .filter(|(number, port)| *number != in_port && *number <= last && port.may_send());
        others.map(|(number, _)| number).collect()
    }

    /// §5.7: applies a meter.
    fn police(&mut self, packet: &mut Packet, id: u32) -> ControlFlow<()> {
        let Some(meter) = self.switch.meter_mut(id) else { return Continue(()) };
        let result = meter.apply(self.now, packet.frame.len());
        self.note(|| TraceEvent::Metered { id, result });
        match result {
            MeterResult::Pass => {}
            MeterResult::Remark(levels) => edit::raise_drop_precedence(&mut packet.frame, levels),
            MeterResult::Drop => {
                self.drop(DropReason::Meter);
                return Break(());
            }
        }
        Continue(())
    }

    fn bridging(&self) -> &Arc<Bridging> {
        self.switch.bridging()
    }

    fn locate(&mut self, packet: &Packet, vlan: u16) -> ForwardingDecision {
        let switch = &*self.switch;
        let may_send = |number| switch.port(number).is_some_and(Port::may_send);
        let located =
            switch.normal().forward(self.now, packet.context.in_port, vlan, &packet.frame, may_send);
        self.note(|| TraceEvent::Located(located));
        located
    }

    fn passes_meter(&mut self, packet: &mut Packet, id: u32) -> bool {
        let Some(meter) = self.switch.meter_mut(id) else { return true };
        match meter.apply(self.now, packet.frame.len()) {
            MeterResult::Pass => {}
            MeterResult::Remark(levels) => edit::raise_drop_precedence(&mut packet.frame, levels),
            MeterResult::Drop => return false,
        }
        true
    }

    fn flow_name(&self) -> FlowName {
        let is_miss = self.reason == PacketInReason::NoMatch;
        FlowName { table_id: self.table_id, cookie: self.cookie, is_miss }
    }

    fn packet_in(&mut self, packet: &Packet, request: PacketInRequest<'_>) {
        self.report(PacketIn {
            reason: request.reason.unwrap_or(self.actions_in.reason(self.reason)),
            table_id: self.table_id,
            cookie: self.cookie,
            max_len: request.max_len,
            context: packet.context.reported(),
            controller: request.controller,
            userdata: request.userdata.to_vec(),
            continuation: None,
            frame: packet.frame.clone(),
        });
    }

    /// Sends the packet, as changed so far, into table 0 with the fields outside of the frame that
    /// it came with.
    fn enter_tables(&mut self, packet: &Packet) {
        let context = PipelineFields { in_port: packet.context.in_port, ..self.entry };
        self.packet = Packet { context, ..packet.clone() };
        let before = self.outcomes.len();
        self.pipeline();
        if self.outcomes.len() == before {
            self.drop(DropReason::NoOutput);
        }
    }

    fn resubmit(
        &mut self,
        packet: &mut Packet,
        in_port: Option<u32>,
        table: Option<u8>,
        is_original: bool,
    ) -> ControlFlow<()> {
        if self.depth >= DEPTH_MAX || self.resubmits >= RESUBMITS_MAX {
            self.drop(DropReason::TooManyResubmits);
            packet.ending = Ending::Bound;
            return Break(());
        }
        self.resubmits += 1;
        let here = (self.table_id, self.cookie, self.reason, self.flow.clone());
        let outer = self.actions_in;
        if outer == ActionsIn::Bucket {
            self.actions_in = ActionsIn::Flow;
        }
        // Port and tuple count for this lookup only.
        let port = packet.context.in_port;
        packet.context.in_port = in_port.unwrap_or(port);
        packet.context.is_original = is_original;
        self.depth += 1;
        let found = self.lookup(table.unwrap_or(self.table_id), packet);
        packet.context.in_port = port;
        packet.context.is_original = false;
        if let Some((_, instructions)) = found {
            let _ = self.run(packet, &instructions);
        }
        self.depth -= 1;
        (self.table_id, self.cookie, self.reason, self.flow) = here;
        self.actions_in = outer;
        if packet.ending == Ending::None { Continue(()) } else { Break(()) }
    }

    fn recirculate(&mut self, packet: &mut Packet, table: u8) -> ControlFlow<()> {
        if self.depth >= DEPTH_MAX || self.resubmits >= RESUBMITS_MAX {
            self.drop(DropReason::TooManyResubmits);
            packet.ending = Ending::Bound;
            return Break(());
        }
        self.resubmits += 1;
        let here = (self.table_id, self.cookie, self.reason, self.flow.clone());
        // This pipeline executes the set at its end, and so does the other.
        let outer = (self.set.clone(), mem::take(&mut self.actions_in));
        self.depth += 1;
        let end = self.enter(table, packet);
        self.conclude(packet, end);
        self.depth -= 1;
        (self.set, self.actions_in) = outer;
        (self.table_id, self.cookie, self.reason, self.flow) = here;
        if packet.ending == Ending::Bound { Break(()) } else { Continue(()) }
    }

    fn track(&mut self, packet: Option<&PacketView<'_>>, request: &TrackRequest) -> Tracked {
        let tracked = self.switch.connections().track(self.now, packet, request);
        self.note(|| {
            let Tracked { state, mark, label, original, .. } = tracked;
            TraceEvent::Tracked(ConnectionFields { state, zone: request.zone, mark, label, original })
        });
        tracked
    }

    fn may_send(&self, number: u32) -> bool {
        self.switch.port(number).is_some_and(Port::may_send)
    }

    fn clone_of(&mut self, packet: &Packet, actions: &[Action]) {
        let (outer, mut copy) = (self.set.clone(), packet.clone());
        self.depth += 1;
        let end = self.apply(&mut copy, actions);
        self.conclude(&mut copy, end);
        self.depth -= 1;
        self.set = outer;
    }

    fn learn(&mut self, flow: FlowMod, limit: u32) -> bool {
        let table = &self.switch.tables()[usize::from(flow.table_id)];
        let has_room = has_room_for((&flow, limit), table, &self.learned);
        if has_room && self.learned.len() < OUTCOMES_MAX {
            self.learned.push(Learned::Flow { flow, limit });
        }
        has_room
    }

    fn shorten(&mut self, idle: u16, hard: u16) {
        if let Some((rank, serial)) = self.flow.clone()
            && self.learned.len() < OUTCOMES_MAX
        {
            let table_id = self.table_id;
            self.learned.push(Learned::Timeouts { table_id, rank, serial, idle, hard });
        }
    }

    /// §5.6: each selected bucket processes its own copy; the packet itself stays as it is.
    fn group(&mut self, packet: &Packet, id: u32) {
        let chosen = self.choose(packet, id);
        let is_hashed = self.switch.group(id).is_some_and(|group| group.kind == GroupKind::Select);
        if let Some(tracer) = self.tracer.as_mut().filter(|_| is_hashed) {
            tracer.look_at_hash();
        }
        let Some(group) = self.switch.group_mut(id) else { return self.drop(DropReason::NoBucket) };
        group.counters.count(packet.frame.len());
        let buckets = Arc::clone(&group.buckets);
        if chosen.is_empty() {
            return self.drop(DropReason::NoBucket);
        }
        for index in chosen {
            if !self.has_room() {
                return;
            }
            if let Some(group) = self.switch.group_mut(id) {
                group.bucket_counters[index].count(packet.frame.len());
            }
            let actions: Vec<Action> = ActionSet::of(&buckets[index].actions).in_order().cloned().collect();
            let before = self.outcomes.len();
            self.depth += 1;
            self.note(|| TraceEvent::Bucket { group: id, bucket: index });
            // A bucket is an action set of its own.
            let outer = (mem::take(&mut self.set), self.actions_in);
            self.actions_in = outer.1.inner(ActionsIn::Bucket);
            let mut copy = packet.clone();
            let end = self.apply(&mut copy, &actions);
            self.set.clear();
            self.conclude(&mut copy, end);
            (self.set, self.actions_in) = outer;
            self.depth -= 1;
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

#[cfg(test)]
#[path = "interp_tests.rs"]
mod tests;
