//! Work on the workers of a Dask cluster: the Python package sends it, this program says what and
//! keeps the results.

use crate::error::{Error, Result};
use serde_json::{Map, Value};
use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The module that sends work to a cluster.
const MODULE: &str = "fastpath._dask";
/// The time within which a signal to this process is noticed.
const ATTENTION: Duration = Duration::from_millis(100);
/// What to do about an interpreter that cannot send work.
const INSTEAD: &str = "install the wheel with the extra dask for it (pip install 'fastpath[dask]'), or set \
                       FASTPATH_PYTHON";

/// Has `work` of a kind (`sweep`, `experiment`) done by the cluster whose scheduler is at `address`
/// (`tcp://HOST:PORT`). `progress` is called with what is done and what there is; `stop` ends it.
///
/// The Python package `fastpath` sends the work; it needs the package `distributed`. The
/// interpreter is that of the environment with this program, or `python3`; `FASTPATH_PYTHON` names
/// another one.
///
/// # Errors
/// No interpreter or package, a scheduler that does not answer, work that is refused;
/// [`Error::Interrupted`] after `stop`.
pub fn by_dask(
    address: &str,
    kind: &str,
    work: Map<String, Value>,
    stop: &AtomicBool,
    progress: &dyn Fn(usize, usize),
) -> Result<()> {
    let refuse = |what: String| Error::Argument(format!("--dask {address}: {what}"));
    let python = interpreter();
    let mut command = Command::new(&python);
    command.args(["-m", MODULE, kind, address]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Its package may be of a source tree, without a program.
    if let Ok(program) = env::current_exe() {
        command.env("FASTPATH_PROGRAM", program);
    }
    let mut child = command.spawn().map_err(|error| {
        refuse(format!("{}: {error}; the Python package sends the work: {INSTEAD}", python.display()))
    })?;
    let mut stdin = child.stdin.take().expect("stdin was piped");
    // An interpreter that ends before it reads says why on standard error.
    let _ = stdin.write_all(Value::Object(work).to_string().as_bytes());
    drop(stdin);
    let mut stderr = child.stderr.take().expect("stderr was piped");
    let errors = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = stderr.read_to_string(&mut text);
        text
    });
    let is_stopped = follow(&lines_of(&mut child), stop, progress);
    if is_stopped {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| refuse(error.to_string()))?;
    let text = errors.join().unwrap_or_default();
    if is_stopped {
        return Err(Error::Interrupted);
    }
    if status.success() {
        return Ok(());
    }
    if text.contains("No module named") {
        return Err(refuse(format!("{} has no package fastpath: {INSTEAD}", python.display())));
    }
    let prefix = format!("--dask {address}: ");
    // A message of the package has its own lines. The last line of a traceback is the exception.
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("the interpreter ended");
    Err(refuse(text.find(&prefix).map_or(last, |at| text[at + prefix.len()..].trim_end()).to_owned()))
}

/// The lines that a child prints.
fn lines_of(child: &mut Child) -> Receiver<String> {
    let stdout = child.stdout.take().expect("stdout was piped");
    let (to_follower, lines) = channel();
    std::thread::spawn(move || {
        let read = BufReader::new(stdout).lines().map_while(std::result::Result::ok);
        read.map(|line| to_follower.send(line)).find(std::result::Result::is_err)
    });
    lines
}

/// Reports the progress in lines `DONE ALL` until they end. Returns whether `stop` came first.
fn follow(lines: &Receiver<String>, stop: &AtomicBool, progress: &dyn Fn(usize, usize)) -> bool {
    loop {
        let line = match lines.recv_timeout(ATTENTION) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => return true,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return stop.load(Ordering::Relaxed),
        };
        let numbers =
            line.split_once(' ').and_then(|(done, all)| Some((done.parse().ok()?, all.parse().ok()?)));
        if let Some((done, all)) = numbers {
            progress(done, all);
        }
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
