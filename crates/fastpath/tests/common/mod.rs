//! Replays of networks with one transfer or several.

use fastpath::spec::{Topology, parse};
use fastpath::units::Duration;
use fastpath::{Replay, ReplaySummary};
use fastpath_traffic::TransferReport;

pub(crate) fn topology(text: &str) -> Topology {
    parse(text).unwrap_or_else(|mistakes| panic!("{text}\n{}", mistakes[0])).0
}

pub(crate) fn run(text: &str, until: u64) -> ReplaySummary {
    let replay = Replay::through(topology(text)).until(Duration::from_secs(until));
    replay.run().unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// The results of the only transfer.
pub(crate) fn only(summary: &ReplaySummary) -> &TransferReport {
    let [report] = &summary.transfers[..] else { panic!("one transfer") };
    report
}
