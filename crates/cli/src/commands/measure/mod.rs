//! `fastpath measure`: records of this machine and of packet pipelines on it. One file per subject.

mod events;
mod host;
mod latency;
mod pipeline;
mod switch;

use crate::Answer;
use anyhow::Context;
use clap::{Args, Subcommand};
use fastpath_measure::{Effort, Slowdown};
use fastpath_report::{Record, Tool};
use indicatif::ProgressBar;
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

/// Measure this machine and packet pipelines on it; print or append records.
#[derive(Args)]
pub(crate) struct MeasureCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Host(host::HostCommand),
    Pipeline(Box<pipeline::PipelineCommand>),
    Latency(latency::LatencyCommand),
    Events(events::EventsCommand),
    Switch(switch::SwitchCommand),
}

/// Where the records go.
#[derive(Args)]
struct Output {
    /// Append the records to this file.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the records as JSON, one per line, instead of tables.
    #[arg(long)]
    json: bool,
}

impl MeasureCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        match self.action {
            Action::Host(command) => command.run(),
            Action::Pipeline(command) => command.run(),
            Action::Latency(command) => command.run(),
            Action::Events(command) => command.run(),
            Action::Switch(command) => command.run(),
        }
    }
}

impl Output {
    /// Opens the file, if one is named, before anything is measured.
    fn open(&self) -> anyhow::Result<Option<std::fs::File>> {
        let open = |path: &PathBuf| {
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .with_context(|| path.display().to_string())
        };
        self.output.as_ref().map(open).transpose()
    }

    /// Appends the records to the file.
    fn write(&self, file: Option<std::fs::File>, records: &[Record]) -> anyhow::Result<()> {
        let Some(mut file) = file else { return Ok(()) };
        for record in records {
            writeln!(file, "{}", serde_json::to_string(record)?)?;
        }
        Ok(())
    }
}

/// This program.
pub(super) fn tool() -> Tool {
    Tool::new(env!("CARGO_PKG_VERSION"), option_env!("FASTPATH_COMMIT"))
}

/// A factor from 1 to 100.
fn slowdown(text: &str) -> Result<Slowdown, String> {
    let factor: f64 = text.parse().map_err(|_| "write a number from 1 to 100".to_owned())?;
    Slowdown::new(factor).map_err(|error| error.to_string())
}

pub(super) fn effort(quick: bool) -> Effort {
    if quick { Effort::Quick } else { Effort::Full }
}

/// A progress bar with the time left.
pub(super) fn bar() -> ProgressBar {
    crate::progress::bar(0, "{msg} {pos}/{len} ({elapsed}, {eta} left)")
}

/// Shows the progress of a measurement on `bar`.
pub(super) fn show(bar: &ProgressBar) -> impl Fn(&str, usize, usize) + Sync {
    |step, done, total| {
        if bar.message() != step {
            bar.set_message(step.to_owned());
            bar.reset_eta();
        }
        bar.set_length(total.max(done) as u64);
        bar.set_position(done as u64);
    }
}

/// Returns a record as JSON whose results are also at the top level, for scripts.
fn with_results_on_top(record: &Record) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(record)?;
    if let Value::Object(top) = &mut value {
        record.results.iter().for_each(|(name, found)| drop(top.insert(name.clone(), found.clone())));
    }
    Ok(value)
}

/// Prints what limits the validity of the numbers: a development build, other load.
fn warn(record: &Record) {
    use fastpath_report::Optimised;
    let provenance = &record.provenance;
    if provenance.tool.optimised == Optimised::Development {
        eprintln!("fastpath: note: this is a development build; its speed is not representative");
    }
    let disturbance = provenance.disturbance;
    if disturbance.disturbed {
        eprintln!(
            "fastpath: note: the machine was not quiet: {:.1} % of its time stolen by the hypervisor, {:.1} % spent on other programs",
            100.0 * disturbance.stolen_share,
            100.0 * disturbance.others_share
        );
    }
}
