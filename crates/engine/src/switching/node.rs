//! A switch that is a node of a network: the network's worker executes its packets and sends its
//! frames, while controllers change its tables.
//!
//! ```text
//!   agent ── Control ──▶ tables            Network::receive ──▶ NodeExecutor ──▶ outputs
//!         ── packet-out ──▶ Exchange ──▶ worker ──▶ Network::originate
//! ```
//!
//! See `node_switch.rs` of the engine for what starts it.

use super::accounting::Counts;
use super::control::Control;
use fastpath_switch::execute::Forwarder;
use fastpath_switch::{Executor, Outbox, Switch, Verdict};
use fastpath_units::Time;

/// Executes the packets of a node by the tables behind a [`Control`]. The switch of the node itself
/// is not used, nor is the time of the network: timeouts and meters follow the switch's clock.
pub struct NodeExecutor {
    control: Control,
    forwarder: Option<Box<dyn Forwarder>>,
}

impl Control {
    /// Returns the executor of a node of a network that this switch is.
    pub fn node_executor(&self) -> NodeExecutor {
        NodeExecutor { control: self.clone(), forwarder: self.forwarder() }
    }
}

impl Executor for NodeExecutor {
    fn update(&mut self, _: &mut Switch) {
        if let Some(forwarder) = &mut self.forwarder {
            forwarder.begin(self.control.now());
        }
    }

    fn execute(
        &mut self,
        _: &mut Switch,
        _: Time,
        in_port: u32,
        frame: &mut [u8],
        out: &mut Outbox,
    ) -> Verdict {
        let control = &self.control;
        let workers = &control.shared.workers;
        workers.begin_turn(0);
        let now = control.now();
        let verdict = match &mut self.forwarder {
            Some(forwarder) => {
                forwarder.begin(now);
                forwarder.execute(in_port, frame, out)
            }
            None => control.lock_for_burst().execute(now, in_port, frame, out),
        };
        let outcomes = u64::from(verdict != Verdict::Done) + out.fates() as u64;
        let mut counts = Counts::default();
        (counts.received, counts.outcomes) = (1, outcomes);
        // The network sends the frames. The report is locked after the exchange, never around it.
        let is_first = control.deliver(now, out, &mut counts, |_, _| ());
        workers.report(0).counts.add(&counts);
        if self.forwarder.is_some() {
            control.learn(now, out);
        }
        workers.end_turn(0);
        if is_first {
            control.notify();
        }
        verdict
    }

    fn has_controller(&self) -> bool {
        true
    }
}
