//! The keys of both files, read and checked. Every mistake has its place and what to write.

use super::{RegisteredPrediction, RegisteredResult};
use fastpath_text::document;
use fastpath_text::fields::Fields;
use fastpath_text::mistake::{Mistakes, Remarks};
use std::collections::{BTreeMap, BTreeSet};

/// The command that can be measured.
pub(super) const COMMAND: &str = "fastpath measure ";

/// Reads predictions.
pub(super) fn predictions(text: &str) -> Result<Vec<RegisteredPrediction>, Mistakes> {
    let mut remarks = Remarks::new(text);
    let mut all = Vec::new();
    let mut ids = BTreeSet::new();
    let table = document::toml(text, "a file of predictions", "write [[prediction]]", &mut remarks);
    let table = table.unwrap_or_default();
    let mut top = Fields::new("a file of predictions", 0, &table);
    for mut fields in top.tables("prediction", "a prediction", &mut remarks) {
        let mut reader = RegisteredReader { fields: &mut fields, remarks: &mut remarks };
        let found = reader.prediction();
        let at = reader.place("id");
        fields.finish(&mut remarks);
        if let Some(found) = found {
            if !ids.insert(found.id.clone()) {
                remarks.mistake(
                    at,
                    format!("two predictions have the id '{}'", found.id),
                    "write another id",
                );
            }
            all.push(found);
        }
    }
    top.finish(&mut remarks);
    remarks.finish().map(|_| all)
}

/// Reads the results of `predictions`.
pub(super) fn results(
    text: &str,
    predictions: &[RegisteredPrediction],
) -> Result<Vec<RegisteredResult>, Mistakes> {
    let mut remarks = Remarks::new(text);
    let mut all: Vec<RegisteredResult> = Vec::new();
    let table =
        document::toml(text, "a file of results", "write [[result]]", &mut remarks).unwrap_or_default();
    let mut top = Fields::new("a file of results", 0, &table);
    for mut fields in top.tables("result", "a result", &mut remarks) {
        let mut reader = RegisteredReader { fields: &mut fields, remarks: &mut remarks };
        let found = reader.result();
        let [id_at, date_at] = ["prediction", "date"].map(|key| reader.place(key));
        fields.finish(&mut remarks);
        let Some(found) = found else { continue };
        match predictions.iter().find(|prediction| prediction.id == found.prediction) {
            None => {
                let ids = predictions.iter().map(|prediction| prediction.id.as_str());
                let instead = fastpath_text::mistake::choice(&found.prediction, ids);
                remarks.mistake(id_at, format!("no prediction has the id '{}'", found.prediction), instead);
            }
            Some(prediction) if found.date < prediction.date => remarks.mistake(
                date_at,
                format!(
                    "measured on {}, before the prediction was stated on {}",
                    found.date, prediction.date
                ),
                "register the prediction before measuring, and measure again",
            ),
            Some(_) if all.iter().any(|other| other.prediction == found.prediction) => remarks.mistake(
                id_at,
                format!("two results of the prediction '{}'", found.prediction),
                "keep the first; register a new prediction to measure again",
            ),
            Some(_) => all.push(found),
        }
    }
    top.finish(&mut remarks);
    remarks.finish().map(|_| all)
}

/// Reads the keys of one table.
struct RegisteredReader<'r, 'd, 't> {
    fields: &'r mut Fields<'d>,
    remarks: &'r mut Remarks<'t>,
}

impl RegisteredReader<'_, '_, '_> {
    fn prediction(&mut self) -> Option<RegisteredPrediction> {
        let [id, model, quantity, unit, column] = [
            ("id", "pipeline-64"),
            ("model", "const,p,h fitted to costs.jsonl"),
            ("quantity", "cost of a packet of 64 bytes"),
            ("unit", "ns"),
            ("column", "T_ns"),
        ]
        .map(|(key, example)| self.text(key, example));
        let date = self.date();
        let command = self.command();
        let at = self.at();
        let numbers = self.interval();
        let (value, low, high) = numbers?;
        Some(RegisteredPrediction {
            id: id?,
            date: date?,
            model: model?,
            quantity: quantity?,
            unit: unit?,
            command: command?,
            column: column?,
            at,
            value,
            low,
            high,
        })
    }

    fn result(&mut self) -> Option<RegisteredResult> {
        let [prediction, machine, tool] =
            [("prediction", "pipeline-64"), ("machine", "Xeon, 2 cores"), ("tool", "0.1.0, release")]
                .map(|(key, example)| self.text(key, example));
        let date = self.date();
        let n = match self.fields.get("n") {
            Some(field) => field.whole(1..=1_000_000, self.remarks),
            None => self.missing("n", "3"),
        };
        let (value, low, high) = self.interval()?;
        Some(RegisteredResult {
            prediction: prediction?,
            date: date?,
            value,
            low,
            high,
            n: n?,
            machine: machine?,
            tool: tool?,
        })
    }

    /// Returns the place of a key, or of the table.
    fn place(&self, key: &str) -> usize {
        self.fields.source().entries.iter().find(|entry| entry.key == key).map_or(0, |entry| entry.placed.at)
    }

    fn missing<T>(&mut self, key: &str, example: &str) -> Option<T> {
        let at = self.fields.source().entries.first().map_or(0, |entry| entry.key_at);
        self.remarks.mistake(at, format!("{key} is missing"), format!("write {key} = {example}"));
        None
    }

    fn text(&mut self, key: &str, example: &str) -> Option<String> {
        let Some(field) = self.fields.get(key) else { return self.missing(key, &format!("\"{example}\"")) };
        let text = field.text(example, self.remarks)?;
        if text.trim().is_empty() {
            self.remarks.mistake(field.at, format!("{key} is empty"), format!("write {key} = \"{example}\""));
            return None;
        }
        Some(text.to_owned())
    }

    fn date(&mut self) -> Option<String> {
        let text = self.text("date", "2026-11-27")?;
        let parts: Vec<Option<u32>> = text.split('-').map(|part| part.parse().ok()).collect();
        let is_date =
            text.len() == 10 && matches!(parts[..], [Some(2000..=2999), Some(1..=12), Some(1..=31)]);
        if !is_date {
            let at = self.place("date");
            self.remarks.mistake(at, format!("'{text}' is not a day"), "write it as \"2026-11-27\"");
        }
        is_date.then_some(text)
    }

    fn command(&mut self) -> Option<String> {
        let text = self.text("command", "fastpath measure pipeline --size 64")?;
        let is_known = text.starts_with(COMMAND) && !text.contains(['|', '>', ';', '&', '"', '\'']);
        if !is_known {
            let at = self.place("command");
            let what = format!("'{text}' is not a measurement of this program");
            self.remarks.mistake(
                at,
                what,
                "write fastpath measure and its arguments, without quotes and pipes",
            );
        }
        is_known.then_some(text)
    }

    /// Reads the parameters of the record, which may be left out.
    fn at(&mut self) -> BTreeMap<String, f64> {
        let Some(field) = self.fields.get("at") else { return BTreeMap::new() };
        let Some(mut table) = field.table("at", "{ p = 64 }", self.remarks) else { return BTreeMap::new() };
        let all = table.all().into_iter();
        let read = all.filter_map(|(_, field)| Some((field.key.clone(), field.number("64", self.remarks)?)));
        read.collect()
    }

    fn interval(&mut self) -> Option<(f64, f64, f64)> {
        let [value, low, high] = ["value", "low", "high"].map(|key| match self.fields.get(key) {
            Some(field) => field.number("64.5", self.remarks),
            None => self.missing(key, "64.5"),
        });
        let (value, low, high) = (value?, low?, high?);
        if low <= value && value <= high {
            return Some((value, low, high));
        }
        let at = self.place("value");
        self.remarks.mistake(
            at,
            format!("{value} is not between low = {low} and high = {high}"),
            "write low ≤ value ≤ high",
        );
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREDICTION: &str = "[[prediction]]
id = 'a'
date = '2026-01-02'
model = 'a line'
quantity = 'cost of 64 bytes'
unit = 'ns'
command = 'fastpath measure pipeline --size 64'
column = 'T_ns'
at = { p = 64 }
value = 50
low = 45.5
high = 55
";
    const RESULT: &str = "[[result]]
prediction = 'a'
date = '2026-01-02'
value = 51
low = 50
high = 52
n = 3
machine = 'Xeon'
tool = '0.1.0'
";

    #[test]
    fn every_key_is_needed_and_checked() {
        assert_eq!(predictions(PREDICTION).expect("no mistakes").len(), 1);
        for (from, to, said) in [
            ("id = 'a'\n", "", "2:1: id is missing; write id = \"pipeline-64\""),
            ("'2026-01-02'", "'yesterday'", "3:8: 'yesterday' is not a day; write it as \"2026-11-27\""),
            ("'2026-01-02'", "'2026-13-02'", "is not a day"),
            ("'fastpath measure pipeline --size 64'", "'rm -r /'", "7:11: 'rm -r /' is not a measurement"),
            ("low = 45.5", "low = 51", "50 is not between low = 51 and high = 55"),
            ("value = 50", "value = 'fifty'", "value is text"),
            ("unit = 'ns'", "unit = ' '", "unit is empty"),
            ("unit = 'ns'", "units = 'ns'", "a prediction has no key 'units'"),
            ("{ p = 64 }", "{ p = 'x' }", "p is text"),
        ] {
            let text = PREDICTION.replace(from, to);
            assert_ne!(text, PREDICTION, "{from}");
            let mistakes = predictions(&text).expect_err(to).to_string();
            assert!(mistakes.contains(said), "{to}: {mistakes}");
        }
        let twice = predictions(&[PREDICTION, PREDICTION].concat()).expect_err("one id").to_string();
        assert!(twice.contains("two predictions have the id 'a'"), "{twice}");
    }

    #[test]
    fn a_result_belongs_to_a_prediction_that_was_stated_before() {
        let stated = predictions(PREDICTION).expect("no mistakes");
        assert_eq!(results(RESULT, &stated).expect("no mistakes")[0].n, 3);
        for (from, to, said) in [
            ("'a'", "'b'", "2:14: no prediction has the id 'b'"),
            ("2026-01-02", "2026-01-01", "measured on 2026-01-01, before the prediction was stated"),
            ("n = 3", "n = 0", "n = 0 is out of range"),
            ("tool = '0.1.0'\n", "", "tool is missing"),
        ] {
            let mistakes = results(&RESULT.replace(from, to), &stated).expect_err(to).to_string();
            assert!(mistakes.contains(said), "{to}: {mistakes}");
        }
        let twice = results(&[RESULT, RESULT].concat(), &stated).expect_err("two results").to_string();
        assert!(twice.contains("two results of the prediction 'a'"), "{twice}");
    }
}
