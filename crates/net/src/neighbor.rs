//! The neighbor table of a router: the MAC address of each IP address on an interface (ARP, RFC
//! 826; Neighbor Discovery, RFC 4861), and the frames that wait for address resolution.
//!
//! Neighbors inside the topology are known from the start. Only stations behind real ports are
//! resolved by requests.

use crate::pool::Frame;
use fastpath_units::{Duration, Time};
use fastpath_wire::MacAddr;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// The maximum number of resolved addresses; further addresses are not learned.
const RESOLVED_MAX: usize = 65_536;
/// The maximum number of waiting frames; one more frame drops the oldest.
const WAITING_MAX: usize = 256;
/// The minimum interval between two requests for an address (RFC 1122 §2.3.2.1).
const REQUEST_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum waiting time of a frame.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(3);

/// A neighbor on a segment: the interface and the IP address.
pub(crate) type NeighborKey = (usize, IpAddr);

#[derive(Debug, Default)]
pub(crate) struct Neighbors {
    /// The stations of the topology.
    known: BTreeMap<NeighborKey, MacAddr>,
    /// What stations have said since, which comes first.
    resolved: BTreeMap<NeighborKey, MacAddr>,
    /// The time of the latest request for each unresolved address.
    requested: BTreeMap<NeighborKey, Time>,
    /// The waiting frames, in order of arrival.
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    since: Time,
    neighbor: NeighborKey,
    frame: UnresolvedFrame,
}

/// A frame that waits for address resolution, and the interface that received it.
#[derive(Debug)]
pub(crate) struct UnresolvedFrame {
    pub(crate) frame: Frame,
    pub(crate) received_on: usize,
}

/// Whether the router must send a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequestState {
    /// A request is due.
    Due,
    /// A request was sent within the last [`REQUEST_INTERVAL`].
    Pending,
}

impl Neighbors {
    /// Creates the table of a router that knows these stations of the topology.
    pub(crate) fn knowing(known: BTreeMap<NeighborKey, MacAddr>) -> Neighbors {
        Neighbors { known, ..Neighbors::default() }
    }

    pub(crate) fn resolve(&self, neighbor: NeighborKey) -> Option<MacAddr> {
        self.resolved.get(&neighbor).or_else(|| self.known.get(&neighbor)).copied()
    }

    /// Takes over what `old` has learned and the frames that wait in it. `place` returns the number
    /// of a former interface; frames without one go to `lost`.
    pub(crate) fn take_over(
        &mut self,
        old: &mut Neighbors,
        place: impl Fn(usize) -> Option<usize>,
        mut lost: impl FnMut(Frame),
    ) {
        let key = |(interface, ip): NeighborKey| Some((place(interface)?, ip));
        for (neighbor, mac) in std::mem::take(&mut old.resolved) {
            let Some(now) = key(neighbor) else { continue };
            // What the topology says about a station is newer than what was heard before.
            if !self.known.contains_key(&now) {
                self.resolved.insert(now, mac);
            }
        }
        self.requested = std::mem::take(&mut old.requested)
            .into_iter()
            .filter_map(|(k, at)| Some((key(k)?, at)))
            .collect();
        for Waiting { since, neighbor, frame } in std::mem::take(&mut old.waiting) {
            match (key(neighbor), place(frame.received_on)) {
                (Some(neighbor), Some(received_on)) => {
                    let frame = UnresolvedFrame { received_on, ..frame };
                    self.waiting.push_back(Waiting { since, neighbor, frame });
                }
                _ => lost(frame.frame),
            }
        }
    }

    /// Learns an address and passes the frames that waited for it to `release`.
    pub(crate) fn learn(&mut self, neighbor: NeighborKey, mac: MacAddr, mut release: impl FnMut(Frame)) {
        let is_full = self.resolved.len() >= RESOLVED_MAX;
        if mac.is_multicast() || (is_full && !self.resolved.contains_key(&neighbor)) {
            return;
        }
        if self.known.get(&neighbor) == Some(&mac) {
            self.resolved.remove(&neighbor);
        } else {
            self.resolved.insert(neighbor, mac);
        }
        if self.requested.remove(&neighbor).is_none() {
            return;
        }
        for waiting in std::mem::take(&mut self.waiting) {
            if waiting.neighbor == neighbor {
                release(waiting.frame.frame);
            } else {
                self.waiting.push_back(waiting);
            }
        }
    }

    /// Queues a frame until its next hop is resolved. If the queue is full, the oldest frame goes
    /// to `drop`.
    pub(crate) fn enqueue(
        &mut self,
        at: Time,
        neighbor: NeighborKey,
        frame: UnresolvedFrame,
        drop: impl FnOnce(Frame),
    ) -> RequestState {
        self.waiting.push_back(Waiting { since: at, neighbor, frame });
        if self.waiting.len() > WAITING_MAX
            && let Some(oldest) = self.waiting.pop_front()
        {
            drop(oldest.frame.frame);
        }
        let requested = self.requested.get(&neighbor).copied();
        if requested.is_some_and(|requested| at.since(requested) < REQUEST_INTERVAL) {
            return RequestState::Pending;
        }
        if self.requested.len() >= RESOLVED_MAX {
            self.requested.retain(|_, requested| at.since(*requested) < REQUEST_INTERVAL);
        }
        self.requested.insert(neighbor, at);
        RequestState::Due
    }

    /// Returns when the oldest frame expires.
    pub(crate) fn expires_at(&self) -> Option<Time> {
        Some(self.waiting.front()?.since.saturating_add(RESOLVE_TIMEOUT))
    }

    /// Removes a frame that has expired at `at`.
    pub(crate) fn pop_expired(&mut self, at: Time) -> Option<UnresolvedFrame> {
        self.expires_at().filter(|end| *end <= at)?;
        self.waiting.pop_front().map(|oldest| oldest.frame)
    }

    /// Takes out all waiting frames.
    pub(crate) fn empty(&mut self, take: impl FnMut(Frame)) {
        self.waiting.drain(..).map(|waiting| waiting.frame.frame).for_each(take);
    }

    /// Returns the number of waiting frames.
    pub(crate) fn held(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::FramePool;

    #[test]
    fn frames_wait_for_an_answer_until_the_timeout() {
        let mut pool = FramePool::default();
        let mut neighbors = Neighbors::default();
        let neighbor = (0, "10.0.0.9".parse().unwrap());
        let at = |ms| Time::ZERO + Duration::from_ms(ms);
        let mut expired = Vec::new();
        let mut enqueue = |neighbors: &mut Neighbors, ms, len| {
            let frame = pool.alloc(len).unwrap();
            while let Some(unresolved) = neighbors.pop_expired(at(ms)) {
                expired.push(unresolved.frame.len());
            }
            let frame = UnresolvedFrame { frame, received_on: 0 };
            neighbors.enqueue(at(ms), neighbor, frame, |_| panic!("the queue is not full"))
        };
        assert_eq!(enqueue(&mut neighbors, 0, 1), RequestState::Due);
        assert_eq!(enqueue(&mut neighbors, 999, 2), RequestState::Pending);
        assert_eq!(enqueue(&mut neighbors, 1000, 3), RequestState::Due);
        assert_eq!(enqueue(&mut neighbors, 3500, 4), RequestState::Due);
        assert_eq!(expired, [1], "the timeout is three seconds");
        let mut released = Vec::new();
        neighbors.learn(neighbor, MacAddr::from_index(7), |frame| released.push(frame.len()));
        assert_eq!(released, [2, 3, 4]);
        assert_eq!((neighbors.held(), neighbors.resolve(neighbor)), (0, Some(MacAddr::from_index(7))));
    }

    #[test]
    fn the_number_of_waiting_frames_is_bounded() {
        let mut pool = FramePool::default();
        let mut neighbors = Neighbors::default();
        let mut dropped = 0;
        for i in 0..1000u32 {
            let neighbor = (0, IpAddr::from(i.to_be_bytes()));
            let frame = UnresolvedFrame { frame: pool.alloc(60).unwrap(), received_on: 0 };
            let _ = neighbors.enqueue(Time::ZERO, neighbor, frame, |frame| {
                dropped += frame.len() / 60;
            });
        }
        assert_eq!((neighbors.held(), dropped), (WAITING_MAX, 1000 - WAITING_MAX));
    }
}
