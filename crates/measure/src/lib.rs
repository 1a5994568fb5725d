//! Measures this machine and packet pipelines on it. Each measurement returns plain structs.
//! `machine.rs` records the machine and the other load on it during a measurement.
//!
//! | file | question it answers |
//! |---|---|
//! | `score.rs` | what is the integer score of a core? |
//! | `copying.rs` | how fast are packets copied? |
//! | `memory.rs` | what are latency and throughput by working set, and where do caches end? |
//! | `timing.rs` | what do clocks, sleeps, system calls and rings cost? |
//! | `host.rs` | all of the above, as one record |
//! | `pipeline.rs`, `netcope.rs`, `emulate.rs`, `switched.rs`, `dut_port.rs` | time per packet? |
//! | `passes.rs` | how is that measured on a machine whose speed changes? |
//! | `slowdown.rs` | what would a slower core measure? |
//! | `rate.rs`, `search.rs`, `offered.rs` | what is the highest rate without loss? |
//! | `switching/` | how much time does a switch spend on lookups, packets and rule changes? |
//! | `capacity/` | what does the engine cost, so that a network's load can be predicted? |
//! | `latency.rs`, `operations.rs` | how long does a packet take; what does each operation add? |
//!
//! Times are taken with `CLOCK_MONOTONIC` on the measured thread. The cost of reading the clock is
//! subtracted. Results are medians of many short rounds: a host stall spoils one round, not the
//! result.

#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod caches;
pub mod capacity;
mod connected;
mod copying;
mod dut_port;
mod emulate;
mod grid;
mod host;
mod latency;
mod machine;
mod memory;
mod netcope;
mod offered;
mod operations;
mod passes;
mod pipeline;
mod rate;
mod score;
mod search;
mod slowdown;
mod station;
mod switched;
mod switching;
mod timing;

pub use caches::CacheEdge;
pub use connected::{Connected, ConnectedQuestion, NetworkShape, connected};
pub use copying::{CopyRate, Place};
pub use dut_port::{DutAttachment, DutPort, DutPortError, ParseAttachmentError};
pub use emulate::{
    Emulation, EmulationQuestion, LinkKind, LinkWeight, emulate, emulate_over, emulate_throughput, weigh,
};
use fastpath_units::stats::median;
pub use grid::{GridError, PipelineGrid, PipelineProgram};
pub use host::{Host, host};
pub use latency::{Between, BetweenError, Histogram, LATENCY_SIZES, UnitLatency, latency};
pub use machine::{Watch, this_machine, undisturbed};
pub use memory::{LatencyPoint, MemoryPoint, Operation, TlbCost};
pub use netcope::{Netcope, NetcopeQuestion, Tag, netcope, netcope_over, netcope_throughput};
pub use operations::{EXTRAS, Extra, OperationCost, operation};
pub use passes::{Results, typical};
pub use pipeline::Stage;
pub use rate::{Hunt, SEARCH};
pub use search::{Found, Goal, SearchError, Trial, search};
pub use slowdown::{NoSlowdown, Slowdown};
pub use switched::{SwitchFrames, switched, switched_over, switched_throughput};
pub use switching::{
    Barriers, ByTraffic, ChangePhase, ChangeTimes, ExecutorCost, FlowChanges, Lookups, Rates, Rules,
    RulesError, Spread, SwitchCost, SwitchError, SwitchExecutor, SwitchQuestion, Updates, WorkerRates,
    WorkerRatios, WorkerScaling, executor_cost, flow_changes, switch_cost, worker_scaling,
};
pub use timing::{Jitter, Timing};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::time::{Duration, Instant};

/// Selects how much time a measurement takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// Seconds, for a first estimate.
    Quick,
    /// Minutes, for figures to publish.
    Full,
}

/// Reports the progress of a measurement: the current activity, steps done, total steps.
pub type Progress<'a> = &'a (dyn Fn(&str, usize, usize) + Sync);

/// Runs `work` on a new thread pinned to the `core`-th of the cores this process may use. If the
/// kernel refuses the affinity, the thread runs unpinned.
fn on_core<T: Send>(core: usize, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            pin(core);
            work()
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Pins the calling thread to the `core`-th of the cores this process may use. These cores are the
/// affinity of the process's first thread, which is never pinned. The calling thread's own affinity
/// does not serve: a thread started by a pinned thread inherits its single core.
fn pin(core: usize) {
    let this = Pid::from_raw(0);
    let Ok(allowed) = sched_getaffinity(Pid::this()) else { return };
    let cores: Vec<usize> = (0..CpuSet::count()).filter(|&c| allowed.is_set(c).unwrap_or(false)).collect();
    let mut one = CpuSet::new();
    if let Some(&chosen) = cores.get(core % cores.len().max(1)) {
        // If the core has gone offline or the kernel refuses, the thread keeps its affinity.
        let _ = one.set(chosen).and_then(|()| sched_setaffinity(this, &one));
    }
}

/// Returns the cost of one clock reading, ns: the median of 101 samples.
fn clock_cost_ns() -> f64 {
    median((0..101).map(|_| {
        let start = Instant::now();
        for _ in 0..100 {
            std::hint::black_box(Instant::now());
        }
        start.elapsed().as_secs_f64() * 1e9 / 101.0
    }))
}

/// Repeats `work` until `span` has elapsed, at least `rounds_min` times. Returns each duration, ns.
fn rounds(span: Duration, rounds_min: usize, mut work: impl FnMut()) -> Vec<f64> {
    let mut times = Vec::new();
    let begin = Instant::now();
    while times.len() < rounds_min || begin.elapsed() < span {
        let start = Instant::now();
        work();
        times.push(start.elapsed().as_secs_f64() * 1e9);
    }
    times
}

/// Reports a skipped test on stderr and in the file named by `FASTPATH_SKIP_LOG`, if it is set.
#[cfg(test)]
fn skip(test: &str, why: &str) {
    let line = format!("SKIPPED: {test}: {why}\n");
    eprint!("{line}");
    if let Some(log) = std::env::var_os("FASTPATH_SKIP_LOG") {
        use std::io::Write;
        let file = std::fs::OpenOptions::new().create(true).append(true).open(log);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("writing the log of skipped tests");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_started_by_a_pinned_thread_gets_its_own_core() {
        let cores = |of: CpuSet| (0..CpuSet::count()).filter(move |&c| of.is_set(c).unwrap_or(false));
        let allowed: Vec<usize> = cores(sched_getaffinity(Pid::this()).expect("an affinity")).collect();
        let [outer, inner] = on_core(0, || {
            let here = || sched_getaffinity(Pid::from_raw(0)).expect("an affinity");
            [here(), on_core(1, here)]
        });
        assert_eq!(cores(outer).collect::<Vec<_>>(), [allowed[0]]);
        assert_eq!(cores(inner).collect::<Vec<_>>(), [allowed[1 % allowed.len()]]);
    }
}
