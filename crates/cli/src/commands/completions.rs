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
        io::stdout().write_all(&script)?;
        Ok(Answer::Yes)
    }
}
