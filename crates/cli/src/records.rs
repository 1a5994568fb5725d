//! Records (JSON lines) as a table: one row per record, one column per number or word of its
//! `parameters` and `results`, so that a model can be fitted to what was just measured.

use anyhow::{Context, ensure};
use fastpath_model::fcs::{self, Fcs};
use serde_json::{Map, Value};
use std::fmt::Write;

/// The parts of a record that make up its row.
const PARTS: [&str; 2] = ["parameters", "results"];

/// Reads JSON lines, one record each.
pub(crate) fn parse(text: &str) -> anyhow::Result<Vec<Value>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(i, line)| {
            serde_json::from_str(line)
                .with_context(|| format!("line {}: not a record (one JSON object)", i + 1))
        })
        .collect()
}

/// The table of all records whose kind is the first one's; columns in the order of the first
/// record.
pub(crate) fn csv(text: &str) -> anyhow::Result<String> {
    let records = parse(text)?;
    let kind = records.first().and_then(|r| r.get("kind")).cloned();
    let rows: Vec<Map<String, Value>> =
        records.iter().filter(|r| r.get("kind").cloned() == kind).map(row).collect();
    let columns: Vec<&String> = rows.first().map(|row| row.keys().collect()).unwrap_or_default();
    ensure!(
        !columns.is_empty(),
        "no record with `parameters` and `results`: measure with `fastpath measure`"
    );
    let mut csv = columns.iter().map(|name| cell(name)).collect::<Vec<_>>().join(",");
    for row in &rows {
        let cells = columns.iter().map(|name| match row.get(*name) {
            Some(Value::String(text)) => cell(text),
            Some(value) => value.to_string(),
            None => String::new(),
        });
        write!(csv, "\n{}", cells.collect::<Vec<_>>().join(","))?;
    }
    csv.push('\n');
    Ok(csv)
}

/// The numbers and words of one record.
fn row(record: &Value) -> Map<String, Value> {
    let parts = PARTS.iter().filter_map(|part| record.get(part)?.as_object());
    let scalars = parts.flatten().filter(|(_, value)| value.is_number() || value.is_string());
    let mut row: Map<String, Value> = scalars.map(|(name, value)| (name.clone(), value.clone())).collect();
    if record["kind"] == "pipeline" {
        // So it always was; older records do not say.
        row.entry(fcs::COLUMN).or_insert_with(|| Value::String(Fcs::Without.to_string()));
    }
    row
}

/// A text as a CSV cell.
fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n', ';']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_become_a_table_of_their_numbers_and_words() {
        let text = r#"{"kind":"pipeline","parameters":{"p":64,"h":2,"program":"a, b"},"results":{"T_ns":50.5,"stages":[1,2]}}
            {"kind":"host","results":{"x":1}}
            {"kind":"pipeline","parameters":{"p":128,"h":2,"program":"c"},"results":{"T_ns":51.5}}"#;
        let table = csv(text).unwrap();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 3);
        let names: Vec<&str> = lines[0].split(',').collect();
        assert_eq!(names.len(), 5, "{table}");
        assert!(names.contains(&"fcs") && lines[2].contains("without"), "{table}");
        assert!(lines[1].contains("\"a, b\""), "{table}");
    }

    #[test]
    fn text_that_holds_no_record_is_refused_with_its_line() {
        assert!(format!("{:#}", csv("{\"kind\":1}\nx").unwrap_err()).starts_with("line 2: not a record"));
        assert!(csv("{}").is_err());
    }
}
