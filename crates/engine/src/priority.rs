//! The scheduling priority of threads: work that must not wait, and work that may.

pub use fastpath_sys::thread::set_low_priority;

use fastpath_sys::thread::set_high_priority;

/// Runs `work` on a thread of high priority, and waits for its result. Threads that `work` starts
/// inherit the priority. Without the privilege the thread has the ordinary priority.
///
/// On a machine with all cores busy, a prober that waits for a core between reading the clock and
/// sending measures round trips that are too long.
pub fn with_high_priority<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    on_thread_with(|| _ = set_high_priority(), work)
}

/// Runs `work` on a thread of low priority, and waits for its result.
pub fn with_low_priority<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    on_thread_with(set_low_priority, work)
}

/// The priority of the calling thread stays as it is.
fn on_thread_with<T: Send>(set_priority: fn(), work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            set_priority();
            work()
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_sys::thread::niceness;
    use std::thread;

    #[test]
    fn the_priority_is_that_of_the_work_and_of_the_threads_it_starts_alone() {
        let before = niceness();
        let (inside, child) = with_high_priority(|| (niceness(), thread::spawn(niceness).join().unwrap()));
        assert_eq!(child, inside);
        assert!(inside <= before);
        assert!(with_low_priority(niceness) >= before);
        assert_eq!(niceness(), before);
    }
}
