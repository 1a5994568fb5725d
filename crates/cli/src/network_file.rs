//! Loads network descriptions for commands, with their warnings on standard error.

use clap::{Args, ValueEnum};
use fastpath::{Loaded, Reading, at};
use fastpath_spec::Warning;
use fastpath_spec::mistake::Code;
use std::path::{Path, PathBuf};

/// The heading of the options that concern files of other lab tools.
const LABFILES: &str = "Containerlab files";

/// How a description is read.
#[derive(Args)]
pub(crate) struct ReadingArgs {
    /// Take every warning about the description as a mistake, and refuse to start a network whose
    /// traffic this machine is predicted not to carry.
    #[arg(long)]
    strict: bool,
    /// Run only nodes of these kinds. The other nodes are stubs: their links exist and lead
    /// nowhere.
    #[arg(long, alias = "only", value_name = "KIND", help_heading = LABFILES)]
    kinds: Option<Kinds>,
    /// Run a container for each host that has an image (run), or run all hosts as namespaces with
    /// the programs of this machine (ignore). By default images are run.
    #[arg(long, value_name = "USE", help_heading = LABFILES)]
    images: Option<Images>,
    /// Read link values from this file. A table sets a link (`[a-b]`), one direction by the
    /// endpoint where it starts (`["a:eth1"]`), or all links (`["*"]`).
    #[arg(long, value_name = "FILE.toml", help_heading = LABFILES)]
    impair: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kinds {
    /// The kinds without an image of a vendor: linux, bridge, ovs-bridge and ext-container.
    Linux,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Images {
    /// Hosts with an image are containers.
    Run,
    /// All hosts are namespaces.
    Ignore,
}

impl ReadingArgs {
    pub(crate) fn reading(&self) -> Reading {
        Reading {
            only_linux: self.kinds == Some(Kinds::Linux),
            ignore_images: self.images == Some(Images::Ignore),
            impairments: self.impair.clone(),
            strict: self.strict,
            to_draw: false,
        }
    }
}

/// Loads a description. Prints its warnings to standard error, except about values that were chosen
/// because none is given: the documentation has these, and `fastpath check` prints them.
pub(crate) fn load_with_warnings(path: &Path, reading: &Reading) -> anyhow::Result<Loaded> {
    let loaded = fastpath::load_with(path, reading)?;
    let shown = loaded.warnings.iter().filter(|warning| is_about_words(warning));
    shown.for_each(|warning| eprintln!("{}", at(path, warning)));
    Ok(loaded)
}

/// Whether a warning concerns something that is written in a description.
pub(crate) fn is_about_words(warning: &Warning) -> bool {
    warning.code != Code::Default
}
