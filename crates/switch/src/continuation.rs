//! Paused packets (`controller(pause)`): what is kept of one, so that a controller can resume it.
//!
//! ```text
//!   pause ─▶ Paused ─ each list of actions that ends adds its rest ─▶ Continuation in a packet-in
//!                                                                          │ NXT_RESUME
//!   steps, from the innermost outwards ─▶ action set ◀── interp::resume ◀──┘
//! ```
//!
//! A pause ends the packet, or the copy of it that a `clone`, a bucket or a `ct` processes; other
//! copies go on.

use crate::action::{Action, Controller};
use crate::flow::Instructions;
use crate::reason::PacketInReason;
use fastpath_conntrack::CtState;

/// What is kept of a paused packet beside its frame and the fields that a packet-in reports.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Continuation {
    /// The queue of the port that it leaves by.
    pub queue: u32,
    /// What `push` put there, the top last.
    pub stack: Vec<u128>,
    /// How `ct` has translated it, and in which zone.
    pub translated: (u16, CtState),
    /// The action set.
    pub set: Vec<Action>,
    /// What remains to be executed, in order.
    pub steps: Vec<PausedStep>,
}

/// What remains of one flow, or of a list of actions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PausedStep {
    /// The flow.
    pub flow: FlowName,
    /// The actions that remain, and the instructions after them.
    pub rest: Instructions,
}

/// The flow that packet-ins name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowName {
    /// Its table.
    pub table_id: u8,
    /// Its cookie; all ones without a flow.
    pub cookie: u64,
    /// Whether it is the table-miss flow.
    pub is_miss: bool,
}

/// A packet that an action has paused, until all lists of actions around it have ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Paused {
    /// The flow that paused it.
    pub flow: FlowName,
    /// The action.
    pub controller: Controller,
    /// What remains to be executed, so far.
    pub steps: Vec<PausedStep>,
}

impl FlowName {
    /// Returns the reason of packet-ins for which the action gives none.
    pub fn usual_reason(&self) -> PacketInReason {
        if self.is_miss { PacketInReason::NoMatch } else { PacketInReason::Action }
    }
}

impl Paused {
    /// Adds a step. Only the last may be empty: the action set is executed in the name of its flow.
    pub(crate) fn keep(&mut self, step: PausedStep) {
        self.steps.pop_if(|last| last.rest == Instructions::default());
        self.steps.push(step);
    }
}
