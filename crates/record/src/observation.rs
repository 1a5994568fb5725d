//! Measurements as models and simulations read them: numbers and words by name.

use crate::measurement::Measurement;
use fastpath_model::Table;
use fastpath_model::fcs::{self, Fcs};
use fastpath_model::platform::Platform;
use fastpath_model::table::{Scalar, TableError};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use thiserror::Error;

/// The part of a [`Measurement`] that models and simulations use. A line that lacks the provenance
/// can be read too.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Observation {
    /// What was measured: `host`, `pipeline`, `latency`, `operations`.
    #[serde(default)]
    pub kind: String,
    /// Where it was made.
    #[serde(default)]
    pub(crate) provenance: MeasuredOn,
    /// What was set, by name with the unit last.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// What was found, by name with the unit last.
    #[serde(default)]
    pub results: Map<String, Value>,
    /// The platform, in measurements of kind `host`.
    #[serde(default)]
    pub platform: Option<Platform>,
}

/// The part of a provenance that models and simulations use.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
pub(crate) struct MeasuredOn {
    #[serde(default)]
    pub(crate) machine: MachineName,
}

/// The machine that a measurement is about.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(default)]
pub struct MachineName {
    /// Its host name.
    pub name: String,
    /// Model of its first processor.
    pub cpu: String,
}

impl Default for MachineName {
    fn default() -> MachineName {
        MachineName { name: "unknown".to_owned(), cpu: "unknown".to_owned() }
    }
}

/// Why observations cannot be read, or make no table.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ObservationError {
    /// A line is not a measurement.
    #[error("line {line}: not a record (one JSON object): {source}")]
    NotARecord {
        /// The line, from 1.
        line: usize,
        /// The JSON reader's message.
        source: serde_json::Error,
    },
    /// A field is missing or wrong.
    #[error("record of kind {kind}: {source}")]
    Field {
        /// The kind of the measurement.
        kind: String,
        /// The JSON reader's message.
        source: serde_json::Error,
    },
    /// None has parameters or results.
    #[error("no record with `parameters` and `results`: measure with `fastpath measure`")]
    Nothing,
    /// They make no table.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl Observation {
    /// Reads JSON lines, one measurement each. Empty lines are skipped.
    ///
    /// # Errors
    /// [`ObservationError::NotARecord`] for a line that is not a measurement.
    pub fn parse(text: &str) -> Result<Vec<Observation>, ObservationError> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let observation = |(i, line)| {
            serde_json::from_str(line).map_err(|source| ObservationError::NotARecord { line: i + 1, source })
        };
        lines.map(observation).collect()
    }

    /// Builds the table of all observations of the first one's kind: a row for each, a column for
    /// each number or word among the first one's parameters and results.
    ///
    /// # Errors
    /// [`ObservationError`] when there is no column, or too many rows.
    pub fn table(all: &[Observation]) -> Result<Table, ObservationError> {
        let first = all.first().ok_or(ObservationError::Nothing)?;
        let names: Vec<String> = first.scalars().into_keys().collect();
        if names.is_empty() {
            return Err(ObservationError::Nothing);
        }
        let rows = all.iter().filter(|m| m.kind == first.kind).map(|observation| {
            let mut scalars = observation.scalars();
            names.iter().map(|name| scalars.remove(name)).collect()
        });
        Ok(Table::from_rows(names.clone(), rows.collect())?)
    }

    /// Returns the numbers and words of the parameters and results; a result replaces a parameter
    /// of the same name.
    fn scalars(&self) -> BTreeMap<String, Scalar> {
        let scalar = |(name, value): (&String, &Value)| {
            let scalar = match value {
                Value::Number(number) => Scalar::Number(number.as_f64()?),
                Value::String(text) => Scalar::Word(text.clone()),
                _ => return None,
            };
            Some((name.clone(), scalar))
        };
        let mut scalars: BTreeMap<String, Scalar> =
            self.parameters.iter().chain(&self.results).filter_map(scalar).collect();
        if self.kind == "pipeline" {
            // Frame sizes of pipelines never count the FCS; older ones do not say so.
            scalars.entry(fcs::COLUMN.to_owned()).or_insert_with(|| Scalar::Word(Fcs::Without.to_string()));
        }
        scalars
    }
}

impl From<Measurement> for Observation {
    fn from(measurement: Measurement) -> Observation {
        let Measurement { kind, provenance, parameters, results, platform } = measurement;
        let machine = MachineName { name: provenance.machine.name, cpu: provenance.machine.cpu };
        Observation { kind, provenance: MeasuredOn { machine }, parameters, results, platform }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_become_a_table_of_their_numbers_and_words() {
        let text = r#"{"kind":"pipeline","parameters":{"p":64,"h":2,"program":"a, b"},"results":{"T_ns":50.5,"stages":[1,2]}}
            {"kind":"host","results":{"x":1}}

            {"kind":"pipeline","parameters":{"p":128,"h":2,"program":"c"},"results":{"T_ns":51.5}}"#;
        let table = Observation::table(&Observation::parse(text).unwrap()).unwrap();
        assert_eq!(table.names(), ["T_ns", "fcs", "h", "p", "program"]);
        assert_eq!(table.texts("program").unwrap(), ["a, b", "c"]);
        assert_eq!(table.texts("fcs").unwrap(), ["without", "without"]);
        assert_eq!(table.numbers("T_ns").unwrap(), [50.5, 51.5]);
        assert_eq!(table.numbers("p").unwrap(), [64.0, 128.0]);
    }

    #[test]
    fn text_that_holds_no_record_is_refused_with_its_line() {
        let error = Observation::parse("{\"kind\":\"x\"}\nx").unwrap_err().to_string();
        assert!(error.starts_with("line 2: not a record"), "{error}");
        let none = Observation::table(&Observation::parse("{}").unwrap()).unwrap_err().to_string();
        assert!(none.starts_with("no record with `parameters`"), "{none}");
    }
}
