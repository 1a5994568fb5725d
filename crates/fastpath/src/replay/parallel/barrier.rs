//! Where workers wait for each other between two windows.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::{hint, thread};

/// How often a worker looks at the others while each has a core: some microseconds.
const SPINS: u32 = 4000;

/// A barrier that tells which worker was last. A worker that ends early aborts it, so that no other
/// waits for ever.
#[derive(Debug)]
pub(super) struct Barrier {
    count: usize,
    arrived: AtomicUsize,
    generation: AtomicUsize,
    last: AtomicUsize,
    is_aborted: AtomicBool,
    /// How often a worker looks at the others before it sleeps.
    spins: u32,
    asleep: Mutex<()>,
    wake: Condvar,
}

/// Another worker has ended early.
#[derive(Debug)]
pub(super) struct Aborted;

/// Aborts a barrier when it is dropped before [`BarrierGuard::done`].
pub(super) struct BarrierGuard<'b>(Option<&'b Barrier>);

impl Barrier {
    /// A barrier for `count` workers.
    pub(super) fn new(count: usize) -> Barrier {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Barrier {
            count,
            // A worker that spins on a core that another one needs delays itself.
            spins: if count <= cores { SPINS } else { 0 },
            arrived: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            last: AtomicUsize::new(0),
            is_aborted: AtomicBool::new(false),
            asleep: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// Waits until all workers have arrived. Returns which one was last. What each did before is
    /// visible to all afterwards.
    pub(super) fn wait(&self, worker: usize) -> Result<usize, Aborted> {
        let generation = self.generation.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.count {
            self.last.store(worker, Ordering::Relaxed);
            self.arrived.store(0, Ordering::Relaxed);
            self.generation.store(generation.wrapping_add(1), Ordering::Release);
            self.wake_all();
            return Ok(worker);
        }
        let is_over = || {
            self.generation.load(Ordering::Acquire) != generation || self.is_aborted.load(Ordering::Relaxed)
        };
        for _ in 0..self.spins {
            if is_over() {
                break;
            }
            hint::spin_loop();
        }
        if !is_over() {
            let mut asleep = self.asleep.lock().unwrap_or_else(PoisonError::into_inner);
            while !is_over() {
                asleep = self.wake.wait(asleep).unwrap_or_else(PoisonError::into_inner);
            }
        }
        if self.generation.load(Ordering::Acquire) == generation {
            return Err(Aborted);
        }
        Ok(self.last.load(Ordering::Relaxed))
    }

    /// Wakes the workers that sleep. A worker looks at the others once more before it sleeps, with
    /// the lock.
    fn wake_all(&self) {
        drop(self.asleep.lock().unwrap_or_else(PoisonError::into_inner));
        self.wake.notify_all();
    }

    /// Returns a guard of one worker.
    pub(super) fn guard(&self) -> BarrierGuard<'_> {
        BarrierGuard(Some(self))
    }
}

impl BarrierGuard<'_> {
    /// The worker ends together with the others.
    pub(super) fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for BarrierGuard<'_> {
    fn drop(&mut self) {
        if let Some(barrier) = self.0 {
            barrier.is_aborted.store(true, Ordering::Relaxed);
            barrier.wake_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_worker_passes_before_all_have_arrived() {
        let (barrier, counter) = (Barrier::new(3), AtomicUsize::new(0));
        thread::scope(|scope| {
            for worker in 0..3 {
                let (barrier, counter) = (&barrier, &counter);
                scope.spawn(move || {
                    for round in 0..500 {
                        counter.fetch_add(1, Ordering::Relaxed);
                        assert!(barrier.wait(worker).expect("no worker aborts") < 3);
                        assert_eq!(counter.load(Ordering::Relaxed), 3 * (round + 1));
                        barrier.wait(worker).expect("no worker aborts");
                    }
                });
            }
        });
    }

    #[test]
    fn a_worker_that_ends_early_releases_the_others() {
        let barrier = Barrier::new(2);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| barrier.wait(0).is_err());
            drop(barrier.guard());
            assert!(waiting.join().expect("it ends"));
        });
    }
}
