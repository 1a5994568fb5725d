//! Queues and policers of ports: what the database says, as the engine has it.

use super::bridge::{POOL, RunningBridge};
use fastpath_engine::switching::{PolicingSpec, PortQueueSpec, QueueRates, queue_memory};
use fastpath_ovsdb::{BridgeSpec, InterfaceSpec, PortSpec, QosSpec, QueueRate};
use fastpath_units::{Bytes, Rate};

/// Returns the queues that a port is to have.
fn queues(port: &PortSpec) -> Option<PortQueueSpec> {
    let QosSpec { max_rate, queues, .. } = port.qos.as_ref().filter(|qos| qos.error.is_none())?;
    let rates = |rate: &QueueRate| QueueRates {
        min: rate.min_rate.and_then(at_most),
        max: rate.max_rate.and_then(at_most),
        burst: rate.burst.map(|bits| Bytes(bits / 8)),
    };
    let queues = queues.iter().map(|(number, rate)| (*number, rates(rate))).collect();
    Some(PortQueueSpec { rate: max_rate.and_then(at_most), queues })
}

/// Returns a rate, if it is not 0; one that is too large to be expressed is the largest.
fn at_most(bps: u64) -> Option<Rate> {
    (bps > 0).then(|| Rate::from_bps(bps).unwrap_or(Rate::MAX))
}

/// Returns the policer that an interface is to have.
fn policing(interface: &InterfaceSpec) -> Option<PolicingSpec> {
    let (rate, burst) = interface.policing?;
    let rate = at_most(rate.saturating_mul(1000))?;
    Some(PolicingSpec { rate, burst: Bytes(burst.saturating_mul(1000) / 8) })
}

/// Bytes with which a queue holds as many frames of Ethernet as it may before and behind its
/// shaper.
const MEMORY_ENOUGH: usize = 2 * 1000 * 1536;

/// Returns how many bytes each queue of a bridge may hold, if that may be the first bound that it
/// meets.
pub(super) fn memory_of_each(bridge: &RunningBridge) -> Option<usize> {
    let specs = bridge.ports.values().filter_map(|port| port.queues.as_ref());
    let share = queue_memory(POOL, specs.map(PortQueueSpec::count).sum());
    (share < MEMORY_ENOUGH).then_some(share)
}

impl RunningBridge {
    /// Gives the ports their queues and policers, if they have changed.
    pub(super) fn follow_queues(&mut self, spec: &BridgeSpec) {
        for port in &spec.ports {
            let queues = queues(port);
            for interface in &port.interfaces {
                let Some(running) = self.ports.get_mut(&interface.name) else { continue };
                if running.queues != queues {
                    self.control.set_queues(running.number, queues.clone());
                    running.queues.clone_from(&queues);
                }
                let policing = policing(interface);
                if running.policing != policing {
                    self.control.set_policing(running.number, policing);
                    running.policing = policing;
                }
            }
        }
    }
}
