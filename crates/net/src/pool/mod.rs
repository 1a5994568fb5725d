//! Frames in flight: one bounded store of bytes, handed out in slots of a few sizes.
//!
//! A held frame costs its length rounded up to 64 bytes, not a full-size buffer: memory follows
//! bandwidth × delay, and neighbours in time are neighbours in memory. Freed slots are reused
//! last-in first-out, while they are still in the cache. Super-packets may stay in one slot
//! (`whole.rs`).

mod whole;

pub use whole::{SegmentRun, Segments};

use std::num::{NonZeroU32, NonZeroUsize};
use whole::Wholes;

/// Slot sizes: steps of 64 bytes to 2 KiB, then jumbo frames and super-packets.
const STEP: usize = 64;
const STEPPED: usize = 2048 / STEP;
const LARGE: [usize; 5] = [4096, 9216 + 64, 16384 + 64, 32768 + 64, 65536 + 64];
/// Bytes of memory added to a class at a time, at least one slot.
const CHUNK: usize = 1 << 16;
/// A handle is class × 2²⁶ + slot.
const SLOT_BITS: u32 = 26;

/// The longest frame a pool holds, bytes.
pub const FRAME_MAX: usize = LARGE[LARGE.len() - 1];

/// A frame's handle: where its bytes are, and how many. It cannot be copied; give it back with
/// [`FramePool::free`].
#[derive(PartialEq, Eq, Debug)]
#[must_use = "a frame that is not freed is lost to the pool"]
pub struct Frame {
    /// The slot's number, counted from 1 so that `Option<Frame>` is no larger.
    place: NonZeroU32,
    len: u32,
}

impl Frame {
    /// Bytes in the frame.
    #[allow(clippy::len_without_is_empty)] // an empty frame is no frame
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// The slot's number: unique among the frames alive, reused after. A segment that is cut gets
    /// another.
    #[inline]
    pub fn slot(&self) -> u32 {
        self.place.get() - 1
    }

    #[inline]
    fn class(&self) -> usize {
        (self.slot() >> SLOT_BITS) as usize
    }
}

/// The store of all frames of one worker.
#[derive(Debug)]
pub struct FramePool {
    classes: Vec<Class>,
    limit: usize,
    reserved: usize,
    live: usize,
    wholes: Wholes,
}

#[derive(Debug)]
struct Class {
    size: usize,
    /// log₂ of the slots in a chunk.
    chunk_bits: u32,
    chunks: Vec<Box<[u8]>>,
    free: Vec<u32>,
}

impl Class {
    fn new(size: usize) -> Class {
        // A power of two so that finding a slot is a shift and a mask.
        let chunk_bits = (CHUNK / size).max(1).next_power_of_two().ilog2();
        Class { size, chunk_bits, chunks: Vec::new(), free: Vec::new() }
    }

    fn slots_per_chunk(&self) -> usize {
        1 << self.chunk_bits
    }

    #[inline]
    fn range(&self, slot: u32) -> (usize, usize) {
        let index = (slot & ((1 << SLOT_BITS) - 1)) as usize;
        (index >> self.chunk_bits, (index & (self.slots_per_chunk() - 1)) * self.size)
    }

    fn grow(&mut self, class: usize) {
        let first = self.chunks.len() * self.slots_per_chunk();
        self.chunks.push(vec![0; self.size * self.slots_per_chunk()].into_boxed_slice());
        let id = |slot: usize| (class as u32) << SLOT_BITS | slot as u32;
        self.free.extend((first..first + self.slots_per_chunk()).rev().map(id));
    }
}

impl FramePool {
    /// Bytes of memory that even an empty frame takes, unless it is a segment that is not cut.
    pub const SMALLEST: usize = STEP;

    /// A pool that takes at most `limit` bytes of memory.
    pub fn new(limit: NonZeroUsize) -> FramePool {
        let sizes = (1..=STEPPED).map(|i| i * STEP).chain(LARGE);
        FramePool {
            classes: sizes.map(Class::new).collect(),
            limit: limit.get(),
            reserved: 0,
            live: 0,
            wholes: Wholes::default(),
        }
    }

    /// A frame of `len` bytes whose content is whatever was there before. `None` if the pool's
    /// limit is reached or `len` exceeds [`FRAME_MAX`].
    pub fn alloc(&mut self, len: usize) -> Option<Frame> {
        let index = Self::class_of(len)?;
        let class = &mut self.classes[index];
        if class.free.is_empty() {
            let more = class.size * class.slots_per_chunk();
            let slots = (class.chunks.len() + 1) * class.slots_per_chunk();
            if self.reserved + more > self.limit || slots > 1 << SLOT_BITS {
                return None;
            }
            self.reserved += more;
            class.grow(index);
        }
        let slot = class.free.pop()?;
        self.live += 1;
        Some(Frame { place: NonZeroU32::MIN.saturating_add(slot), len: len as u32 })
    }

    /// A frame with these bytes; `None` as for [`FramePool::alloc`].
    pub fn insert(&mut self, bytes: &[u8]) -> Option<Frame> {
        let mut frame = self.alloc(bytes.len())?;
        self.bytes_mut(&mut frame).copy_from_slice(bytes);
        Some(frame)
    }

    /// A second frame with the same bytes.
    pub fn duplicate(&mut self, frame: &Frame) -> Option<Frame> {
        let copy = self.alloc(frame.len())?;
        let (class, to_class) = (frame.class(), copy.class());
        let ((chunk, at), (to_chunk, to)) =
            (self.classes[class].range(frame.slot()), self.classes[to_class].range(copy.slot()));
        let from = at..at + frame.len();
        if (class, chunk) == (to_class, to_chunk) {
            self.classes[class].chunks[chunk].copy_within(from, to);
        } else {
            // Out of its place for a moment, for it is one of many in one place.
            let mut target = std::mem::take(&mut self.classes[to_class].chunks[to_chunk]);
            target[to..to + frame.len()].copy_from_slice(&self.classes[class].chunks[chunk][from]);
            self.classes[to_class].chunks[to_chunk] = target;
        }
        Some(copy)
    }

    /// The frame's bytes. It has some: [`Frame::is_cut`].
    #[inline]
    pub fn bytes(&self, frame: &Frame) -> &[u8] {
        debug_assert!(frame.is_cut(), "a segment that is not cut has no bytes");
        let class = &self.classes[frame.class()];
        let (chunk, at) = class.range(frame.slot());
        &class.chunks[chunk][at..at + frame.len()]
    }

    /// The frame's bytes, to write.
    pub fn bytes_mut(&mut self, frame: &mut Frame) -> &mut [u8] {
        let class = &mut self.classes[frame.class()];
        let (chunk, at) = class.range(frame.slot());
        &mut class.chunks[chunk][at..at + frame.len()]
    }

    /// Shortens the frame to its first `len` bytes (a port allocates before it knows how much will
    /// come).
    pub fn truncate(&mut self, frame: &mut Frame, len: usize) {
        debug_assert!(frame.is_cut(), "a segment that is not cut has no bytes");
        frame.len = frame.len.min(len as u32);
    }

    /// Gives the frame's memory back.
    #[inline]
    pub fn free(&mut self, frame: Frame) {
        self.live -= 1;
        if frame.is_cut() {
            self.classes[frame.class()].free.push(frame.slot());
        } else {
            self.free_segment(&frame);
        }
    }

    /// Frames alive.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Bytes of memory taken so far.
    pub fn reserved(&self) -> usize {
        self.reserved
    }

    fn class_of(len: usize) -> Option<usize> {
        if len <= STEP * STEPPED {
            return Some(len.max(1).div_ceil(STEP) - 1);
        }
        LARGE.iter().position(|&size| len <= size).map(|i| STEPPED + i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pool(limit: usize) -> FramePool {
        FramePool::new(NonZeroUsize::new(limit).unwrap())
    }

    #[test]
    fn a_full_pool_refuses_and_recovers() {
        let mut pool = pool(1 << 16);
        let frames: Vec<Frame> = std::iter::from_fn(|| pool.alloc(64)).collect();
        assert_eq!(frames.len(), 1024);
        assert!(pool.alloc(1500).is_none(), "the limit covers all classes together");
        frames.into_iter().for_each(|frame| pool.free(frame));
        assert!(pool.alloc(64).is_some());
        assert!(pool.alloc(FRAME_MAX + 1).is_none());
    }

    #[test]
    fn a_copy_of_a_shortened_frame_is_the_frame() {
        let mut pool = pool(1 << 20);
        let mut frame = pool.insert(&[7; 2000]).unwrap();
        pool.truncate(&mut frame, 100);
        let copy = pool.duplicate(&frame).unwrap();
        assert_eq!((pool.bytes(&copy), pool.bytes(&frame)), (&[7; 100][..], &[7; 100][..]));
    }

    proptest! {
        #[test]
        fn frames_never_share_bytes(ops in proptest::collection::vec((0usize..5, 1usize..70_000, any::<u8>()), 1..120)) {
            let mut pool = pool(64 << 20);
            let mut alive: Vec<(Frame, Vec<u8>)> = Vec::new();
            for (op, len, fill) in ops {
                match op {
                    0 if !alive.is_empty() => {
                        let (frame, _) = alive.swap_remove(len % alive.len());
                        pool.free(frame);
                    }
                    1 if !alive.is_empty() => {
                        let (original, content) = &alive[len % alive.len()];
                        let content = content.clone();
                        if let Some(copy) = pool.duplicate(original) {
                            alive.push((copy, content));
                        }
                    }
                    _ => {
                        let content = vec![fill; len.min(FRAME_MAX)];
                        if let Some(frame) = pool.insert(&content) {
                            alive.push((frame, content));
                        }
                    }
                }
                prop_assert_eq!(pool.live(), alive.len());
            }
            for (frame, content) in &alive {
                prop_assert_eq!(pool.bytes(frame), content.as_slice());
            }
        }
    }
}
