//! The memory of frames in flight: a bounded pool of slots of several sizes.
//!
//! A frame takes its length rounded up to 64 bytes, not a full-size buffer. So memory is
//! proportional to bandwidth × delay, and consecutive frames are adjacent in memory. Freed slots
//! are reused last-in first-out, while they are still in the cache. A super-packet can stay in one
//! slot (`super_packet.rs`).
//!
//! This file and `super_packet.rs` import each other: both are one type, [`FramePool`].

mod super_packet;

pub use super_packet::{SegmentFrames, SegmentRun};

use prefetch_index::prefetch_index;
use std::num::{NonZeroU32, NonZeroUsize};
use super_packet::SuperPackets;

/// The slot sizes: steps of 64 bytes up to 2 KiB, then sizes for jumbo frames and super-packets.
const STEP: usize = 64;
const STEPPED: usize = 2048 / STEP;
const LARGE: [usize; 5] = [4096, 9216 + 64, 16384 + 64, 32768 + 64, 65536 + 64];
/// The memory by which a class grows, in bytes; at least one slot.
const CHUNK: usize = 1 << 16;
/// The bits of a slot number in a handle: a handle is class × 2²⁶ + slot.
const SLOT_BITS: u32 = 26;

/// The maximum length of a frame in a pool, in bytes.
pub const FRAME_MAX: usize = LARGE[LARGE.len() - 1];

/// A handle of a frame: slot and length of its bytes. A handle cannot be copied. Return it with
/// [`FramePool::free`].
#[derive(PartialEq, Eq, Debug)]
#[must_use = "a frame that is not freed keeps its memory"]
pub struct Frame {
    /// The slot number plus 1, so that `Option<Frame>` has the same size.
    handle: NonZeroU32,
    len: u32,
}

impl Frame {
    /// Returns the length of the frame in bytes.
    #[allow(clippy::len_without_is_empty)] // there are no empty frames
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns the slot number, which is unique among live frames and reused after them. A segment
    /// gets another slot number when it is [copied out](FramePool::copy_out).
    #[inline]
    pub fn slot(&self) -> u32 {
        self.handle.get() - 1
    }

    #[inline]
    fn class(&self) -> usize {
        (self.slot() >> SLOT_BITS) as usize
    }
}

/// The pool of all frames of one worker.
#[derive(Debug)]
pub struct FramePool {
    classes: Vec<Class>,
    limit: usize,
    reserved: usize,
    live: usize,
    super_packets: SuperPackets,
}

/// Memory that a pool no longer holds.
#[derive(Debug)]
pub struct UnusedMemory {
    chunks: Vec<Box<[u8]>>,
    _free: Vec<Vec<u32>>,
}

impl UnusedMemory {
    /// Returns whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }
}

/// The slots of one size.
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
        // A power of two: the address of a slot is computed by a shift and a mask.
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

impl Default for FramePool {
    /// Creates an empty pool with [`FramePool::LIMIT_DEFAULT`].
    fn default() -> FramePool {
        FramePool::new(FramePool::LIMIT_DEFAULT)
    }
}

impl FramePool {
    /// The minimum memory of a frame with its own bytes ([`Frame::has_own_bytes`]), in bytes.
    pub const SMALLEST: usize = STEP;

    /// The default limit: 1 GiB. A pool takes memory from the system when frames need it.
    pub const LIMIT_DEFAULT: NonZeroUsize = NonZeroUsize::new(1 << 30).unwrap();

    /// Creates an empty pool that takes at most `limit` bytes of memory.
    pub fn new(limit: NonZeroUsize) -> FramePool {
        let sizes = (1..=STEPPED).map(|i| i * STEP).chain(LARGE);
        FramePool {
            classes: sizes.map(Class::new).collect(),
            limit: limit.get(),
            reserved: 0,
            live: 0,
            super_packets: SuperPackets::default(),
        }
    }

    /// Allocates a frame of `len` bytes with arbitrary content. Returns `None` if the limit of the
    /// pool is reached or `len` exceeds [`FRAME_MAX`].
    #[inline]
    pub fn alloc(&mut self, len: usize) -> Option<Frame> {
        let index = Self::class_of(len)?;
        let class = &mut self.classes[index];
        let slot = match class.free.pop() {
            Some(slot) => slot,
            None => self.grow(index)?,
        };
        self.live += 1;
        Some(Frame { handle: NonZeroU32::MIN.saturating_add(slot), len: len as u32 })
    }

    /// Adds a chunk of slots to a class within the limit, and returns one of them.
    #[cold]
    fn grow(&mut self, index: usize) -> Option<u32> {
        let class = &mut self.classes[index];
        let more = class.size * class.slots_per_chunk();
        let slots = (class.chunks.len() + 1) * class.slots_per_chunk();
        if self.reserved + more > self.limit || slots > 1 << SLOT_BITS {
            return None;
        }
        self.reserved += more;
        class.grow(index);
        class.free.pop()
    }

    /// Allocates a frame with these bytes. Returns `None` as [`FramePool::alloc`] does.
    #[inline(always)]
    pub fn insert(&mut self, bytes: &[u8]) -> Option<Frame> {
        let mut frame = self.alloc(bytes.len())?;
        self.bytes_mut(&mut frame).copy_from_slice(bytes);
        Some(frame)
    }

    /// Allocates a copy of a frame. Returns `None` as [`FramePool::alloc`] does.
    #[inline]
    pub fn duplicate(&mut self, frame: &Frame) -> Option<Frame> {
        let copy = self.alloc(frame.len())?;
        let (class, to_class) = (frame.class(), copy.class());
        let ((chunk, at), (to_chunk, to)) =
            (self.classes[class].range(frame.slot()), self.classes[to_class].range(copy.slot()));
        let from = at..at + frame.len();
        if (class, chunk) == (to_class, to_chunk) {
            self.classes[class].chunks[chunk].copy_within(from, to);
        } else {
            // The target chunk is taken out for the copy, because both chunks are in one array.
            let mut target = std::mem::take(&mut self.classes[to_class].chunks[to_chunk]);
            target[to..to + frame.len()].copy_from_slice(&self.classes[class].chunks[chunk][from]);
            self.classes[to_class].chunks[to_chunk] = target;
        }
        Some(copy)
    }

    /// Returns the bytes of a frame that has its own ([`Frame::has_own_bytes`]).
    #[inline]
    pub fn bytes(&self, frame: &Frame) -> &[u8] {
        debug_assert!(frame.has_own_bytes(), "a segment inside a super-packet has no bytes of its own");
        let class = &self.classes[frame.class()];
        let (chunk, at) = class.range(frame.slot());
        &class.chunks[chunk][at..at + frame.len()]
    }

    /// Prefetches the headers of a frame.
    #[inline]
    pub(crate) fn prefetch(&self, frame: &Frame) {
        if frame.has_own_bytes() {
            let class = &self.classes[frame.class()];
            let (chunk, at) = class.range(frame.slot());
            prefetch_index(&class.chunks[chunk][..], at);
        }
    }

    /// Returns the bytes of a frame for writing.
    #[inline(always)]
    pub fn bytes_mut(&mut self, frame: &mut Frame) -> &mut [u8] {
        let class = &mut self.classes[frame.class()];
        let (chunk, at) = class.range(frame.slot());
        &mut class.chunks[chunk][at..at + frame.len()]
    }

    /// Shortens a frame to its first `len` bytes. A port allocates a frame before it knows the
    /// length of the frame to receive.
    pub fn truncate(&mut self, frame: &mut Frame, len: usize) {
        debug_assert!(frame.has_own_bytes(), "a segment inside a super-packet has no bytes of its own");
        frame.len = frame.len.min(len as u32);
    }

    /// Returns the memory of a frame to the pool.
    #[inline]
    pub fn free(&mut self, frame: Frame) {
        self.live -= 1;
        if frame.has_own_bytes() {
            self.classes[frame.class()].free.push(frame.slot());
        } else {
            self.free_segment(&frame);
        }
    }

    /// Takes the memory that no frame uses out of the pool: that of every size of which no frame is
    /// live. Dropping the result returns it to the allocator, which may take long.
    pub fn take_unused(&mut self) -> UnusedMemory {
        let mut unused = UnusedMemory { chunks: Vec::new(), _free: Vec::new() };
        for class in &mut self.classes {
            if class.free.len() == class.chunks.len() * class.slots_per_chunk() {
                self.reserved -= class.chunks.iter().map(|chunk| chunk.len()).sum::<usize>();
                unused.chunks.append(&mut class.chunks);
                unused._free.push(std::mem::take(&mut class.free));
            }
        }
        unused
    }

    /// Returns the number of live frames.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Returns the memory taken from the system so far, in bytes.
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
    fn a_full_pool_allocates_again_after_frames_are_freed() {
        let mut pool = pool(1 << 16);
        let frames: Vec<Frame> = std::iter::from_fn(|| pool.alloc(64)).collect();
        assert_eq!(frames.len(), 1024);
        assert!(pool.alloc(1500).is_none(), "the limit applies to all classes together");
        frames.into_iter().for_each(|frame| pool.free(frame));
        assert!(pool.alloc(64).is_some());
        assert!(pool.alloc(FRAME_MAX + 1).is_none());
    }

    #[test]
    fn a_copy_of_a_truncated_frame_has_its_bytes() {
        let mut pool = pool(1 << 20);
        let mut frame = pool.insert(&[7; 2000]).unwrap();
        pool.truncate(&mut frame, 100);
        let copy = pool.duplicate(&frame).unwrap();
        assert_eq!((pool.bytes(&copy), pool.bytes(&frame)), (&[7; 100][..], &[7; 100][..]));
    }

    #[test]
    fn memory_that_no_frame_uses_is_taken_out_and_frames_keep_theirs() {
        let mut pool = pool(1 << 20);
        let kept = pool.insert(&[7; 100]).unwrap();
        let frames: Vec<Frame> = (0..300).map(|_| pool.insert(&[1; 1500]).unwrap()).collect();
        let before = pool.reserved();
        assert!(pool.take_unused().is_empty(), "both sizes are in use");
        frames.into_iter().for_each(|frame| pool.free(frame));
        assert!(!pool.take_unused().is_empty());
        assert_eq!(before - pool.reserved(), (300usize * 1536).next_multiple_of(64 * 1536));
        assert_eq!((pool.bytes(&kept), pool.live()), (&[7; 100][..], 1));
        let again: Vec<Frame> = (0..300).map(|_| pool.insert(&[2; 1500]).unwrap()).collect();
        assert_eq!(pool.reserved(), before);
        again.into_iter().chain([kept]).for_each(|frame| pool.free(frame));
        assert_eq!((pool.take_unused().is_empty(), pool.reserved()), (false, 0));
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
                    2 if len % 3 == 0 => drop(pool.take_unused()),
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
