//! Simulated points as records, and plots of them: the same records and the same report as of
//! measurements.

use clap::Args;
use fastpath_report::Section;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// The files that receive the points of a simulation.
#[derive(Args)]
pub(in crate::commands) struct Plot {
    /// Plot the points: a page (*.html), an image (*.svg, *.png) or a text (*.md).
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Append the points to this file as records, for `fastpath report` and `fastpath model fit`.
    #[arg(long, value_name = "FILE")]
    records: Option<PathBuf>,
}

/// Returns the parameters and the results of a point.
pub(in crate::commands) type Row = (Map<String, Value>, Map<String, Value>);

impl Plot {
    /// Writes the requested files, if any. `first` is a section of the plot before the others.
    #[cfg(target_os = "linux")]
    pub(in crate::commands) fn write(
        &self,
        seed: u64,
        rows: Vec<Row>,
        first: Option<Section>,
    ) -> anyhow::Result<()> {
        use anyhow::Context;
        use fastpath::records::{append_records, open_records, write_report};
        use fastpath_measure::Watch;
        use fastpath_report::{Record, Report, Tool};
        if self.plot.is_none() && self.records.is_none() {
            return Ok(());
        }
        let tool = Tool::new(env!("CARGO_PKG_VERSION"), option_env!("FASTPATH_COMMIT"));
        let provenance = Watch::start().provenance(&tool, seed, 1);
        let record = |(parameters, results)| Record {
            kind: "simulation".to_owned(),
            provenance: provenance.clone(),
            parameters,
            results,
            platform: None,
        };
        let records: Vec<Record> = rows.into_iter().map(record).collect();
        if let Some(path) = &self.records {
            let mut file = open_records(path)?;
            append_records(&mut file, &records).with_context(|| path.display().to_string())?;
        }
        if let Some(path) = &self.plot {
            let report = Report::new(&records);
            write_report(path, &first.into_iter().fold(report, Report::with_section))?;
        }
        Ok(())
    }

    /// Reports need the measuring half of the program, which is Linux only.
    #[cfg(not(target_os = "linux"))]
    pub(in crate::commands) fn write(
        &self,
        _seed: u64,
        _rows: Vec<Row>,
        _first: Option<Section>,
    ) -> anyhow::Result<()> {
        let asked = self.plot.as_ref().or(self.records.as_ref());
        asked.map_or(Ok(()), |path| anyhow::bail!("{}: records are made on Linux only", path.display()))
    }
}
