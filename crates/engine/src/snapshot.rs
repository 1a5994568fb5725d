//! A snapshot: the state of a network and of its workers, copied at one instant.

use crate::lateness::{LatenessPolicy, Releases};
use crate::packet_log::PacketLogReport;
use crate::port::PortCounters;
use crate::worker_clock::InterruptionTotals;
use fastpath_link::{Counters, Delays, PipeSpec, QueueState, Volume};
use fastpath_net::{FrameAccounting, PipeId};
use fastpath_units::{Duration, Time};
use std::collections::BTreeMap;

/// The state of a network and of its workers at one instant.
pub(crate) struct Snapshot {
    pub(crate) at: Time,
    pub(crate) accounting: FrameAccounting,
    /// Two per link: forward, backward.
    pub(crate) pipes: Vec<PipeState>,
    /// Frames that have passed on to other parts of the network, and that have come from them.
    pub(crate) crossed: [u64; 2],
    /// How late frames were that came from other parts, by pipe that leads to a node.
    pub(crate) handovers: Vec<(PipeId, Releases)>,
    /// One per edge.
    pub(crate) edges: Vec<EdgeState>,
    /// The counters of ports that were removed with their edges.
    pub(crate) removed_ports: PortCounters,
    pub(crate) workers: Vec<WorkerState>,
    /// The group adds it.
    pub(crate) packet_log: Option<PacketLogReport>,
    pub(crate) policy: LatenessPolicy,
    /// By link that runs in user space: why. The group adds it in a lab.
    pub(crate) user_space: Option<BTreeMap<String, String>>,
}

impl Snapshot {
    /// The releases of all edges, and of the pipes between parts of the network.
    pub(crate) fn releases(&self) -> impl Iterator<Item = &Releases> {
        let of_edges = self.edges.iter().map(|edge| &edge.releases);
        of_edges.chain(self.handovers.iter().map(|(_, releases)| releases))
    }
}

pub(crate) struct PipeState {
    pub(crate) spec: PipeSpec,
    pub(crate) counters: Counters,
    pub(crate) held: Volume,
    pub(crate) queue: QueueState,
    /// Present where there is jitter. The receiver of the snapshot evaluates it, which takes no
    /// time of the worker.
    pub(crate) delays: Option<Delays>,
    /// When each of its traces starts or has started, in their order; `None` while a trace waits
    /// for a packet or a command.
    pub(crate) trace_starts: Vec<Option<Time>>,
}

impl PipeState {
    /// Counts frames as pushed that are known from the receiver's worker alone, because it answered
    /// later than that of the sender.
    pub(crate) fn balance(&mut self) {
        let known = self.counters.delivered + self.counters.dropped() + self.held;
        let pushed = &mut self.counters.pushed;
        *pushed = Volume { packets: pushed.packets.max(known.packets), bytes: pushed.bytes.max(known.bytes) };
    }
}

pub(crate) struct EdgeState {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) counters: PortCounters,
    pub(crate) waiting: usize,
    pub(crate) releases: Releases,
    pub(crate) failure: Option<String>,
}

/// The state of a worker.
pub(crate) struct WorkerState {
    /// The core its thread is bound to.
    pub(crate) core: Option<u32>,
    pub(crate) edges: usize,
    /// Time spent in iterations that moved frames.
    pub(crate) busy: Duration,
    /// Time for which its thread had a core.
    pub(crate) cpu: Duration,
    pub(crate) sleeps: u64,
    pub(crate) stalled: InterruptionTotals,
    pub(crate) preempted: InterruptionTotals,
    /// Bytes of the frame pool.
    pub(crate) pool_reserved: usize,
    /// Frames that it has passed on to other workers.
    pub(crate) passed_on: u64,
    /// The time that it spent on that, and on taking frames from others.
    pub(crate) handover: Duration,
}
