//! What leads from one part of a network to others: the pipes, and the frames on their way.

use crate::observer::{FrameTag, Observer};
use crate::pool::{Frame, FramePool};
use fastpath_link::{DropReason, Exit, Fate, Packet};
use fastpath_units::{Duration, Time};

/// Frames that pass from one part to another, with their bytes.
#[derive(Debug, Default)]
pub struct Crossings {
    pub(crate) heads: Vec<CrossingHead>,
    /// What few frames have, in their order.
    pub(crate) extras: Vec<CrossingExtra>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) first_at: Option<Time>,
}

/// What every frame has. It is small, because it moves from one core to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrossingHead {
    at: Time,
    pipe: u32,
    /// The length of the frame, and [`CrossingHead::HAS_EXTRA`].
    len: u32,
}

impl CrossingHead {
    const HAS_EXTRA: u32 = 1 << 31;
}

/// What a frame has that is not simply delivered, or that an observer follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrossingExtra {
    departed: Option<Time>,
    fate: Fate,
    tag: Option<FrameTag>,
}

impl CrossingExtra {
    const NONE: CrossingExtra =
        CrossingExtra { departed: None, fate: Fate::Delivered { marked: false }, tag: None };
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
        let mut len = frame.len() as u32;
        if departed.is_some() || tag.is_some() || fate != CrossingExtra::NONE.fate {
            len |= CrossingHead::HAS_EXTRA;
            self.extras.push(CrossingExtra { departed, fate, tag });
        }
        self.heads.push(CrossingHead { at, pipe, len });
        pool.free(frame);
    }

    /// Passes each frame with its bytes to `take`, up to the first error, and becomes empty.
    pub(crate) fn drain<E>(
        &mut self,
        mut take: impl FnMut(Crossing, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut offset, mut result) = (0, Ok(()));
        let mut extras = self.extras.drain(..);
        for CrossingHead { at, pipe, len } in self.heads.drain(..) {
            let extra = if len & CrossingHead::HAS_EXTRA == 0 { None } else { extras.next() };
            let CrossingExtra { departed, fate, tag } = extra.unwrap_or(CrossingExtra::NONE);
            let len = len & !CrossingHead::HAS_EXTRA;
            let crossing = Crossing { pipe, at, departed, fate, len, tag };
            let end = offset + len as usize;
            if result.is_ok() {
                result = take(crossing, &self.bytes[offset..end]);
            }
            offset = end;
        }
        drop(extras);
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
        self.extras.append(&mut other.extras);
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
    /// Notes an exit, and returns it. Where a change has made the delay shorter, a frame does not
    /// overtake those that have passed on, unless there is jitter.
    pub(crate) fn note(&mut self, at: Time) -> Time {
        self.in_order &= at >= self.at;
        self.at = self.at.max(at);
        if self.is_final { self.at } else { at }
    }
}
