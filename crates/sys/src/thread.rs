//! Scheduling of threads that keep deadlines: priority, timer slack, cores, run delay. The kernel
//! may refuse each request. Then the thread is an ordinary one, and its own measurements show the
//! effect.

use super::check;
use fastpath_units::Duration;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The highest priority of an ordinary thread (sched(7)). Not a real-time one: those are stopped
/// for 50 ms of every second when they spin.
const HIGHEST: libc::c_int = -20;
/// Below that of ordinary threads: a third of their share. At the lowest priority a machine with
/// other work would hardly run the thread, and threads that wait for its results would wait for
/// minutes.
const LOW: libc::c_int = 5;

/// Makes the sleeps of this thread end as near to their deadline as possible. By default the kernel
/// delays them by up to 50 µs to save power.
pub fn minimise_timer_slack() {
    let slack_ns: libc::c_ulong = 1;
    // SAFETY: no pointers.
    let _: libc::c_int = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns) };
}

/// Requests that this thread runs before those of other programs: the highest priority of an
/// ordinary thread, or what the limits of the user allow (`ulimit -e`, `ulimit -r`).
///
/// # Errors
/// The system grants none of them.
pub fn set_high_priority() -> io::Result<()> {
    // SAFETY: no pointers. On Linux, process 0 is the calling thread alone.
    let nice = |value: libc::c_int| check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, value) });
    let Err(refusal) = nice(HIGHEST) else { return Ok(()) };
    // The limit is 20 minus the nice value (getrlimit(2)).
    let allowed = 20 - soft_limit(libc::RLIMIT_NICE).min(40) as libc::c_int;
    if allowed < 0 && nice(allowed).is_ok() {
        return Ok(());
    }
    // A real-time thread that never blocks is killed where its time is limited.
    let may_spin = soft_limit(libc::RLIMIT_RTTIME) == libc::RLIM_INFINITY;
    if soft_limit(libc::RLIMIT_RTPRIO) > 0 && may_spin && set_round_robin(1).is_ok() {
        return Ok(());
    }
    Err(refusal)
}

/// Whether the kernel's time is virtual: it stands still while programs compute, and sleeps end
/// exactly on time, so nothing is gained by polling the clock.
pub fn has_virtual_time() -> bool {
    // The clock source of User Mode Linux with time-travel (arch/um/kernel/time.c).
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    source.is_ok_and(|source| source.trim() == "time-travel-clock")
}

/// Makes this thread a real-time thread, which runs before all others that are not. It must not
/// spin.
///
/// # Errors
/// Without CAP_SYS_NICE and below the limit of RLIMIT_RTPRIO it is not permitted.
pub fn set_real_time() -> io::Result<()> {
    set_round_robin(1)
}

/// Makes this thread a real-time thread of a priority, by the system call itself: musl's function
/// always fails (sched_setscheduler(2) in musl returns ENOSYS).
fn set_round_robin(priority: libc::c_int) -> io::Result<()> {
    // SAFETY: all zeroes is a valid parameter. musl has further fields, which the kernel ignores.
    let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    parameter.sched_priority = priority;
    // SAFETY: `parameter` lives through the call, which only reads it. Process 0 is this thread.
    let set = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_RR, &raw const parameter) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The type of the names of limits, which differs between the C libraries.
#[cfg(target_env = "gnu")]
type LimitName = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type LimitName = libc::c_int;

/// Returns the time of `CLOCK_MONOTONIC`, nanoseconds: the clock of [`std::time::Instant`] and of
/// BPF programs.
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is what the call writes to; this clock always exists.
    let _: libc::c_int = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns a limit of this process; 0 if there is no such limit.
fn soft_limit(resource: LimitName) -> libc::rlim_t {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` lives through the call, which writes it.
    let _: libc::c_int = unsafe { libc::getrlimit(resource, &raw mut limit) };
    limit.rlim_cur
}

/// Requests that other threads run before the calling thread.
pub fn set_low_priority() {
    // SAFETY: no pointers. On Linux, process 0 is the calling thread alone.
    let _: libc::c_int = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LOW) };
}

/// Returns the unused pages of the heap to the system. It may take milliseconds.
pub fn release_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no pointers; glibc locks what it looks at.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Returns the nice value of the calling thread.
pub fn niceness() -> i32 {
    // SAFETY: no pointers. On Linux, process 0 is the calling thread alone.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

/// The cores this thread may run on, in order.
pub fn cores() -> Vec<u32> {
    // SAFETY: all zeroes is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` lives through the call, which writes at most its size. Process 0 is this
    // thread.
    if check(unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) }).is_err() {
        return Vec::new();
    }
    // SAFETY: every number below CPU_SETSIZE is a bit of the set.
    let is_set = |core: u32| unsafe { libc::CPU_ISSET(core as usize, &set) };
    (0..libc::CPU_SETSIZE as u32).filter(|&core| is_set(core)).collect()
}

/// Binds this thread to a core.
pub fn stay_on(core: u32) -> io::Result<()> {
    if core >= libc::CPU_SETSIZE as u32 {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: all zeroes is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number is below CPU_SETSIZE, so it is a bit of the set.
    unsafe { libc::CPU_SET(core as usize, &mut set) };
    // SAFETY: `set` lives through the call, which only reads it. Process 0 is this thread.
    check(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) })?;
    Ok(())
}

/// The times that the kernel accounts to the calling thread.
#[derive(Debug)]
pub struct ThreadAccount {
    /// `None` where the kernel does not provide it.
    schedstat: Option<File>,
}

/// Times of a thread since it started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ThreadTimes {
    /// Time for which it ran.
    pub cpu: Duration,
    /// Time for which it was ready to run and had no core.
    pub run_delay: Duration,
}

impl ThreadAccount {
    /// Returns the account of the calling thread.
    pub fn of_this_thread() -> ThreadAccount {
        ThreadAccount { schedstat: File::open("/proc/thread-self/schedstat").ok() }
    }

    /// Returns the times since the thread started. The run delay is zero where the kernel does not
    /// account for it.
    pub fn read(&self) -> ThreadTimes {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` lives through the call, which writes it.
        let _: libc::c_int = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
        let cpu = Duration::from_ns(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64);
        let mut text = [0; 96];
        let len = self.schedstat.as_ref().map_or(0, |file| file.read_at(&mut text, 0).unwrap_or(0));
        // "time on a core, time waiting for one, turns", nanoseconds
        // (Documentation/scheduler/sched-stats.rst). The first is as of the last tick.
        let second = std::str::from_utf8(&text[..len]).ok().and_then(|text| text.split(' ').nth(1));
        let run_delay = second.and_then(|number| number.parse().ok()).unwrap_or(0);
        ThreadTimes { cpu, run_delay: Duration::from_ns(run_delay) }
    }
}

/// The time that a hypervisor took from the cores of this machine.
#[derive(Debug)]
pub struct Steal {
    stat: Option<File>,
    last: u64,
}

impl Steal {
    /// Starts to count.
    pub fn start() -> Steal {
        let mut steal = Steal { stat: File::open("/proc/stat").ok(), last: 0 };
        steal.since_last();
        steal
    }

    /// Returns the time since the last call, of all cores, to 10 ms.
    pub fn since_last(&mut self) -> Duration {
        let mut text = [0; 160];
        let len = self.stat.as_ref().map_or(0, |file| file.read_at(&mut text, 0).unwrap_or(0));
        // "cpu  user nice system idle iowait irq softirq steal …", in hundredths of a second
        // (proc_stat(5)).
        let eighth = std::str::from_utf8(&text[..len]).ok().and_then(|text| text.split_whitespace().nth(8));
        let total = eighth.and_then(|number| number.parse().ok()).unwrap_or(self.last);
        Duration::from_ms(10 * total.saturating_sub(std::mem::replace(&mut self.last, total)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_can_be_bound_to_any_core_it_may_use() {
        let all = cores();
        assert!(!all.is_empty());
        let bound = std::thread::spawn(move || {
            all.iter().map(|&core| stay_on(core).map(|()| (core, cores()))).collect::<Vec<_>>()
        });
        for result in bound.join().unwrap() {
            let (core, now) = result.unwrap();
            assert_eq!(now, [core]);
        }
        assert!(stay_on(u32::MAX).is_err());
    }

    #[test]
    fn a_thread_that_computes_uses_time_of_its_core() {
        let account = ThreadAccount::of_this_thread();
        let before = account.read();
        while account.read().cpu.saturating_sub(before.cpu) < Duration::from_ms(2) {}
        assert!(account.read().run_delay >= before.run_delay);
        let nothing = ThreadAccount { schedstat: None }.read();
        assert_eq!(nothing.run_delay, Duration::ZERO);
        let mut steal = Steal { stat: None, last: 5 };
        assert_eq!(steal.since_last(), Duration::ZERO);
    }
}
