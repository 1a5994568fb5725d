//! `fastpath evaluate emulator`: chapter 5 of the LinkEM thesis on this machine.

use crate::commands::measure::{effort, tool};
use crate::signals::stop_on_signals;
use crate::{Answer, view};
use clap::Args;
use fastpath::records::EvaluationFiles;
use fastpath_evaluate::{Options, Progress, estimate_s, evaluate};
use indicatif::ProgressBar;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Repeat the evaluation of the LinkEM thesis on this machine.
///
/// The figures are those of chapter 5 (Joglekar 2004): accuracy of bandwidth, delay and loss,
/// throughput, number of links, lateness and overload. Each is shown next to the published figure,
/// a control without an emulator, and the emulators and bridges installed here. Without permission
/// for network namespaces, only the figures in virtual time and in memory are measured. The others
/// are listed. The exit code is 1 if a figure misses its criterion.
#[derive(Args)]
pub(super) struct EmulatorCommand {
    /// Take about six minutes instead of most of an hour.
    #[arg(long)]
    quick: bool,
    /// Measure only the figures whose id begins so, such as `table-5.1` or `figure-5.2/64`.
    #[arg(long, alias = "only", value_name = "ID-PREFIX,…", value_delimiter = ',')]
    figures: Vec<String>,
    /// Write the report to this file (*.html, *.md or *.json), or all three to this directory.
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

impl EmulatorCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let EmulatorCommand { quick, figures, output, json } = self;
        let options = Options { effort: effort(quick), only: figures };
        let estimate = Duration::from_secs_f64(estimate_s(&options)?.ceil());
        let output = output.as_deref().map(EvaluationFiles::new).transpose()?;
        let stop = stop_on_signals()?;
        eprintln!("fastpath: this takes about {}", in_words(estimate));
        let bar = Bar::new();
        let evaluation = evaluate(&options, &tool(), &stop, &|progress| bar.show(progress));
        bar.bar.finish_and_clear();
        let evaluation = evaluation?;
        if let Some(output) = output {
            output.write(&evaluation)?;
        }
        view::print(&evaluation, json)?;
        Ok(match evaluation.total - evaluation.passed {
            0 => Answer::Yes,
            missed if missed == evaluation.disturbed => Answer::Disturbed,
            _ => Answer::No,
        })
    }
}

/// A bar with the time left.
struct Bar {
    bar: ProgressBar,
    began: Instant,
}

impl Bar {
    fn new() -> Bar {
        Bar { bar: crate::progress::bar(1000, "{msg}"), began: Instant::now() }
    }

    fn show(&self, progress: Progress) {
        let Progress { step, done_s, total_s } = progress;
        // What has been done says how fast this machine is.
        let pace = if done_s > 5.0 { self.began.elapsed().as_secs_f64() / done_s } else { 1.0 };
        let left = Duration::from_secs_f64(((total_s - done_s) * pace).max(0.0));
        self.bar.set_position((1000.0 * done_s / total_s.max(1.0)) as u64);
        self.bar.set_message(format!("{step}, about {} left", in_words(left)));
    }
}

fn in_words(time: Duration) -> String {
    match time.as_secs() {
        s if s < 90 => format!("{s} s"),
        s => format!("{} min", (s + 30) / 60),
    }
}
