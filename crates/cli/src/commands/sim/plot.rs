//! Simulated points as records, and plots of them: the same records and the same report as of
//! measurements.

use clap::Args;
use fastpath::record::Tool;
use fastpath::simulate::{PointFiles, PointRow};
use fastpath_report::Section;
use std::path::PathBuf;

/// The files that receive the points of a simulation.
#[derive(Args)]
pub(in crate::commands) struct Plot {
    /// Plot the points in this file: a page (*.html), an image (*.svg, *.png) or a text (*.md).
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Append the points as records to this file, for `fastpath report` and `fastpath model fit`.
    #[arg(long, alias = "records", value_name = "FILE")]
    append: Option<PathBuf>,
}

impl Plot {
    /// Writes the requested files, if any. `first` is a section of the plot before the others.
    pub(in crate::commands) fn write(
        &self,
        seed: u64,
        rows: Vec<PointRow>,
        first: Option<Section>,
    ) -> anyhow::Result<()> {
        let files = PointFiles { plot: self.plot.clone(), records: self.append.clone() };
        let tool = Tool::new(env!("CARGO_PKG_VERSION"), option_env!("FASTPATH_COMMIT"));
        Ok(files.write(&tool, seed, rows, first)?)
    }
}
