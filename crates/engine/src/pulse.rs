//! How busy a worker is.

use fastpath_units::{Duration, Time};

/// What a worker has done up to an instant.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Pulse {
    pub(crate) at: Time,
    /// Time spent in iterations that moved frames.
    pub(crate) busy: Duration,
    /// Frames released.
    pub(crate) released: u64,
    /// Frames released later than half of the tolerance.
    pub(crate) near: u64,
}

/// What a worker did in the last second.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct RecentWorker {
    /// The share of the time in which it moved frames.
    pub(crate) load: f64,
    /// What it lacks, from the notice on until that is over.
    pub(crate) warning: Option<String>,
}
