//! What `fastpath check --capacity` prints: the verdict, the predicted values with their intervals,
//! what limits the network, and where the costs come from.

use super::{Render, json_line};
use fastpath::capacity::{CapacityAnswer, CapacityRecord};
use fastpath_model::Estimate;
use fastpath_report::text::table;
use fastpath_spec::mistake::printable;
use serde_json::json;
use std::io::{self, Write};
use std::path::Path;

/// An answer, and what it is about.
pub(crate) struct CapacityView<'c> {
    /// The description.
    pub(crate) path: &'c Path,
    /// The costs of this machine.
    pub(crate) record: &'c CapacityRecord,
    /// The answer.
    pub(crate) answer: &'c CapacityAnswer,
}

impl Render for CapacityView<'_> {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let CapacityView { path, record, answer } = self;
        writeln!(out, "{}: {}", printable(&path.display().to_string()), answer.sentence())?;
        let mut table = table(["", "predicted", "95 % interval"]);
        for (name, estimate, scale, unit) in rows(answer) {
            let [value, low, high] = match estimate {
                None => ["not measured".to_owned(), String::new(), String::new()],
                Some(Estimate { value, low, high }) => [value, low, high].map(|value| number(value / scale)),
            };
            let interval =
                if estimate.is_some() { format!("{low} … {high} {unit}") } else { String::new() };
            table.add_row([name.to_owned(), format!("{value} {unit}"), interval]);
        }
        writeln!(out, "{table}")?;
        answer.limits.iter().try_for_each(|limit| writeln!(out, "  {}", limit.what))?;
        for remedy in &answer.remedies {
            let carries = if remedy.carries { ", which carries the load" } else { "" };
            let rate = remedy.packets_per_second.value / 1e3;
            writeln!(out, "  with {}: {} thousand packets/s{carries}", remedy.with, number(rate))?;
        }
        answer.warnings.iter().try_for_each(|warning| writeln!(out, "  note: {warning}"))?;
        writeln!(out, "  costs {}", printable(&record.describe()))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut value = self.answer.to_json();
        value["record"] = json!({ "path": self.record.path, "provenance": self.record.provenance });
        json_line(out, &value)
    }
}

/// The values: name, estimate, scale of the unit, unit.
fn rows(answer: &CapacityAnswer) -> [(&'static str, Option<Estimate>, f64, &'static str); 6] {
    let predicted = &answer.predicted;
    [
        ("packets per second", Some(predicted.packets_per_second), 1e3, "thousand/s"),
        ("TCP, one connection", predicted.tcp_bits_per_second, 1e6, "Mbit/s"),
        ("lateness, median", Some(predicted.lateness_p50_us), 1.0, "µs"),
        ("lateness, 99th percentile", Some(predicted.lateness_p99_us), 1.0, "µs"),
        ("memory", Some(predicted.memory_bytes), 1048576.0, "MiB"),
        ("start", predicted.start_s, 1e-3, "ms"),
    ]
}

fn number(value: f64) -> String {
    match value {
        value if value.is_infinite() => "∞".to_owned(),
        value if value.abs() >= 100.0 => format!("{value:.0}"),
        value if value.abs() >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}
