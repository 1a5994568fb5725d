//! `--time virtual`: the command of this program, again, in a guest.

use crate::Answer;
use crate::network_args::NetworkArgs;
use anyhow::{Context, bail};
use clap::ValueEnum;
use fastpath::virtual_time::{VirtualRun, check};
use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Options that are not those of the command in the guest.
const OUTSIDE: [&str; 2] = ["--time", "--memory"];

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
    let loaded = fastpath::load_with(&network.spec, &network.reading.reading())?;
    check(&loaded.spec.topology)?;
    let directory = env::current_dir().context("the working directory")?;
    let outputs = [record, junit, network.packet_log.as_deref()];
    let outputs = outputs.into_iter().flatten().map(|path| directory.join(path));
    // All of a machine is not a working directory.
    let work = Some(directory.clone()).filter(|directory| directory != Path::new("/"));
    let run = VirtualRun {
        arguments: inner(env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()),
        outputs: work.into_iter().chain(outputs).map(|path| (path.clone(), path)).collect(),
        hidden: Vec::new(),
        seed: network.seed.or(loaded.spec.topology.seed).unwrap_or(fastpath::DEFAULT_SEED),
        memory,
        is_recorded: record.is_some(),
        directory,
    };
    let started = Instant::now();
    let result = started_run(&run, stop)?;
    if let (Some(origin), Some(record)) = (&result.origin, record)
        && record.join("run.json").is_file()
    {
        origin.add_to(record)?;
    }
    eprintln!(
        "fastpath: {:.1} s of virtual time in {:.1} s; programs computed in no time, and a guest is not a sandbox",
        result.virtual_time.as_secs_f64(),
        started.elapsed().as_secs_f64()
    );
    Ok(answer(result.exit_code))
}

/// Runs a command in a guest, with its output on that of this process.
pub(super) fn started_run(
    run: &VirtualRun,
    stop: &AtomicBool,
) -> anyhow::Result<fastpath::virtual_time::VirtualResult> {
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
/// that concern the guest itself.
fn inner(words: Vec<String>) -> Vec<String> {
    let mut words = words.into_iter();
    let mut inner = Vec::new();
    while let Some(word) = words.next() {
        if word == "--" {
            inner.push(word);
            inner.extend(words);
            break;
        }
        if OUTSIDE.contains(&word.as_str()) {
            words.next();
        } else if !OUTSIDE
            .iter()
            .any(|name| word.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')))
        {
            inner.push(word);
        }
    }
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
            ("lab run a.toml --time virtual --on a -- ls --time", "lab run a.toml --on a -- ls --time"),
            ("lab run --memory=2GiB --time=virtual a.toml", "lab run a.toml"),
            ("lab run --timex a", "lab run --timex a"),
        ] {
            assert_eq!(inner(words(given)), words(expected), "{given}");
        }
    }
}
