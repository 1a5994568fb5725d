//! `fastpath measure host`: speed of the cores and memory of this machine.

use super::{Output, bar, effort, show, slowdown, tool, warn};
use crate::Answer;
use anyhow::ensure;
use clap::Args;
use fastpath::measurements::{Recorded, host, text};
use fastpath_measure::Slowdown;
use std::io::{self, Write};

/// Measure the cores, memory, clocks and system calls of this machine.
///
/// Measures an integer score, copy rates, memory by working set, caches, TLB, clocks and system
/// calls.
#[derive(Args)]
pub(super) struct HostCommand {
    /// Take seconds instead of minutes: fewer sizes, working sets up to 32 MiB.
    #[arg(long)]
    quick: bool,
    /// Record an official CoreMark score of one core (iterations/s) next to the measured score.
    #[arg(long, value_name = "SCORE")]
    coremark: Option<f64>,
    /// Name of the machine; by default its host name.
    #[arg(long)]
    name: Option<String>,
    /// The seed of the random walks through memory.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Emulate a core FACTOR times slower by adding work.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = slowdown)]
    slowdown: Slowdown,
    #[command(flatten)]
    output: Output,
}

impl HostCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        if let Some(score) = self.coremark {
            ensure!(score.is_finite() && score > 0.0, "--coremark {score}: a score is above 0");
        }
        let file = self.output.open()?;
        let bar = bar();
        let (effort, name) = (effort(self.quick), self.name.as_deref());
        let Recorded { found, record } =
            host(effort, self.coremark, name, self.slowdown, self.seed, &tool(), &show(&bar))?;
        bar.finish_and_clear();
        self.output.write(file, std::slice::from_ref(&record))?;
        let mut out = io::stdout().lock();
        if self.output.json {
            writeln!(out, "{}", serde_json::to_string(&record)?)?;
        } else {
            text::host(&mut out, &record, &found)?;
        }
        warn(&record);
        Ok(Answer::Yes)
    }
}
