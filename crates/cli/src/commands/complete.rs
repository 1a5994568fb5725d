//! `fastpath complete`: names of running labs, links and hosts, for completion scripts.

use crate::Answer;
use clap::Args;
use std::io::{self, Write};

/// Print the names that may follow the words of a command line, one per line.
#[derive(Args)]
#[command(hide = true)]
pub(crate) struct Complete {
    /// The words after the name of the program.
    #[arg(last = true)]
    words: Vec<String>,
}

impl Complete {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        // Shells separate names by lines.
        let names = crate::completion::names(&self.words);
        for name in names.iter().filter(|name| !name.contains(char::is_control)) {
            writeln!(io::stdout(), "{name}")?;
        }
        Ok(Answer::Yes)
    }
}
