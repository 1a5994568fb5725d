//! The builder of a switch: the thread that does the slow work of its executor.

use super::control::{Control, Core, lock};
use crate::priority::with_low_priority;
use fastpath_switch::Table;
use fastpath_sys::thread::release_heap;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

/// Flows that have come or gone after which unused memory is returned to the system: also that of
/// earlier lookup structures.
const RELEASED_AFTER: usize = 10_000;

/// Time without changes after which a job starts that is not urgent.
const QUIET: Duration = Duration::from_millis(10);

/// The flows when unused memory was last returned, and how far their number was from that since:
/// all that came may have gone again.
#[derive(Default)]
struct Released {
    flows: usize,
    furthest: usize,
}

impl Released {
    fn note(&mut self, flows: usize) {
        self.furthest = self.furthest.max(self.flows.abs_diff(flows));
    }
}

impl Control {
    /// Runs the builder: does the jobs of the executor, each on a thread of low priority unless it
    /// is pressing. A thread of low priority must not take the lock, because every thread that
    /// waits for it would wait for all other programs.
    pub(super) fn build(&self) {
        let mut core = lock(&self.shared.core);
        let (mut quiet_since, mut released) = (None, Released::default());
        while !self.shared.stop.load(Ordering::Acquire) {
            let inner = &mut *core;
            if inner.executor.tidy(&mut inner.switch) {
                drop(core);
                std::thread::yield_now();
                core = self.lock();
                continue;
            }
            let flows: usize = inner.switch.tables().iter().map(Table::len).sum();
            released.note(flows);
            // A job takes time in proportion to the tables. While changes follow each other it
            // waits for a quiet moment, unless many have come together.
            let is_pressing = inner.executor.is_pressing();
            if inner.wants_builder && !is_pressing && quiet_since != Some(inner.generation) {
                quiet_since = Some(inner.generation);
                core = self.wait_to_build(core, Some(QUIET));
                continue;
            }
            let job = if inner.wants_builder { inner.executor.job(&inner.switch) } else { None };
            self.shared.behind.store(inner.executor.is_behind(), Ordering::Release);
            let Some(job) = job else {
                if core.executor.waits_for_forwarder() {
                    self.wake_forwarders(&core);
                    core = self.wait_to_build(core, Some(QUIET));
                    continue;
                }
                core.wants_builder = false;
                let is_memory_free = std::mem::take(&mut core.is_memory_free);
                if is_memory_free || released.furthest > RELEASED_AFTER {
                    released = Released { flows, furthest: 0 };
                    drop(core);
                    release_heap();
                    core = self.lock();
                    continue;
                }
                core = self.wait_to_build(core, None);
                continue;
            };
            drop(core);
            // Controllers may soon have to wait for a pressing job.
            let result = if is_pressing { job() } else { with_low_priority(job) };
            core = self.lock();
            let inner = &mut *core;
            inner.executor.finish(&mut inner.switch, result);
            self.wake_forwarders(inner);
            let was_behind = self.shared.behind.swap(inner.executor.is_behind(), Ordering::AcqRel);
            if was_behind {
                self.notify();
            }
        }
    }

    /// Waits for something to build, at most this long.
    fn wait_to_build<'a>(
        &self,
        core: MutexGuard<'a, Core>,
        longest: Option<Duration>,
    ) -> MutexGuard<'a, Core> {
        let Some(longest) = longest else {
            self.shared.is_builder_idle.store(true, Ordering::Relaxed);
            let core = self.shared.build.wait(core).unwrap_or_else(PoisonError::into_inner);
            self.shared.is_builder_idle.store(false, Ordering::Relaxed);
            return core;
        };
        self.shared.build.wait_timeout(core, longest).unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_that_have_come_and_gone_again_count() {
        let furthest = |counts: &[usize]| {
            let mut released = Released { flows: 5, furthest: 0 };
            counts.iter().for_each(|flows| released.note(*flows));
            released.furthest
        };
        assert_eq!((furthest(&[400_005, 5]), furthest(&[9, 0]), furthest(&[])), (400_000, 5, 0));
    }
}
