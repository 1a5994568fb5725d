//! A port whose far side is nothing: no frame comes, and what is sent is counted and gone.

use super::{Burst, Port, PortCounters, PortError};
use fastpath_net::{Frame, FramePool};
use fastpath_units::Time;
use std::collections::VecDeque;

/// See the head of this file.
#[derive(Debug)]
pub struct NullPort {
    name: String,
    counters: PortCounters,
}

impl NullPort {
    /// A port of this name.
    pub fn new(name: &str) -> NullPort {
        NullPort { name: name.to_owned(), counters: PortCounters::default() }
    }
}

impl Port for NullPort {
    fn name(&self) -> &str {
        &self.name
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
        for frame in frames.drain(..) {
            self.counters.tx_frames += 1;
            self.counters.tx_bytes += frame.len() as u64;
            pool.free(frame);
        }
        Ok(())
    }

    /// Never, which is not the same as not knowing: nobody need ask.
    fn next_at(&self) -> Option<Time> {
        Some(Time::MAX)
    }

    fn counters(&mut self) -> PortCounters {
        self.counters
    }
}
