//! Impairments of what leaves a node by a link: `tc: {delay: 10ms, loss: 1, rate: 1000}`.
//!
//! netlab runs netem with them: times are milliseconds without a unit, chances are percent, and the
//! rate is in kbit/s (netlab, `links.md`, "Link Impairment").

use crate::yaml::Yaml;
use fastpath_link::Change;
use fastpath_spec::change_of_json;
use fastpath_text::fields::Fields;
use fastpath_text::mistake::Remarks;
use fastpath_text::tree::{Tree, TreeTable};
use serde_json::{Map, Value, json};

/// The largest time, in milliseconds.
const TIME_MAX_MS: f64 = 3_600_000.0;
/// The largest rate, in kbit/s.
const RATE_MAX: u64 = 1_000_000_000;

/// Reads the values of `tc`, which stands at a byte offset.
pub(super) fn change(at: usize, table: &TreeTable, remarks: &mut Remarks) -> Change {
    let mut fields = Fields::new("tc", at, table);
    let mut given: Map<String, Value> = Map::new();
    if let Some(delay) = fields.placed("delay").and_then(|yaml| time(yaml, "delay", remarks)) {
        given.insert("delay".to_owned(), json!(delay));
    }
    if let Some(jitter) = fields.placed("jitter").and_then(|yaml| time(yaml, "jitter", remarks)) {
        // netem's jitter is uniform, and later packets may overtake.
        let uniform = json!({ "law": "uniform", "half_width": jitter, "reorder": "allow" });
        given.insert("jitter".to_owned(), if jitter == "0ms" { json!("none") } else { uniform });
    }
    for key in ["loss", "corrupt", "duplicate", "reorder"] {
        if let Some(chance) = fields.placed(key).and_then(|yaml| percent(yaml, key, remarks)) {
            given.insert(key.to_owned(), json!(chance));
        }
    }
    if let Some(rate) = fields.placed("rate").and_then(|yaml| rate(yaml, remarks)) {
        given.insert("rate".to_owned(), json!(rate));
        // netem's default.
        given.insert("queue".to_owned(), json!("1000p"));
    }
    fields.finish(remarks);
    if given.is_empty() {
        return Change::default();
    }
    change_of_json(&given).unwrap_or_else(|mistakes| {
        for mistake in mistakes {
            remarks.mistake(at, format!("tc: {}", mistake.what), mistake.instead);
        }
        Change::default()
    })
}

/// Reads a time: milliseconds, or a number with `ms` or `s`.
fn time(yaml: &Yaml, key: &str, remarks: &mut Remarks) -> Option<String> {
    let milliseconds = yaml.scalar().map(str::trim).and_then(|text| match &yaml.value {
        Tree::Text(_) => match text.strip_suffix("ms") {
            Some(number) => number.parse::<f64>().ok(),
            None => text.strip_suffix('s')?.parse::<f64>().ok().map(|seconds| 1000.0 * seconds),
        },
        _ => text.parse().ok(),
    });
    let Some(time) = milliseconds.filter(|time| (0.0..=TIME_MAX_MS).contains(time)) else {
        remarks.mistake(yaml.at, format!("{key} of tc is not a time"), format!("write {key}: 10ms"));
        return None;
    };
    // Whole microseconds.
    Some(format!("{}ms", (time * 1000.0).round() / 1000.0))
}

fn percent(yaml: &Yaml, key: &str, remarks: &mut Remarks) -> Option<String> {
    let number = match &yaml.value {
        Tree::Integer(_) | Tree::Float(_) => yaml.scalar().and_then(|text| text.parse::<f64>().ok()),
        _ => None,
    };
    let Some(percent) = number.filter(|percent| (0.0..=100.0).contains(percent)) else {
        let what = format!("{key} of tc is not a number of percent from 0 to 100");
        remarks.mistake(yaml.at, what, format!("write {key}: 1 for 1 %"));
        return None;
    };
    Some(format!("{percent}%"))
}

fn rate(yaml: &Yaml, remarks: &mut Remarks) -> Option<String> {
    let number = match &yaml.value {
        Tree::Integer(number) => number.digits.parse::<u64>().ok(),
        _ => None,
    };
    let Some(rate) = number.filter(|rate| (1..=RATE_MAX).contains(rate)) else {
        let what = "rate of tc is not a whole number of kbit/s";
        remarks.mistake(yaml.at, what, "write rate: 10000 for 10 Mbit/s");
        return None;
    };
    Some(format!("{rate}kbit"))
}
