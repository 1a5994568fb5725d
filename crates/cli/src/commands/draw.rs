//! `fastpath draw SPEC`: a picture of a topology.

use crate::Answer;
use crate::network_file::{ReadingArgs, load_with_warnings};
use clap::{Args, ValueEnum};
use fastpath::Reading;
use fastpath::picture::{Layout, check_positions, picture_in, write_picture};
use std::io::{self, Write};
use std::path::PathBuf;

/// Draw a network as SVG, PNG, Mermaid, Graphviz or draw.io.
///
/// The same network gives the same picture on every machine. A node that is added moves the other
/// nodes little. Links bend around nodes that they do not join. What a lab cannot run is drawn: a
/// network without hosts, and nodes of any kind of containerlab. In a picture of more than 160
/// links, the values of a link are shown while the pointer is on it.
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
    /// How nodes are placed.
    #[arg(long, value_enum, default_value_t = LayoutArg::Auto)]
    layout: LayoutArg,
    /// The title above the picture. By default the name of the spec file.
    #[arg(long)]
    title: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum LayoutArg {
    /// At the positions of the nodes if all have one, in layers where there are any, else by
    /// distances.
    Auto,
    /// In layers: hosts below, each node above those that it joins.
    Layers,
    /// So that distances are those of the shortest paths.
    Force,
    /// At the positions of the nodes; others are near their neighbours.
    Given,
}

impl LayoutArg {
    fn layout(self) -> Layout {
        match self {
            LayoutArg::Auto => Layout::Auto,
            LayoutArg::Layers => Layout::Layers,
            LayoutArg::Force => Layout::Force,
            LayoutArg::Given => Layout::Given,
        }
    }
}

impl Draw {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let reading = Reading { to_draw: true, ..self.reading.reading() };
        let topology = load_with_warnings(&self.spec, &reading)?.spec.topology;
        let title = self.title.unwrap_or_else(|| fastpath::name_of(&self.spec));
        let picture = picture_in(&topology, &title, self.layout.layout());
        check_positions(&picture, &self.spec)?;
        match &self.output {
            Some(path) => write_picture(path, &picture)?,
            None => io::stdout().lock().write_all(picture.draw().svg().as_bytes())?,
        }
        Ok(Answer::Yes)
    }
}
