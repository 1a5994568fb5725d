//! Texts in TOML and JSON as trees, with every mistake of syntax.
//!
//! The TOML is parsed with the `toml` crate's `DeTable`: it has the place of every key and value,
//! and reports all syntax errors of a file. serde would stop at the first mistake.

use crate::hints::first_line_of_yaml;
use crate::json;
use crate::mistake::Remarks;
use crate::tree::{Placed, Tree, TreeTable};
use toml::de::DeTable;

/// Parses TOML; every mistake of syntax is remarked.
pub(crate) fn parse_toml<'t>(text: &'t str, remarks: &mut Remarks) -> Option<TreeTable<'t>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Some(TreeTable::of_toml(document.into_inner()));
    }
    // The recovered part is incomplete: checks would report missing things that are in the file.
    if let Some(at) = first_line_of_yaml(text) {
        let instead =
            "write TOML ([host.a], then [[link]] with between = [\"a\", \"b\"]), or JSON in a .json file";
        remarks.mistake(at, "this is YAML, and a spec is TOML", instead);
        return None;
    }
    for error in &errors {
        let at = error.span().map_or(0, |span| span.start);
        remarks.mistake(at, format!("this is not TOML: {}", error.message()), syntax_advice(error.message()));
    }
    None
}

/// Parses a description in JSON.
pub(crate) fn parse_json<'t>(text: &'t str, remarks: &mut Remarks) -> Option<TreeTable<'t>> {
    match json::parse(text) {
        Ok(Placed { value: Tree::Table(table), .. }) => Some(table),
        Ok(Placed { at, .. }) => {
            remarks.mistake(at, "a description is an object", "write { \"nodes\": [ … ], \"links\": [ … ] }");
            None
        }
        Err(error) => {
            remarks.mistake(error.at, format!("this is not JSON: {}", error.what), error.instead);
            None
        }
    }
}

/// What to write where the TOML parser complains.
fn syntax_advice(message: &str) -> &'static str {
    let advice = [
        ("must be quoted", "write it in \"quotes\""),
        ("duplicate key", "write it once"),
        ("unclosed", "write the closing bracket or quote"),
    ];
    let found = advice.iter().find(|(symptom, _)| message.contains(symptom));
    found.map_or("write KEY = VALUE, text in \"quotes\"", |(_, advice)| advice)
}
