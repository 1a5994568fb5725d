//! Measures what a packet costs in the tables, by one executor: nothing is received or sent.
//!
//! The kernel's program is measured by test runs (`BPF_PROG_TEST_RUN`), which carry out no
//! redirection. Where the rules leave packets as they are, a test run repeats a packet. Where they
//! change them, it would repeat another packet, so each run is of one packet, and the time of an
//! empty program is subtracted.

use super::rules::{self, IN, OUT};
use super::{Made, SwitchError, SwitchQuestion};
use crate::{Effort, Progress, on_core};
use fastpath_jit::Live;
use fastpath_jit::ebpf::{KernelPort, KernelTables, empty_program};
use fastpath_plan::Plan;
use fastpath_switch::interp_by;
use fastpath_units::Time;
use fastpath_units::stats::median;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::hint::black_box;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// The interface that packets of test runs seem to come from: loopback.
const FROM: u32 = 1;
/// An interface that is not there: test runs send nothing.
const NOWHERE: u32 = i32::MAX as u32;
/// Packets between two readings of the clock.
const BATCH: usize = 64;
/// Runs of a packet in one test run.
const REPEAT: u32 = 1000;

/// What sends packets through the tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SwitchExecutor {
    /// The interpreter, over the plan.
    Interpreter,
    /// Machine code.
    Native,
    /// A program of the kernel.
    Ebpf,
}

/// What a packet costs in the tables by one executor.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExecutorCost {
    /// The executor.
    pub executor: SwitchExecutor,
    /// Rules of all tables.
    pub rules: usize,
    /// Rules that the kernel has not, which user space would execute.
    pub rules_in_user_space: usize,
    /// What these have, each once.
    pub in_user_space_because: Vec<String>,
    /// Median time of a packet, ns.
    pub ns_per_packet: f64,
    /// How it was measured.
    pub method: String,
}

impl fmt::Display for SwitchExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SwitchExecutor::Interpreter => "interpreter",
            SwitchExecutor::Native => "native",
            SwitchExecutor::Ebpf => "ebpf",
        })
    }
}

impl FromStr for SwitchExecutor {
    type Err = String;

    fn from_str(text: &str) -> Result<SwitchExecutor, String> {
        match text {
            "interpreter" => Ok(SwitchExecutor::Interpreter),
            "native" => Ok(SwitchExecutor::Native),
            "ebpf" => Ok(SwitchExecutor::Ebpf),
            _ => Err("write interpreter, native or ebpf".to_owned()),
        }
    }
}

/// Measures what a packet costs in the tables, by one executor.
///
/// # Errors
/// The rules cannot be read; no code can be generated for this machine; the tables cannot run in
/// the kernel, or this process may not use bpf(2).
pub fn executor_cost(
    question: &SwitchQuestion,
    executor: SwitchExecutor,
    progress: Progress<'_>,
) -> Result<ExecutorCost, SwitchError> {
    progress("making rules", 0, 2);
    let mut made = rules::make(question)?;
    let span = Duration::from_millis(if question.effort == Effort::Quick { 200 } else { 2000 });
    progress("running packets", 1, 2);
    let cost = on_core(0, || match executor {
        SwitchExecutor::Interpreter => Ok(interpreted(&mut made, span)),
        SwitchExecutor::Native => native(&mut made, span),
        SwitchExecutor::Ebpf => in_kernel(&made, span),
    });
    progress("done", 2, 2);
    cost
}

fn of(executor: SwitchExecutor, made: &Made, ns_per_packet: f64, method: &str) -> ExecutorCost {
    let (rules, method) = (made.rules, method.to_owned());
    let (rules_in_user_space, in_user_space_because) = (0, Vec::new());
    ExecutorCost { executor, rules, rules_in_user_space, in_user_space_because, ns_per_packet, method }
}

fn interpreted(made: &mut Made, span: Duration) -> ExecutorCost {
    let plan = Plan::new(&mut made.switch);
    let Made { switch, frames, .. } = made;
    let ns =
        per_packet(frames, span, |frame| drop(black_box(interp_by(&plan, switch, Time::ZERO, IN, frame))));
    of(SwitchExecutor::Interpreter, made, ns, "calls in user space, without ports")
}

fn native(made: &mut Made, span: Duration) -> Result<ExecutorCost, SwitchError> {
    let live = Live::new(&mut made.switch, 1)?;
    let mut worker = live.worker(0);
    worker.begin(Time::ZERO);
    let ns = per_packet(&made.frames, span, |frame| {
        black_box(worker.run(IN, frame));
        worker.outcomes().clear();
    });
    Ok(of(SwitchExecutor::Native, made, ns, "calls in user space, without ports"))
}

/// Returns the median time of a packet over batches, ns, with the copy of its bytes.
fn per_packet(frames: &[Vec<u8>], span: Duration, mut run: impl FnMut(&mut [u8])) -> f64 {
    let mut times = Vec::new();
    let begin = Instant::now();
    let mut bytes = Vec::new();
    while begin.elapsed() < span || times.is_empty() {
        for batch in frames.chunks(BATCH) {
            let start = Instant::now();
            for frame in batch {
                bytes.clear();
                bytes.extend_from_slice(frame);
                run(&mut bytes);
            }
            times.push(start.elapsed().as_secs_f64() * 1e9 / batch.len() as f64);
        }
    }
    // The first quarter warms up.
    median(times.split_off(times.len() / 4))
}

fn in_kernel(made: &Made, span: Duration) -> Result<ExecutorCost, SwitchError> {
    let at = |interface| KernelPort { interface, user: None };
    let ports = BTreeMap::from([(IN, at(FROM)), (OUT, at(NOWHERE))]);
    let tables = KernelTables::new(&made.switch, &ports)?;
    let is_same = tables.time(FROM, &made.frames[0], 1)?.bytes == made.frames[0];
    let repeat = if is_same { REPEAT } else { 1 };
    let empty = empty_program()?;
    let mut times = Vec::new();
    let begin = Instant::now();
    let mut frames = made.frames.iter().cycle();
    while begin.elapsed() < span || times.len() < 100 {
        let Some(frame) = frames.next() else { break };
        let taken = f64::from(tables.time(FROM, frame, repeat)?.duration_ns);
        times.push(taken - f64::from(empty.time(frame, repeat)?));
    }
    let method = match is_same {
        true => "BPF_PROG_TEST_RUN, each packet repeated, an empty program subtracted",
        false => "BPF_PROG_TEST_RUN of single packets, an empty program subtracted",
    };
    let mut because: Vec<String> = tables.in_user().iter().map(|rule| rule.because.clone()).collect();
    let rules_in_user_space = because.len();
    because.sort();
    because.dedup();
    let cost = of(SwitchExecutor::Ebpf, made, median(times), method);
    Ok(ExecutorCost { rules_in_user_space, in_user_space_because: because, ..cost })
}
