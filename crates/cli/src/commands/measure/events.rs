//! `fastpath measure events`: events per second of the simulator's kernel, on the two models that
//! simulators are compared with.

use super::{Output, bar, show, tool, warn, with_results_on_top};
use crate::Answer;
use clap::{Args, ValueEnum};
use fastpath::measurements::{Recorded, TextbookModel, events};
use fastpath_report::text as print;
use serde_json::json;
use std::io::{self, Write};

/// Measure events per second of the simulator on a textbook model.
#[derive(Args)]
pub(super) struct EventsCommand {
    /// The model.
    #[arg(long, default_value = "mm1")]
    model: Model,
    /// Customers to serve (pipe32: laps through all 32 servers); by default about a second of work.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    customers: Option<u64>,
    /// The seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Model {
    /// One server, Poisson arrivals, 80 % load.
    Mm1,
    /// A closed ring of 32 exponential servers and 64 customers.
    Pipe32,
}

impl EventsCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let file = self.output.open()?;
        let model = match self.model {
            Model::Mm1 => TextbookModel::Mm1,
            Model::Pipe32 => TextbookModel::Pipe32,
        };
        let bar = bar();
        let Recorded { found, record } = events(model, self.customers, self.seed, &tool(), &show(&bar));
        bar.finish_and_clear();
        self.output.write(file, std::slice::from_ref(&record))?;
        let mut out = io::stdout().lock();
        if self.output.json {
            let mut value = with_results_on_top(&record)?;
            value["model"] = json!(model.name());
            writeln!(out, "{value}")?;
        } else {
            let of = |count: u64| print::number(count as f64 / found.seconds);
            let (events, customers) = (of(found.counts.events), of(found.counts.customers));
            writeln!(out, "{}: {events} events/s, {customers} customers/s", model.name())?;
        }
        warn(&record);
        Ok(Answer::Yes)
    }
}
