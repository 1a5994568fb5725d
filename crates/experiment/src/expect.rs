//! Expectations: bounds that metrics must keep, for tests.

use super::axis::{Factor, label};
use super::metric::{Metric, Reduce};
use fastpath_record::Repetition;
use fastpath_text::fields::{Field, Fields};
use fastpath_text::mistake::{Remarks, choice};
use serde::Serialize;
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

/// What expectations are about.
pub(super) struct Known<'a> {
    /// The names of all metrics of the file, also of those that have mistakes.
    pub(super) names: &'a [String],
    pub(super) metrics: &'a [Metric],
    pub(super) axes: &'a [Factor],
}

impl Expectation {
    /// Reads the table of an expectation.
    pub(super) fn read(mut fields: Fields, known: &Known, remarks: &mut Remarks) -> Option<Expectation> {
        let metric = fields.get("metric");
        if metric.is_none() {
            remarks.mistake(fields.at, "expect has no metric", "write metric = \"NAME\" or \"p99(NAME)\"");
        }
        let metric = metric.and_then(|field| metric_of(&field, known, remarks));
        let unit = metric.as_ref().map(|(_, _, metric)| metric.unit.as_str());
        let mut bound = |key: &str| {
            let field = fields.get(key)?;
            Some((
                field.at,
                field.json("\"80ms\"", remarks).and_then(|value| quantity(&value, unit?, field.at, remarks)),
            ))
        };
        let bounds = [bound("at_most"), bound("at_least")];
        match bounds {
            [None, None] => {
                remarks.mistake(fields.at, "expect has no bound", "write at_most or at_least");
            }
            [Some((at, Some(most))), Some((_, Some(least)))] if most < least => {
                let what = format!("no number is at most {most} and at least {least}");
                remarks.mistake(at, what, "write a larger at_most");
            }
            _ => {}
        }
        let places =
            fields.get("where").map_or_else(|| Some(BTreeMap::new()), |field| places(&field, known, remarks));
        fields.finish(remarks);
        let (text, reduce, metric) = metric?;
        // A bound that cannot be read is not the absence of one.
        let bound =
            |bound: Option<(usize, Option<f64>)>| bound.map_or(Some(None), |(_, read)| read.map(Some));
        let [at_most, at_least] = bounds;
        Some(Expectation {
            text,
            metric: metric.name.clone(),
            reduce,
            at_most: bound(at_most)?,
            at_least: bound(at_least)?,
            unit: metric.unit.clone(),
            places: places?,
        })
    }

    /// What is expected, in words.
    pub(super) fn words(&self) -> String {
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
    pub(super) fn judge(&self, metrics: &[Metric], runs: &[Repetition]) -> Judged {
        let is_meant = |run: &&Repetition| {
            self.places.iter().all(|(name, value)| run.condition.get(name) == Some(value))
        };
        let reduce = self
            .reduce
            .or_else(|| metrics.iter().find(|metric| metric.name == self.metric).map(|metric| metric.reduce));
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

/// Reads `rtt` or `p99(rtt)`: the text, how numbers become one if it says so, and the metric.
fn metric_of<'a>(
    field: &Field,
    known: &Known<'a>,
    remarks: &mut Remarks,
) -> Option<(String, Option<Reduce>, &'a Metric)> {
    let text = field.text("p99(rtt)", remarks)?.trim();
    let (reduce, name) = match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        Some((reduce, name)) => (Some(Reduce::read(Some(reduce.trim()), field.at, remarks)), name.trim()),
        None => (None, text),
    };
    if !known.names.iter().any(|known| known == name) {
        let instead = choice(name, known.names.iter().map(String::as_str));
        remarks.mistake(field.at, format!("there is no metric '{name}'"), instead);
    }
    let metric = known.metrics.iter().find(|metric| metric.name == name)?;
    let reduce = reduce.map_or(Some(None), |reduce| reduce.map(Some))?;
    Some((text.to_owned(), reduce, metric))
}

/// Reads the conditions that an expectation is about.
fn places(field: &Field, known: &Known, remarks: &mut Remarks) -> Option<BTreeMap<String, Value>> {
    let mut table = field.table("where", "{ \"link.a-b.queue\" = \"codel\" }", remarks)?;
    let mut places = BTreeMap::new();
    for (at, field) in table.all() {
        let name = &field.key;
        let value = field.json("\"codel\"", remarks)?;
        let Some(axis) = known.axes.iter().find(|axis| axis.name == *name) else {
            let instead = choice(name, known.axes.iter().map(|axis| axis.name.as_str()));
            remarks.mistake(at, format!("where: {name} does not vary"), instead);
            continue;
        };
        if !axis.values.contains(&value) {
            let have: Vec<String> = axis.values.iter().map(label).collect();
            let instead = choice(&label(&value), have.iter().map(String::as_str));
            remarks.mistake(field.at, format!("where: {name} is never {}", label(&value)), instead);
        }
        places.insert(name.clone(), value);
    }
    Some(places)
}

/// Reads a bound: a number in the unit of the metric, or a text with a unit.
fn quantity(value: &Value, unit: &str, at: usize, remarks: &mut Remarks) -> Option<f64> {
    match in_unit(value, unit) {
        Ok(number) => Some(number),
        Err((what, instead)) => {
            remarks.mistake(at, what, instead);
            None
        }
    }
}

/// The error is what is wrong, and what to write.
fn in_unit(value: &Value, unit: &str) -> Result<f64, (String, String)> {
    if let Some(number) = value.as_f64() {
        return Ok(number);
    }
    let example = || "write a number, or a text such as \"80ms\"".to_owned();
    let text = value.as_str().ok_or_else(|| (format!("{value} is not a bound"), example()))?.trim();
    let at = text.find(|c: char| !c.is_ascii_digit() && !".-+".contains(c)).unwrap_or(text.len());
    let (number, its) = (text[..at].parse::<f64>().ok(), text[at..].trim());
    let number = number.ok_or_else(|| (format!("{text:?} is not a number"), example()))?;
    if its.is_empty() || its == unit {
        return Ok(number);
    }
    match (size_of(its), size_of(unit)) {
        (Some((kind, from)), Some((other, to))) if kind == other => Ok(number * from / to),
        _ if unit.is_empty() => {
            Err((format!("{text:?} has a unit and the metric has none"), format!("write its unit = {its:?}")))
        }
        _ => Err((
            format!("{text:?} is not in {unit}"),
            "write the bound in the unit of the metric".to_owned(),
        )),
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
            let found = in_unit(&value, unit).map_err(|_| ());
            match (found, read) {
                (Ok(found), Ok(read)) => assert!((found - read).abs() < 1e-9, "{value} {unit}: {found}"),
                (found, read) => assert_eq!(found, read, "{value} {unit}"),
            }
        }
    }
}
