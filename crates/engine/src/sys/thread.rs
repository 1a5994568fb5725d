//! What a thread that keeps deadlines asks of the scheduler. All of it may be refused: then the worker is an
//! ordinary thread, and what it measures of itself says so.

/// The highest priority of an ordinary thread (sched(7)). Not a real-time one: those are stopped for 50 ms of every
/// second when they spin.
const HIGHEST: libc::c_int = -20;

/// Asks that this thread runs before those of other programs, and that its sleeps end as near to their deadline as
/// can be (the default is up to 50 µs later, to save power).
pub(crate) fn be_punctual() {
    let slack_ns: libc::c_ulong = 1;
    // SAFETY: no pointers.
    let _: libc::c_int = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns) };
    // SAFETY: no pointers. On Linux, process 0 is the calling thread alone.
    let _: libc::c_int = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, HIGHEST) };
}
