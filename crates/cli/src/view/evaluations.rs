//! Evaluations as text for terminals: a table of the figures, and remarks on them.

use super::{Render, json_line};
#[cfg(target_os = "linux")]
use fastpath_evaluate::{
    CapacityEvaluation, CapacityFigure, PredictionFigure, RegisteredComparison, RegisteredVerdict,
    prediction_remarks,
};
#[cfg(target_os = "linux")]
use fastpath_model::Estimate;
#[cfg(target_os = "linux")]
use fastpath_model::check::Check;
use fastpath_model::publications::{Ours, PublishedFigure};
#[cfg(target_os = "linux")]
use fastpath_report::Evaluation;
use fastpath_report::text as print;
use fastpath_sim::validation::{Basis, Kind, ValidationCheck};
use serde::Serialize;
use serde_json::json;
#[cfg(target_os = "linux")]
use std::collections::BTreeSet;
use std::io::{self, Write};

/// An evaluation as text.
pub(crate) struct EvaluationText {
    /// The figures, a row each.
    pub(crate) table: String,
    /// Remarks on them, a line each.
    pub(crate) remarks: Vec<String>,
}

/// A figure of an evaluation.
pub(crate) trait Figure: Serialize {
    /// Whether it meets its criterion.
    fn pass(&self) -> bool;
}

impl Figure for PublishedFigure {
    fn pass(&self) -> bool {
        self.pass
    }
}

impl Figure for ValidationCheck {
    fn pass(&self) -> bool {
        self.pass
    }
}

#[cfg(target_os = "linux")]
impl Figure for PredictionFigure {
    fn pass(&self) -> bool {
        self.pass
    }
}

/// The figures of an evaluation and their text.
pub(crate) struct Figures<'f, F> {
    /// The figures.
    pub(crate) figures: &'f [F],
    /// Their text.
    pub(crate) text: EvaluationText,
}

impl<F: Figure> Figures<'_, F> {
    /// Returns the number of figures that pass.
    pub(crate) fn passed(&self) -> usize {
        self.figures.iter().filter(|figure| figure.pass()).count()
    }
}

impl<F: Figure> Render for Figures<'_, F> {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        self.text.write(out, self.passed(), self.figures.len())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let (passed, total) = (self.passed(), self.figures.len());
        json_line(out, &json!({ "results": self.figures, "passed": passed, "total": total }))
    }
}

#[cfg(target_os = "linux")]
impl Render for Evaluation {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        emulator(self).write(out, self.passed, self.total)
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json_line(out, self)
    }
}

#[cfg(target_os = "linux")]
impl Render for CapacityEvaluation {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = print::table(["figure", "asked", "ours", "", "key"]);
        for CapacityFigure { id, quantity, asked, ours, pass } in &self.results {
            table.add_row([
                quantity.clone(),
                asked.clone(),
                print::number(*ours),
                verdict(*pass),
                id.clone(),
            ]);
        }
        let remark = format!(
            "{} networks; two measurements of one differ by {:.2} % in the median",
            self.points.len(),
            self.repeat_median_pct
        );
        let of_kind = self.kinds.iter().map(|(kind, found)| {
            format!(
                "{kind}: {} points; two measurements differ by {:.2} %",
                found.points, found.repeat_median_pct
            )
        });
        let missing = self.missing.iter().map(|(kind, why)| format!("{kind}: not measured: {why}"));
        let remarks = std::iter::once(remark).chain(of_kind).chain(missing).collect();
        EvaluationText { table: table.to_string(), remarks }.write(out, self.passed, self.total)
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json_line(out, self)
    }
}

#[cfg(target_os = "linux")]
impl Render for Vec<RegisteredComparison> {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let titles =
            ["prediction", "stated", "predicted [95 %]", "measured [runs]", "unit", "error %", "", "key"];
        let mut table = print::table(titles);
        for RegisteredComparison { prediction, result, error_pct, verdict } in self {
            let interval = |value, low, high| print::estimate(Estimate { value, low, high });
            let measured = result.as_ref().map(|r| interval(r.value, r.low, r.high));
            table.add_row([
                prediction.quantity.clone(),
                prediction.date.clone(),
                interval(prediction.value, prediction.low, prediction.high),
                measured.unwrap_or_default(),
                prediction.unit.clone(),
                error_pct.map_or(String::new(), |error| format!("{error:.1}")),
                match verdict {
                    RegisteredVerdict::Inside => "ok",
                    RegisteredVerdict::Outside => "MISS",
                    RegisteredVerdict::NotMeasured => "not measured",
                }
                .to_owned(),
                prediction.id.clone(),
            ]);
        }
        writeln!(out, "{table}\n")?;
        let models: BTreeSet<&str> = self.iter().map(|one| one.prediction.model.as_str()).collect();
        models.into_iter().try_for_each(|model| writeln!(out, "model: {model}"))?;
        let [inside, measured] = inside_and_measured(self);
        writeln!(
            out,
            "{inside} of {measured} measured predictions lie in their interval; {} are not measured",
            self.len() - measured
        )
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let [inside, measured] = inside_and_measured(self);
        json_line(
            out,
            &json!({ "results": self, "inside": inside, "measured": measured, "total": self.len() }),
        )
    }
}

/// Returns how many predictions lie in their interval, and how many are measured.
#[cfg(target_os = "linux")]
fn inside_and_measured(all: &[RegisteredComparison]) -> [usize; 2] {
    let count = |verdict| all.iter().filter(|one| one.verdict == verdict).count();
    let inside = count(RegisteredVerdict::Inside);
    [inside, inside + count(RegisteredVerdict::Outside)]
}

impl EvaluationText {
    /// Writes the table, the remarks, and how many figures pass.
    fn write(&self, out: &mut dyn Write, passed: usize, total: usize) -> io::Result<()> {
        writeln!(out, "{}", self.table)?;
        if !self.remarks.is_empty() {
            writeln!(out, "\n{}", self.remarks.join("\n"))?;
        }
        writeln!(out, "{passed} of {total} figures pass")
    }
}

fn verdict(pass: bool) -> String {
    if pass { "ok" } else { "MISS" }.to_owned()
}

/// The figures that the models recompute.
pub(crate) fn models(results: &[PublishedFigure]) -> EvaluationText {
    let titles = ["publication", "place", "figure", "published", "ours", "rule", "", "key"];
    let mut table = print::table(titles);
    for result in results {
        let ours = match &result.ours {
            Ours::Number(x) => print::number(*x),
            Ours::Text(text) => text.clone(),
        };
        table.add_row([
            result.publication.clone(),
            result.place.clone(),
            result.quantity.clone(),
            result.doc_value.clone(),
            ours,
            format!("{:?}", result.status),
            verdict(result.pass),
            result.id.clone(),
        ]);
    }
    EvaluationText { table: table.to_string(), remarks: vec![] }
}

/// The figures of the simulated machines.
pub(crate) fn simulator(results: &[ValidationCheck]) -> EvaluationText {
    let mut table = print::table(["figure", "published", "ours", "range", "basis", "used as", "", "key"]);
    for check in results {
        let kind = match check.kind {
            Kind::Calibration => "calibration",
            Kind::Prediction => "prediction",
            Kind::Qualitative => "qualitative",
        };
        table.add_row([
            check.about.to_string(),
            check.original.map_or("–".to_owned(), print::number),
            print::number(check.ours),
            format!("{} … {}", print::number(check.low), print::number(check.high)),
            match check.basis {
                Basis::Given => "given".to_owned(),
                Basis::Chosen => "chosen".to_owned(),
            },
            kind.to_owned(),
            verdict(check.pass),
            check.id.clone(),
        ]);
    }
    EvaluationText { table: table.to_string(), remarks: simulator_remarks(results) }
}

/// Returns the remarks on the figures. Consecutive figures with the same remark share one.
fn simulator_remarks(results: &[ValidationCheck]) -> Vec<String> {
    let mut remarks: Vec<(Vec<&str>, &str)> = Vec::new();
    for check in results {
        match remarks.last_mut() {
            Some((ids, note)) if *note == check.note => ids.push(&check.id),
            _ => remarks.push((vec![&check.id], check.note)),
        }
    }
    let mut lines: Vec<String> =
        remarks.iter().map(|(ids, note)| format!("{}: {note}", ids.join(", "))).collect();
    let given = results.iter().filter(|check| check.basis == Basis::Given).count();
    lines.push(format!(
        "ranges: {given} are given: a publication (a count, a zero) or a requirement (5 % over a grid) fixed them before the simulation; {} are chosen: set with the simulated figures known, so that a pass shows agreement and not a prediction",
        results.len() - given
    ));
    lines
}

/// The figures of the predictions.
#[cfg(target_os = "linux")]
pub(crate) fn prediction(figures: &[PredictionFigure]) -> EvaluationText {
    let mut table = print::table([
        "figure",
        "asked",
        "ours",
        "points",
        "median error %",
        "95 % within %",
        "covered %",
        "width %",
        "fixed: error, covered, width %",
        "repeat %",
        "drift %",
        "",
    ]);
    for figure in figures {
        let Check { n, median_pct, p95_pct, covered, width_pct, repeat, .. } = figure.check;
        let fixed = figure.fixed.map_or("–".to_owned(), |fixed| {
            format!("{:.2}, {:.1}, {:.2}", fixed.median_pct, 100.0 * fixed.covered, fixed.width_pct)
        });
        let sign = if figure.id.ends_with("covered") { "≥" } else { "≤" };
        table.add_row([
            figure.quantity.clone(),
            format!("{sign} {}", print::number(figure.asked)),
            print::number(figure.ours),
            n.to_string(),
            format!("{median_pct:.2}"),
            format!("{p95_pct:.2}"),
            format!("{:.1}", 100.0 * covered),
            format!("{width_pct:.2}"),
            fixed,
            repeat.map_or("–".to_owned(), |r| format!("{:.2}", r.median_pct)),
            figure.drift_pct.map_or("–".to_owned(), |drift| format!("{drift:.2}")),
            if figure.noisy { "TOO NOISY".to_owned() } else { verdict(figure.pass) },
        ]);
    }
    EvaluationText { table: table.to_string(), remarks: prediction_remarks(figures) }
}

/// The figures of the emulator. A row begins with its table or figure, and its point.
#[cfg(target_os = "linux")]
fn emulator(evaluation: &Evaluation) -> EvaluationText {
    let mut table =
        print::table(["point", "original", "ours", "control", "peers", "unit", "rule", "", "key"]);
    for result in &evaluation.results {
        let optional = |value: Option<f64>| value.map_or("–".to_owned(), print::number);
        let peers: Vec<String> =
            result.peers.iter().map(|(name, value)| format!("{name} {}", print::number(*value))).collect();
        let figure = evaluation.figures.iter().find(|group| result.id.split('/').next() == Some(&group.id));
        let title = figure.and_then(|group| group.title.split(':').next()).unwrap_or_default();
        let point = format!("{title}: {}", evaluation.describe(&result.id));
        table.add_row([
            point,
            optional(result.original),
            print::number(result.ours),
            optional(result.control),
            peers.join("\n"),
            result.unit.clone(),
            result.criterion.text(print::number),
            result.verdict().to_owned(),
            result.id.clone(),
        ]);
    }
    EvaluationText { table: table.to_string(), remarks: emulator_remarks(evaluation) }
}

/// Returns the remarks below the table: results that could not be measured, and notes on the
/// others.
#[cfg(target_os = "linux")]
fn emulator_remarks(evaluation: &Evaluation) -> Vec<String> {
    let reasons = evaluation.reasons();
    let skipped = reasons.iter().map(|(reason, ids)| format!("not measured: {}: {reason}", ids.join(", ")));
    let mut remarks: Vec<String> = skipped.collect();
    let disturbed = evaluation.disturbances();
    remarks.extend(disturbed.iter().map(|(reason, ids)| format!("disturbed: {}: {reason}", ids.join(", "))));
    if evaluation.disturbed > 0 {
        remarks.push(format!(
            "{} figures are disturbed: in each of their rounds the machine took the core away, so they say nothing",
            evaluation.disturbed
        ));
    }
    let disturbance = evaluation.provenance.disturbance;
    if disturbance.disturbed {
        remarks.push(format!(
            "the machine was not quiet: {:.1} % of its time stolen by the hypervisor, {:.1} % spent on other programs",
            100.0 * disturbance.stolen_share,
            100.0 * disturbance.others_share
        ));
    }
    remarks.extend(evaluation.notes.iter().cloned());
    remarks
}
