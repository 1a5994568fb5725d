//! The record of a finished run.

use super::axis::label;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A finished run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// Its number, from 0.
    pub run: u64,
    /// The seed of its random choices.
    pub seed: u64,
    /// The value of each axis.
    pub place: BTreeMap<String, Value>,
    /// How often it was tried.
    pub attempts: u32,
    /// Why the machine did not carry it, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
    /// Why it did not come to its end, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The numbers of each metric, in their order.
    pub samples: BTreeMap<String, Vec<f64>>,
    /// The number of each metric in the table.
    pub values: BTreeMap<String, f64>,
    /// The version of the program and the machine.
    pub origin: Value,
}

impl RunRecord {
    /// Whether the run came to its end, and the machine carried it.
    pub fn is_usable(&self) -> bool {
        self.problem.is_none() && self.disturbed.is_none()
    }

    /// The condition in words: `cc=cubic, link.a-b.queue=codel`.
    pub fn condition(&self) -> String {
        let words: Vec<String> =
            self.place.iter().map(|(name, value)| format!("{name}={}", label(value))).collect();
        words.join(", ")
    }
}
