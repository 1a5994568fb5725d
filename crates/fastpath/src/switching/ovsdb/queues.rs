//! Queues and policers of ports: what the database says, as the engine has it.

use super::bridge::RunningBridge;
use fastpath_engine::switching::{PolicingSpec, PortQueueSpec, QueueRates};
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
