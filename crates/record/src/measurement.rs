//! Measurements: results, with what is needed to judge them. One JSON object per line.
//!
//! ```text
//!  { "kind": "pipeline", "provenance": { machine, tool, command line, seed, n, disturbance },
//!    "parameters": { "p": 64, "h": 10 }, "results": { "T_ns": 91.2 }, "platform": { … } }
//! ```
//!
//! Reports are made of measurements. Models are fitted to the numbers in `parameters` and
//! `results`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::{Duration, UNIX_EPOCH};

/// The last second of the year 9999.
const UNIX_S_MAX: u64 = 253_402_300_799;

/// One measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Measurement {
    /// What was measured: `host`, `pipeline`, `latency`, `operations`.
    pub kind: String,
    /// Where, when and with what it was made.
    pub provenance: Provenance,
    /// The settings, by name with the unit last.
    pub parameters: Map<String, Value>,
    /// The results, by name with the unit last.
    pub results: Map<String, Value>,
    /// The platform as models see it, in measurements of kind `host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<fastpath_model::platform::Platform>,
}

/// Where, when and with what a measurement was made.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Provenance {
    /// The machine.
    pub machine: Machine,
    /// The program.
    pub tool: Tool,
    /// Its command line.
    pub command_line: Vec<String>,
    /// Seed of the random generator.
    pub seed: u64,
    /// Number of repetitions.
    pub n: u64,
    /// Start, seconds since 1970.
    pub started_unix_s: u64,
    /// Duration, seconds.
    pub elapsed_s: f64,
    /// Other work on the machine meanwhile.
    pub disturbance: Disturbance,
}

/// The machine, as its kernel describes it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Its host name.
    pub name: String,
    /// Model of its first processor.
    pub cpu: String,
    /// Cores this process may use.
    pub cores: usize,
    /// Version of the kernel.
    pub kernel: String,
}

/// The program that measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tool {
    /// Its version.
    pub version: String,
    /// The commit it was built from, if known.
    pub commit: Option<String>,
    /// How it was built. Only the speed of release builds is representative.
    pub optimised: Optimised,
}

/// The optimisation of the program's build.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Optimised {
    /// For speed.
    Release,
    /// For testing.
    Development,
}

/// Other work on the machine during a measurement.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Disturbance {
    /// Share of the machine's time that the hypervisor gave to others (steal), 0 … 1.
    pub stolen_share: f64,
    /// Share of the machine's time spent on other programs, 0 … 1.
    pub others_share: f64,
    /// Whether the load was so high that results may be wrong by several percent.
    pub disturbed: bool,
}

impl Provenance {
    /// Returns the start in UTC: `Mon, 23 Nov 2026 02:30:00 GMT` (RFC 9110, §5.6.7).
    pub fn started(&self) -> String {
        httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(self.started_unix_s.min(UNIX_S_MAX)))
    }

    /// Returns the day of the start: `23 Nov 2026`.
    pub fn day(&self) -> String {
        self.started().split(' ').skip(1).take(3).collect::<Vec<_>>().join(" ")
    }
}

impl Tool {
    /// Describes the calling program, built from `commit`.
    pub fn new(version: &str, commit: Option<&str>) -> Tool {
        let optimised = if cfg!(debug_assertions) { Optimised::Development } else { Optimised::Release };
        Tool { version: version.to_owned(), commit: commit.map(str::to_owned), optimised }
    }
}

/// Returns the fields of a struct, for [`Measurement::parameters`] and
/// [`Measurement::results`]. Panics if
/// the value is not a struct.
pub fn fields(of: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(of) {
        Ok(Value::Object(fields)) => fields,
        other => panic!("not a struct: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provenance() -> Provenance {
        Provenance {
            machine: Machine {
                name: "m".to_owned(),
                cpu: "c".to_owned(),
                cores: 4,
                kernel: "6.1".to_owned(),
            },
            tool: Tool::new("1.0", None),
            command_line: vec!["fastpath".to_owned()],
            seed: 7,
            n: 3,
            started_unix_s: 1_795_400_000,
            elapsed_s: 1.5,
            disturbance: Disturbance::default(),
        }
    }

    #[test]
    fn any_start_time_has_a_day() {
        let mut provenance = provenance();
        assert_eq!(provenance.started(), "Mon, 23 Nov 2026 02:13:20 GMT");
        assert_eq!(provenance.day(), "23 Nov 2026");
        provenance.started_unix_s = u64::MAX;
        assert_eq!(provenance.day(), "31 Dec 9999");
    }

    #[test]
    fn a_measurement_is_read_back_from_its_line() {
        let provenance = provenance();
        let record = Measurement {
            kind: "pipeline".to_owned(),
            parameters: fields(&provenance.disturbance),
            provenance,
            results: Map::new(),
            platform: None,
        };
        let line = serde_json::to_string(&record).unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Measurement>(&line).unwrap(), record);
    }
}
