//! The connections that a switch tracks, whichever executor runs its packets: a clone of
//! [`Connections`] is a copy, and [`Connections::share`] is the same table.
//!
//! Only packets whose flows have `ct` take its lock.

pub use fastpath_conntrack::{
    Alg, Commit, ConnectionInfo, CtState, FlowTuple, NatRequest, NatSide, NatSpec, PacketView, PortChoice,
    TrackRequest, Tracked,
};

use crate::extension::track::view;
use fastpath_conntrack::{Conntrack, ConntrackCounters, ConntrackLimits};
use fastpath_units::Time;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The seed of hashes and of random ports, so that the same packets always get the same.
const SEED: u64 = 0x6374;
/// Frames whose connections are fetched at the same time.
const PREFETCHED_MAX: usize = 64;

/// The connections of a switch.
#[derive(Debug)]
pub struct Connections(Arc<Mutex<Conntrack>>);

impl Clone for Connections {
    /// Returns a copy that tracks independently.
    fn clone(&self) -> Connections {
        Connections(Arc::new(Mutex::new(self.lock().clone())))
    }
}

impl Connections {
    pub(crate) fn new(most: usize) -> Connections {
        let limits = ConntrackLimits { connections: most, per_zone: most };
        Connections(Arc::new(Mutex::new(Conntrack::new(limits, SEED))))
    }

    /// Returns another handle to the same table.
    pub fn share(&self) -> Connections {
        Connections(Arc::clone(&self.0))
    }

    /// Finds the connection of a packet, and commits one if that is asked for. Without a packet it
    /// is one that cannot be tracked.
    pub fn track(&self, now: Time, packet: Option<&PacketView<'_>>, request: &TrackRequest) -> Tracked {
        let mut table = self.lock();
        match packet {
            Some(packet) => table.track(now, packet, request),
            None => table.untrackable(),
        }
    }

    /// Fetches the connections of frames into the cache, if there are more than it holds.
    pub fn prefetch<'a>(&self, frames: impl Iterator<Item = &'a [u8]>) {
        if !self.lock().is_large() {
            return;
        }
        let mut tuples = [FlowTuple::default(); PREFETCHED_MAX];
        let mut count = 0;
        for (tuple, view) in tuples.iter_mut().zip(frames.filter_map(view)) {
            (*tuple, count) = (view.tuple, count + 1);
        }
        self.lock().prefetch(&tuples[..count]);
    }

    /// Returns the connections at a time, in the order of their zones and tuples.
    pub fn list(&self, now: Time) -> Vec<ConnectionInfo> {
        self.lock().list(now)
    }

    /// Ends the connections of a zone, or all. Returns how many.
    pub fn flush(&self, zone: Option<u16>) -> usize {
        self.lock().flush(zone)
    }

    /// Returns what happened so far.
    pub fn counters(&self) -> ConntrackCounters {
        self.lock().counters()
    }

    fn lock(&self) -> MutexGuard<'_, Conntrack> {
        // The table is consistent between calls, also after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
