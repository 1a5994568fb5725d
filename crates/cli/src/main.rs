//! Words in, exit code out: the `fastpath` program.
//!
//! Nothing is computed here. A command is one file under `commands/`: its words as a clap struct,
//! and a `run` that calls the crates and prints. Exit codes: 0 ok, 1 the answer is no, 2 could not
//! answer.
#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
mod accounting;
mod commands;
#[cfg(target_os = "linux")]
mod network_args;
mod network_file;
mod print;
mod progress;
#[cfg(target_os = "linux")]
mod signals;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::any::TypeId;
use std::path::PathBuf;
use std::process::ExitCode;

/// A packet among a million links finds none of them in the cache; on huge pages it finds them in
/// the TLB at least.
#[cfg(target_os = "linux")]
#[global_allocator]
static HEAP: fastpath_engine::LargeBlocks = fastpath_engine::LargeBlocks;

/// Emulate networks, exactly: real programs over links and topologies you describe, live or on
/// captures.
#[derive(Parser)]
#[command(name = "fastpath", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 ok, 1 the answer is no, 2 could not answer.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[cfg(target_os = "linux")]
    Lab(commands::lab::LabCommand),
    #[cfg(target_os = "linux")]
    Run(commands::run::Run),
    #[cfg(target_os = "linux")]
    Ctl(commands::ctl::Ctl),
    #[cfg(target_os = "linux")]
    Shell(commands::shell::ShellArgs),
    #[cfg(target_os = "linux")]
    Netem(commands::netem::NetemCommand),
    Check(commands::check::Check),
    Presets(commands::presets::Presets),
    Replay(Box<commands::replay::ReplayCommand>),
    Switch(Box<commands::switch::SwitchCommand>),
    #[cfg(target_os = "linux")]
    Measure(commands::measure::MeasureCommand),
    Report(commands::report::ReportCommand),
    Model(Box<commands::model::ModelCommand>),
    Sim(commands::sim::Sim),
    Sweep(commands::sweep::SweepCommand),
    Evaluate(commands::evaluate::EvaluateCommand),
    Completions(commands::completions::Completions),
    Man(commands::man::Man),
}

/// What a command found out; what stopped it from finding out is an `Err`.
pub(crate) enum Answer {
    Yes,
    No,
    /// That of a program we ran.
    #[cfg(target_os = "linux")]
    Exit(u8),
}

fn main() -> ExitCode {
    let words = with_any_value(Cli::command()).get_matches();
    let result = match Cli::from_arg_matches(&words).unwrap_or_else(|error| error.exit()).command {
        #[cfg(target_os = "linux")]
        Command::Lab(command) => command.run(),
        #[cfg(target_os = "linux")]
        Command::Run(command) => command.run(),
        #[cfg(target_os = "linux")]
        Command::Ctl(command) => command.run(),
        #[cfg(target_os = "linux")]
        Command::Shell(command) => command.run(),
        #[cfg(target_os = "linux")]
        Command::Netem(command) => command.run(),
        Command::Check(command) => command.run(),
        Command::Presets(command) => command.run(),
        Command::Replay(command) => command.run(),
        Command::Switch(command) => command.run(),
        #[cfg(target_os = "linux")]
        Command::Measure(command) => command.run(),
        Command::Report(command) => command.run(),
        Command::Model(command) => command.run(),
        Command::Sim(command) => command.run(),
        Command::Sweep(command) => command.run(),
        Command::Evaluate(command) => command.run(),
        Command::Completions(command) => command.run(),
        Command::Man(command) => command.run(),
    };
    match result {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::FAILURE,
        #[cfg(target_os = "linux")]
        Ok(Answer::Exit(code)) => ExitCode::from(code),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fastpath: {}", explain(&error));
            ExitCode::from(2)
        }
    }
}

/// Lets options take values that begin with a hyphen: `--rate -5Mbit` is a rate that its reader
/// refuses with the reason, not an option nobody knows. Files are named as ever.
fn with_any_value(command: clap::Command) -> clap::Command {
    let is_quantity = |arg: &clap::Arg| {
        let takes_one = arg.get_action().takes_values() && arg.get_num_args().is_none_or(|n| n == 1.into());
        takes_one && !arg.is_positional() && arg.get_value_parser().type_id() != TypeId::of::<PathBuf>()
    };
    let command = command.mut_args(|arg| if is_quantity(&arg) { arg.allow_hyphen_values(true) } else { arg });
    command.mut_subcommands(with_any_value)
}

/// Prints a notice of a library to standard error.
pub(crate) fn notice(text: &str) {
    eprintln!("fastpath: {text}");
}

/// An error and its causes in one line. Many errors name their cause themselves; it is not said
/// twice.
pub(crate) fn explain(error: &anyhow::Error) -> String {
    error.chain().skip(1).map(ToString::to_string).fold(error.to_string(), |text, cause| {
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

/// The reader of our output went away (`fastpath … | head`): it has what it wanted.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}
