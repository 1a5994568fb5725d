//! Measures predictions: runs their commands, and takes the numbers from the records.

use super::read::COMMAND;
use super::{RegisteredComparison, RegisteredError, RegisteredPrediction, RegisteredResult};
use crate::temporary::TemporaryDirectory;
use fastpath_measure::Progress;
use fastpath_record::Observation;
use fastpath_units::stats::{quantile, sorted};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Measures the predictions that have no result, each command `rounds` times, by `program`. The
/// results are appended to the file `results`.
///
/// # Errors
/// [`RegisteredError`]. Results before it are kept.
pub fn measure_registered(
    registered: &[RegisteredComparison],
    program: &Path,
    rounds: u32,
    results: &Path,
    progress: Progress<'_>,
) -> Result<Vec<RegisteredResult>, RegisteredError> {
    let file = |source| RegisteredError::File { path: results.display().to_string(), source };
    // Opened before anything is measured.
    let mut out = std::fs::OpenOptions::new().create(true).append(true).open(results).map_err(file)?;
    let temporary = TemporaryDirectory::new("registered")
        .map_err(|(path, source)| RegisteredError::File { path, source })?;
    let mut by_command: BTreeMap<&str, Vec<&RegisteredPrediction>> = BTreeMap::new();
    for comparison in registered.iter().filter(|comparison| comparison.result.is_none()) {
        by_command.entry(&comparison.prediction.command).or_default().push(&comparison.prediction);
    }
    let total = by_command.len() * rounds as usize;
    let mut found = Vec::new();
    for (i, (command, predictions)) in by_command.iter().enumerate() {
        let mut runs = Vec::new();
        for round in 0..rounds as usize {
            progress(command, i * rounds as usize + round, total);
            let records = temporary.path().join(format!("{i}-{round}.jsonl"));
            runs.push(run(program, command, &records)?);
        }
        for prediction in predictions {
            let result = result(prediction, &runs)?;
            out.write_all(text(&result).as_bytes()).map_err(file)?;
            found.push(result);
        }
    }
    Ok(found)
}

/// Runs a command, and returns the lines of its records.
fn run(program: &Path, command: &str, records: &Path) -> Result<String, RegisteredError> {
    let failed = |message: String| RegisteredError::Command { command: command.to_owned(), message };
    let words = command[COMMAND.len()..].split_whitespace();
    let mut process = Command::new(program);
    process.arg("measure").args(words).arg("-o").arg(records).stdin(Stdio::null());
    let output = process.output().map_err(|error| failed(error.to_string()))?;
    // A disturbed measurement has a code of its own, and keeps its records.
    match std::fs::read_to_string(records) {
        Ok(text) if !text.trim().is_empty() => Ok(text),
        _ => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}

/// Takes the number of a prediction from each run.
fn result(prediction: &RegisteredPrediction, runs: &[String]) -> Result<RegisteredResult, RegisteredError> {
    let values = runs.iter().map(|run| value(prediction, run)).collect::<Result<Vec<f64>, _>>()?;
    let values = sorted(values);
    let first: Value =
        runs[0].lines().next().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default();
    let provenance = &first["provenance"];
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (machine, tool) = (&provenance["machine"], &provenance["tool"]);
    Ok(RegisteredResult {
        prediction: prediction.id.clone(),
        date: day(provenance["started_unix_s"].as_f64().unwrap_or(0.0)),
        value: quantile(&values, 0.5),
        low: values[0],
        high: values[values.len() - 1],
        n: values.len() as u64,
        machine: format!(
            "{}, {} cores, Linux {}",
            word(&machine["cpu"]),
            machine["cores"],
            word(&machine["kernel"])
        ),
        tool: tool.as_object().map_or_else(String::new, |tool| {
            tool.values().filter(|value| !value.is_null()).map(word).collect::<Vec<_>>().join(", ")
        }),
    })
}

fn value(prediction: &RegisteredPrediction, run: &str) -> Result<f64, RegisteredError> {
    let missing = |what: String| RegisteredError::NoRecord { id: prediction.id.clone(), what };
    let all = Observation::parse(run).map_err(|error| missing(error.to_string()))?;
    let number = |record: &Observation, name: &str| {
        let value = record.results.get(name).or_else(|| record.parameters.get(name));
        value.and_then(Value::as_f64)
    };
    let matching = all
        .iter()
        .filter(|record| prediction.at.iter().all(|(name, value)| number(record, name) == Some(*value)));
    let values: Vec<f64> = matching.filter_map(|record| number(record, &prediction.column)).collect();
    match values[..] {
        [value] => Ok(value),
        [] => {
            let names = all.iter().flat_map(|record| record.parameters.keys().chain(record.results.keys()));
            let mut names: Vec<&str> = names.map(String::as_str).collect();
            names.sort_unstable();
            names.dedup();
            Err(missing(format!(
                "no record has `{}` at these values of `at`: write names of its records: {}",
                prediction.column,
                names.join(", ")
            )))
        }
        _ => Err(missing(format!("{} records match: write more parameters into `at`", values.len()))),
    }
}

/// Returns the day of a time in seconds since 1970, in UTC (Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms").
fn day(unix_s: f64) -> String {
    let days = (unix_s / 86_400.0).floor() as i64 + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{:02}", of_year - (153 * shifted + 2) / 5 + 1)
}

/// Returns a result as TOML.
fn text(result: &RegisteredResult) -> String {
    let RegisteredResult { prediction, date, value, low, high, n, machine, tool } = result;
    let mut text = String::from("\n[[result]]\n");
    // JSON strings of one line are TOML strings.
    for (key, value) in [("prediction", prediction), ("date", date), ("machine", machine), ("tool", tool)] {
        let _ = writeln!(text, "{key} = {}", Value::from(value.as_str()));
    }
    for (key, value) in [("value", value), ("low", low), ("high", high)] {
        let _ = writeln!(text, "{key} = {value}");
    }
    let _ = writeln!(text, "n = {n}");
    text
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    fn prediction() -> RegisteredPrediction {
        RegisteredPrediction {
            id: "a".to_owned(),
            date: "2026-11-26".to_owned(),
            model: "m".to_owned(),
            quantity: "q".to_owned(),
            unit: "ns".to_owned(),
            command: "fastpath measure pipeline --size 64".to_owned(),
            column: "T_ns".to_owned(),
            at: [("p".to_owned(), 60.0)].into(),
            value: 50.0,
            low: 45.0,
            high: 55.0,
        }
    }

    fn record(p: u32, t: f64) -> String {
        format!(
            r#"{{"kind":"pipeline","provenance":{{"machine":{{"cpu":"Xeon \"E5\"","cores":2,"kernel":"6.1"}},"tool":{{"version":"0.1.0","commit":null}},"started_unix_s":1795737600}},"parameters":{{"p":{p}}},"results":{{"T_ns":{t}}}}}"#
        )
    }

    #[test]
    fn the_median_of_the_runs_is_the_result_and_its_text_is_read_again() {
        let runs = [51.0, 49.5, 56.0].map(|t| [record(60, t), record(124, 99.0)].join("\n"));
        let found = result(&prediction(), &runs).expect("records");
        assert_eq!((found.low, found.value, found.high, found.n), (49.5, 51.0, 56.0, 3));
        assert_eq!((found.date.as_str(), found.tool.as_str()), ("2026-11-27", "0.1.0"));
        assert_eq!(read::results(&text(&found), &[prediction()]).expect("no mistakes"), [found]);
    }

    #[test]
    fn a_prediction_without_its_record_says_which_names_there_are() {
        let said = result(&prediction(), &[record(64, 1.0)]).expect_err("another size").to_string();
        assert!(
            said.starts_with("prediction 'a': no record has `T_ns`") && said.ends_with("T_ns, p"),
            "{said}"
        );
        let twice = [record(60, 1.0), record(60, 2.0)].join("\n");
        assert!(result(&prediction(), &[twice]).expect_err("two").to_string().contains("2 records match"));
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        for (unix_s, text) in
            [(0.0, "1970-01-01"), (951_782_400.0, "2000-02-29"), (1_795_737_599.0, "2026-11-26")]
        {
            assert_eq!(day(unix_s), text);
        }
    }
}
