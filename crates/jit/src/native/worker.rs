//! A worker: runs the newest program on packets, one after the other, and counts for itself.

use super::code::EntryPoint;
use super::context::{Context, DONE, DROP, REASONS, TableView};
use crate::cells::add;
use crate::live::{Shared, Station};
use crate::program::{Program, flags};
use crate::walk::{Mine, Walk};
use fastpath_switch::execute::{self, Effects, Packet, perform};
use fastpath_switch::interp::{DropReason, OUTCOMES_MAX};
use fastpath_switch::plan::RuleNumber;
use fastpath_switch::{Action, ActionSet, PacketOutcome, PipelineFields};
use fastpath_units::Time;
use std::mem;
use std::ptr;
use std::sync::Arc;

/// What became of a packet, after the outcomes that [`Worker::outcomes`] holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The frame as it now lies in the caller's buffer leaves.
    Forward {
        /// By this port.
        port: u32,
        /// From this queue of the port.
        queue: u32,
    },
    /// Nothing goes on from here.
    Drop(DropReason),
    /// The outcomes say all.
    Done,
}

/// Executes packets on one thread.
#[derive(Debug)]
#[repr(C)]
pub struct Worker {
    /// First, so that a pointer to the one is a pointer to the other.
    pub(super) context: Context,
    station: Arc<Station>,
    shared: Arc<Shared>,
    program: Arc<Program>,
    entry: EntryPoint,
    views: Vec<TableView>,
    outcomes: Vec<PacketOutcome>,
    set: ActionSet,
    /// The copy of the frame that the context points to, once an action has made one.
    copy: Vec<u8>,
    location: FrameLocation,
    /// What is known of the port that the last packet came in by.
    in_port: u32,
    in_cell: usize,
    in_flags: u8,
}

/// Where the frame is.
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
    pub(crate) fn new(shared: Arc<Shared>, station: Arc<Station>) -> Worker {
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
            words: [0; 16],
            tables: ptr::null(),
            table_cells: station.tables.as_ptr(),
            port_cells: station.ports.as_ptr(),
            port_flags: ptr::null(),
        };
        let entry = program.code.entry();
        let mut worker = Worker {
            context,
            station,
            shared,
            program,
            entry,
            views: Vec::new(),
            outcomes: Vec::new(),
            set: ActionSet::default(),
            copy: Vec::new(),
            location: FrameLocation::Buffer,
            in_port: 0,
            in_cell: 0,
            in_flags: 0,
        };
        worker.adopt();
        worker
    }

    /// Begins a burst at `now`: what the switch has become by now is in force for it.
    #[inline]
    pub fn begin(&mut self, now: Time) {
        self.context.now = now.as_ps();
        if self.shared.is_newer(&self.program) {
            self.program = self.shared.newest();
            self.adopt();
        }
    }

    /// Sends a frame that came in by `in_port` through the tables. The frame is edited in place as
    /// long as its length stays.
    #[inline]
    pub fn run(&mut self, in_port: u32, frame: &mut [u8]) -> Fate {
        self.outcomes.clear();
        if in_port != self.in_port {
            self.enter_by(in_port);
        }
        let cell = &self.station.ports[self.in_cell];
        if self.in_flags & flags::RECEIVES == 0 {
            if self.in_flags & flags::EXISTS != 0 {
                add(&cell.rx_dropped, 1);
            }
            return Fate::Drop(DropReason::Ingress);
        }
        add(&cell.rx_packets, 1);
        add(&cell.rx_bytes, frame.len() as u64);
        let context = &mut self.context;
        context.frame = frame.as_mut_ptr();
        context.len = frame.len() as u64;
        (context.metadata, context.tunnel, context.queue) = (0, 0, 0);
        (context.dirty, context.emitted) = (0, 0);
        let entry = self.entry;
        // SAFETY: the entry belongs to the code of `self.program`, which lives as long as this
        // call. The context points to a frame that this function borrows exclusively and says its
        // length; its other pointers were set by `adopt` from what `self.program` and
        // `self.station` hold. The pointer passed is derived from the whole worker.
        let answer = unsafe { entry.call((&raw mut *self).cast()) };
        let is_plain =
            self.location == FrameLocation::Buffer && self.context.dirty | self.context.emitted == 0;
        if answer < DROP && is_plain {
            return Fate::Forward { port: answer as u32, queue: self.context.queue as u32 };
        }
        self.conclude(answer, frame)
    }

    /// What became of copies of the last packet, packets for the controllers, and drops, in order.
    /// Taken or not, they are gone with the next packet.
    pub fn outcomes(&mut self) -> &mut Vec<PacketOutcome> {
        &mut self.outcomes
    }

    /// The end of a packet that did not just leave.
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

    /// Points the context to what the program holds.
    #[cold]
    fn adopt(&mut self) {
        let id = self.station.id;
        self.entry = self.program.code.entry();
        // Tables that are not in the code are executed in Rust, which needs no view.
        let count = self.program.code.tables.last().map_or(0, |last| usize::from(*last) + 1);
        self.views.clear();
        self.views.extend(self.program.tables.iter().take(count).map(|table| TableView {
            rows: table.base.rows.as_ptr(),
            cells: table.base.cells[id].as_ptr(),
            changed: u64::from(!table.plan.is_settled()),
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
        self.station.id
    }

    pub(super) fn program(&self) -> Arc<Program> {
        Arc::clone(&self.program)
    }

    /// The frame as it is now.
    pub(super) fn frame(&self) -> &[u8] {
        // SAFETY: while a packet is under way the context points to the caller's buffer or to
        // `self.copy`, and `len` is its length; generated code, which writes there too, does not
        // run while Rust does.
        unsafe { std::slice::from_raw_parts(self.context.frame, self.context.len as usize) }
    }

    /// The frame as it is now, to write.
    pub(super) fn frame_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `frame`; both places may be written.
        unsafe { std::slice::from_raw_parts_mut(self.context.frame, self.context.len as usize) }
    }

    /// The packet as Rust executes it; [`Worker::put_packet`] ends that.
    pub(super) fn take_packet(&mut self) -> Packet {
        let mut frame = mem::take(&mut self.copy);
        if self.location == FrameLocation::Buffer {
            frame.clear();
            frame.extend_from_slice(self.frame());
        }
        let Context { in_port, metadata, tunnel, queue, .. } = self.context;
        let context = PipelineFields { in_port: in_port as u32, metadata, tunnel_id: tunnel };
        Packet { frame, context, queue: queue as u32 }
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

    /// As [`Worker::put_packet`] for a packet that is as it was: the frame stays where it is.
    pub(super) fn give_back(&mut self, packet: Packet) {
        // When the copy was the location of the frame, this is the same memory again.
        self.copy = packet.frame;
        self.context.emitted = self.outcomes.len() as u64;
    }

    /// Whether the frame still is in the caller's buffer, and is what `packet` has.
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

    /// Execution in Rust, at a rule.
    pub(super) fn walk(&mut self, table_id: u8, found: RuleNumber) -> Walk<'_> {
        let Station { id, tables, ports } = &*self.station;
        Walk {
            program: &self.program,
            mine: Mine { worker: *id, tables, ports },
            now: Time::from_ps(self.context.now),
            outcomes: &mut self.outcomes,
            table_id,
            found,
        }
    }

    /// Executes an output or a group action: the packet itself stays as it is.
    pub(super) fn emit(&mut self, table: u8, found: RuleNumber, action: Action) {
        let mut packet = self.take_packet();
        // Sending a copy never ends the packet.
        let _ = perform(action, &mut packet, &mut self.walk(table, found));
        self.give_back(packet);
    }

    /// Ends a packet whose TTL could not be counted down.
    pub(super) fn invalid_ttl(&mut self, table: u8, found: RuleNumber) {
        let packet = self.take_packet();
        execute::invalid_ttl(&packet, &mut self.walk(table, found));
        self.give_back(packet);
    }
}
