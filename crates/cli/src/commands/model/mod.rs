//! `fastpath model`: fit cost models, predict and size with them. One file per verb; `source.rs`
//! loads models and tables.

mod assign;
mod budget;
mod cores;
mod fit;
mod index;
mod options;
mod predict;
mod queue;
mod source;

use crate::Answer;
use clap::Args;

/// Fit cost models, predict throughput and count cores.
#[derive(Args)]
pub(crate) struct ModelCommand {
    #[command(subcommand)]
    action: Action,
}

subcommands! {
    Action {
        Fit(fit::FitCommand),
        Predict(predict::PredictCommand),
        Cores(cores::CoresCommand),
        Index(index::IndexCommand),
        Budget(budget::BudgetCommand),
        Assign(assign::AssignCommand),
        Queue(queue::QueueCommand),
    }
}

impl ModelCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        self.action.run()
    }
}
