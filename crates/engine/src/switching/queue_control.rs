//! Queues and policers of the ports of a running switch, as controlling threads see them.

use super::control::Control;
use super::port_change::{PortChange, QueueSpecs};
use fastpath_link::port_queues::{PolicingSpec, PortQueueSpec, QueueCounters};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Control {
    /// Gives a port queues, or none: then frames leave as fast as the port takes them.
    pub fn set_queues(&self, number: u32, spec: Option<PortQueueSpec>) {
        let now = self.now();
        let mut exchange = self.exchange();
        exchange.queues.retain(|(port, _), _| *port != number);
        // Copied only while a controller reads them.
        let specs = Arc::make_mut(&mut exchange.queue_specs);
        match &spec {
            Some(spec) => specs.insert(number, (spec.clone(), now)),
            None => specs.remove(&number),
        };
        drop(exchange);
        self.change_ports(&PortChange::Queues(number, spec));
    }

    /// Bounds what a port receives, or not.
    pub fn set_policing(&self, number: u32, spec: Option<PolicingSpec>) {
        self.change_ports(&PortChange::Policing(number, spec));
    }

    /// Returns the queues of ports that have some, and since when they have them.
    pub fn queue_specs(&self) -> Arc<QueueSpecs> {
        Arc::clone(&self.exchange().queue_specs)
    }

    /// Returns the counters of the queues of a port, by queue, as the worker last reported them.
    pub fn queue_counters(&self, port: u32) -> BTreeMap<u32, QueueCounters> {
        let exchange = self.exchange();
        let of_port = exchange.queues.range((port, 0)..=(port, u32::MAX));
        of_port.map(|((_, queue), counters)| (*queue, *counters)).collect()
    }
}
