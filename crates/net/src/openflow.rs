//! An OpenFlow switch as a node of a network: the switch of `fastpath-switch`, run at the time of
//! each frame.
//!
//! Interface `i` is port `i + 1`. The rules come from the topology. Unless the executor has a
//! controller, frames to one are dropped. Loops of OpenFlow switches are not blocked, because the
//! rules determine the paths.

use crate::fate::{NodeAction, Reason};
use crate::pool::{Frame, FramePool};
use fastpath_ofctl::{self as ofctl, RuleLine};
use fastpath_plan::Planned;
use fastpath_spec::{Node, rules};
use fastpath_switch::execute::OutboxEntry;
use fastpath_switch::{Executor, Outbox, Switch, Verdict};
use fastpath_units::Time;
use std::fmt;
use std::sync::Arc;

/// A function that creates the executor of a switch, given the name of its node. Worker threads
/// share it.
pub type MakeExecutor = dyn Fn(&str, &mut Switch) -> Box<dyn Executor> + Send + Sync;

/// Creates the executor of each OpenFlow node. The default executor interprets plans. All executors
/// have the same effect on packets.
#[derive(Clone, Default)]
pub struct Executors(Option<Arc<MakeExecutor>>);

/// An OpenFlow switch with its state.
pub(crate) struct OpenFlowNode {
    switch: Switch,
    executor: Box<dyn Executor>,
    out: Outbox,
}

impl Executors {
    /// Returns the default: executors that interpret plans ([`Planned`]).
    pub const fn planned() -> Executors {
        Executors(None)
    }

    /// Returns executors created by `make`.
    pub fn new(make: impl Fn(&str, &mut Switch) -> Box<dyn Executor> + Send + Sync + 'static) -> Executors {
        Executors(Some(Arc::new(make)))
    }

    /// Returns the executors of the nodes with these names; those of others interpret plans.
    pub fn of_nodes(&self, is_own: impl Fn(&str) -> bool + Send + Sync + 'static) -> Executors {
        let Some(make) = self.0.clone() else { return Executors::planned() };
        Executors::new(move |node, switch| match is_own(node) {
            true => make(node, switch),
            false => Box::new(Planned::new(switch)),
        })
    }

    fn make(&self, node: &str, switch: &mut Switch) -> Box<dyn Executor> {
        match &self.0 {
            Some(make) => make(node, switch),
            None => Box::new(Planned::new(switch)),
        }
    }
}

impl fmt::Debug for Executors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Executors")
    }
}

impl fmt::Debug for OpenFlowNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFlowNode").field("switch", &self.switch).finish_non_exhaustive()
    }
}

impl OpenFlowNode {
    /// Creates a switch with these rules, which [`rules`] must have checked.
    pub(crate) fn new(node: &Node, lines: &[RuleLine], executors: &Executors) -> OpenFlowNode {
        let mut switch = rules::switch(node.interfaces.len());
        if let Err(mistakes) = ofctl::load(&mut switch, Time::ZERO, lines) {
            panic!("the rules have {} mistakes: they were not checked", mistakes.len());
        }
        let executor = executors.make(&node.name, &mut switch);
        OpenFlowNode { switch, executor, out: Outbox::default() }
    }

    /// Lets the executor take over what has changed, also while no frames arrive.
    pub(crate) fn tend(&mut self) {
        self.executor.update(&mut self.switch);
    }

    /// Returns the switch with its counters up to date.
    pub(crate) fn switch(&mut self) -> &Switch {
        self.executor.credit(&mut self.switch);
        &self.switch
    }

    pub(crate) fn receive(
        &mut self,
        at: Time,
        interface: usize,
        mut frame: Frame,
        pool: &mut FramePool,
        actions: &mut Vec<NodeAction>,
    ) {
        let OpenFlowNode { switch, executor, out } = self;
        if switch.next_at().is_some_and(|due| due <= at) {
            executor.credit(switch);
            switch.expire(at);
            executor.update(switch);
        }
        let in_port = interface as u32 + 1;
        if let Verdict::Forward { port, .. } =
            executor.execute(switch, at, in_port, pool.bytes_mut(&mut frame), out)
        {
            actions.push(NodeAction::Forward { interface: port as usize - 1, frame });
        } else {
            send_outputs(out, frame, executor.has_controller(), pool, actions);
        }
        out.clear();
    }
}

/// Sends the frame to the first output, copies to the others, or drops it without any output.
fn send_outputs(
    out: &Outbox,
    mut frame: Frame,
    has_controller: bool,
    pool: &mut FramePool,
    actions: &mut Vec<NodeAction>,
) {
    let mut outputs = out.entries().filter_map(|(entry, bytes)| match entry {
        OutboxEntry::Output { port, .. } => Some((*port as usize - 1, bytes)),
        OutboxEntry::Controller(_) | OutboxEntry::Learn(_) | OutboxEntry::Drop(_) => None,
    });
    let Some((first, bytes)) = outputs.next() else {
        let reason = out.entries().find_map(|(entry, _)| match entry {
            OutboxEntry::Drop(reason) => Some(Reason::Switch(*reason)),
            _ => None,
        });
        return actions.push(match reason {
            Some(reason) => NodeAction::Drop(frame, reason),
            None if has_controller => NodeAction::Consume(frame),
            None => NodeAction::Drop(frame, Reason::NoController),
        });
    };
    for (interface, bytes) in outputs {
        actions.push(match pool.insert(bytes) {
            Some(frame) => NodeAction::Originate { interface, frame },
            None => NodeAction::NoBuffer,
        });
    }
    if bytes.len() <= frame.len() {
        pool.truncate(&mut frame, bytes.len());
        pool.bytes_mut(&mut frame).copy_from_slice(bytes);
        return actions.push(NodeAction::Forward { interface: first, frame });
    }
    // A pushed tag made the frame longer, so a new frame replaces it.
    actions.push(match pool.insert(bytes) {
        Some(frame) => NodeAction::Originate { interface: first, frame },
        None => NodeAction::NoBuffer,
    });
    actions.push(NodeAction::Consume(frame));
}

#[cfg(test)]
mod tests {
    use crate::id::EdgeId;
    use crate::network::Network;
    use crate::options::Options;
    use fastpath_spec as spec;
    use fastpath_units::{Duration, Time};

    const SPEC: &str = r#"
[host.a]
[host.b]
[host.c]
[openflow.s]
rules = """
table=0,in_port=a,dl_type=0x88b5,actions=push_vlan:0x8100,set_field:5->vlan_vid,goto_table:1
table=0,in_port=b,actions=drop
table=0,in_port=c,actions=controller
table=1,dl_vlan=5,actions=output:b,pop_vlan,output:c
"""
[[link]]
between = ["a", "s"]
delay = "1ms"
[[link]]
between = ["s", "b"]
delay = "2ms"
[[link]]
between = ["s", "c"]
delay = "3ms"
"#;

    #[test]
    fn links_are_emulated_between_the_ports_of_openflow_switches() {
        let (topology, _) = spec::parse(SPEC).unwrap();
        let options = Options::default();
        let mut network = Network::new(topology, options);
        let frame = [&[2; 12][..], &[0x88, 0xb5], &[7; 46]].concat();
        for edge in [0, 1, 2] {
            let frame = network.pool_mut().insert(&frame).unwrap();
            network.push(Time::ZERO, EdgeId(edge), frame);
        }
        let end = Time::ZERO + Duration::from_secs(1);
        let mut seen = Vec::new();
        while let Some(delivery) = network.pop(end) {
            seen.push((delivery.edge.0, delivery.at.as_ns() / 1000, delivery.frame.len()));
            network.pool_mut().free(delivery.frame);
        }
        assert_eq!(seen, [(1, 3000, 64), (2, 4000, 60)]);
        let frames = network.accounting();
        assert!(frames.balances(), "{frames:?}");
        assert_eq!((frames.dropped["no-output"], frames.dropped["no-controller"]), (1, 1));
        assert_eq!(network.pool().live(), 0);
    }

    #[test]
    fn mistakes_in_rules_are_mistakes_of_the_spec() {
        let bad = SPEC.replace("output:c\n", "output:elsewhere\n");
        let mistakes = spec::parse(&bad).unwrap_err();
        let text = mistakes.iter().map(ToString::to_string).collect::<String>();
        assert!(text.contains("rule 4") && text.contains("elsewhere"), "{text}");
    }
}
