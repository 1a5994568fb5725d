//! Expectations: bounds that metrics must keep, for tests.

use super::metric::{Metric, Reduce};
use super::plan::Experiment;
use super::vary::{Factor, label};
use fastpath_record::{Repetition, TestCase, TestOutcome, TestSuite};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A bound that every usable run of some conditions must keep.
#[derive(Clone, Debug)]
pub(super) struct Expectation {
    /// As the file writes it: `p99(rtt)`.
    text: String,
    metric: String,
    /// How the numbers of a run become one; that of the metric if not said.
    reduce: Option<Reduce>,
    at_most: Option<f64>,
    at_least: Option<f64>,
    unit: String,
    /// Values of axes; other conditions are not meant.
    places: BTreeMap<String, Value>,
}

/// An expectation and the runs that were compared with it.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// What is expected: `p99(rtt) at most 80 ms`.
    pub expectation: String,
    /// The number of runs that were compared.
    pub runs: usize,
    /// The runs that do not meet it, with the number found, as text.
    pub broken: Vec<String>,
}

impl Judged {
    /// Whether at least one run was compared and every one meets it.
    pub fn holds(&self) -> bool {
        self.runs > 0 && self.broken.is_empty()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectFile {
    metric: String,
    at_most: Option<Value>,
    at_least: Option<Value>,
    #[serde(default, rename = "where")]
    places: BTreeMap<String, Value>,
}

impl Expectation {
    pub(super) fn read(
        number: usize,
        table: toml::Table,
        metrics: &[Metric],
        axes: &[Factor],
        mistakes: &mut Vec<String>,
    ) -> Option<Expectation> {
        let mut fail = |what: String| {
            mistakes.push(format!("expect {number}: {what}"));
            None
        };
        let file: ExpectFile = match table.try_into() {
            Ok(file) => file,
            Err(error) => return fail(error.message().replace('\n', " ")),
        };
        let text = file.metric.trim().to_owned();
        let (reduce, name) = match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
            Some((reduce, name)) => match reduce.trim().parse() {
                Ok(reduce) => (Some(reduce), name.trim()),
                Err(what) => return fail(what),
            },
            None => (None, text.as_str()),
        };
        let Some(metric) = metrics.iter().find(|metric| metric.name == name) else {
            let have: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
            return fail(format!("metric {name} is unknown (have: {})", have.join(", ")));
        };
        if file.at_most.is_none() && file.at_least.is_none() {
            return fail("no bound; write at_most or at_least".to_owned());
        }
        let mut bounds = [None, None];
        for (bound, value) in bounds.iter_mut().zip([&file.at_most, &file.at_least]) {
            let Some(value) = value else { continue };
            match quantity(value, &metric.unit) {
                Ok(number) => *bound = Some(number),
                Err(what) => return fail(what),
            }
        }
        for (name, value) in &file.places {
            let Some(axis) = axes.iter().find(|axis| axis.name == *name) else {
                let have: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
                return fail(format!("where: {name} does not vary (have: {})", have.join(", ")));
            };
            if !axis.values.contains(value) {
                let have: Vec<String> = axis.values.iter().map(label).collect();
                return fail(format!("where: {name} is never {} (have: {})", label(value), have.join(", ")));
            }
        }
        let [at_most, at_least] = bounds;
        let (name, unit) = (name.to_owned(), metric.unit.clone());
        Some(Expectation { text, metric: name, reduce, at_most, at_least, unit, places: file.places })
    }

    /// What is expected, in words.
    fn words(&self) -> String {
        let mut words = self.text.clone();
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        for (word, bound) in [("at least", self.at_least), ("at most", self.at_most)] {
            if let Some(bound) = bound {
                let _ = write!(words, " {word} {bound}{unit}");
            }
        }
        for (name, value) in &self.places {
            let _ = write!(words, ", {name} = {}", label(value));
        }
        words
    }

    /// Compares the finished runs with the bound.
    pub(super) fn judge(&self, plan: &Experiment, runs: &[Repetition]) -> Judged {
        let is_meant = |run: &&Repetition| {
            self.places.iter().all(|(name, value)| run.condition.get(name) == Some(value))
        };
        let reduce = self.reduce.or_else(|| {
            plan.metrics.iter().find(|metric| metric.name == self.metric).map(|metric| metric.reduce)
        });
        let mut judged = Judged { expectation: self.words(), runs: 0, broken: Vec::new() };
        for run in runs.iter().filter(is_meant) {
            let Some(samples) = run.samples.get(&self.metric).filter(|_| run.is_usable()) else { continue };
            let found = reduce.expect("the metric exists").of(samples);
            judged.runs += 1;
            let holds = self.at_most.is_none_or(|bound| found <= bound)
                && self.at_least.is_none_or(|bound| found >= bound);
            if !holds {
                let found = fastpath_report::text::number(found);
                judged.broken.push(format!(
                    "run {} ({}): {found} {}",
                    run.run,
                    run.condition_words(),
                    self.unit
                ));
            }
        }
        judged
    }
}

/// Returns the findings as tests: one for each expectation, and one for each run that is not usable.
pub fn tests(plan: &Experiment, findings: &super::Findings) -> TestSuite {
    let case = |name: String, outcome: TestOutcome| TestCase {
        class: "experiment",
        name,
        outcome,
        found: String::new(),
    };
    let expectations = findings.judged.iter().map(|judged| {
        let outcome = match judged.runs {
            0 => TestOutcome::Failed("no run was compared".to_owned()),
            _ if judged.holds() => TestOutcome::Passed,
            _ => TestOutcome::Failed(judged.broken.join("\n")),
        };
        case(judged.expectation.clone(), outcome)
    });
    let left_out = findings.runs.iter().filter_map(|run| {
        let why = run.why_left_out()?.to_owned();
        Some(case(format!("run {} ({})", run.run, run.condition_words()), TestOutcome::Failed(why)))
    });
    TestSuite { name: plan.name.clone(), cases: expectations.chain(left_out).collect() }
}

/// Reads a bound: a number in the unit of the metric, or a text with a unit.
fn quantity(value: &Value, unit: &str) -> Result<f64, String> {
    if let Some(number) = value.as_f64() {
        return Ok(number);
    }
    let text = value.as_str().ok_or("a bound is a number, or a text such as \"80ms\"")?.trim();
    let at = text.find(|c: char| !c.is_ascii_digit() && !".-+".contains(c)).unwrap_or(text.len());
    let (number, its) = (text[..at].parse::<f64>().ok(), text[at..].trim());
    let number = number.ok_or_else(|| format!("{text:?} is no number; write for example \"80ms\""))?;
    if its.is_empty() || its == unit {
        return Ok(number);
    }
    match (size_of(its), size_of(unit)) {
        (Some((kind, from)), Some((other, to))) if kind == other => Ok(number * from / to),
        _ if unit.is_empty() => {
            Err(format!("{text:?} has a unit and the metric has none; write its unit = {its:?}"))
        }
        _ => Err(format!("{text:?} is not in {unit}; write the bound in the unit of the metric")),
    }
}

/// The quantity that a unit measures, and its size.
fn size_of(unit: &str) -> Option<(char, f64)> {
    Some(match unit {
        "ns" => ('t', 1e-9),
        "us" | "µs" => ('t', 1e-6),
        "ms" => ('t', 1e-3),
        "s" => ('t', 1.0),
        "bit/s" | "bit" => ('r', 1.0),
        "kbit/s" | "kbit" => ('r', 1e3),
        "Mbit/s" | "Mbit" => ('r', 1e6),
        "Gbit/s" | "Gbit" => ('r', 1e9),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bounds_are_read_in_the_unit_of_their_metric() {
        for (value, unit, read) in [
            (json!(80), "ms", Ok(80.0)),
            (json!("80ms"), "ms", Ok(80.0)),
            (json!("0.08 s"), "ms", Ok(80.0)),
            (json!("9.4Mbit/s"), "kbit/s", Ok(9400.0)),
            (json!("80ms"), "Mbit/s", Err(())),
            (json!("80ms"), "", Err(())),
            (json!("fast"), "ms", Err(())),
            (json!([1]), "ms", Err(())),
        ] {
            let found = quantity(&value, unit).map_err(|_| ());
            match (found, read) {
                (Ok(found), Ok(read)) => assert!((found - read).abs() < 1e-9, "{value} {unit}: {found}"),
                (found, read) => assert_eq!(found, read, "{value} {unit}"),
            }
        }
    }
}
