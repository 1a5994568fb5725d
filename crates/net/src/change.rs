//! A change of the topology of a running network. What stays keeps its frames, clocks, queues,
//! random numbers, learned addresses and the positions of its traces.
//!
//! ```text
//!  old, new topology ─▶ TopologyChange::new      beside the network: routes, tables, new pipes
//!                             │
//!                             ▼
//!        Network::rearrange(now, change)         moves what stays; the rest goes back with `change`
//! ```
//!
//! [`Network::rearrange`] takes time in proportion to the size of the network, and less than a
//! microsecond per link: what is expensive has been computed before. It leaves freeing memory to
//! its caller.
//!
//! Read first: `difference.rs`, `network.rs`.

use crate::difference::{Difference, inverse};
use crate::fate::Reason;
use crate::id::EdgeId;
use crate::network::{Delivery, Network};
use crate::observer::Observer;
use crate::options::Options;
use crate::pool::Frame;
use crate::schedule::{LinkChange, Schedule};
use crate::spanning_tree;
use crate::wiring::{NodePort, NodeState, RunningNode, Wiring};
use fastpath_link::{Change, PipeInit, Pipes};
use fastpath_spec::trace::Timeline;
use fastpath_spec::{Direction, Link, LinkId, NodeId, Topology, Track};
use fastpath_units::{Rng, Time};
use fastpath_wire::MacAddr;
use std::collections::{BTreeSet, VecDeque};

/// A change of the topology, prepared beside the network. See the head of this file.
#[derive(Debug)]
pub struct TopologyChange {
    topology: Topology,
    pipes: Pipes<Frame>,
    /// By pipe: the former number of one that stays.
    pipes_from: Vec<Option<u32>>,
    pipes_removed: Vec<u32>,
    nodes: Vec<RunningNode>,
    /// By running node: what stays of it.
    nodes_from: Vec<Option<KeptNode>>,
    node_ports: Vec<NodePort>,
    first_pipes: Vec<u32>,
    /// Hardware addresses that are not where they were.
    moved: BTreeSet<MacAddr>,
    schedule: Schedule,
    tracks_from: Vec<Option<usize>>,
    groups_from: Vec<Option<usize>>,
    /// By former number of a link: its number.
    links_to: Vec<Option<usize>>,
    /// By edge: its former number, if its link was there.
    edges_from: Vec<Option<EdgeId>>,
    /// By former number of an edge: its number.
    edges_to: Vec<Option<usize>>,
    values: Vec<LinkChange>,
    due: VecDeque<Delivery>,
}

/// A running node that stays.
#[derive(Debug)]
struct KeptNode {
    /// Its former index among the running nodes.
    index: usize,
    /// The new number of each former interface.
    interfaces: Vec<Option<usize>>,
    /// What it was before is what it is now, with all interfaces.
    is_same: bool,
    /// The paths between switches have changed.
    forgets_addresses: bool,
}

impl TopologyChange {
    /// Prepares the change from `old` to `new`, for a network with these options that runs `old`.
    pub fn new(old: &Topology, new: Topology, options: &Options) -> TopologyChange {
        TopologyChange::prepare(old, new, options, false)
    }

    /// As [`TopologyChange::new`], for a network whose observer wants departures from queues
    /// ([`Observer::records_departures`]).
    pub fn with_departures(old: &Topology, new: Topology, options: &Options) -> TopologyChange {
        TopologyChange::prepare(old, new, options, true)
    }

    /// Returns by pipe the former number of one that stays.
    pub fn pipes_from(&self) -> &[Option<u32>] {
        &self.pipes_from
    }

    pub(crate) fn prepare(
        old: &Topology,
        new: Topology,
        options: &Options,
        records_departures: bool,
    ) -> TopologyChange {
        let difference = Difference::of(old, &new);
        let pipe = |id: usize| Some(2 * difference.links[id / 2]?.0 + (id % 2) as u32);
        let pipes_from: Vec<Option<u32>> = (0..2 * new.links.len()).map(pipe).collect();
        let init = |id: usize| {
            if pipes_from[id].is_some() {
                return None;
            }
            let (link, end) = (&new.links[id / 2], id % 2);
            let rng = Rng::stream(options.seed, 2 * u64::from(link.stream) + end as u64);
            Some(PipeInit { spec: &link.pipes[end], rng })
        };
        let mut pipes = Pipes::prepared((0..2 * new.links.len()).map(init), records_departures);
        let Wiring { nodes, node_ports, first_pipes } = Wiring::of(&new, options, &mut pipes);
        let links_to = inverse(difference.links.iter().map(|id| id.map(|id| id.0 as usize)), old.links.len());
        let mut edge_of_pipe = vec![None; 2 * old.links.len()];
        let (mut count, end_of) = (0, |topology: &Topology, node: NodeId, interface: usize| {
            let interface = &topology.node(node).interfaces[interface];
            2 * interface.link.0 as usize + interface.end
        });
        for (id, node) in old.hosts() {
            for interface in 0..node.interfaces.len() {
                edge_of_pipe[end_of(old, id, interface)] = Some(EdgeId(count));
                count += 1;
            }
        }
        let edges_from: Vec<Option<EdgeId>> =
            first_pipes.iter().map(|&pipe| edge_of_pipe[pipes_from[pipe as usize]? as usize]).collect();
        let edges_to =
            inverse(edges_from.iter().map(|edge| edge.map(|edge| edge.0 as usize)), count as usize);
        let groups_from: Vec<Option<usize>> =
            new.groups.iter().map(|group| old.group_named(&group.name)).collect();
        let tracks_from = tracks_from(old, &new, &difference);
        let mut values = difference.values(old, &new);
        values.extend(ended_tracks(old, &new, &tracks_from, &links_to));
        TopologyChange {
            nodes_from: kept_nodes(old, &new, &difference, &nodes),
            moved: moved_stations(old, &new, &difference),
            pipes_removed: difference.links_removed.iter().flat_map(|id| [2 * id.0, 2 * id.0 + 1]).collect(),
            schedule: Schedule::new(&new),
            due: VecDeque::new(),
            topology: new,
            pipes,
            pipes_from,
            nodes,
            node_ports,
            first_pipes,
            tracks_from,
            groups_from,
            links_to,
            edges_from,
            edges_to,
            values,
        }
    }

    /// Returns the new topology, or after the change the old one.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns by edge of the new topology the former number of the edge, if its link and its host
    /// were there.
    pub fn edges_from(&self) -> &[Option<EdgeId>] {
        &self.edges_from
    }

    /// Returns by former number of an edge its number in the new topology.
    pub fn edge_now(&self, former: EdgeId) -> Option<EdgeId> {
        Some(EdgeId(self.edges_to[former.0 as usize]? as u32))
    }

    fn link_now(&self, former: LinkId) -> Option<LinkId> {
        Some(LinkId(self.links_to[former.0 as usize]? as u32))
    }
}

impl<O: Observer> Network<O> {
    /// Prepares a change of the topology, as [`TopologyChange::new`] does, for this network.
    pub fn prepare(&self, new: Topology, options: &Options) -> TopologyChange {
        TopologyChange::prepare(self.topology(), new, options, self.observer().records_departures())
    }

    /// Changes the topology at `now`. The frames in links and routers that are removed are dropped
    /// ([`Reason::Removed`]); delivered frames whose edge is removed too. Numbers of links, nodes
    /// and edges are those of the new topology. Returns the memory that is no longer needed.
    ///
    /// Panics if the change was prepared for another topology.
    pub fn rearrange(&mut self, now: Time, mut change: TopologyChange) -> TopologyChange {
        assert_eq!(
            (change.links_to.len(), change.edges_to.len()),
            (self.topology().links.len(), self.edges().len()),
            "a change of another topology"
        );
        self.advance(now);
        let now = self.now;
        let mut lost: Vec<Frame> = Vec::new();
        self.pipes.rearrange(
            now,
            &mut change.pipes,
            &change.pipes_from,
            &change.pipes_removed,
            |_, frame| {
                lost.push(frame);
            },
        );
        for (index, node) in change.nodes.iter_mut().enumerate() {
            if let Some(kept) = &change.nodes_from[index] {
                node.take_over(&mut self.nodes[kept.index], kept, &change.moved, &mut lost);
            }
        }
        for former in &mut self.nodes {
            former.empty(&mut lost);
        }
        let maps = (&change.topology, change.tracks_from.as_slice(), change.groups_from.as_slice());
        let links_to = &change.links_to;
        let place = |link: LinkId| Some(LinkId(links_to[link.0 as usize]? as u32));
        change.schedule.take_over(&mut self.schedule, now, maps, place);
        std::mem::swap(&mut self.due, &mut change.due);
        while let Some(Delivery { at, edge, frame }) = change.due.pop_front() {
            match change.edge_now(edge) {
                Some(edge) => self.due.push_back(Delivery { at, edge, frame }),
                None => lost.push(frame),
            }
        }
        let state_changes = std::mem::take(&mut self.state_changes);
        self.state_changes.extend(state_changes.into_iter().filter_map(|link| change.link_now(link)));
        std::mem::swap(&mut self.topology, &mut change.topology);
        self.observer.rearranged(&self.topology);
        std::mem::swap(&mut self.nodes, &mut change.nodes);
        std::mem::swap(&mut self.node_ports, &mut change.node_ports);
        std::mem::swap(&mut self.first_pipes, &mut change.first_pipes);
        std::mem::swap(&mut self.schedule, &mut change.schedule);
        // Routers with dynamic routes compute them again.
        self.state_version += 1;
        self.live_links = None;
        self.expires_at = self.nodes.iter().filter_map(RunningNode::expires_at).min();
        for frame in lost {
            self.discard(now, frame, Reason::Removed);
        }
        for (link, direction, values) in std::mem::take(&mut change.values) {
            self.change(now, link, direction, &values);
        }
        // A trace that starts now does so before the next frame.
        self.apply_scheduled(now);
        change
    }
}

impl RunningNode {
    /// Takes over what the same node has learned and holds.
    fn take_over(
        &mut self,
        former: &mut RunningNode,
        kept: &KeptNode,
        moved: &BTreeSet<MacAddr>,
        lost: &mut Vec<Frame>,
    ) {
        let place = |interface: usize| kept.interfaces[interface];
        match (&mut self.state, &mut former.state) {
            (NodeState::Router(new), NodeState::Router(old)) => {
                new.take_over(old, place, |frame| lost.push(frame));
            }
            (NodeState::Switch(new), NodeState::Switch(old)) if !kept.forgets_addresses => {
                new.take_over(old, place, moved);
            }
            // Its ports are numbered in the order of interfaces, and rules name ports.
            (new @ NodeState::OpenFlow(_), old @ NodeState::OpenFlow(_)) if kept.is_same => {
                std::mem::swap(new, old);
            }
            _ => {}
        }
    }

    /// Takes out the frames that wait in a node.
    fn empty(&mut self, lost: &mut Vec<Frame>) {
        if let NodeState::Router(router) = &mut self.state {
            router.empty(|frame| lost.push(frame));
        }
    }
}

/// Returns the former number of each track that stays: the same trace of the same pipe, in the same
/// group.
fn tracks_from(old: &Topology, new: &Topology, difference: &Difference) -> Vec<Option<usize>> {
    let group =
        |topology: &'_ Topology, track: &Track| track.group.map(|group| topology.groups[group].clone());
    let is_same = |a: &Track, b: &Track| {
        let name = |topology, track| group(topology, track).map(|group| (group.name, group.start));
        a.pipe == b.pipe
            && (a.end, a.offset, &a.source) == (b.end, b.offset, &b.source)
            && a.timeline == b.timeline
            && name(old, a) == name(new, b)
    };
    let former = |track: &Track| {
        let link = difference.links[track.link.0 as usize]?;
        let first = old.tracks.partition_point(|other| other.link < link);
        let of_link = old.tracks[first..].iter().take_while(|other| other.link == link);
        of_link.zip(first..).find(|(other, _)| is_same(other, track)).map(|(_, index)| index)
    };
    new.tracks.iter().map(former).collect()
}

/// Returns the values of the description for the pipes that stay and follow a trace no longer.
fn ended_tracks(
    old: &Topology,
    new: &Topology,
    tracks_from: &[Option<usize>],
    links_to: &[Option<usize>],
) -> Vec<LinkChange> {
    let stay: BTreeSet<usize> = tracks_from.iter().flatten().copied().collect();
    let ended = old.tracks.iter().enumerate().filter(|(index, _)| !stay.contains(index));
    let change = |(_, track): (usize, &Track)| {
        let link = links_to[track.link.0 as usize]?;
        let spec = &new.links[link].pipes[track.pipe];
        let change = match &track.timeline {
            Timeline::Steps(steps) => steps.undo(spec),
            Timeline::Opportunities(_) => Change {
                opportunities: Some(spec.opportunities.clone()),
                paused: Some(spec.paused),
                ..Change::default()
            },
        };
        let direction = if track.pipe == 0 { Direction::Forward } else { Direction::Backward };
        Some((LinkId(link as u32), direction, change))
    };
    ended.filter_map(change).collect()
}

/// Returns what stays of each running node.
fn kept_nodes(
    old: &Topology,
    new: &Topology,
    difference: &Difference,
    nodes: &[RunningNode],
) -> Vec<Option<KeptNode>> {
    let mut running = vec![None; old.nodes.len()];
    let inside = old.nodes.iter().enumerate().filter(|(_, node)| !node.kind.is_edge());
    inside.zip(0..).for_each(|((id, _), index)| running[id] = Some(index));
    let forgetful = forgetful_switches(old, new, difference);
    let kept = |node: &RunningNode| {
        let former = difference.nodes[node.id.0 as usize]?;
        let (was, is) = (old.node(former), new.node(node.id));
        let mut interfaces = vec![None; was.interfaces.len()];
        for (index, interface) in is.interfaces.iter().enumerate() {
            let place = difference.links[interface.link.0 as usize].and_then(|link| {
                was.interfaces.iter().position(|i| (i.link, i.end) == (link, interface.end))
            });
            if let Some(place) = place {
                interfaces[place] = Some(index);
            }
        }
        let unmoved = interfaces.iter().enumerate().all(|(index, place)| *place == Some(index));
        Some(KeptNode {
            index: running[former.0 as usize]?,
            is_same: unmoved && was.interfaces.len() == is.interfaces.len(),
            interfaces,
            forgets_addresses: forgetful.contains(&node.id),
        })
    };
    nodes.iter().map(kept).collect()
}

/// Returns the switches whose learned addresses may lead the wrong way: those joined by switches to
/// one of which another interface is blocked now, or that lost its link to another that stays (IEEE
/// 802.1D-2004 §17.11: a topology change).
fn forgetful_switches(old: &Topology, new: &Topology, difference: &Difference) -> BTreeSet<NodeId> {
    let nodes_to = inverse(difference.nodes.iter().map(|id| id.map(|id| id.0 as usize)), old.nodes.len());
    let has_switches = |topology: &Topology| topology.nodes.iter().any(|node| node.kind.is_switch());
    if !has_switches(old) || !has_switches(new) {
        return BTreeSet::new();
    }
    let mut waiting: VecDeque<NodeId> = VecDeque::new();
    let now = |node: NodeId| nodes_to[node.0 as usize].map(|node| NodeId(node as u32));
    for link in difference.links_removed.iter().map(|link| old.link(*link)) {
        let is_between_switches =
            |link: &Link| link.ends.iter().all(|(id, _)| old.node(*id).kind.is_switch());
        if let ([Some(a), Some(b)], true) = (link.ends.map(|(id, _)| now(id)), is_between_switches(link)) {
            waiting.extend([a, b]);
        }
    }
    let (before, after) = (spanning_tree::forwarding(old), spanning_tree::forwarding(new));
    for (id, link) in new.links.iter().enumerate() {
        let Some(former) = difference.links[id] else { continue };
        for end in 0..2 {
            let ((node, place), (was, at)) = (link.ends[end], old.link(former).ends[end]);
            if after[node.0 as usize][place] != before[was.0 as usize][at] {
                waiting.push_back(node);
            }
        }
    }
    let mut reached = BTreeSet::new();
    while let Some(node) = waiting.pop_front() {
        if reached.insert(node) {
            let far = new.node(node).interfaces.iter().map(|interface| new.peer(interface).0);
            waiting.extend(far.filter(|far| new.node(*far).kind.is_switch()));
        }
    }
    reached
}

/// Returns the hardware addresses of stations whose link is removed, or that have another address.
fn moved_stations(old: &Topology, new: &Topology, difference: &Difference) -> BTreeSet<MacAddr> {
    let mac = |topology: &Topology, (node, place): (NodeId, usize)| topology.node(node).interfaces[place].mac;
    let removed = difference.links_removed.iter().flat_map(|link| old.link(*link).ends);
    let mut moved: BTreeSet<MacAddr> = removed.filter_map(|end| mac(old, end)).collect();
    for (id, link) in new.links.iter().enumerate() {
        let Some(former) = difference.links[id] else { continue };
        for end in 0..2 {
            let (was, is) = (mac(old, old.link(former).ends[end]), mac(new, link.ends[end]));
            if was != is {
                moved.extend(was);
            }
        }
    }
    moved
}
