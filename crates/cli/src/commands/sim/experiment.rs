//! `fastpath sim experiment`: the published measurement set-ups, by name.

use super::plot::Plot;
use crate::{Answer, view};
use clap::Args;
use fastpath::simulate::ExperimentResults;
use fastpath_units::Duration;

/// Run a published measurement set-up; without a name, list them.
#[derive(Args)]
pub(super) struct Experiment {
    /// The experiment.
    name: Option<String>,
    /// Simulated time at each point; by default that of the publication, or a sufficient one.
    #[arg(long)]
    duration: Option<Duration>,
    /// The seed of every random choice.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    plot: Plot,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Experiment {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let Some(name) = &self.name else {
            view::print(&view::Experiments, self.json)?;
            return Ok(Answer::Yes);
        };
        let results = ExperimentResults::of(name, self.duration, self.seed)?;
        self.plot.write(self.seed, results.rows(), None)?;
        view::print(&results, self.json)?;
        Ok(Answer::Yes)
    }
}
