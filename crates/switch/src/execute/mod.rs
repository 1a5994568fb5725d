//! How a data path runs a switch: the executor that sends packets through the tables, and its
//! answers.
//!
//! ```text
//!  a change:  flow-mod ─▶ Switch ─▶ Executor::update
//!  a rebuild: Executor::job ─▶ (another thread) ─▶ Executor::finish
//!  a packet:  frame ─▶ Executor::execute ─▶ Verdict (the edited frame leaves), Outbox (all else)
//!             or, on a data path that takes no lock, Forwarder::execute
//! ```
//!
//! A switch and its executor are behind one lock. An executor with a [`Forwarder`] gives it to the
//! data path, which executes packets beside changes. Otherwise the data path takes the lock once a
//! burst. In both cases a change is in force for the next burst once `update` has returned. The
//! simplest executor interprets. A faster one must give the same answers and, after
//! [`Executor::credit`], the same counters.

pub(crate) mod effects;
mod pause;
pub(crate) mod perform;

pub use effects::{Effects, Ending, FloodScope, Packet, PacketInRequest, output};
pub use perform::{invalid_ttl, perform};

use crate::continuation::Continuation;
use crate::flow::Rank;
use crate::key::PipelineFields;
use crate::outcome::{DropReason, Learned, PacketInReason, PacketOutcome};
use crate::switch::Switch;
use fastpath_units::Time;
use std::any::Any;
use std::ops::Range;

/// Slow work of an executor that runs without the lock. Its result goes to [`Executor::finish`].
pub type BackgroundJob = Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>;

/// Sends packets through the tables of a switch.
pub trait Executor: Send {
    /// Takes over what changed in the switch. Call it after every change, before the next packet.
    fn update(&mut self, switch: &mut Switch);

    /// Does what [`Executor::update`] does where only flows of these tables have changed since the
    /// last update, in a time that does not grow with the number of tables.
    fn update_flows(&mut self, switch: &mut Switch, tables: &[u8]) {
        let _ = tables;
        self.update(switch);
    }

    /// Executes a frame that arrived on `in_port` at `now`, and may edit it in place. Every other
    /// result goes to `out`. A packet ends in [`Verdict::Forward`] or at least one entry of `out`.
    fn execute(
        &mut self,
        switch: &mut Switch,
        now: Time,
        in_port: u32,
        frame: &mut [u8],
        out: &mut Outbox,
    ) -> Verdict;

    /// Returns what executes the packets of one thread without the switch and its lock: another one
    /// with each call, as many as the executor was made for. `None` if there are no more, or this
    /// executor needs the lock. After the first call [`Executor::execute`] is not called.
    fn forwarder(&mut self) -> Option<Box<dyn Forwarder>> {
        None
    }

    /// Returns whether frames sent to a controller reach one.
    fn has_controller(&self) -> bool {
        false
    }

    /// Returns whether memory of the executor waits until every forwarder has begun another burst.
    fn waits_for_forwarder(&self) -> bool {
        false
    }

    /// Adds the executor's own counts to the counters of the switch. Call it before counters or
    /// deadlines are read.
    fn credit(&mut self, switch: &mut Switch) {
        let _ = switch;
    }

    /// Adds part of the executor's own counts, in less time than a change may take. The first part,
    /// from [`CreditPosition::default`], has those of tables, ports, groups and meters. Returns
    /// where to continue; `None` after the last part. Counts made before the first part are all
    /// added.
    fn credit_part(&mut self, switch: &mut Switch, from: CreditPosition) -> Option<CreditPosition> {
        let _ = from;
        self.credit(switch);
        None
    }

    /// Does what [`Executor::credit`] does, but only for these flows, given by table and rank.
    fn credit_flows(&mut self, switch: &mut Switch, flows: &[(u8, Rank)]) {
        let _ = flows;
        self.credit(switch);
    }

    /// Returns work that would make the executor faster, if there is any and none is in progress.
    fn job(&mut self, switch: &Switch) -> Option<BackgroundJob> {
        let _ = switch;
        None
    }

    /// Does part of the pending maintenance, in less time than a change may take. Returns false if
    /// nothing is pending.
    fn tidy(&mut self, switch: &mut Switch) -> bool {
        let _ = switch;
        false
    }

    /// Returns whether further changes should wait for the job in progress.
    fn is_behind(&self) -> bool {
        false
    }

    /// Returns whether a job should start now, and not in a quiet moment.
    fn is_pressing(&self) -> bool {
        false
    }

    /// Takes over the result of a job, which may be older than the last update.
    fn finish(&mut self, switch: &mut Switch, result: Box<dyn Any + Send>) {
        let _ = (switch, result);
    }
}

/// Executes the packets of one thread, while other threads change the switch.
pub trait Forwarder: Send {
    /// Begins a burst at `now`. The newest state that [`Executor::update`] has published is in
    /// force for it.
    fn begin(&mut self, now: Time);

    /// Fetches what executing the frames of the burst reads into the cache, where that is worth it.
    fn prefetch(&self, _frames: &mut dyn Iterator<Item = &[u8]>) {}

    /// Executes a frame of the burst, as [`Executor::execute`] does.
    fn execute(&mut self, in_port: u32, frame: &mut [u8], out: &mut Outbox) -> Verdict;
}

/// How far an executor has added its counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CreditPosition {
    /// The part, as the executor numbers them; 0 is the first.
    pub part: usize,
    /// The position in it.
    pub position: usize,
}

/// The fate of the frame that was executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The frame, as edited, leaves by a port that may send. It is already counted as sent.
    Forward {
        /// The port.
        port: u32,
        /// The queue of the port.
        queue: u32,
    },
    /// All outcomes are in the outbox.
    Done,
}

/// The outcomes of a burst, in order, except forwarded frames. Its memory is reused.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    entries: Vec<(OutboxEntry, Range<usize>)>,
}

/// One outcome. The outbox holds its frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OutboxEntry {
    /// A copy leaves by a port; it is already counted as sent.
    Output {
        /// The port.
        port: u32,
        /// The queue of the port.
        queue: u32,
    },
    /// A copy is sent to the controllers.
    Controller(Box<PacketInHead>),
    /// The packet changes flows ([`Switch::learn`]). An [`Executor`] has done it; what a
    /// [`Forwarder`] leaves here is in force once it is done and the executor updated.
    Learn(Box<Learned>),
    /// The packet or copy is dropped.
    Drop(DropReason),
}

/// A packet-in without its frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketInHead {
    /// Why it is sent.
    pub reason: PacketInReason,
    /// The table whose flow sent it.
    pub table_id: u8,
    /// The cookie of that flow; all ones if no flow sent it.
    pub cookie: u64,
    /// The most bytes of the frame to send; 0xffff for all.
    pub max_len: u16,
    /// Port of entry, metadata and tunnel id.
    pub context: PipelineFields,
    /// The number of the controllers that it is for.
    pub controller: u16,
    /// Bytes for the controller.
    pub userdata: Vec<u8>,
    /// What is left to do for a packet that is paused.
    pub continuation: Option<Box<Continuation>>,
}

impl Outbox {
    /// Adds an outcome with a copy of its frame; a drop has none.
    pub fn push(&mut self, entry: OutboxEntry, frame: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(frame);
        self.entries.push((entry, start..self.bytes.len()));
    }

    /// Adds an outcome of the interpreter.
    pub fn push_outcome(&mut self, outcome: &PacketOutcome) {
        match outcome {
            PacketOutcome::Output { port, queue, frame } => {
                self.push(OutboxEntry::Output { port: *port, queue: *queue }, frame);
            }
            PacketOutcome::Controller(packet) => {
                let head = PacketInHead {
                    reason: packet.reason,
                    table_id: packet.table_id,
                    cookie: packet.cookie,
                    max_len: packet.max_len,
                    context: packet.context,
                    controller: packet.controller,
                    userdata: packet.userdata.clone(),
                    continuation: packet.continuation.clone(),
                };
                self.push(OutboxEntry::Controller(Box::new(head)), &packet.frame);
            }
            PacketOutcome::Learn(learned) => self.push(OutboxEntry::Learn(learned.clone()), &[]),
            PacketOutcome::Drop(reason) => self.push(OutboxEntry::Drop(*reason), &[]),
        }
    }

    /// Returns the outcomes and their frames, in order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&OutboxEntry, &[u8])> {
        self.entries.iter().map(|(entry, frame)| (entry, &self.bytes[frame.clone()]))
    }

    /// Returns the number of packets and copies whose fate it holds: all entries but flows to
    /// learn.
    pub fn fates(&self) -> usize {
        self.entries.iter().filter(|(entry, _)| !matches!(entry, OutboxEntry::Learn(_))).count()
    }

    /// Returns how packets change flows.
    pub fn learned(&self) -> impl Iterator<Item = &Learned> {
        self.entries.iter().filter_map(|(entry, _)| match entry {
            OutboxEntry::Learn(learned) => Some(&**learned),
            _ => None,
        })
    }

    /// Returns whether there is no outcome.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Removes all outcomes.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }
}
