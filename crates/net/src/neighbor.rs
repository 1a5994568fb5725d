//! A router's neighbors: which hardware address stands for an IP address on an interface (ARP, RFC
//! 826; Neighbor Discovery, RFC 4861), and the frames that wait for an answer.
//!
//! Neighbors inside the topology are known from the start; only stations behind real ports are
//! asked for.

use crate::pool::Frame;
use fastpath_units::{Duration, Time};
use fastpath_wire::MacAddr;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Addresses remembered; beyond it nothing new is learned.
const KNOWN_MAX: usize = 65_536;
/// Frames that wait for an answer; the oldest goes when one more comes.
const WAITING_MAX: usize = 256;
/// One question an address per second (RFC 1122 §2.3.2.1).
const ASK_EVERY: Duration = Duration::from_secs(1);
/// Who has not answered by then will not.
const PATIENCE: Duration = Duration::from_secs(3);

/// A station on a segment: the interface and its address there.
pub(crate) type Station = (usize, IpAddr);

#[derive(Debug, Default)]
pub(crate) struct Neighbors {
    known: BTreeMap<Station, MacAddr>,
    asked: BTreeMap<Station, Time>,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    since: Time,
    station: Station,
    parked: Parked,
}

/// A frame that waits, and the interface it came by.
#[derive(Debug)]
pub(crate) struct Parked {
    pub(crate) frame: Frame,
    pub(crate) came_by: usize,
}

/// Whether to send a question now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Question {
    Ask,
    AlreadyAsked,
}

impl Neighbors {
    pub(crate) fn resolve(&self, station: Station) -> Option<MacAddr> {
        self.known.get(&station).copied()
    }

    /// Notes an address; the frames that waited for it are handed to `release`.
    pub(crate) fn learn(&mut self, station: Station, mac: MacAddr, mut release: impl FnMut(Frame)) {
        if mac.is_multicast() || (self.known.len() >= KNOWN_MAX && !self.known.contains_key(&station)) {
            return;
        }
        self.known.insert(station, mac);
        if self.asked.remove(&station).is_none() {
            return;
        }
        for waiting in std::mem::take(&mut self.waiting) {
            if waiting.station == station {
                release(waiting.parked.frame);
            } else {
                self.waiting.push_back(waiting);
            }
        }
    }

    /// Keeps a frame until its next hop answers. One that is too many then is handed to `give_up`.
    pub(crate) fn wait(
        &mut self,
        at: Time,
        station: Station,
        parked: Parked,
        give_up: impl FnOnce(Frame),
    ) -> Question {
        self.waiting.push_back(Waiting { since: at, station, parked });
        if self.waiting.len() > WAITING_MAX
            && let Some(oldest) = self.waiting.pop_front()
        {
            give_up(oldest.parked.frame);
        }
        let asked = self.asked.get(&station).copied();
        if asked.is_some_and(|asked| at.since(asked) < ASK_EVERY) {
            return Question::AlreadyAsked;
        }
        if self.asked.len() >= KNOWN_MAX {
            self.asked.retain(|_, asked| at.since(*asked) < ASK_EVERY);
        }
        self.asked.insert(station, at);
        Question::Ask
    }

    /// When the oldest frame has waited long enough.
    pub(crate) fn gives_up_at(&self) -> Option<Time> {
        Some(self.waiting.front()?.since.saturating_add(PATIENCE))
    }

    /// A frame that has waited long enough at `at`.
    pub(crate) fn give_up(&mut self, at: Time) -> Option<Parked> {
        self.gives_up_at().filter(|end| *end <= at)?;
        self.waiting.pop_front().map(|oldest| oldest.parked)
    }

    /// Frames waiting.
    pub(crate) fn held(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::FramePool;
    use std::num::NonZeroUsize;

    #[test]
    fn frames_wait_for_the_answer_and_not_for_ever() {
        let mut pool = FramePool::new(NonZeroUsize::new(1 << 20).unwrap());
        let mut neighbors = Neighbors::default();
        let station = (0, "10.0.0.9".parse().unwrap());
        let at = |ms| Time::ZERO + Duration::from_ms(ms);
        let mut gone = Vec::new();
        let mut wait = |neighbors: &mut Neighbors, ms, len| {
            let frame = pool.alloc(len).unwrap();
            while let Some(parked) = neighbors.give_up(at(ms)) {
                gone.push(parked.frame.len());
            }
            neighbors.wait(at(ms), station, Parked { frame, came_by: 0 }, |_| panic!("there is room"))
        };
        assert_eq!(wait(&mut neighbors, 0, 1), Question::Ask);
        assert_eq!(wait(&mut neighbors, 999, 2), Question::AlreadyAsked);
        assert_eq!(wait(&mut neighbors, 1000, 3), Question::Ask);
        assert_eq!(wait(&mut neighbors, 3500, 4), Question::Ask);
        assert_eq!(gone, [1], "three seconds are enough");
        let mut released = Vec::new();
        neighbors.learn(station, MacAddr::from_index(7), |frame| released.push(frame.len()));
        assert_eq!(released, [2, 3, 4]);
        assert_eq!((neighbors.held(), neighbors.resolve(station)), (0, Some(MacAddr::from_index(7))));
    }

    #[test]
    fn a_crowd_of_waiting_frames_is_bounded() {
        let mut pool = FramePool::new(NonZeroUsize::new(1 << 20).unwrap());
        let mut neighbors = Neighbors::default();
        let mut gone = 0;
        for i in 0..1000u32 {
            let station = (0, IpAddr::from(i.to_be_bytes()));
            let frame = pool.alloc(60).unwrap();
            let _ = neighbors.wait(Time::ZERO, station, Parked { frame, came_by: 0 }, |frame| {
                gone += frame.len() / 60;
            });
        }
        assert_eq!((neighbors.held(), gone), (WAITING_MAX, 1000 - WAITING_MAX));
    }
}
