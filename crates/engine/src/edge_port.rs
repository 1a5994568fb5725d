//! An edge of a worker's network with its port, and the frames on their way into the port.

use crate::lateness::{LatenessPolicy, Releases};
use crate::port::{Port, PortCounters};
use crate::snapshot::EdgeState;
use crate::worker_clock::WorkerClock;
use fastpath_net::{Frame, FramePool};
use fastpath_units::Time;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

/// Frames that wait at an edge while its port pushes back.
pub(crate) const BACKLOG_MAX: usize = 1024;

/// An edge of the network and its port.
pub(crate) struct EdgePort {
    /// `None` once it has failed.
    pub(crate) port: Option<Box<dyn Port>>,
    /// The port sends segments without bytes of their own.
    pub(crate) takes_whole: bool,
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) failure: Option<String>,
    /// The counters of a port that has failed, and of frames that the worker itself drops.
    pub(crate) counters: PortCounters,
    /// `None` while no frame waits.
    pub(crate) backlog: Option<Backlog>,
    pub(crate) releases: Releases,
}

/// Frames on their way into a port, and when each was due.
pub(crate) struct Backlog {
    pub(crate) frames: VecDeque<Frame>,
    pub(crate) due: VecDeque<Time>,
}

impl Backlog {
    pub(crate) fn new() -> Backlog {
        Backlog { frames: VecDeque::with_capacity(BACKLOG_MAX), due: VecDeque::with_capacity(BACKLOG_MAX) }
    }

    /// Frees the frames at the front that are too late, and returns their number. Later frames are
    /// due no earlier.
    pub(crate) fn drop_late(
        &mut self,
        now: Time,
        policy: &LatenessPolicy,
        releases: &mut Releases,
        clock: &WorkerClock,
        pool: &mut FramePool,
    ) -> u64 {
        let mut dropped = 0;
        while let Some(due) = self.due.pop_front_if(|due| now.since(*due) > policy.tolerance) {
            releases.count_late(due, now, policy, clock);
            pool.free(self.frames.pop_front().expect("a frame for each due time"));
            dropped += 1;
        }
        dropped
    }
}

impl EdgePort {
    /// One of `edges` edges.
    pub(crate) fn new(mut port: Box<dyn Port>, edges: usize, is_watched: bool) -> EdgePort {
        EdgePort {
            takes_whole: !is_watched && port.allow_whole(),
            name: port.name().to_owned(),
            kind: port.kind(),
            port: Some(port),
            failure: None,
            counters: PortCounters::default(),
            backlog: None,
            releases: Releases::new(edges),
        }
    }

    /// Returns the descriptor of the port, if it has one and has not failed.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.port.as_ref().and_then(|port| port.fd())
    }

    pub(crate) fn snapshot(&mut self) -> EdgeState {
        let mut counters = self.counters;
        if let Some(port) = &mut self.port {
            counters += port.counters();
            // Its interface may have been renamed.
            if self.name != port.name() {
                port.name().clone_into(&mut self.name);
            }
        }
        EdgeState {
            name: self.name.clone(),
            kind: self.kind.clone(),
            counters,
            waiting: self.backlog.as_ref().map_or(0, |backlog| backlog.frames.len()),
            releases: self.releases.clone(),
            failure: self.failure.clone(),
        }
    }
}
