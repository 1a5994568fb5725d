//! Texts of descriptions in TOML and JSON as trees, with every mistake of syntax.

use crate::mistake::Remarks;
use crate::tree::{Placed, Tree, TreeTable};
use crate::{document, json};

/// Parses TOML; every mistake of syntax is remarked.
pub(crate) fn parse_toml<'t>(text: &'t str, remarks: &mut Remarks) -> Option<TreeTable<'t>> {
    let start = "write TOML ([host.a], then [[link]] with between = [\"a\", \"b\"]), or JSON in a .json file";
    document::toml(text, "a spec", start, remarks)
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
