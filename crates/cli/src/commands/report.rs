//! `fastpath report`: a page, a text or an image made from records alone.

use crate::Answer;
use anyhow::{Context, bail, ensure};
use clap::Args;
use fastpath_lab::record::Record;
use fastpath_lab::report::Report;
use std::path::{Path, PathBuf};

/// Make a report from records: one HTML page that needs nothing else, Markdown, or the charts as SVG or PNG.
#[derive(Args)]
pub(crate) struct ReportCommand {
    /// Records as `fastpath measure` writes them.
    #[arg(required = true)]
    records: Vec<PathBuf>,
    /// Where the report goes; its name ends in .html, .md, .svg or .png.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl ReportCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        format(&self.output)?;
        let mut records: Vec<Record> = Vec::new();
        for path in &self.records {
            let place = || path.display().to_string();
            let text = std::fs::read_to_string(path).with_context(place)?;
            for (i, value) in crate::records::parse(&text).with_context(place)?.into_iter().enumerate() {
                let record = serde_json::from_value(value);
                records.push(record.with_context(|| format!("{}: record {}", path.display(), i + 1))?);
            }
        }
        ensure!(!records.is_empty(), "no record in these files: measure with `fastpath measure … -o FILE`");
        write(&self.output, &records)?;
        Ok(Answer::Yes)
    }
}

/// How a report becomes the bytes of a file.
type Format = fn(&Report) -> anyhow::Result<Vec<u8>>;

/// What the name of a report asks for.
fn format(path: &Path) -> anyhow::Result<Format> {
    Ok(match path.extension().and_then(|e| e.to_str()) {
        Some("html") => |report| Ok(report.html().into_bytes()),
        Some("md") => |report| Ok(report.markdown().into_bytes()),
        Some("svg") => |report| Ok(report.svg().into_bytes()),
        Some("png") => |report| Ok(report.png()?),
        _ => bail!("{}: name the report *.html, *.md, *.svg or *.png", path.display()),
    })
}

/// Writes the report of `records`.
pub(super) fn write(path: &Path, records: &[Record]) -> anyhow::Result<()> {
    let bytes = format(path)?(&Report::new(records))?;
    std::fs::write(path, bytes).with_context(|| path.display().to_string())
}
