//! The measurements that a simulated machine and program are made of, typed. Fields that a
//! simulation does not need are not read.

use crate::observation::{MachineName, Observation, ObservationError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A measurement of kind `host`: the machine it is about.
#[derive(Clone, PartialEq, Debug)]
pub struct HostMeasurement {
    /// The machine.
    pub machine: MachineName,
    /// What was measured.
    pub results: HostResults,
}

/// The results of a measurement of kind `host`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct HostResults {
    /// Integer score of each core, iterations/s.
    #[serde(default)]
    pub score_per_core: Vec<f64>,
    /// Caches found in the latencies, the smallest first.
    #[serde(default)]
    pub caches: Vec<RecordedCache>,
    /// Memory latency by working set, the smallest first.
    #[serde(default)]
    pub latency: Vec<RecordedLatency>,
}

/// A cache found in the latencies of a machine.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
pub struct RecordedCache {
    /// Largest measured working set that fits, bytes.
    pub fits_bytes: f64,
    /// Smallest measured working set that does not fit, bytes.
    pub exceeds_bytes: Option<f64>,
    /// Size that the kernel declares, bytes.
    pub declared_bytes: Option<f64>,
    /// Load latency, ns.
    pub ns: f64,
}

/// Memory latency at one working set.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
pub struct RecordedLatency {
    /// Working set, bytes.
    pub bytes: f64,
    /// Median time of a dependent load, ns.
    pub ns: f64,
}

/// A measurement of kind `pipeline`: a point of a grid.
#[derive(Clone, PartialEq, Debug)]
pub struct PipelineMeasurement {
    /// The settings.
    pub parameters: PipelineParameters,
    /// What was measured.
    pub results: PipelineResults,
}

/// The settings of a measurement of kind `pipeline`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct PipelineParameters {
    /// The program of the device.
    pub program: String,
    /// Frame size without FCS, bytes.
    #[serde(alias = "size")]
    pub p: f64,
    /// Steps of parsing and hashing per packet.
    #[serde(default)]
    pub h: u64,
    /// Number of cores; older measurements do not say: one.
    pub cores: Option<u64>,
    /// Number of emulated links.
    pub links: Option<u64>,
}

/// The results of a measurement of kind `pipeline`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct PipelineResults {
    /// The cost of each stage, in order.
    #[serde(default)]
    pub stages: Vec<RecordedStage>,
}

/// The cost of a stage.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct RecordedStage {
    /// Its name.
    pub name: String,
    /// Median time per packet, ns.
    pub ns: f64,
}

impl Observation {
    /// Returns a measurement of kind `host`; `None` for another kind.
    ///
    /// # Errors
    /// [`ObservationError::Field`] for a field that is missing or wrong.
    pub fn host(&self) -> Result<Option<HostMeasurement>, ObservationError> {
        if self.kind != "host" {
            return Ok(None);
        }
        let results = self.typed(&self.results)?;
        Ok(Some(HostMeasurement { machine: self.provenance.machine.clone(), results }))
    }

    /// Returns a measurement of kind `pipeline`; `None` for another kind.
    ///
    /// # Errors
    /// [`ObservationError::Field`] for a field that is missing or wrong.
    pub fn pipeline(&self) -> Result<Option<PipelineMeasurement>, ObservationError> {
        if self.kind != "pipeline" {
            return Ok(None);
        }
        let (parameters, results) = (self.typed(&self.parameters)?, self.typed(&self.results)?);
        Ok(Some(PipelineMeasurement { parameters, results }))
    }

    fn typed<T: DeserializeOwned>(&self, fields: &Map<String, Value>) -> Result<T, ObservationError> {
        serde_json::from_value(Value::Object(fields.clone()))
            .map_err(|source| ObservationError::Field { kind: self.kind.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_are_typed_by_their_kind_and_a_wrong_field_is_named() {
        let read = |line: &str| Observation::parse(line).unwrap().remove(0);
        let host = read(
            r#"{"kind":"host","provenance":{"machine":{"name":"m","cpu":"c","cores":2}},
            "results":{"score_per_core":[1,2],"caches":[{"level":1,"fits_bytes":1024,"ns":1.5,"confidence":1}],"latency":[]}}"#
                .replace('\n', " ")
                .as_str(),
        );
        assert_eq!(host.pipeline().unwrap(), None);
        let HostMeasurement { machine, results } = host.host().unwrap().unwrap();
        assert_eq!((machine.name.as_str(), results.score_per_core.len()), ("m", 2));
        assert_eq!(results.caches[0].exceeds_bytes, None);
        let old = read(
            r#"{"kind":"pipeline","parameters":{"program":"emulate","size":64,"links":9},"results":{"T_ns":1}}"#,
        );
        let PipelineMeasurement { parameters, results } = old.pipeline().unwrap().unwrap();
        assert_eq!((parameters.p, parameters.cores, parameters.links), (64.0, None, Some(9)));
        assert_eq!(results.stages, []);
        let wrong = read(r#"{"kind":"pipeline","parameters":{"program":"netcope"},"results":{}}"#);
        let said = wrong.pipeline().unwrap_err().to_string();
        assert!(said.starts_with("record of kind pipeline: missing field `p`"), "{said}");
    }
}
