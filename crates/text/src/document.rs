//! A whole TOML file as a tree. Every syntax error is reported.

use crate::hints::first_line_of_yaml;
use crate::mistake::Remarks;
use crate::tree::TreeTable;
use toml::de::DeTable;

/// Parses a TOML file. Returns `None` after syntax errors, which are then in `remarks`. `kind` is
/// the file in a message: `a spec`. `start` says what to write where the file is YAML.
///
/// The parser is the `toml` crate's `DeTable`: it has the place of every key and value, and reports
/// all syntax errors of a file. serde would stop at the first mistake.
pub fn toml<'t>(text: &'t str, kind: &str, start: &str, remarks: &mut Remarks) -> Option<TreeTable<'t>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Some(TreeTable::of_toml(document.into_inner()));
    }
    // The recovered part is incomplete: checks would report missing things that are in the file.
    if let Some(at) = first_line_of_yaml(text) {
        remarks.mistake(at, format!("this is YAML, and {kind} is TOML"), start);
        return None;
    }
    for error in &errors {
        let at = error.span().map_or(0, |span| span.start);
        remarks.mistake(at, format!("this is not TOML: {}", error.message()), syntax_advice(error.message()));
    }
    None
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
