//! Ports that come and go while a switch runs: what controlling threads tell the workers.

use super::attached::SharedPort;
use crate::port::Port;
use fastpath_link::port_queues::{PolicingSpec, PortQueueSpec};
use fastpath_units::Time;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// The queues of ports that have some, by port, and since when they have them.
pub type QueueSpecs = BTreeMap<u32, (PortQueueSpec, Time)>;

/// A port that is added, removed or set while frames move. Every worker is told of every change, in
/// the same order.
#[derive(Clone)]
pub(super) enum PortChange {
    /// Adds a port.
    Attach(Arc<SharedPort>),
    /// Removes the port with this number. Its owner passes it on, so that another thread closes it.
    Detach(u32, Sender<Box<dyn Port>>),
    /// Gives the port with this number these queues, and none if there are none. What waits in the
    /// old ones is dropped.
    Queues(u32, Option<PortQueueSpec>),
    /// Bounds what the port with this number receives.
    Policing(u32, Option<PolicingSpec>),
}
