//! `fastpath sweep`: many simulations, on all cores, that can be stopped and resumed.
//!
//! ```text
//! points of my shard ─▶ threads: sweep.row(point) ─▶ results (a line each, at once) ─▶ sorted table ─▶ Pareto view
//!        not yet done ◀──────────────────────────────── results.csv
//! ```
//!
//! Which points there are and what a row says is decided in `fastpath_sim::sweep`, without threads
//! and files; here is only who does them and where the rows go.

mod pareto;
mod results;

use super::sim::plot::{Plot, Row};
use super::sim::source::{Question, machine_text, program_text};
use crate::Answer;
use anyhow::bail;
use clap::Args;
use fastpath_sim::case::Target;
use fastpath_sim::sweep::{Axis, Design, Shard, Sweep};
use pareto::Goals;
use results::Results;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Points tried before the words themselves are doubted.
const TRIED_FIRST: u64 = 100;

/// Simulate over a grid or a sample of any parameters, on all cores; resumable, in shards.
///
/// The table does not depend on the number of threads. With --output every finished point is
/// appended to the file at once; run the same words again and only what is missing is done. Files
/// of shards may be concatenated: the same words without --shard then check that nothing is
/// missing, and sort. The exit code is 1 if a point could not be run (its row says why).
#[derive(Args)]
#[command(after_help = "\
Axes (--vary): NAME=A,B,C | NAME=LOW..HIGH | NAME=LOW..HIGH/COUNT
  NAME is machine.UNIT.FIELD, program.PARAMETER, workload.FIELD, seed, machine or program.
  A range is of whole numbers unless an end has a decimal point; units stand behind: 1.0GHz..3.0GHz

Examples:
  fastpath sweep xeon-e5-2687wv4 --program netcope --vary machine.cpu.cores=1..12 --vary program.h=0,10,50
      --workload line-rate,size=512,duration=2ms --pareto machine.cpu.cores,forwarded_pps
  fastpath sweep ixp1200 --program linkem --vary machine.egress.engines=1,2,4 --vary workload.size=64..1518
      --halton 200 -o ixp.csv --shard 1/4")]
pub(crate) struct SweepCommand {
    /// A shipped machine or a machine file (TOML).
    machine: String,
    #[command(flatten)]
    question: Question,
    /// What varies, and over which values (may be repeated).
    #[arg(long, value_name = "NAME=VALUES", required = true)]
    vary: Vec<Axis>,
    /// In place of the whole grid: so many random points.
    #[arg(long, value_name = "POINTS", conflicts_with = "halton")]
    random: Option<u64>,
    /// In place of the whole grid: so many points of a Halton sequence, which fill the space
    /// evenly.
    #[arg(long, value_name = "POINTS")]
    halton: Option<u64>,
    /// Do only this part of the points, I of N.
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    shard: Shard,
    /// Threads; otherwise one per core.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// The results (CSV); what the file already holds is not done again. Otherwise they are
    /// printed.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show only what nothing cheaper beats: two columns, COST may be a product of several (a*b).
    #[arg(long, value_name = "COST,THROUGHPUT")]
    pareto: Option<Goals>,
    #[command(flatten)]
    plot: Plot,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl SweepCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let sweep = self.sweep()?;
        let goals = self.pareto.as_ref().map(|goals| goals.columns(&sweep.columns())).transpose()?;
        let mut results = Results::open(&sweep, self.output.as_deref())?;
        let todo: Vec<u64> =
            (0..sweep.points()).filter(|&point| self.shard.has(point) && !results.has(point)).collect();
        refuse_nonsense(&sweep, &todo)?;
        self.work(&sweep, &todo, &mut results)?;
        results.finish()?;
        let problem = sweep.columns().len() - 1;
        let failed = results.rows().filter(|row| !row[problem].is_empty()).count();
        self.plot.write(self.question.seed(), self.plotted(&sweep, &results))?;
        self.print(&sweep, &results, goals.as_ref())?;
        if failed > 0 {
            eprintln!(
                "fastpath: points that could not be run to their end: {failed}; see the column problem"
            );
        }
        Ok(if failed > 0 { Answer::No } else { Answer::Yes })
    }

    fn sweep(&self) -> anyhow::Result<Sweep> {
        let mut case = self.question.case(&self.machine)?;
        for axis in &self.vary {
            for name in axis.names(&Target::Machine) {
                case.files.insert(name.clone(), machine_text(name)?);
            }
            for name in axis.names(&Target::Program) {
                case.files.insert(name.clone(), program_text(name)?);
            }
        }
        let design = match (self.random, self.halton) {
            (Some(n), _) => Design::Random(n),
            (None, Some(n)) => Design::Halton(n),
            (None, None) => Design::Grid,
        };
        Ok(Sweep::new(case, self.vary.clone(), design)?)
    }

    /// Does the points of `todo`, each once, by as many threads as there are.
    fn work(&self, sweep: &Sweep, todo: &[u64], results: &mut Results) -> anyhow::Result<()> {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = self.threads.map_or(cores, NonZeroUsize::get).min(todo.len());
        let bar = crate::progress::bar(todo.len() as u64, "{pos}/{len} points ({elapsed}, {eta} left)");
        let next = AtomicUsize::new(0);
        // A worker waits when the writer is slow: rows do not pile up.
        let (to_writer, from_workers) = mpsc::sync_channel(2 * threads);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let (to_writer, next) = (to_writer.clone(), &next);
                scope.spawn(move || {
                    while let Some(&point) = todo.get(next.fetch_add(1, Ordering::Relaxed)) {
                        // The writer has gone when it could not write: then there is nothing left
                        // to do.
                        if to_writer.send((point, sweep.row(point))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(to_writer);
            for (point, row) in from_workers {
                results.add(point, row)?;
                bar.inc(1);
            }
            bar.finish_and_clear();
            Ok(())
        })
    }

    /// The rows as points: the axes say where, the columns after them what was found.
    fn plotted(&self, sweep: &Sweep, results: &Results) -> Vec<Row> {
        let (columns, axes) = (sweep.columns(), 2..2 + self.vary.len());
        let object = |row: &[String], range: std::ops::Range<usize>| -> Map<String, Value> {
            let cells = columns[range.clone()].iter().zip(&row[range]);
            cells
                .map(|(name, cell)| (name.clone(), scalar(name, cell)))
                .filter(|(_, v)| !v.is_null())
                .collect()
        };
        let all = |row: &'_ [String]| (object(row, axes.clone()), object(row, axes.end..columns.len()));
        results.rows().map(all).collect()
    }

    fn print(&self, sweep: &Sweep, results: &Results, goals: Option<&pareto::Columns>) -> anyhow::Result<()> {
        let (mut out, columns) = (io::stdout().lock(), sweep.columns());
        let front = goals.map(|goals| goals.front(results.rows())).transpose()?;
        if self.json {
            let object = |row: &[String]| -> Map<String, Value> {
                columns.iter().zip(row).map(|(name, cell)| (name.clone(), scalar(name, cell))).collect()
            };
            let rows: Vec<_> = results.rows().map(object).collect();
            let pareto = front.map(|front| front.iter().map(|f| object(f.row)).collect::<Vec<_>>());
            let value = json!({ "configuration": sweep.configuration(), "rows": rows, "pareto": pareto });
            writeln!(out, "{value}")?;
            return Ok(());
        }
        match (front, &self.output) {
            (Some(front), _) => pareto::show(&mut out, &columns, &front, self.vary.len())?,
            (None, Some(path)) => {
                let (done, all) = (results.rows().count(), sweep.points());
                writeln!(out, "{}: {done} of {all} points", path.display())?;
            }
            (None, None) => out.write_all(&results.csv()?)?,
        }
        Ok(())
    }
}

/// Where no point can even be read the words are wrong, not the points.
fn refuse_nonsense(sweep: &Sweep, todo: &[u64]) -> anyhow::Result<()> {
    let mut first = None;
    for &point in todo.iter().take(TRIED_FIRST as usize) {
        match sweep.case(point).and_then(|case| case.input()) {
            Ok(_) => return Ok(()),
            Err(error) => first = first.or(Some(error)),
        }
    }
    match first {
        Some(error) => bail!(error),
        None => Ok(()),
    }
}

/// A cell as JSON: a number where it is one, nothing where it is empty. A fingerprint may look like
/// a number and is none.
fn scalar(column: &str, cell: &str) -> Value {
    if cell.is_empty() {
        return Value::Null;
    }
    if matches!(column, "configuration" | "trace_hash") {
        return Value::from(cell);
    }
    let whole = cell.parse::<u64>().map(Value::from).ok();
    let real = || cell.parse::<f64>().ok().and_then(serde_json::Number::from_f64).map(Value::from);
    whole.or_else(real).unwrap_or_else(|| Value::from(cell))
}
