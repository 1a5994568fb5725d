//! `fastpath evaluate registered`: predictions stated before they were measured, and their results.

use crate::commands::measure::{bar, show};
use crate::{Answer, view};
use anyhow::Context;
use clap::Args;
use fastpath_evaluate::{RegisteredVerdict, measure_registered, registered};
use std::path::PathBuf;

/// Compare registered predictions with what was measured afterwards.
///
/// Without FILE, the predictions and results are those of this repository. A prediction names its
/// model, quantity, command, value and 95 % interval. The exit code is 1 if a result lies outside
/// of its interval.
#[derive(Args)]
pub(super) struct RegisteredCommand {
    /// Predictions: a TOML file of [[prediction]] tables.
    file: Option<PathBuf>,
    /// Their results: a TOML file of [[result]] tables.
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    /// Measure the predictions that have no result, and append theirs to the file of --results.
    #[arg(long, requires = "results")]
    measure: bool,
    /// Runs of each measurement. Their median is the result.
    #[arg(long, value_name = "N", requires = "measure", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

impl RegisteredCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let file = self.file.as_deref();
        // A file of results that --measure makes need not be there before.
        let results = self.results.as_deref().filter(|path| !self.measure || path.exists());
        let mut all = registered(file, results)?;
        if self.measure
            && let Some(results) = &self.results
        {
            let program = std::env::current_exe().context("finding this program")?;
            let bar = bar();
            measure_registered(&all, &program, self.rounds, results, &show(&bar))?;
            bar.finish_and_clear();
            all = registered(file, Some(results))?;
        }
        view::print(&all, self.json)?;
        let outside = all.iter().any(|one| one.verdict == RegisteredVerdict::Outside);
        Ok(if outside { Answer::No } else { Answer::Yes })
    }
}
