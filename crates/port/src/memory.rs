//! A port with memory at its far end: two bounded rings of bytes, for tests and benchmarks.
//!
//! ```text
//!  MemoryEnd::send ──▶ ring ──▶ Memory::rx_burst        MemoryEnd::recv ◀── ring ◀── Memory::tx_burst
//! ```
//!
//! Frames are copied in and out as on a real port. A lock protects each ring. It is taken once per
//! burst, and not at all to find that the ring is empty. A thread that finds the lock taken spins
//! instead of sleeping: the lock is held for a burst, and waking a sleeper would take ten times as
//! long.

use super::{BURST, Burst, Port, PortCounters, PortError};
use fastpath_net::{Frame, FramePool};
use fastpath_units::Time;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// Attempts to take the lock before the core is yielded to other threads, one of which may hold the
/// lock.
const SPINS_MAX: u32 = 1000;

/// The engine's end.
pub struct Memory {
    name: String,
    incoming: Arc<MemoryQueues>,
    outgoing: Arc<MemoryQueues>,
    counters: PortCounters,
}

/// The far end of a [`Memory`] port.
#[derive(Clone)]
pub struct MemoryEnd {
    incoming: Arc<MemoryQueues>,
    outgoing: Arc<MemoryQueues>,
}

impl Memory {
    /// Creates a port and its far end, joined by a ring of `capacity` bytes in each direction.
    pub fn new(name: &str, capacity: usize) -> (Memory, MemoryEnd) {
        let ring = || Arc::new(MemoryQueues::new(capacity));
        let (incoming, outgoing) = (ring(), ring());
        let end = MemoryEnd { incoming: Arc::clone(&incoming), outgoing: Arc::clone(&outgoing) };
        (Memory { name: name.to_owned(), incoming, outgoing, counters: PortCounters::default() }, end)
    }
}

impl MemoryEnd {
    /// Gives frames to the port until its ring is full. Returns how many it accepted.
    pub fn send<'a>(&self, frames: impl IntoIterator<Item = &'a [u8]>) -> usize {
        self.incoming.put(|ring| frames.into_iter().take_while(|frame| ring.push(frame)).count())
    }

    /// Passes up to `limit` frames that the port has sent to `show`, in order. Returns their
    /// number.
    pub fn recv(&self, limit: usize, mut show: impl FnMut(&[u8])) -> usize {
        self.outgoing
            .take(|ring| (0..limit).take_while(|_| ring.pop(&mut show).is_some()).count())
            .unwrap_or(0)
    }
}

impl Port for Memory {
    fn name(&self) -> &str {
        &self.name
    }

    fn rx_burst(&mut self, _now: Time, pool: &mut FramePool, burst: &mut Burst) -> Result<(), PortError> {
        let counters = &mut self.counters;
        self.incoming.take(|ring| {
            while !burst.is_full() {
                let Some(frame) = ring.pop(|bytes| pool.insert(bytes)) else { break };
                let Some(frame) = frame else {
                    counters.rx_no_memory += 1;
                    continue;
                };
                counters.rx_frames += 1;
                counters.rx_bytes += frame.len() as u64;
                if let Err(frame) = burst.push(frame) {
                    pool.free(frame);
                }
            }
        });
        Ok(())
    }

    fn tx_burst(
        &mut self,
        _now: Time,
        pool: &mut FramePool,
        frames: &mut VecDeque<Frame>,
    ) -> Result<(), PortError> {
        let counters = &mut self.counters;
        self.outgoing.put(|ring| {
            for _ in 0..BURST {
                let Some(frame) = frames.pop_front() else { break };
                if !ring.push(pool.bytes(&frame)) {
                    frames.push_front(frame);
                    break;
                }
                counters.tx_frames += 1;
                counters.tx_bytes += frame.len() as u64;
                pool.free(frame);
            }
        });
        Ok(())
    }

    fn counters(&mut self) -> PortCounters {
        self.counters
    }
}

/// A ring between two threads.
struct MemoryQueues {
    ring: Mutex<Ring>,
    /// Whether the ring held entries after its last use.
    is_filled: AtomicBool,
}

impl MemoryQueues {
    fn new(capacity: usize) -> MemoryQueues {
        MemoryQueues { ring: Mutex::new(Ring::new(capacity)), is_filled: AtomicBool::new(false) }
    }

    fn put<R>(&self, work: impl FnOnce(&mut Ring) -> R) -> R {
        let mut ring = self.lock();
        let result = work(&mut ring);
        self.is_filled.store(ring.count > 0, Ordering::Release);
        result
    }

    /// Returns `None` if the ring is empty.
    fn take<R>(&self, work: impl FnOnce(&mut Ring) -> R) -> Option<R> {
        self.is_filled.load(Ordering::Acquire).then(|| self.put(work))
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        loop {
            for _ in 0..SPINS_MAX {
                match self.ring.try_lock() {
                    Ok(ring) => return ring,
                    // A ring is consistent between calls, so a panic of another thread has not
                    // damaged it.
                    Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                    Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
                }
            }
            std::thread::yield_now();
        }
    }
}

/// A bounded queue of byte strings, back to back in one block of memory: `length, bytes, length,
/// bytes, …`. An entry that does not fit before the end of the block goes to its start, after the
/// mark [`WRAP`].
struct Ring {
    block: Box<[u8]>,
    /// Offset of the oldest entry.
    head: usize,
    /// Offset of the next entry.
    tail: usize,
    /// Number of entries; distinguishes a full ring from an empty one.
    count: usize,
}

const LEN_BYTES: usize = 4;
const WRAP: u32 = u32::MAX;

impl Ring {
    fn new(capacity: usize) -> Ring {
        Ring { block: vec![0; capacity].into_boxed_slice(), head: 0, tail: 0, count: 0 }
    }

    #[inline(always)]
    fn push(&mut self, bytes: &[u8]) -> bool {
        let need = LEN_BYTES + bytes.len();
        if self.count == 0 {
            (self.head, self.tail) = (0, 0);
        }
        let wrapped = self.count > 0 && self.tail <= self.head;
        let end = if wrapped { self.head } else { self.block.len() };
        if self.tail + need > end {
            if wrapped || need > self.head {
                return false;
            }
            if self.tail + LEN_BYTES <= self.block.len() {
                self.write_len(WRAP);
            }
            self.tail = 0;
        }
        self.write_len(bytes.len() as u32);
        let at = self.tail + LEN_BYTES;
        self.block[at..at + bytes.len()].copy_from_slice(bytes);
        self.tail += need;
        self.count += 1;
        true
    }

    fn pop<R>(&mut self, show: impl FnOnce(&[u8]) -> R) -> Option<R> {
        if self.count == 0 {
            return None;
        }
        let len = match self.len_at(self.head) {
            Some(len) if len != WRAP => len as usize,
            _ => {
                self.head = 0;
                self.len_at(0).expect("an entry follows the mark") as usize
            }
        };
        let at = self.head + LEN_BYTES;
        let result = show(&self.block[at..at + len]);
        self.head = at + len;
        self.count -= 1;
        Some(result)
    }

    fn len_at(&self, at: usize) -> Option<u32> {
        self.block.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }

    fn write_len(&mut self, len: u32) {
        self.block[self.tail..self.tail + LEN_BYTES].copy_from_slice(&len.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::num::NonZeroUsize;

    #[test]
    fn a_full_ring_leaves_the_rest_to_the_sender() {
        let mut pool = FramePool::default();
        let (mut port, end) = Memory::new("m", 300);
        let mut frames: VecDeque<Frame> = (0..4).filter_map(|i| pool.insert(&[i; 96])).collect();
        port.tx_burst(Time::ZERO, &mut pool, &mut frames).unwrap();
        assert_eq!((frames.len(), port.counters().tx_frames), (1, 3));
        assert_eq!(end.recv(1, |bytes| assert_eq!(bytes, [0; 96])), 1);
        port.tx_burst(Time::ZERO, &mut pool, &mut frames).unwrap();
        let mut seen = Vec::new();
        end.recv(9, |bytes| seen.push(bytes[0]));
        assert_eq!((seen, pool.live()), (vec![1, 2, 3], 0));
    }

    #[test]
    fn a_full_pool_drops_and_counts_what_arrives() {
        let mut pool = FramePool::new(NonZeroUsize::new(1 << 16).unwrap());
        let (mut port, end) = Memory::new("m", 4 << 20);
        assert_eq!(end.send((0..1050).map(|_| [7u8; 60].as_slice())), 1050);
        let mut burst = Burst::new();
        let mut held = Vec::new();
        for _ in 0..1050 / BURST + 1 {
            port.rx_burst(Time::ZERO, &mut pool, &mut burst).unwrap();
            held.extend(burst.drain());
        }
        assert_eq!((port.counters().rx_frames, port.counters().rx_no_memory), (1024, 26));
        held.into_iter().for_each(|frame| pool.free(frame));
    }

    proptest! {
        #[test]
        fn the_ring_is_a_bounded_queue(capacity in 0usize..200, ops in prop::collection::vec((any::<bool>(), 0usize..80), 0..200)) {
            let mut ring = Ring::new(capacity);
            let mut oracle: VecDeque<Vec<u8>> = VecDeque::new();
            for (i, (is_push, len)) in ops.into_iter().enumerate() {
                if is_push {
                    let bytes = vec![i as u8; len];
                    if ring.push(&bytes) {
                        oracle.push_back(bytes);
                    } else {
                        // It may refuse only when too little is free, which lies in at most two
                        // gaps that one entry each (of 83 bytes at most) did not fit.
                        let used: usize = oracle.iter().map(|bytes| LEN_BYTES + bytes.len()).sum();
                        prop_assert!(used + LEN_BYTES + len + 83 > capacity);
                    }
                } else {
                    prop_assert_eq!(ring.pop(<[u8]>::to_vec), oracle.pop_front());
                }
            }
        }
    }
}
