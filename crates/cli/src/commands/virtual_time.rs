//! `--time virtual`: the command of this program, again, in a guest.

use crate::Answer;
use crate::network_args::NetworkArgs;
use anyhow::{Context, bail};
use clap::ValueEnum;
use fastpath::guest_run::{LOG, RECORD, RecordPlace, VirtualRun, check};
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Options that are not those of the command in the guest.
const OUTSIDE: [&str; 5] = ["--time", "--memory", "--record", "--packet-log", "--ledger"];

/// The interval of the time series if none is given. Each sample costs the time of 100 packets.
const INTERVAL: &str = "100ms";

/// The kernel, the lab and the frames of its network do not run in less, bytes.
const MEMORY_MIN: u64 = 192 << 20;

/// The time in which a network runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum TimeArg {
    /// That of this machine.
    Real,
    /// That of a guest, in which programs compute in no time.
    Virtual,
}

/// Runs this command in a guest. `record` and `junit` are files that it writes.
pub(crate) fn run(
    network: &NetworkArgs,
    record: Option<&Path>,
    junit: Option<&Path>,
    stop: &AtomicBool,
) -> anyhow::Result<Answer> {
    let (without_meaning, memory) = network.in_virtual_time();
    if !without_meaning.is_empty() {
        let what = without_meaning.join(" and ");
        bail!(
            "{what} has no meaning with --time virtual: nothing outside of the guest can take part; leave it out"
        );
    }
    if memory.is_some_and(|memory| memory < MEMORY_MIN) {
        bail!("--memory: a guest needs at least 192MiB, with its new files; leave it out for 2GiB");
    }
    let loaded = fastpath::load_with(&network.spec, &network.reading.reading())?;
    check(&loaded.spec.topology)?;
    let directory = env::current_dir().context("the working directory")?;
    let place = match record {
        Some(path) => RecordPlace::named(&directory.join(path))?,
        None => RecordPlace::unnamed(&fastpath::name_of(&network.spec))?,
    };
    // All of a machine is not a working directory.
    let work = Some(directory.clone()).filter(|directory| directory != Path::new("/"));
    let outputs = work.into_iter().chain(junit.map(|path| directory.join(path)));
    // The log is copied there afterwards.
    let log = network.packet_log.as_ref().map(|file| directory.join(file)).filter(|file| !file.exists());
    let run = VirtualRun {
        arguments: inner(env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()),
        outputs: outputs.map(|path| (path.clone(), path)).collect(),
        hidden: place.hidden.iter().cloned().chain(log).collect(),
        seed: network.seed.or(loaded.spec.topology.seed).unwrap_or(fastpath::DEFAULT_SEED),
        memory,
        record: Some(place.path.clone()),
        directory,
    };
    let started = Instant::now();
    let result = started_run(&run, stop)?;
    if let Some(origin) = result.origin.filter(|_| place.path.join("run.json").is_file()) {
        origin.add_to(&place.path)?;
    }
    let log = place.path.join(LOG);
    if let Some(file) = network.packet_log.as_ref().filter(|_| log.is_file()) {
        let at = || format!("{}: cannot write the per-packet log", file.display());
        fs::copy(log, file).with_context(at)?;
    }
    eprintln!(
        "fastpath: {:.1} s of virtual time in {:.1} s; programs computed in no time, and a guest is not a sandbox",
        result.virtual_time.as_secs_f64(),
        started.elapsed().as_secs_f64()
    );
    if record.is_none() {
        eprintln!("fastpath: packets, log and series of the run are in {}", place.path.display());
    }
    Ok(answer(result.exit_code))
}

/// Runs a command in a guest, with its output on that of this process.
pub(super) fn started_run(
    run: &VirtualRun,
    stop: &AtomicBool,
) -> anyhow::Result<fastpath::guest_run::VirtualResult> {
    let tell = &mut |stuck: &fastpath::guest::Stuck| {
        eprintln!(
            "fastpath: no virtual time has passed for {} s: {} computes (a loop that waits on memory never ends in virtual time)",
            stuck.seconds, stuck.program
        );
    };
    Ok(run.run([&mut io::stdout(), &mut io::stderr()], stop, tell)?)
}

fn answer(code: u8) -> Answer {
    match code {
        0 => Answer::Yes,
        code => Answer::Exit(code),
    }
}

/// Returns the arguments of the command in the guest: those of this process without the options
/// that concern the guest itself, and with the record where a guest has it.
fn inner(words: Vec<String>) -> Vec<String> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (own, command) = words.split_at(end);
    let mut own = own.iter();
    let mut inner = Vec::new();
    while let Some(word) = own.next() {
        if OUTSIDE.contains(&word.as_str()) {
            own.next();
        } else if !OUTSIDE
            .iter()
            .any(|name| word.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')))
        {
            inner.push(word.clone());
        }
    }
    let has_interval = inner.iter().any(|word| word.starts_with("--record-interval"));
    inner.extend(["--record", RECORD].map(str::to_owned));
    if !has_interval {
        inner.extend(["--record-interval", INTERVAL].map(str::to_owned));
    }
    inner.extend_from_slice(command);
    inner
}

/// Returns the path of a result as the user may write it.
pub(super) fn shown(path: &str, directory: &Path) -> String {
    Path::new(path)
        .strip_prefix(directory)
        .map_or_else(|_| PathBuf::from(path), PathBuf::from)
        .display()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_guest_are_not_those_of_its_command() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for (given, expected) in [
            (
                "a.toml --time virtual --on a -- ls --time",
                "a.toml --on a --record R --record-interval 100ms -- ls --time",
            ),
            (
                "--memory=2GiB --time=virtual --record r a.toml --record-interval 1s",
                "a.toml --record-interval 1s --record R",
            ),
            ("--timex a --packet-log l", "--timex a --record R --record-interval 100ms"),
        ] {
            let expected = expected.replace("--record R", &format!("--record {RECORD}"));
            assert_eq!(inner(words(given)), words(&expected), "{given}");
        }
    }
}
