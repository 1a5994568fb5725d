//! Cuts a connected topology into parts that run side by side, with the same results as the whole.
//!
//! ```text
//!  nodes ─▶ joined by links without a delay ─▶ halved again and again ─▶ parts
//!                                                                        │ │
//!                                 part 0 ──pipe, known `lookahead` before──▶ part 1
//! ```
//!
//! A part is a set of nodes. A pipe belongs to the part of the node that sends on it, with its
//! queue, its rate and its random numbers. What leaves the pipe is known before it arrives, by at
//! least the lookahead of the pipe, so the network is cut between the delay of the pipe and the
//! node at its end. Links that have no lookahead keep their nodes in one part, as do the links of
//! a group that starts with the first packet on any of them.
//!
//! `crate::part` splits a topology where no frames are exchanged at all.
//!
//! Read first: `lookahead.rs`.

mod bisect;
mod lookahead;
mod work;

use crate::schedule::LinkChange;
use bisect::{Graph, bisect};
use fastpath_spec::{Event, LinkId, NodeId, Start, Topology};
use fastpath_units::{Duration, Rng, Time};
pub use lookahead::NoCut;
use lookahead::{LinkLookahead, lookaheads};
use std::num::NonZeroUsize;
use work::ExpectedWork;
pub use work::previous_hops;

/// The cost of passing a packet to another part for each of the two, in packets at nodes.
const HANDOVER: f64 = 0.25;

/// Which nodes run together. See the head of this file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Partition {
    /// By node: its part.
    parts: Vec<u32>,
    count: usize,
    cuts: Vec<Cut>,
    joined: Vec<JoinedLinks>,
    /// By part: the expected work.
    work: Vec<u64>,
    /// By part: the expected packets between it and others.
    crossing: Vec<u64>,
    hops_per_s: u64,
}

/// A link between two parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// The link.
    pub link: LinkId,
    /// The parts of its ends.
    pub parts: [usize; 2],
    /// By pipe: what leaves it is known this long before.
    pub lookahead: [Duration; 2],
    /// By pipe: whether its parameters change during the run.
    pub(crate) changes: [bool; 2],
    /// By pipe: whether it has jitter at any time.
    pub(crate) jitters: [bool; 2],
}

/// Why nodes stay in one part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JoinedLinks {
    /// The link cannot be cut.
    Link(LinkId, NoCut),
    /// The links of this group start with the first packet on any of them.
    Group(usize),
    /// Routes follow the states of links, which traces may change at the first packet of a group.
    Routes,
}

/// A change would make the delay of a cut link shorter than its lookahead.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{link}: the network is cut at this link, which is known to be at least {lookahead} long: keep its delay at \
     {lookahead} or more, without reorder and late copies, or run with --workers 1"
)]
pub struct BelowLookahead {
    /// The link.
    pub link: String,
    /// The lookahead of the pipe.
    pub lookahead: Duration,
}

/// Nodes of several parts are joined by links that cannot be cut.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{} and {} run on different workers and cannot be joined by links with a delay below {least} while they run: \
     write workers = 1 in [engine], or --workers 1, and start the network again", nodes[0], nodes[1]
)]
pub struct NodesJoined {
    /// A node of each of two parts.
    pub nodes: [String; 2],
    /// The least lookahead at which the network is cut.
    pub least: Duration,
}

impl Partition {
    /// Where the number of workers is not given, a network is cut from this expected speed-up on.
    pub const PAYS_OFF: f64 = 1.15;
    /// In real time a network is cut at links with at least this lookahead: a worker notices what
    /// another one passes on within a few microseconds while it polls, and within some ten when it
    /// has to wake up.
    pub const REAL_TIME_LOOKAHEAD: Duration = Duration::from_us(100);

    /// Cuts a topology into at most `count` parts with similar work and little traffic between
    /// them. There are fewer parts if fewer sets of nodes can be told apart.
    pub fn new(topology: &Topology, count: NonZeroUsize) -> Partition {
        Partition::with_lookahead(topology, count, Duration::from_ps(1))
    }

    /// As [`Partition::new`], and no link with a lookahead below `least` is cut. In real time a
    /// part takes a while to notice what another one passes on.
    pub fn with_lookahead(topology: &Topology, count: NonZeroUsize, least: Duration) -> Partition {
        let clusters = Clusters::of(topology, least);
        let work = ExpectedWork::of(topology);
        let graph = clusters.graph(topology, &work);
        let mut parts = vec![0; graph.work.len()];
        let all: Vec<usize> = (0..graph.work.len()).collect();
        split(&graph, &all, count.get().min(graph.work.len().max(1)), 0, &mut parts);
        Partition::in_order(topology, clusters, &work, parts)
    }

    /// Cuts the topology that takes the place of one that runs in `count` parts: nodes stay in the
    /// part that `part` returns by name, and new ones join their neighbors, or the part with the
    /// fewest nodes. Some parts may be empty. No link with a lookahead below `least` is cut.
    ///
    /// # Errors
    /// A new link without such a lookahead joins nodes of two parts.
    pub fn follow(
        topology: &Topology,
        count: usize,
        least: Duration,
        part: impl Fn(&str) -> Option<usize>,
    ) -> Result<Partition, NodesJoined> {
        let clusters = Clusters::of(topology, least);
        // By cluster: its part, and the first node that was there.
        let mut places: Vec<Option<(usize, usize)>> = vec![None; clusters.count];
        let name = |node: usize| topology.nodes[node].name.clone();
        for (node, &cluster) in clusters.of_nodes.iter().enumerate() {
            let Some(place) = part(&topology.nodes[node].name) else { continue };
            let (other, first) = *places[cluster].get_or_insert((place, node));
            if other != place {
                return Err(NodesJoined { nodes: [name(first), name(node)], least });
            }
        }
        let mut parts: Vec<Option<u32>> =
            places.iter().map(|place| place.map(|(part, _)| part as u32)).collect();
        let mut sizes = vec![0_usize; count];
        clusters
            .of_nodes
            .iter()
            .filter_map(|&cluster| parts[cluster])
            .for_each(|part| sizes[part as usize] += 1);
        let mut is_open = true;
        while std::mem::take(&mut is_open) {
            for link in &topology.links {
                let [a, b] = link.ends.map(|(node, _)| clusters.of_nodes[node.0 as usize]);
                for (known, open) in [(a, b), (b, a)] {
                    if let (Some(part), None) = (parts[known], parts[open]) {
                        parts[open] = Some(part);
                        is_open = true;
                    }
                }
            }
        }
        let smallest = (0..count).min_by_key(|&part| sizes[part]).unwrap_or(0) as u32;
        let parts: Vec<u32> = parts.into_iter().map(|part| part.unwrap_or(smallest)).collect();
        Ok(Partition::of(topology, clusters, &ExpectedWork::of(topology), &parts, count))
    }

    /// Distributes nodes over at most `count` parts at random, for tests: the results of a run do
    /// not depend on the parts.
    pub fn random(topology: &Topology, count: NonZeroUsize, seed: u64) -> Partition {
        let clusters = Clusters::of(topology, Duration::from_ps(1));
        let mut rng = Rng::new(seed);
        let parts: Vec<u32> = (0..clusters.count).map(|_| rng.below(count.get() as u64) as u32).collect();
        Partition::in_order(topology, clusters, &ExpectedWork::of(topology), parts)
    }

    /// `parts` are those of the clusters. Numbers the parts in the order of their first nodes.
    fn in_order(
        topology: &Topology,
        clusters: Clusters,
        expected: &ExpectedWork,
        mut parts: Vec<u32>,
    ) -> Partition {
        let mut numbers: Vec<Option<u32>> =
            vec![None; parts.iter().max().map_or(0, |most| *most as usize + 1)];
        let mut count = 0;
        // Clusters are numbered in the order of their first nodes, too.
        for part in &mut parts {
            *part = *numbers[*part as usize].get_or_insert_with(|| {
                count += 1;
                count - 1
            });
        }
        Partition::of(topology, clusters, expected, &parts, (count as usize).max(1))
    }

    /// `parts` are those of the clusters.
    fn of(
        topology: &Topology,
        clusters: Clusters,
        expected: &ExpectedWork,
        parts: &[u32],
        count: usize,
    ) -> Partition {
        let parts: Vec<u32> = clusters.of_nodes.iter().map(|&cluster| parts[cluster]).collect();
        let part = |node: NodeId| parts[node.0 as usize] as usize;
        let (mut cuts, mut crossing, mut work) = (Vec::new(), vec![0; count], vec![0; count]);
        for (node, amount) in expected.nodes.iter().enumerate() {
            work[parts[node] as usize] += amount;
        }
        for (index, (link, known)) in topology.links.iter().zip(&clusters.known).enumerate() {
            let ends = link.ends.map(|(node, _)| part(node));
            if let (true, Ok(lookahead)) = (ends[0] != ends[1], known.least) {
                let link = LinkId(index as u32);
                cuts.push(Cut {
                    link,
                    parts: ends,
                    lookahead,
                    changes: known.changes,
                    jitters: known.jitters,
                });
                ends.iter().for_each(|&end| crossing[end] += expected.links[index]);
            }
        }
        let hops_per_s = expected.hops_per_s;
        Partition { parts, count, cuts, joined: clusters.joined, work, crossing, hops_per_s }
    }

    /// Returns the number of parts. None is empty, but where there are no nodes, and after
    /// [`Partition::follow`].
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the part of a node.
    pub fn part_of(&self, node: NodeId) -> usize {
        self.parts[node.0 as usize] as usize
    }

    /// Returns the nodes of a part, in order.
    pub fn nodes(&self, part: usize) -> impl Iterator<Item = NodeId> {
        let of_part = move |&(_, &other): &(usize, &u32)| other as usize == part;
        self.parts.iter().enumerate().filter(of_part).map(|(node, _)| NodeId(node as u32))
    }

    /// Returns the links between parts, in order.
    pub fn cuts(&self) -> &[Cut] {
        &self.cuts
    }

    /// Returns why nodes stay in one part, in the order of links, then of groups.
    pub fn joined(&self) -> &[JoinedLinks] {
        &self.joined
    }

    /// Returns the share of each part in the expected work.
    pub fn shares(&self) -> Vec<f64> {
        let total = self.work.iter().sum::<u64>().max(1) as f64;
        self.work.iter().map(|&work| work as f64 / total).collect()
    }

    /// Returns for each part its share in the expected packets at nodes, and the frames that it is
    /// expected to pass to others or take from them for each packet at a node of the whole.
    pub fn loads(&self) -> Vec<[f64; 2]> {
        let total = self.work.iter().sum::<u64>().max(1) as f64;
        let load = |(work, crossing): (&u64, &u64)| [*work as f64 / total, *crossing as f64 / total];
        self.work.iter().zip(&self.crossing).map(load).collect()
    }

    /// Returns how many times as fast as one part the parts are expected to be, with a core for
    /// each and frequent packets: all work over that of the part with the most, handovers included.
    pub fn expected_speedup(&self) -> f64 {
        let busiest = self.work.iter().zip(&self.crossing);
        let busiest = busiest.map(|(work, crossing)| *work as f64 + HANDOVER * *crossing as f64);
        let total = self.work.iter().sum::<u64>().max(1) as f64;
        total / busiest.fold(1.0, f64::max)
    }

    /// Returns the packets per second that the nodes are expected to handle together by the traffic
    /// of the description; `None` without any.
    pub fn expected_hops_per_s(&self) -> Option<u64> {
        Some(self.hops_per_s).filter(|hops| *hops > 0)
    }

    /// Returns the shortest lookahead; `None` without cuts.
    pub fn lookahead_min(&self) -> Option<Duration> {
        self.cuts.iter().flat_map(|cut| cut.lookahead).min()
    }

    /// Checks that cut pipes keep their lookaheads if a link changes at any time of the run.
    ///
    /// # Errors
    /// One would not.
    pub fn check_change(
        &self,
        topology: &Topology,
        (link, direction, change): &LinkChange,
    ) -> Result<(), BelowLookahead> {
        let Some(cut) = self.cuts.iter().find(|cut| cut.link == *link) else { return Ok(()) };
        let (direction, change) = (*direction, change.clone());
        let event = Event { at: Time::ZERO, link: *link, direction, change };
        let changed = Topology {
            links: topology.links.clone(),
            tracks: topology.tracks.clone(),
            events: topology.events.iter().cloned().chain([event]).collect(),
            ..Topology::default()
        };
        let least = lookaheads(&changed)[link.0 as usize].least.unwrap_or([Duration::ZERO; 2]);
        let below = (0..2).find(|&pipe| least[pipe] < cut.lookahead[pipe]);
        below.map_or(Ok(()), |pipe| {
            let link = topology.link(*link).name.clone();
            Err(BelowLookahead { link, lookahead: cut.lookahead[pipe] })
        })
    }
}

/// Nodes that stay together.
struct Clusters {
    /// By node: its cluster.
    of_nodes: Vec<usize>,
    count: usize,
    joined: Vec<JoinedLinks>,
    /// By link.
    known: Vec<LinkLookahead>,
}

impl Clusters {
    /// A link with a lookahead below `least` joins its ends.
    fn of(topology: &Topology, least: Duration) -> Clusters {
        let mut known = lookaheads(topology);
        for link in &mut known {
            if link.least.is_ok_and(|pipes| pipes.iter().any(|pipe| *pipe < least)) {
                link.least = Err(NoCut::Below(least));
            }
        }
        let mut sets = Sets((0..topology.nodes.len()).collect());
        let mut joined = Vec::new();
        for (index, (link, known)) in topology.links.iter().zip(&known).enumerate() {
            if let Err(why) = known.least {
                joined.push(JoinedLinks::Link(LinkId(index as u32), why));
                sets.join_all(link.ends.map(|(node, _)| node.0 as usize));
            }
        }
        let waiting =
            topology.groups.iter().enumerate().filter(|(_, group)| group.start == Start::FirstPacket);
        for (index, group) in waiting {
            joined.push(JoinedLinks::Group(index));
            let ends = group.links.iter().flat_map(|link| topology.link(*link).ends);
            sets.join_all(ends.map(|(node, _)| node.0 as usize));
            if topology.routing.is_dynamic {
                joined.push(JoinedLinks::Routes);
                sets.join_all(0..topology.nodes.len());
            }
        }
        let (mut numbers, mut count) = (vec![None; topology.nodes.len()], 0);
        let of_nodes = (0..topology.nodes.len()).map(|node| {
            *numbers[sets.leader(node)].get_or_insert_with(|| {
                count += 1;
                count - 1
            })
        });
        let of_nodes: Vec<usize> = of_nodes.collect();
        Clusters { of_nodes, count, joined, known }
    }

    fn graph(&self, topology: &Topology, work: &ExpectedWork) -> Graph {
        let mut graph = Graph { work: vec![0; self.count], neighbors: vec![Vec::new(); self.count] };
        for (node, &cluster) in self.of_nodes.iter().enumerate() {
            graph.work[cluster] += work.nodes[node];
        }
        for (link, &traffic) in topology.links.iter().zip(&work.links) {
            let [a, b] = link.ends.map(|(node, _)| self.of_nodes[node.0 as usize]);
            if a != b {
                graph.neighbors[a].push((b, traffic));
                graph.neighbors[b].push((a, traffic));
            }
        }
        graph
    }
}

/// Disjoint sets; the lowest member leads.
struct Sets(Vec<usize>);

impl Sets {
    fn leader(&mut self, mut member: usize) -> usize {
        while self.0[member] != member {
            self.0[member] = self.0[self.0[member]];
            member = self.0[member];
        }
        member
    }

    fn join_all(&mut self, members: impl IntoIterator<Item = usize>) {
        let mut members = members.into_iter();
        let Some(first) = members.next() else { return };
        for member in members {
            let (a, b) = (self.leader(first), self.leader(member));
            self.0[a.max(b)] = a.min(b);
        }
    }
}

/// Splits vertices into `count` parts, numbered from `first`.
fn split(graph: &Graph, vertices: &[usize], count: usize, first: u32, parts: &mut [u32]) {
    if count <= 1 || vertices.len() <= 1 {
        vertices.iter().for_each(|&vertex| parts[vertex] = first);
        return;
    }
    let left = count / 2;
    let half = bisect(graph, vertices, [left as u64, (count - left) as u64]);
    let mut is_half = vec![false; graph.work.len()];
    half.iter().for_each(|&vertex| is_half[vertex] = true);
    let rest: Vec<usize> = vertices.iter().copied().filter(|&vertex| !is_half[vertex]).collect();
    split(graph, &half, left, first, parts);
    split(graph, &rest, count - left, first + left as u32, parts);
}
