//! `fastpath man DIRECTORY`: manual pages, from the definitions of the help.

use crate::{Answer, Cli, examples};
use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_mangen::Man as Page;
use clap_mangen::roff::{Roff, roman};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Write the manual pages, one per command.
///
/// Read one with: man -l DIRECTORY/fastpath.1
#[derive(Args)]
pub(crate) struct Man {
    /// The directory for the pages. It is created if it does not exist.
    directory: PathBuf,
}

impl Man {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let at = self.directory.display();
        fs::create_dir_all(&self.directory)
            .with_context(|| format!("{at}: cannot create the directory; name one that can be written"))?;
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        write(&command, "", &self.directory)
            .with_context(|| format!("{at}: cannot write the manual pages; is it writable?"))?;
        Ok(Answer::Yes)
    }
}

/// Writes the page of the command with this path, and of all commands below it.
fn write(command: &clap::Command, path: &str, directory: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write(below, format!("{path} {}", below.get_name()).trim_start(), directory)?;
    }
    let page = Page::new(command.clone().override_usage(synopsis(command)));
    let mut text = Vec::new();
    page.render(&mut text)?;
    if let Some(examples) = examples::of(path) {
        let mut section = Roff::new();
        section.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in examples.lines() {
            section.text([roman(line)]);
        }
        section.control("fi", []);
        text.extend(section.render().into_bytes());
    }
    fs::write(directory.join(page.get_filename()), text)
}

/// Returns the synopsis: options with the values that they take, then positional arguments.
fn synopsis(command: &clap::Command) -> String {
    let options = command.get_arguments().filter(|arg| !arg.is_positional() && !arg.is_hide_set());
    let options = options.map(|arg| if arg.is_required_set() { arg.to_string() } else { format!("[{arg}]") });
    let positional = command.get_positionals().filter(|arg| !arg.is_hide_set());
    let positional = positional.map(|arg| match arg.is_last_set() {
        true if !arg.is_required_set() => format!("[-- {arg}]"),
        true => format!("-- {arg}"),
        false => arg.to_string(),
    });
    let below = command.has_subcommands().then(|| match command.is_subcommand_required_set() {
        true => "<COMMAND>".to_owned(),
        false => "[COMMAND]".to_owned(),
    });
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    std::iter::once(name).chain(options).chain(positional).chain(below).collect::<Vec<_>>().join(" ")
}
