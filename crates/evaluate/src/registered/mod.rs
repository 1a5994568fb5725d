//! Registered predictions: stated with their interval before anything was measured, and compared
//! with what was measured afterwards.
//!
//! ```text
//!  registered.toml ─ [[prediction]] ─┐
//!                                    ├─▶ compare ─▶ inside, outside, not measured yet
//!  results.toml ──── [[result]] ─────┘
//!        ▲
//!        └── measure: runs the command of each prediction that has no result
//! ```
//!
//! The order is kept by the history of the repository: a commit with the predictions alone comes
//! before the one with their results. A result that is dated before its prediction is refused.
//!
//! Read first: this file, then `read.rs` (the keys of both files).

mod measure;
mod read;

use fastpath_text::mistake::Mistakes;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

pub use measure::measure_registered;

/// The predictions of this repository.
const PREDICTIONS: &str = include_str!("../../data/registered.toml");
/// Their results.
const RESULTS: &str = include_str!("../../data/registered-results.toml");

/// A prediction with its interval.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RegisteredPrediction {
    /// Its unique name.
    pub id: String,
    /// The day on which it was stated, `2026-11-27`.
    pub date: String,
    /// The model that predicts, and what it was fitted to.
    pub model: String,
    /// What is predicted, in words.
    pub quantity: String,
    /// The unit.
    pub unit: String,
    /// The command that measures it: `fastpath measure …`.
    pub command: String,
    /// The name of the number in the records of that command.
    pub column: String,
    /// The parameters of the record, by name.
    pub at: BTreeMap<String, f64>,
    /// The predicted value.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end of its interval.
    pub high: f64,
}

/// What was measured after a prediction.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RegisteredResult {
    /// The id of the prediction.
    pub prediction: String,
    /// The day of the measurement.
    pub date: String,
    /// The median of the runs.
    pub value: f64,
    /// The least of the runs.
    pub low: f64,
    /// The greatest of the runs.
    pub high: f64,
    /// Number of runs.
    pub n: u64,
    /// The processor, and how many cores.
    pub machine: String,
    /// The program: version, commit, kind of build.
    pub tool: String,
}

/// Where a result lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RegisteredVerdict {
    /// In the interval.
    Inside,
    /// Not in the interval.
    Outside,
    /// There is none yet.
    NotMeasured,
}

/// A prediction and what was measured afterwards.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RegisteredComparison {
    /// The prediction.
    pub prediction: RegisteredPrediction,
    /// The result, if there is one.
    pub result: Option<RegisteredResult>,
    /// How far the measured value is from the predicted one, % of the measured one.
    pub error_pct: Option<f64>,
    /// Where the result lies.
    pub verdict: RegisteredVerdict,
}

/// Why predictions and results cannot be compared or measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisteredError {
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
    /// A file with mistakes.
    #[error("{path}: {mistakes}")]
    Mistakes {
        /// The file.
        path: String,
        /// All of them.
        mistakes: Mistakes,
    },
    /// A command failed.
    #[error("{command}: {message}")]
    Command {
        /// The command.
        command: String,
        /// Its error output.
        message: String,
    },
    /// A command wrote no such record.
    #[error("prediction '{id}': {what}")]
    NoRecord {
        /// The prediction.
        id: String,
        /// What is missing.
        what: String,
    },
}

/// The predictions and results of two files; those of this repository where none is named.
///
/// # Errors
/// [`RegisteredError`] for a file that cannot be read, or that has mistakes.
pub fn registered(
    predictions: Option<&Path>,
    results: Option<&Path>,
) -> Result<Vec<RegisteredComparison>, RegisteredError> {
    let read = |path: Option<&Path>, own: (&str, &'static str)| match path {
        None => Ok((own.0.to_owned(), own.1.to_owned())),
        Some(path) => {
            let name = path.display().to_string();
            match std::fs::read_to_string(path) {
                Ok(text) => Ok((name, text)),
                Err(source) => Err(RegisteredError::File { path: name, source }),
            }
        }
    };
    let (predictions_path, text) = read(predictions, ("registered.toml", PREDICTIONS))?;
    let wrong = |path: String| move |mistakes| RegisteredError::Mistakes { path, mistakes };
    let predictions_read = read::predictions(&text).map_err(wrong(predictions_path))?;
    // A file of other predictions has no results but those of the file that is named.
    let own_results = if predictions.is_some() { "" } else { RESULTS };
    let (results_path, text) = read(results, ("registered-results.toml", own_results))?;
    let results = read::results(&text, &predictions_read).map_err(wrong(results_path))?;
    Ok(compare(predictions_read, &results))
}

fn compare(
    predictions: Vec<RegisteredPrediction>,
    results: &[RegisteredResult],
) -> Vec<RegisteredComparison> {
    let one = |prediction: RegisteredPrediction| {
        let result = results.iter().find(|result| result.prediction == prediction.id).cloned();
        let verdict = match &result {
            None => RegisteredVerdict::NotMeasured,
            Some(result) if prediction.low <= result.value && result.value <= prediction.high => {
                RegisteredVerdict::Inside
            }
            Some(_) => RegisteredVerdict::Outside,
        };
        let error_pct = result.as_ref().map(|result| 100.0 * (prediction.value / result.value - 1.0));
        RegisteredComparison { prediction, result, error_pct, verdict }
    };
    predictions.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_predictions_of_the_repository_can_be_read() {
        let all = registered(None, None).expect("no mistakes");
        assert!(all.len() >= 5, "{}", all.len());
    }

    #[test]
    fn results_are_inside_or_outside_or_missing() {
        let text = "
            [[prediction]]
            id = 'a'
            date = '2026-01-02'
            model = 'a line'
            quantity = 'cost of 64 bytes'
            unit = 'ns'
            command = 'fastpath measure pipeline --size 64'
            column = 'T_ns'
            at = { p = 64 }
            value = 50
            low = 45
            high = 55
        ";
        let text = [text, &text.replace("'a'", "'b'"), &text.replace("'a'", "'c'")].concat();
        let predictions = read::predictions(&text).expect("no mistakes");
        let result = |id: &str, value: f64| RegisteredResult {
            prediction: id.to_owned(),
            date: "2026-01-03".to_owned(),
            value,
            low: value,
            high: value,
            n: 3,
            machine: "m".to_owned(),
            tool: "t".to_owned(),
        };
        let found = compare(predictions, &[result("a", 45.0), result("c", 40.0)]);
        let verdicts: Vec<RegisteredVerdict> = found.iter().map(|found| found.verdict).collect();
        assert_eq!(
            verdicts,
            [RegisteredVerdict::Inside, RegisteredVerdict::NotMeasured, RegisteredVerdict::Outside]
        );
        assert_eq!(found[2].error_pct, Some(25.0));
        assert_eq!(found[0].prediction.at["p"], 64.0);
    }
}
