//! `fastpath evaluate simulator`: the shipped machines against every figure published about them.

use super::tell;
use crate::progress::bar;
use crate::{Answer, view};
use clap::Args;
use fastpath_sim::validation::{Effort, results};

/// Simulate every published figure of the shipped machines.
///
/// A calibration point was used to set a parameter of the machine; a prediction was not. A
/// qualitative check judges only the sign of a difference or the shape of a curve. A figure outside
/// its range is shown as a miss with its reason, and the exit code is then 1. A range is "given" if
/// the publication or a requirement fixed it before the simulation. It is "chosen" if it was set
/// when the simulated figures were known.
#[derive(Args)]
pub(super) struct SimulatorCommand {
    /// Take a few seconds, with shorter runs.
    #[arg(long)]
    quick: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

impl SimulatorCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let bar = bar(0, "{msg} {pos}/{len} ({elapsed})");
        let mut progress = |part: &str, done: usize, total: usize| {
            bar.set_length(total as u64);
            bar.set_message(part.to_owned());
            bar.set_position(done as u64);
        };
        let results = results(if self.quick { Effort::Quick } else { Effort::Full }, &mut progress);
        bar.finish_and_clear();
        tell(&results, self.json, view::simulator(&results))
    }
}
