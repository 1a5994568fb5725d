//! `fastpath report`: a page, a text or an image made from records alone.

use crate::Answer;
use anyhow::{Context, bail, ensure};
use clap::Args;
use fastpath_report::{Fonts, Record, Report};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Make a report from records, and from what `model` and `evaluate` print with --json: one HTML
/// page that needs nothing else, Markdown, or the charts as SVG or PNG.
#[derive(Args)]
pub(crate) struct ReportCommand {
    /// Records as `fastpath measure` writes them, or the --json of `fastpath model
    /// fit|predict|cores|index|budget` and of `fastpath evaluate models|simulator|prediction`.
    #[arg(required = true)]
    records: Vec<PathBuf>,
    /// Where the report goes; its name ends in .html, .md, .svg or .png.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl ReportCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let format = format(&self.output)?;
        let (mut records, mut answers): (Vec<Record>, Vec<(String, Value)>) = Default::default();
        for path in &self.records {
            let place = || path.display().to_string();
            let text = std::fs::read_to_string(path).with_context(place)?;
            for (i, value) in crate::records::parse(&text).with_context(place)?.into_iter().enumerate() {
                let place = format!("{}: record {}", path.display(), i + 1);
                if value.get("kind").is_none() {
                    answers.push((place, value));
                    continue;
                }
                records.push(serde_json::from_value(value).context(place)?);
            }
        }
        ensure!(
            !records.is_empty() || !answers.is_empty(),
            "nothing in these files: measure with `fastpath measure … -o FILE`"
        );
        let mut report = Report::new(&records);
        for (place, answer) in &answers {
            let with = report.with_answer(answer);
            report = with.with_context(|| {
                format!("{place}: neither a record nor an answer of `fastpath model` or `evaluate` as they print it with --json")
            })?;
        }
        save(&self.output, format, &report)?;
        Ok(Answer::Yes)
    }
}

/// How a report becomes the bytes of a file.
type Format = fn(&Report) -> anyhow::Result<Vec<u8>>;

/// The fonts installed on this machine.
fn system_fonts() -> Fonts {
    let mut fonts = Fonts::new();
    fonts.load_system_fonts();
    fonts
}

/// What the name of a report asks for.
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
