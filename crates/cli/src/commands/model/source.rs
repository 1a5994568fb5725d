//! Where a model comes from: a saved fit, a table fitted on the spot, or published constants.

use super::options::{Fitting, point};
use anyhow::Context;
use clap::Args;
use fastpath::records::{read_fit, read_table};
use fastpath_model::Terms;
use fastpath_model::fcs::Fcs;
use fastpath_model::fit::{Fit, FitOptions, fit};
use fastpath_model::model::Model;
use std::path::PathBuf;

/// Where the model comes from.
#[derive(Args)]
pub(super) struct Source {
    /// A fit saved from `model fit --json`, or a table to fit now (with --y and --terms).
    file: Option<PathBuf>,
    /// The column (or product of columns, like cores/rate) to explain.
    #[arg(long, value_name = "COLUMN", requires = "file", requires = "terms")]
    y: Option<String>,
    /// The terms that explain y.
    #[arg(long, value_name = "TERMS", requires = "file", requires = "y")]
    terms: Option<String>,
    /// Constants in ns instead of a fit: const=38.6,p=0.101,h=4.07. Their predictions have no
    /// interval.
    #[arg(long, value_name = "TERM=NS,…", conflicts_with = "file")]
    constants: Option<String>,
    #[command(flatten)]
    fitting: Fitting,
}

/// A model and its origin.
pub(super) struct Sourced {
    pub(super) model: Model,
    pub(super) fit: Option<Fit>,
    pub(super) description: String,
}

impl Source {
    /// Returns the options on rows, caps and units; they apply to a saved fit too.
    pub(super) fn options(&self) -> anyhow::Result<FitOptions> {
        self.fitting.options(self.terms.as_deref().unwrap_or_default())
    }

    /// Loads the model; `None` when the arguments name none.
    pub(super) fn load(&self) -> anyhow::Result<Option<Sourced>> {
        if let Some(text) = &self.constants {
            return constants(text, self.fitting.fcs()).map(Some);
        }
        let Some(path) = &self.file else { return Ok(None) };
        let found = match (&self.y, &self.terms) {
            (Some(y), Some(terms)) => {
                let options = self.fitting.options(terms)?;
                fit(&read_table(path)?, y, terms, &options).with_context(|| path.display().to_string())?
            }
            _ => {
                let mut found = read_fit(path)?;
                let options = self.options()?;
                if let Some(unit) = options.y_unit {
                    let with = found.with_unit(unit, options.clock_hz);
                    found = with.with_context(|| path.display().to_string())?;
                } else if let Some(clock_hz) = options.clock_hz {
                    found = found.with_clock(clock_hz);
                }
                found.fcs = Fcs::agreed(found.fcs, self.fitting.fcs())
                    .with_context(|| format!("{}: --fcs", path.display()))?;
                found
            }
        };
        let description = format!("{} by {}, fitted to {} points", found.y, found.terms, found.n);
        Ok(Some(Sourced { model: found.model(), fit: Some(found), description }))
    }
}

fn constants(text: &str, fcs: Option<Fcs>) -> anyhow::Result<Sourced> {
    let given = point(text).context("--constants")?;
    let terms = given.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(",");
    let values: Vec<f64> = given.iter().map(|(_, value)| *value).collect();
    let terms: Terms = terms.parse().context("--constants")?;
    let model = Model { fcs, ..Model::from_constants(terms, &values, 1e-9)? };
    Ok(Sourced { model, fit: None, description: format!("constants given, ns: {text}") })
}
