//! What an experiment keeps of one of its runs, in `run.json`.

use crate::Origin;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A finished run of an experiment: one repetition of one condition.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Repetition {
    /// Its number in the experiment, from 0.
    pub run: u64,
    /// The value of each axis.
    pub condition: BTreeMap<String, Value>,
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
    /// Where it comes from.
    #[serde(flatten)]
    pub origin: Origin,
}

impl Repetition {
    /// Whether the run came to its end, and the machine carried it.
    pub fn is_usable(&self) -> bool {
        self.why_left_out().is_none()
    }

    /// Why the run is left out of tables, if so.
    pub fn why_left_out(&self) -> Option<&str> {
        self.problem.as_deref().or(self.disturbed.as_deref())
    }

    /// The condition in words: `cc=cubic, link.a-b.queue=codel`.
    pub fn condition_words(&self) -> String {
        let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let words: Vec<String> =
            self.condition.iter().map(|(name, value)| format!("{name}={}", word(value))).collect();
        words.join(", ")
    }

    /// The number, the condition and the seed in words: `2 (queue=fifo, seed 3)`.
    pub fn words(&self) -> String {
        let seed = format!("seed {}", self.origin.seed);
        let condition = Some(self.condition_words()).filter(|condition| !condition.is_empty());
        let inside: Vec<String> = condition.into_iter().chain([seed]).collect();
        format!("{} ({})", self.run, inside.join(", "))
    }
}
