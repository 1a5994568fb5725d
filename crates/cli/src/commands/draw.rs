//! `fastpath draw SPEC`: a picture of a topology.

use crate::Answer;
use crate::network_file::{ReadingArgs, load_with_warnings};
use clap::Args;
use fastpath::picture::{picture, write_picture};
use std::io::{self, Write};
use std::path::PathBuf;

/// Draw a network as SVG, PNG, Mermaid, Graphviz or draw.io.
///
/// The same network gives the same picture on every machine. A node that is added moves the other
/// nodes little. In a picture of more than 60 links, the values of a link are shown while the
/// pointer is on it.
#[derive(Args)]
pub(crate) struct Draw {
    /// The network: a spec file (TOML or JSON), an Emulab script (.ns) or a containerlab file
    /// (.yml).
    spec: PathBuf,
    #[command(flatten)]
    reading: ReadingArgs,
    /// The file to write. Its name ends in .svg, .png, .mmd, .dot or .drawio. Without this option,
    /// SVG is printed.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The title above the picture. By default the name of the spec file.
    #[arg(long)]
    title: Option<String>,
}

impl Draw {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let topology = load_with_warnings(&self.spec, &self.reading.reading())?.spec.topology;
        let title = self.title.unwrap_or_else(|| fastpath::name_of(&self.spec));
        let picture = picture(&topology, &title);
        match &self.output {
            Some(path) => write_picture(path, &picture)?,
            None => io::stdout().lock().write_all(picture.draw().svg().as_bytes())?,
        }
        Ok(Answer::Yes)
    }
}
