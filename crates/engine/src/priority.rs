//! Work that may wait: others get the core rather than it.

use crate::sys::thread;

/// Does the work on a thread of low priority, and waits for it.
pub(crate) fn patiently<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            thread::be_patient();
            work()
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
