//! Where workers wait for each other between two windows.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
    /// How often a worker looks at the others before it gives up its core.
    spins: u32,
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
            return Ok(worker);
        }
        let mut spins = 0;
        while self.generation.load(Ordering::Acquire) == generation {
            if self.is_aborted.load(Ordering::Relaxed) {
                return Err(Aborted);
            }
            if spins < self.spins {
                spins += 1;
                hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
        Ok(self.last.load(Ordering::Relaxed))
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
