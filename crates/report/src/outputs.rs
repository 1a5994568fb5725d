//! Sections of a report for what `fastpath model` and `fastpath evaluate` print with `--json`:
//! fits, predictions, cores, an index, a budget, evaluations. Only `evaluate emulator` has a
//! provenance.

use crate::chart::{Chart, Drawing, Scale, Series};
use crate::published::EvaluationOutput;
use crate::values::{axis, series, thinned, words};
use crate::{Evaluation, Grid, Section, short};
use fastpath_model::output::{BudgetOutput, CoresOutput, FitOutput, IndexOutput, PredictionOutput};
use fastpath_model::{Bounded, Estimate};
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

/// Maximum number of rows of a table.
const ROWS_MAX: usize = 500;

/// What a command printed with `--json`.
#[derive(Clone, PartialEq, Debug)]
pub enum CommandOutput {
    /// `model fit`.
    Fit(Box<FitOutput>),
    /// `model predict`.
    Predictions(PredictionOutput),
    /// `model cores`.
    Cores(CoresOutput),
    /// `model budget`.
    Budget(Box<BudgetOutput>),
    /// `model index`.
    Index(Box<IndexOutput>),
    /// `evaluate emulator`.
    Emulator(Box<Evaluation>),
    /// `evaluate models`, `evaluate simulator` or `evaluate prediction`.
    Evaluation(EvaluationOutput),
}

/// Why JSON is not the output of a command.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OutputError {
    /// No command prints such an object.
    #[error("neither a record nor output of `fastpath model` or `evaluate` with --json")]
    Unknown,
    /// An object of a known command that lacks a field or has a wrong one.
    #[error("not what `fastpath {command} --json` prints: {source}")]
    Wrong {
        /// The command.
        command: &'static str,
        /// The JSON reader's message.
        source: serde_json::Error,
    },
}

impl CommandOutput {
    /// Reads what a command printed.
    ///
    /// # Errors
    /// [`OutputError`] for an object that no command prints.
    pub fn parse(output: Value) -> Result<CommandOutput, OutputError> {
        fn read<T: DeserializeOwned>(command: &'static str, output: Value) -> Result<T, OutputError> {
            serde_json::from_value(output).map_err(|source| OutputError::Wrong { command, source })
        }
        // Each has a field that no other has.
        let has = |field: &str| output.get(field).is_some();
        if has("coefficients") {
            Ok(CommandOutput::Fit(Box::new(read("model fit", output)?)))
        } else if has("predictions") {
            Ok(CommandOutput::Predictions(read("model predict", output)?))
        } else if has("rows") {
            Ok(CommandOutput::Cores(read("model cores", output)?))
        } else if has("arrival_cycles") {
            Ok(CommandOutput::Budget(Box::new(read("model budget", output)?)))
        } else if has("platforms") {
            Ok(CommandOutput::Index(Box::new(read("model index", output)?)))
        } else if has("passed") && has("figures") {
            Ok(CommandOutput::Emulator(Box::new(read("evaluate emulator", output)?)))
        } else if has("passed") {
            Ok(CommandOutput::Evaluation(read("evaluate", output)?))
        } else {
            Err(OutputError::Unknown)
        }
    }

    /// Returns the heading of a page of this evaluation alone.
    pub(super) fn title(&self) -> Option<&str> {
        match self {
            CommandOutput::Emulator(evaluation) => Some(&evaluation.title),
            CommandOutput::Evaluation(output) => Some(output.title()),
            _ => None,
        }
    }

    pub(super) fn sections(&self) -> Vec<Section> {
        let section = match self {
            CommandOutput::Emulator(evaluation) => return evaluation.sections(),
            CommandOutput::Evaluation(output) => return output.sections(),
            CommandOutput::Fit(output) => fit(output),
            CommandOutput::Predictions(output) => predictions(output),
            CommandOutput::Cores(output) => cores(output),
            CommandOutput::Budget(output) => budget(output),
            CommandOutput::Index(output) => index(output),
        };
        vec![section]
    }
}

/// Formats `2 [1, 3]`.
fn interval(e: Estimate) -> String {
    if e.low == e.high {
        return short(e.value);
    }
    format!("{} [{}, {}]", short(e.value), short(e.low), short(e.high))
}

/// Formats `2 [1, 3]`, or `2 (no error bar)`.
fn bounded(b: Bounded) -> String {
    match (b.low, b.high) {
        (None, None) if !b.value.is_nan() => format!("{} (no error bar)", short(b.value)),
        (low, high) => interval(Estimate {
            value: b.value,
            low: low.unwrap_or(f64::NAN),
            high: high.unwrap_or(f64::NAN),
        }),
    }
}

/// Returns the word by which an enum is serialised.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => text,
        Ok(value) => value.to_string(),
        Err(_) => String::new(),
    }
}

fn fit(FitOutput { fit, check }: &FitOutput) -> Section {
    let y = words(&fit.y);
    let points = |of: fn(&fastpath_model::fit::Point) -> (f64, f64)| -> Vec<(f64, f64)> {
        fit.points.iter().map(of).collect()
    };
    let series = |name: &str, points: Vec<(f64, f64)>| Series { name: name.to_owned(), points };
    let measured = points(|point| (point.fitted, point.measured));
    let fitted = measured.iter().map(|point| point.0);
    let ends = [fitted.clone().fold(f64::INFINITY, f64::min), fitted.fold(f64::NEG_INFINITY, f64::max)];
    let chart = |title: &str, y_axis: &str, name: &str, points, reference: Series| Chart {
        title: title.to_owned(),
        x: axis(&format!("fitted {y}"), Scale::Linear),
        y: axis(y_axis, Scale::Linear),
        drawing: Drawing::Points(vec![series(name, points)], vec![reference]),
    };
    let charts = vec![
        chart(
            "Measured and fitted values",
            &format!("measured {y}"),
            "measured",
            measured,
            series("measured = fitted", ends.map(|end| (end, end)).to_vec()),
        ),
        chart(
            "Residuals",
            "residual: measured − fitted, %",
            "residual",
            points(|point| (point.fitted, point.residual_pct)),
            series("none", ends.map(|end| (end, 0.0)).to_vec()),
        ),
    ];
    let terms = fit.coefficients.iter().map(|(term, c)| {
        let vif = fit.vif.get(term).map_or(String::new(), |vif| short(*vif));
        vec![term.clone(), short(c.value), format!("{} … {}", short(c.low), short(c.high)), vif]
    });
    let residuals = &fit.residuals;
    let share = |share: f64| short(100.0 * share);
    let mut notes = vec![
        format!(
            "{} points; intervals at {} %; R² {:.6}; the median leave-one-out error is {} %",
            fit.n,
            100.0 * fit.level,
            fit.r2,
            short(fit.loo_median_pct)
        ),
        format!(
            "{} % of the points lie within 0.5 %, {} % within 1 %, {} % within 3 %; the largest residual is {} %",
            share(residuals.within_0_5_pct),
            share(residuals.within_1_pct),
            share(residuals.within_3_pct),
            short(residuals.max_pct)
        ),
    ];
    if let Some(check) = check {
        notes.push(format!(
            "{} points that were not fitted: median error {} %, 95 % of them within {} %: {}",
            check.n,
            short(check.median_pct),
            short(check.p95_pct),
            word(&check.verdict)
        ));
    }
    if let Some(fcs) = fit.fcs {
        notes.push(format!("frame sizes are {fcs} FCS"));
    }
    notes.extend(fit.warnings.iter().cloned());
    let titles = ["term", "coefficient", "interval", "variance inflation"];
    Section { title: format!("Fit of {y}"), notes, charts, tables: vec![Grid::new(titles, terms)] }
}

fn predictions(output: &PredictionOutput) -> Section {
    let mut notes = vec![output.model.clone()];
    let mut rows = Vec::new();
    for prediction in &output.predictions {
        let at: Vec<String> =
            prediction.at.iter().map(|(name, value)| format!("{name} = {}", short(*value))).collect();
        let none = || "–".to_owned();
        let throughput = prediction.throughput();
        rows.push(vec![
            at.join(", "),
            interval(prediction.y),
            throughput.map_or_else(none, |t| interval(t.ns_per_packet)),
            throughput.map_or_else(none, |t| interval(t.throughput_pps)),
            throughput.map_or_else(String::new, |t| word(&t.limit)),
            throughput.and_then(|t| t.frame).map_or_else(none, |frame| short(frame.wire_bytes)),
        ]);
        notes.extend(prediction.warnings().iter().cloned());
    }
    notes.dedup();
    let titles = ["at", "y", "ns per packet", "packets/s", "limited by", "line time, bytes"];
    Section { title: "Predictions".to_owned(), notes, charts: vec![], tables: vec![Grid::new(titles, rows)] }
}

fn cores(output: &CoresOutput) -> Section {
    let lines = output.rows.iter().map(|row| {
        let name = format!("{} Gbit/s, {} steps", short(row.gbit_per_s), short(row.steps));
        let key = ((row.gbit_per_s * 1e3) as u64, row.steps as u64);
        (key, name, row.frame_bytes, row.cores.value)
    });
    let chart = Chart {
        title: "Cores required for a link".to_owned(),
        x: axis("frame size with FCS, bytes", Scale::Linear),
        y: axis("number of cores", Scale::Log10),
        drawing: Drawing::Lines(thinned(series(lines))),
    };
    let rows = output.rows.iter().take(ROWS_MAX).map(|row| {
        vec![
            short(row.gbit_per_s),
            short(row.frame_bytes),
            short(row.steps),
            short(row.packets_per_s),
            interval(row.ns_per_packet),
            interval(row.cores),
            row.whole_cores.to_string(),
        ]
    });
    let titles = ["Gbit/s", "frame, B", "steps", "packets/s", "ns per packet", "cores", "whole cores"];
    let mut notes = vec![
        output.model.clone(),
        format!(
            "frame sizes include the FCS; line time adds {} bytes per frame; sizes in the model are {} FCS",
            short(output.framing_bytes),
            output.model_fcs
        ),
    ];
    notes.extend(output.warnings.iter().cloned());
    Section { title: "Cores".to_owned(), notes, charts: vec![chart], tables: vec![Grid::new(titles, rows)] }
}

fn budget(BudgetOutput { budget, .. }: &BudgetOutput) -> Section {
    let estimates = [
        ("cycles between packets", Some(budget.arrival_cycles)),
        ("cycles between packets by the other formula", Some(budget.other_formula_arrival_cycles)),
        ("packets/s", Some(budget.packets_per_s)),
        ("share of the offered load", budget.share_of_offered),
        ("cycles a thread holds a packet", Some(budget.thread_cycles)),
    ];
    let rows =
        estimates.into_iter().filter_map(|(name, value)| Some(vec![name.to_owned(), interval(value?)]));
    let tables = vec![Grid::new(["", "value and range"], rows)];
    Section { title: "Budget".to_owned(), notes: budget.warnings.clone(), charts: vec![], tables }
}

fn index(IndexOutput { index, source, predicted_pps }: &IndexOutput) -> Section {
    let rows = index.platforms.iter().map(|platform| {
        let left_out = platform.left_out_error_pct.map_or("–".to_owned(), short);
        vec![platform.name.clone(), short(platform.index), left_out]
    });
    let tables = vec![Grid::new(["platform", "index", "left out, %"], rows)];
    let mut notes = vec![format!(
        "variant {}: index {}, M = {}, N = {} s, over {source}",
        word(&index.variant),
        bounded(index.index),
        bounded(index.m),
        bounded(index.n_s),
    )];
    if let Some(pps) = predicted_pps {
        notes.push(format!("predicted: {} packets/s", bounded(*pps)));
    }
    notes.extend(index.warnings.iter().cloned());
    Section { title: "Index of platforms".to_owned(), notes, charts: vec![], tables }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Report;
    use fastpath_model::Table;
    use fastpath_model::budget::{BudgetQuery, Formula, Layout, PacketCycles, budget};
    use fastpath_model::cores::CoresQuery;
    use fastpath_model::fit::{FitOptions, fit};
    use fastpath_model::index::{LENGTH_BYTES, Variant, index};
    use fastpath_model::predict::{PredictionQuery, predict_point};
    use fastpath_model::publications::{netcope, scion};
    use serde_json::json;

    fn printed(output: &impl serde::Serialize) -> Value {
        serde_json::to_value(output).expect("serialisable")
    }

    #[test]
    fn outputs_of_models_and_evaluations_are_sections_of_a_report() {
        let table = Table::from_csv(
            "p,fcs,T_ns\n60,without,45\n124,without,51.6\n252,without,64.3\n508,without,90\n",
        )
        .unwrap();
        let mut found = fit(&table, "T_ns", "const,p", &FitOptions::default()).unwrap();
        found.warnings.push("look <here>".to_owned());
        let at = vec![("p".to_owned(), 9000.0)];
        let query = PredictionQuery { transfer: None, cores: 1.0, line_gbit: None, packet_cap: None, at };
        let predictions = vec![predict_point(&found.model(), &query).unwrap()];
        let predicted = PredictionOutput { model: "m".to_owned(), predictions, check: None };
        let question =
            CoresQuery { speeds_gbit: vec![10.0], frames_bytes: vec![64.0], ..CoresQuery::chart(&[0.0]) };
        let cores = CoresOutput::new("m".to_owned(), &netcope::model(), &question).unwrap();
        let question = BudgetQuery {
            layout: Layout::Pipelined(vec![PacketCycles::new(290.0, 470.0)]),
            threads: 4,
            hidden: None,
            clock_hz: 232e6,
            offered_pps: None,
            formula: Formula::PerPacket,
        };
        let budget = BudgetOutput { budget: budget(&question).unwrap(), question };
        let index = IndexOutput {
            index: index(&scion::platforms(), LENGTH_BYTES, Variant::FitMN).unwrap(),
            source: "three platforms".to_owned(),
            predicted_pps: None,
        };
        let evaluated = json!({"results": [
            {"id": "a", "ours": 1.5, "pass": false, "original": 2.0},
            {"id": "c1", "publication": "P", "place": "Figure 1", "quantity": "rate, kbit/s", "point": {"axis": "size, bytes", "value": 64.0}, "original": 1.0, "ours": 2.0, "low": 1.0, "high": 3.0, "pass": true},
            {"id": "c2", "publication": "P", "place": "Figure 1", "quantity": "rate, kbit/s", "point": {"axis": "size, bytes", "value": 128.0}, "original": 2.0, "ours": 3.0, "low": 1.0, "high": 3.0, "pass": true},
            {"id": "c3", "publication": "P", "place": "Figure 1", "quantity": "rate, kbit/s", "point": {"axis": "size, bytes", "value": 256.0}, "original": null, "ours": 4.0, "low": 4.0, "high": 4.0, "pass": true},
            {"id": "b", "publication": "Joglekar 2004", "place": "Table 5.6", "quantity": "loss", "doc_value": "", "ours": "1", "pass": true},
        ], "passed": 1, "total": 2});
        let fitted = printed(&FitOutput { fit: found, check: None });
        let outputs =
            [fitted, printed(&predicted), printed(&cores), printed(&budget), printed(&index), evaluated];
        let mut report = Report::new(&[]);
        for output in outputs {
            report = report.with_output(&CommandOutput::parse(output).expect("an output"));
        }
        let text = report.markdown();
        for shown in [
            "| p | 0.1",
            "look <here>",
            "frame sizes are without FCS",
            "| 10 | 64 |",
            "extrapolation: p = 9000",
            "| – | – | a | 2 | 1.5 | – | MISS |  | a |",
            "## Joglekar 2004",
            "University of Utah",
            "| Table 5.6 | loss | – | 1 |",
            "| cycles between packets | 290 [290, 760] |",
            "| APU2 |",
            "(no error bar), N =",
        ] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        assert!(
            text.contains("| Figure 1 | rate, kbit/s; size 256 bytes | – | 4 | exactly 4 | ok |"),
            "{text}"
        );
        let image = report.svg();
        for shown in [
            "Figure 1: rate, kbit/s",
            "published",
            "ours",
            "kbit/s",
            "size, bytes",
            "fitted time per packet, ns",
        ] {
            assert!(image.contains(&format!(">{shown}</text>")), "{shown}: {image}");
        }
    }

    #[test]
    fn the_evaluation_of_models_has_a_chart_of_its_differences() {
        let figure = |id: &str, published: &str, ours: serde_json::Value| {
            json!({"id": id, "publication": "Joglekar 2004", "place": "Table 5.6", "quantity": "loss",
                   "doc_value": published, "ours": ours, "pass": true})
        };
        let results = [
            ("a", "10", json!(10.5)),
            ("b", "2", json!(2.0)),
            ("c", "-4", json!(-5.0)),
            ("d", "0", json!(1.0)),
        ];
        let results = results.map(|(id, published, ours)| figure(id, published, ours));
        let evaluated = json!({"results": results, "passed": 4, "total": 4});
        let report = Report::new(&[]).with_output(&CommandOutput::parse(evaluated).expect("an output"));
        let image = report.svg();
        for shown in
            ["Difference of the recomputed figures from the published ones", "Joglekar 2004", "as published"]
        {
            assert!(image.contains(&format!(">{shown}</text>")), "{shown}: {image}");
        }
    }

    #[test]
    fn objects_that_no_command_prints_are_refused_with_the_reason() {
        let error = |output: Value| CommandOutput::parse(output).unwrap_err().to_string();
        assert!(error(json!({"x": 1})).starts_with("neither a record nor output"));
        let wrong = error(json!({"coefficients": {}}));
        assert!(wrong.starts_with("not what `fastpath model fit --json` prints: missing field"), "{wrong}");
    }
}
