//! What the simulation runs: stations in a row, and where customers come from.

use super::super::formula::QueueError;
use super::super::priority::Preemption;
use super::super::spread::Times;
use super::super::system::{Queueing, ServerGroup};

/// A station.
pub(super) struct StationLayout {
    pub servers: u32,
    pub places: Option<u32>,
    /// The services of each class.
    pub services: Vec<Times>,
}

/// Stations in a row, and where customers come from.
pub(super) struct Layout {
    /// Gaps between the arrivals of each class. None in a closed network.
    pub streams: Vec<Times>,
    /// Customers that go around.
    pub circling: u32,
    /// The time away of those.
    pub think: Option<Times>,
    pub stations: Vec<StationLayout>,
    pub preemption: Preemption,
}

impl Layout {
    pub(super) fn of(queue: &Queueing) -> Result<Layout, QueueError> {
        let one = |group: &ServerGroup, places| StationLayout {
            servers: group.servers,
            places,
            services: vec![group.service],
        };
        let row = |stations: &[ServerGroup]| stations.iter().map(|group| one(group, None)).collect();
        let base = Layout {
            streams: Vec::new(),
            circling: 0,
            think: None,
            stations: Vec::new(),
            preemption: Preemption::None,
        };
        let layout = match queue {
            Queueing::Single { gaps, group, places } => {
                Layout { streams: vec![*gaps], stations: vec![one(group, *places)], ..base }
            }
            Queueing::Priority { classes, servers, preemption } => {
                let services = classes.iter().map(|class| class.service).collect();
                Layout {
                    streams: classes.iter().map(|class| class.gaps).collect(),
                    stations: vec![StationLayout { servers: *servers, places: None, services }],
                    preemption: *preemption,
                    ..base
                }
            }
            Queueing::Tandem { gaps, stations } => {
                Layout { streams: vec![*gaps], stations: row(stations), ..base }
            }
            Queueing::Closed { stations, customers, think } => {
                Layout { circling: *customers, think: *think, stations: row(stations), ..base }
            }
        };
        let services = layout.stations.iter().flat_map(|station| &station.services);
        let mut times = layout.streams.iter().chain(&layout.think).chain(services);
        if let Some(times) = times.find(|times| !times.spread.is_distribution()) {
            return Err(QueueError::Refused(format!(
                "{} states no distribution to draw from: write constant, exponential, erlang:K or hyper:CV2",
                times.spread
            )));
        }
        Ok(layout)
    }

    /// Returns the number of classes.
    pub(super) fn classes(&self) -> usize {
        self.streams.len().max(1)
    }

    /// Returns how many parts figures are kept of: classes, or stations of one class.
    pub(super) fn parts(&self) -> usize {
        self.classes().max(self.stations.len())
    }
}
