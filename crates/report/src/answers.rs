//! What `fastpath model` and `fastpath evaluate` print with --json: fits, predictions, cores, an
//! index, a budget, evaluations. They have no provenance of their own; what they were made of does.

use crate::chart::{Axis, Chart, Drawing, Scale, Series};
use crate::sections::{axis, interval, number, series, thinned, word};
use crate::{Grid, Section, short};
use serde_json::Value;

/// Rows of a table.
const ROWS_MAX: usize = 500;

/// How an answer is known, and what is shown of it.
type Kind = (&'static str, fn(&Value) -> Section);

/// Answers by a field that no other has.
const KINDS: [Kind; 6] = [
    ("coefficients", fit),
    ("predictions", predictions),
    ("rows", cores),
    ("arrival_cycles", budget),
    ("platforms", index),
    ("passed", evaluation),
];

/// The section of an answer; none for what is none.
pub(super) fn section(answer: &Value) -> Option<Section> {
    let (_, show) = KINDS.iter().find(|(field, _)| answer.get(field).is_some())?;
    Some(show(answer))
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value[name].as_array().into_iter().flatten()
}

fn warnings(answer: &Value) -> Vec<String> {
    list(answer, "warnings").map(|warning| word(Some(warning))).collect()
}

fn fit(answer: &Value) -> Section {
    let unit = word(answer.get("y"));
    let mut points: Vec<[f64; 3]> = list(answer, "points")
        .map(|point| ["fitted", "measured", "residual_pct"].map(|name| number(&point[name])))
        .collect();
    points.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let against = |column: usize| points.iter().map(|p| (p[0], p[column])).collect::<Vec<_>>();
    let line = |name: &str, points: Vec<(f64, f64)>| Series { name: name.to_owned(), points };
    let chart = |title: &str, y: Axis, lines: Vec<Series>| Chart {
        title: title.to_owned(),
        x: axis(&format!("{unit}, fitted"), Scale::Linear),
        y,
        drawing: Drawing::Lines(lines),
    };
    let charts = vec![
        chart(
            "Measured beside fitted",
            axis(&unit, Scale::Linear),
            vec![line("measured", against(1)), line("fitted", against(0))],
        ),
        chart("Residuals", axis("measured − fitted, %", Scale::Linear), vec![line("residual", against(2))]),
    ];
    let terms = answer["coefficients"].as_object().into_iter().flatten().map(|(term, c)| {
        let [value, low, high] = ["value", "low", "high"].map(|name| short(number(&c[name])));
        let vif = answer["vif"].get(term).map_or(String::new(), |vif| short(number(vif)));
        vec![term.clone(), value, format!("{low} … {high}"), vif]
    });
    let level = 100.0 * number(&answer["level"]);
    let residuals = &answer["residuals"];
    let share = |name: &str| short(100.0 * number(&residuals[name]));
    let mut notes = vec![
        format!(
            "{} points; intervals at {level} %; R² {:.6}; left out in turn, a point is missed by {} % in the median",
            answer["n"],
            number(&answer["r2"]),
            short(number(&answer["loo_median_pct"]))
        ),
        format!(
            "{} % of the points lie within 0.5 %, {} % within 1 %, {} % within 3 %; the largest residual is {} %",
            share("within_0_5_pct"),
            share("within_1_pct"),
            share("within_3_pct"),
            short(number(&residuals["max_pct"]))
        ),
    ];
    if let Some(check) = answer.get("check").filter(|check| !check.is_null()) {
        let [median, p95] = ["median_pct", "p95_pct"].map(|name| short(number(&check[name])));
        notes.push(format!(
            "{} points not fitted are predicted within {median} % in the median and {p95} % at 95 of 100: {}",
            check["n"],
            word(check.get("verdict"))
        ));
    }
    if let Some(fcs) = answer["fcs"].as_str() {
        notes.push(format!("frame sizes are {fcs} FCS"));
    }
    notes.extend(warnings(answer));
    let titles = vec!["term", "coefficient", "interval", "variance inflation"];
    Section {
        title: format!("Fit of {unit}"),
        notes,
        charts,
        tables: vec![Grid { titles, rows: terms.collect() }],
    }
}

fn predictions(answer: &Value) -> Section {
    let mut notes = vec![word(answer.get("model"))];
    let mut rows = Vec::new();
    for prediction in list(answer, "predictions") {
        let at = prediction["at"].as_object().into_iter().flatten();
        let at: Vec<String> = at.map(|(name, value)| format!("{name} = {}", short(number(value)))).collect();
        let estimate = |name: &str| prediction.get(name).map_or("–".to_owned(), interval);
        rows.push(vec![
            at.join(", "),
            estimate("y"),
            estimate("ns_per_packet"),
            estimate("throughput_pps"),
            prediction.get("limit").map_or(String::new(), |limit| word(Some(limit))),
            prediction["frame"].get("wire_bytes").map_or("–".to_owned(), |bytes| short(number(bytes))),
        ]);
        notes.extend(warnings(prediction));
    }
    notes.dedup();
    let titles = vec!["at", "y", "ns per packet", "packets/s", "limited by", "line time, bytes"];
    Section { title: "Predictions".to_owned(), notes, charts: vec![], tables: vec![Grid { titles, rows }] }
}

fn cores(answer: &Value) -> Section {
    let lines = list(answer, "rows").map(|row| {
        let [gbit, steps] = ["gbit_per_s", "steps"].map(|name| number(&row[name]));
        let name = format!("{} Gbit/s, {} steps", short(gbit), short(steps));
        (
            ((gbit * 1e3) as u64, steps as u64),
            name,
            number(&row["frame_bytes"]),
            number(&row["cores"]["value"]),
        )
    });
    let chart = Chart {
        title: "Cores a link needs".to_owned(),
        x: axis("frame with FCS, bytes", Scale::Linear),
        y: axis("cores", Scale::Log10),
        drawing: Drawing::Lines(thinned(series(lines))),
    };
    let rows = list(answer, "rows").take(ROWS_MAX).map(|row| {
        let value = |name: &str| short(number(&row[name]));
        let sizes = [value("gbit_per_s"), value("frame_bytes"), value("steps"), value("packets_per_s")];
        let found = [interval(&row["ns_per_packet"]), interval(&row["cores"]), word(row.get("whole_cores"))];
        sizes.into_iter().chain(found).collect()
    });
    let titles = vec!["Gbit/s", "frame, B", "steps", "packets/s", "ns per packet", "cores", "whole cores"];
    let mut notes = vec![
        word(answer.get("model")),
        format!(
            "frames with FCS, and {} bytes more of line time; the model counts them {} it",
            short(number(&answer["framing_bytes"])),
            word(answer.get("model_fcs"))
        ),
    ];
    notes.extend(warnings(answer));
    Section {
        title: "Cores".to_owned(),
        notes,
        charts: vec![chart],
        tables: vec![Grid { titles, rows: rows.collect() }],
    }
}

fn budget(answer: &Value) -> Section {
    let estimates = answer.as_object().into_iter().flatten().filter(|(_, value)| value.get("high").is_some());
    let rows = estimates.map(|(name, value)| vec![name.replace('_', " "), interval(value)]).collect();
    let tables = vec![Grid { titles: vec!["", "value and range"], rows }];
    Section { title: "Budget".to_owned(), notes: warnings(answer), charts: vec![], tables }
}

fn index(answer: &Value) -> Section {
    let rows = list(answer, "platforms").map(|platform| {
        let value = |name: &str| platform.get(name).map_or("–".to_owned(), |x| short(number(x)));
        vec![word(platform.get("name")), value("index"), value("left_out_error_pct")]
    });
    let tables = vec![Grid { titles: vec!["platform", "index", "left out, %"], rows: rows.collect() }];
    let mut notes = vec![format!(
        "variant {}: index {}, M = {}, N = {} s, over {}",
        word(answer.get("variant")),
        interval(&answer["index"]),
        interval(&answer["m"]),
        interval(&answer["n_s"]),
        word(answer.get("source"))
    )];
    if let Some(pps) = answer.get("predicted_pps").filter(|pps| !pps.is_null()) {
        notes.push(format!("predicted: {} packets/s", interval(pps)));
    }
    notes.extend(warnings(answer));
    Section { title: "Index of platforms".to_owned(), notes, charts: vec![], tables }
}

/// Evaluations name what was published in different words, and all have ours and whether it comes
/// out.
fn evaluation(answer: &Value) -> Section {
    let first = |figure: &Value, names: &[&str]| {
        let known = names.iter().filter_map(|name| figure.get(name)).find(|value| !value.is_null());
        known.map_or("–".to_owned(), |value| value.as_f64().map_or_else(|| word(Some(value)), short))
    };
    let rows = list(answer, "results").map(|figure| {
        let came_out = match figure["pass"].as_bool() {
            _ if figure["noisy"] == true => "too noisy",
            Some(true) => "ok",
            Some(false) => "MISS",
            None => "–",
        };
        vec![
            first(figure, &["id"]),
            first(figure, &["quantity", "kind"]),
            first(figure, &["original", "doc_value", "asked"]),
            first(figure, &["ours"]),
            came_out.to_owned(),
            first(figure, &["note"]),
        ]
    });
    let titles = vec!["figure", "what", "published or asked", "ours", "", "note"];
    Section {
        title: "Evaluation".to_owned(),
        notes: vec![format!("{} of {} figures come out", answer["passed"], answer["total"])],
        charts: vec![],
        tables: vec![Grid { titles, rows: rows.take(ROWS_MAX).collect() }],
    }
}
