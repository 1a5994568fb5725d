//! Simulations of machines.

use crate::failure::{argument, raise, without_lock};
use fastpath::replay::WorkerCount;
use fastpath::sim::shipped::{MACHINES, PROGRAMS};
use fastpath::simulate::{Simulation, run};
use pyo3::prelude::*;

/// Simulates a program on a machine. Returns the outcome as JSON.
#[pyfunction]
pub(crate) fn simulate(
    py: Python<'_>,
    machine: String,
    program: String,
    workload: String,
    changes: Vec<(String, String)>,
    seed: u64,
) -> PyResult<String> {
    let parameter = |(target, value): (String, String)| Ok((target.parse().map_err(argument)?, value));
    let changes = changes.into_iter().map(parameter).collect::<PyResult<_>>()?;
    let case = Simulation { machine, program, workload, changes, seed }.case().map_err(raise)?;
    let input = case.input().map_err(argument)?;
    let done = without_lock(py, |signals| {
        let mut go_on = |_| {
            if !signals.go_on(|_| Ok(())) {
                signals.leave();
            }
        };
        run(&input, None, WorkerCount::Auto, Some(&mut go_on)).map_err(raise)
    })?;
    Ok(done.json().to_string())
}

/// Returns the names of the shipped machines and programs.
#[pyfunction]
pub(crate) fn shipped() -> (Vec<&'static str>, Vec<&'static str>) {
    let names = |all: &[(&'static str, &'static str)]| all.iter().map(|(name, _)| *name).collect();
    (names(&MACHINES), names(&PROGRAMS))
}

/// Returns the text (TOML) of a shipped machine, a machine file, or a measured host, without
/// changes. Refuses changes that it cannot take.
#[pyfunction]
pub(crate) fn machine_text(name: &str, changes: Vec<(String, String)>) -> PyResult<String> {
    let text = fastpath::simulate::machine_text(name).map_err(raise)?;
    let mut changed = text.clone();
    for (path, value) in &changes {
        changed = changed.set(path, value).map_err(argument)?;
    }
    if !changes.is_empty() {
        changed.machine().map_err(argument)?;
    }
    Ok(text.text)
}
