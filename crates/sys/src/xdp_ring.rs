//! The four rings of an AF_XDP socket. Each has a single producer and a single consumer, one on
//! this side and one in the kernel.
//!
//! ```text
//!   fill        this side: empty chunks            ──▶ kernel
//!   rx          kernel: chunks that it has filled  ──▶ this side
//!   tx          this side: chunks to send          ──▶ kernel
//!   completion  kernel: chunks that it has sent    ──▶ this side
//! ```
//!
//! Indices count entries since the start, modulo 2³². Code only adds to them and subtracts them,
//! wrapping.

use super::memory::Mapping;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// The memory of a ring.
#[derive(Debug)]
struct SharedRing<T> {
    producer: NonNull<u32>,
    consumer: NonNull<u32>,
    flags: NonNull<u32>,
    entries: NonNull<T>,
    mask: u32,
    /// Keeps the ring mapped; `None` in tests.
    _mapping: Option<Mapping>,
}

// SAFETY: the mapping is not tied to a thread. The indices are atomics. An entry is touched only by
// the side that the indices assign it to, on this side by one thread at a time.
unsafe impl<T: Copy + Send> Send for SharedRing<T> {}

/// The side that writes entries.
#[derive(Debug)]
pub(super) struct Producer<T> {
    shared: SharedRing<T>,
    /// The next entry to write; the published index may be behind it.
    next: u32,
}

/// The side that reads entries.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    shared: SharedRing<T>,
    /// The next entry to read; the released index may be behind it.
    next: u32,
}

impl<T: Copy> SharedRing<T> {
    /// Maps a ring of `len` entries, a power of two.
    fn map(
        fd: BorrowedFd<'_>,
        place: libc::off_t,
        offsets: &libc::xdp_ring_offset,
        len: u32,
    ) -> io::Result<Self> {
        let bytes = offsets.desc as usize + len as usize * size_of::<T>();
        let mapping = Mapping::shared(fd, bytes, place)?;
        // SAFETY: the kernel's offsets lie inside the mapping, aligned for the type at each.
        let at = |offset: u64| unsafe { mapping.start().add(offset as usize) };
        Ok(SharedRing {
            producer: at(offsets.producer).cast(),
            consumer: at(offsets.consumer).cast(),
            flags: at(offsets.flags).cast(),
            entries: at(offsets.desc).cast(),
            mask: len - 1,
            _mapping: Some(mapping),
        })
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: aligned, mapped as long as `self`, and only touched as an atomic on both sides.
        unsafe { AtomicU32::from_ptr(self.producer.as_ptr()) }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as for the producer.
        unsafe { AtomicU32::from_ptr(self.consumer.as_ptr()) }
    }

    fn needs_wakeup(&self) -> bool {
        // SAFETY: as for the producer.
        let flags = unsafe { AtomicU32::from_ptr(self.flags.as_ptr()) };
        flags.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    fn entry(&self, index: u32) -> NonNull<T> {
        // SAFETY: the mask keeps the place below the number of entries.
        unsafe { self.entries.add((index & self.mask) as usize) }
    }
}

impl<T: Copy> Producer<T> {
    pub(super) fn map(
        fd: BorrowedFd<'_>,
        place: libc::off_t,
        offsets: &libc::xdp_ring_offset,
        len: u32,
    ) -> io::Result<Self> {
        Ok(Producer { shared: SharedRing::map(fd, place, offsets, len)?, next: 0 })
    }

    /// Writes an entry. Returns false if the ring is full. The other side sees the entry after
    /// [`Producer::publish`].
    pub(super) fn push(&mut self, entry: T) -> bool {
        let used = self.next.wrapping_sub(self.shared.consumer().load(Ordering::Acquire));
        if used > self.shared.mask {
            return false;
        }
        // SAFETY: the entry belongs to this side: the consumer has passed it, and it has not been
        // published again.
        unsafe { self.shared.entry(self.next).write(entry) };
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Publishes the written entries to the other side.
    pub(super) fn publish(&self) {
        self.shared.producer().store(self.next, Ordering::Release);
    }

    /// Returns the number of published entries that the other side has not consumed.
    pub(super) fn pending(&self) -> u32 {
        self.next.wrapping_sub(self.shared.consumer().load(Ordering::Acquire))
    }

    /// Returns whether the kernel reads the ring only after a system call.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.shared.needs_wakeup()
    }
}

impl<T: Copy> Consumer<T> {
    pub(super) fn map(
        fd: BorrowedFd<'_>,
        place: libc::off_t,
        offsets: &libc::xdp_ring_offset,
        len: u32,
    ) -> io::Result<Self> {
        Ok(Consumer { shared: SharedRing::map(fd, place, offsets, len)?, next: 0 })
    }

    /// Reads an entry. The other side may overwrite it after [`Consumer::release`].
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.shared.producer().load(Ordering::Acquire) == self.next {
            return None;
        }
        // SAFETY: the producer has published this entry and leaves it alone until it is released.
        let entry = unsafe { self.shared.entry(self.next).read() };
        self.next = self.next.wrapping_add(1);
        Some(entry)
    }

    /// Returns the number of published entries that have not been read.
    pub(super) fn waiting(&self) -> u32 {
        self.shared.producer().load(Ordering::Acquire).wrapping_sub(self.next)
    }

    /// Returns the read entries to the other side.
    pub(super) fn release(&self) {
        self.shared.consumer().store(self.next, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both sides of a ring of four entries with indices that have reached `start`.
    fn ring(start: u32, memory: &mut [u32; 7]) -> (Producer<u32>, Consumer<u32>) {
        (memory[0], memory[1]) = (start, start);
        let base = NonNull::new(memory.as_mut_ptr()).unwrap();
        // SAFETY: three indices, then four entries, all inside the array, which outlives the ring
        // in these tests.
        let at = |place: usize| unsafe { base.add(place) };
        let shared = || SharedRing {
            producer: at(0),
            consumer: at(1),
            flags: at(2),
            entries: at(3),
            mask: 3,
            _mapping: None,
        };
        (Producer { shared: shared(), next: start }, Consumer { shared: shared(), next: start })
    }

    #[test]
    fn a_ring_is_a_bounded_queue_also_where_its_indices_wrap() {
        for start in [0, 1, u32::MAX - 5, u32::MAX - 1, u32::MAX] {
            let mut memory = [0; 7];
            let (mut producer, mut consumer) = ring(start, &mut memory);
            let mut taken = Vec::new();
            for round in 0..3 {
                let pushed = (0..9).take_while(|i| producer.push(10 * round + i)).count();
                assert_eq!((pushed, consumer.pop()), (4, None), "not published yet, from {start}");
                producer.publish();
                assert_eq!((producer.pending(), consumer.waiting()), (4, 4));
                taken.extend(std::iter::from_fn(|| consumer.pop()));
                assert!(!producer.push(99), "not released yet, from {start}");
                consumer.release();
                assert_eq!(producer.pending(), 0);
            }
            assert_eq!(taken, [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]);
        }
    }
}
