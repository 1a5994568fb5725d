//! Ports that come and go while a switch runs: what controlling threads tell the worker.

use crate::port::Port;
use std::sync::mpsc::Sender;

/// A port that is added or removed while frames move.
pub(super) enum PortChange {
    /// Adds a port with this number.
    Attach(u32, Box<dyn Port>),
    /// Removes the port with this number, and passes it on, so that another thread closes it.
    Detach(u32, Sender<Box<dyn Port>>),
}
