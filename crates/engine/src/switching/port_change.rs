//! Ports that come and go while a switch runs: what controlling threads tell the worker.

use super::port_queues::{PolicingSpec, PortQueueSpec};
use crate::port::Port;
use std::sync::mpsc::Sender;

/// A port that is added or removed while frames move.
pub(super) enum PortChange {
    /// Adds a port with this number.
    Attach(u32, Box<dyn Port>),
    /// Removes the port with this number, and passes it on, so that another thread closes it.
    Detach(u32, Sender<Box<dyn Port>>),
    /// Gives the port with this number these queues, and none if there are none. What waits in the
    /// old ones is dropped.
    Queues(u32, Option<PortQueueSpec>),
    /// Bounds what the port with this number receives.
    Policing(u32, Option<PolicingSpec>),
}
