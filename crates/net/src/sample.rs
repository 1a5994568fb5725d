//! Samples of a running network: what is cheap to copy many times per second.

use crate::flows::FlowCounters;
use crate::network::Network;
use crate::observer::Observer;
use fastpath_link::{Counters, QueueState};
use fastpath_spec::LinkId;
use fastpath_units::{Duration, Time};

/// The counters and queues of a network at one instant.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// The instant of its latest part.
    pub at: Time,
    /// By pipe: forward at `2 × link`, backward at `2 × link + 1`.
    pub pipes: Vec<PipeSample>,
    /// The flows with packets since the last sample.
    pub flows: Vec<FlowCounters>,
}

/// The counters and the queue of a pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PipeSample {
    /// The instant: that of the worker of the pipe, which may have kept the others waiting.
    pub at: Time,
    /// Its counters since the start.
    pub counters: Counters,
    /// Its queue.
    pub queue: QueueState,
    /// Frames released later than tolerated, since the start; 0 in virtual time.
    pub late: u64,
    /// The largest lateness of a frame released since the last sample; 0 in virtual time.
    pub lateness_max: Duration,
}

/// Returns the samples of all pipes at `now`, after everything due by then.
pub fn pipes<O: Observer>(network: &mut Network<O>, now: Time) -> Vec<PipeSample> {
    network.advance(now);
    let links = network.topology().links.len() as u32;
    let pipe = |(link, index)| PipeSample {
        at: now,
        counters: network.pipe(link, index).counters(),
        queue: network.queue(link, index),
        ..PipeSample::default()
    };
    (0..links).map(LinkId).flat_map(|link| [(link, 0), (link, 1)]).map(pipe).collect()
}
