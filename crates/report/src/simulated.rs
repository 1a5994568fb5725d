//! Simulated points: throughput and latency over whatever number was varied, a line for each
//! combination of the rest.

use crate::chart::{Axis, Chart, Drawing, Scale};
use crate::record::Record;
use crate::sections::{number, series, thinned, word};
use crate::{Grid, Section, short};
use serde_json::Value;
use std::collections::BTreeSet;

/// What is plotted where it was found: the name of a result, and of its axis.
const PLOTTED: [(&str, &str); 8] = [
    ("forwarded_pps", "packets/s"),
    ("share", "share of the offered"),
    ("share_of_line_rate_pct", "% of line rate"),
    ("latency_p50_us", "us"),
    ("latency_p99_us", "us"),
    ("t_f_mean_us", "us"),
    ("t_f_p50_us", "us"),
    ("t_f_p99_us", "us"),
];
/// Rows of the table.
const ROWS_MAX: usize = 500;

pub(super) fn simulations(records: &[&Record]) -> Section {
    let names: BTreeSet<&String> = records.iter().flat_map(|r| r.parameters.keys()).collect();
    let values =
        |name: &str| -> BTreeSet<String> { records.iter().map(|r| word(r.parameters.get(name))).collect() };
    let varied: Vec<&String> = names.iter().copied().filter(|name| values(name).len() > 1).collect();
    // Over the number that takes the most values.
    let numeric =
        |name: &&&String| records.iter().all(|r| r.parameters.get(**name).is_none_or(Value::is_number));
    let x = varied.iter().filter(numeric).max_by_key(|name| values(name).len()).copied();
    let label = |r: &Record| {
        let others = varied.iter().filter(|name| Some(**name) != x);
        let parts = others.map(|name| match word(r.parameters.get(*name)) {
            text if matches!(name.as_str(), "machine" | "program") => text,
            text => format!("{name} = {text}"),
        });
        parts.collect::<Vec<_>>().join(", ")
    };
    let chart = |&(found, unit): &(&str, &'static str)| {
        let x = x?;
        let points = records.iter().filter_map(|r| {
            let (x, y) = (number(r.parameters.get(x)?), number(r.results.get(found)?));
            Some((label(r), label(r), x, y))
        });
        let lines = thinned(series(points));
        let is_drawn = lines.iter().any(|line| line.points.len() > 1);
        is_drawn.then(|| Chart {
            title: format!("{} over {x}", found.replace('_', " ")),
            x: Axis { label: x.replace('_', " "), scale: Scale::Linear },
            y: Axis { label: unit.to_owned(), scale: Scale::Linear },
            drawing: Drawing::Lines(lines),
        })
    };
    let charts: Vec<Chart> = PLOTTED.iter().filter_map(chart).collect();
    let rows = records.iter().take(ROWS_MAX).map(|r| {
        let place: Vec<String> = if varied.is_empty() {
            r.parameters.iter().map(|(name, v)| format!("{name} = {}", word(Some(v)))).collect()
        } else {
            varied.iter().map(|name| format!("{name} = {}", word(r.parameters.get(*name)))).collect()
        };
        let found = r.results.iter().filter(|(_, v)| !v.is_null()).map(|(name, v)| match v.as_f64() {
            Some(x) => format!("{name} {}", short(x)),
            None => format!("{name} {}", word(Some(v))),
        });
        vec![place.join(", "), found.collect::<Vec<_>>().join("; ")]
    });
    let tables = vec![Grid { titles: vec!["point", "found"], rows: rows.collect() }];
    let mut notes = vec!["simulated, not measured".to_owned()];
    if records.len() > ROWS_MAX {
        notes.push(format!("the table shows the first {ROWS_MAX} of {} points", records.len()));
    }
    Section { title: "Simulations".to_owned(), notes, charts, tables }
}
