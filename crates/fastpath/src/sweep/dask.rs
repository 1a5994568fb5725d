//! A sweep on the workers of a Dask cluster: the Python package sends the points, this program
//! keeps the table.

use super::{Axis, Design, SweepOptions};
use crate::error::{Error, Result};
use crate::simulate::Simulation;
use serde_json::{Map, Value, json};
use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The module that computes points.
const MODULE: &str = "fastpath._dask";

/// What a sweep is made of, before its files are read.
pub struct Question<'q> {
    /// The simulation.
    pub simulation: &'q Simulation,
    /// The axes.
    pub axes: &'q [Axis],
    /// The choice of points.
    pub design: Design,
}

/// Has the points of a sweep that `output` lacks computed by the Dask cluster whose scheduler is at
/// `address` (`tcp://HOST:PORT`). `options.output` holds all rows of the shard afterwards.
///
/// The Python package `fastpath` sends the points; it needs the package `distributed`. The
/// interpreter is that of the environment with this program, or `python3`; `FASTPATH_PYTHON` names
/// another one.
///
/// # Errors
/// No interpreter or package, a scheduler that does not answer, a sweep that is refused.
pub fn by_dask(
    question: &Question<'_>,
    address: &str,
    options: &SweepOptions,
    progress: &dyn Fn(usize, usize),
) -> Result<()> {
    let refuse = |what: String| Error::Argument(format!("--dask {address}: {what}"));
    let python = interpreter();
    let mut command = Command::new(&python);
    command.args(["-m", MODULE]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let instead = "install the wheel and `distributed` for it, or set FASTPATH_PYTHON";
    let mut child = command.spawn().map_err(|error| {
        refuse(format!("{}: {error}; the Python package sends the points: {instead}", python.display()))
    })?;
    let asked = question.json(address, options).to_string();
    let mut stdin = child.stdin.take().expect("stdin was piped");
    // An interpreter that ends before it reads says why on standard error.
    let _ = stdin.write_all(asked.as_bytes());
    drop(stdin);
    let mut stderr = child.stderr.take().expect("stderr was piped");
    let errors = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = stderr.read_to_string(&mut text);
        text
    });
    for line in BufReader::new(child.stdout.take().expect("stdout was piped")).lines() {
        let Ok(line) = line else { break };
        let numbers =
            line.split_once(' ').and_then(|(done, all)| Some((done.parse().ok()?, all.parse().ok()?)));
        if let Some((done, all)) = numbers {
            progress(done, all);
        }
    }
    let status = child.wait().map_err(|error| refuse(error.to_string()))?;
    let text = errors.join().unwrap_or_default();
    if status.success() {
        return Ok(());
    }
    if text.contains("No module named") {
        return Err(refuse(format!("{} has no package fastpath: {instead}", python.display())));
    }
    // The last line of a traceback is the exception.
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("the interpreter ended");
    Err(refuse(last.trim_start_matches(&format!("--dask {address}: ")).to_owned()))
}

impl Question<'_> {
    fn json(&self, address: &str, options: &SweepOptions) -> Value {
        let Simulation { machine, program, workload, changes, seed } = self.simulation;
        let changes: Vec<_> = changes.iter().map(|(name, value)| json!([name.to_string(), value])).collect();
        let vary: Vec<String> = self.axes.iter().map(ToString::to_string).collect();
        let mut question = Map::from_iter([
            ("dask".to_owned(), json!(address)),
            ("machine".to_owned(), json!(machine)),
            ("program".to_owned(), json!(program)),
            ("workload".to_owned(), json!(workload)),
            ("set".to_owned(), json!(changes)),
            ("seed".to_owned(), json!(seed)),
            ("vary".to_owned(), json!(vary)),
            ("shard".to_owned(), json!(options.shard.to_string())),
            ("output".to_owned(), json!(options.output)),
        ]);
        match self.design {
            Design::Grid => {}
            Design::Random(points) => drop(question.insert("random".to_owned(), json!(points))),
            Design::Halton(points) => drop(question.insert("halton".to_owned(), json!(points))),
        }
        Value::Object(question)
    }
}

/// Returns the interpreter that has the Python package.
fn interpreter() -> PathBuf {
    if let Some(python) = env::var_os("FASTPATH_PYTHON") {
        return python.into();
    }
    let beside = env::current_exe().ok().and_then(|program| Some(program.parent()?.join("python3")));
    beside.filter(|python| python.exists()).unwrap_or_else(|| Path::new("python3").to_owned())
}
