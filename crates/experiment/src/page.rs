//! The page of an experiment: a table and a box plot for each metric.

use super::Findings;
use super::axis::label;
use super::metric::Metric;
use super::plan::Experiment;
use super::table::{titled, with_interval};
use fastpath_record::Repetition;
use fastpath_report::{Axis, Boxed, Chart, Drawing, Grid, Report, Scale, Section};

/// Most conditions that a box plot shows: more have no room for their names.
const BOXES_MAX: usize = 40;

/// Returns the page as HTML.
pub(super) fn html(plan: &Experiment, findings: &Findings) -> String {
    let mut sections = vec![overview(plan, findings)];
    sections.extend(plan.metrics.iter().map(|metric| of_metric(plan, findings, metric)));
    Report::from_sections(plan.name.clone(), sections).html()
}

fn overview(plan: &Experiment, findings: &Findings) -> Section {
    let mut notes = vec![format!(
        "{} of {} runs are finished. Configuration {}, seeds {}.",
        findings.runs.len(),
        findings.all,
        plan.configuration(),
        plan.seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
    )];
    let left_out = findings.runs.iter().filter(|run| !run.is_usable());
    notes.extend(left_out.map(|run| {
        let why = run.why_left_out().unwrap_or_default();
        format!("Run {} is left out: {why}.", run.words())
    }));
    let rows = findings.judged.iter().map(|judged| {
        let verdict =
            if judged.holds() { "holds".to_owned() } else { format!("broken: {}", judged.broken.join("; ")) };
        vec![judged.expectation.clone(), judged.runs.to_string(), verdict]
    });
    let tables = match findings.judged.is_empty() {
        true => vec![],
        false => vec![Grid::new(["expected", "runs", "verdict"], rows)],
    };
    Section { title: "Runs".to_owned(), notes, charts: vec![], tables }
}

fn of_metric(plan: &Experiment, findings: &Findings, metric: &Metric) -> Section {
    let axes = plan.axes.iter().map(|axis| axis.name.clone());
    let titles: Vec<String> =
        axes.chain(["runs", "left out", "median [95 % interval]"].map(str::to_owned)).collect();
    let of_it = || findings.summaries.iter().filter(|summary| summary.metric == metric.name);
    let rows = of_it().map(|summary| {
        let median =
            summary.median.map_or_else(|| "–".to_owned(), |median| with_interval(median, summary.interval));
        let condition = summary.condition.values().map(label);
        condition.chain([summary.runs.to_string(), summary.left_out.to_string(), median]).collect()
    });
    let mut tables = vec![Grid::new(titles, rows)];
    let compared: Vec<Vec<String>> = findings
        .comparisons
        .iter()
        .filter(|comparison| comparison.metric == metric.name)
        .map(|comparison| {
            vec![
                format!("{} = {}", comparison.axis, label(&comparison.value)),
                label(&comparison.with),
                comparison.pairs.to_string(),
                with_interval(comparison.difference, comparison.interval),
                comparison.effect.map_or_else(|| "–".to_owned(), fastpath_report::text::number),
            ]
        })
        .collect();
    if !compared.is_empty() {
        tables.push(Grid::new(["value", "compared with", "pairs", "difference", "effect size"], compared));
    }
    let charts = boxes(plan, findings, metric).into_iter().collect();
    let title = titled(&metric.name, &metric.unit);
    let notes = vec![format!(
        "The number of a run is the {} of its samples. Intervals are percentile bootstraps of medians.",
        metric.reduce
    )];
    Section { title, notes, charts, tables }
}

/// A box for each condition: of the runs, or of the samples of the only run.
fn boxes(plan: &Experiment, findings: &Findings, metric: &Metric) -> Option<Chart> {
    if plan.conditions() > BOXES_MAX as u64 {
        return None;
    }
    let mut boxes = Vec::new();
    for condition in 0..plan.conditions() {
        let runs: Vec<&Repetition> = findings
            .runs
            .iter()
            .filter(|run| run.run % plan.conditions() == condition && run.is_usable())
            .collect();
        let values: Vec<f64> = match &runs[..] {
            [] => continue,
            [only] => only.samples.get(&metric.name).cloned().unwrap_or_default(),
            many => many.iter().filter_map(|run| run.values.get(&metric.name).copied()).collect(),
        };
        if values.is_empty() {
            continue;
        }
        let name: Vec<String> = runs[0].condition.values().map(label).collect();
        boxes.push(Boxed::of(name.join(" "), &values));
    }
    (!boxes.is_empty()).then(|| Chart {
        title: titled(&metric.name, &metric.unit),
        x: Axis::new("", Scale::Linear),
        y: Axis::new(&titled(&metric.name, &metric.unit), Scale::Linear),
        drawing: Drawing::Boxes(boxes),
    })
}
