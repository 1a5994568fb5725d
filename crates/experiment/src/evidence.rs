//! What a run leaves behind: outputs of commands, counters, samples and times.

use fastpath_traffic::{FlowReport, TransferReport};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The interval at which links are sampled.
pub(super) const SAMPLE: Duration = Duration::from_millis(100);

/// What metrics are computed from. It is kept with the run, so that metrics can change afterwards.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Evidence {
    /// The directory of the run.
    #[serde(skip)]
    pub(super) directory: PathBuf,
    /// The name of the file with the output of each command, by step.
    pub(super) outputs: BTreeMap<String, String>,
    /// Counters at the end, one value each.
    pub(super) counters: Vec<Readings>,
    /// Values of links over time; `None` if they were not sampled.
    pub(super) samples: Option<Vec<Readings>>,
    /// How many frames ended how, in virtual time: `delivered` and the drop reasons.
    pub(super) frames: BTreeMap<String, u64>,
    /// The time in the network of each frame that was delivered, ps; `None` if no metric uses it.
    pub(super) delays_ps: Option<Vec<u64>>,
    /// What was sent and received of the traffic of the description.
    pub(super) flows: Vec<FlowReport>,
    /// What came of its connections.
    #[serde(default)]
    pub(super) transfers: Vec<TransferReport>,
    /// Why the run is not to be used: the machine did not carry it.
    pub(super) disturbed: Option<String>,
    /// Why the run did not come to its end.
    pub(super) problem: Option<String>,
}

/// The values of a number that belongs to a direction of a link, in the order of time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Readings {
    pub(super) link: String,
    /// The node that the direction leads from.
    pub(super) from: String,
    pub(super) name: String,
    pub(super) values: Vec<f64>,
}

/// What is counted of a direction of a link.
pub(super) struct DirectionCounts {
    /// That arrived, and that left.
    pub(super) frames: [u64; 2],
    pub(super) bytes: [u64; 2],
    pub(super) marked: u64,
    pub(super) duplicated: u64,
    pub(super) corrupted: u64,
}

impl DirectionCounts {
    /// As readings of a link and the node that the direction leads from.
    pub(super) fn readings(
        &self,
        (link, from): (&str, &str),
        dropped: &BTreeMap<String, u64>,
    ) -> Vec<Readings> {
        let named = [
            ("frames_in", self.frames[0]),
            ("frames_out", self.frames[1]),
            ("bytes_in", self.bytes[0]),
            ("bytes_out", self.bytes[1]),
            ("dropped", dropped.values().sum()),
            ("marked", self.marked),
            ("duplicated", self.duplicated),
            ("corrupted", self.corrupted),
        ];
        let reasons = dropped.iter().map(|(why, count)| (why.as_str(), *count));
        let reading = |(name, count): (&str, u64)| Readings {
            link: link.to_owned(),
            from: from.to_owned(),
            name: name.to_owned(),
            values: vec![count as f64],
        };
        named.into_iter().chain(reasons).map(reading).collect()
    }
}

/// Returns the values of several readings in the order of time.
pub(super) fn in_order(readings: &[&Readings]) -> Vec<f64> {
    let longest = readings.iter().map(|readings| readings.values.len()).max().unwrap_or_default();
    let at = |index: usize| readings.iter().filter_map(move |readings| readings.values.get(index).copied());
    (0..longest).flat_map(at).collect()
}
