//! Where a run comes from.

use crate::Machine;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where a run comes from: with the same version, seed and description it is the same run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Origin {
    /// The version of the program.
    pub version: String,
    /// The seed of its random choices.
    pub seed: u64,
    /// The resolved network in the canonical form, which `fastpath` reads again as `.json`. Runs of
    /// experiments have it in `spec.json` beside `run.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Value>,
    /// The machine, if it is known.
    #[serde(default)]
    pub machine: Option<Machine>,
}
