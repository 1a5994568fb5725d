//! Values of links without a description around them: changes of running links.

use crate::fields::Fields;
use crate::files::Files;
use crate::mistake::{Mistakes, Remarks};
use crate::pipe;
use crate::syntax::parse_toml;
use crate::tree::{TreeEntry, TreeTable};
use fastpath_link::Change;
use serde_json::{Map, Value};

/// Returns whether a value of a link can be given under `key`.
pub fn is_key(key: &str) -> bool {
    pipe::KEYS.contains(&key)
}

/// Returns the keys under which values of a link can be given.
pub fn keys() -> &'static [&'static str] {
    &pipe::KEYS
}

/// Reads values of a link as a spec has them (`rate = "1Mbit"`, one a line), as a change to a
/// running one. The error is every mistake in the text.
pub fn parse_change(text: &str) -> Result<Change, Mistakes> {
    let mut remarks = Remarks::new(text);
    match parse_toml(text, &mut remarks) {
        Some(document) => change_of(&document, remarks),
        None => Err(remarks.finish().unwrap_err()),
    }
}

/// Reads values of several links: a table for each, under a name that the caller knows. Returns the
/// name, its byte offset and the values, in the order of the text.
///
/// # Errors
/// Every mistake in the text.
pub fn parse_changes(text: &str) -> Result<Vec<(String, usize, Change)>, Mistakes> {
    let mut remarks = Remarks::new(text);
    let Some(document) = parse_toml(text, &mut remarks) else { return Err(remarks.finish().unwrap_err()) };
    let no_files: &Files = &|_| Err("files of values are not read here: write the values".to_owned());
    let mut changes = Vec::new();
    for (at, field) in Fields::new("the file", 0, &document).all() {
        let name = field.key.clone();
        let Some(mut fields) = field.table(format!("link {name}"), "{ delay = \"10ms\" }", &mut remarks)
        else {
            continue;
        };
        changes.push((name, at, pipe::read(&mut fields, no_files, &mut remarks)));
        fields.finish(&mut remarks);
    }
    remarks.finish().map(|_| changes)
}

/// Reads values of a link in JSON, under the keys of a spec. Text may also be a table, a list or a
/// number as a spec has it (`"{ kind = 'codel' }"`). The error is every mistake; the places in it
/// have no meaning.
pub fn change_of_json(values: &Map<String, Value>) -> Result<Change, Mistakes> {
    let mut remarks = Remarks::new("");
    let literal = |(key, value): (&String, &Value)| {
        let text = value.as_str().map(str::trim).filter(|text| pipe::is_literal(key, text));
        text.map(|text| format!("value = {text}"))
    };
    let literals: Vec<Option<String>> = values.iter().map(literal).collect();
    let mut table = TreeTable::of_json(values);
    for (entry, literal) in table.entries.iter_mut().zip(&literals) {
        let Some(literal) = literal else { continue };
        let parsed = parse_toml(literal, &mut remarks).unwrap_or_default();
        match <[TreeEntry; 1]>::try_from(parsed.entries) {
            Ok([parsed]) => entry.placed = parsed.placed,
            Err(_) => remarks.mistake(0, format!("{} is not a single value", entry.key), "write one value"),
        }
    }
    match remarks.is_clean() {
        true => change_of(&table, remarks),
        false => Err(remarks.finish().unwrap_err()),
    }
}

fn change_of(document: &TreeTable, mut remarks: Remarks) -> Result<Change, Mistakes> {
    let mut fields = Fields::new("a link", 0, document);
    let no_files: &Files = &|_| Err("files are read when a network starts: write values".to_owned());
    let change = pipe::read(&mut fields, no_files, &mut remarks);
    let named = !document.entries.is_empty();
    fields.finish(&mut remarks);
    if change == Change::default() && !named {
        remarks.mistake(0, "nothing to change", format!("write one of {}", pipe::KEYS.join(", ")));
    }
    remarks.finish().map(|_| change)
}
