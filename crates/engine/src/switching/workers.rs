//! What the workers of a switch and its controlling threads share, one part for each worker.

use super::accounting::Counts;
use super::port_change::PortChange;
use fastpath_sys::poll::Bell;
use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most workers of a switch.
pub const WORKERS_MAX: usize = 64;

/// The parts of all workers.
pub(super) struct SwitchWorkers(Box<[WorkerPart]>);

/// The part of one worker, on cache lines of its own.
#[repr(align(128))]
struct WorkerPart {
    /// Odd while the worker moves frames.
    turns: AtomicU64,
    bell: Bell,
    report: Mutex<WorkerReport>,
}

/// What a worker has to do, and what it has done. Locked for moments only.
#[derive(Default)]
pub(super) struct WorkerReport {
    /// Ports to add and to remove.
    pub(super) port_changes: Vec<PortChange>,
    pub(super) counts: Counts,
    /// Frames and bytes that ports refused, by port, to be subtracted from what the switch counts
    /// as sent. The executor may still hold those counts, so the subtraction waits for
    /// [`super::Control::credit`].
    pub(super) refused: BTreeMap<u32, (u64, u64)>,
    /// What ports sent and dropped, and the frames that wait for them.
    pub(super) sent: u64,
    pub(super) port_dropped: u64,
    pub(super) backlog: u64,
    /// The ports that the worker polls.
    pub(super) polled: Vec<u32>,
}

impl SwitchWorkers {
    /// The operating system refuses a descriptor.
    pub(super) fn new(count: NonZeroUsize) -> io::Result<SwitchWorkers> {
        let part = |_| {
            let (turns, report) = (AtomicU64::new(0), Mutex::default());
            Ok(WorkerPart { turns, bell: Bell::new()?, report })
        };
        Ok(SwitchWorkers((0..count.get()).map(part).collect::<io::Result<_>>()?))
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn report(&self, worker: usize) -> MutexGuard<'_, WorkerReport> {
        self.0[worker].report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reports of all workers, one locked at a time.
    pub(super) fn reports(&self) -> impl Iterator<Item = MutexGuard<'_, WorkerReport>> {
        (0..self.0.len()).map(|worker| self.report(worker))
    }

    pub(super) fn bell(&self, worker: usize) -> &Bell {
        &self.0[worker].bell
    }

    pub(super) fn ring_all(&self) {
        self.0.iter().for_each(|part| part.bell.ring());
    }

    /// Begins to move frames, on a worker.
    pub(super) fn begin_turn(&self, worker: usize) {
        self.0[worker].turns.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Ends what [`SwitchWorkers::begin_turn`] began.
    pub(super) fn end_turn(&self, worker: usize) {
        self.0[worker].turns.fetch_add(1, Ordering::Release);
    }

    /// Waits until every turn that is under way has ended.
    pub(super) fn wait_for_turns(&self, stop: &AtomicBool) {
        // Pairs with the fence of `begin_turn`: a worker sees the changes, or this its turn.
        fence(Ordering::SeqCst);
        let begun: Vec<u64> = self.0.iter().map(|part| part.turns.load(Ordering::Acquire)).collect();
        for (part, turn) in self.0.iter().zip(begun) {
            let is_same = || part.turns.load(Ordering::Acquire) == turn;
            while !turn.is_multiple_of(2) && is_same() && !stop.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
    }
}
