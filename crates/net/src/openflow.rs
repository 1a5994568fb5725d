//! A node that forwards by OpenFlow tables: the switch of `fastpath-switch`, at the logical time of
//! each frame.
//!
//! Interface `i` is port `i + 1`, and ports can be called by the name of the node at the other end
//! of their link. The rules are those of the spec; there is no controller here, and what is sent to
//! one is dropped. Loops of such nodes are not cut: the rules decide.

use crate::fate::{Act, Reason};
use crate::pool::{Frame, FramePool};
use fastpath_spec::rules;
use fastpath_switch::execute::OutboxEntry;
use fastpath_switch::ofctl::{self, RuleLine};
use fastpath_switch::{Executor, Outbox, Planned, Switch, Verdict};
use fastpath_units::Time;
use std::fmt;
use std::sync::Arc;

/// A function that makes the executor of a switch. Workers share it.
pub type MakeExecutor = dyn Fn(&mut Switch) -> Box<dyn Executor> + Send + Sync;

/// Makes the executor of each OpenFlow node. The default interprets plans; every executor does the
/// same to packets.
#[derive(Clone, Default)]
pub struct Executors(Option<Arc<MakeExecutor>>);

/// The running node.
pub(crate) struct Tables {
    switch: Switch,
    executor: Box<dyn Executor>,
    out: Outbox,
}

impl Executors {
    /// The executors that interpret plans ([`Planned`]).
    pub const fn planned() -> Executors {
        Executors(None)
    }

    /// The executors that `make` makes.
    pub fn new(make: impl Fn(&mut Switch) -> Box<dyn Executor> + Send + Sync + 'static) -> Executors {
        Executors(Some(Arc::new(make)))
    }

    fn make(&self, switch: &mut Switch) -> Box<dyn Executor> {
        match &self.0 {
            Some(make) => make(switch),
            None => Box::new(Planned::new(switch)),
        }
    }
}

impl fmt::Debug for Executors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Executors")
    }
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables").field("switch", &self.switch).finish_non_exhaustive()
    }
}

impl Tables {
    /// A node with these rules, which [`rules`] has checked.
    pub(crate) fn new(lines: &[RuleLine], ports: usize, executors: &Executors) -> Tables {
        let mut switch = rules::switch(ports);
        if let Err(mistakes) = ofctl::load(&mut switch, Time::ZERO, lines) {
            panic!("{} rules that were not checked", mistakes.len());
        }
        let executor = executors.make(&mut switch);
        Tables { switch, executor, out: Outbox::default() }
    }

    pub(crate) fn receive(
        &mut self,
        at: Time,
        interface: usize,
        mut frame: Frame,
        pool: &mut FramePool,
        acts: &mut Vec<Act>,
    ) {
        let Tables { switch, executor, out } = self;
        if switch.next_at().is_some_and(|due| due <= at) {
            executor.credit(switch);
            switch.expire(at);
            executor.update(switch);
        }
        let in_port = interface as u32 + 1;
        if let Verdict::Forward { port, .. } =
            executor.execute(switch, at, in_port, pool.bytes_mut(&mut frame), out)
        {
            acts.push(Act::Forward { interface: port as usize - 1, frame });
        } else {
            answer(out, frame, pool, acts);
        }
        out.clear();
    }
}

/// The frame itself takes the first way out, copies the others; with no way out it is dropped.
fn answer(out: &Outbox, mut frame: Frame, pool: &mut FramePool, acts: &mut Vec<Act>) {
    let mut outputs = out.entries().filter_map(|(post, bytes)| match post {
        OutboxEntry::Output { port, .. } => Some((*port as usize - 1, bytes)),
        OutboxEntry::Controller(_) | OutboxEntry::Drop(_) => None,
    });
    let Some((first, bytes)) = outputs.next() else {
        let reason = out.entries().find_map(|(post, _)| match post {
            OutboxEntry::Drop(reason) => Some(Reason::Switch(*reason)),
            OutboxEntry::Output { .. } | OutboxEntry::Controller(_) => None,
        });
        return acts.push(Act::Drop(frame, reason.unwrap_or(Reason::NoController)));
    };
    for (interface, bytes) in outputs {
        acts.push(match pool.insert(bytes) {
            Some(frame) => Act::Originate { interface, frame },
            None => Act::Starve,
        });
    }
    if bytes.len() <= frame.len() {
        pool.truncate(&mut frame, bytes.len());
        pool.bytes_mut(&mut frame).copy_from_slice(bytes);
        return acts.push(Act::Forward { interface: first, frame });
    }
    // It grew by a tag: a longer one goes on in its place.
    acts.push(match pool.insert(bytes) {
        Some(frame) => Act::Originate { interface: first, frame },
        None => Act::Starve,
    });
    acts.push(Act::Absorb(frame));
}

#[cfg(test)]
mod tests {
    use crate::network::{EdgeId, Network, Options};
    use fastpath_spec as spec;
    use fastpath_units::{Duration, Time};
    use std::num::NonZeroUsize;

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
    fn links_are_emulated_between_the_ports_of_tables() {
        let (topology, _) = spec::parse(SPEC).unwrap();
        let options = Options::new(1, NonZeroUsize::new(1 << 20).unwrap());
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
        let books = network.conservation();
        assert!(books.holds(), "{books:?}");
        assert_eq!((books.dropped["no-output"], books.dropped["no-controller"]), (1, 1));
        assert_eq!(network.pool().live(), 0);
    }

    #[test]
    fn mistakes_in_rules_are_mistakes_of_the_spec() {
        let bad = SPEC.replace("output:c\n", "output:nobody\n");
        let mistakes = spec::parse(&bad).unwrap_err();
        let text = mistakes.iter().map(ToString::to_string).collect::<String>();
        assert!(text.contains("rule 4") && text.contains("nobody"), "{text}");
    }
}
