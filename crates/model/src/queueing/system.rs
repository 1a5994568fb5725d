//! The description of a queue, and what is known of it in steady state. Times are in seconds.

use super::priority::Preemption;
use super::spread::{LawSpread, Times};
use crate::Estimate;
use serde::{Deserialize, Serialize};

/// A group of servers with one queue.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ServerGroup {
    /// The service times.
    pub service: Times,
    /// Number of servers.
    pub servers: u32,
}

/// The customers of one priority.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct PriorityClass {
    /// The gaps between arrivals.
    pub gaps: Times,
    /// The service times.
    pub service: Times,
}

/// A queue, or a network of queues. All serve in order of arrival.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Queueing {
    /// One queue.
    Single {
        /// The gaps between arrivals.
        gaps: Times,
        /// The servers.
        group: ServerGroup,
        /// How many customers there may be, those in service included.
        places: Option<u32>,
    },
    /// One queue in which the first classes go first.
    Priority {
        /// The classes, the first first.
        classes: Vec<PriorityClass>,
        /// Number of servers.
        servers: u32,
        /// Whether an arrival stops the service of a later class.
        preemption: Preemption,
    },
    /// Queues in a row.
    Tandem {
        /// The gaps between arrivals at the first.
        gaps: Times,
        /// The queues in their order.
        stations: Vec<ServerGroup>,
    },
    /// A number of customers who go around: they are away for a time, and then pass all stations.
    Closed {
        /// The stations.
        stations: Vec<ServerGroup>,
        /// Number of customers.
        customers: u32,
        /// The time away.
        think: Option<Times>,
    },
}

/// How far figures can be trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// By an exact formula.
    Exact,
    /// By an approximation.
    Approximate,
    /// By simulation, with 95 % intervals.
    Simulated,
}

/// The times that a share of the customers does not exceed.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Percentile {
    /// The share, in percent.
    pub percent: f64,
    /// Time waiting, in seconds.
    pub wait_s: Option<Estimate>,
    /// Time waiting and served, in seconds.
    pub sojourn_s: Option<Estimate>,
}

/// Figures of a queue in steady state. What is not known is absent.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct QueueFigures {
    /// Customers served per second.
    pub throughput_per_s: Option<Estimate>,
    /// Share of the servers busy.
    pub utilisation: Option<Estimate>,
    /// Share of the arrivals lost.
    pub lost: Option<Estimate>,
    /// Share of the customers that wait.
    pub waits: Option<Estimate>,
    /// Mean number waiting.
    pub queue_len: Option<Estimate>,
    /// Mean number waiting or served.
    pub in_system: Option<Estimate>,
    /// Mean time waiting, in seconds.
    pub wait_s: Option<Estimate>,
    /// Mean time waiting and served, in seconds.
    pub sojourn_s: Option<Estimate>,
    /// Percentiles of the times.
    pub percentiles: Vec<Percentile>,
}

/// A class or a station.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct QueuePart {
    /// Its name: `class 1`, `station 2`.
    pub name: String,
    /// Its figures.
    pub figures: QueueFigures,
}

/// What is known of a queue by one method.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct QueueAnswer {
    /// The method and its source.
    pub method: String,
    /// How far the figures can be trusted.
    pub evidence: Evidence,
    /// The whole.
    pub total: QueueFigures,
    /// Its classes or stations, if there are several.
    pub parts: Vec<QueuePart>,
    /// Reasons to doubt the figures.
    pub warnings: Vec<String>,
}

/// The output of `model queue`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct QueueOutput {
    /// The queue in Kendall's notation.
    pub name: String,
    /// The description.
    pub queue: Queueing,
    /// By formula, if one is known.
    pub formula: Option<QueueAnswer>,
    /// By simulation, if it was asked for.
    pub simulation: Option<QueueAnswer>,
}

impl Queueing {
    /// Returns the queue in Kendall's notation: `M/M/4/100`.
    pub fn name(&self) -> String {
        match self {
            Queueing::Single { gaps, group, places } => {
                let places = places.map_or(String::new(), |places| format!("/{places}"));
                format!(
                    "{}/{}/{}{places}",
                    gaps.spread.letter(),
                    group.service.spread.letter(),
                    group.servers
                )
            }
            Queueing::Priority { classes, servers, preemption } => {
                let letter = |spread: fn(&PriorityClass) -> LawSpread| {
                    let first = spread(&classes[0]).letter();
                    if classes.iter().all(|c| spread(c).letter() == first) { first } else { "G".to_owned() }
                };
                let how = if *preemption == Preemption::Resume { "preemptive" } else { "non-preemptive" };
                let (gaps, service) = (letter(|c| c.gaps.spread), letter(|c| c.service.spread));
                format!("{gaps}/{service}/{servers} with {} {how} priorities", classes.len())
            }
            Queueing::Tandem { stations, .. } => format!("{} queues in a row", stations.len()),
            Queueing::Closed { stations, customers, think: Some(think) } if stations.len() == 1 => {
                let [away, service] = [think.spread, stations[0].service.spread].map(LawSpread::letter);
                format!("{away}/{service}/{}//{customers}", stations[0].servers)
            }
            Queueing::Closed { stations, customers, .. } => {
                format!("closed network of {} stations, {customers} customers", stations.len())
            }
        }
    }
}
