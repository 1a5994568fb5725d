//! Metrics: numbers that are taken from the evidence of a run.

use super::evidence::{Evidence, Readings, in_order};
use super::step::{RunKind, RunStep, StepAction};
use fastpath_text::fields::{Field, Fields, Name};
use fastpath_text::mistake::{Remarks, choice};
use fastpath_traffic::{AnswerTime, FlowDelay, FlowReport, TransferReport};
use fastpath_units::stats::{quantile, sorted};
use regex_lite::Regex;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt;
use std::fs;

/// Names of the numbers of a link that are counted to the end of a run.
pub(super) const COUNTERS: [&str; 8] =
    ["frames_in", "frames_out", "bytes_in", "bytes_out", "dropped", "marked", "duplicated", "corrupted"];
/// Names of the numbers of a link that are sampled during a run.
pub(super) const GAUGES: [&str; 3] = ["queueing_delay_ms", "queued_frames", "queued_bytes"];

/// A number, or many of one run, and how they become one.
#[derive(Clone, Debug)]
pub(super) struct Metric {
    pub(super) name: String,
    source: Source,
    /// What every number is multiplied by.
    scale: f64,
    /// The unit after it; empty for none.
    pub(super) unit: String,
    /// The number that stands in the table.
    pub(super) reduce: Reduce,
}

#[derive(Clone, Debug)]
enum Source {
    /// A value of the JSON that a command printed.
    Json { step: String, path: Vec<String> },
    /// The first group of every match in the output of a command.
    Pattern { step: String, pattern: Regex },
    /// A number of a link.
    Link { link: Name, from: Option<Name>, name: String },
    /// A value of the results of a flow of the description's traffic.
    Flow { flow: Name, path: Vec<String> },
    /// A value of the results of its connections.
    Transfer { transfer: Name, path: Vec<String> },
    /// Frames in virtual time that ended so.
    Frames(String),
    /// The times in the network of the delivered frames.
    Delay,
}

/// The keys of which a metric has one: what its numbers are taken from.
const SOURCES: [&str; 6] = ["of", "link", "flow", "transfer", "frames", "delay"];

impl Metric {
    /// Reads the table of a metric.
    pub(super) fn read(
        name: String,
        mut fields: Fields,
        mode: &RunKind,
        remarks: &mut Remarks,
    ) -> Option<Metric> {
        let source = source(&mut fields, mode, remarks);
        let scale = fields.get("scale").and_then(|field| scale(&field, remarks)).unwrap_or(1.0);
        let unit = fields.get("unit").and_then(|field| field.text("ms", remarks)).unwrap_or_default();
        let reduce = match fields.get("reduce") {
            Some(field) => Reduce::read(field.text("p99", remarks), field.at, remarks),
            None => Some(Reduce::MEDIAN),
        };
        // The keys of other sources are known, so that they are named as what they are.
        for key in SOURCES.into_iter().chain(["json", "pattern", "from", "value"]) {
            fields.get(key);
        }
        fields.finish(remarks);
        Some(Metric { name, source: source?, scale, unit: unit.to_owned(), reduce: reduce? })
    }

    /// The link that it is taken from, and the node from which the direction leads if it is one
    /// direction only.
    pub(super) fn link(&self) -> Option<(&Name, Option<&Name>)> {
        match &self.source {
            Source::Link { link, from, .. } => Some((link, from.as_ref())),
            _ => None,
        }
    }

    /// The traffic that it is taken from, and whether that is a transfer.
    pub(super) fn traffic(&self) -> Option<(&Name, bool)> {
        match &self.source {
            Source::Flow { flow, .. } => Some((flow, false)),
            Source::Transfer { transfer, .. } => Some((transfer, true)),
            _ => None,
        }
    }

    /// Whether it is the time in the network of each frame.
    pub(super) fn is_delay(&self) -> bool {
        matches!(self.source, Source::Delay)
    }

    /// What is missing to compute it from the evidence of a run, if so: nothing asked for it then.
    pub(super) fn lacks(&self, evidence: &Evidence) -> Option<String> {
        let what = match &self.source {
            Source::Delay if evidence.delays_ps.is_none() => "the times of the frames were not kept",
            Source::Link { .. } if self.is_sampled() && evidence.samples.is_none() => {
                "the links were not sampled"
            }
            _ => return None,
        };
        // A run without an end has no evidence, and is left out anyway.
        evidence.problem.is_none().then(|| format!("metric {} cannot be computed: {what}", self.name))
    }

    /// Whether links are sampled for it during a run.
    pub(super) fn is_sampled(&self) -> bool {
        matches!(&self.source, Source::Link { name, .. } if GAUGES.contains(&name.as_str()))
    }

    /// As JSON: its source and what is made of the numbers.
    pub(super) fn json(&self) -> Value {
        let source = match &self.source {
            Source::Json { step, path } => json!({ "of": step, "json": path.join(".") }),
            Source::Pattern { step, pattern } => json!({ "of": step, "pattern": pattern.as_str() }),
            Source::Link { link, from, name } => {
                json!({ "link": &**link, "from": from.as_deref(), "value": name })
            }
            Source::Flow { flow, path } => json!({ "flow": &**flow, "value": path.join(".") }),
            Source::Transfer { transfer, path } => {
                json!({ "transfer": &**transfer, "value": path.join(".") })
            }
            Source::Frames(end) => json!({ "frames": end }),
            Source::Delay => json!({ "delay": true }),
        };
        json!({
            "name": self.name, "source": source, "scale": self.scale, "unit": self.unit,
            "reduce": self.reduce.to_string(),
        })
    }

    /// Returns the numbers of a run, in their order.
    ///
    /// # Errors
    /// Why there are none.
    pub(super) fn samples(&self, evidence: &Evidence) -> Result<Vec<f64>, String> {
        let found = match &self.source {
            Source::Json { step, path } => {
                let text = output(evidence, step)?;
                let value: Value = serde_json::from_str(&text)
                    .map_err(|error| format!("the output of {step} is not JSON: {error}"))?;
                let mut found = Vec::new();
                numbers(&value, path, &mut found);
                found
            }
            Source::Pattern { step, pattern } => {
                let text = output(evidence, step)?;
                pattern.captures_iter(&text).filter_map(|found| found[1].parse().ok()).collect()
            }
            Source::Link { link, from, name } => {
                let is_of = |readings: &&Readings| {
                    readings.link == **link
                        && from.as_ref().is_none_or(|from| readings.from == **from)
                        && readings.name == *name
                };
                if GAUGES.contains(&name.as_str()) {
                    let sampled = evidence.samples.iter().flatten().filter(is_of);
                    in_order(&sampled.collect::<Vec<_>>())
                } else {
                    // A drop reason without frames is not in the report: it is 0.
                    vec![evidence.counters.iter().filter(is_of).flat_map(|of| &of.values).sum()]
                }
            }
            Source::Flow { flow, path } => {
                of_report(evidence.flows.iter().find(|report| report.name == **flow), path)
            }
            Source::Transfer { transfer, path } => {
                of_report(evidence.transfers.iter().find(|report| report.name == **transfer), path)
            }
            Source::Frames(end) if end == "dropped" => {
                let dropped = evidence.frames.iter().filter(|(name, _)| *name != "delivered");
                vec![dropped.map(|(_, count)| *count as f64).sum()]
            }
            Source::Frames(end) => vec![evidence.frames.get(end).copied().unwrap_or(0) as f64],
            Source::Delay => evidence.delays_ps.iter().flatten().map(|delay| *delay as f64 / 1e9).collect(),
        };
        if found.is_empty() {
            return Err(format!("metric {}: nothing was found", self.name));
        }
        // A sum of nothing is -0, and so is 0 times a scale below 0.
        Ok(found.into_iter().map(|value| value * self.scale + 0.0).collect())
    }
}

/// Reads what the numbers are taken from.
fn source(fields: &mut Fields, mode: &RunKind, remarks: &mut Remarks) -> Option<Source> {
    let given: Vec<&str> = SOURCES.into_iter().filter(|key| fields.peek(key).is_some()).collect();
    let sources = match mode {
        RunKind::Replay(_) => {
            "frames = \"delivered\" (or a drop reason), delay = true, link = \"NAME\", flow = \"NAME\" and transfer = \"NAME\""
        }
        RunKind::Lab(_) => "of = \"STEP\", link = \"NAME\", flow = \"NAME\" and transfer = \"NAME\"",
    };
    let [key] = given[..] else {
        let what = match given.is_empty() {
            true => format!("{} has no source", fields.what),
            false => format!("{} has {}", fields.what, given.join(" and ")),
        };
        remarks.mistake(fields.at, what, format!("write exactly one of {sources}"));
        return None;
    };
    let field = fields.get(key)?;
    let is_virtual = matches!(mode, RunKind::Replay(_));
    match (key, is_virtual) {
        ("of", true) => {
            let what = format!("{key} is of a lab, and the runs are in virtual time");
            remarks.mistake(field.at, what, format!("write exactly one of {sources}"));
            return None;
        }
        ("frames" | "delay", false) => {
            let what = format!("{key} is of virtual time, and the runs are in a lab");
            remarks.mistake(field.at, what, format!("write exactly one of {sources}"));
            return None;
        }
        _ => {}
    }
    let own: &[&str] = match key {
        "of" => &["json", "pattern"],
        "link" => &["value", "from"],
        "flow" | "transfer" => &["value"],
        _ => &[],
    };
    for other in ["json", "pattern", "from", "value"].into_iter().filter(|other| !own.contains(other)) {
        if let Some(other) = fields.get(other) {
            remarks.mistake(other.at, format!("{} has no effect beside {key}", other.key), "remove it");
        }
    }
    match key {
        "of" => command(&field, fields, mode, remarks),
        "link" => link(&field, fields, remarks),
        "flow" => traffic(&field, fields, ("flow", "received_bps", sample_report()), remarks)
            .map(|(flow, path)| Source::Flow { flow, path }),
        "transfer" => traffic(&field, fields, ("transfer", "goodput_bps", sample_transfer()), remarks)
            .map(|(transfer, path)| Source::Transfer { transfer, path }),
        "frames" => frames(&field, remarks).map(Source::Frames),
        _ => match field.switch(remarks)? {
            true => Some(Source::Delay),
            false => {
                remarks.mistake(field.at, "delay = false is not a source of numbers", "write delay = true");
                None
            }
        },
    }
}

/// The output of a command.
fn command(field: &Field, fields: &mut Fields, mode: &RunKind, remarks: &mut Remarks) -> Option<Source> {
    let of = field.name("transfer", remarks)?;
    let RunKind::Lab(steps) = mode else { return None };
    let is_command = |step: &&RunStep| matches!(step.action, StepAction::Run { .. });
    let commands = || steps.iter().filter(is_command).map(|step| step.name.as_str());
    if !commands().any(|name| name == &*of) {
        remarks.mistake(of.at, format!("no step '{of}' runs a command"), choice(&of, commands()));
    }
    let step = of.text;
    match (fields.get("json"), fields.get("pattern")) {
        (Some(json), None) => {
            let path = json.text("end.sum_received.bits_per_second", remarks)?;
            Some(Source::Json { step, path: path.split('.').map(str::to_owned).collect() })
        }
        (None, Some(field)) => {
            let text = field.text("time=([0-9.]+)", remarks)?;
            let (what, instead) = match Regex::new(text) {
                Ok(pattern) if pattern.captures_len() == 2 => return Some(Source::Pattern { step, pattern }),
                Ok(_) => {
                    ("the pattern does not have one group".to_owned(), "write for example 'time=([0-9.]+)'")
                }
                Err(error) => {
                    let last = error.to_string();
                    let last =
                        last.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                    (
                        format!("the pattern is wrong: {last}"),
                        "write a regular expression such as 'time=([0-9.]+)'",
                    )
                }
            };
            remarks.mistake(field.at, what, instead);
            None
        }
        _ => {
            let what = format!("{} does not say which numbers of the output it takes", fields.what);
            remarks.mistake(fields.at, what, "write exactly one of json = \"PATH\" and pattern = 'REGEX'");
            None
        }
    }
}

/// A number of a link.
fn link(field: &Field, fields: &mut Fields, remarks: &mut Remarks) -> Option<Source> {
    let link = field.name("a-b", remarks);
    let from = fields.get("from").map(|field| field.name("a", remarks));
    let reasons = fastpath::link::DropReason::ALL.map(fastpath::link::DropReason::name);
    let known: Vec<&str> = COUNTERS.into_iter().chain(GAUGES).chain(reasons).collect();
    let Some(value) = fields.get("value") else {
        let what = format!("{} has no value of the link", fields.what);
        remarks.mistake(fields.at, what, format!("write value = one of {}", known.join(", ")));
        return None;
    };
    let index = value.word("a value of a link", &known, remarks)?;
    // A direction that cannot be read is not both directions.
    let from = from.map_or(Some(None), |from| from.map(Some))?;
    Some(Source::Link { link: link?, from, name: known[index].to_owned() })
}

/// The name of traffic, and a value of its results.
fn traffic(
    field: &Field,
    fields: &mut Fields,
    (what, example, report): (&str, &str, Value),
    remarks: &mut Remarks,
) -> Option<(Name, Vec<String>)> {
    let name = field.name("call", remarks);
    let mut known = Vec::new();
    paths(&report, "", &mut known);
    let Some(value) = fields.get("value") else {
        let what = format!("{} has no value of the {what}", fields.what);
        remarks.mistake(fields.at, what, format!("write value = one of {}", known.join(", ")));
        return None;
    };
    let text = value.text(example, remarks)?;
    let path: Vec<String> = text.split('.').map(str::to_owned).collect();
    let mut found = Vec::new();
    numbers(&report, &path, &mut found);
    if found.is_empty() {
        let instead = choice(text, known.iter().map(String::as_str));
        remarks.mistake(value.at, format!("a {what} has no value '{text}'"), instead);
        return None;
    }
    Some((name?, path))
}

/// The report of a transfer with an answer, as JSON.
fn sample_transfer() -> Value {
    let report = TransferReport {
        name: String::new(),
        kind: String::new(),
        from: String::new(),
        to: String::new(),
        congestion: String::new(),
        received_bytes: 1,
        received_s: 1.0,
        goodput_bps: 1.0,
        complete: true,
        flow_bytes: vec![1],
        segments: 1,
        retransmitted: 1,
        timeouts: Some(1),
        marked: Some(1),
        rtt_min_ms: Some(1.0),
        requests: 1,
        answers: 1,
        answer: Some(AnswerTime { min_ms: 1.0, mean_ms: 1.0, p50_ms: 1.0, p99_ms: 1.0, max_ms: 1.0 }),
    };
    serde_json::to_value(report).expect("a report is plain data")
}

/// The report of a flow of which something was received, as JSON.
fn sample_report() -> Value {
    let delay =
        FlowDelay { min_ms: 1.0, mean_ms: 1.0, p50_ms: 1.0, p99_ms: 1.0, max_ms: 1.0, jitter_ms: 1.0 };
    let report = FlowReport {
        name: String::new(),
        from: String::new(),
        to: String::new(),
        asked: 1,
        sent: 1,
        sent_bytes: 1,
        received: 1,
        received_bytes: 1,
        lost: 1,
        duplicates: 1,
        reordered: 1,
        overrun: 1,
        burst_max: 1,
        asked_bps: 1.0,
        sent_bps: 1.0,
        received_bps: 1.0,
        sent_s: 1.0,
        received_s: 1.0,
        delay: Some(delay),
    };
    serde_json::to_value(report).expect("a report is plain data")
}

/// Collects the paths of the numbers in a value.
fn paths(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(path.to_owned()),
        Value::Object(entries) => {
            for (key, value) in entries {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                paths(value, &path, found);
            }
        }
        _ => {}
    }
}

/// The end of frames that are counted.
fn frames(field: &Field, remarks: &mut Remarks) -> Option<String> {
    let known: Vec<&str> =
        ["delivered", "dropped"].into_iter().chain(fastpath::net::Reason::names()).collect();
    field.word("an end of frames", &known, remarks).map(|index| known[index].to_owned())
}

fn scale(field: &Field, remarks: &mut Remarks) -> Option<f64> {
    let scale = field.number("1e-6", remarks)?;
    if scale == 0.0 {
        remarks.mistake(field.at, "scale = 0 makes every number 0", "write a factor such as 1e-6");
        return None;
    }
    Some(scale)
}

fn output(evidence: &Evidence, step: &str) -> Result<String, String> {
    let file = evidence.outputs.get(step).ok_or_else(|| format!("step {step} did not run"))?;
    let path = evidence.directory.join(file);
    fs::read(&path)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the numbers at a path of the results of traffic.
fn of_report(report: Option<&impl Serialize>, path: &[String]) -> Vec<f64> {
    let value = serde_json::to_value(report).expect("a report is plain data");
    let mut found = Vec::new();
    numbers(&value, path, &mut found);
    found
}

/// Collects the numbers at a path: keys, indices, and `*` for all elements.
fn numbers(value: &Value, path: &[String], found: &mut Vec<f64>) {
    let Some((first, rest)) = path.split_first() else {
        found.extend(value.as_f64());
        return;
    };
    match value {
        Value::Array(all) if first == "*" => all.iter().for_each(|value| numbers(value, rest, found)),
        Value::Object(all) if first == "*" => all.values().for_each(|value| numbers(value, rest, found)),
        Value::Array(all) => {
            let chosen = first.parse().ok().and_then(|index: usize| all.get(index));
            chosen.into_iter().for_each(|value| numbers(value, rest, found));
        }
        Value::Object(all) => all.get(first).into_iter().for_each(|value| numbers(value, rest, found)),
        _ => {}
    }
}

/// How many numbers become one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Reduce {
    Mean,
    Sum,
    Count,
    Min,
    Max,
    First,
    Last,
    StandardDeviation,
    /// The quantile, from 0 to 1.
    Quantile(f64),
}

impl Reduce {
    /// Reduces numbers, of which there is at least one.
    pub(super) fn of(self, numbers: &[f64]) -> f64 {
        let n = numbers.len() as f64;
        let mean = || numbers.iter().sum::<f64>() / n;
        match self {
            Reduce::Mean => mean(),
            Reduce::Sum => numbers.iter().sum(),
            Reduce::Count => n,
            Reduce::Min => numbers.iter().copied().fold(f64::INFINITY, f64::min),
            Reduce::Max => numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Reduce::First => numbers[0],
            Reduce::Last => numbers[numbers.len() - 1],
            Reduce::StandardDeviation if numbers.len() < 2 => 0.0,
            Reduce::StandardDeviation => {
                let mean = mean();
                (numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
            }
            Reduce::Quantile(share) => quantile(&sorted(numbers.iter().copied()), share),
        }
    }
}

impl Reduce {
    pub(super) const MEDIAN: Reduce = Reduce::Quantile(0.5);
    /// The words; percentiles are `p` and a number.
    const WORDS: [(&str, Reduce); 9] = [
        ("median", Reduce::MEDIAN),
        ("mean", Reduce::Mean),
        ("sum", Reduce::Sum),
        ("count", Reduce::Count),
        ("min", Reduce::Min),
        ("max", Reduce::Max),
        ("first", Reduce::First),
        ("last", Reduce::Last),
        ("stddev", Reduce::StandardDeviation),
    ];

    /// Reads the word of a file, at a byte offset. `None`: there is no text, or it is a mistake.
    pub(super) fn read(text: Option<&str>, at: usize, remarks: &mut Remarks) -> Option<Reduce> {
        let text = text?;
        if let Some((_, reduce)) = Reduce::WORDS.iter().find(|(word, _)| *word == text) {
            return Some(*reduce);
        }
        let percent = text.strip_prefix('p').and_then(|number| number.parse::<f64>().ok());
        let found = percent.filter(|percent| (0.0..=100.0).contains(percent));
        if found.is_none() {
            let what = format!("'{text}' does not make one number of many");
            remarks.mistake(
                at,
                what,
                choice(text, Reduce::WORDS.map(|(word, _)| word).into_iter().chain(["p99"])),
            );
        }
        found.map(|percent| Reduce::Quantile(percent / 100.0))
    }
}

impl fmt::Display for Reduce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reduce::Mean => write!(f, "mean"),
            Reduce::Sum => write!(f, "sum"),
            Reduce::Count => write!(f, "count"),
            Reduce::Min => write!(f, "min"),
            Reduce::Max => write!(f, "max"),
            Reduce::First => write!(f, "first"),
            Reduce::Last => write!(f, "last"),
            Reduce::StandardDeviation => write!(f, "stddev"),
            Reduce::Quantile(share) if *share == 0.5 => write!(f, "median"),
            Reduce::Quantile(share) => write!(f, "p{}", 100.0 * share),
        }
    }
}
