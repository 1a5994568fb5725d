//! Queues and policers of the ports of a running switch, as controlling threads see them.

use super::control::Control;
use super::port_change::PortChange;
use fastpath_link::port_queues::{PolicingSpec, PortQueueSpec, QueueCounters};
use fastpath_units::Time;
use std::collections::BTreeMap;

impl Control {
    /// Gives a port queues, or none: then frames leave as fast as the port takes them.
    pub fn set_queues(&self, number: u32, spec: Option<PortQueueSpec>) {
        let now = self.now();
        let mut exchange = self.exchange();
        exchange.queues.retain(|(port, _), _| *port != number);
        match &spec {
            Some(spec) => exchange.queue_specs.insert(number, (spec.clone(), now)),
            None => exchange.queue_specs.remove(&number),
        };
        drop(exchange);
        self.change_ports(&PortChange::Queues(number, spec));
    }

    /// Bounds what a port receives, or not.
    pub fn set_policing(&self, number: u32, spec: Option<PolicingSpec>) {
        self.change_ports(&PortChange::Policing(number, spec));
    }

    /// Returns the queues of ports that have some, and since when they have them.
    pub fn queue_specs(&self) -> BTreeMap<u32, (PortQueueSpec, Time)> {
        self.exchange().queue_specs.clone()
    }

    /// Returns the counters of queues, by port and queue, as the worker last reported them.
    pub fn queue_counters(&self) -> BTreeMap<(u32, u32), QueueCounters> {
        self.exchange().queues.clone()
    }
}
