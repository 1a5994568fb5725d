//! `fastpath presets`: kinds of access by name, with their values and sources.

use crate::Answer;
use clap::Args;
use fastpath_report::text::table;
use fastpath_spec::preset::{self, Preset};
use serde_json::json;
use std::io::{self, Write};

/// Show the presets of links with their values and sources.
///
/// A preset is used in a spec (`preset = "lte"`) or by `fastpath shell --preset lte`.
#[derive(Args)]
pub(crate) struct Presets {
    /// Print one JSON array.
    #[arg(long)]
    json: bool,
}

impl Presets {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let mut out = io::stdout().lock();
        if self.json {
            let all: Vec<_> = preset::all().iter().map(as_json).collect();
            writeln!(out, "{}", serde_json::to_string(&all)?)?;
            return Ok(Answer::Yes);
        }
        let mut table = table(["preset", "up", "down", "what it is"]);
        for preset in preset::all() {
            table.add_row([&preset.name, &preset.up_text, &preset.down_text, &preset.title]);
        }
        writeln!(out, "{table}\n\nSources, and what was derived from them:")?;
        for Preset { name, source, derived, .. } in preset::all() {
            writeln!(out, "  {name}: {source}. {derived}.")?;
        }
        Ok(Answer::Yes)
    }
}

fn as_json(preset: &Preset) -> serde_json::Value {
    let Preset { name, title, source, derived, up_text, down_text, .. } = preset;
    json!({ "name": name, "title": title, "up": up_text, "down": down_text, "source": source, "derived": derived })
}
