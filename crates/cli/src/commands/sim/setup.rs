//! `fastpath sim setup`: the published measurement set-ups, by name.

use super::plot::Plot;
use super::workers::SimWorkers;
use crate::{Answer, view};
use clap::Args;
use fastpath::simulate::ExperimentResults;
use fastpath_units::Duration;

/// Simulate a published measurement set-up.
#[derive(Args)]
pub(super) struct Setup {
    /// The set-up. Without NAME, the set-ups are listed.
    name: Option<String>,
    /// Simulated time at each point. By default the time of the publication, or a sufficient one.
    #[arg(long)]
    duration: Option<Duration>,
    /// Seed of every random choice.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    plot: Plot,
    #[command(flatten)]
    workers: SimWorkers,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

impl Setup {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let Some(name) = &self.name else {
            view::print(&view::Experiments, self.json)?;
            return Ok(Answer::Yes);
        };
        let results = ExperimentResults::of(name, self.duration, self.seed, self.workers.count())?;
        self.plot.write(self.seed, results.rows(), None)?;
        view::print(&results, self.json)?;
        Ok(Answer::Yes)
    }
}
