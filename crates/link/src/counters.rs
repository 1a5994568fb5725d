//! Frame accounting of a pipe: packets pushed, delivered and dropped by reason.

use crate::packet::DropReason;
use fastpath_units::Duration;
use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// A number of packets and the bytes of their frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Volume {
    /// Number of packets.
    pub packets: u64,
    /// Bytes of their frames, without framing overhead.
    pub bytes: u64,
}

impl Volume {
    #[inline]
    pub(crate) fn add_packet(&mut self, len: u32) {
        self.packets += 1;
        self.bytes += u64::from(len);
    }

    #[inline]
    pub(crate) fn add_all(&mut self, packets: u64, bytes: u64) {
        self.packets += packets;
        self.bytes += bytes;
    }

    #[inline]
    pub(crate) fn remove_packet(&mut self, len: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(len);
    }
}

impl AddAssign for Volume {
    fn add_assign(&mut self, other: Volume) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

impl Add for Volume {
    type Output = Volume;

    #[inline]
    fn add(self, other: Volume) -> Volume {
        Volume { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

impl Sum for Volume {
    fn sum<I: Iterator<Item = Volume>>(volumes: I) -> Volume {
        volumes.fold(Volume::default(), Add::add)
    }
}

/// What is in the queue of a pipe at one instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueState {
    /// The packets in the queue, including the packet on the wire.
    pub volume: Volume,
    /// How long the packet at its head has been in the queue. The head is the packet on the wire.
    /// If packets wait while none is on the wire, this is the time that the packet which left last
    /// has spent in the queue.
    pub delay: Duration,
}

/// The packets of cross traffic at a pipe. What is neither sent nor dropped is in the queue. They
/// are counted up to the last push or change, or the last look at the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CrossCounters {
    /// Packets that arrived.
    pub offered: Volume,
    /// Packets that were sent on the wire.
    pub sent: Volume,
    /// Packets that the queue dropped, or that found the link down.
    pub dropped: Volume,
}

impl CrossCounters {
    /// Returns the packets in the queue and on the wire.
    pub fn queued(&self) -> Volume {
        let Volume { packets, bytes } = self.sent + self.dropped;
        Volume { packets: self.offered.packets - packets, bytes: self.offered.bytes - bytes }
    }
}

impl AddAssign for CrossCounters {
    fn add_assign(&mut self, other: CrossCounters) {
        self.offered += other.offered;
        self.sent += other.sent;
        self.dropped += other.dropped;
    }
}

/// The counters of one pipe since it was created, or the sum over several pipes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets given to `push`.
    pub pushed: Volume,
    /// Packets that `pop` returned as delivered.
    pub delivered: Volume,
    /// Packets on which the pipe set ECN CE, counted when they were marked.
    pub marked: u64,
    /// Packets delivered with flipped bits.
    pub corrupted: u64,
    /// Copies requested of the caller, in addition to the packets delivered.
    pub duplicated: u64,
    /// Packets of cross traffic, which no other count includes.
    pub cross: CrossCounters,
    pub(crate) dropped: [u64; DropReason::ALL.len()],
    pub(crate) dropped_bytes: u64,
}

impl Counters {
    /// Returns the number of packets dropped for `reason`.
    #[inline]
    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    /// Returns the numbers of packets dropped by the names of the reasons, those without packets
    /// not among them.
    pub fn dropped_by_reason(&self) -> BTreeMap<String, u64> {
        let counts = DropReason::ALL.into_iter().map(|reason| (reason, self.dropped_for(reason)));
        counts
            .filter(|(_, count)| *count > 0)
            .map(|(reason, count)| (reason.name().to_owned(), count))
            .collect()
    }

    /// Returns what was dropped for any reason.
    #[inline]
    pub fn dropped(&self) -> Volume {
        Volume { packets: self.dropped.iter().sum(), bytes: self.dropped_bytes }
    }

    /// Returns true if the accounts balance: pushed = delivered + dropped + `held`.
    #[inline]
    pub fn conserved(&self, held: Volume) -> bool {
        self.delivered + self.dropped() + held == self.pushed
    }

    /// Counts packets that were dropped elsewhere, by an executor of the same pipe.
    pub fn add_drops(&mut self, reason: DropReason, dropped: Volume) {
        self.dropped[reason as usize] += dropped.packets;
        self.dropped_bytes += dropped.bytes;
    }

    pub(crate) fn drop_one(&mut self, reason: DropReason, len: u32) {
        self.dropped[reason as usize] += 1;
        self.dropped_bytes += u64::from(len);
    }
}

impl AddAssign for Counters {
    /// The sum over several pipes.
    fn add_assign(&mut self, other: Counters) {
        self.pushed += other.pushed;
        self.delivered += other.delivered;
        self.marked += other.marked;
        self.corrupted += other.corrupted;
        self.duplicated += other.duplicated;
        self.cross += other.cross;
        self.dropped_bytes += other.dropped_bytes;
        for (mine, theirs) in self.dropped.iter_mut().zip(other.dropped) {
            *mine += theirs;
        }
    }
}
