//! `fastpath man DIRECTORY`: manual pages, from the definitions of the help.

use crate::{Answer, Cli};
use anyhow::Context;
use clap::{Args, CommandFactory};
use std::fs;
use std::path::PathBuf;

/// Write the manual pages, one per command.
///
/// Read one with: man -l DIRECTORY/fastpath.1
#[derive(Args)]
pub(crate) struct Man {
    /// The directory of the pages; created if it does not exist.
    directory: PathBuf,
}

impl Man {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let at = self.directory.display();
        fs::create_dir_all(&self.directory)
            .with_context(|| format!("{at}: cannot create the directory; name one that can be written"))?;
        clap_mangen::generate_to(Cli::command(), &self.directory)
            .with_context(|| format!("{at}: cannot write the manual pages; is it writable?"))?;
        Ok(Answer::Yes)
    }
}
