//! The scheduling priority of threads: work that must not wait, and work that may.

pub use fastpath_sys::thread::set_low_priority;

use fastpath_spec::Idle;
use fastpath_sys::thread::{set_high_priority, set_real_time};
use std::io;

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

/// Gives the calling thread the priority of a worker. Returns what to tell the user if the system
/// does not allow it.
pub(crate) fn take_worker_priority(idle: Idle) -> Option<String> {
    take_with(idle, set_real_time, set_high_priority)
}

fn take_with(idle: Idle, real_time: fn() -> io::Result<()>, high: fn() -> io::Result<()>) -> Option<String> {
    let refused_real_time = match idle {
        // A spinning thread of high priority would keep its core from the hosts that it serves.
        Idle::Busy => return None,
        // A worker that never polls leaves its core to the hosts whenever it can.
        Idle::Sleep => Some(real_time().err()?),
        _ => None,
    };
    match (high(), refused_real_time) {
        (Ok(()), None) => None,
        (Ok(()), Some(refusal)) => Some(format!(
            "the engine has a high priority and not a real-time one ({refusal}): frames may be later; \
             allow it with CAP_SYS_NICE, ulimit -r 1 or LimitRTPRIO=1"
        )),
        (Err(refusal), _) => Some(format!(
            "the engine has the priority of other programs ({refusal}): under load frames may be late or lost; \
             allow it with CAP_SYS_NICE, ulimit -e 40 or LimitNICE=-20"
        )),
    }
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
    fn a_worker_says_which_priority_it_could_not_have() {
        let (yes, no): (fn() -> io::Result<()>, fn() -> io::Result<()>) =
            (|| Ok(()), || Err(io::Error::from_raw_os_error(1)));
        let told = |idle, real_time, high| take_with(idle, real_time, high).unwrap_or_default();
        assert_eq!(told(Idle::Busy, no, no), "", "it asks for none");
        assert_eq!(told(Idle::Save, no, yes), "");
        assert_eq!(told(Idle::Sleep, yes, no), "");
        assert!(told(Idle::Sleep, no, yes).contains("not a real-time one"));
        for idle in [Idle::Save, Idle::Sleep] {
            assert!(told(idle, no, no).contains("the priority of other programs"));
        }
    }

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
