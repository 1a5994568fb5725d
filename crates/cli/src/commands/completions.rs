//! `fastpath completions SHELL`: the completion script of a shell, from the same definitions as the
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
    /// The shell to complete in.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        // Through a buffer because clap_complete panics where a write fails.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "fastpath", &mut script);
        io::stdout().write_all(&script)?;
        Ok(Answer::Yes)
    }
}
