//! A port without a far end: nothing arrives, and sent frames are counted and discarded.

use super::base::PortBase;
use super::{Burst, Port, PortCounters, PortError, PortKind};
use fastpath_net::{Frame, FramePool};
use fastpath_units::Time;
use std::collections::VecDeque;

pub(super) const KINDS: &[PortKind] = &[PortKind {
    name: "memory",
    about: "no interface: nothing arrives, what is sent is counted and discarded",
    needs: "nothing",
    open: |name, _| Ok(Box::new(NullPort::new(name.kind()))),
}];

/// See the head of this file.
#[derive(Debug)]
pub struct NullPort {
    base: PortBase,
}

impl NullPort {
    /// Creates a port of this name.
    pub fn new(name: &str) -> NullPort {
        NullPort { base: PortBase::new(name) }
    }
}

impl Port for NullPort {
    fn name(&self) -> &str {
        &self.base.name
    }

    fn rx_burst(&mut self, _now: Time, _pool: &mut FramePool, _burst: &mut Burst) -> Result<(), PortError> {
        Ok(())
    }

    fn tx_burst(
        &mut self,
        _now: Time,
        pool: &mut FramePool,
        frames: &mut VecDeque<Frame>,
    ) -> Result<(), PortError> {
        self.base.sent(frames.drain(..), pool);
        Ok(())
    }

    /// `Time::MAX` means never. `None` would mean unknown, and the port would be polled.
    fn next_at(&self) -> Option<Time> {
        Some(Time::MAX)
    }

    fn counters(&mut self) -> PortCounters {
        self.base.counters
    }
}
