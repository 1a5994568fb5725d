//! `fastpath model`: fit cost models, predict and size with them. One file per verb; `source.rs`
//! loads models and tables.

mod assign;
mod budget;
mod cores;
mod fit;
mod index;
mod options;
mod predict;
mod source;

use crate::Answer;
use clap::{Args, Subcommand};

/// Fit cost models, predict throughput and count cores.
#[derive(Args)]
pub(crate) struct ModelCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Fit(fit::FitCommand),
    Predict(predict::PredictCommand),
    Cores(cores::CoresCommand),
    Index(index::IndexCommand),
    Budget(budget::BudgetCommand),
    Assign(assign::AssignCommand),
}

impl ModelCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        match self.action {
            Action::Fit(command) => command.run(),
            Action::Predict(command) => command.run(),
            Action::Cores(command) => command.run(),
            Action::Index(command) => command.run(),
            Action::Budget(command) => command.run(),
            Action::Assign(command) => command.run(),
        }
    }
}
