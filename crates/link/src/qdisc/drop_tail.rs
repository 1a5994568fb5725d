//! Drop-tail: first come, first served, until the queue is full.

use super::Admission;
use crate::counters::Volume;
use crate::packet::DropReason;
use fastpath_units::Bytes;
use std::fmt;

/// How much may be queued. The packet being serialised counts until its transmission ends, as in
/// Dummynet: a limit of one packet means that nothing may wait behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// At most this many packets. With 0, nothing passes.
    Packets(u32),
    /// At most this many bytes of frames, without framing overhead. A frame larger than the limit
    /// never fits, not even into an empty queue, and is dropped.
    Bytes(Bytes),
}

impl Limit {
    /// True if what is `queued` is within the limit.
    pub(crate) fn holds(self, queued: Volume) -> bool {
        match self {
            Limit::Packets(most) => queued.packets <= u64::from(most),
            Limit::Bytes(most) => queued.bytes <= most.0,
        }
    }

    /// True if a frame of `len` bytes may join the `queued`.
    #[inline]
    pub(crate) fn has_room(self, len: u32, queued: Volume) -> bool {
        match self {
            Limit::Packets(most) => queued.packets < u64::from(most),
            Limit::Bytes(most) => queued.bytes + u64::from(len) <= most.0,
        }
    }
}

impl fmt::Display for Limit {
    /// `50p`, `64KiB`, `unlimited`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Packets(u32::MAX) => f.write_str("unlimited"),
            Limit::Packets(packets) => write!(f, "{packets}p"),
            Limit::Bytes(bytes) => bytes.fmt(f),
        }
    }
}

/// Takes the packet if there is room for it.
#[inline]
pub(crate) fn admit(limit: Limit, len: u32, queued: Volume) -> Admission {
    if limit.has_room(len, queued) { Admission::Take } else { Admission::Drop(DropReason::QueueFull) }
}
