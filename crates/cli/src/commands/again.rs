//! `fastpath lab again`: a recorded run in virtual time, once more.

use super::virtual_time::{shown, started_run};
use crate::Answer;
use crate::signals::stop_on_signals;
use anyhow::{Context, bail};
use clap::Args;
use fastpath::capture::select;
use fastpath::guest_run::{PACKETS, RECORD, VirtualRun, differences};
use fastpath::record::GuestOrigin;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The record of the new run, among its results.
const RESULTS: &str = "record";

/// Run a recorded run in virtual time again, and compare.
///
/// Says first what is not as it was: kernel, program, processor, variables and files that the run
/// read. The results of the new run are compared and removed; those of the old one stay. The exit
/// code is 0 if all results are the same, 1 if not.
#[derive(Args)]
pub(crate) struct Again {
    /// The record of a run with `--time virtual --record`.
    record: PathBuf,
    /// Keep the results of the new run in this new directory.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Write the packets of the new run to this file: whole frames, with those that links drop.
    #[arg(long, value_name = "FILE.pcapng")]
    capture: Option<PathBuf>,
    /// Write only packets of this link. May be given several times.
    #[arg(long, value_name = "LINK", requires = "capture")]
    link: Vec<String>,
}

impl Again {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let at = self.record.display();
        let Some(before) = GuestOrigin::of(&self.record)? else {
            bail!("{at}: a run in real time, which is not the same again; record one with --time virtual");
        };
        let stop = stop_on_signals()?;
        for difference in differences(&before)? {
            eprintln!("fastpath: {difference}");
        }
        let room = self.room()?;
        let to = |path: &String| room.path.join(path.trim_start_matches('/'));
        let is_outside = |name: &&String| name.starts_with('/') && !name.starts_with(RECORD);
        let files = before.results.keys().filter(is_outside);
        let run = VirtualRun {
            arguments: before.arguments.clone(),
            directory: before.directory.clone(),
            outputs: files.map(|path| (PathBuf::from(path), to(path))).collect(),
            hidden: before.new.clone(),
            seed: before.seed,
            memory: Some(before.memory),
            record: Some(room.path.join(RESULTS)),
        };
        let result = started_run(&run, &stop)?;
        if let Some(file) = &self.capture {
            select(&room.path.join(RESULTS).join(PACKETS), &self.link, file)?;
        }
        let after = result.origin.context("a recorded run has an origin")?;
        let mut differ: Vec<String> = before
            .results
            .iter()
            .filter(|(name, sum)| after.results.get(*name) != Some(sum))
            .map(|(name, _)| shown(name, &before.directory))
            .collect();
        if before.exit_code != after.exit_code {
            differ.push(format!("the exit code ({}, was {})", after.exit_code, before.exit_code));
        }
        let mut out = io::stdout();
        if differ.is_empty() {
            writeln!(out, "the same again: {} results", before.results.len() + 1)?;
            return Ok(Answer::Yes);
        }
        writeln!(out, "not the same: {}", differ.join(", "))?;
        Ok(Answer::No)
    }

    /// Returns the directory for the results of the new run.
    fn room(&self) -> anyhow::Result<Room> {
        let path = match &self.keep {
            Some(path) => std::path::absolute(path)?,
            None => std::env::temp_dir().join(format!("fastpath-again-{}", std::process::id())),
        };
        std::fs::create_dir(&path).with_context(|| path.display().to_string())?;
        std::fs::create_dir(path.join(RESULTS)).with_context(|| path.display().to_string())?;
        Ok(Room { path, is_kept: self.keep.is_some() })
    }
}

/// A directory that is removed on drop unless it is kept.
struct Room {
    path: PathBuf,
    is_kept: bool,
}

impl Drop for Room {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_dir_all(&self.path as &Path);
        }
    }
}
