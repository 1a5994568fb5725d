//! Records without a section of their own: a table of their parameters and results, a column each.

use crate::text::number;
use crate::values::{word, words};
use crate::{Grid, Section};
use fastpath_record::Measurement;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Maximum number of records in one table.
const RECORDS_MAX: usize = 8;

pub(super) fn section(kind: &str, records: &[&Measurement]) -> Section {
    let mut letters = kind.chars();
    let title = letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>());
    Section {
        title: title.unwrap_or_else(|| "Records without a kind".to_owned()),
        notes: vec![],
        charts: vec![],
        tables: records.chunks(RECORDS_MAX).map(table).collect(),
    }
}

/// The table of a few records. A result that one of them lacks is a dash there.
fn table(records: &[&Measurement]) -> Grid {
    let columns: Vec<BTreeMap<String, String>> = records
        .iter()
        .map(|record| {
            let mut found = BTreeMap::new();
            flatten("", &record.results, &mut found);
            found
        })
        .collect();
    let names: Vec<&String> = {
        let all: BTreeMap<&String, ()> = columns.iter().flatten().map(|(name, _)| (name, ())).collect();
        all.into_keys().collect()
    };
    let rows = names.into_iter().map(|name| {
        let cells = columns.iter().map(|found| found.get(name).map_or("–", String::as_str).to_owned());
        std::iter::once(name.clone()).chain(cells).collect()
    });
    let titles = records.iter().map(|record| {
        let set =
            record.parameters.iter().map(|(name, value)| format!("{} {}", words(name), word(Some(value))));
        set.collect::<Vec<_>>().join("; ")
    });
    Grid::new(std::iter::once("result".to_owned()).chain(titles), rows)
}

/// Collects the numbers and words of a tree under their paths in words: `lookup, ns: compiled`.
fn flatten(path: &str, tree: &Map<String, Value>, found: &mut BTreeMap<String, String>) {
    for (name, value) in tree {
        let path = if path.is_empty() { words(name) } else { format!("{path}: {}", words(name)) };
        let text = match value {
            Value::Object(below) => {
                flatten(&path, below, found);
                continue;
            }
            Value::Number(value) => number(value.as_f64().unwrap_or(f64::NAN)),
            Value::String(_) | Value::Bool(_) => word(Some(value)),
            Value::Null | Value::Array(_) => continue,
        };
        found.insert(path, text);
    }
}
