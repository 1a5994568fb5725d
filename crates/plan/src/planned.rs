//! The executor that interprets packets, with flows found by a plan.

use crate::{Plan, TablePlan};
use fastpath_switch::{Executor, Outbox, PacketOutcome, Switch, Verdict, interp_by};
use fastpath_units::Time;

/// The executor that interprets packets, with flows found by a plan.
#[derive(Clone, Debug)]
pub struct Planned {
    plan: Plan,
}

impl Planned {
    /// Makes an executor for a switch in its present state.
    pub fn new(switch: &mut Switch) -> Planned {
        Planned { plan: Plan::new(switch) }
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}

impl Executor for Planned {
    fn update(&mut self, switch: &mut Switch) {
        for id in self.plan.update(switch) {
            // The base is rebuilt whenever an eighth of the rules has changed, so loading a table
            // of n rules costs O(n log n).
            let plan = self.plan.table(id);
            if plan.delta.len() > plan.rules.len() / 8 {
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
        let outcomes = interp_by(&self.plan, switch, now, in_port, frame);
        outcomes.iter().for_each(|outcome| out.push_outcome(outcome));
        if outcomes.iter().any(|outcome| matches!(outcome, PacketOutcome::Learn(_))) {
            self.update(switch);
        }
        Verdict::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_switch::execute::OutboxEntry;
    use fastpath_switch::outcome::DropReason;
    use fastpath_switch::{Action, FlowMod, Instructions, Limits, Match, Port, port};

    #[test]
    fn the_planned_executor_and_the_interpreter_agree_also_after_a_change() {
        let mut switch = Switch::new(Limits::default());
        (1..=2).for_each(|number| switch.set_port(number, Port::up()));
        let mut executor = Planned::new(&mut switch);
        let mut out = Outbox::default();
        let mut frame = [0u8; 60];
        assert_eq!(executor.execute(&mut switch, Time::ZERO, 1, &mut frame, &mut out), Verdict::Done);
        let actions = [Action::output(2), Action::output(port::CONTROLLER)];
        let rule = FlowMod::add(0, 1, Match::any(), Instructions::apply(actions));
        switch.flow_mod(Time::ZERO, &rule).unwrap();
        executor.update(&mut switch);
        executor.execute(&mut switch, Time::ZERO, 1, &mut frame, &mut out);
        let entries: Vec<_> = out.entries().map(|(entry, frame)| (entry.clone(), frame.len())).collect();
        assert_eq!(
            entries[..2],
            [(OutboxEntry::Drop(DropReason::TableMiss), 0), (OutboxEntry::Output { port: 2, queue: 0 }, 60)]
        );
        assert!(matches!(&entries[2], (OutboxEntry::Controller(head), 60) if head.max_len == 0xffff));
        out.clear();
        assert!(out.is_empty());
    }
}
