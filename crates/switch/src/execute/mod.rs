//! How a data path runs a switch: the executor that takes packets through the tables, and what it
//! answers.
//!
//! ```text
//!  off the fast path:  flow-mod ─▶ Switch ─▶ Executor::update        Executor::job ─▶ (builder) ─▶ Executor::finish
//!  a packet:           frame ─▶ Executor::execute ─▶ Verdict (the frame as edited leaves) and Outbox (all else)
//! ```
//!
//! A switch and its executor stand behind one lock, taken once a burst. So an executor may use the
//! groups, meters and ports of the switch directly, and a change is in force for the next burst
//! once `update` has returned. [`Planned`] is the executor that interprets with flows found by a
//! plan; whatever is faster must give the same answers and, after [`Executor::credit`], the same
//! counters.

mod perform;

pub use perform::{Effects, FloodScope, Packet, invalid_ttl, output, perform};

use crate::flow::Rank;
use crate::interp::{DropReason, PacketInReason, PacketOutcome, interp_by};
use crate::key::PipelineFields;
use crate::plan::{Plan, TablePlan};
use crate::switch::Switch;
use fastpath_units::Time;
use std::any::Any;
use std::ops::Range;

/// A slow piece of work that an executor wants done without the lock; its result goes to
/// [`Executor::finish`].
pub type BackgroundJob = Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>;

/// What takes packets through the tables of a switch.
pub trait Executor: Send {
    /// Takes over what changed in the switch. Called after every change, before the next packet.
    fn update(&mut self, switch: &mut Switch);

    /// Processes a frame that arrived on `in_port` at `now`. It may be edited in place; what leaves
    /// otherwise than as the edited frame goes to `out`. Every packet ends in a
    /// [`Verdict::Forward`] or at least one post in `out`.
    fn execute(
        &mut self,
        switch: &mut Switch,
        now: Time,
        in_port: u32,
        frame: &mut [u8],
        out: &mut Outbox,
    ) -> Verdict;

    /// Adds what it counted aside to the counters of the switch. Called before counters or
    /// deadlines are looked at.
    fn credit(&mut self, switch: &mut Switch) {
        let _ = switch;
    }

    /// As [`Executor::credit`], for whoever looks at the counters of these flows, by table and
    /// rank, and no others.
    fn credit_flows(&mut self, switch: &mut Switch, flows: &[(u8, Rank)]) {
        let _ = flows;
        self.credit(switch);
    }

    /// A job that would make it faster, if there is one and none is under way.
    fn job(&mut self, switch: &Switch) -> Option<BackgroundJob> {
        let _ = switch;
        None
    }

    /// Does a part of what is left to do, in less time than a change may take; false when there is
    /// nothing to do now.
    fn tidy(&mut self, switch: &mut Switch) -> bool {
        let _ = switch;
        false
    }

    /// Whether further changes had better wait for the job that is under way.
    fn is_behind(&self) -> bool {
        false
    }

    /// Takes the result of a job, which may be older than the last update; or answers with another
    /// job to be done first, whose result takes its place.
    fn finish(&mut self, switch: &mut Switch, result: Box<dyn Any + Send>) -> Option<BackgroundJob> {
        let _ = (switch, result);
        None
    }
}

/// What becomes of the frame that was executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// As it is now, it leaves by a port that may send. Its transmission is counted already.
    Forward {
        /// The port.
        port: u32,
        /// The queue of the port.
        queue: u32,
    },
    /// All there is to say is in the outbox.
    Done,
}

/// What a burst's packets left behind, in order; its memory is used again.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    posts: Vec<(OutboxEntry, Range<usize>)>,
}

/// One outcome; its frame is beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutboxEntry {
    /// A copy leaves by a port, counted already.
    Output {
        /// The port.
        port: u32,
        /// The queue of the port.
        queue: u32,
    },
    /// A copy goes to the controllers.
    Controller(PacketInHead),
    /// Nothing of it goes on.
    Drop(DropReason),
}

/// A packet-in but for its frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketInHead {
    /// Why.
    pub reason: PacketInReason,
    /// The table that sent it.
    pub table_id: u8,
    /// The cookie of the flow that sent it; all ones without one.
    pub cookie: u64,
    /// Bytes of the frame to send at most; 0xffff for all.
    pub max_len: u16,
    /// Port of entry, metadata and tunnel id.
    pub context: PipelineFields,
}

impl Outbox {
    /// Adds an outcome with a copy of the frame it is about; drops have none.
    pub fn post(&mut self, post: OutboxEntry, frame: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(frame);
        self.posts.push((post, start..self.bytes.len()));
    }

    /// Adds an outcome of the interpreter.
    pub fn put(&mut self, outcome: &PacketOutcome) {
        match outcome {
            PacketOutcome::Output { port, queue, frame } => {
                self.post(OutboxEntry::Output { port: *port, queue: *queue }, frame);
            }
            PacketOutcome::Controller(packet) => {
                let head = PacketInHead {
                    reason: packet.reason,
                    table_id: packet.table_id,
                    cookie: packet.cookie,
                    max_len: packet.max_len,
                    context: packet.context,
                };
                self.post(OutboxEntry::Controller(head), &packet.frame);
            }
            PacketOutcome::Drop(reason) => self.post(OutboxEntry::Drop(*reason), &[]),
        }
    }

    /// The outcomes and their frames, in order.
    pub fn posts(&self) -> impl ExactSizeIterator<Item = (&OutboxEntry, &[u8])> {
        self.posts.iter().map(|(post, frame)| (post, &self.bytes[frame.clone()]))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.posts.is_empty()
    }

    /// Forgets all outcomes.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.posts.clear();
    }
}

/// The interpreter with flows found by a plan.
#[derive(Clone, Debug)]
pub struct Planned {
    plan: Plan,
}

impl Planned {
    /// An executor for a switch as it is.
    pub fn new(switch: &mut Switch) -> Planned {
        Planned { plan: Plan::new(switch) }
    }

    /// The plan it goes by.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}

impl Executor for Planned {
    fn update(&mut self, switch: &mut Switch) {
        for id in self.plan.update(switch) {
            // While a table grows its base is made anew for each eighth, so that all of it costs
            // n·log n.
            let plan = self.plan.table(id);
            let (added, gone) = plan.changes();
            if added + gone > plan.rules().len() / 8 {
                let fresh = TablePlan::new(&switch.tables()[usize::from(id)]);
                self.plan.replace(id, fresh);
            }
        }
    }

    fn execute(
        &mut self,
        switch: &mut Switch,
        now: Time,
        in_port: u32,
        frame: &mut [u8],
        out: &mut Outbox,
    ) -> Verdict {
        interp_by(&self.plan, switch, now, in_port, frame).iter().for_each(|outcome| out.put(outcome));
        Verdict::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, FlowMod, Instructions, Match, Port};

    #[test]
    fn what_the_planned_executor_posts_is_what_the_interpreter_says_also_after_a_change() {
        let mut switch = Switch::new(crate::Limits::default());
        (1..=2).for_each(|number| switch.set_port(number, Port::up()));
        let mut executor = Planned::new(&mut switch);
        let mut out = Outbox::default();
        let mut frame = [0u8; 60];
        assert_eq!(executor.execute(&mut switch, Time::ZERO, 1, &mut frame, &mut out), Verdict::Done);
        let actions = [Action::output(2), Action::output(crate::port::CONTROLLER)];
        let rule = FlowMod::add(0, 1, Match::any(), Instructions::apply(actions));
        switch.flow_mod(Time::ZERO, &rule).unwrap();
        executor.update(&mut switch);
        executor.execute(&mut switch, Time::ZERO, 1, &mut frame, &mut out);
        let posts: Vec<_> = out.posts().map(|(post, frame)| (*post, frame.len())).collect();
        assert_eq!(
            posts[..2],
            [(OutboxEntry::Drop(DropReason::TableMiss), 0), (OutboxEntry::Output { port: 2, queue: 0 }, 60)]
        );
        assert!(matches!(posts[2], (OutboxEntry::Controller(head), 60) if head.max_len == 0xffff));
        out.clear();
        assert!(out.is_empty());
    }
}
