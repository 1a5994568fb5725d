//! What `fastpath presets` prints: kinds of access, with their values and sources.

use super::{Render, json_line};
use fastpath_report::text::table;
use fastpath_spec::preset::{self, Preset};
use serde_json::{Value, json};
use std::io::{self, Write};

/// All presets of links.
pub(crate) struct Presets;

impl Render for Presets {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = table(["preset", "up", "down", "what it is"]);
        for preset in preset::all() {
            table.add_row([&preset.name, &preset.up_text, &preset.down_text, &preset.title]);
        }
        writeln!(out, "{table}\n\nSources, and what was derived from them:")?;
        for Preset { name, source, derived, .. } in preset::all() {
            writeln!(out, "  {name}: {source}. {derived}.")?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let object = |preset: &Preset| -> Value {
            let Preset { name, title, source, derived, up_text, down_text, .. } = preset;
            json!({ "name": name, "title": title, "up": up_text, "down": down_text, "source": source, "derived": derived })
        };
        json_line(out, &preset::all().iter().map(object).collect::<Vec<_>>())
    }
}
