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

use crate::action::{Action, ActionSet, Controller};
use crate::execute::effects::{Ending, Packet};
use crate::flow::Instructions;
use crate::outcome::{PacketIn, PacketInReason};
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
    pub steps: Vec<Step>,
}

/// What remains of one flow, or of a list of actions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Step {
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
    flow: FlowName,
    controller: Controller,
    steps: Vec<Step>,
}

impl FlowName {
    /// Returns the reason of packet-ins for which the action gives none.
    pub fn usual_reason(&self) -> PacketInReason {
        if self.is_miss { PacketInReason::NoMatch } else { PacketInReason::Action }
    }
}

impl Paused {
    /// Adds a step. Only the last may be empty: the action set is executed in the name of its flow.
    fn keep(&mut self, step: Step) {
        self.steps.pop_if(|last| last.rest == Instructions::default());
        self.steps.push(step);
    }
}

impl Packet {
    /// Pauses the packet at an action of this flow.
    pub(crate) fn pause(&mut self, flow: FlowName, controller: Controller) {
        self.paused = Some(Box::new(Paused { flow, controller, steps: Vec::new() }));
        self.ending = Ending::Paused;
    }

    /// Keeps the rest of a list of actions of this flow, and the instructions behind the list, if
    /// the packet is paused.
    pub fn keep_rest(&mut self, flow: FlowName, actions: &[Action], after: Option<&Instructions>) {
        let Some(paused) = &mut self.paused else { return };
        let after = after.map(|all| Instructions { meter: None, apply: Vec::new(), ..all.clone() });
        let rest = Instructions { apply: actions.to_vec(), ..after.unwrap_or_default() };
        paused.keep(Step { flow, rest });
    }

    /// Keeps a step that comes after those so far, if the packet is paused.
    pub(crate) fn keep(&mut self, step: &Step) {
        if let Some(paused) = &mut self.paused {
            paused.keep(step.clone());
        }
    }

    /// Returns the packet-in with which a paused packet ends, given its action set; `None` if it is
    /// not paused.
    pub fn take_paused(&mut self, set: &ActionSet) -> Option<PacketIn> {
        let Paused { flow, controller, steps } = *self.paused.take()?;
        let Controller { max_len, reason, id, userdata, .. } = controller;
        let set = set.all().cloned().collect();
        let (queue, stack, translated) = (self.queue, self.stack.clone(), self.translated);
        Some(PacketIn {
            reason,
            table_id: flow.table_id,
            cookie: flow.cookie,
            max_len,
            context: self.context.reported(),
            controller: id,
            userdata,
            continuation: Some(Box::new(Continuation { queue, stack, translated, set, steps })),
            frame: self.frame.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Extension;
    use crate::extension::Bits;
    use crate::flow::{ClearActions, FlowMod, WriteMetadata};
    use crate::outcome::PacketOutcome;
    use crate::{Field, Limits, Match, Port, Switch, interp, port};
    use fastpath_units::{Rng, Time};
    use std::sync::Arc;

    const TABLES: u8 = 4;

    fn extension(extension: Extension) -> Action {
        Action::Extension(Arc::new(extension))
    }

    fn pause() -> Extension {
        let (max_len, reason) = (port::NO_BUFFER, PacketInReason::Action);
        Extension::Controller(Controller {
            max_len,
            reason,
            id: 0,
            userdata: Vec::new(),
            meter: None,
            pauses: true,
        })
    }

    /// Returns actions for a flow of this table.
    fn list(rng: &mut Rng, table: u8, depth: u8) -> Vec<Action> {
        let one = |rng: &mut Rng| match rng.below(10) {
            0 | 1 => extension(pause()),
            2 => Action::output(2 + rng.below(3) as u32),
            3 => extension(Extension::Move {
                from: Bits::register(0),
                to: Bits { width: 32, ..Bits::all(Field::EthSrc) },
            }),
            4 => Action::SetField(Field::EthDst, rng.below(1 << 40).into()),
            5 => extension(Extension::Push(Bits { width: 32, ..Bits::all(Field::EthDst) })),
            6 => extension(Extension::Pop(Bits::register(0))),
            7 if depth < 2 => extension(Extension::Clone(list(rng, table, depth + 1))),
            8 if rng.below(4) == 0 => extension(Extension::Exit),
            _ if table + 1 < TABLES => {
                let later = table + 1 + rng.below(u64::from(TABLES - table - 1)) as u8;
                extension(Extension::Resubmit { in_port: None, table: Some(later), is_original: false })
            }
            _ => Action::SetQueue(rng.below(3) as u32),
        };
        (0..rng.below(6)).map(|_| one(rng)).collect()
    }

    fn instructions(rng: &mut Rng, table: u8) -> Instructions {
        Instructions {
            apply: list(rng, table, 0),
            clear: if rng.below(5) == 0 { ClearActions::Clear } else { ClearActions::Keep },
            write: if rng.below(2) == 0 { vec![Action::output(2 + rng.below(3) as u32)] } else { Vec::new() },
            metadata: (rng.below(3) == 0).then_some(WriteMetadata { value: 3, mask: 7 }),
            goto: (table + 1 < TABLES && rng.below(2) == 0).then_some(table + 1),
            ..Instructions::default()
        }
    }

    fn without_pauses(actions: &[Action]) -> Vec<Action> {
        let kept = |action: &Action| match action {
            Action::Extension(one) if **one == pause() => None,
            Action::Extension(one) => match &**one {
                Extension::Clone(inner) => Some(extension(Extension::Clone(without_pauses(inner)))),
                _ => Some(action.clone()),
            },
            _ => Some(action.clone()),
        };
        actions.iter().filter_map(kept).collect()
    }

    /// Returns the outputs of a packet, sorted, and how often it was resumed.
    fn outputs(switch: &mut Switch, first: Vec<PacketOutcome>) -> (Vec<(u32, u32, Vec<u8>)>, usize) {
        let (mut found, mut waiting, mut resumed) = (Vec::new(), first, 0);
        while let Some(outcome) = waiting.pop() {
            match outcome {
                PacketOutcome::Output { port, queue, frame } => found.push((port, queue, frame)),
                PacketOutcome::Controller(packet) => {
                    let rest = packet.continuation.expect("it is paused");
                    let outcomes = interp::resume(switch, Time::ZERO, &packet.context, &rest, &packet.frame);
                    waiting.extend(outcomes);
                    resumed += 1;
                }
                PacketOutcome::Learn(_) | PacketOutcome::Drop(_) => {}
            }
        }
        found.sort();
        (found, resumed)
    }

    #[test]
    fn a_packet_that_is_resumed_at_once_has_the_outputs_of_one_that_is_not_paused() {
        let (mut all, mut most) = (0, 0);
        for seed in 0..2000 {
            let mut rng = Rng::new(seed);
            let mut switch = Switch::new(Limits { tables: TABLES, ..Limits::default() });
            (1..=4).for_each(|number| switch.set_port(number, Port::up()));
            let mut plain = switch.clone();
            for table in 0..TABLES {
                let what = instructions(&mut rng, table);
                let stripped = Instructions { apply: without_pauses(&what.apply), ..what.clone() };
                switch.flow_mod(Time::ZERO, &FlowMod::add(table, 1, Match::any(), what)).unwrap();
                plain.flow_mod(Time::ZERO, &FlowMod::add(table, 1, Match::any(), stripped)).unwrap();
            }
            let frame: Vec<u8> = (0..60).collect();
            let first = interp(&mut switch, Time::ZERO, 1, &frame);
            let (found, resumed) = outputs(&mut switch, first);
            let wanted = interp(&mut plain, Time::ZERO, 1, &frame);
            assert_eq!(found, outputs(&mut plain, wanted).0, "seed {seed}");
            all += usize::from(resumed > 0 && !found.is_empty());
            most = most.max(resumed);
        }
        assert!(all > 300 && most > 3, "{all} packets were resumed, one {most} times");
    }
}
