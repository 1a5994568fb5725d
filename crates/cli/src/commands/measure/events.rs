//! `fastpath measure events`: events per second of the simulator's kernel, on the two models that
//! simulators are compared with.

use super::Output;
use crate::Answer;
use clap::{Args, ValueEnum};
use fastpath::measurements::{TextbookModel, events};

/// Measure events per second of the simulator on a textbook model.
#[derive(Args)]
pub(super) struct EventsCommand {
    /// The model to simulate.
    #[arg(long, default_value = "mm1")]
    model: Model,
    /// Customers to serve (for pipe32: laps through all 32 servers). By default about a second of
    /// work.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    customers: Option<u64>,
    /// Seed of every random choice.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Model {
    /// M/M/1: one server, Poisson arrivals, 80 % load.
    Mm1,
    /// A closed ring of 32 exponential servers and 64 customers.
    Pipe32,
}

impl EventsCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let model = match self.model {
            Model::Mm1 => TextbookModel::Mm1,
            Model::Pipe32 => TextbookModel::Pipe32,
        };
        self.output.record(|tool, progress| Ok(events(model, self.customers, self.seed, tool, progress)))
    }
}
