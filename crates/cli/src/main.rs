//! The `fastpath` program: arguments in, exit code out.
//!
//! Nothing is computed here. A command is one file under `commands/`: its arguments as a clap
//! struct, and a `run` that calls the library and prints. Exit codes: 0 ok, 1 the answer is no, 2
//! could not answer.
#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
mod accounting;
mod commands;
#[cfg(target_os = "linux")]
mod completion;
mod data_path_arg;
mod examples;
#[cfg(target_os = "linux")]
mod extcap;
#[cfg(target_os = "linux")]
mod lab_words;
#[cfg(target_os = "linux")]
mod network_args;
mod network_file;
mod progress;
mod separator;
#[cfg(target_os = "linux")]
mod signals;
mod view;
#[cfg(test)]
mod words;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser};
use commands::Command;
use fastpath_spec::mistake::printable;
use std::any::TypeId;
use std::path::PathBuf;
use std::process::ExitCode;

/// Puts large blocks on huge pages: with a million links a packet misses every cache, but not the
/// TLB.
#[cfg(target_os = "linux")]
#[global_allocator]
static HEAP: fastpath_engine::LargeBlocks = fastpath_engine::LargeBlocks;

/// Emulate, switch, measure, model and simulate packet-processing systems.
#[derive(Parser)]
#[command(name = "fastpath", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 ok, 1 the answer is no, 2 could not answer.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The answer of a command. If there is no answer, the reason is an `Err`.
pub(crate) enum Answer {
    Yes,
    No,
    /// The exit code of a program that the command ran.
    #[cfg(target_os = "linux")]
    Exit(u8),
    /// The machine disturbed the measurement, so there is none.
    #[cfg(target_os = "linux")]
    Disturbed,
}

/// Suggests for an unknown command the one of that name in a group: `lab exec` for `exec`. Removes
/// suggestions of commands that end something (`ctl top` is not meant as `ctl stop`), and of the
/// one that Wireshark runs.
fn suggest(error: &mut clap::Error, root: &clap::Command) {
    let unknown = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(name)) => name.clone(),
        _ => return,
    };
    let names = match error.remove(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(names)) => names,
        _ => Vec::new(),
    };
    let is_of_root = std::env::args().nth(1).as_ref() == Some(&unknown);
    let mut names = suggestions(&unknown, names, root, is_of_root);
    names.retain(|name| !["stop", "down", "extcap"].contains(&name.as_str()));
    if !names.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
    }
}

/// The commands of groups that have the name of an unknown command; without one the similar ones.
fn suggestions(unknown: &str, similar: Vec<String>, root: &clap::Command, is_of_root: bool) -> Vec<String> {
    let groups =
        root.get_subcommands().filter(|group| is_of_root && group.find_subcommand(unknown).is_some());
    let of_groups: Vec<String> = groups.map(|group| format!("{} {unknown}", group.get_name())).collect();
    if of_groups.is_empty() { similar } else { of_groups }
}

fn main() -> ExitCode {
    let given = words_given();
    #[cfg(target_os = "linux")]
    if let Some(code) = extcap::quick(&given) {
        return code;
    }
    let mut root = command();
    let words = root.try_get_matches_from_mut(given).unwrap_or_else(|mut error| {
        let words: Vec<String> =
            std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        if let Some(instead) = separator::missing(&error, &root, &words) {
            eprintln!("fastpath: {}", printable(&instead));
            std::process::exit(2);
        }
        suggest(&mut error, &root);
        error.exit()
    });
    let Cli { command } = Cli::from_arg_matches(&words).unwrap_or_else(|error| error.exit());
    match command.run() {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::FAILURE,
        #[cfg(target_os = "linux")]
        Ok(Answer::Exit(code)) => ExitCode::from(code),
        #[cfg(target_os = "linux")]
        Ok(Answer::Disturbed) => ExitCode::from(2),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fastpath: {}", printable(&explain(&error)));
            ExitCode::from(2)
        }
    }
}

/// The words of the command line.
fn words_given() -> Vec<std::ffi::OsString> {
    #[cfg(target_os = "linux")]
    return extcap::arguments(std::env::args_os());
    #[cfg(not(target_os = "linux"))]
    return std::env::args_os().collect();
}

/// Returns the definition of the command line, with the examples of every help page.
pub(crate) fn command() -> clap::Command {
    examples::append(with_any_value(Cli::command()), "")
}

/// Lets options take values that begin with a hyphen. `--rate -5Mbit` is then refused by the reader
/// of rates with the reason, not as an unknown option. File names are not affected.
fn with_any_value(command: clap::Command) -> clap::Command {
    let is_quantity = |arg: &clap::Arg| {
        let takes_one = arg.get_action().takes_values() && arg.get_num_args().is_none_or(|n| n == 1.into());
        takes_one && !arg.is_positional() && arg.get_value_parser().type_id() != TypeId::of::<PathBuf>()
    };
    let command = command.mut_args(|arg| if is_quantity(&arg) { arg.allow_hyphen_values(true) } else { arg });
    command.mut_subcommands(with_any_value)
}

/// Formats an error and its causes in one line. A cause that the error names itself is not
/// repeated.
pub(crate) fn explain(error: &anyhow::Error) -> String {
    error.chain().skip(1).map(ToString::to_string).fold(error.to_string(), |text, cause| {
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

/// Whether the reader of standard output has closed it (`fastpath … | head`).
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_a_group_is_suggested_by_its_whole_name() {
        let root = command();
        let similar = || vec!["extcap".to_owned()];
        assert_eq!(suggestions("exec", similar(), &root, true), ["lab exec"]);
        assert_eq!(suggestions("fit", Vec::new(), &root, true), ["model fit"]);
        assert_eq!(suggestions("chekc", vec!["check".to_owned()], &root, true), ["check"]);
        assert_eq!(suggestions("exec", Vec::new(), &root, false), [""; 0]);
    }
}
