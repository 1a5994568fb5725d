//! Ports in memory of hosts that send to each other without programs: the worker of a host
//! makes its frames, as it would read them from a kernel, and counts those it gets.

use fastpath_engine::port::{Burst, Port, PortCounters, PortError};
use fastpath_net::{Frame, FramePool};
use fastpath_units::Time;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// When a station sends.
#[derive(Clone, Debug)]
pub(crate) enum Pace {
    /// Whenever it is polled and fewer than this many frames are in the network.
    Closed {
        /// Frames of all stations in the network.
        in_flight: Arc<AtomicUsize>,
        /// The most of them.
        most: usize,
    },
    /// Whenever it is polled.
    Saturating,
    /// At a constant rate, in frames per second.
    Constant(f64),
}

/// See the head of this file.
pub(crate) struct Station {
    pace: Pace,
    frames: Vec<Vec<u8>>,
    next: usize,
    burst: usize,
    /// Frames that were due, at a constant rate.
    due: u64,
    counters: PortCounters,
}

impl Station {
    /// A station that sends these frames in turn from number `next` on, at most `burst` at a time.
    pub(crate) fn new(frames: Vec<Vec<u8>>, next: usize, burst: usize, pace: Pace) -> Station {
        let next = next % frames.len();
        Station { pace, frames, next, burst, due: 0, counters: PortCounters::default() }
    }

    /// Returns how many frames to send now.
    fn wanted(&mut self, now: Time) -> usize {
        match &self.pace {
            Pace::Saturating => self.burst,
            Pace::Closed { in_flight, most } if in_flight.load(Ordering::Relaxed) >= *most => 0,
            Pace::Closed { .. } => self.burst,
            Pace::Constant(per_s) => {
                let due = (now.as_secs_f64() * per_s) as u64;
                // What the worker did not take in time comes in the next burst, as in a
                // socket's buffer.
                let wanted = due.saturating_sub(self.due).min(self.burst as u64);
                self.due += wanted;
                wanted as usize
            }
        }
    }
}

impl Port for Station {
    fn name(&self) -> &str {
        "station"
    }

    fn rx_burst(&mut self, now: Time, pool: &mut FramePool, burst: &mut Burst) -> Result<(), PortError> {
        for _ in 0..self.wanted(now) {
            let bytes = &self.frames[self.next];
            self.next = (self.next + 1) % self.frames.len();
            let Some(frame) = pool.insert(bytes) else { break };
            if let Err(frame) = burst.push(frame) {
                pool.free(frame);
                break;
            }
            self.counters.rx_frames += 1;
        }
        if let Pace::Closed { in_flight, .. } = &self.pace {
            in_flight.fetch_add(burst.len(), Ordering::Relaxed);
        }
        Ok(())
    }

    fn tx_burst(
        &mut self,
        _: Time,
        pool: &mut FramePool,
        frames: &mut VecDeque<Frame>,
    ) -> Result<(), PortError> {
        self.counters.tx_frames += frames.len() as u64;
        if let Pace::Closed { in_flight, .. } = &self.pace {
            in_flight.fetch_sub(frames.len(), Ordering::Relaxed);
        }
        frames.drain(..).for_each(|frame| pool.free(frame));
        Ok(())
    }

    fn counters(&mut self) -> PortCounters {
        self.counters
    }
}
