//! Who runs first where there are more programs than cores.

use rustix::process::setpriority_process;
use std::thread;

/// The highest of the ordinary scheduler (sched(7)). Real-time classes are of no use here: they are
/// stopped for 50 ms of every second that they do not sleep.
const HIGHEST: i32 = -20;
/// The lowest.
const LOWEST: i32 = 19;

/// Does the work on a thread that runs before those of other programs, as do the threads it starts.
/// Without the privilege for it, it is an ordinary thread.
///
/// On a machine whose cores are all taken, a prober that waits for its turn between reading the
/// clock and sending sees round trips that are too long.
pub(crate) fn urgently<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            // Linux: of the calling thread alone.
            let _ = setpriority_process(None, HIGHEST);
            work()
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// From now on the calling thread works when nobody else wants the core.
pub(crate) fn be_patient() {
    // Linux: of the calling thread alone.
    let _ = setpriority_process(None, LOWEST);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;

    #[test]
    fn only_the_urgent_thread_and_what_it_starts_is_urgent() {
        let before = getpriority_process(None).unwrap();
        let (inside, child) = urgently(|| {
            let inside = getpriority_process(None).unwrap();
            (inside, thread::spawn(|| getpriority_process(None).unwrap()).join().unwrap())
        });
        assert_eq!(child, inside);
        assert!(inside <= before);
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
