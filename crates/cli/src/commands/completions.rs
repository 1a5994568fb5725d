//! `fastpath completions SHELL`: the completion script of a shell, from the definitions of the
//! help.

use crate::{Answer, Cli};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::io::{self, Write};

/// Print the completion script of a shell.
///
/// For bash: fastpath completions bash > ~/.local/share/bash-completion/completions/fastpath
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        // Into a buffer first: clap_complete panics if a write fails.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "fastpath", &mut script);
        script.extend_from_slice(names_of(self.shell).as_bytes());
        io::stdout().write_all(&script)?;
        Ok(Answer::Yes)
    }
}

/// Returns the end of the script of a shell: names of running labs, links and hosts, which the
/// hidden command `complete` prints.
fn names_of(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => include_str!("completions/names.bash"),
        Shell::Fish => include_str!("completions/names.fish"),
        Shell::Zsh => include_str!("completions/names.zsh"),
        _ => "",
    }
}
