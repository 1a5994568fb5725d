//! Measures the cost of a switch: lookups in a table by three methods, whole packets over memory
//! ports, and rule changes under full traffic.
//!
//! | file | question |
//! |---|---|
//! | `rules.rs` | which tables, and which flows match them? |
//! | `lookup.rs` | what does one lookup cost, compiled, interpreted, hashed per mask? |
//! | `path.rs` | how many packets per second go from port to port? |
//! | `executor.rs` | what does a packet cost by one executor, the kernel's program included? |
//! | `flow_changes.rs` | how fast does a controller change flows, and what does it cost? |
//! | `workers.rs` | how much more do several workers pass than one? |
//! | `updates.rs` | how soon does a change take effect, and how does it affect packets? |

mod executor;
mod flow_changes;
mod lookup;
mod path;
mod rules;
mod updates;
mod workers;

pub use executor::{ExecutorCost, SwitchExecutor, executor_cost};
use fastpath_units::stats::median;
pub use flow_changes::{Barriers, ChangePhase, FlowChanges, flow_changes};
pub use rules::{Rules, RulesError};
pub use workers::{WorkerRates, WorkerRatios, WorkerScaling, worker_scaling};

use super::search::SearchError;
use super::{Effort, Progress, on_core};
use fastpath_jit::{CompileError, Live};
use fastpath_switch::Switch;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Parameters of the measurement of a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SwitchQuestion {
    /// The tables.
    pub rules: Rules,
    /// Number of flows.
    pub flows: usize,
    /// Seed of the random generator of rules, flows and keys.
    pub seed: u64,
    /// The effort: quick or full.
    pub effort: Effort,
}

/// Times for each kind of traffic, ns.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ByTraffic {
    /// One flow.
    pub one_flow: f64,
    /// The flows, distributed by Zipf's law with exponent 1.
    pub zipf: f64,
    /// 64 Ki uniformly random keys.
    pub random: f64,
}

/// Times of one lookup in the largest table, ns.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Lookups {
    /// Generated code.
    pub compiled: ByTraffic,
    /// Linear search over the rules.
    pub interpreted: ByTraffic,
    /// One hash table per mask.
    pub hash_per_mask: ByTraffic,
}

/// Rates of the whole path, packets/s: from one memory port through the tables to another, on one
/// core, with frames of 60 bytes (64 with FCS).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Rates {
    /// Generated code.
    pub compiled: f64,
    /// The interpreter over the same plan.
    pub interpreted: f64,
}

/// Median and maximum of a set of times.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The maximum.
    pub max: f64,
}

/// Times of changes, µs, with the data to attribute the longest one. On a core that other processes
/// take for milliseconds, the longest change is caused by them.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ChangeTimes {
    /// The median.
    pub median: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The maximum.
    pub max: f64,
    /// The maximum by CPU time of the thread: it excludes time taken by other processes, and most
    /// of the time taken by other virtual machines.
    pub cpu_max: f64,
    /// The maximum of equally many empty loops, each as long as the median change, run on the same
    /// core between the changes.
    pub control_max: f64,
}

/// The effect of rule changes under full traffic.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Updates {
    /// Time from the request until the change is in force.
    pub update_us: ChangeTimes,
    /// Time of a burst of 32 packets during the changes, µs.
    pub burst_us: Spread,
    /// Packets offered, those of the warm-up included.
    pub packets: u64,
    /// Packets lost.
    pub lost: u64,
}

/// The cost of a switch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SwitchCost {
    /// Rules of all tables.
    pub rules: usize,
    /// Lookup times.
    pub ns_per_lookup: Lookups,
    /// Time to build plans and generate code for all rules, ms.
    pub compile_ms: f64,
    /// Size of the machine code, bytes.
    pub code_bytes: usize,
    /// Rates of the whole path.
    pub packets_per_second: Rates,
    /// Rule changes.
    #[serde(flatten)]
    pub updates: Updates,
}

/// Why a switch could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SwitchError {
    /// The tables.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// Code generation failed.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The tables do not run in the kernel.
    #[error(transparent)]
    Kernel(#[from] fastpath_jit::ebpf::KernelError),
    /// A test run failed.
    #[error("BPF_PROG_TEST_RUN: {0}")]
    TestRun(#[from] std::io::Error),
    /// The operating system refused a thread, a descriptor or a socket, or a change was refused.
    #[error("changing flows: {0}")]
    Changes(std::io::Error),
    /// The agent did not start.
    #[error(transparent)]
    Agent(#[from] fastpath_openflow::agent::StartError),
    /// The search for rates failed.
    #[error(transparent)]
    Search(#[from] SearchError),
}

/// Measures the cost of a switch.
///
/// # Errors
/// The rules cannot be read, or code generation does not support this machine.
pub fn switch_cost(question: &SwitchQuestion, progress: Progress<'_>) -> Result<SwitchCost, SwitchError> {
    progress("making rules", 0, 5);
    let made = rules::make(question)?;
    progress("compiling", 1, 5);
    let rounds = if made.rules > 100_000 { 1 } else { 3 };
    let mut times = Vec::new();
    let mut compiled: Option<(Live, Switch)> = None;
    for _ in 0..rounds {
        // Free the workers' cells of a million rules outside the timed section.
        drop(compiled.take());
        let mut switch = made.switch.clone();
        let start = Instant::now();
        let live = Live::new(&mut switch, 1)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        compiled = Some((live, switch));
    }
    let compile_ms = median(times);
    let Some((live, switch)) = compiled else { unreachable!("at least one round") };
    let code_bytes = live.code_bytes();
    progress("looking up", 2, 5);
    let ns_per_lookup = on_core(0, || lookup::measure(question, &made))?;
    progress("forwarding", 3, 5);
    let packets_per_second = on_core(0, || path::measure(question, &made, &live));
    progress("changing rules", 4, 5);
    let updates = updates::measure(question, &made, live, switch);
    progress("done", 5, 5);
    Ok(SwitchCost { rules: made.rules, ns_per_lookup, compile_ms, code_bytes, packets_per_second, updates })
}

/// Returns a compiled switch with the tables of `question`, its ingress port, and the frames.
pub(super) fn prepared(
    question: &SwitchQuestion,
    workers: usize,
) -> Result<(Live, u32, Vec<Vec<u8>>), SwitchError> {
    let mut made = rules::make(question)?;
    let live = Live::new(&mut made.switch, workers)?;
    Ok((live, rules::IN, made.frames))
}

/// A switch with rules, and the traffic that matches them.
struct Made {
    switch: Switch,
    /// Rules of all tables.
    rules: usize,
    /// The table with the most rules.
    largest: u8,
    /// Keys that match the rules of the largest table.
    follow: Vec<fastpath_switch::Key>,
    /// One frame for each requested flow; the tables forward all of them.
    frames: Vec<Vec<u8>>,
}
