//! `fastpath evaluate`: the published evaluations, worked out again, with the originals beside ours.

mod models;
mod simulator;

use crate::Answer;
use clap::{Args, Subcommand};

/// Re-run published evaluations, with the original figures beside ours.
#[derive(Args)]
pub(crate) struct EvaluateCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Models(models::ModelsCommand),
    Simulator(simulator::SimulatorCommand),
}

impl EvaluateCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        match self.action {
            Action::Models(command) => command.run(),
            Action::Simulator(command) => command.run(),
        }
    }
}
