//! Whether the machine took the core away during a measurement: from the workers of the engine, by
//! the engine's own count, from the threads that send and receive, by the kernel's run delay, and
//! from all, by a hypervisor (steal).
//!
//! A figure that fails in such a round says nothing about the network. It is measured again, and
//! what fails to the end is called disturbed.

use fastpath_engine::Report;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A round is disturbed from this loss of core time on, in total and as a share of the round.
const LOST_MIN: Duration = Duration::from_millis(5);
const LOST_SHARE: f64 = 0.002;
/// Ticks per second in /proc/stat: USER_HZ, 100 on every architecture that Linux supports.
const USER_HZ: u64 = 100;

/// Watches one round of a measurement.
#[derive(Debug)]
pub struct CoreTime {
    started: Instant,
    interrupted: Duration,
    stolen: Duration,
    /// The longest run delay of a thread of the measurement, nanoseconds.
    delayed_ns: AtomicU64,
}

impl CoreTime {
    /// Starts with the state of the engine before the round, if there is an engine.
    pub fn start(engine: Option<&Report>) -> CoreTime {
        CoreTime {
            started: Instant::now(),
            interrupted: engine.map_or(Duration::ZERO, interrupted),
            stolen: stolen(),
            delayed_ns: AtomicU64::new(0),
        }
    }

    /// Does a part of the measurement on the calling thread, and counts how long the thread waited
    /// for a core.
    pub fn of_thread<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = run_delay();
        let done = work();
        let delay = run_delay().saturating_sub(before);
        self.delayed_ns.fetch_max(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        done
    }

    /// Ends the round. Returns what disturbed it: `the machine took the core away for 12.0 ms of
    /// 3.1 s`.
    pub fn finish(&self, engine: Option<&Report>) -> Option<String> {
        let interrupted = engine.map_or(Duration::ZERO, interrupted).saturating_sub(self.interrupted);
        let delayed = Duration::from_nanos(self.delayed_ns.load(Ordering::Relaxed));
        judge(self.started.elapsed(), [interrupted, delayed, stolen().saturating_sub(self.stolen)])
    }
}

/// Returns what disturbed a round. An interruption may be in several counts: the largest decides.
fn judge(round: Duration, counts: [Duration; 3]) -> Option<String> {
    let lost = counts.into_iter().max().unwrap_or_default();
    let is_disturbed = lost >= LOST_MIN && lost.as_secs_f64() >= LOST_SHARE * round.as_secs_f64();
    is_disturbed.then(|| {
        let [of_engine, of_probes, stolen] = counts.map(|count| count.as_secs_f64() * 1e3);
        format!(
            "the machine took the core away in {:.1} s: {of_engine:.1} ms from the engine, {of_probes:.1} ms \
             from a thread of the measurement, {stolen:.0} ms by the hypervisor",
            round.as_secs_f64()
        )
    })
}

/// Returns for how long workers were to run and did not run.
fn interrupted(engine: &Report) -> Duration {
    let all = engine.workers.iter().flat_map(|worker| [worker.stalled.total_ms, worker.preempted.total_ms]);
    Duration::from_secs_f64(all.sum::<f64>().max(0.0) / 1e3)
}

/// Returns how long the calling thread was ready to run and had no core; zero where the kernel does
/// not account for it.
fn run_delay() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().nth(1).and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// Returns the time that a hypervisor gave to others, divided by the number of cores.
fn stolen() -> Duration {
    stolen_in(&fs::read_to_string("/proc/stat").unwrap_or_default())
}

fn stolen_in(stat: &str) -> Duration {
    let cores = stat.lines().filter(|line| line.starts_with("cpu")).count().saturating_sub(1).max(1);
    let total = stat.lines().next().and_then(|line| line.split_whitespace().nth(8)?.parse::<u64>().ok());
    Duration::from_millis(total.unwrap_or(0) * 1000 / USER_HZ) / cores as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_disturbed_by_its_share_and_by_at_least_some_milliseconds() {
        let ms = Duration::from_millis;
        let zero = Duration::ZERO;
        assert_eq!(judge(ms(100), [ms(4), zero, zero]), None);
        assert_eq!(judge(ms(10_000), [ms(19), ms(3), zero]), None);
        let found = judge(ms(10_000), [ms(3), ms(21), zero]).unwrap();
        assert!(found.contains("21.0 ms from a thread of the measurement"), "{found}");
        assert!(
            judge(ms(100), [ms(6), zero, zero]).is_some() && judge(ms(100), [zero, zero, ms(10)]).is_some()
        );
    }

    #[test]
    fn stolen_time_is_that_of_a_core() {
        let stat =
            "cpu  1 2 3 4 5 6 7 80 0 0\ncpu0 1 2 3 4 5 6 7 40 0 0\ncpu1 0 0 0 0 0 0 0 40 0 0\nintr 5\n";
        assert_eq!(stolen_in(stat), Duration::from_millis(400));
        assert_eq!(stolen_in(""), Duration::ZERO);
    }

    #[test]
    fn threads_that_share_a_core_wait_for_it() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let watch = CoreTime::start(None);
        let spin = || {
            let until = Instant::now() + Duration::from_millis(200);
            watch.of_thread(|| while Instant::now() < until {});
        };
        std::thread::scope(|scope| (0..4 * cores).for_each(|_| drop(scope.spawn(spin))));
        let accounts = run_delay() > Duration::ZERO || fs::metadata("/proc/thread-self/schedstat").is_ok();
        assert!(!accounts || watch.finish(None).is_some(), "{watch:?}");
    }
}
