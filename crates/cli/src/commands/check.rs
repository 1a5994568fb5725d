//! `fastpath check SPEC`: reports every mistake of a description at once, or summarises the
//! description.

use crate::Answer;
use crate::network_file::ReadingArgs;
use clap::Args;
use fastpath::check_text::{json, summary, track_line};
use fastpath_spec::mistake::printable;
use fastpath_spec::{NetworkSpec, json_schema};
use std::io::{self, Write};
use std::path::PathBuf;

/// Check a network description and report every mistake
#[derive(Args)]
pub(crate) struct Check {
    /// The network: a spec (TOML or .json), an Emulab script (.ns) or a containerlab file (.yml)
    #[arg(required_unless_present = "schema")]
    spec: Option<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Print one JSON object: the resolved topology, mistakes and warnings
    #[arg(long)]
    json: bool,
    /// Print the JSON Schema of descriptions and exit
    #[arg(long, conflicts_with_all = ["spec", "json"])]
    schema: bool,
}

impl Check {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let mut out = io::stdout().lock();
        let Some(path) = &self.spec else {
            writeln!(out, "{:#}", json_schema())?;
            return Ok(Answer::Yes);
        };
        let checked = fastpath::check_with(path, &self.reading.reading())?;
        let answer = if checked.value.is_some() { Answer::Yes } else { Answer::No };
        if self.json {
            writeln!(out, "{}", json(&checked))?;
            return Ok(answer);
        }
        for mistake in &checked.mistakes {
            writeln!(out, "{}", fastpath::at(path, mistake))?;
        }
        if let Some(NetworkSpec { topology, .. }) = &checked.value {
            for warning in &checked.warnings {
                writeln!(out, "{}", fastpath::at(path, warning))?;
            }
            let name = path.display().to_string();
            writeln!(out, "{}: ok: {}", printable(&name), summary(topology))?;
            for track in &topology.tracks {
                writeln!(out, "{}", printable(&track_line(topology, track)))?;
            }
        }
        Ok(answer)
    }
}
