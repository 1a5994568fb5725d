//! Runs of labs in virtual time: each is this program again, in a guest of its own, which does one
//! run. So several go on side by side, and no machine disturbs them.

use super::files::Directory;
use super::plan::Experiment;
use fastpath::guest::RunError;
use fastpath::guest_run::{LOG, PACKETS, VirtualRun, check};
use fastpath::{Error, Result};
use fastpath_spec::Topology;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Does a run. Its directory has all that it leaves when it has come to its end. Returns why it has
/// not, if so.
///
/// # Errors
/// What would keep every other run from its end.
pub(super) fn run(
    plan: &Experiment,
    directory: &Directory,
    (number, topology): (u64, &Topology),
    path: &Path,
    stop: &AtomicBool,
) -> Result<Option<String>> {
    check(topology)?;
    let absolute = |path: &Path| std::path::absolute(path).map_err(Error::file(path));
    let (results, place) = (absolute(directory.path())?, absolute(path)?);
    let words = [
        "experiment".to_owned(),
        absolute(&plan.path)?.display().to_string(),
        "--only".to_owned(),
        number.to_string(),
        "--output".to_owned(),
        results.display().to_string(),
    ];
    let run = VirtualRun {
        arguments: words.into(),
        directory: absolute(Path::new("."))?,
        outputs: vec![(place.clone(), place.clone())],
        hidden: vec![results.clone()],
        seed: plan.seed(number),
        memory: None,
        record: Some(place.clone()),
    };
    let mut said = Vec::new();
    let result = match run.run([&mut io::sink(), &mut said], stop, &mut |_| {}) {
        Ok(result) => result,
        Err(error @ (RunError::NoKernel | RunError::OldKernel | RunError::Start { .. })) => {
            return Err(Error::Argument(error.to_string()));
        }
        Err(error) => return Ok(Some(error.to_string())),
    };
    if !directory.has(number) {
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        return Ok(Some(format!("in virtual time: {last}")));
    }
    if let Some(origin) = result.origin {
        origin.add_to(&place)?;
    }
    if !plan.keeps_packets && directory.record(number)?.is_some_and(|run| run.problem.is_none()) {
        // The run is the same again, with its packets.
        for path in [PACKETS, LOG].map(|name| place.join(name)).iter().filter(|path| path.exists()) {
            fs::remove_file(path).map_err(Error::file(path))?;
        }
    }
    Ok(None)
}
