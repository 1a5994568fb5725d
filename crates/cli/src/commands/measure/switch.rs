//! `fastpath measure switch`: cost of lookups, packets and rule changes of a switch.

use super::{Output, effort};
use crate::Answer;
use clap::Args;
use fastpath::measurements::{flow_changes, switch, switch_executor, switch_workers};
use fastpath_measure::{Rules, SwitchExecutor};
use std::num::NonZeroUsize;

/// Measure lookups, forwarding rate and rule changes of a switch.
///
/// The record has ns per lookup (compiled, interpreted, hash per mask), packets per second between
/// two memory ports on one core, the time until a rule change is in force, and the effect of
/// changes on packets. The longest change is shown with its CPU time, and beside the longest of as
/// many empty loops. The time of the empty loop is caused by the machine alone.
#[derive(Args)]
pub(super) struct SwitchCommand {
    /// The tables: cidr:N, cidr:FILE, acl:N, acl:FILE (in ClassBench's format), mac:N,
    /// pipeline:gateway or pipeline:load-balancer.
    #[arg(long, value_name = "KIND:WHAT")]
    table: Rules,
    /// Measure only what a packet costs in the tables: interpreter, native (machine code) or ebpf
    /// (a program of the kernel, by BPF_PROG_TEST_RUN; needs root).
    #[arg(long, value_name = "EXECUTOR")]
    executor: Option<SwitchExecutor>,
    /// Measure only what changes of this many flows cost: a controller adds, changes and deletes
    /// them by OpenFlow, beside 1 Mpps through the tables. The record has seconds of each phase,
    /// bytes per flow, and the longest stop of forwarding.
    #[arg(long, value_name = "N", conflicts_with = "executor",
        value_parser = clap::value_parser!(u32).range(1..=2_000_000))]
    updates: Option<u32>,
    /// Measure only how much more this many workers pass than one, in turns. The record has packets
    /// per second, and their ratio: by time, and by the CPU time that other programs left.
    #[arg(long, value_name = "N", conflicts_with_all = ["executor", "updates"],
        value_parser = clap::value_parser!(u8).range(2..=64))]
    workers: Option<u8>,
    /// Number of active flows.
    #[arg(long, value_name = "N", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    flows: u32,
    /// Seed of rules, flows and keys.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Take seconds instead of minutes.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: Output,
}

impl SwitchCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let (flows, effort) = (self.flows as usize, effort(self.quick));
        if let Some(executor) = self.executor {
            return self.output.record(|tool, progress| {
                Ok(switch_executor(self.table, executor, flows, effort, self.seed, tool, progress)?)
            });
        }
        if let Some(workers) = self.workers.and_then(|count| NonZeroUsize::new(count.into())) {
            return self.output.record(|tool, progress| {
                Ok(switch_workers(self.table, workers, flows, effort, self.seed, tool, progress)?)
            });
        }
        if let Some(updates) = self.updates {
            return self.output.record(|tool, progress| {
                let updates = updates as usize;
                Ok(flow_changes(self.table, updates, flows, effort, self.seed, tool, progress)?)
            });
        }
        self.output.record(|tool, progress| Ok(switch(self.table, flows, effort, self.seed, tool, progress)?))
    }
}
