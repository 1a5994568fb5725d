//! Measures the cost of clocks, sleeps, system calls and rings: the basis of a real-time engine.

use super::{Effort, clock_cost_ns, pin, rounds};
use fastpath_units::stats::{median, quantile, sorted};
use nix::unistd::getppid;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const BATCH: usize = 256;
/// Number of visits to the other core, and minimum number of round trips per visit. The fastest
/// visit counts, because other work only adds time.
const VISITS: u32 = 9;
const TRIPS: usize = 20;
/// Plausible maxima, ns. A word crosses sockets in less than a microsecond, and a clock behind a
/// hypervisor answers within a few. Beyond these limits, the program did not have the cores that it
/// measured.
const CLOCK_MAX_NS: f64 = 20e3;
const SYSCALL_MAX_NS: f64 = 100e3;
const RING_MAX_NS: f64 = 10e3;
const CORE_TO_CORE_MAX_NS: f64 = 20e3;

/// The measured costs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Timing {
    /// One reading of the clock, ns.
    pub clock_ns: f64,
    /// One trivial system call (getppid), ns.
    pub syscall_ns: f64,
    /// One word through a ring on one core, write and read, ns.
    pub ring_ns: f64,
    /// Half a round trip of a word between two cores, ns; absent with one core.
    pub core_to_core_ns: Option<f64>,
    /// Lateness of a loop that polls the clock until a deadline.
    pub spin: Jitter,
    /// Lateness of a sleep of one millisecond.
    pub sleep: Jitter,
}

/// Lateness relative to deadlines, ns.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Jitter {
    /// Number of deadlines.
    pub samples: usize,
    /// The median.
    pub p50_ns: f64,
    /// The 99th percentile.
    pub p99_ns: f64,
    /// The 99.9th percentile.
    pub p99_9_ns: f64,
    /// The maximum.
    pub max_ns: f64,
}

impl Timing {
    /// Returns a message for each value that is implausible for any machine.
    pub fn implausible(&self) -> Vec<String> {
        let limits = [
            ("a reading of the clock", Some(self.clock_ns), CLOCK_MAX_NS),
            ("a system call", Some(self.syscall_ns), SYSCALL_MAX_NS),
            ("a word through a ring", Some(self.ring_ns), RING_MAX_NS),
            ("a word from core to core", self.core_to_core_ns, CORE_TO_CORE_MAX_NS),
        ];
        let beyond =
            limits.into_iter().filter_map(|(what, ns, most)| Some((what, ns.filter(|ns| *ns > most)?)));
        beyond
            .map(|(what, ns)| {
                format!(
                    "{what} took {ns:.0} ns, which is implausible: other processes used the cores; measure again"
                )
            })
            .collect()
    }
}

impl Jitter {
    fn of(lateness_ns: Vec<f64>) -> Jitter {
        let lateness_ns = sorted(lateness_ns);
        let at = |p| quantile(&lateness_ns, p);
        Jitter {
            samples: lateness_ns.len(),
            p50_ns: at(0.5),
            p99_ns: at(0.99),
            p99_9_ns: at(0.999),
            max_ns: at(1.0),
        }
    }
}

/// Measures all costs on the calling thread's core; the cost between cores on two.
pub(super) fn timing(effort: Effort, cores: usize) -> Timing {
    let (deadlines, sleeps) = if effort == Effort::Quick { (2000, 100) } else { (20_000, 2000) };
    let span = Duration::from_millis(if effort == Effort::Quick { 10 } else { 200 });
    let per_batch = |times: Vec<f64>| median(times) / BATCH as f64;
    Timing {
        clock_ns: clock_cost_ns(),
        syscall_ns: per_batch(rounds(span, 5, || {
            for _ in 0..BATCH {
                black_box(getppid());
            }
        })),
        ring_ns: {
            let ring = Ring::new();
            per_batch(rounds(span, 5, || {
                for word in 0..BATCH as u64 {
                    ring.push(word);
                    black_box(ring.pop());
                }
            }))
        },
        core_to_core_ns: (cores > 1).then(|| core_to_core(span)),
        spin: Jitter::of((0..deadlines).map(|_| spin(Duration::from_micros(50))).collect()),
        sleep: Jitter::of((0..sleeps).map(|_| sleep(Duration::from_millis(1))).collect()),
    }
}

fn spin(span: Duration) -> f64 {
    let deadline = Instant::now() + span;
    loop {
        let now = Instant::now();
        if now >= deadline {
            return (now - deadline).as_secs_f64() * 1e9;
        }
    }
}

fn sleep(span: Duration) -> f64 {
    let deadline = Instant::now() + span;
    std::thread::sleep(span);
    Instant::now().saturating_duration_since(deadline).as_secs_f64() * 1e9
}

/// Returns half of the median round trip of a word between two cores, ns, in the fastest of several
/// visits.
fn core_to_core(span: Duration) -> f64 {
    const STOP: u64 = u64::MAX;
    let (there, back) = (Ring::new(), Ring::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            loop {
                match there.pop() {
                    Some(STOP) => break,
                    Some(word) => back.push(word),
                    None => std::hint::spin_loop(),
                }
            }
        });
        let visit = |_| {
            let times = rounds(span / VISITS, TRIPS, || {
                there.push(1);
                while back.pop().is_none() {
                    std::hint::spin_loop();
                }
            });
            median(times)
        };
        let fastest = (0..VISITS).map(visit).fold(f64::INFINITY, f64::min);
        there.push(STOP);
        (fastest - clock_cost_ns()).max(0.0) / 2.0
    })
}

/// A ring for one writer and one reader. It is never full here: at most a few words are in flight.
pub(super) struct Ring {
    slots: [AtomicU64; Ring::SLOTS],
    head: Line,
    tail: Line,
}

/// A counter on a cache line of its own.
#[repr(align(128))]
struct Line(AtomicUsize);

impl Ring {
    const SLOTS: usize = 64;

    pub(super) fn new() -> Ring {
        let slots = [const { AtomicU64::new(0) }; Ring::SLOTS];
        Ring { slots, head: Line(AtomicUsize::new(0)), tail: Line(AtomicUsize::new(0)) }
    }

    pub(super) fn push(&self, word: u64) {
        let tail = self.tail.0.load(Ordering::Relaxed);
        self.slots[tail % Ring::SLOTS].store(word, Ordering::Relaxed);
        self.tail.0.store(tail + 1, Ordering::Release);
    }

    pub(super) fn pop(&self) -> Option<u64> {
        let head = self.head.0.load(Ordering::Relaxed);
        if head == self.tail.0.load(Ordering::Acquire) {
            return None;
        }
        let word = self.slots[head % Ring::SLOTS].load(Ordering::Relaxed);
        self.head.0.store(head + 1, Ordering::Release);
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_leave_the_ring_in_order() {
        let ring = Ring::new();
        (0..5).for_each(|word| ring.push(word));
        let popped: Vec<u64> = std::iter::from_fn(|| ring.pop()).collect();
        assert_eq!(popped, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_word_returns_from_another_core() {
        assert!(core_to_core(Duration::ZERO) > 0.0);
    }

    #[test]
    fn implausible_times_are_reported() {
        let jitter = Jitter::of(vec![1.0]);
        let fine = Timing {
            clock_ns: 25.0,
            syscall_ns: 150.0,
            ring_ns: 2.0,
            core_to_core_ns: Some(400.0),
            spin: jitter,
            sleep: jitter,
        };
        assert_eq!(fine.implausible(), Vec::<String>::new());
        let stolen = Timing { core_to_core_ns: Some(4e6), ..fine };
        assert!(stolen.implausible()[0].starts_with("a word from core to core took 4000000 ns"));
    }

    #[test]
    fn jitter_is_never_early() {
        assert!(spin(Duration::from_micros(1)) >= 0.0);
        let jitter = Jitter::of(vec![3.0, 1.0, 2.0]);
        assert_eq!((jitter.samples, jitter.p50_ns, jitter.max_ns), (3, 2.0, 3.0));
    }
}
