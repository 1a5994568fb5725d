//! A port whose far side is memory: two bounded rings of bytes, for tests and benchmarks.
//!
//! ```text
//!  MemoryEnd::send ──▶ ring ──▶ Memory::rx_burst        MemoryEnd::recv ◀── ring ◀── Memory::tx_burst
//! ```
//!
//! Frames are copied in and out as on a real port. Each ring is behind a lock that is taken once a
//! burst, and not at all to find out that it is empty. Whoever finds it taken looks again instead
//! of sleeping: it is held for a burst, and waking a sleeper would take ten times as long.

use super::{BURST, Burst, Port, PortCounters, PortError};
use fastpath_net::{Frame, FramePool};
use fastpath_units::Time;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// Looks at a taken lock before the core is left to others, one of whom may hold it.
const SPINS_MAX: u32 = 1000;

/// The engine's side.
pub struct Memory {
    name: String,
    incoming: Arc<Shared>,
    outgoing: Arc<Shared>,
    counters: PortCounters,
}

/// The world's side of a [`Memory`] port.
#[derive(Clone)]
pub struct MemoryEnd {
    incoming: Arc<Shared>,
    outgoing: Arc<Shared>,
}

impl Memory {
    /// A port and its far side, joined by a ring of `capacity` bytes in each direction.
    pub fn new(name: &str, capacity: usize) -> (Memory, MemoryEnd) {
        let ring = || Arc::new(Shared::new(capacity));
        let (incoming, outgoing) = (ring(), ring());
        let end = MemoryEnd { incoming: Arc::clone(&incoming), outgoing: Arc::clone(&outgoing) };
        (Memory { name: name.to_owned(), incoming, outgoing, counters: PortCounters::default() }, end)
    }
}

impl MemoryEnd {
    /// Gives frames to the port until its ring is full; says how many it took.
    pub fn send<'a>(&self, frames: impl IntoIterator<Item = &'a [u8]>) -> usize {
        self.incoming.put(|ring| frames.into_iter().take_while(|frame| ring.push(frame)).count())
    }

    /// Shows up to `limit` frames the port has sent, in order; says how many there were.
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
struct Shared {
    ring: Mutex<Ring>,
    /// Whether there is something in it, as of the last use.
    is_filled: AtomicBool,
}

impl Shared {
    fn new(capacity: usize) -> Shared {
        Shared { ring: Mutex::new(Ring::new(capacity)), is_filled: AtomicBool::new(false) }
    }

    fn put<R>(&self, work: impl FnOnce(&mut Ring) -> R) -> R {
        let mut ring = self.lock();
        let result = work(&mut ring);
        self.is_filled.store(ring.count > 0, Ordering::Release);
        result
    }

    /// `None` if there is nothing to take.
    fn take<R>(&self, work: impl FnOnce(&mut Ring) -> R) -> Option<R> {
        self.is_filled.load(Ordering::Acquire).then(|| self.put(work))
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        loop {
            for _ in 0..SPINS_MAX {
                match self.ring.try_lock() {
                    Ok(ring) => return ring,
                    // A ring is whole between calls, so a panic elsewhere leaves nothing to protect
                    // from.
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
    /// Where the oldest entry begins.
    head: usize,
    /// Where the next entry will begin.
    tail: usize,
    /// Entries held; tells a full ring from an empty one.
    count: usize,
}

const LEN_BYTES: usize = 4;
const WRAP: u32 = u32::MAX;

impl Ring {
    fn new(capacity: usize) -> Ring {
        Ring { block: vec![0; capacity].into_boxed_slice(), head: 0, tail: 0, count: 0 }
    }

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
    fn a_full_ring_leaves_the_rest_with_the_sender() {
        let mut pool = FramePool::new(NonZeroUsize::new(1 << 20).unwrap());
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
                        // It may refuse only when what is free, in at most two gaps that one entry
                        // each (of 83 bytes at most) did not fit, is too little.
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
