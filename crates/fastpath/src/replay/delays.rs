//! Configured and realised delays of links with jitter.

#[cfg(target_os = "linux")]
use fastpath_engine::DelayReport;
use fastpath_net::{Network, Observer};
#[cfg(target_os = "linux")]
use fastpath_spec::LinkId;
use fastpath_spec::NodeId;
use serde::Serialize;

/// Configured and realised delay of one direction of a link.
#[derive(Debug, Serialize)]
pub struct RealisedDelays {
    /// The link.
    pub link: String,
    /// The node at which the direction begins.
    pub from: String,
    /// The node at which it ends.
    pub to: String,
    /// The delays.
    #[cfg(target_os = "linux")]
    #[serde(flatten)]
    pub delays: DelayReport,
    /// No value of this type exists: the report of delays is for Linux.
    #[cfg(not(target_os = "linux"))]
    #[serde(skip)]
    pub delays: std::convert::Infallible,
}

/// Configured and realised delays of each direction of a link that has jitter at the end and begins
/// at one of the nodes, with the number of its pipe. None on other systems than Linux: the crate
/// that compares the two is for Linux.
#[cfg(not(target_os = "linux"))]
pub(super) fn realised_delays<O: Observer>(
    _network: &Network<O>,
    _begins_at: impl Fn(NodeId) -> bool,
) -> Vec<(usize, RealisedDelays)> {
    Vec::new()
}

/// Configured and realised delays of each direction of a link that has jitter at the end and begins
/// at one of the nodes, with the number of its pipe.
#[cfg(target_os = "linux")]
pub(super) fn realised_delays<O: Observer>(
    network: &Network<O>,
    begins_at: impl Fn(NodeId) -> bool,
) -> Vec<(usize, RealisedDelays)> {
    let topology = network.topology();
    let report = |number: usize| {
        let (link, index) = (number / 2, number % 2);
        let ends = topology.links[link].ends;
        if !begins_at(ends[index].0) {
            return None;
        }
        let pipe = network.pipe(LinkId(link as u32), index);
        let delays = DelayReport::of(&pipe.spec(), pipe.delays()?)?;
        let [from, to] = [index, 1 - index].map(|end| topology.node(ends[end].0).name.clone());
        Some((number, RealisedDelays { link: topology.links[link].name.clone(), from, to, delays }))
    };
    (0..2 * topology.links.len()).filter_map(report).collect()
}
