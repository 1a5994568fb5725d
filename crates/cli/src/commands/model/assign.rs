//! `fastpath model assign`: the best assignment of tasks to engines.

use crate::{Answer, view};
use clap::Args;
use fastpath::models::Assignments;
use fastpath_model::assign::NetworkProcessor;
use fastpath_model::publications::linkem;
use std::path::PathBuf;

/// Find the best assignment of tasks to engines with limited code space.
///
/// Without FILE, the tasks are those of LinkEM (Joglekar 2004), and the published assignment is
/// shown too.
#[derive(Args)]
pub(super) struct AssignCommand {
    /// A table of tasks with the columns name, compute and memory (cycles), code (instructions) and
    /// state (private or shared).
    file: Option<PathBuf>,
    /// Number of engines for the tasks.
    #[arg(long, value_name = "N", default_value_t = 3)]
    engines: u32,
    /// Threads per engine.
    #[arg(long, value_name = "N", default_value_t = 4)]
    threads: u32,
    /// Number of instructions that fit into an engine.
    #[arg(long, value_name = "N", default_value_t = 2048)]
    code_limit: u32,
    /// Share u of the memory cycles that are hidden by other threads, 0 to 1.
    #[arg(long, value_name = "U", default_value_t = linkem::HIDDEN_CALIBRATED)]
    hidden: f64,
    /// Engine clock in Hz. By default the IXP1200's, 232 MHz.
    #[arg(long, value_name = "HZ")]
    clock: Option<f64>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

impl AssignCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let default = linkem::ixp1200();
        let processor = NetworkProcessor {
            engines: self.engines,
            threads: self.threads,
            code_limit: self.code_limit,
            hidden: self.hidden,
            clock_hz: self.clock.unwrap_or(default.clock_hz),
            ..default
        };
        view::print(&Assignments::find(self.file.as_deref(), &processor)?, self.json)?;
        Ok(Answer::Yes)
    }
}
