//! Loads network descriptions for commands, with their warnings on standard error.

use clap::{Args, ValueEnum};
use fastpath::{Loaded, Reading, at};
use std::path::{Path, PathBuf};

/// How files of other lab tools are read.
#[derive(Args)]
pub(crate) struct ReadingArgs {
    /// Run the nodes of a containerlab file that need no image of a vendor. The others are stubs:
    /// links to them exist and lead nowhere.
    #[arg(long, value_name = "KIND")]
    only: Option<Only>,
    /// What the images of a containerlab file are for. Without them hosts are namespaces with the
    /// programs of this machine.
    #[arg(long, value_name = "USE")]
    images: Option<Images>,
    /// Values of the links of a containerlab file (TOML): a table for each link (\[a-b]), for what
    /// leaves an endpoint (\["a:eth1"]), or for all (\["*"]).
    #[arg(long, value_name = "FILE.toml")]
    impair: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Only {
    /// Kinds linux, bridge, ovs-bridge and ext-container.
    Linux,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Images {
    /// Hosts are containers of them.
    Run,
    /// Hosts are namespaces.
    Ignore,
}

impl ReadingArgs {
    pub(crate) fn reading(&self) -> Reading {
        Reading {
            only_linux: self.only == Some(Only::Linux),
            ignore_images: self.images == Some(Images::Ignore),
            impairments: self.impair.clone(),
        }
    }
}

/// Loads a description. Prints its warnings to standard error.
pub(crate) fn load_with_warnings(path: &Path, reading: &Reading) -> anyhow::Result<Loaded> {
    let loaded = fastpath::load_with(path, reading)?;
    loaded.warnings.iter().for_each(|warning| eprintln!("{}", at(path, warning)));
    Ok(loaded)
}
