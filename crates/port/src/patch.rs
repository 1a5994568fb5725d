//! A pair of ports joined back to back: frames that one sends arrive at the other, as between two
//! switches of one program.
//!
//! ```text
//!  PatchPort::tx_burst ──▶ bounded queue ──▶ PatchPort::rx_burst of the other, which is woken
//! ```
//!
//! The two may belong to workers with pools of their own, so frames are copied. A full queue drops,
//! instead of pushing back: switches that send to each other in a circle would both wait.

use super::{BURST, Burst, Port, PortCounters, PortError};
use fastpath_net::{Frame, FramePool};
use fastpath_sys::poll::Bell;
use fastpath_units::Time;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Frames that wait for the other end.
const FRAMES_MAX: usize = 1024;
/// Bytes that wait for the other end.
const BYTES_MAX: usize = 4 << 20;

/// One end of a pair.
pub struct PatchPort {
    name: String,
    incoming: Arc<PatchQueue>,
    outgoing: Arc<PatchQueue>,
    counters: PortCounters,
}

/// One direction.
struct PatchQueue {
    waiting: Mutex<PatchFrames>,
    /// Rung when frames wait; belongs to the receiver.
    bell: Bell,
}

#[derive(Default)]
struct PatchFrames {
    frames: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Whether the receiver has ended: what is sent is dropped.
    is_closed: bool,
}

impl PatchPort {
    /// Creates a pair with these names.
    ///
    /// # Errors
    /// The limit of open files is reached.
    pub fn pair(names: [&str; 2]) -> io::Result<[PatchPort; 2]> {
        let queue = || io::Result::Ok(Arc::new(PatchQueue { waiting: Mutex::default(), bell: Bell::new()? }));
        let (there, back) = (queue()?, queue()?);
        let end = |name: &str, incoming: &Arc<PatchQueue>, outgoing: &Arc<PatchQueue>| PatchPort {
            name: name.to_owned(),
            incoming: Arc::clone(incoming),
            outgoing: Arc::clone(outgoing),
            counters: PortCounters::default(),
        };
        Ok([end(names[0], &back, &there), end(names[1], &there, &back)])
    }
}

impl PatchQueue {
    fn lock(&self) -> MutexGuard<'_, PatchFrames> {
        // The queue is consistent between calls, also after a panic.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Port for PatchPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> String {
        "patch".to_owned()
    }

    fn rx_burst(&mut self, _now: Time, pool: &mut FramePool, burst: &mut Burst) -> Result<(), PortError> {
        let mut waiting = self.incoming.lock();
        for _ in 0..BURST {
            let Some(bytes) = waiting.frames.pop_front() else { break };
            waiting.bytes -= bytes.len();
            let Some(frame) = pool.insert(&bytes) else {
                self.counters.rx_no_memory += 1;
                continue;
            };
            self.counters.rx_frames += 1;
            self.counters.rx_bytes += bytes.len() as u64;
            if let Err(frame) = burst.push(frame) {
                pool.free(frame);
            }
        }
        if waiting.frames.is_empty() {
            self.incoming.bell.silence();
        }
        Ok(())
    }

    fn tx_burst(
        &mut self,
        _now: Time,
        pool: &mut FramePool,
        frames: &mut VecDeque<Frame>,
    ) -> Result<(), PortError> {
        let mut waiting = self.outgoing.lock();
        for frame in frames.drain(..) {
            let len = frame.len();
            if waiting.is_closed {
                self.counters.tx_down += 1;
            } else if waiting.frames.len() == FRAMES_MAX || waiting.bytes + len > BYTES_MAX {
                self.counters.tx_full += 1;
            } else {
                waiting.frames.push_back(pool.bytes(&frame).to_vec());
                waiting.bytes += len;
                self.counters.tx_frames += 1;
                self.counters.tx_bytes += len as u64;
            }
            pool.free(frame);
        }
        if !waiting.frames.is_empty() {
            self.outgoing.bell.ring();
        }
        Ok(())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.incoming.bell.as_fd())
    }

    fn counters(&mut self) -> PortCounters {
        self.counters
    }
}

impl Drop for PatchPort {
    fn drop(&mut self) {
        let mut waiting = self.incoming.lock();
        waiting.is_closed = true;
        waiting.frames.clear();
        waiting.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_sys::poll::PollSet;
    use std::num::NonZeroUsize;

    fn pool() -> FramePool {
        FramePool::new(NonZeroUsize::new(1 << 22).unwrap())
    }

    fn is_rung(port: &PatchPort) -> bool {
        let mut poll = PollSet::default();
        poll.add(port.fd().unwrap());
        poll.wait(std::time::Duration::ZERO)
    }

    fn send(port: &mut PatchPort, pool: &mut FramePool, count: usize, bytes: &[u8]) {
        let mut frames: VecDeque<Frame> = (0..count).map(|_| pool.insert(bytes).unwrap()).collect();
        port.tx_burst(Time::ZERO, pool, &mut frames).unwrap();
        assert_eq!((frames.len(), pool.live()), (0, 0));
    }

    fn receive(port: &mut PatchPort, pool: &mut FramePool) -> Vec<Vec<u8>> {
        let mut burst = Burst::new();
        port.rx_burst(Time::ZERO, pool, &mut burst).unwrap();
        let frames: Vec<Frame> = burst.drain().collect();
        let bytes = frames.iter().map(|frame| pool.bytes(frame).to_vec()).collect();
        frames.into_iter().for_each(|frame| pool.free(frame));
        bytes
    }

    #[test]
    fn what_one_end_sends_arrives_at_the_other_and_wakes_it() {
        let [mut a, mut b] = PatchPort::pair(["a", "b"]).unwrap();
        let (mut of_a, mut of_b) = (pool(), pool());
        assert!(!is_rung(&a) && !is_rung(&b));
        send(&mut a, &mut of_a, 1, &[1; 60]);
        send(&mut a, &mut of_a, 1, &[2; 61]);
        assert!(is_rung(&b) && !is_rung(&a));
        assert_eq!(receive(&mut b, &mut of_b), [vec![1; 60], vec![2; 61]]);
        assert!(!is_rung(&b));
        send(&mut b, &mut of_b, 1, &[3; 60]);
        assert_eq!(receive(&mut a, &mut of_a), [vec![3; 60]]);
        assert_eq!((a.counters().tx_frames, b.counters().rx_bytes), (2, 121));
    }

    #[test]
    fn a_full_queue_and_an_end_that_is_gone_drop_and_count() {
        let [mut a, mut b] = PatchPort::pair(["a", "b"]).unwrap();
        let (mut of_a, mut of_b) = (pool(), pool());
        send(&mut a, &mut of_a, FRAMES_MAX + 3, &[1; 60]);
        assert_eq!((a.counters().tx_frames, a.counters().tx_full), (FRAMES_MAX as u64, 3));
        let arrived: usize =
            std::iter::repeat_with(|| receive(&mut b, &mut of_b).len()).take_while(|count| *count > 0).sum();
        assert_eq!(arrived, FRAMES_MAX);
        send(&mut a, &mut of_a, 1, &[1; 60]);
        drop(b);
        send(&mut a, &mut of_a, 2, &[1; 60]);
        assert_eq!(a.counters().tx_down, 2);
    }
}
