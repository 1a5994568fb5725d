//! What congestion control learns of an acknowledgement.

use fastpath_units::{Duration, Time};

/// An acknowledgement, as congestion control sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    /// When it came.
    pub now: Time,
    /// Segments that it acknowledges.
    pub acked: u64,
    /// The round trip of the last of them.
    pub rtt: Option<Duration>,
    /// All below is acknowledged.
    pub una: u64,
    /// The next position that is sent.
    pub next: u64,
    /// The smoothed round trip.
    pub smoothed: Option<Duration>,
}
