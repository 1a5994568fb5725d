//! `fastpath measure host`: speed of the cores and memory of this machine.

use super::{Output, effort};
use crate::Answer;
use anyhow::ensure;
use clap::Args;
use fastpath::measurements::host;
use fastpath_measure::Slowdown;

/// Measure the cores, memory, clocks and system calls of this machine.
///
/// The record has an integer score, copy rates, memory latency by working set, caches, TLB, clocks
/// and system calls.
#[derive(Args)]
pub(super) struct HostCommand {
    /// Take seconds instead of minutes, with fewer sizes and working sets up to 32 MiB.
    #[arg(long)]
    quick: bool,
    /// Also record this official CoreMark score of one core (iterations/s).
    #[arg(long, value_name = "SCORE")]
    coremark: Option<f64>,
    /// Name of the machine in the record. By default its host name.
    #[arg(long)]
    name: Option<String>,
    /// Seed of the random walks through memory.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Add work to emulate a core that is FACTOR times slower.
    #[arg(long, value_name = "FACTOR", default_value = "1")]
    slowdown: Slowdown,
    #[command(flatten)]
    output: Output,
}

impl HostCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        if let Some(score) = self.coremark {
            ensure!(score.is_finite() && score > 0.0, "--coremark {score}: a score is above 0");
        }
        let (effort, name) = (effort(self.quick), self.name.as_deref());
        self.output.record(|tool, progress| {
            Ok(host(effort, self.coremark, name, self.slowdown, self.seed, tool, progress)?)
        })
    }
}
