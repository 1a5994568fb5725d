//! What a switch costs: lookups in a table by three ways, whole packets over memory ports, and
//! changes of rules under full traffic.
//!
//! | file | question |
//! |---|---|
//! | `rules.rs` | which tables, and which flows meet them? |
//! | `lookup.rs` | what does one lookup cost, compiled, interpreted, hashed per mask? |
//! | `path.rs` | how many packets per second go from port to port? |
//! | `updates.rs` | how soon is a change in force, and what do packets notice of it? |

mod lookup;
mod path;
mod rules;
mod updates;

pub use rules::{Rules, RulesError};

use super::search::SearchError;
use super::{Effort, Progress, median, on_core};
use fastpath_jit::{CompileError, Live};
use fastpath_switch::Switch;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// What is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SwitchQuestion {
    /// The tables.
    pub rules: Rules,
    /// Live flows.
    pub flows: usize,
    /// The seed of rules, flows and keys.
    pub seed: u64,
    /// How much time to spend.
    pub effort: Effort,
}

/// ns for each kind of traffic.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ByTraffic {
    /// One flow.
    pub one_flow: f64,
    /// The flows, by Zipf's law with exponent 1.
    pub zipf: f64,
    /// 64 Ki uniformly random keys.
    pub random: f64,
}

/// ns of one lookup in the largest table.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Lookups {
    /// Generated code.
    pub compiled: ByTraffic,
    /// One rule after the other.
    pub interpreted: ByTraffic,
    /// A hash for every mask.
    pub hash_per_mask: ByTraffic,
}

/// The whole path: from one memory port through the tables to another, one core, frames of 60 bytes
/// (64 with FCS).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Rates {
    /// Generated code.
    pub compiled: f64,
    /// The interpreter over the same plan.
    pub interpreted: f64,
}

/// Times of changes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Spread {
    /// Half of them are below.
    pub median: f64,
    /// The longest.
    pub max: f64,
}

/// Times of changes, µs, and what says whose they are: on a core that others take away for
/// milliseconds, the longest change is theirs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ChangeTimes {
    /// Half of them are below.
    pub median: f64,
    /// 99 of 100 are.
    pub p99: f64,
    /// The longest.
    pub max: f64,
    /// The longest by CPU time of the thread: what other programs took is not in it, nor most of
    /// what other machines took.
    pub cpu_max: f64,
    /// The longest of as many empty loops, each as long as the median, on the same core between the
    /// changes.
    pub control_max: f64,
}

/// What changes of rules did under full traffic.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Updates {
    /// From the request to when it is in force.
    pub update_us: ChangeTimes,
    /// What a burst of 32 packets took meanwhile, µs.
    pub burst_us: Spread,
    /// Packets in that time.
    pub packets: u64,
    /// Of these, lost.
    pub lost: u64,
}

/// What was found.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SwitchCost {
    /// Rules of all tables.
    pub rules: usize,
    /// Lookups.
    pub ns_per_lookup: Lookups,
    /// Making plans and code of all rules, ms.
    pub compile_ms: f64,
    /// Bytes of machine code.
    pub code_bytes: usize,
    /// The whole path.
    pub packets_per_second: Rates,
    /// Changes.
    #[serde(flatten)]
    pub updates: Updates,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// The tables.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The code.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The rates.
    #[error(transparent)]
    Search(#[from] SearchError),
}

/// Measures a switch.
///
/// # Errors
/// The rules cannot be read, or there is no code for this machine.
pub fn switch_cost(question: &SwitchQuestion, progress: Progress<'_>) -> Result<SwitchCost, SwitchError> {
    progress("making rules", 0, 5);
    let made = rules::make(question)?;
    progress("compiling", 1, 5);
    let rounds = if made.rules > 100_000 { 1 } else { 3 };
    let mut times = Vec::new();
    let mut compiled: Option<(Live, Switch)> = None;
    for _ in 0..rounds {
        // The workers' cells of a million rules are not freed inside the time.
        drop(compiled.take());
        let mut switch = made.switch.clone();
        let start = Instant::now();
        let live = Live::new(&mut switch, 1)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        compiled = Some((live, switch));
    }
    let compile_ms = median(&mut times);
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

/// A compiled switch with the tables of `question`, the port its frames come in by, and the frames.
pub(super) fn prepared(
    question: &SwitchQuestion,
    workers: usize,
) -> Result<(Live, u32, Vec<Vec<u8>>), SwitchError> {
    let mut made = rules::make(question)?;
    let live = Live::new(&mut made.switch, workers)?;
    Ok((live, rules::IN, made.frames))
}

/// A switch with rules, and what meets them.
struct Made {
    switch: Switch,
    /// Rules of all tables.
    rules: usize,
    /// The table with most rules.
    largest: u8,
    /// Keys that follow the rules of the largest table.
    follow: Vec<fastpath_switch::Key>,
    /// Frames of as many flows as were asked for, all of which are forwarded.
    frames: Vec<Vec<u8>>,
}
