//! `fastpath experiment`: a matrix of runs, resumable, judged, kept.

use crate::{Answer, progress};
use clap::Args;
use fastpath::dask::by_dask;
use fastpath::replay::WorkerCount;
use fastpath::sweep::Shard;
use fastpath_experiment::{self as experiment, Changed, ExperimentOptions, Findings};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
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
    /// Number of worker threads for runs in virtual time, or auto: one per core, as by default.
    #[arg(long, alias = "threads", value_name = "N")]
    workers: Option<WorkerCount>,
    /// Do only the runs with these numbers, from 0.
    #[arg(long, value_name = "RUN", value_delimiter = ',')]
    only: Option<Vec<u64>>,
    /// Do the runs on the Dask cluster with this scheduler (tcp://HOST:PORT), by the Python
    /// package: runs in virtual time on any worker, labs on workers with the resource
    /// fastpath-lab=1, one at a time on a machine.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "workers")]
    dask: Option<String>,
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
    /// Only print the numbers of the missing runs and the files that they need, as JSON.
    #[arg(long, conflicts_with_all = ["dry_run", "dask", "junit", "json"])]
    missing: bool,
    /// Write the result of each expectation to this file, as JUnit XML.
    #[arg(long, value_name = "FILE.xml")]
    junit: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

impl Experiment {
    pub(crate) fn run(mut self) -> anyhow::Result<Answer> {
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
        let beside = || self.file.with_extension("").with_added_extension("results");
        let directory = self.output.take().unwrap_or_else(beside);
        let mut options = ExperimentOptions {
            directory,
            shard: self.shard,
            only: self.only.take().map(|runs| runs.into_iter().collect()),
            threads: self.workers.map(WorkerCount::count),
            retry: self.retry,
            changed: if self.retry_changed { Changed::Retry } else { Changed::Refuse },
        };
        if self.missing {
            writeln!(io::stdout(), "{}", experiment::missing(&plan, &options)?.json())?;
            return Ok(Answer::Yes);
        }
        #[cfg(target_os = "linux")]
        let stop = crate::signals::stop_on_signals()?;
        // Elsewhere a signal ends the program; finished runs are kept all the same.
        #[cfg(not(target_os = "linux"))]
        let stop = std::sync::atomic::AtomicBool::new(false);
        let bar = progress::bar(0, "{pos}/{len} runs ({elapsed}, {eta} left)");
        let show = |done: usize, all: usize| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        };
        let elsewhere = match &self.dask {
            Some(address) => by_dask(address, "experiment", self.work(&options), &stop, &show),
            None => Ok(()),
        };
        if self.dask.is_some() {
            // The workers have repeated what was to be repeated.
            options = ExperimentOptions { retry: false, changed: Changed::Refuse, ..options };
        }
        let findings = elsewhere.and_then(|()| experiment::run(&plan, &options, &stop, &show));
        bar.finish_and_clear();
        let findings = findings?;
        if let Some(path) = &self.junit {
            std::fs::write(path, experiment::tests(&plan, &findings).xml())?;
        }
        self.print(&plan, &findings, &options)?;
        Ok(if findings.is_good() { Answer::Yes } else { Answer::No })
    }

    fn print(
        &self,
        plan: &experiment::Experiment,
        findings: &Findings,
        options: &ExperimentOptions,
    ) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            return writeln!(out, "{}", findings.json(plan));
        }
        writeln!(out, "{}", findings.text(plan))?;
        if let Some(words) = experiment::again(plan, findings, options) {
            writeln!(out, "the same again: {words}")?;
        }
        writeln!(out, "{}: {WRITTEN}", options.directory.display())
    }

    /// What the Python package sends to a cluster: its arguments by their names.
    fn work(&self, options: &ExperimentOptions) -> Map<String, Value> {
        Map::from_iter([
            ("experiment".to_owned(), json!(self.file)),
            ("output".to_owned(), json!(options.directory)),
            ("shard".to_owned(), json!(options.shard.to_string())),
            ("only".to_owned(), json!(options.only)),
            ("retry".to_owned(), json!(options.retry)),
            ("retry_changed".to_owned(), json!(options.changed == Changed::Retry)),
            ("strict".to_owned(), json!(self.strict)),
        ])
    }
}
