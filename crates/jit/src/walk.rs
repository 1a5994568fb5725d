//! A packet's way in Rust: what generated code leaves to it, from one action to the whole rest of
//! the pipeline.
//!
//! The changes to frames are those of the interpreter ([`fastpath_switch::edit`]); this adds where
//! counters and ports are for one of several workers. Tested against the interpreter, outcome by
//! outcome.
//!
//! Read first: `switch/src/interp.rs`.

use crate::cells::{PortCell, TableCell, add};
use crate::program::{Choice, GroupView, Program, flags};
use fastpath_switch::edit::{self, Ttl};
use fastpath_switch::flow::ClearActions;
use fastpath_switch::group;
use fastpath_switch::interp::{DropReason, OUTCOMES_MAX, PacketIn, PacketInReason};
use fastpath_switch::meter::MeterResult;
use fastpath_switch::normal::ForwardingDecision;
use fastpath_switch::plan::{Rule, RuleNumber};
use fastpath_switch::{Action, ActionSet, Field, Instructions, Key, PacketOutcome, PipelineFields, port};
use fastpath_units::Time;
use fastpath_wire::Headers;
use std::ops::Range;
use std::sync::PoisonError;

/// A packet outside of generated code.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packet {
    pub(crate) frame: Vec<u8>,
    pub(crate) context: PipelineFields,
    pub(crate) queue: u32,
}

/// Whether a packet goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Go,
    Stop,
}

/// One worker's counters.
#[derive(Clone, Copy)]
pub(crate) struct Mine<'a> {
    pub(crate) worker: usize,
    pub(crate) tables: &'a [TableCell],
    pub(crate) ports: &'a [PortCell],
}

/// The execution of one packet, or of a part of its way.
pub(crate) struct Walk<'a> {
    pub(crate) program: &'a Program,
    pub(crate) mine: Mine<'a>,
    pub(crate) now: Time,
    pub(crate) outcomes: &'a mut Vec<PacketOutcome>,
    /// Where it is: what a packet-in says.
    pub(crate) table_id: u8,
    pub(crate) found: RuleNumber,
}

impl Walk<'_> {
    /// The rule that the packet is at.
    pub(crate) fn rule(&self) -> Option<&Rule> {
        self.program.tables.get(usize::from(self.table_id))?.plan.rule(self.found)
    }

    pub(crate) fn drop(&mut self, reason: DropReason) {
        if self.has_room() {
            self.outcomes.push(PacketOutcome::Drop(reason));
        }
    }

    /// Whether there may be a further outcome of this packet.
    fn has_room(&mut self) -> bool {
        if self.outcomes.len() == OUTCOMES_MAX {
            self.outcomes.push(PacketOutcome::Drop(DropReason::TooManyCopies));
        }
        self.outcomes.len() < OUTCOMES_MAX
    }

    /// From the rule the packet is at to the end.
    pub(crate) fn rest(&mut self, packet: &mut Packet, set: &mut ActionSet) {
        loop {
            let Some(rule) = self.rule() else { return self.drop(DropReason::TableMiss) };
            let instructions = rule.instructions.clone();
            if self.execute(packet, set, &instructions) == Step::Stop {
                return;
            }
            let Some(next) = instructions.goto else { return self.finish(packet, set) };
            if self.enter(next, packet) == Step::Stop {
                return;
            }
        }
    }

    /// Executes the action set.
    pub(crate) fn finish(&mut self, packet: &mut Packet, set: &ActionSet) {
        for action in set.in_order() {
            if self.act(packet, action) == Step::Stop {
                return;
            }
        }
        if self.outcomes.is_empty() {
            self.drop(DropReason::NoOutput);
        }
    }

    /// §5.3: finds and counts.
    pub(crate) fn enter(&mut self, table_id: u8, packet: &Packet) -> Step {
        let program = self.program;
        let (Some(table), Some(cell)) =
            (program.tables.get(usize::from(table_id)), self.mine.tables.get(usize::from(table_id)))
        else {
            self.drop(DropReason::TableMiss);
            return Step::Stop;
        };
        add(&cell.lookups, 1);
        let key = Key::extract(&packet.frame, &Headers::parse(&packet.frame), packet.context);
        let found = table.plan.find(&key);
        match table.cell(self.mine.worker, found) {
            Some(flow) => flow.count(self.now, packet.frame.len()),
            None => {
                add(&cell.misses, 1);
                self.drop(DropReason::TableMiss);
                return Step::Stop;
            }
        }
        (self.table_id, self.found) = (table_id, found);
        Step::Go
    }

    /// §5.9: the instructions of a rule, but for goto.
    fn execute(&mut self, packet: &mut Packet, set: &mut ActionSet, instructions: &Instructions) -> Step {
        if self.meter(packet, instructions.meter) == Step::Stop {
            return Step::Stop;
        }
        for action in &instructions.apply {
            if self.act(packet, *action) == Step::Stop {
                return Step::Stop;
            }
        }
        write(set, instructions);
        if let Some(write) = instructions.metadata {
            packet.context.metadata = packet.context.metadata & !write.mask | write.value & write.mask;
        }
        Step::Go
    }

    /// §5.7.
    pub(crate) fn meter(&mut self, packet: &mut Packet, id: Option<u32>) -> Step {
        let program = self.program;
        let Some(meter) = id.and_then(|id| program.meters.get(&id)) else { return Step::Go };
        // A meter is whole between calls.
        let judgement =
            meter.lock().unwrap_or_else(PoisonError::into_inner).judge(self.now, packet.frame.len());
        match judgement {
            MeterResult::Pass => {}
            MeterResult::Remark(levels) => edit::raise_drop_precedence(&mut packet.frame, levels),
            MeterResult::Drop => {
                self.drop(DropReason::Meter);
                return Step::Stop;
            }
        }
        Step::Go
    }

    pub(crate) fn act(&mut self, packet: &mut Packet, action: Action) -> Step {
        let frame = &mut packet.frame;
        match action {
            Action::Output { .. } | Action::Group(_) => {
                self.emit(&packet.frame, packet.context, packet.queue, action);
            }
            Action::SetQueue(queue) => packet.queue = queue,
            Action::SetField(Field::TunnelId, value) => packet.context.tunnel_id = value as u64,
            Action::SetField(field, value) => edit::set_field(frame, field, value),
            Action::PushVlan(ethertype) => edit::push_vlan(frame, ethertype),
            Action::PopVlan => edit::pop_vlan(frame),
            Action::PushMpls(ethertype) => edit::push_mpls(frame, ethertype),
            Action::PopMpls(ethertype) => edit::pop_mpls(frame, ethertype),
            Action::PushPbb(ethertype) => edit::push_pbb(frame, ethertype),
            Action::PopPbb => edit::pop_pbb(frame),
            Action::CopyTtlOut => edit::copy_ttl_out(frame),
            Action::CopyTtlIn => edit::copy_ttl_in(frame),
            Action::SetMplsTtl(ttl) => edit::set_mpls_ttl(frame, ttl),
            Action::SetNwTtl(ttl) => edit::set_nw_ttl(frame, ttl),
            Action::DecMplsTtl | Action::DecNwTtl => {
                let is_ip = action == Action::DecNwTtl;
                let ttl = if is_ip { edit::dec_nw_ttl(frame) } else { edit::dec_mpls_ttl(frame) };
                if ttl == Ttl::Invalid {
                    self.invalid_ttl(&packet.frame, packet.context);
                    return Step::Stop;
                }
            }
        }
        Step::Go
    }

    /// §5.12: such a packet is not forwarded; controllers may want to know.
    pub(crate) fn invalid_ttl(&mut self, frame: &[u8], context: PipelineFields) {
        self.packet_in(frame, context, Some(PacketInReason::InvalidTtl), port::NO_BUFFER);
        self.drop(DropReason::InvalidTtl);
    }

    /// Sends a copy of the frame to a port or a group.
    pub(crate) fn emit(&mut self, frame: &[u8], context: PipelineFields, queue: u32, action: Action) {
        let program = self.program;
        let (to, max_len) = match action {
            Action::Output { port, max_len } => (port, max_len),
            Action::Group(id) => return self.group(frame, context, queue, id),
            _ => return,
        };
        match to {
            port::CONTROLLER => self.packet_in(frame, context, None, max_len),
            port::IN_PORT => self.send(frame, queue, context.in_port),
            port::ALL | port::FLOOD => {
                self.send_to_others(frame, queue, context.in_port, None);
            }
            port::NORMAL => {
                let may_send = |number| program.ports.get(number).1 & flags::SENDS != 0;
                match program.normal.forward(self.now, context.in_port, frame, may_send) {
                    ForwardingDecision::Port(number) => self.send(frame, queue, number),
                    ForwardingDecision::Flood => {
                        let local = Some(port::LOCAL).filter(|number| may_send(*number));
                        self.send_to_others(frame, queue, context.in_port, local);
                    }
                    ForwardingDecision::Filter => self.drop(DropReason::NoOtherPort),
                }
            }
            _ if to == context.in_port => self.drop(DropReason::NoOtherPort),
            _ => self.send(frame, queue, to),
        }
    }

    /// Out of all ordinary ports that may send and one more, but not that of entry.
    fn send_to_others(&mut self, frame: &[u8], queue: u32, in_port: u32, more: Option<u32>) {
        let program = self.program;
        let all = || program.ports.flood.iter().copied().chain(more).filter(|number| *number != in_port);
        if all().next().is_none() {
            self.drop(DropReason::NoOtherPort);
        }
        all().for_each(|number| self.send(frame, queue, number));
    }

    fn send(&mut self, frame: &[u8], queue: u32, number: u32) {
        if !self.has_room() {
            return;
        }
        let (cell, bits) = self.program.ports.get(number);
        let cell = &self.mine.ports[cell];
        if bits & flags::SENDS != 0 {
            add(&cell.tx_packets, 1);
            add(&cell.tx_bytes, frame.len() as u64);
            self.outcomes.push(PacketOutcome::Output { port: number, queue, frame: frame.to_vec() });
        } else {
            if bits & flags::EXISTS != 0 {
                add(&cell.tx_dropped, 1);
            }
            self.drop(DropReason::Egress);
        }
    }

    fn packet_in(
        &mut self,
        frame: &[u8],
        context: PipelineFields,
        reason: Option<PacketInReason>,
        max_len: u16,
    ) {
        let (_, bits) = self.program.ports.get(context.in_port);
        if bits & flags::NO_PACKET_IN != 0 {
            return self.drop(DropReason::NoPacketIn);
        }
        if !self.has_room() {
            return;
        }
        let (is_miss, cookie) =
            self.rule().map_or((false, u64::MAX), |rule| (rule.rank.is_table_miss(), rule.cookie));
        let usual = if is_miss { PacketInReason::NoMatch } else { PacketInReason::Action };
        self.outcomes.push(PacketOutcome::Controller(PacketIn {
            reason: reason.unwrap_or(usual),
            table_id: self.table_id,
            cookie,
            max_len,
            context,
            frame: frame.to_vec(),
        }));
    }

    /// §5.6: each chosen bucket gets its own copy.
    fn group(&mut self, frame: &[u8], context: PipelineFields, queue: u32, id: u32) {
        let program = self.program;
        let Some((group, choice)) = program.groups.get(&id) else { return self.drop(DropReason::NoBucket) };
        group.cell.count(frame.len());
        let chosen = choose(group, choice, frame);
        if chosen.is_empty() {
            return self.drop(DropReason::NoBucket);
        }
        for index in chosen {
            if !self.has_room() {
                return;
            }
            group.bucket_cells[index].count(frame.len());
            let before = self.outcomes.len();
            let mut copy = Packet { frame: frame.to_vec(), context, queue };
            for action in &group.actions[index] {
                if self.act(&mut copy, *action) == Step::Stop {
                    break;
                }
            }
            if self.outcomes.len() == before {
                self.drop(DropReason::NoOutput);
            }
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

/// The buckets a frame goes through.
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
