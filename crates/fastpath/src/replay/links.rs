//! What went over links, and their queues over time.

use fastpath_link::{Counters, QueueState};
use fastpath_net::{Network, Observer};
use fastpath_spec::{LinkId, NodeId, Topology};
use fastpath_units::{Duration, Time};
use serde::Serialize;
use std::collections::BTreeMap;

/// What went over one direction of a link.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DirectionResults {
    /// The link.
    pub link: String,
    /// The node at which the direction begins.
    pub from: String,
    /// The node at which it ends.
    pub to: String,
    /// Frames that arrived.
    pub frames_in: u64,
    /// Bytes that arrived.
    pub bytes_in: u64,
    /// Frames that left at the far end.
    pub frames_out: u64,
    /// Bytes that left at the far end.
    pub bytes_out: u64,
    /// Frames marked with ECN CE.
    pub marked: u64,
    /// Frames that were duplicated.
    pub duplicated: u64,
    /// Frames that left with flipped bits.
    pub corrupted: u64,
    /// Frames dropped here, by reason. Reasons without frames are left out.
    pub dropped: BTreeMap<String, u64>,
    /// Its queue at each sample; empty if queues were not sampled.
    #[serde(skip)]
    pub queue: Vec<QueueState>,
}

/// Samples the queues of a network at fixed intervals.
#[derive(Debug)]
pub(super) struct QueueSampler {
    interval: Duration,
    next: Time,
    /// By pipe.
    queues: Vec<Vec<QueueState>>,
}

impl QueueSampler {
    /// A sampler that looks after each interval, the first time when one has passed.
    pub(super) fn new(interval: Duration) -> QueueSampler {
        QueueSampler { interval, next: Time::ZERO.saturating_add(interval), queues: Vec::new() }
    }

    /// The next time at which it looks.
    pub(super) fn next_at(&self) -> Time {
        self.next
    }

    /// Looks at a network in which all has happened up to [`QueueSampler::next_at`].
    pub(super) fn take<O: Observer>(&mut self, network: &mut Network<O>) {
        self.next = self.next.saturating_add(self.interval);
        let pipes = 2 * network.topology().links.len();
        self.queues.resize(pipes, Vec::new());
        for (number, queue) in self.queues.iter_mut().enumerate() {
            queue.push(network.queue(LinkId((number / 2) as u32), number % 2));
        }
    }
}

/// The counters of all pipes: forward at `2 × link`, backward at `2 × link + 1`. Those that begin
/// at other nodes are zero.
pub(super) fn counters<O: Observer>(
    network: &Network<O>,
    begins_at: impl Fn(NodeId) -> bool,
) -> Vec<Counters> {
    let counters = |number: usize| {
        let (link, index) = (number / 2, number % 2);
        let (from, _) = network.topology().links[link].ends[index];
        match begins_at(from) {
            true => network.pipe(LinkId(link as u32), index).counters(),
            false => Counters::default(),
        }
    };
    (0..2 * network.topology().links.len()).map(counters).collect()
}

/// The results of all directions, in the order of the description.
pub(super) fn results(
    topology: &Topology,
    counters: &[Counters],
    sampler: Option<QueueSampler>,
) -> Vec<DirectionResults> {
    let mut queues = sampler.map(|sampler| sampler.queues).unwrap_or_default();
    queues.resize(counters.len(), Vec::new());
    let direction = |(number, (counters, queue)): (usize, (&Counters, Vec<QueueState>))| {
        let link = &topology.links[number / 2];
        let [from, to] = [number % 2, 1 - number % 2].map(|end| topology.node(link.ends[end].0).name.clone());
        DirectionResults {
            link: link.name.clone(),
            from,
            to,
            frames_in: counters.pushed.packets,
            bytes_in: counters.pushed.bytes,
            frames_out: counters.delivered.packets,
            bytes_out: counters.delivered.bytes,
            marked: counters.marked,
            duplicated: counters.duplicated,
            corrupted: counters.corrupted,
            dropped: counters.dropped_by_reason(),
            queue,
        }
    };
    counters.iter().zip(queues).enumerate().map(direction).collect()
}
