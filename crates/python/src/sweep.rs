//! Sweeps: many simulations, here or elsewhere, and the table of their rows.

use crate::failure::{argument, raise, without_lock};
use fastpath::sim::parameter::Text;
use fastpath::simulate::Simulation;
use fastpath::sweep::{self, Axis, Design, Results, Shard, Texts};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A machine or program file: the name that selects it, the name of the file, its text.
type NamedText = (String, String, String);

/// What a sweep is made of.
#[derive(FromPyObject)]
pub(crate) struct Question {
    machine: String,
    program: String,
    workload: String,
    changes: Vec<(String, String)>,
    seed: u64,
    /// Axes: `NAME=VALUES`.
    vary: Vec<String>,
    /// The number of random points, or of points of a Halton sequence; otherwise a grid.
    random: Option<u64>,
    halton: Option<u64>,
}

/// What is simulated, and the points at which.
#[pyclass(module = "fastpath._native", frozen)]
pub(crate) struct Sweep(sweep::Sweep);

#[pymethods]
impl Sweep {
    /// Makes a sweep of files that have been read, as [`sweep_texts`] returns them.
    #[new]
    fn new(question: Question, machines: Vec<NamedText>, programs: Vec<NamedText>) -> PyResult<Sweep> {
        let Question { machine, program, workload, changes, seed, vary, random, halton } = question;
        let parameter = |(target, value): (String, String)| Ok((target.parse().map_err(argument)?, value));
        let changes = changes.into_iter().map(parameter).collect::<PyResult<_>>()?;
        let design = match (random, halton) {
            (Some(points), _) => Design::Random(points),
            (None, Some(points)) => Design::Halton(points),
            (None, None) => Design::Grid,
        };
        let simulation = Simulation { machine, program, workload, changes, seed };
        let texts = Texts { machines: by_name(machines), programs: by_name(programs) };
        let made = sweep::sweep_of_texts(&simulation, axes(&vary)?, design, &texts);
        made.map(Sweep).map_err(raise)
    }

    /// The number of points.
    #[getter]
    fn points(&self) -> u64 {
        self.0.points()
    }

    /// The hash of everything that the table depends on.
    #[getter]
    fn configuration(&self) -> String {
        self.0.configuration().to_owned()
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.columns()
    }

    /// Simulates points. Returns a row for each.
    fn rows(&self, py: Python<'_>, points: Vec<u64>) -> PyResult<Vec<Vec<String>>> {
        without_lock(py, |signals| {
            let mut rows = Vec::with_capacity(points.len());
            for point in points {
                if !signals.go_on(|_| Ok(())) {
                    break;
                }
                rows.push(self.0.row(point));
            }
            Ok(rows)
        })
    }
}

/// The rows of a sweep that are known, in a file too if there is one.
#[pyclass(module = "fastpath._native", frozen)]
pub(crate) struct SweepTable(Mutex<Results>);

#[pymethods]
impl SweepTable {
    /// Opens the table of a sweep, with the rows that its file holds.
    #[new]
    fn new(of: &Sweep, path: Option<PathBuf>) -> PyResult<SweepTable> {
        let opened = Results::open(&of.0, path.as_deref());
        opened.map(|results| SweepTable(Mutex::new(results))).map_err(raise)
    }

    /// Returns the points of a shard (`I/N`) that have no row yet. Refuses a sweep of which no
    /// point can be read.
    fn missing(&self, of: &Sweep, shard: &str) -> PyResult<Vec<u64>> {
        let shard: Shard = shard.parse().map_err(argument)?;
        sweep::missing(&of.0, &self.lock(), shard).map_err(raise)
    }

    /// Adds the row of a point. A row that is known already is left out.
    fn add(&self, point: u64, row: Vec<String>) -> PyResult<()> {
        let mut results = self.lock();
        if results.has(point) {
            return Ok(());
        }
        results.add(point, row).map_err(raise)
    }

    /// Rewrites the file in the order of the points.
    fn finish(&self) -> PyResult<()> {
        self.lock().finish().map_err(raise)
    }

    /// All rows in the order of the points.
    fn rows(&self) -> Vec<Vec<String>> {
        self.lock().rows().map(|row| row.cells().to_vec()).collect()
    }

    /// The table as CSV.
    fn csv<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.lock().csv())
    }
}

impl SweepTable {
    /// A panic during a call, which is a defect, has been raised there.
    fn lock(&self) -> MutexGuard<'_, Results> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the machine and program files that a sweep names.
#[pyfunction]
pub(crate) fn sweep_texts(question: Question) -> PyResult<(Vec<NamedText>, Vec<NamedText>)> {
    let texts = Texts::read(&question.machine, &question.program, &axes(&question.vary)?).map_err(raise)?;
    Ok((rows(texts.machines), rows(texts.programs)))
}

fn axes(vary: &[String]) -> PyResult<Vec<Axis>> {
    vary.iter().map(|axis| axis.parse().map_err(argument)).collect()
}

fn by_name(texts: Vec<NamedText>) -> BTreeMap<String, Text> {
    texts.into_iter().map(|(name, file, text)| (name, Text::new(file, text))).collect()
}

fn rows(texts: BTreeMap<String, Text>) -> Vec<NamedText> {
    texts.into_iter().map(|(name, text)| (name, text.file, text.text)).collect()
}
