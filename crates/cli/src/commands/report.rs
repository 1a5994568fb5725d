//! `fastpath report`: a page, a text or an image made from records.

use crate::Answer;
use anyhow::{Context, bail, ensure};
use clap::Args;
use fastpath_report::{CommandOutput, Fonts, Record, Report};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Make a report (HTML, Markdown, SVG or PNG) from records.
///
/// The input is records, or the --json output of `model` and `evaluate`. An HTML report is one file
/// that loads nothing else.
#[derive(Args)]
pub(crate) struct ReportCommand {
    /// Records as `fastpath measure` writes them, or the output with --json of `fastpath model
    /// fit|predict|cores|index|budget` and of `fastpath evaluate`.
    #[arg(required = true)]
    records: Vec<PathBuf>,
    /// The file to write; its name ends in .html, .md, .svg or .png.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl ReportCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let format = format(&self.output)?;
        let (mut records, mut outputs): (Vec<Record>, Vec<CommandOutput>) = Default::default();
        for path in &self.records {
            let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
            for (place, value) in objects(&text).with_context(|| path.display().to_string())? {
                let place = || format!("{}: {place}", path.display());
                if value.get("kind").is_some() {
                    records.push(serde_json::from_value(value).with_context(place)?);
                } else {
                    outputs.push(CommandOutput::parse(value).with_context(place)?);
                }
            }
        }
        ensure!(
            !records.is_empty() || !outputs.is_empty(),
            "nothing in these files: measure with `fastpath measure … -o FILE`"
        );
        let report = outputs.iter().fold(Report::new(&records), Report::with_output);
        save(&self.output, format, &report)?;
        Ok(Answer::Yes)
    }
}

/// Reads the JSON objects of a file, one on each line or a single one over several lines, and where
/// they are.
fn objects(text: &str) -> anyhow::Result<Vec<(String, Value)>> {
    if let Ok(object) = serde_json::from_str(text) {
        return Ok(vec![("line 1".to_owned(), object)]);
    }
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    lines
        .map(|(line, number)| {
            let object = serde_json::from_str(line)
                .with_context(|| format!("line {number}: not a record (one JSON object)"))?;
            Ok((format!("line {number}"), object))
        })
        .collect()
}

/// Renders a report as the bytes of a file.
type Format = fn(&Report) -> anyhow::Result<Vec<u8>>;

/// The fonts installed on this machine.
fn system_fonts() -> Fonts {
    let mut fonts = Fonts::new();
    fonts.load_system_fonts();
    fonts
}

/// The format of a report, by the name of its file.
fn format(path: &Path) -> anyhow::Result<Format> {
    Ok(match path.extension().and_then(|e| e.to_str()) {
        Some("html") => |report| Ok(report.html().into_bytes()),
        Some("md") => |report| Ok(report.markdown().into_bytes()),
        Some("svg") => |report| Ok(report.svg().into_bytes()),
        Some("png") => |report| Ok(report.png(system_fonts())?),
        _ => bail!("{}: name the report *.html, *.md, *.svg or *.png", path.display()),
    })
}

/// Writes the report of `records`.
pub(super) fn write(path: &Path, records: &[Record]) -> anyhow::Result<()> {
    save(path, format(path)?, &Report::new(records))
}

fn save(path: &Path, format: Format, report: &Report) -> anyhow::Result<()> {
    std::fs::write(path, format(report)?).with_context(|| path.display().to_string())
}
