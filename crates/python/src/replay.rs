//! Replays: captures and arrays of frames in, the times of every frame out.

use crate::failure::{argument, raise, without_lock};
use crate::network::NamedFiles;
use fastpath::Replay;
use fastpath::net::FrameAccounting;
use fastpath::replay::{FrameLengths, FramesAt, TimeColumns, WorkerCount};
use fastpath::units::Duration;
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Frames of a host: its name, times, bytes, and lengths (one for all, if there is only one).
#[derive(FromPyObject)]
pub(crate) struct FrameArrays<'py>(
    String,
    PyReadonlyArray1<'py, u64>,
    PyReadonlyArray1<'py, u8>,
    PyReadonlyArray1<'py, u32>,
);

/// The arguments of a replay except its network.
#[derive(FromPyObject)]
pub(crate) struct Options {
    /// `HOST=FILE`.
    inputs: Vec<String>,
    /// `HOST=FILE`.
    outputs: Vec<String>,
    packet_log: Option<PathBuf>,
    seed: Option<u64>,
    /// The time of the run from which nothing enters.
    until: Option<String>,
    /// A number, or `auto`.
    workers: String,
}

/// Returns the replay through a network that has these options.
fn configured(topology: fastpath::spec::Topology, options: Options) -> PyResult<Replay> {
    let mut replay = Replay::through(topology);
    if let Some(file) = options.packet_log {
        replay = replay.packet_log(file);
    }
    for input in &options.inputs {
        replay = replay.input(input).map_err(raise)?;
    }
    for output in &options.outputs {
        replay = replay.output(output).map_err(raise)?;
    }
    if let Some(seed) = options.seed {
        replay = replay.seed(seed);
    }
    let workers = options.workers.parse::<WorkerCount>();
    let workers = workers.map_err(|why| argument(format!("workers={}: {why}", options.workers)))?;
    let replay = replay.workers(workers);
    let until = options.until.as_deref().map(str::parse::<Duration>).transpose();
    let until = until.map_err(|error| argument(format!("until: {error}; write until=\"10s\"")))?;
    Ok(match until {
        Some(until) => replay.until(until),
        None => replay,
    })
}

/// Replays captures and frames through a network.
#[pyfunction]
pub(crate) fn replay<'py>(
    py: Python<'py>,
    description: &str,
    files: NamedFiles,
    frames: Vec<FrameArrays<'py>>,
    options: Options,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let topology = files.topology(description)?;
    let hosts: Vec<String> = topology.hosts().map(|(_, host)| host.name.clone()).collect();
    let edges = topology.hosts().flat_map(|(_, host)| host.interfaces.iter().map(|_| host.name.clone()));
    let edges: Vec<String> = edges.collect();
    let replay = configured(topology, options)?;
    let arrays = frames.iter().map(frames_at).collect::<PyResult<Vec<FramesAt>>>()?;
    let (summary, columns) = without_lock(py, |signals| {
        let mut go_on = |read: fastpath::replay::BytesRead| {
            let report = |py: Python<'_>| match &progress {
                Some(progress) => progress.call1(py, (read.done, read.total)).map(drop),
                None => Ok(()),
            };
            match signals.go_on(report) {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        replay.run_columns(&arrays, &mut go_on).map_err(raise)
    })?;
    let TimeColumns { in_ps, out_ps, end, ends, input, edge, len } = columns;
    let out = PyDict::new(py);
    out.set_item("in_ps", in_ps.into_pyarray(py))?;
    out.set_item("out_ps", out_ps.into_pyarray(py))?;
    out.set_item("end", end.into_pyarray(py))?;
    out.set_item("ends", ends)?;
    out.set_item("input", input.into_pyarray(py))?;
    out.set_item("edge", edge.into_pyarray(py))?;
    out.set_item("length", len.into_pyarray(py))?;
    let traffic = serde_json::to_string(&summary.traffic).expect("reports are plain data");
    out.set_item("traffic", traffic)?;
    let transfers = serde_json::to_string(&summary.transfers).expect("reports are plain data");
    out.set_item("transfers", transfers)?;
    let links = serde_json::to_string(&summary.links).expect("reports are plain data");
    out.set_item("links", links)?;
    out.set_item("hosts", hosts)?;
    out.set_item("edges", edges)?;
    out.set_item("seed", summary.seed)?;
    out.set_item("start_ns", summary.start_ns)?;
    out.set_item("out_of_order", summary.out_of_order)?;
    out.set_item("left_out", summary.left_out.clone())?;
    let problems = summary.problems.iter().map(ToString::to_string);
    out.set_item("problems", problems.collect::<Vec<String>>())?;
    out.set_item("frames", accounting(py, &summary.accounting)?)?;
    Ok(out)
}

pub(crate) fn accounting<'py>(py: Python<'py>, frames: &FrameAccounting) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("total_in", frames.total_in())?;
    out.set_item("delivered", frames.delivered)?;
    out.set_item("dropped", &frames.dropped)?;
    out.set_item("held", frames.held)?;
    Ok(out)
}

fn frames_at<'a>(frames: &'a FrameArrays<'_>) -> PyResult<FramesAt<'a>> {
    let FrameArrays(at, times, bytes, lengths) = frames;
    let lengths = match lengths.as_slice()? {
        [len] if times.len()? != 1 => FrameLengths::All(*len as usize),
        each => FrameLengths::Each(each),
    };
    let at = at.parse().map_err(argument)?;
    Ok(FramesAt { at, times_ps: times.as_slice()?, bytes: bytes.as_slice()?, lengths })
}
