//! The limit of a queue, in packets or bytes.

use crate::counters::Volume;
use fastpath_units::Bytes;
use std::fmt;

/// The largest queue. The packet on the wire counts until its transmission ends, as in Dummynet: a
/// limit of one packet means that no packet may wait behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// The largest number of packets. With 0, nothing passes.
    Packets(u32),
    /// The largest number of bytes of frames, without framing overhead. A frame larger than the
    /// limit is dropped even if the queue is empty.
    Bytes(Bytes),
}

impl Limit {
    /// Returns true if `queued` is within the limit.
    pub(crate) fn holds(self, queued: Volume) -> bool {
        match self {
            Limit::Packets(max) => queued.packets <= u64::from(max),
            Limit::Bytes(max) => queued.bytes <= max.0,
        }
    }

    /// Returns true if a frame of `len` bytes may join what is `queued`.
    #[inline]
    pub(crate) fn has_room(self, len: u32, queued: Volume) -> bool {
        match self {
            Limit::Packets(max) => queued.packets < u64::from(max),
            Limit::Bytes(max) => queued.bytes + u64::from(len) <= max.0,
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
