//! What `fastpath model queue` prints.

use super::{Render, json_line};
use fastpath_model::Estimate;
use fastpath_model::queueing::{QueueAnswer, QueueFigures, QueueOutput};
use fastpath_report::text as print;
use std::io::{self, Write};

impl Render for QueueOutput {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.name)?;
        let answers = [&self.formula, &self.simulation].map(Option::as_ref);
        for answer in answers.into_iter().flatten() {
            writeln!(out, "{}", answer.method)?;
        }
        let [formula, simulation] = answers.map(|answer| answer.map(|answer| &answer.total));
        figures(out, "", formula, simulation)?;
        let parts = |answer: Option<&QueueAnswer>| answer.map_or(0, |answer| answer.parts.len());
        for i in 0..answers.map(parts).into_iter().max().unwrap_or(0) {
            let [formula, simulation] = answers.map(|answer| answer.and_then(|answer| answer.parts.get(i)));
            let name = formula.or(simulation).map_or("", |part| &part.name);
            figures(out, name, formula.map(|part| &part.figures), simulation.map(|part| &part.figures))?;
        }
        let notes = answers.into_iter().flatten().flat_map(|answer| &answer.warnings);
        notes.into_iter().try_for_each(|warning| writeln!(out, "note: {warning}"))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json_line(out, &serde_json::to_value(self)?)
    }
}

/// A row: its name, its unit, its value.
type QueueRow = (String, &'static str, Option<Estimate>);

fn rows(figures: &QueueFigures) -> Vec<QueueRow> {
    let mut rows: Vec<QueueRow> = [
        ("utilisation", "", figures.utilisation),
        ("throughput", "/s", figures.throughput_per_s),
        ("lost share", "", figures.lost),
        ("share that waits", "", figures.waits),
        ("mean number waiting", "", figures.queue_len),
        ("mean number in the system", "", figures.in_system),
        ("mean wait", "s", figures.wait_s),
        ("mean sojourn", "s", figures.sojourn_s),
    ]
    .map(|(name, unit, value)| (name.to_owned(), unit, value))
    .into();
    for percentile in &figures.percentiles {
        rows.push((format!("wait, {} %", percentile.percent), "s", percentile.wait_s));
        rows.push((format!("sojourn, {} %", percentile.percent), "s", percentile.sojourn_s));
    }
    rows
}

/// Prints the figures that are known by either method.
fn figures(
    out: &mut dyn Write,
    title: &str,
    formula: Option<&QueueFigures>,
    simulation: Option<&QueueFigures>,
) -> io::Result<()> {
    let [exact, simulated] = [formula, simulation].map(|figures| figures.map(rows).unwrap_or_default());
    // Formulas may leave out the percentiles; the simulation has all rows.
    let names: &[QueueRow] = if simulated.is_empty() { &exact } else { &simulated };
    let mut table = match (formula, simulation) {
        (Some(_), Some(_)) => print::table([title, "formula", "simulated [95 % interval]"]),
        (Some(_), None) => print::table([title, "formula"]),
        _ => print::table([title, "simulated [95 % interval]"]),
    };
    for (name, unit, _) in names {
        let cell = |rows: &[QueueRow]| {
            let value = rows.iter().find(|row| row.0 == *name).and_then(|row| row.2);
            value.map_or(String::new(), |value| in_unit(value, unit))
        };
        let cells = [&exact, &simulated].map(|rows| cell(rows));
        if cells.iter().all(String::is_empty) {
            continue;
        }
        let mut row = vec![name.clone()];
        row.extend(formula.is_some().then(|| cells[0].clone()));
        row.extend(simulation.is_some().then(|| cells[1].clone()));
        table.add_row(row);
    }
    writeln!(out, "{table}")
}

/// Formats a value in its unit, times in one that suits their size.
fn in_unit(value: Estimate, unit: &str) -> String {
    if unit != "s" {
        return format!("{}{}{unit}", print::estimate(value), if unit.is_empty() { "" } else { " " });
    }
    let scales = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")];
    let fits = scales.iter().find(|(scale, _)| value.value.abs() >= *scale);
    let (scale, name) = fits.copied().unwrap_or(if value.value == 0.0 { (1.0, "s") } else { (1e-9, "ns") });
    format!("{} {name}", print::estimate(value.map(|x| x / scale)))
}
