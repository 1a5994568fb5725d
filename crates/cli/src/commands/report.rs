//! `fastpath report`: a page, a text or an image made from records.

use crate::Answer;
use clap::Args;
use fastpath::records::{RecordFiles, ReportChoice, write_report};
use std::path::PathBuf;

/// Make a report (HTML, Markdown, SVG or PNG) from records.
///
/// The input is records of measurements, directories of runs (`lab run --record`, or `runs/0000` of
/// an experiment), or the --json output of `model` and `evaluate`. Several runs are drawn in the
/// same charts. An HTML report is one file that loads no other.
#[derive(Args)]
pub(crate) struct ReportCommand {
    /// Records of `fastpath measure` or `fastpath lab run --record`, or the --json output of
    /// `fastpath model fit|predict|cores|index|budget` or `fastpath evaluate
    /// models|simulator|prediction`.
    #[arg(required = true)]
    records: Vec<PathBuf>,
    /// Show this link of the runs, both directions; may be given several times. By default the
    /// directions that carried most.
    #[arg(long, value_name = "LINK")]
    link: Vec<String>,
    /// Show the flows of the runs whose name has this part, such as an address; may be given
    /// several times. By default the largest.
    #[arg(long, value_name = "PART")]
    flow: Vec<String>,
    /// The file to write. Its name ends in .html, .md, .svg or .png.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl ReportCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let choice = ReportChoice { links: self.link, flows: self.flow };
        let records = RecordFiles::read(&self.records)?;
        records.check_choice(&choice)?;
        write_report(&self.output, &records.report_of(&choice))?;
        Ok(Answer::Yes)
    }
}
