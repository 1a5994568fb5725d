//! `fastpath sweep`: many simulations on all cores, resumable and in shards.

use super::sim::plot::Plot;
use super::sim::question::Question;
use crate::view::{self, SweepTable};
use crate::{Answer, progress};
use clap::Args;
use fastpath::sweep::{self, Axis, Design, Front, Goals, Shard, SweepOptions, by_dask};
use fastpath_units::Probability;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Simulate over a grid or sample of parameters, resumable and in shards.
///
/// The table does not depend on the number of workers. With --output every finished point is
/// appended to the file at once. The same command does only the missing points of an existing file.
/// To join the shards of a sweep, concatenate their files and run the command without --shard: it
/// sorts the points and does missing ones. The exit code is 1 if a point could not be run. Its row
/// has the reason.
#[derive(Args)]
#[command(after_help = "\
Axes (--vary): NAME=A,B,C | NAME=LOW..HIGH | NAME=LOW..HIGH/COUNT
  NAME is machine.UNIT.FIELD, program.PARAMETER, workload.FIELD, seed, machine or program.
  A range has whole numbers unless an end has a decimal point; units follow the numbers: 1.0GHz..3.0GHz")]
pub(crate) struct SweepCommand {
    /// A shipped machine (see `fastpath sim --list`), or a machine file (TOML).
    machine: String,
    #[command(flatten)]
    question: Question,
    /// A parameter to vary, and its values. May be repeated.
    #[arg(long, value_name = "NAME=VALUES", required = true)]
    vary: Vec<Axis>,
    /// Simulate POINTS random points instead of the whole grid.
    #[arg(long, value_name = "POINTS", conflicts_with = "halton")]
    random: Option<u64>,
    /// Simulate POINTS points of a Halton sequence instead of the whole grid. They fill the space
    /// evenly.
    #[arg(long, value_name = "POINTS")]
    halton: Option<u64>,
    /// Simulate only part I of N of the points.
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    shard: Shard,
    /// Number of worker threads. By default one per core.
    #[arg(long, alias = "threads", value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Simulate on the Dask cluster with this scheduler (tcp://HOST:PORT), by the Python package.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "workers", requires = "output")]
    dask: Option<String>,
    /// Write the results to this file (CSV), and skip points that it already has. By default the
    /// results are printed.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show only the Pareto front of two columns. COST may be a product of columns (a*b).
    #[arg(long, value_name = "COST,THROUGHPUT")]
    pareto: Option<Goals>,
    /// Count rows of the Pareto front as equal if they differ by at most this share.
    #[arg(long, value_name = "SHARE", default_value = "0.1%", requires = "pareto")]
    pareto_tolerance: Probability,
    #[command(flatten)]
    plot: Plot,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

impl SweepCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let design = match (self.random, self.halton) {
            (Some(n), _) => Design::Random(n),
            (None, Some(n)) => Design::Halton(n),
            (None, None) => Design::Grid,
        };
        let simulation = self.question.simulation(&self.machine)?;
        let sweep = sweep::sweep(&simulation, self.vary.clone(), design)?;
        let goals = self.pareto.as_ref().map(|goals| goals.columns(&sweep.columns())).transpose()?;
        let options = SweepOptions { shard: self.shard, threads: self.workers, output: self.output.clone() };
        let bar = progress::bar(0, "{pos}/{len} points ({elapsed}, {eta} left)");
        let show = |done, all| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        };
        let question = sweep::Question { simulation: &simulation, axes: &self.vary, design };
        let elsewhere = self.dask.as_ref().map_or(Ok(()), |dask| by_dask(&question, dask, &options, &show));
        let results = elsewhere.and_then(|()| sweep::run(&sweep, &options, &show));
        bar.finish_and_clear();
        let results = results?;
        let rows = results.rows().map(|row| sweep::split_row(&sweep, row.cells(), self.vary.len()));
        let tolerance = self.pareto_tolerance.get();
        let front = goals
            .as_ref()
            .map(|goals| goals.front(results.rows().map(|row| row.cells()), tolerance))
            .transpose()?;
        let section = front.as_ref().map(Front::section);
        self.plot.write(self.question.seed(), rows.collect(), section)?;
        let table = SweepTable {
            sweep: &sweep,
            results: &results,
            front: front.as_ref(),
            axes: self.vary.len(),
            file: self.output.as_deref(),
        };
        view::print(&table, self.json)?;
        let failed = results.failed();
        if failed > 0 {
            eprintln!("fastpath: {failed} points could not be run to their end; see the column problem");
        }
        Ok(if failed > 0 { Answer::No } else { Answer::Yes })
    }
}
