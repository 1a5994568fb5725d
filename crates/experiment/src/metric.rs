//! Metrics: numbers that are taken from the evidence of a run.

use super::evidence::{Counter, Evidence};
use super::plan::{RunKind, StepAction};
use fastpath_units::stats::{quantile, sorted};
use regex_lite::Regex;
use serde::Deserialize;
use serde_json::Value;
use std::fmt;
use std::fs;
use std::str::FromStr;

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
    Link { link: String, from: Option<String>, name: String },
    /// A value of the results of a flow of the description's traffic.
    Flow { flow: String, path: Vec<String> },
    /// Frames in virtual time that ended so.
    Frames(String),
    /// The times in the network of the delivered frames.
    Delay,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MetricFile {
    of: Option<String>,
    json: Option<String>,
    pattern: Option<String>,
    link: Option<String>,
    from: Option<String>,
    value: Option<String>,
    flow: Option<String>,
    frames: Option<String>,
    #[serde(default)]
    delay: bool,
    scale: Option<f64>,
    unit: Option<String>,
    reduce: Option<String>,
}

impl Metric {
    /// Reads the table of a metric.
    pub(super) fn read(
        name: String,
        table: toml::Table,
        mode: &RunKind,
        mistakes: &mut Vec<String>,
    ) -> Option<Metric> {
        let mut fail = |what: String| {
            mistakes.push(format!("metric {name}: {what}"));
            None
        };
        let file: MetricFile = match table.try_into() {
            Ok(file) => file,
            Err(error) => return fail(error.message().replace('\n', " ")),
        };
        let reduce = match file.reduce.as_deref().unwrap_or("median").parse() {
            Ok(reduce) => reduce,
            Err(what) => return fail(what),
        };
        let is_virtual = matches!(mode, RunKind::Replay(_));
        let step = match (file.of, mode) {
            (None, _) => None,
            (Some(of), RunKind::Lab(steps)) => {
                let commands = steps.iter().filter(|step| matches!(step.action, StepAction::Run { .. }));
                let names: Vec<&str> = commands.map(|step| step.name.as_str()).collect();
                if !names.contains(&of.as_str()) {
                    return fail(format!("of = {of:?} is no command (have: {})", names.join(", ")));
                }
                Some(of)
            }
            (Some(_), RunKind::Replay(_)) => {
                return fail("there are no commands in virtual time; write frames or delay".to_owned());
            }
        };
        if let Some(flow) = file.flow {
            let Some(value) = file.value.filter(|_| step.is_none() && file.link.is_none()) else {
                return fail("write flow = \"NAME\" with value = \"received_bps\", \"lost\", \"delay.p99_ms\" or another".to_owned());
            };
            let path = value.split('.').map(str::to_owned).collect();
            let (scale, unit) = (file.scale.unwrap_or(1.0), file.unit.unwrap_or_default());
            return Some(Metric { name, source: Source::Flow { flow, path }, scale, unit, reduce });
        }
        let source = match (step, file.json, file.pattern, file.link, file.frames, file.delay) {
            (Some(step), Some(json), None, None, None, false) => {
                Source::Json { step, path: json.split('.').map(str::to_owned).collect() }
            }
            (Some(step), None, Some(pattern), None, None, false) => match Regex::new(&pattern) {
                Ok(pattern) if pattern.captures_len() == 2 => Source::Pattern { step, pattern },
                Ok(_) => {
                    return fail(
                        "the pattern needs one group; write for example 'time=([0-9.]+)'".to_owned(),
                    );
                }
                Err(error) => return fail(format!("the pattern is wrong: {error}").replace('\n', " ")),
            },
            (None, None, None, Some(link), None, false) if !is_virtual => {
                let Some(value) = file.value else {
                    return fail(format!("no value of the link; write value = one of {}", known_values()));
                };
                Source::Link { link, from: file.from, name: value }
            }
            (None, None, None, None, Some(frames), false) if is_virtual => Source::Frames(frames),
            (None, None, None, None, None, true) if is_virtual => Source::Delay,
            _ if is_virtual => {
                return fail(
                    "write exactly one of frames = \"delivered\" (or a drop reason), delay = true and flow = \"NAME\""
                        .to_owned(),
                );
            }
            _ => {
                return fail(
                    "write of = \"STEP\" with json = \"PATH\" or pattern = \"REGEX\", or link = \"NAME\" with value"
                        .to_owned(),
                );
            }
        };
        let scale = file.scale.unwrap_or(1.0);
        if !scale.is_finite() {
            return fail("scale is not finite; write a number".to_owned());
        }
        Some(Metric { name, source, scale, unit: file.unit.unwrap_or_default(), reduce })
    }

    /// The link that it is taken from.
    pub(super) fn link(&self) -> Option<&str> {
        match &self.source {
            Source::Link { link, .. } => Some(link),
            _ => None,
        }
    }

    /// The flow that it is taken from.
    pub(super) fn flow(&self) -> Option<&str> {
        match &self.source {
            Source::Flow { flow, .. } => Some(flow),
            _ => None,
        }
    }

    /// Whether links are sampled for it during a run.
    pub(super) fn is_sampled(&self) -> bool {
        matches!(&self.source, Source::Link { name, .. } if GAUGES.contains(&name.as_str()))
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
                let is_of = |counter: &&Counter| {
                    counter.link == *link
                        && from.as_ref().is_none_or(|from| counter.from == *from)
                        && counter.name == *name
                };
                let sampled: Vec<f64> =
                    evidence.samples.iter().filter(is_of).map(|counter| counter.value).collect();
                if GAUGES.contains(&name.as_str()) {
                    sampled
                } else {
                    // A drop reason without frames is not in the report: it is 0.
                    vec![evidence.counters.iter().filter(is_of).map(|counter| counter.value).sum()]
                }
            }
            Source::Flow { flow, path } => {
                let report = evidence.flows.iter().find(|report| report.name == *flow);
                let value = serde_json::to_value(report).expect("a report is plain data");
                let mut found = Vec::new();
                numbers(&value, path, &mut found);
                found
            }
            Source::Frames(end) if end == "dropped" => {
                let dropped = evidence.frames.iter().filter(|(name, _)| *name != "delivered");
                vec![dropped.map(|(_, count)| *count as f64).sum()]
            }
            Source::Frames(end) => vec![evidence.frames.get(end).copied().unwrap_or(0) as f64],
            Source::Delay => evidence.delays_ms.clone(),
        };
        if found.is_empty() {
            return Err(format!("metric {}: nothing was found", self.name));
        }
        Ok(found.into_iter().map(|value| value * self.scale).collect())
    }
}

fn known_values() -> String {
    COUNTERS.iter().chain(&GAUGES).copied().chain(["a drop reason"]).collect::<Vec<_>>().join(", ")
}

fn output(evidence: &Evidence, step: &str) -> Result<String, String> {
    let path = evidence.outputs.get(step).ok_or_else(|| format!("step {step} did not run"))?;
    fs::read(path)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .map_err(|error| format!("{}: {error}", path.display()))
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

impl FromStr for Reduce {
    type Err = String;

    fn from_str(text: &str) -> Result<Reduce, String> {
        Ok(match text {
            "mean" => Reduce::Mean,
            "sum" => Reduce::Sum,
            "count" => Reduce::Count,
            "min" => Reduce::Min,
            "max" => Reduce::Max,
            "first" => Reduce::First,
            "last" => Reduce::Last,
            "stddev" => Reduce::StandardDeviation,
            "median" => Reduce::Quantile(0.5),
            _ => {
                let percent = text.strip_prefix('p').and_then(|number| number.parse::<f64>().ok());
                let share =
                    percent.filter(|percent| (0.0..=100.0).contains(percent)).map(|percent| percent / 100.0);
                Reduce::Quantile(share.ok_or_else(|| {
                    format!("{text} is unknown; write median, mean, sum, count, min, max, first, last, stddev or p99")
                })?)
            }
        })
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
