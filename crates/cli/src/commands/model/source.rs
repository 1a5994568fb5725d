//! Where a model comes from: a saved fit, a table fitted on the spot, or published constants.

use super::options::Fitting;
use clap::Args;
use fastpath::models::SourcedModel;
use fastpath_model::fit::FitOptions;
use std::path::PathBuf;

/// Where the model comes from.
#[derive(Args)]
pub(super) struct Source {
    /// A fit that `model fit --json` printed, or a table to fit now (with --y and --terms).
    file: Option<PathBuf>,
    /// The column to explain, or a product of columns such as cores/rate.
    #[arg(long, value_name = "COLUMN", requires = "file", requires = "terms")]
    y: Option<String>,
    /// The terms that explain y.
    #[arg(long, value_name = "TERMS", requires = "file", requires = "y")]
    terms: Option<String>,
    /// Constants in ns instead of a fit, such as const=38.6,p=0.101,h=4.07. Predictions then have
    /// no interval.
    #[arg(long, value_name = "TERM=NS,…", conflicts_with = "file")]
    constants: Option<String>,
    #[command(flatten)]
    fitting: Fitting,
}

impl Source {
    /// Returns the options on rows, caps and units; they apply to a saved fit too.
    pub(super) fn options(&self) -> anyhow::Result<FitOptions> {
        self.fitting.options(self.terms.as_deref().unwrap_or_default())
    }

    /// Loads the model; `None` when the arguments name none.
    pub(super) fn load(&self) -> anyhow::Result<Option<SourcedModel>> {
        if let Some(text) = &self.constants {
            return Ok(Some(SourcedModel::constants(text, self.fitting.fcs())?));
        }
        let Some(path) = &self.file else { return Ok(None) };
        let options = self.options()?;
        Ok(Some(match (&self.y, &self.terms) {
            (Some(y), Some(terms)) => SourcedModel::fitted(path, y, terms, &options)?,
            _ => SourcedModel::saved(path, &options)?,
        }))
    }
}
