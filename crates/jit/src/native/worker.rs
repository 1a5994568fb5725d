//! A worker: runs the newest program on packets, one after the other, and counts in its own cells.

use super::code::EntryPoint;
use super::context::{Context, DONE, DROP, REASONS, TableView};
use crate::cells::add;
use crate::port_table::flags;
use crate::program::Program;
use crate::shared::{Shared, WorkerCells};
use crate::walk::{OwnCells, Walk};
use fastpath_plan::RuleNumber;
use fastpath_switch::execute::{self, Effects, Packet, perform};
use fastpath_switch::outcome::{DropReason, Learned, OUTCOMES_MAX};
use fastpath_switch::reason::ActionsIn;
use fastpath_switch::{Action, ActionSet, Connections, Key, PacketOutcome, PipelineFields};
use fastpath_units::Time;
use std::mem;
use std::ptr;
use std::sync::Arc;

/// The fate of a packet, after the outcomes in [`Worker::outcomes`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The frame, as it is now in the caller's buffer, leaves.
    Forward {
        /// The port.
        port: u32,
        /// The queue of the port.
        queue: u32,
    },
    /// The packet is dropped.
    Drop(DropReason),
    /// The outcomes are complete.
    Done,
}

/// Executes packets on one thread.
#[derive(Debug)]
#[repr(C)]
pub struct Worker {
    /// The first field, so that a pointer to one is a pointer to the other.
    pub(super) context: Context,
    cells: Arc<WorkerCells>,
    shared: Arc<Shared>,
    program: Arc<Program>,
    entry: EntryPoint,
    views: Vec<TableView>,
    outcomes: Vec<PacketOutcome>,
    /// The flows that packets have added and that were not taken yet.
    learned: Vec<Learned>,
    /// The resubmits of the packet so far.
    resubmits: usize,
    pub(super) set: ActionSet,
    /// The copy of the frame that the context points to, once an action needs one.
    copy: Vec<u8>,
    location: FrameLocation,
    /// The port of entry of the last packet, with its cell and flags.
    in_port: u32,
    in_cell: usize,
    in_flags: u8,
}

/// The location of the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FrameLocation {
    /// In the caller's buffer.
    Buffer,
    /// In the worker's copy.
    Copy,
}

// SAFETY: the pointers of the context and of the views point into what the worker's own program,
// cells and copy hold on the heap; they move with the worker.
unsafe impl Send for Worker {}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, cells: Arc<WorkerCells>) -> Worker {
        let program = shared.newest();
        let context = Context {
            frame: ptr::null_mut(),
            len: 0,
            now: 0,
            in_port: 0,
            metadata: 0,
            tunnel: 0,
            queue: 0,
            dirty: 0,
            emitted: 0,
            row: ptr::null(),
            cell: ptr::null(),
            key: Key::EMPTY,
            tables: ptr::null(),
            table_cells: cells.tables.as_ptr(),
            port_cells: cells.ports.as_ptr(),
            port_flags: ptr::null(),
        };
        let entry = program.code.entry();
        let mut worker = Worker {
            context,
            cells,
            shared,
            program,
            entry,
            views: Vec::new(),
            outcomes: Vec::new(),
            learned: Vec::new(),
            resubmits: 0,
            set: ActionSet::default(),
            copy: Vec::new(),
            location: FrameLocation::Buffer,
            in_port: 0,
            in_cell: 0,
            in_flags: 0,
        };
        worker.load_program();
        worker
    }

    /// Begins a burst at `now`. The present state of the switch is in force for it.
    #[inline]
    pub fn begin(&mut self, now: Time) {
        self.context.now = now.as_ps();
        if self.shared.is_newer(&self.program) {
            self.program = self.shared.newest();
            self.load_program();
        }
    }

    /// Returns the connections that actions track.
    pub fn connections(&self) -> &Connections {
        &self.program.connections
    }

    /// Executes a frame that arrived on `in_port`. The frame is edited in place as long as its
    /// length stays the same.
    #[inline]
    pub fn run(&mut self, in_port: u32, frame: &mut [u8]) -> Fate {
        if !self.outcomes.is_empty() {
            self.forget();
        }
        if in_port != self.in_port {
            self.enter_by(in_port);
        }
        if self.in_flags & (flags::RECEIVES | flags::MIRRORED) != flags::RECEIVES {
            return self.run_unusual(frame);
        }
        self.execute(frame)
    }

    /// Drops what was left of the outcomes of the packet before.
    #[cold]
    fn forget(&mut self) {
        self.outcomes.clear();
    }

    /// Executes a frame of a port that receives none, or of a switch with mirrors.
    #[cold]
    fn run_unusual(&mut self, frame: &mut [u8]) -> Fate {
        let cell = &self.cells.ports[self.in_cell];
        if self.in_flags & flags::RECEIVES == 0 {
            if self.in_flags & flags::EXISTS != 0 {
                add(&cell.rx_dropped, 1);
            }
            return Fate::Drop(DropReason::Ingress);
        }
        if self.program.bridging.is_mirror_output(self.in_port) {
            add(&cell.rx_packets, 1);
            add(&cell.rx_bytes, frame.len() as u64);
            return Fate::Drop(DropReason::MirrorPort);
        }
        let arrived = frame.to_vec();
        match self.execute(frame) {
            Fate::Forward { port, queue } => {
                self.outcomes.push(PacketOutcome::Output { port, queue, frame: frame.to_vec() });
            }
            Fate::Drop(reason) => self.outcomes.push(PacketOutcome::Drop(reason)),
            Fate::Done => {}
        }
        let in_port = self.in_port;
        self.walk(0, RuleNumber::NONE).mirror(in_port, &arrived);
        Fate::Done
    }

    /// Executes a frame of a port that receives.
    #[inline]
    fn execute(&mut self, frame: &mut [u8]) -> Fate {
        let cell = &self.cells.ports[self.in_cell];
        add(&cell.rx_packets, 1);
        add(&cell.rx_bytes, frame.len() as u64);
        let context = &mut self.context;
        context.frame = frame.as_mut_ptr();
        context.len = frame.len() as u64;
        (context.metadata, context.tunnel, context.queue) = (0, 0, 0);
        (context.dirty, context.emitted) = (0, 0);
        self.resubmits = 0;
        let entry = self.entry;
        // SAFETY: the entry point belongs to the code of `self.program`, which lives during this
        // call. The context points to a frame that this function borrows exclusively, and holds its
        // length. Its other pointers were set by `load_program` from what `self.program` and
        // `self.cells` hold. The pointer passed is derived from an exclusive borrow of the whole
        // worker.
        let answer = unsafe { entry.call((&raw mut *self).cast()) };
        let is_plain =
            self.location == FrameLocation::Buffer && self.context.dirty | self.context.emitted == 0;
        if answer < DROP && is_plain {
            return Fate::Forward { port: answer as u32, queue: self.context.queue as u32 };
        }
        self.conclude(answer, frame)
    }

    /// Returns the fates of copies of the last packet, packet-ins and drops, in order. The next
    /// packet clears them.
    pub fn outcomes(&mut self) -> &mut Vec<PacketOutcome> {
        &mut self.outcomes
    }

    /// Takes how packets have changed flows.
    pub fn take_learned(&mut self) -> Vec<Learned> {
        mem::take(&mut self.learned)
    }

    /// Ends a packet that does not simply leave as it is.
    fn conclude(&mut self, answer: u64, frame: &mut [u8]) -> Fate {
        if self.context.dirty != 0 {
            self.set.clear();
        }
        let location = mem::replace(&mut self.location, FrameLocation::Buffer);
        match answer {
            DONE => Fate::Done,
            drop if drop & DROP != 0 && self.outcomes.len() < OUTCOMES_MAX => {
                Fate::Drop(REASONS[(drop & !DROP) as usize])
            }
            drop if drop & DROP != 0 => {
                self.walk(0, RuleNumber::NONE).drop(REASONS[(drop & !DROP) as usize]);
                Fate::Done
            }
            port => {
                let (port, queue) = (port as u32, self.context.queue as u32);
                if location == FrameLocation::Copy && self.copy.len() != frame.len() {
                    self.outcomes.push(PacketOutcome::Output { port, queue, frame: self.copy.clone() });
                    return Fate::Done;
                }
                if location == FrameLocation::Copy {
                    frame.copy_from_slice(&self.copy);
                }
                Fate::Forward { port, queue }
            }
        }
    }

    /// Points the context to the rows, cells and flags of the program.
    #[cold]
    fn load_program(&mut self) {
        let id = self.cells.id;
        self.entry = self.program.code.entry();
        // Tables that are not in the code are executed in Rust, which needs no view.
        let count = self.program.code.tables.last().map_or(0, |last| usize::from(*last) + 1);
        self.views.clear();
        self.views.extend(self.program.tables.iter().take(count).map(|table| TableView {
            rows: table.base.rows.as_ptr(),
            cells: table.base.cells[id].as_ptr(),
            changed: u64::from(!table.plan.is_settled() || table.plan.has_clauses()),
        }));
        self.context.tables = self.views.as_ptr();
        self.context.port_flags = self.program.ports.flags.as_ptr();
        self.enter_by(self.in_port);
    }

    #[cold]
    fn enter_by(&mut self, in_port: u32) {
        (self.in_cell, self.in_flags) = self.program.ports.get(in_port);
        self.in_port = in_port;
        self.context.in_port = in_port.into();
    }

    pub(super) fn id(&self) -> usize {
        self.cells.id
    }

    pub(super) fn program(&self) -> Arc<Program> {
        Arc::clone(&self.program)
    }

    /// Returns the frame as it is now.
    pub(super) fn frame(&self) -> &[u8] {
        // SAFETY: during a packet the context points to the caller's buffer or to `self.copy`, and
        // `len` is its length. Generated code, which also writes there, does not run while Rust
        // does.
        unsafe { std::slice::from_raw_parts(self.context.frame, self.context.len as usize) }
    }

    /// Returns the frame as it is now, with the key for writing.
    pub(super) fn frame_and_key(&mut self) -> (&[u8], &mut Key) {
        // SAFETY: as for `frame`; neither buffer is part of the context.
        let frame = unsafe { std::slice::from_raw_parts(self.context.frame, self.context.len as usize) };
        (frame, &mut self.context.key)
    }

    /// Returns the frame as it is now, for writing.
    pub(super) fn frame_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `frame`; both buffers may be written.
        unsafe { std::slice::from_raw_parts_mut(self.context.frame, self.context.len as usize) }
    }

    /// Takes the packet for execution in Rust; [`Worker::put_packet`] puts it back.
    pub(super) fn take_packet(&mut self) -> Packet {
        let mut frame = mem::take(&mut self.copy);
        if self.location == FrameLocation::Buffer {
            frame.clear();
            frame.extend_from_slice(self.frame());
        }
        let Context { in_port, metadata, tunnel, queue, .. } = self.context;
        let actset_output = self.set.output();
        let context = PipelineFields {
            metadata,
            tunnel_id: tunnel,
            actset_output,
            ..PipelineFields::of_port(in_port as u32)
        };
        Packet { frame, context, queue: queue as u32, ..Packet::default() }
    }

    pub(super) fn put_packet(&mut self, packet: Packet) {
        self.copy = packet.frame;
        self.location = FrameLocation::Copy;
        let context = &mut self.context;
        (context.frame, context.len) = (self.copy.as_mut_ptr(), self.copy.len() as u64);
        (context.metadata, context.tunnel) = (packet.context.metadata, packet.context.tunnel_id);
        context.queue = packet.queue.into();
        context.emitted = self.outcomes.len() as u64;
    }

    /// Puts back a packet that is unchanged: the frame stays where it is.
    pub(super) fn give_back(&mut self, packet: Packet) {
        // If the frame was in the copy, this is the same memory again.
        self.copy = packet.frame;
        self.context.emitted = self.outcomes.len() as u64;
    }

    /// Returns whether the frame is still in the caller's buffer and equal to that of `packet`.
    pub(super) fn is_unchanged(&self, packet: &Packet) -> bool {
        self.location == FrameLocation::Buffer && packet.frame == self.frame()
    }

    pub(super) fn take_set(&mut self) -> ActionSet {
        mem::take(&mut self.set)
    }

    pub(super) fn put_set(&mut self, set: ActionSet) {
        self.set = set;
        self.context.dirty = 1;
    }

    /// Returns the execution in Rust, at a rule.
    pub(super) fn walk(&mut self, table_id: u8, found: RuleNumber) -> Walk<'_> {
        let WorkerCells { id, tables, ports } = &*self.cells;
        Walk {
            program: &self.program,
            cells: OwnCells { worker: *id, tables, ports },
            now: Time::from_ps(self.context.now),
            outcomes: &mut self.outcomes,
            table_id,
            found,
            set: ActionSet::default(),
            actions_in: ActionsIn::Flow,
            learned: &mut self.learned,
            depth: 0,
            resubmits: &mut self.resubmits,
        }
    }

    /// Executes in Rust, at a rule, with the action set.
    pub(super) fn with_set(&mut self, table_id: u8, found: RuleNumber, run: impl FnOnce(&mut Walk<'_>)) {
        let set = self.take_set();
        let mut walk = Walk { set, ..self.walk(table_id, found) };
        run(&mut walk);
        let set = walk.set;
        self.put_set(set);
    }

    /// Executes an output or a group action: the packet itself stays as it is.
    pub(super) fn emit(&mut self, table: u8, found: RuleNumber, action: Action) {
        let mut packet = self.take_packet();
        // Sending a copy never ends the packet.
        let _ = perform(&action, &mut packet, &mut self.walk(table, found));
        self.give_back(packet);
    }

    /// Ends a packet whose TTL is invalid.
    pub(super) fn invalid_ttl(&mut self, table: u8, found: RuleNumber) {
        let packet = self.take_packet();
        execute::invalid_ttl(&packet, &mut self.walk(table, found));
        self.give_back(packet);
    }
}
