//! `fastpath measure`: records of this machine and of packet pipelines on it. One file per subject.

mod events;
mod host;
mod latency;
mod pipeline;
mod switch;

use crate::Answer;
use crate::view::{self, Measured};
use clap::Args;
use fastpath::record::{Measurement, Tool};
use fastpath::records::{append_records, open_records};
use fastpath_measure::{Effort, Progress};
use indicatif::ProgressBar;
use std::path::PathBuf;

/// Measure this machine and packet pipelines on it.
#[derive(Args)]
pub(crate) struct MeasureCommand {
    #[command(subcommand)]
    action: Action,
}

subcommands! {
    Action {
        Host(host::HostCommand),
        Pipeline(Box<pipeline::PipelineCommand>),
        Latency(latency::LatencyCommand),
        Events(events::EventsCommand),
        Switch(switch::SwitchCommand),
    }
}

/// Where the records go.
#[derive(Args)]
struct Output {
    /// Append the records to this file (JSON, one record per line).
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the records as JSON, one per line, instead of tables.
    #[arg(long)]
    json: bool,
}

impl MeasureCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        self.action.run()
    }
}

impl Output {
    /// Measures with a progress bar; appends and prints the records. The file is opened before
    /// anything is measured.
    fn record<M: Measured>(
        &self,
        measure: impl FnOnce(&Tool, Progress<'_>) -> anyhow::Result<M>,
    ) -> anyhow::Result<Answer> {
        let mut file = self.output.as_deref().map(open_records).transpose()?;
        let bar = bar();
        let measured = measure(&tool(), &show(&bar));
        bar.finish_and_clear();
        let measured = measured?;
        if let Some(file) = &mut file {
            append_records(file, measured.records())?;
        }
        view::print(&measured, self.json)?;
        measured.notes().iter().for_each(|note| eprintln!("fastpath: note: {note}"));
        // What it says is kept with the records; a script must not take it for a result.
        let is_disturbed = |record: &&Measurement| record.provenance.disturbance.disturbed;
        let disturbed = measured.records().into_iter().find(is_disturbed);
        Ok(disturbed.map_or(Answer::Yes, |_| Answer::Disturbed))
    }
}

/// This program.
pub(crate) fn tool() -> Tool {
    Tool::new(env!("CARGO_PKG_VERSION"), option_env!("FASTPATH_COMMIT"))
}

pub(super) fn effort(quick: bool) -> Effort {
    if quick { Effort::Quick } else { Effort::Full }
}

/// A progress bar with the time left.
pub(crate) fn bar() -> ProgressBar {
    crate::progress::bar(0, "{msg} {pos}/{len} ({elapsed}, {eta} left)")
}

/// Shows the progress of a measurement on `bar`.
pub(crate) fn show(bar: &ProgressBar) -> impl Fn(&str, usize, usize) + Sync {
    |step, done, total| {
        if bar.message() != step {
            bar.set_message(step.to_owned());
            bar.reset_eta();
        }
        bar.set_length(total.max(done) as u64);
        bar.set_position(done as u64);
    }
}
