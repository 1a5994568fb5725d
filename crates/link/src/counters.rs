//! What went in, what came out, what was dropped and why.

use crate::packet::DropReason;
use std::ops::AddAssign;

/// A number of packets and the bytes of their frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Volume {
    /// Packets.
    pub packets: u64,
    /// Bytes of their frames, without framing overhead.
    pub bytes: u64,
}

impl Volume {
    #[inline]
    pub(crate) fn add(&mut self, len: u32) {
        self.packets += 1;
        self.bytes += u64::from(len);
    }

    #[inline]
    pub(crate) fn add_all(&mut self, packets: u64, bytes: u64) {
        self.packets += packets;
        self.bytes += bytes;
    }

    #[inline]
    pub(crate) fn remove(&mut self, len: u32) {
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

/// The counters of one pipe since it was made, or of several added up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Given to `push`.
    pub pushed: Volume,
    /// Returned by `pop` as delivered.
    pub delivered: Volume,
    /// Packets on which the pipe set ECN CE, counted when queued.
    pub marked: u64,
    /// Packets delivered with flipped bits.
    pub corrupted: u64,
    /// Copies asked of the caller beside the packets delivered.
    pub duplicated: u64,
    pub(crate) dropped: [u64; DropReason::ALL.len()],
    pub(crate) dropped_bytes: u64,
}

impl Counters {
    /// Packets dropped for `reason`.
    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    /// What was dropped for any reason.
    pub fn dropped(&self) -> Volume {
        Volume { packets: self.dropped.iter().sum(), bytes: self.dropped_bytes }
    }

    /// True if every packet and byte is accounted for: pushed = delivered + dropped + `held`.
    pub fn conserved(&self, held: Volume) -> bool {
        let mut out = self.delivered;
        out += self.dropped();
        out += held;
        out == self.pushed
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
        self.dropped_bytes += other.dropped_bytes;
        for (mine, theirs) in self.dropped.iter_mut().zip(other.dropped) {
            *mine += theirs;
        }
    }
}
