//! Reads the maps of YAML as tables, with messages in the words of YAML.

use crate::yaml::{Yaml, kind};
use fastpath_text::fields::Fields;
use fastpath_text::mistake::Remarks;
use fastpath_text::tree::{Tree, TreeTable};
use std::ops::RangeInclusive;

/// Begins to read a map. Nothing at all is an empty map; another value is a mistake.
pub(crate) fn map<'y>(what: impl Into<String>, yaml: &'y Yaml<'y>, remarks: &mut Remarks) -> Fields<'y> {
    const EMPTY: &TreeTable<'static> = &TreeTable { entries: Vec::new() };
    let what = what.into();
    let table = match &yaml.value {
        Tree::Table(table) => table,
        Tree::Null => EMPTY,
        _ => {
            remarks.mistake(yaml.at, format!("{what} is {}, not a map", kind(yaml)), "write KEY: VALUE");
            EMPTY
        }
    };
    Fields::new(what, yaml.at, table)
}

/// Returns the text under a key of a map. Another value is a mistake.
pub(crate) fn text_of<'y>(fields: &mut Fields<'y>, key: &str, remarks: &mut Remarks) -> Option<&'y str> {
    text(fields.placed(key)?, key, remarks)
}

/// Returns a scalar as text. Another value is a mistake.
pub(crate) fn text<'y>(yaml: &'y Yaml<'y>, key: &str, remarks: &mut Remarks) -> Option<&'y str> {
    let text = yaml.scalar();
    if text.is_none() {
        remarks.mistake(yaml.at, format!("{key} is {}, not text", kind(yaml)), format!("write {key}: TEXT"));
    }
    text
}

/// Returns the texts of a list with their places. One text is a list of it.
pub(crate) fn texts<'y>(yaml: &'y Yaml<'y>, key: &str, remarks: &mut Remarks) -> Vec<(usize, &'y str)> {
    let elements = match &yaml.value {
        Tree::Array(list) => list.iter().collect(),
        Tree::Null => Vec::new(),
        _ => vec![yaml],
    };
    let read = |yaml: &&'y Yaml<'y>| Some((yaml.at, text(yaml, key, remarks)?));
    elements.iter().filter_map(read).collect()
}

/// Returns the entries of a map of texts, each with its place. Nothing under a key is empty text.
pub(crate) fn pairs<'y>(
    yaml: &'y Yaml<'y>,
    key: &str,
    remarks: &mut Remarks,
) -> Vec<(usize, &'y str, &'y str)> {
    let fields = map(key, yaml, remarks);
    let mut pairs = Vec::new();
    for entry in &fields.source().entries {
        let value = if entry.placed.is_null() { Some("") } else { text(&entry.placed, &entry.key, remarks) };
        pairs.extend(value.map(|value| (entry.key_at, &*entry.key, value)));
    }
    pairs
}

/// Returns a whole number in a range. Another value is a mistake.
pub(crate) fn whole(
    yaml: &Yaml,
    key: &str,
    range: RangeInclusive<u32>,
    remarks: &mut Remarks,
) -> Option<u32> {
    let number = match &yaml.value {
        Tree::Integer(number) => number.digits.parse().ok().filter(|number| range.contains(number)),
        _ => None,
    };
    if number.is_none() {
        let what = format!("{key} is not a whole number from {} to {}", range.start(), range.end());
        remarks.mistake(yaml.at, what, format!("write {key}: {}", range.start()));
    }
    number
}

/// Returns a truth value, as Python's readers of YAML know them. `None`: it is another value.
pub(crate) fn truth(yaml: &Yaml) -> Option<bool> {
    match yaml.scalar()? {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Returns the truth value under a key of a map; false if there is none. Another value is a
/// mistake.
pub(crate) fn truth_of(fields: &mut Fields, key: &str, remarks: &mut Remarks) -> bool {
    let Some(yaml) = fields.placed(key) else { return false };
    truth(yaml).unwrap_or_else(|| {
        remarks.mistake(yaml.at, format!("{key} is neither true nor false"), format!("write {key}: true"));
        false
    })
}
