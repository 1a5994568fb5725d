//! The table of all runs, as columns and as CSV; the tables of a terminal.

use super::Findings;
use super::axis::label;
use super::plan::Experiment;
use fastpath_record::Repetition;
use fastpath_report::text::{align_left, number, table};

/// A column of the table.
pub(super) enum Column {
    Whole(String, Vec<i64>),
    /// Empty for none.
    Text(String, Vec<String>),
    Real(String, Vec<Option<f64>>),
}

/// The columns: run, seed and attempts; the axes; the metrics; what disturbed or ended a run.
pub(super) fn columns(plan: &Experiment, runs: &[Repetition]) -> Vec<Column> {
    let whole = |name: &str, of: &dyn Fn(&Repetition) -> u64| {
        Column::Whole(name.to_owned(), runs.iter().map(|run| of(run) as i64).collect())
    };
    let text = |name: &str, of: &dyn Fn(&Repetition) -> Option<String>| {
        Column::Text(name.to_owned(), runs.iter().map(|run| of(run).unwrap_or_default()).collect())
    };
    let mut columns = vec![whole("run", &|run| run.run), whole("seed", &|run| run.origin.seed)];
    columns.extend(
        plan.axes.iter().map(|axis| text(&axis.name, &|run| run.condition.get(&axis.name).map(label))),
    );
    columns.extend(plan.metrics.iter().map(|metric| {
        let name = if metric.unit.is_empty() {
            metric.name.clone()
        } else {
            format!("{}_{}", metric.name, metric.unit)
        };
        Column::Real(name, runs.iter().map(|run| run.values.get(&metric.name).copied()).collect())
    }));
    columns.push(whole("attempts", &|run| run.attempts.into()));
    columns.push(text("disturbed", &|run| run.disturbed.clone()));
    columns.push(text("problem", &|run| run.problem.clone()));
    columns
}

/// The table as CSV (RFC 4180).
pub(super) fn csv(plan: &Experiment, runs: &[Repetition]) -> Vec<u8> {
    let columns = columns(plan, runs);
    let mut writer = csv::Writer::from_writer(Vec::new());
    let titles = columns.iter().map(|column| match column {
        Column::Whole(name, _) | Column::Text(name, _) | Column::Real(name, _) => name.as_str(),
    });
    writer.write_record(titles).expect("memory takes all");
    for row in 0..runs.len() {
        let cells = columns.iter().map(|column| match column {
            Column::Whole(_, values) => values[row].to_string(),
            Column::Text(_, values) => values[row].clone(),
            Column::Real(_, values) => values[row].map(|value| value.to_string()).unwrap_or_default(),
        });
        writer.write_record(cells).expect("memory takes all");
    }
    writer.into_inner().expect("memory takes all")
}

/// The tables of a terminal: medians, differences, expectations, and the runs that were left out.
pub(super) fn text(plan: &Experiment, findings: &Findings) -> String {
    let mut parts =
        vec![format!("{}: {} of {} runs are finished", plan.name, findings.runs.len(), findings.all)];
    if !plan.metrics.is_empty() {
        parts.push(medians(plan, findings));
    }
    if !findings.comparisons.is_empty() {
        parts.push(differences(findings));
    }
    for run in findings.runs.iter().filter(|run| !run.is_usable()) {
        let why = run.why_left_out().unwrap_or_default();
        parts.push(format!("run {} is left out: {why}", run.words()));
    }
    for judged in &findings.judged {
        let verdict = match (judged.runs, judged.broken.len()) {
            (0, _) => "NOT COMPARED: no usable run".to_owned(),
            (runs, 0) => format!("holds in {runs} runs"),
            (runs, broken) => format!("BROKEN in {broken} of {runs} runs:\n  {}", judged.broken.join("\n  ")),
        };
        parts.push(format!("expected {}: {verdict}", judged.expectation));
    }
    parts.join("\n")
}

/// A number with its interval: `9.41 [9.38, 9.44]`.
pub(super) fn with_interval(value: f64, interval: Option<[f64; 2]>) -> String {
    match interval {
        Some([low, high]) => format!("{} [{}, {}]", number(value), number(low), number(high)),
        None => number(value),
    }
}

fn medians(plan: &Experiment, findings: &Findings) -> String {
    let metrics = plan.metrics.iter().map(|metric| titled(&metric.name, &metric.unit));
    let titles: Vec<String> =
        plan.axes.iter().map(|axis| axis.name.clone()).chain(["runs".to_owned()]).chain(metrics).collect();
    let mut table = table(titles.iter().map(String::as_str));
    align_left(&mut table, 0..plan.axes.len());
    for condition in findings.summaries.chunks(plan.metrics.len()) {
        let values_of_axes = condition[0].condition.values().map(label);
        let runs = condition.iter().map(|summary| summary.runs).min().unwrap_or_default().to_string();
        let values = condition.iter().map(|summary| {
            summary.median.map_or_else(|| "–".to_owned(), |median| with_interval(median, summary.interval))
        });
        table.add_row(values_of_axes.chain([runs]).chain(values));
    }
    format!("medians [95 % intervals]\n{table}")
}

fn differences(findings: &Findings) -> String {
    let mut table = table(["value", "with", "metric", "pairs", "difference", "effect"]);
    align_left(&mut table, 0..3);
    for comparison in &findings.comparisons {
        table.add_row([
            format!("{} = {}", comparison.axis, label(&comparison.value)),
            label(&comparison.with),
            titled(&comparison.metric, &comparison.unit),
            comparison.pairs.to_string(),
            with_interval(comparison.difference, comparison.interval),
            comparison.effect.map_or_else(|| "–".to_owned(), number),
        ]);
    }
    format!("medians of the differences of pairs [95 % intervals], mean over standard deviation\n{table}")
}

/// `goodput, Mbit/s`
pub(super) fn titled(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name}, {unit}") }
}
