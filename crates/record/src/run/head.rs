//! `run.json`: where a run comes from, and what its record has.

use super::FORMAT;
use crate::{Origin, Repetition};
use serde_json::{Map, Value};

/// What `run.json` says.
pub(super) struct Head {
    pub(super) origin: Origin,
    /// The interval of samples, in seconds, if the run was recorded over time.
    pub(super) interval_s: Option<f64>,
    /// The time of the last sample, in seconds, if the record is complete.
    pub(super) duration_s: Option<f64>,
    /// Why the machine did not carry the run, if so.
    pub(super) disturbed: Option<String>,
    /// The run as a repetition of an experiment, if it is one.
    pub(super) repetition: Option<Repetition>,
}

/// Makes the text of `run.json` of these keys.
pub(super) fn text(mut keys: Map<String, Value>) -> String {
    keys.insert("format".to_owned(), FORMAT.into());
    serde_json::to_string_pretty(&Value::Object(keys)).expect("plain data") + "\n"
}

/// Reads `run.json`. The error says what is wrong with it.
pub(super) fn read(text: &str) -> Result<Head, String> {
    let keys = current(serde_json::from_str(text).map_err(|error| error.to_string())?)?;
    let is_repetition = keys.contains_key("condition");
    let number = |key: &str| keys.get(key).and_then(Value::as_f64);
    let (interval_s, duration_s) = (number("interval_s"), number("duration_s"));
    if interval_s.is_none() && !is_repetition {
        return Err("it has neither interval_s nor condition".to_owned());
    }
    let disturbed = keys.get("disturbed").and_then(Value::as_str).map(str::to_owned);
    let keys = Value::Object(keys);
    let wrong = |error: serde_json::Error| error.to_string();
    let repetition =
        if is_repetition { Some(serde_json::from_value(keys.clone()).map_err(wrong)?) } else { None };
    let origin = serde_json::from_value(keys).map_err(wrong)?;
    Ok(Head { origin, interval_s, duration_s, disturbed, repetition })
}

/// Checks the format. Runs of experiments had none up to version 0.1.0: their `place` is
/// `condition` now, and the keys of their `origin` are keys of `run.json`.
fn current(value: Value) -> Result<Map<String, Value>, String> {
    let Value::Object(mut keys) = value else { return Err("not a record: not a JSON object".to_owned()) };
    match keys.get("format").map(Value::as_u64) {
        Some(Some(FORMAT)) => Ok(keys),
        Some(other) => {
            let other = other.map_or_else(|| keys["format"].to_string(), |format| format.to_string());
            let version = keys.get("version").and_then(Value::as_str).unwrap_or("another version");
            Err(format!("format {other} is of fastpath {version}; this version reads {FORMAT}"))
        }
        None => match (keys.remove("place"), keys.remove("origin")) {
            (Some(place), Some(Value::Object(origin))) => {
                keys.insert("condition".to_owned(), place);
                keys.extend(origin);
                Ok(keys)
            }
            _ => Err("not a record: it has no format".to_owned()),
        },
    }
}

impl Repetition {
    /// Returns the text of its `run.json`.
    pub fn to_run_json(&self) -> String {
        let Ok(Value::Object(keys)) = serde_json::to_value(self) else { panic!("{self:?} is plain data") };
        text(keys)
    }

    /// Reads the text of a `run.json`, also of the former format.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_run_json(text: &str) -> Result<Repetition, String> {
        read(text)?.repetition.ok_or_else(|| "not a run of an experiment: it has no condition".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_experiments_are_read_back_and_so_are_those_of_the_former_format() {
        let former = r#"{ "run": 3, "seed": 18446744073709551615, "place": { "link.a-b.rate": "1Mbit" }, "attempts": 2,
            "disturbed": "late", "samples": { "rtt": [1.5, 2.0] }, "values": { "rtt": 1.75 },
            "origin": { "version": "0.1.0", "machine": { "name": "m", "cpu": "c", "cores": 2, "kernel": "6.1" } } }"#;
        let read = Repetition::from_run_json(former).unwrap();
        assert_eq!((read.run, read.origin.seed, read.attempts), (3, u64::MAX, 2));
        assert_eq!(read.condition_words(), "link.a-b.rate=1Mbit");
        assert_eq!(read.why_left_out(), Some("late"));
        assert_eq!(read.origin.machine.as_ref().unwrap().name, "m");
        let text = read.to_run_json();
        assert!(text.contains("\"format\": 1") && text.contains("\"condition\"") && !text.contains("place"));
        assert_eq!(Repetition::from_run_json(&text).unwrap(), read);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |text: &str| Repetition::from_run_json(text).unwrap_err();
        assert_eq!(wrong("{}"), "not a record: it has no format");
        assert_eq!(wrong("[1]"), "not a record: not a JSON object");
        assert_eq!(
            wrong(r#"{"format":2,"version":"9.1"}"#),
            "format 2 is of fastpath 9.1; this version reads 1"
        );
        assert_eq!(wrong(r#"{"format":1}"#), "it has neither interval_s nor condition");
        assert_eq!(wrong(r#"{"format":1,"condition":{}}"#), "missing field `run`");
        assert!(wrong(r#"{"format":1,"interval_s":0.01,"version":"1","seed":1}"#).contains("no condition"));
    }
}
