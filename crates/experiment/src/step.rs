//! What a run does: steps in a lab, or captures and traffic in virtual time.

use fastpath_units::Duration;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// How runs are carried out.
#[derive(Clone, Debug)]
pub(super) enum RunKind {
    /// With real programs in a lab.
    Lab(Vec<RunStep>),
    /// In virtual time.
    Replay(ReplayInputs),
}

/// What enters and leaves a network in virtual time.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplayInputs {
    /// Captures by the host at which they enter.
    #[serde(default, rename = "in")]
    pub(super) inputs: BTreeMap<String, String>,
    /// The hosts whose arrivals are written to the directory of the run.
    #[serde(default, rename = "out")]
    pub(super) outputs: Vec<String>,
    /// When traffic without a stop ends, as the file writes it.
    pub(super) until: Option<String>,
}

impl ReplayInputs {
    /// When traffic without a stop ends; `None` if it is not said, or wrong.
    pub(super) fn end(&self) -> Option<Duration> {
        self.until.as_ref()?.parse().ok()
    }
}

/// A step of a run.
#[derive(Clone, Debug)]
pub(super) struct RunStep {
    /// The name of its output.
    pub(super) name: String,
    pub(super) action: StepAction,
}

#[derive(Clone, Debug)]
pub(super) enum StepAction {
    /// Runs a command to its end, or starts it and goes on.
    Run {
        command: Vec<String>,
        on: Option<String>,
        background: bool,
        limit: std::time::Duration,
        may_fail: bool,
    },
    Wait(std::time::Duration),
    /// Sets values of links, all at one instant.
    Set(BTreeMap<String, Value>),
    /// Starts the traces of a group.
    Start(String),
    /// Copies a file of a host to the directory of the run.
    Collect {
        file: String,
        on: Option<String>,
    },
}
