//! `fastpath report`: a page, a text or an image made from records alone.

use crate::Answer;
use anyhow::{Context, bail, ensure};
use clap::Args;
use fastpath_lab::record::Record;
use fastpath_lab::report::Report;
use std::path::PathBuf;

/// Make a report from records: one HTML page that needs nothing else, Markdown, or the charts as SVG.
#[derive(Args)]
pub(crate) struct ReportCommand {
    /// Records as `fastpath measure` writes them.
    #[arg(required = true)]
    records: Vec<PathBuf>,
    /// Where the report goes; its name ends in .html, .md or .svg.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl ReportCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let render = match self.output.extension().and_then(|e| e.to_str()) {
            Some("html") => Report::html,
            Some("md") => Report::markdown,
            Some("svg") => Report::svg,
            _ => bail!("{}: name the report *.html, *.md or *.svg", self.output.display()),
        };
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
        std::fs::write(&self.output, render(&Report::new(&records)))
            .with_context(|| self.output.display().to_string())?;
        Ok(Answer::Yes)
    }
}
