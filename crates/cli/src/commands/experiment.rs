//! `fastpath experiment`: a matrix of runs, resumable, judged, kept.

use crate::{Answer, progress};
use clap::Args;
use fastpath::sweep::Shard;
use fastpath_experiment::{self as experiment, Changed, ExperimentOptions};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// What is written of a whole experiment.
const WRITTEN: &str = if cfg!(feature = "parquet") {
    "results.csv, results.parquet, report.html"
} else {
    "results.csv, report.html (results.parquet needs a build with --features parquet)"
};

/// Run a matrix of conditions, in labs or in virtual time.
///
/// The file says what varies, what is done, what is measured and what is expected. Every finished
/// run is kept. After an interruption, the same command does only the missing runs. Several
/// processes may work on one directory. A run that the machine disturbs is repeated. If the
/// repetitions are disturbed too, the run is marked and left out of the tables. The exit code is 1
/// if an expectation is broken or a run is left out.
#[derive(Args)]
pub(crate) struct Experiment {
    /// The experiment file (TOML).
    file: PathBuf,
    /// The directory for results. By default the name of the file with `.results` instead of its
    /// extension.
    #[arg(short, long, alias = "out", value_name = "DIR")]
    output: Option<PathBuf>,
    /// Do only part I of N of the runs.
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    shard: Shard,
    /// Number of worker threads for runs in virtual time. By default one per core.
    #[arg(long, alias = "threads", value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Repeat the runs that were left out.
    #[arg(long)]
    retry: bool,
    /// Repeat the runs whose network, steps, captures, traces or programs have changed. Without
    /// this such runs are refused, with what has changed.
    #[arg(long)]
    retry_changed: bool,
    /// Take every warning about a network as a mistake.
    #[arg(long)]
    strict: bool,
    /// Only check the file and print the number of runs.
    #[arg(long)]
    dry_run: bool,
    /// Write the result of each expectation to this file, as JUnit XML.
    #[arg(long, value_name = "FILE.xml")]
    junit: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

impl Experiment {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let plan = experiment::load(&self.file)?;
        if self.strict && !plan.warnings.is_empty() {
            return Err(fastpath::Error::Mistakes(plan.warnings).into());
        }
        plan.warnings.iter().for_each(|warning| eprintln!("{warning}"));
        if self.dry_run && self.json {
            writeln!(io::stdout(), "{}", plan.json())?;
            return Ok(Answer::Yes);
        }
        if self.dry_run {
            writeln!(io::stdout(), "{}: {} runs", plan.name, plan.runs())?;
            return Ok(Answer::Yes);
        }
        let directory =
            self.output.unwrap_or_else(|| self.file.with_extension("").with_added_extension("results"));
        let options = ExperimentOptions {
            directory,
            shard: self.shard,
            threads: self.workers,
            retry: self.retry,
            changed: if self.retry_changed { Changed::Retry } else { Changed::Refuse },
        };
        #[cfg(target_os = "linux")]
        let stop = crate::signals::stop_on_signals()?;
        // Elsewhere a signal ends the program; finished runs are kept all the same.
        #[cfg(not(target_os = "linux"))]
        let stop = std::sync::atomic::AtomicBool::new(false);
        let bar = progress::bar(0, "{pos}/{len} runs ({elapsed}, {eta} left)");
        let findings = experiment::run(&plan, &options, &stop, &|done, all| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        });
        bar.finish_and_clear();
        let findings = findings?;
        if let Some(path) = &self.junit {
            std::fs::write(path, experiment::tests(&plan, &findings).xml())?;
        }
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", findings.json(&plan))?;
        } else {
            writeln!(out, "{}", findings.text(&plan))?;
            writeln!(out, "{}: {WRITTEN}", options.directory.display())?;
        }
        Ok(if findings.is_good() { Answer::Yes } else { Answer::No })
    }
}
