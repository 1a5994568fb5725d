//! Simulated points: throughput and latency over the parameter that was varied most, with a line
//! for each combination of the other parameters.

use crate::chart::{Axis, Chart, Drawing, Scale};
use crate::values::{number, series, thinned, word, words};
use crate::{Grid, Section, short};
use fastpath_record::Measurement;
use serde_json::Value;
use std::collections::BTreeSet;

/// The results that are plotted: name, title, axis.
const PLOTTED: [(&str, &str, &str); 8] = [
    ("forwarded_pps", "Forwarding rate", "forwarding rate, packets/s"),
    ("share", "Share forwarded", "forwarded share of the offered load, 0 … 1"),
    ("share_of_line_rate_pct", "Share of the line rate", "forwarding rate, % of the line rate"),
    ("latency_p50_us", "Median latency", "latency, µs"),
    ("latency_p99_us", "99th percentile of the latency", "latency, µs"),
    ("t_f_mean_us", "Mean time of input and output (t_f)", "time, µs"),
    ("t_f_p50_us", "Median time of input and output (t_f)", "time, µs"),
    ("t_f_p99_us", "99th percentile of the time of input and output (t_f)", "time, µs"),
];
/// Parameters that have a longer name in a title, and their unit.
const PARAMETERS: [(&str, &str, &str); 4] = [
    ("size", "frame size", ", bytes"),
    ("rate", "offered rate", ""),
    ("load", "offered load", ""),
    ("seed", "seed of the random generator", ""),
];
/// Maximum number of rows of the table.
const ROWS_MAX: usize = 500;

pub(super) fn simulations(records: &[&Measurement]) -> Section {
    let names: BTreeSet<&String> = records.iter().flat_map(|r| r.parameters.keys()).collect();
    let values =
        |name: &str| -> BTreeSet<String> { records.iter().map(|r| word(r.parameters.get(name))).collect() };
    let varied: Vec<&String> = names.iter().copied().filter(|name| values(name).len() > 1).collect();
    // The x axis is the numeric parameter with the most values.
    let numeric =
        |name: &&&String| records.iter().all(|r| r.parameters.get(**name).is_none_or(Value::is_number));
    let x = varied.iter().filter(numeric).max_by_key(|name| values(name).len()).copied();
    let label = |r: &Measurement| {
        let others = varied.iter().filter(|name| Some(**name) != x);
        let parts = others.map(|name| match word(r.parameters.get(*name)) {
            text if matches!(name.as_str(), "machine" | "program") => text,
            text => format!("{name} = {text}"),
        });
        parts.collect::<Vec<_>>().join(", ")
    };
    let chart = |&(found, title, y): &(&str, &str, &str)| {
        let name = x?;
        let points = records.iter().filter_map(|r| {
            let (x, y) = (number(r.parameters.get(name)?), number(r.results.get(found)?));
            Some((label(r), label(r), x, y))
        });
        let lines = thinned(series(points));
        let is_drawn = lines.iter().any(|line| line.points.len() > 1);
        is_drawn.then(|| Chart {
            // A parameter of the simulator is named as in `--vary`; the axis has words.
            title: format!(
                "{title} over {}",
                if name.contains('.') { name.clone() } else { parameter(name)[0].clone() }
            ),
            x: Axis { label: parameter(name).concat(), scale: Scale::Linear },
            y: Axis::new(y, Scale::Linear),
            drawing: Drawing::Lines(lines),
        })
    };
    let charts: Vec<Chart> = PLOTTED.iter().filter_map(chart).collect();
    let tables = vec![table(records, &varied)];
    let mut notes = vec!["simulated, not measured".to_owned()];
    if records.len() > ROWS_MAX {
        notes.push(format!("the table shows the first {ROWS_MAX} of {} points", records.len()));
    }
    Section { title: "Simulations".to_owned(), notes, charts, tables }
}

/// The results of each point; `varied` are the parameters that differ.
fn table(records: &[&Measurement], varied: &[&String]) -> Grid {
    let is_found = |r: &&&Measurement, name: &str| r.results.get(name).is_some_and(|value| !value.is_null());
    let found: BTreeSet<&String> = records.iter().flat_map(|r| r.results.keys()).collect();
    let found: Vec<&String> =
        found.into_iter().filter(|name| records.iter().any(|r| is_found(&r, name))).collect();
    let rows = records.iter().take(ROWS_MAX).map(|r| {
        let place: Vec<String> = if varied.is_empty() {
            r.parameters.iter().map(|(name, v)| format!("{name} = {}", word(Some(v)))).collect()
        } else {
            varied.iter().map(|name| format!("{name} = {}", word(r.parameters.get(*name)))).collect()
        };
        let columns = found.iter().map(|name| match r.results.get(*name) {
            None | Some(Value::Null) => "–".to_owned(),
            Some(value) => value.as_f64().map_or_else(|| word(Some(value)), short),
        });
        std::iter::once(place.join(", ")).chain(columns).collect()
    });
    let titles = std::iter::once("point".to_owned()).chain(found.iter().map(|name| words(name)));
    Grid::new(titles, rows)
}

/// The name of a parameter in words, and its unit.
fn parameter(name: &str) -> [String; 2] {
    let known = PARAMETERS.iter().find(|(parameter, _, _)| *parameter == name);
    known.map_or_else(
        || [words(name), String::new()],
        |(_, words, unit)| [(*words).to_owned(), (*unit).to_owned()],
    )
}
