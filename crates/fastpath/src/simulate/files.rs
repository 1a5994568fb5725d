//! Simulated points as records, and plots of them: the same records and the same report as of
//! measurements.

use crate::error::Result;
use fastpath_record::Tool;
use fastpath_report::Section;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// The parameters and the results of a point.
pub type PointRow = (Map<String, Value>, Map<String, Value>);

/// The files that receive the points of a simulation.
#[derive(Clone, Debug, Default)]
pub struct PointFiles {
    /// A plot: a page (*.html), an image (*.svg, *.png) or a text (*.md).
    pub plot: Option<PathBuf>,
    /// The file to which the points are appended as records.
    pub records: Option<PathBuf>,
}

impl PointFiles {
    /// Writes the files, if there are any. `first` is a section of the plot before the others.
    ///
    /// # Errors
    /// A file that cannot be written.
    #[cfg(target_os = "linux")]
    pub fn write(&self, tool: &Tool, seed: u64, rows: Vec<PointRow>, first: Option<Section>) -> Result<()> {
        use crate::error::Error;
        use crate::records::{append_records, open_records, write_report};
        use fastpath_measure::Watch;
        use fastpath_record::Measurement;
        use fastpath_report::Report;
        if self.plot.is_none() && self.records.is_none() {
            return Ok(());
        }
        let provenance = Watch::start().provenance(tool, seed, 1);
        let record = |(parameters, results)| Measurement {
            kind: "simulation".to_owned(),
            provenance: provenance.clone(),
            parameters,
            results,
            platform: None,
        };
        let records: Vec<Measurement> = rows.into_iter().map(record).collect();
        if let Some(path) = &self.records {
            append_records(&mut open_records(path)?, &records).map_err(Error::file(path))?;
        }
        if let Some(path) = &self.plot {
            let report = Report::new(&records);
            write_report(path, &first.into_iter().fold(report, Report::with_section))?;
        }
        Ok(())
    }

    /// Refuses files: records need the measuring half of the program, which is Linux only.
    ///
    /// # Errors
    /// If there is a file.
    #[cfg(not(target_os = "linux"))]
    pub fn write(
        &self,
        _tool: &Tool,
        _seed: u64,
        _rows: Vec<PointRow>,
        _first: Option<Section>,
    ) -> Result<()> {
        let asked = self.plot.as_ref().or(self.records.as_ref());
        asked.map_or(Ok(()), |path| {
            Err(crate::Error::Argument(format!("{}: records are made on Linux only", path.display())))
        })
    }
}
