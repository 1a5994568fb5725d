//! What leads from one part of a network to others: the pipes, and the frames on their way.

use fastpath_link::{DropReason, Fate};
use fastpath_units::{Duration, Time};

/// Frames that pass from one part to another, with their bytes.
#[derive(Debug, Default)]
pub struct Crossings {
    pub(crate) heads: Vec<Crossing>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) first_at: Option<Time>,
}

/// One frame that passes from one part to another.
#[derive(Debug)]
pub(crate) struct Crossing {
    pub(crate) pipe: u32,
    pub(crate) at: Time,
    pub(crate) departed: Option<Time>,
    pub(crate) fate: Fate,
    pub(crate) len: u32,
    pub(crate) tag: u64,
}

/// The pipes that lead to other parts.
#[derive(Debug)]
pub(crate) struct CutPipes {
    pub(crate) outbound: Vec<Outbound>,
    /// By pipe: its place in `outbound`.
    pub(crate) places: Vec<u32>,
    /// By part: what passes on to it.
    pub(crate) out: Vec<Crossings>,
}

/// A pipe that leads to another part.
#[derive(Debug)]
pub(crate) struct Outbound {
    pub(crate) pipe: u32,
    pub(crate) to: usize,
    pub(crate) lookahead: Duration,
    /// Whether an exit is final from the departure on, because the delay has no jitter.
    pub(crate) is_final: bool,
    /// The latest exit.
    pub(crate) at: Time,
    /// Whether exits were in order.
    pub(crate) in_order: bool,
}

impl Crossings {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Returns the number of frames.
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Returns the time at which the first frame arrives.
    pub fn first_at(&self) -> Option<Time> {
        self.first_at
    }

    pub(crate) fn push(&mut self, crossing: Crossing, bytes: &[u8]) {
        self.first_at = Some(self.first_at.map_or(crossing.at, |first| first.min(crossing.at)));
        self.bytes.extend_from_slice(bytes);
        self.heads.push(crossing);
    }
}

impl CutPipes {
    /// Returns whether a frame with this fate passes on: it was in the delay line.
    pub(crate) fn passes_on(fate: Fate) -> bool {
        !matches!(fate, Fate::Dropped(reason) if reason != DropReason::Late)
    }
}

impl Outbound {
    /// Notes an exit.
    pub(crate) fn note(&mut self, at: Time) {
        self.in_order &= at >= self.at;
        self.at = self.at.max(at);
    }
}
