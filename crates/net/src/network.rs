//! A topology running: frames enter at edges, walk the pipes and nodes hop by hop, and leave at edges.
//!
//! ```text
//!  push(now, edge, frame)                                             pop(now) ─▶ Delivery { at, edge, frame }
//!        │                                                                 ▲
//!        ▼                                                                 │
//!      pipe ──exit at t──▶ router or switch ──same t──▶ pipe ──exit──▶ host edge
//!        └───────────── one wheel of pipe heads: what happens next ─────────┘
//! ```
//!
//! Every hop computes from when the frame *should* have arrived, so lateness of the driver does not add up.
//! Nothing here reads a clock: the engine drives it in real time, `replay` in virtual time.
//!
//! Order of things at one instant, which makes runs repeatable: exits of pipes in the order of links, then
//! scheduled changes, then frames that enter.

use crate::bridge::Bridge;
use crate::fate::{Act, Conservation, Reason};
use crate::observer::{Observer, Passage, PipeId, Place};
use crate::openflow::Tables;
use crate::pool::{Frame, FramePool};
use crate::route::Routes;
use crate::router::Router;
use crate::schedule::{LinkChange, Schedule, ScheduleFull};
use crate::segment;
use crate::topology::{Direction, LinkId, NodeId, NodeKind, Topology};
use fastpath_link::{Alteration, Change, Exit, Fate, Packet, Pipe, Verdict, Wheel};
use fastpath_units::{Duration, Rng, Time};
use fastpath_wire::{Headers, ecn};
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;

/// What a run needs besides the topology.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Every random choice of the run follows from it.
    pub seed: u64,
    /// Bytes of memory for frames in flight; beyond it frames are dropped and counted.
    pub pool_limit: NonZeroUsize,
}

/// An edge's place in [`Network::edges`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EdgeId(pub u32);

/// Where frames enter and leave: an interface of a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Edge {
    /// The host.
    pub node: NodeId,
    /// The interface, as its place in [`crate::Node::interfaces`].
    pub interface: usize,
}

/// A frame that has come through.
#[derive(PartialEq, Eq, Debug)]
pub struct Delivery {
    /// When it is due, exactly.
    pub at: Time,
    /// Where.
    pub edge: EdgeId,
    /// The frame; give it back to the pool when it is sent.
    pub frame: Frame,
}

/// A running network. See the head of this file.
#[derive(Debug)]
pub struct Network<O = ()> {
    topology: Topology,
    pool: FramePool,
    observer: O,
    /// Two per link: forward at `2 × link`, backward at `2 × link + 1`.
    channels: Vec<Channel>,
    wheel: Wheel,
    stations: Vec<Station>,
    edges: Vec<Edge>,
    /// By edge: the pipe that leads away from it.
    first_pipes: Vec<u32>,
    changes: Schedule,
    now: Time,
    due: VecDeque<Delivery>,
    /// What the node at work answers; empty between frames, kept for its memory.
    acts: Vec<Act>,
    books: Books,
}

/// A pipe and where it leads.
#[derive(Debug)]
struct Channel {
    pipe: Pipe<Frame>,
    to: (NodeId, usize),
}

/// The running half of a node.
#[derive(Debug)]
enum Station {
    /// Its interfaces are the edges from this one on.
    Host {
        first_edge: u32,
    },
    Router(Box<Router>),
    Switch(Bridge),
    OpenFlow(Box<Tables>),
}

#[derive(Debug, Default)]
struct Books {
    entered: u64,
    generated: u64,
    delivered: u64,
    dropped: BTreeMap<Reason, u64>,
}

impl Network {
    /// A network at rest, unobserved.
    pub fn new(topology: Topology, options: Options) -> Network {
        Network::observed(topology, options, ())
    }
}

impl<O: Observer> Network<O> {
    /// A network at rest whose frames `observer` follows.
    pub fn observed(topology: Topology, options: Options, mut observer: O) -> Network<O> {
        observer.started(&topology);
        let channel = |link: &crate::topology::Link| {
            [0, 1].map(|end| Channel {
                pipe: Pipe::new(
                    &link.pipes[end],
                    Rng::stream(options.seed, 2 * u64::from(link.stream) + end as u64),
                ),
                to: link.ends[1 - end],
            })
        };
        let channels: Vec<Channel> = topology.links.iter().flat_map(channel).collect();
        let mut edges = Vec::new();
        let stations = stations(&topology, &mut edges);
        let first_pipe = |edge: &Edge| outgoing(&topology, edge.node, edge.interface);
        Network {
            pool: FramePool::new(options.pool_limit),
            wheel: Wheel::new(channels.len()),
            observer,
            channels,
            stations,
            first_pipes: edges.iter().map(first_pipe).collect(),
            edges,
            changes: Schedule::new(&topology),
            now: Time::ZERO,
            due: VecDeque::new(),
            acts: Vec::new(),
            books: Books::default(),
            topology,
        }
    }

    /// What is running.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The edges: host interfaces, in the order of hosts.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The edge at a host's interface; `None` for routers and switches.
    pub fn edge_of(&self, node: NodeId, interface: usize) -> Option<EdgeId> {
        let found = self.edges.iter().position(|edge| (edge.node, edge.interface) == (node, interface));
        found.map(|i| EdgeId(i as u32))
    }

    /// The store of all frames inside.
    pub fn pool(&self) -> &FramePool {
        &self.pool
    }

    /// The store, to make a frame to push or to free one that was popped.
    pub fn pool_mut(&mut self) -> &mut FramePool {
        &mut self.pool
    }

    /// The observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// The observer, to drain what it noted.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// The observer, when the run is over.
    pub fn into_observer(self) -> O {
        self.observer
    }

    /// A pipe of a link: index 0 leads from end 0 to end 1, index 1 back.
    pub fn pipe(&self, link: LinkId, index: usize) -> &Pipe<Frame> {
        &self.channels[2 * link.0 as usize + index].pipe
    }

    /// A frame leaves a host onto its link at `now`. Time does not run backwards: an earlier `now` is taken
    /// as the latest one seen.
    pub fn push(&mut self, now: Time, edge: EdgeId, frame: Frame) {
        self.advance(now);
        self.books.entered += 1;
        self.observer.entered(self.now, edge, &frame);
        self.enter(self.now, self.first_pipes[edge.0 as usize], frame);
    }

    /// The next frame due at an edge at or before `now`, in the order of time.
    pub fn pop(&mut self, now: Time) -> Option<Delivery> {
        if self.due.is_empty() {
            self.advance(now);
        }
        let delivery = self.due.pop_front_if(|delivery| delivery.at <= now)?;
        self.books.delivered += 1;
        Some(delivery)
    }

    /// When something happens next by itself; `None` when nothing is pending.
    pub fn next_at(&self) -> Option<Time> {
        let due = self.due.front().map(|delivery| delivery.at);
        [self.wheel.next_at(), self.changes.next_at(), due].into_iter().flatten().min()
    }

    /// Changes parameters of a link at `now`, in one instant; frames it holds stay.
    pub fn apply(&mut self, now: Time, link: LinkId, direction: Direction, change: &Change) {
        self.advance(now);
        self.change(self.now, link, direction, change);
    }

    /// Changes links at `at`, or now if that is past; all or none.
    pub fn apply_at(&mut self, at: Time, changes: Vec<LinkChange>) -> Result<(), ScheduleFull> {
        self.changes.ask(at.max(self.now), changes, &self.topology)
    }

    /// Starts the traces of a group at `now`.
    pub fn start_group(&mut self, now: Time, group: usize) {
        self.advance(now);
        self.changes.start(self.now, group, &self.topology);
        self.change_on_schedule(self.now);
    }

    /// The longest round of the traces that start over for ever; `None` if [`Network::next_at`] runs out by itself.
    pub fn endless_round(&self) -> Option<Duration> {
        self.changes.endless_round(&self.topology)
    }

    /// True if no frame moves before the next change: none is inside, or those that are wait for one.
    pub fn is_still(&self) -> bool {
        self.due.is_empty() && self.wheel.next_at().is_none()
    }

    /// The books as they stand.
    pub fn conservation(&self) -> Conservation {
        let in_pipes: u64 = self.channels.iter().map(|channel| channel.pipe.held().packets).sum();
        let in_routers: usize = self.stations.iter().map(Station::held).sum();
        Conservation {
            entered: self.books.entered,
            generated: self.books.generated,
            delivered: self.books.delivered,
            dropped: self.books.dropped.iter().map(|(reason, &n)| (reason.name(), n)).collect(),
            held: in_pipes + (in_routers + self.due.len()) as u64,
        }
    }

    /// Lets everything up to `now` happen; what reaches an edge waits for `pop`.
    pub fn advance(&mut self, now: Time) {
        let now = now.max(self.now);
        while let Some(at) = self.changes.next_at().filter(|at| *at <= now) {
            self.run_until(at);
            self.change_on_schedule(at);
        }
        self.run_until(now);
    }

    fn run_until(&mut self, until: Time) {
        while let Some((at, id)) = self.wheel.pop_due(until) {
            let mut next = Some(at);
            while let Some(at) = next {
                self.now = at;
                while let Some(exit) = self.channels[id as usize].pipe.pop(at) {
                    self.exit(id, exit);
                }
                // A pipe that acts again before any other needs no turn of the wheel.
                let again = self.channels[id as usize].pipe.next_at().filter(|&at| at <= until);
                next = again.filter(|&at| self.wheel.next_at().is_none_or(|other| at < other));
            }
            self.schedule(id);
        }
        self.now = self.now.max(until);
    }

    /// All changes whose time is `at`.
    fn change_on_schedule(&mut self, at: Time) {
        while let Some((link, direction, change)) = self.changes.pop(at, &self.topology) {
            self.change(at, link, direction, &change);
        }
    }

    /// The first packet of groups that wait for it comes to `link`.
    #[cold]
    fn wake(&mut self, at: Time, link: LinkId) {
        self.changes.packet(at, link, &self.topology);
        self.change_on_schedule(at);
    }

    fn schedule(&mut self, id: u32) {
        match self.channels[id as usize].pipe.next_at() {
            Some(at) => self.wheel.schedule(id, at),
            None => self.wheel.cancel(id),
        }
    }

    fn change(&mut self, at: Time, link: LinkId, direction: Direction, change: &Change) {
        for index in direction.pipes() {
            let id = 2 * link.0 + index as u32;
            self.channels[id as usize].pipe.change(at, change);
            self.observer.changed(at, PipeId { link, index }, change);
            self.schedule(id);
        }
    }

    /// A frame leaves a node by one of its interfaces.
    fn send(&mut self, at: Time, node: NodeId, interface: usize, frame: Frame) {
        let id = outgoing(&self.topology, node, interface);
        self.enter(at, id, frame);
    }

    /// A frame comes to a pipe.
    fn enter(&mut self, at: Time, id: u32, frame: Frame) {
        if self.changes.waits() {
            self.wake(at, LinkId(id / 2));
        }
        let pipe = &mut self.channels[id as usize].pipe;
        let (flow, traffic_class) = if pipe.reads_headers() {
            let headers = Headers::parse(self.pool.bytes(&frame));
            (headers.flow_hash(), headers.traffic_class())
        } else {
            (0, 0)
        };
        let packet = Packet { len: frame.len() as u32, flow, traffic_class, data: frame };
        let place = PipeId { link: LinkId(id / 2), index: (id % 2) as usize };
        // Told before the push, which takes the frame away.
        self.observer.arrived(at, place, &packet.data);
        match pipe.push(at, packet) {
            Verdict::Queued => self.schedule(id),
            Verdict::Dropped(reason, frame) => {
                self.refuse(at, Place::Pipe(place), frame, Reason::Link(reason))
            }
        }
    }

    /// A frame leaves a pipe and reaches the node at its end.
    fn exit(&mut self, id: u32, exit: Exit<Frame>) {
        let (node, interface) = self.channels[id as usize].to;
        let Exit { at, packet, fate } = exit;
        let mut frame = packet.data;
        let pipe = PipeId { link: LinkId(id / 2), index: (id % 2) as usize };
        let alteration = match fate {
            Fate::Dropped(reason) => {
                let bytes = self.pool.bytes(&frame);
                self.observer.left(Passage { at, pipe, frame: &frame, bytes, fate });
                return self.discard(at, frame, Reason::Link(reason));
            }
            Fate::Delivered { marked } => Alteration { marked, ..Alteration::default() },
            Fate::Altered(alteration) => alteration,
        };
        if alteration.marked {
            let bytes = self.pool.bytes_mut(&mut frame);
            let headers = Headers::parse(bytes);
            ecn::set_ce(bytes, &headers);
        }
        if let Some(corruption) = alteration.corruption {
            corruption.apply(self.pool.bytes_mut(&mut frame));
        }
        let bytes = self.pool.bytes(&frame);
        self.observer.left(Passage { at, pipe, frame: &frame, bytes, fate });
        for _ in 0..alteration.copies {
            self.books.generated += 1;
            match self.pool.duplicate(&frame) {
                Some(copy) => self.arrive(at, (node, interface), copy),
                None => *self.books.dropped.entry(Reason::PoolFull).or_default() += 1,
            }
        }
        self.arrive(at, (node, interface), frame);
    }

    /// A frame reaches the node at the end of its pipe.
    fn arrive(&mut self, at: Time, (node, interface): (NodeId, usize), frame: Frame) {
        match &mut self.stations[node.0 as usize] {
            Station::Host { first_edge } => {
                let edge = EdgeId(*first_edge + interface as u32);
                self.observer.delivered(at, edge, &frame);
                self.due.push_back(Delivery { at, edge, frame });
                return;
            }
            Station::Router(router) => router.receive(at, interface, frame, &mut self.pool, &mut self.acts),
            Station::Switch(bridge) => bridge.receive(at, interface, frame, &mut self.pool, &mut self.acts),
            Station::OpenFlow(tables) => {
                tables.receive(at, interface, frame, &mut self.pool, &mut self.acts);
            }
        }
        self.perform(at, node);
    }

    /// Carries out what a node answered.
    fn perform(&mut self, at: Time, node: NodeId) {
        let mut acts = std::mem::take(&mut self.acts);
        for act in acts.drain(..) {
            match act {
                Act::Forward { interface, frame } => self.send(at, node, interface, frame),
                Act::Originate { interface, frame } => {
                    self.books.generated += 1;
                    self.send(at, node, interface, frame);
                }
                Act::Count => self.books.generated += 1,
                Act::Starve => {
                    self.books.generated += 1;
                    *self.books.dropped.entry(Reason::PoolFull).or_default() += 1;
                }
                Act::Absorb(frame) => {
                    self.books.delivered += 1;
                    self.observer.ended(at, &frame, None);
                    self.pool.free(frame);
                }
                Act::Drop(frame, reason) => self.refuse(at, Place::Node(node), frame, reason),
            }
        }
        self.acts = acts;
    }

    /// A pipe or node does not take a frame.
    fn refuse(&mut self, at: Time, place: Place, frame: Frame, reason: Reason) {
        self.observer.refused(at, place, &frame, self.pool.bytes(&frame), reason);
        self.discard(at, frame, reason);
    }

    fn discard(&mut self, at: Time, frame: Frame, reason: Reason) {
        *self.books.dropped.entry(reason).or_default() += 1;
        self.observer.ended(at, &frame, Some(reason));
        self.pool.free(frame);
    }
}

impl Station {
    fn held(&self) -> usize {
        match self {
            Station::Router(router) => router.held(),
            Station::Host { .. } | Station::Switch(_) | Station::OpenFlow(_) => 0,
        }
    }
}

/// The pipe that leads away from a node by one of its interfaces.
fn outgoing(topology: &Topology, node: NodeId, interface: usize) -> u32 {
    let attached = &topology.node(node).interfaces[interface];
    2 * attached.link.0 + attached.end as u32
}

fn stations(topology: &Topology, edges: &mut Vec<Edge>) -> Vec<Station> {
    let routes = Routes::compute(topology);
    let mut forwarding = segment::forwarding(topology);
    let station = |(i, node): (usize, &crate::topology::Node)| {
        let id = NodeId(i as u32);
        match &node.kind {
            NodeKind::Host { .. } => {
                let first_edge = edges.len() as u32;
                edges.extend((0..node.interfaces.len()).map(|interface| Edge { node: id, interface }));
                Station::Host { first_edge }
            }
            NodeKind::Router => Station::Router(Box::new(Router::new(topology, id, &routes))),
            NodeKind::Switch => Station::Switch(Bridge::new(std::mem::take(&mut forwarding[i]))),
            NodeKind::OpenFlow { lines, .. } => {
                Station::OpenFlow(Box::new(Tables::new(lines, node.interfaces.len())))
            }
        }
    };
    topology.nodes.iter().enumerate().map(station).collect()
}
