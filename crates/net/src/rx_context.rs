//! What a router has at hand while it receives one frame, and the actions that result.

use crate::fate::{NodeAction, Reason};
use crate::pool::{Frame, FramePool};
use fastpath_units::Time;

/// The reception of one frame: time and interface, the pool, and the resulting actions.
pub(crate) struct RxContext<'a> {
    pub(crate) at: Time,
    pub(crate) interface: usize,
    pub(crate) pool: &'a mut FramePool,
    pub(crate) actions: &'a mut Vec<NodeAction>,
}

impl RxContext<'_> {
    pub(crate) fn drop(&mut self, frame: Frame, reason: Reason) {
        self.actions.push(NodeAction::Drop(frame, reason));
    }

    /// Sends a frame that the router generates.
    pub(crate) fn originate(&mut self, interface: usize, bytes: &[u8]) {
        self.actions.push(match self.pool.insert(bytes) {
            Some(frame) => NodeAction::Originate { interface, frame },
            None => NodeAction::NoBuffer,
        });
    }
}
