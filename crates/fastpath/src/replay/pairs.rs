//! The delays between hosts of a replay: how many frames one host sent to another, and the
//! shortest, mean and longest time that they took. The sums are exact.

use fastpath_net::{Edge, EdgeId};
use fastpath_spec::Topology;
use fastpath_units::Duration;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Most pairs of interfaces whose delays are kept. Frames of further pairs are delivered as the
/// others, but have no row.
const PAIRS_MAX: usize = 100_000;

/// The frames that one host sent and another received.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PairDelays {
    /// The host at which the frames entered.
    pub from: String,
    /// The host that they reached.
    pub to: String,
    /// Number of frames.
    pub frames: u64,
    /// The shortest delay, from the entry of a frame to its arrival.
    #[serde(rename = "min_ms", serialize_with = "in_ms")]
    pub min: Duration,
    /// The mean delay, rounded down to the picosecond.
    #[serde(rename = "mean_ms", serialize_with = "in_ms")]
    pub mean: Duration,
    /// The longest delay.
    #[serde(rename = "max_ms", serialize_with = "in_ms")]
    pub max: Duration,
}

fn in_ms<S: serde::Serializer>(delay: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(delay.as_ms_f64())
}

/// Counts delivered frames by the edges at which they entered and left.
#[derive(Default)]
pub(super) struct Pairs {
    counts: Vec<((EdgeId, EdgeId), Count)>,
    /// Pair to index in `counts`. Never iterated, so its order reaches no output.
    places: HashMap<(EdgeId, EdgeId), usize>,
    /// The pair of the last frame. The next one mostly has the same.
    last: usize,
}

#[derive(Clone, Copy)]
struct Count {
    frames: u64,
    sum_ps: u128,
    min: Duration,
    max: Duration,
}

impl Count {
    const NONE: Count = Count { frames: 0, sum_ps: 0, min: Duration::from_ps(u64::MAX), max: Duration::ZERO };

    fn add(&mut self, other: Count) {
        self.frames += other.frames;
        self.sum_ps += other.sum_ps;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

impl Pairs {
    /// Counts a frame that took `delay` from one edge to another.
    pub(super) fn add(&mut self, from: EdgeId, to: EdgeId, delay: Duration) {
        let pair = (from, to);
        if self.counts.get(self.last).is_none_or(|(known, _)| *known != pair) {
            let Some(place) = self.place(pair) else { return };
            self.last = place;
        }
        let one = Count { frames: 1, sum_ps: u128::from(delay.as_ps()), min: delay, max: delay };
        self.counts[self.last].1.add(one);
    }

    fn place(&mut self, pair: (EdgeId, EdgeId)) -> Option<usize> {
        if let Some(place) = self.places.get(&pair) {
            return Some(*place);
        }
        let place = self.counts.len();
        if place == PAIRS_MAX {
            return None;
        }
        self.counts.push((pair, Count::NONE));
        self.places.insert(pair, place);
        Some(place)
    }

    /// Returns the delays by pair of hosts, in the order of the hosts.
    pub(super) fn delays(&self, topology: &Topology, edges: &[Edge]) -> Vec<PairDelays> {
        let nodes: Vec<_> = edges.iter().map(|edge| edge.node).collect();
        let mut hosts = BTreeMap::new();
        for ((from, to), count) in &self.counts {
            let pair = (nodes[from.0 as usize], nodes[to.0 as usize]);
            hosts.entry(pair).or_insert(Count::NONE).add(*count);
        }
        let delays = hosts.into_iter().map(|((from, to), count)| PairDelays {
            from: topology.node(from).name.clone(),
            to: topology.node(to).name.clone(),
            frames: count.frames,
            min: count.min,
            mean: Duration::from_ps((count.sum_ps / u128::from(count.frames)) as u64),
            max: count.max,
        });
        delays.collect()
    }
}
