//! Work that may wait: done when nobody else wants the core.

use crate::sys::thread;

/// From now on the calling thread works when nobody else wants the core.
pub fn be_patient() {
    thread::be_patient();
}

/// Does the work on a thread of the lowest priority, and waits for it.
pub(crate) fn patiently<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            be_patient();
            work()
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
