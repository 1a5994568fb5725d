//! How a packet pauses: what remains of each list of actions around the pause is kept, and all of
//! it ends in a packet-in.

use super::effects::{Ending, Packet};
use crate::action::{Action, ActionSet, Controller};
use crate::continuation::{Continuation, FlowName, Paused, PausedStep};
use crate::flow::Instructions;
use crate::outcome::PacketIn;

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
        paused.keep(PausedStep { flow, rest });
    }

    /// Keeps a step that comes after those so far, if the packet is paused.
    pub(crate) fn keep(&mut self, step: &PausedStep) {
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
mod tests;
