//! The ring buffer in which programs leave records for this process.

use super::Map;
use crate::memory::Mapping;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Set in the length of a record while a program writes it, and of one that it gave up
/// (linux/bpf.h: `BPF_RINGBUF_BUSY_BIT`, `BPF_RINGBUF_DISCARD_BIT`).
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
/// Bytes before each record.
const HEADER: u64 = 8;

/// The reading end of a map of kind [`RingBuffer`](super::MapKind::RingBuffer).
#[derive(Debug)]
pub struct RingBuffer {
    map: Map,
    consumer: Mapping,
    /// The producer's position, then the records, twice in a row.
    producer: Mapping,
    page: usize,
    size: u64,
}

impl RingBuffer {
    /// Maps a ring buffer of `size` bytes, as it was created with.
    pub fn new(map: Map, size: u32) -> io::Result<RingBuffer> {
        // SAFETY: no arguments that could be wrong.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let consumer = Mapping::shared(map.as_fd(), page, 0)?;
        let records = page + 2 * size as usize;
        let producer = Mapping::shared_to_read(map.as_fd(), records, page as libc::off_t)?;
        Ok(RingBuffer { map, consumer, producer, page, size: u64::from(size) })
    }

    /// Passes each record that is there to `take`, in the order in which programs reserved them.
    /// Returns their number.
    pub fn read(&mut self, mut take: impl FnMut(&[u8])) -> usize {
        let mut count = 0;
        let (consumed, produced) = (position(self.consumer.start()), position(self.producer.start()));
        // Only this side writes it.
        let mut at = consumed.load(Ordering::Relaxed);
        while at < produced.load(Ordering::Acquire) {
            let offset = self.page + (at % self.size) as usize;
            // SAFETY: the kernel places headers at multiples of eight inside the records, which are
            // mapped twice so that none is cut at the end.
            let header = unsafe { self.producer.start().add(offset) };
            // SAFETY: aligned, mapped as long as `self`; the kernel writes it as an atomic.
            let len = unsafe { AtomicU32::from_ptr(header.as_ptr().cast()) }.load(Ordering::Acquire);
            if len & BUSY != 0 {
                break;
            }
            let bytes = len & !(BUSY | DISCARDED);
            if len & DISCARDED == 0 {
                // SAFETY: a record that is not busy is written completely, lies inside the mapping,
                // and stays as it is until it is released below.
                let record = unsafe {
                    let start = header.as_ptr().add(HEADER as usize);
                    std::slice::from_raw_parts(start, bytes as usize)
                };
                take(record);
                count += 1;
            }
            at += (u64::from(bytes) + HEADER).next_multiple_of(8);
            consumed.store(at, Ordering::Release);
        }
        count
    }
}

/// The position at the start of a mapping of a ring buffer.
fn position<'m>(start: NonNull<u8>) -> &'m AtomicU64 {
    // SAFETY: a page begins with it, mapped as long as the ring buffer, whose methods do not return
    // it; both sides touch it as an atomic. A position that is only read is in memory that is only
    // mapped to be read.
    unsafe { AtomicU64::from_ptr(start.as_ptr().cast()) }
}

impl AsFd for RingBuffer {
    /// Readable when there are records.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}
