//! Measurements of this machine and of packet pipelines on it. Each gives plain structs;
//! `machine.rs` says where they were made and what disturbed them.
//!
//! | file | question |
//! |---|---|
//! | `score.rs` | how fast are integers? |
//! | `copying.rs` | how fast are packets copied? |
//! | `memory.rs` | what does memory cost, by working set, and where do the caches end? |
//! | `timing.rs` | what do clocks, sleeps, system calls and rings cost? |
//! | `host.rs` | all of these, as one record |
//! | `pipeline.rs`, `netcope.rs`, `emulate.rs`, `switched.rs`, `dut_port.rs` | what does a packet cost a pipeline? |
//! | `passes.rs` | and on a machine whose speed changes? |
//! | `slowdown.rs` | what if the core were slower? |
//! | `rate.rs`, `search.rs`, `offered.rs` | what is the highest rate without loss? |
//! | `switching/` | what do lookups, packets and changes of rules cost a switch? |
//! | `latency.rs`, `operations.rs` | how long does a packet take, and what does each operation add? |
//!
//! Times are of the thread that works, by `CLOCK_MONOTONIC`; what a reading of the clock costs is
//! taken off. Medians of many short rounds: a pause of the machine spoils a round, not the result.

#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod caches;
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
mod switched;
mod switching;
mod timing;

pub use caches::CacheEdge;
pub use copying::{CopyRate, Place};
pub use dut_port::{DutAttachment, DutPort, DutPortError, ParseAttachmentError};
pub use emulate::{
    Emulation, EmulationQuestion, LinkKind, LinkWeight, emulate, emulate_over, emulate_throughput, weigh,
};
pub use grid::{GridError, PipelineGrid, PipelineProgram};
pub use host::{Host, host};
pub use latency::{Between, BetweenError, Histogram, LATENCY_SIZES, UnitLatency, latency};
pub use machine::{Watch, this_machine};
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
    ByTraffic, ChangeTimes, Lookups, Rates, Rules, RulesError, Spread, SwitchCost, SwitchError,
    SwitchQuestion, Updates, switch_cost,
};
pub use timing::{Jitter, Timing};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::time::{Duration, Instant};

/// How much time to spend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// Seconds, for a first look.
    Quick,
    /// Minutes, for numbers to build on.
    Full,
}

/// How far a measurement is: what it does, steps done, steps in all.
pub type Progress<'a> = &'a (dyn Fn(&str, usize, usize) + Sync);

/// Runs `work` on a thread of its own that stays on the `core`-th of the cores this process may
/// use. Where the kernel refuses, it runs unpinned.
fn on_core<T: Send>(core: usize, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            pin(core);
            work()
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Keeps the calling thread on the `core`-th of the cores this process may use: those of its first
/// thread, which is never pinned. One that is started by a pinned thread inherits that one's core,
/// and would share it.
fn pin(core: usize) {
    let this = Pid::from_raw(0);
    let Ok(allowed) = sched_getaffinity(Pid::this()) else { return };
    let cores: Vec<usize> = (0..CpuSet::count()).filter(|&c| allowed.is_set(c).unwrap_or(false)).collect();
    let mut one = CpuSet::new();
    if let Some(&chosen) = cores.get(core % cores.len().max(1)) {
        // A core that went away meanwhile, or a refusal, leaves the thread where it is.
        let _ = one.set(chosen).and_then(|()| sched_setaffinity(this, &one));
    }
}

/// What one reading of the clock costs, ns: the median of many.
fn clock_cost_ns() -> f64 {
    let mut costs: Vec<f64> = (0..101)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..100 {
                std::hint::black_box(Instant::now());
            }
            start.elapsed().as_secs_f64() * 1e9 / 101.0
        })
        .collect();
    median(&mut costs)
}

/// The middle of some numbers, which are sorted on the way; NaN for none.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    quantile(values, 0.5)
}

/// Quantile `p` of sorted numbers, linear between neighbours; NaN for none.
fn quantile(sorted: &[f64], p: f64) -> f64 {
    if sorted.is_empty() { f64::NAN } else { fastpath_model::stats::quantile_of(sorted, p) }
}

/// Does `work` again and again until `span` is over, at least `least` times; gives each duration in
/// ns.
fn rounds(span: Duration, least: usize, mut work: impl FnMut()) -> Vec<f64> {
    let mut times = Vec::new();
    let begin = Instant::now();
    while times.len() < least || begin.elapsed() < span {
        let start = Instant::now();
        work();
        times.push(start.elapsed().as_secs_f64() * 1e9);
    }
    times
}

/// Reports that a test could not run here, on stderr and in the file that the test command reads.
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
    fn a_thread_that_a_pinned_one_starts_has_a_core_of_its_own() {
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
