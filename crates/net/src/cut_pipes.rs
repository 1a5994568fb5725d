//! What leads from one part of a network to others: the pipes, and the frames on their way.

use crate::observer::{FrameTag, Observer};
use crate::pool::{Frame, FramePool};
use fastpath_link::{DropReason, Exit, Fate, Packet};
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
    pub(crate) tag: Option<FrameTag>,
}

/// The pipes that lead to other parts.
#[derive(Debug)]
pub(crate) struct CutPipes {
    pub(crate) outbound: Vec<Outbound>,
    /// By pipe: its place in `outbound`.
    pub(crate) places: Vec<u32>,
    /// By part: what passes on to it.
    pub(crate) out: Vec<Crossings>,
    /// The places of pipes that may hold frames.
    pub(crate) busy: Vec<u32>,
    /// Frames that have passed on to other parts, and frames that have come from them.
    pub(crate) passed_on: u64,
    pub(crate) received: u64,
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
    /// Whether it is among the busy ones.
    pub(crate) is_busy: bool,
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

    /// Adds a frame that leaves `pipe`, and frees it.
    pub(crate) fn push<O: Observer>(
        &mut self,
        pipe: u32,
        exit: Exit<Frame>,
        departed: Option<Time>,
        pool: &mut FramePool,
        observer: &mut O,
    ) {
        let Exit { at, packet: Packet { data: frame, .. }, fate } = exit;
        let tag = observer.crossed(&frame);
        self.first_at = Some(self.first_at.map_or(at, |first| first.min(at)));
        pool.append_to(&frame, usize::MAX, &mut self.bytes);
        self.heads.push(Crossing { pipe, at, departed, fate, len: frame.len() as u32, tag });
        pool.free(frame);
    }

    /// Passes each frame with its bytes to `take`, up to the first error, and becomes empty.
    pub(crate) fn drain<E>(
        &mut self,
        mut take: impl FnMut(Crossing, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut offset, mut result) = (0, Ok(()));
        for crossing in self.heads.drain(..) {
            let end = offset + crossing.len as usize;
            if result.is_ok() {
                result = take(crossing, &self.bytes[offset..end]);
            }
            offset = end;
        }
        self.bytes.clear();
        self.first_at = None;
        result
    }

    /// Returns the bytes of the frames.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds the frames of `other`, which is empty afterwards.
    pub fn append(&mut self, other: &mut Crossings) {
        if self.is_empty() {
            std::mem::swap(self, other);
            return;
        }
        self.first_at = [self.first_at, other.first_at.take()].into_iter().flatten().min();
        self.heads.append(&mut other.heads);
        self.bytes.append(&mut other.bytes);
    }
}

impl CutPipes {
    /// Notes that frames enter a pipe of the network, which need not lead to another part.
    #[inline]
    pub(crate) fn note_entry(&mut self, pipe: u32) {
        let place = self.places[pipe as usize];
        if let Some(outbound) = self.outbound.get_mut(place as usize)
            && !std::mem::replace(&mut outbound.is_busy, true)
        {
            self.busy.push(place);
        }
    }

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
