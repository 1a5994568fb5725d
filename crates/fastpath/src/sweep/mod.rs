//! Sweeps: many simulations on all cores that can be stopped and resumed.
//!
//! ```text
//! points of the shard ─▶ threads: sweep.row(point) ─▶ results (a line each) ─▶ sorted table ─▶ Pareto front
//!        not yet done ◀─────────────────────────────── results.csv
//! ```
//!
//! Which points exist and what a row says is decided in `fastpath_sim::sweep`, without threads and
//! files. This module runs the points and keeps the rows.

mod dask;
mod results;

use crate::error::{Error, Result};
use crate::simulate::{Simulation, machine_text, program_text};
pub use dask::{Question, by_dask};
pub use fastpath_report::{CARRIES, Front, FrontColumns, FrontRow, Goals};
use fastpath_sim::case::Parameter;
use fastpath_sim::parameter::Text;
use fastpath_sim::sweep::SweepError;
pub use fastpath_sim::sweep::{Axis, Design, Sweep};
pub use fastpath_units::matrix::Shard;
pub use results::{Results, SweepRow};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Points that are tried before the arguments themselves are refused.
const TRIED_FIRST: usize = 100;
/// Columns before the axes: the configuration and the number of the point.
pub const COLUMNS_BEFORE_AXES: usize = 2;

/// How a sweep is carried out.
#[derive(Clone, Debug, Default)]
pub struct SweepOptions {
    /// The part of the points to run.
    pub shard: Shard,
    /// Number of threads; one per core by default.
    pub threads: Option<NonZeroUsize>,
    /// The file of results (CSV). Points that it already holds are not done again.
    pub output: Option<PathBuf>,
}

/// The machine and program files that a sweep reads, by the names that select them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    /// Machines.
    pub machines: BTreeMap<String, Text>,
    /// Programs.
    pub programs: BTreeMap<String, Text>,
}

impl Texts {
    /// Reads the files that a sweep of `program` on `machine` along `axes` names.
    ///
    /// # Errors
    /// Unknown names, files that cannot be read.
    pub fn read(machine: &str, program: &str, axes: &[Axis]) -> Result<Texts> {
        let mut texts = Texts::default();
        let names = |of: &Parameter| -> Vec<String> {
            axes.iter().flat_map(|axis| axis.names(of).iter().cloned()).collect()
        };
        for name in std::iter::once(machine.to_owned()).chain(names(&Parameter::Machine)) {
            let text = machine_text(&name)?;
            texts.machines.insert(name, text);
        }
        for name in std::iter::once(program.to_owned()).chain(names(&Parameter::Program)) {
            let text = program_text(&name)?;
            texts.programs.insert(name, text);
        }
        Ok(texts)
    }
}

/// Describes a sweep of `simulation` along `axes`.
///
/// # Errors
/// Unknown names, files that cannot be read, axes that do not fit the design.
pub fn sweep(simulation: &Simulation, axes: Vec<Axis>, design: Design) -> Result<Sweep> {
    let texts = Texts::read(&simulation.machine, &simulation.program, &axes)?;
    sweep_of_texts(simulation, axes, design, &texts)
}

/// Describes a sweep whose files have been read, on this computer or another one.
///
/// # Errors
/// A name that `texts` lacks, a capture that cannot be read, axes that do not fit the design.
pub fn sweep_of_texts(
    simulation: &Simulation,
    axes: Vec<Axis>,
    design: Design,
    texts: &Texts,
) -> Result<Sweep> {
    let find = |texts: &BTreeMap<String, Text>, name: &str| {
        texts.get(name).cloned().ok_or_else(|| Error::Argument(format!("{name}: its text is missing")))
    };
    let machine = find(&texts.machines, &simulation.machine)?;
    let program = find(&texts.programs, &simulation.program)?;
    let mut case = simulation.with_texts(machine, program)?;
    for axis in &axes {
        for name in axis.names(&Parameter::Machine) {
            case.files.insert(name.clone(), find(&texts.machines, name)?);
        }
        for name in axis.names(&Parameter::Program) {
            case.files.insert(name.clone(), find(&texts.programs, name)?);
        }
    }
    Sweep::new(case, axes, design).map_err(|error| match error {
        SweepError::Case(error) => error.into(),
        other => Error::Argument(other.to_string()),
    })
}

/// Runs the points of a sweep that are not done yet. `progress` is called with the number of
/// finished points and of all points to do.
///
/// The table does not depend on the number of threads. A point that could not be run has the reason
/// in its last column; see [`Results::failed`].
///
/// # Errors
/// A file of another sweep, arguments with which no point can be read, a disk that is full.
pub fn run(sweep: &Sweep, options: &SweepOptions, progress: &dyn Fn(usize, usize)) -> Result<Results> {
    let mut results = Results::open(sweep, options.output.as_deref())?;
    let todo = missing(sweep, &results, options.shard)?;
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = options.threads.map_or(cores, NonZeroUsize::get).min(todo.len());
    work(sweep, &todo, threads, &mut results, progress)?;
    results.finish()?;
    Ok(results)
}

/// Returns the points of a shard that have no row yet.
///
/// # Errors
/// Arguments with which no point can be read.
pub fn missing(sweep: &Sweep, results: &Results, shard: Shard) -> Result<Vec<u64>> {
    let is_missing = |&point: &u64| shard.has(point) && !results.has(point);
    let todo: Vec<u64> = (0..sweep.points()).filter(is_missing).collect();
    refuse_nonsense(sweep, &todo)?;
    Ok(todo)
}

/// Splits a row into its place (the axes) and what was found there, as typed values by column.
pub fn split_row(sweep: &Sweep, row: &[String], axes: usize) -> (Map<String, Value>, Map<String, Value>) {
    let columns = sweep.columns();
    let object = |range: Range<usize>| -> Map<String, Value> {
        let cells = columns[range.clone()].iter().zip(&row[range]);
        cells
            .map(|(name, cell)| (name.clone(), cell_value(name, cell)))
            .filter(|(_, v)| !v.is_null())
            .collect()
    };
    let axes = COLUMNS_BEFORE_AXES..COLUMNS_BEFORE_AXES + axes;
    (object(axes.clone()), object(axes.end..columns.len()))
}

/// Returns a cell as a value: a number where it is one, null where it is empty. A fingerprint that
/// looks like a number stays text.
pub fn cell_value(column: &str, cell: &str) -> Value {
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

/// Runs each point of `todo` once, on `threads` threads.
fn work(
    sweep: &Sweep,
    todo: &[u64],
    threads: usize,
    results: &mut Results,
    progress: &dyn Fn(usize, usize),
) -> Result<()> {
    let next = AtomicUsize::new(0);
    // Bounded: a thread waits when writing is slow, so rows do not pile up.
    let (to_writer, from_threads) = mpsc::sync_channel(2 * threads);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (to_writer, next) = (to_writer.clone(), &next);
            scope.spawn(move || {
                while let Some(&point) = todo.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // The writer has failed and dropped its end.
                    if to_writer.send((point, sweep.row(point))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(to_writer);
        for (done, (point, row)) in (1..).zip(from_threads) {
            results.add(point, row)?;
            progress(done, todo.len());
        }
        Ok(())
    })
}

/// Refuses arguments with which none of the first points can even be read.
fn refuse_nonsense(sweep: &Sweep, todo: &[u64]) -> Result<()> {
    let mut first = None;
    for &point in todo.iter().take(TRIED_FIRST) {
        match sweep.case(point).and_then(|case| case.input()) {
            Ok(_) => return Ok(()),
            Err(error) => first = first.or(Some(error)),
        }
    }
    first.map_or(Ok(()), |error| Err(error.into()))
}
