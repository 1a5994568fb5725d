//! What a run leaves behind: outputs of commands, counters, samples and times.

use fastpath_traffic::FlowReport;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What metrics are computed from.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    /// The file with the output of each command, by step.
    pub(super) outputs: BTreeMap<String, PathBuf>,
    /// Counters at the end: link, node that the direction leads from, name.
    pub(super) counters: Vec<Counter>,
    /// Values of links over time.
    pub(super) samples: Vec<Counter>,
    /// How many frames ended how, in virtual time: `delivered` and the drop reasons.
    pub(super) frames: BTreeMap<String, u64>,
    /// The time in the network of each frame that was delivered, ms.
    pub(super) delays_ms: Vec<f64>,
    /// What was sent and received of the traffic of the description.
    pub(super) flows: Vec<FlowReport>,
    /// Why the run is not to be used: the machine did not carry it.
    pub(super) disturbed: Option<String>,
    /// Why the run did not come to its end.
    pub(super) problem: Option<String>,
}

/// A number that belongs to a direction of a link.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Counter {
    pub(super) link: String,
    pub(super) from: String,
    pub(super) name: String,
    pub(super) value: f64,
}
