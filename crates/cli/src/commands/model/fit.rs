//! `fastpath model fit`: least squares over a table of measurements.

use super::options::Fitting;
use crate::{Answer, view};
use anyhow::bail;
use clap::Args;
use fastpath::models::{TestPoints, fit_table};
use fastpath_model::check::{Check, CheckVerdict};
use std::path::PathBuf;

/// Fit a cost model to a table of measurements.
///
/// The table is CSV, or records of `fastpath measure pipeline`. With --half or --test the exit code
/// is the verdict: 0 the model holds, 1 it misses, 2 the points are too noisy to tell.
#[derive(Args)]
pub(super) struct FitCommand {
    /// The table. `-` reads standard input.
    file: PathBuf,
    /// The column to explain, or a product of columns such as cores/rate.
    #[arg(long, value_name = "COLUMN")]
    y: String,
    /// The terms that explain y: const, columns, products, steps and bends, such as
    /// 'const,p,h,p*h,ceil(p/64),max(p-256,0)'. Or auto:p,h, which chooses terms of these columns
    /// by their leave-one-out errors.
    #[arg(long, value_name = "TERMS")]
    terms: String,
    #[command(flatten)]
    fitting: Fitting,
    /// Check the fit against the rows of another table.
    #[arg(long, value_name = "FILE", conflicts_with = "half")]
    test: Option<PathBuf>,
    /// Fit half of the rows (a checkerboard of the grid), and check the fit against the other half.
    #[arg(long)]
    half: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

impl FitCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let options = self.fitting.options(&self.terms)?;
        let test = match (&self.test, self.half) {
            (_, true) => TestPoints::Half,
            (Some(path), false) => TestPoints::File(path),
            (None, false) => TestPoints::None,
        };
        let output = fit_table(&self.file, &self.y, &self.terms, &options, test)?;
        view::print(&output, self.json)?;
        answer(output.check.as_ref())
    }
}

/// Returns the exit code of a check, if there was one.
pub(super) fn answer(checked: Option<&Check>) -> anyhow::Result<Answer> {
    match checked.map(|check| check.verdict) {
        None | Some(CheckVerdict::Holds) => Ok(Answer::Yes),
        Some(CheckVerdict::Misses) => Ok(Answer::No),
        Some(CheckVerdict::TooNoisy) => {
            bail!("the points are too noisy to tell: measure them again on a quieter machine")
        }
    }
}
