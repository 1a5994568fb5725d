//! A topology running: frames enter at edges, walk the pipes and nodes hop by hop, and leave at
//! edges.
//!
//! ```text
//!  push(now, edge, frame)                                             pop(now) ─▶ Delivery { at, edge, frame }
//!        │                                                                 ▲
//!        ▼                                                                 │
//!      pipe ──exit at t──▶ router or switch ──same t──▶ pipe ──exit──▶ host edge
//!        └───────────── one wheel of pipe heads: what happens next ─────────┘
//! ```
//!
//! Every hop computes from when the frame *should* have arrived, so lateness of the driver does not
//! add up. Nothing here reads a clock: the engine drives it in real time, `replay` in virtual time.
//!
//! Order of things at one instant, which makes runs repeatable: exits of pipes in the order of
//! links, then frames that routers give up, then scheduled changes, then frames that enter.

use crate::bridge::Bridge;
use crate::fate::{Act, Conservation, Reason};
use crate::observer::{Observer, Passage, PipeId, Place};
use crate::openflow::{Executors, Tables};
use crate::pool::{Frame, FramePool};
use crate::route::Routes;
use crate::router::Router;
use crate::schedule::{LinkChange, Schedule, ScheduleFull};
use fastpath_link::{Alteration, Change, Exit, Fate, Packet, PipeInit, PipeRef, Pipes, PopLimit, Verdict};
use fastpath_spec::segment;
use fastpath_spec::{Direction, LinkId, NodeId, NodeKind, Topology};
use fastpath_units::{Duration, Rng, Time};
use fastpath_wire::{Headers, ecn};
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;

/// What a run needs besides the topology.
#[derive(Clone, Debug)]
pub struct Options {
    /// Every random choice of the run follows from it.
    pub seed: u64,
    /// Bytes of memory for frames in flight; beyond it frames are dropped and counted.
    pub pool_limit: NonZeroUsize,
    /// What executes the tables of OpenFlow nodes.
    pub executors: Executors,
}

impl Options {
    /// Options with the default executors.
    pub const fn new(seed: u64, pool_limit: NonZeroUsize) -> Options {
        Options { seed, pool_limit, executors: Executors::planned() }
    }
}

/// Up to this many edges their pipes stay in the cache by themselves.
const FEW: usize = 1024;
/// Frames before the one whose pipe is fetched.
const AHEAD: usize = 8;

/// An edge's place in [`Network::edges`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EdgeId(pub u32);

/// Where frames enter and leave: an interface of a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Edge {
    /// The host.
    pub node: NodeId,
    /// The interface, as its place in [`fastpath_spec::Node::interfaces`].
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
    /// Two per link: forward at `2 × link`, backward at `2 × link + 1`. Their labels are [`End`]s.
    pipes: Pipes<Frame>,
    stations: Vec<Station>,
    /// The ends of pipes that are not at edges.
    inner_ends: Vec<InnerEnd>,
    /// By edge: the pipe that leads away from it.
    first_pipes: Vec<u32>,
    changes: Schedule,
    /// When a frame that waits for a neighbor of a router is given up next, at the earliest.
    give_up_at: Option<Time>,
    now: Time,
    due: VecDeque<Delivery>,
    /// What the node at work answers; empty between frames, kept for its memory.
    acts: Vec<Act>,
    books: Books,
}

/// Where a pipe leads: an edge, or the place of an inner end. A pipe keeps it as one number.
#[derive(Clone, Copy, Debug)]
enum End {
    Edge(EdgeId),
    Inner(usize),
}

impl End {
    const INNER: u32 = 1 << 31;

    fn label(self) -> u32 {
        match self {
            End::Edge(EdgeId(edge)) => edge,
            End::Inner(place) => End::INNER | place as u32,
        }
    }

    /// True if it is the label of an edge: the edge's own number.
    fn is_edge(label: u32) -> bool {
        label & End::INNER == 0
    }

    fn of_label(label: u32) -> End {
        match label & End::INNER {
            0 => End::Edge(EdgeId(label)),
            _ => End::Inner((label & !End::INNER) as usize),
        }
    }
}

/// An interface of a router or switch.
#[derive(Clone, Copy, Debug)]
struct InnerEnd {
    /// In [`Network::stations`].
    station: usize,
    interface: usize,
}

/// The running half of a node that is no host.
#[derive(Debug)]
struct Station {
    node: NodeId,
    kind: StationKind,
}

#[derive(Debug)]
enum StationKind {
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
    pub fn observed(topology: Topology, options: Options, observer: O) -> Network<O> {
        let plan = |id: usize| {
            let (link, end) = (&topology.links[id / 2], id % 2);
            let rng = Rng::stream(options.seed, 2 * u64::from(link.stream) + end as u64);
            PipeInit { spec: &link.pipes[end], rng }
        };
        let frames_max = options.pool_limit.get() / FramePool::SMALLEST;
        let plans = (0..2 * topology.links.len()).map(plan);
        let mut pipes = match observer.notes_departures() {
            true => Pipes::recording_departures(plans, frames_max),
            false => Pipes::new(plans, frames_max),
        };
        let Wiring { stations, inner_ends, first_pipes } =
            Wiring::of(&topology, &options.executors, &mut pipes);
        Network {
            pipes,
            pool: FramePool::new(options.pool_limit),
            observer,
            stations,
            inner_ends,
            first_pipes,
            changes: Schedule::new(&topology),
            give_up_at: None,
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
    pub fn edges(&self) -> impl ExactSizeIterator<Item = Edge> {
        self.first_pipes.iter().map(|&pipe| {
            let (node, interface) = self.topology.links[pipe as usize / 2].ends[pipe as usize % 2];
            Edge { node, interface }
        })
    }

    /// The edge at a host's interface; `None` for routers and switches.
    pub fn edge_of(&self, node: NodeId, interface: usize) -> Option<EdgeId> {
        let found = self.edges().position(|edge| (edge.node, edge.interface) == (node, interface));
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
    pub fn pipe(&self, link: LinkId, index: usize) -> PipeRef<'_, Frame> {
        self.pipes.pipe(2 * link.0 + index as u32)
    }

    /// A frame leaves a host onto its link at `now`. Time does not run backwards: an earlier `now`
    /// is taken as the latest one seen. An observer is told of bytes and knows frames by their
    /// slots: where there is one, all are cut ([`Frame::is_cut`]).
    pub fn push(&mut self, now: Time, edge: EdgeId, frame: Frame) {
        self.advance(now);
        self.books.entered += 1;
        self.observer.entered(self.now, edge, &frame);
        self.enter(self.now, self.first_pipes[edge.0 as usize], frame);
    }

    /// Several frames leave their hosts at `now`, one after the other, and leave `frames` empty.
    /// Where there are many links they wait for memory together.
    pub fn push_burst(&mut self, now: Time, frames: &mut Vec<(EdgeId, Frame)>) {
        let are_many = self.first_pipes.len() > FEW;
        if are_many {
            for (edge, _) in frames.iter().take(AHEAD) {
                self.pipes.prefetch(self.first_pipes[edge.0 as usize]);
            }
        }
        let mut frames = frames.drain(..);
        // What is due by now has happened; frames that cannot leave as they come do not change
        // that.
        let mut is_current = false;
        while let Some(&(edge, _)) = frames.as_slice().first() {
            if !is_current {
                self.advance(now);
                is_current = true;
            }
            if are_many && let Some(&(later, _)) = frames.as_slice().get(AHEAD) {
                self.pipes.prefetch(self.first_pipes[later.0 as usize]);
            }
            let id = self.first_pipes[edge.0 as usize];
            if !O::WATCHES && !self.changes.waits() && self.pipes.takes_runs(id) {
                let run = frames.as_slice().iter().take_while(|(next, _)| *next == edge).count();
                self.push_run(id, frames.by_ref().take(run).map(|(_, frame)| frame));
            } else if let Some((edge, frame)) = frames.next() {
                self.push(now, edge, frame);
                is_current = false;
            }
        }
    }

    /// Frames come to a pipe from outside, now; they change nothing elsewhere.
    #[inline]
    fn push_run(&mut self, id: u32, frames: impl ExactSizeIterator<Item = Frame>) {
        self.books.entered += frames.len() as u64;
        let packet =
            |frame: Frame| Packet { len: frame.len() as u32, flow: 0, traffic_class: 0, data: frame };
        self.pipes.push_run(self.now, id, frames.map(packet), |reason, frame| {
            *self.books.dropped.entry(Reason::Link(reason)).or_default() += 1;
            self.pool.free(frame);
        });
    }

    /// The next frame due at an edge at or before `now`, in the order of time.
    pub fn pop(&mut self, now: Time) -> Option<Delivery> {
        if self.due.is_empty() {
            if let Some(delivery) = self.pop_at_once(now) {
                return Some(delivery);
            }
            self.advance(now);
        }
        let delivery = self.due.pop_front_if(|delivery| delivery.at <= now)?;
        self.books.delivered += 1;
        Some(delivery)
    }

    /// The next frames due at edges at or before `now`, in the order of time, put behind those in
    /// `out` until these are `most`.
    pub fn pop_burst(&mut self, now: Time, most: usize, out: &mut Vec<Delivery>) {
        while out.len() < most {
            let taken = self.pop_run(now, most, out);
            if taken == 0 {
                let Some(delivery) = self.pop(now) else { return };
                out.push(delivery);
            }
        }
    }

    /// The next frames, if they go straight from one pipe to an edge; none if there is anything
    /// else to be done first.
    #[inline]
    fn pop_run(&mut self, now: Time, most: usize, out: &mut Vec<Delivery>) -> usize {
        if O::WATCHES || !self.due.is_empty() || now < self.now || self.happens_by(now) {
            return 0;
        }
        let left = most - out.len();
        let taken = self.pipes.pop_run(
            PopLimit { until: now, packets_max: left },
            End::is_edge,
            |label, at, frame| {
                out.push(Delivery { at, edge: EdgeId(label), frame });
            },
        );
        if let (true, Some(last)) = (taken > 0, out.last()) {
            self.now = self.now.max(last.at);
            self.books.delivered += taken as u64;
        }
        taken
    }

    /// The next frame, if it goes straight from a pipe to an edge, as most do in a network of
    /// hosts; `None` if there is anything else to be done first.
    #[inline]
    fn pop_at_once(&mut self, now: Time) -> Option<Delivery> {
        if O::WATCHES || now < self.now {
            return None;
        }
        while self.due.is_empty() && !self.happens_by(now) {
            let (id, exit) = self.pipes.pop(now)?;
            self.now = self.now.max(exit.at);
            match (exit.fate, End::of_label(self.pipes.label(id))) {
                (Fate::Delivered { marked: false }, End::Edge(edge)) => {
                    self.books.delivered += 1;
                    return Some(Delivery { at: exit.at, edge, frame: exit.packet.data });
                }
                _ => self.exit(id, exit),
            }
        }
        None
    }

    /// True if by `now` something happens that no frame brings about.
    #[inline]
    fn happens_by(&self, now: Time) -> bool {
        self.changes.next_at().is_some_and(|at| at <= now) || self.give_up_at.is_some_and(|at| at <= now)
    }

    /// When something happens next by itself; `None` when nothing is pending.
    pub fn next_at(&self) -> Option<Time> {
        let due = self.due.front().map(|delivery| delivery.at);
        [self.pipes.next_at(), self.changes.next_at(), self.give_up_at, due].into_iter().flatten().min()
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

    /// When each trace of the topology starts or has started last; `None`: it waits for a packet or
    /// a command.
    pub fn trace_starts(&self) -> impl Iterator<Item = Option<Time>> {
        self.changes.starts()
    }

    /// The longest round of the traces that start over for ever; `None` if [`Network::next_at`]
    /// runs out by itself.
    pub fn endless_round(&self) -> Option<Duration> {
        self.changes.endless_round(&self.topology)
    }

    /// True if no frame moves before the next change: none is inside, or those that are wait for
    /// one.
    pub fn is_still(&self) -> bool {
        self.due.is_empty() && self.pipes.next_at().is_none()
    }

    /// The books as they stand.
    pub fn conservation(&self) -> Conservation {
        let in_routers: usize = self.stations.iter().map(Station::held).sum();
        Conservation {
            entered: self.books.entered,
            generated: self.books.generated,
            delivered: self.books.delivered,
            dropped: self.books.dropped.iter().map(|(reason, &n)| (reason.name(), n)).collect(),
            held: self.pipes.held() + (in_routers + self.due.len()) as u64,
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
        loop {
            let patience = self.give_up_at.filter(|at| *at <= until);
            if let Some((id, exit)) = self.pipes.pop(patience.unwrap_or(until)) {
                self.now = self.now.max(exit.at);
                self.exit(id, exit);
            } else if let Some(at) = patience {
                self.now = self.now.max(at);
                self.give_up(at);
            } else {
                break;
            }
        }
        self.now = self.now.max(until);
    }

    /// Gives up the frames that have waited for a neighbor until `at`.
    #[cold]
    fn give_up(&mut self, at: Time) {
        for station in 0..self.stations.len() {
            let Station { node, kind } = &mut self.stations[station];
            let node = *node;
            if let StationKind::Router(router) = kind {
                router.give_up(at, &mut self.pool, &mut self.acts);
                self.perform(at, node);
            }
        }
        self.give_up_at = self.stations.iter().filter_map(Station::gives_up_at).min();
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

    fn change(&mut self, at: Time, link: LinkId, direction: Direction, change: &Change) {
        for index in direction.pipes() {
            self.pipes.change(at, 2 * link.0 + index as u32, change);
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
        let (flow, traffic_class) =
            if self.pipes.reads_headers(id) { self.read_headers(&frame) } else { (0, 0) };
        let packet = Packet { len: frame.len() as u32, flow, traffic_class, data: frame };
        let place = PipeId { link: LinkId(id / 2), index: (id % 2) as usize };
        // Told before the push, which takes the frame away.
        self.observer.arrived(at, place, &packet.data);
        if let Verdict::Dropped(reason, frame) = self.pipes.push(at, id, packet) {
            self.refuse(at, Place::Pipe(place), frame, Reason::Link(reason));
        }
    }

    /// What queue disciplines go by: the flow's hash and the traffic class.
    #[inline(never)]
    fn read_headers(&self, frame: &Frame) -> (u32, u8) {
        let headers = Headers::parse(self.pool.headers(frame));
        (headers.flow_hash(), headers.traffic_class())
    }

    /// A frame leaves a pipe and reaches the node at its end.
    fn exit(&mut self, id: u32, exit: Exit<Frame>) {
        let end = End::of_label(self.pipes.label(id));
        let Exit { at, packet: Packet { len, flow, traffic_class, data: mut frame }, fate } = exit;
        if !O::WATCHES && matches!(fate, Fate::Delivered { marked: false }) {
            return self.arrive(at, end, frame);
        }
        let pipe = PipeId { link: LinkId(id / 2), index: (id % 2) as usize };
        let departed = self.pipes.departed(id);
        let alteration = match fate {
            Fate::Dropped(reason) => {
                // Nobody else needs it cut.
                if O::WATCHES {
                    let bytes = self.pool.bytes(&frame);
                    self.observer.left(Passage { at, departed, pipe, frame: &frame, bytes, fate });
                }
                return self.discard(at, frame, Reason::Link(reason));
            }
            Fate::Delivered { marked } => Alteration { marked, ..Alteration::default() },
            Fate::Altered(alteration) => alteration,
        };
        // Its bytes are shown, or changed.
        if !self.pool.cut(&mut frame) {
            return self.discard(at, frame, Reason::PoolFull);
        }
        if alteration.marked {
            let bytes = self.pool.bytes_mut(&mut frame);
            let headers = Headers::parse(bytes);
            ecn::set_ce(bytes, &headers);
        }
        if let Some(corruption) = alteration.corruption {
            corruption.apply(self.pool.bytes_mut(&mut frame));
        }
        let bytes = self.pool.bytes(&frame);
        self.observer.left(Passage { at, departed, pipe, frame: &frame, bytes, fate });
        for _ in 0..alteration.copies {
            self.books.generated += 1;
            match (self.pool.duplicate(&frame), self.pipes.copies_at(id)) {
                (Some(copy), None) => self.arrive(at, end, copy),
                (Some(copy), Some(later)) => {
                    self.observer.arrived(at, pipe, &copy);
                    self.pipes.put_copy(id, later, Packet { len, flow, traffic_class, data: copy });
                }
                (None, _) => *self.books.dropped.entry(Reason::PoolFull).or_default() += 1,
            }
        }
        self.arrive(at, end, frame);
    }

    /// A frame reaches the node at the end of its pipe.
    #[inline]
    fn arrive(&mut self, at: Time, end: End, frame: Frame) {
        match end {
            End::Edge(edge) => {
                self.observer.delivered(at, edge, &frame);
                self.due.push_back(Delivery { at, edge, frame });
            }
            End::Inner(place) => self.forward(at, self.inner_ends[place], frame),
        }
    }

    /// A frame reaches a router or switch.
    fn forward(&mut self, at: Time, InnerEnd { station, interface }: InnerEnd, mut frame: Frame) {
        if !self.pool.cut(&mut frame) {
            return self.discard(at, frame, Reason::PoolFull);
        }
        let Station { node, kind } = &mut self.stations[station];
        let node = *node;
        match kind {
            StationKind::Router(router) => {
                router.receive(at, interface, frame, &mut self.pool, &mut self.acts);
                if let Some(at) = router.gives_up_at() {
                    self.give_up_at = Some(self.give_up_at.map_or(at, |earliest| earliest.min(at)));
                }
            }
            StationKind::Switch(bridge) => {
                bridge.receive(at, interface, frame, &mut self.pool, &mut self.acts)
            }
            StationKind::OpenFlow(tables) => {
                tables.receive(at, interface, frame, &mut self.pool, &mut self.acts)
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
    #[cold]
    fn refuse(&mut self, at: Time, place: Place, frame: Frame, reason: Reason) {
        // Nobody else needs it cut.
        if O::WATCHES {
            self.observer.refused(at, place, &frame, self.pool.bytes(&frame), reason);
        }
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
        match &self.kind {
            StationKind::Router(router) => router.held(),
            StationKind::Switch(_) | StationKind::OpenFlow(_) => 0,
        }
    }

    fn gives_up_at(&self) -> Option<Time> {
        match &self.kind {
            StationKind::Router(router) => router.gives_up_at(),
            StationKind::Switch(_) | StationKind::OpenFlow(_) => None,
        }
    }
}

/// The pipe that leads away from a node by one of its interfaces.
fn outgoing(topology: &Topology, node: NodeId, interface: usize) -> u32 {
    let attached = &topology.node(node).interfaces[interface];
    2 * attached.link.0 + attached.end as u32
}

/// How a topology hangs together when it runs.
struct Wiring {
    stations: Vec<Station>,
    inner_ends: Vec<InnerEnd>,
    first_pipes: Vec<u32>,
}

impl Wiring {
    /// Labels the pipes with where they lead.
    fn of(topology: &Topology, executors: &Executors, pipes: &mut Pipes<Frame>) -> Wiring {
        let hosts = || topology.hosts().map(|(_, node)| node.interfaces.len());
        let mut wiring = Wiring {
            stations: Vec::new(),
            inner_ends: Vec::new(),
            first_pipes: Vec::with_capacity(hosts().sum()),
        };
        let has = |kind| topology.nodes.iter().any(|node| node.kind == kind);
        // What only routers and switches need takes long for many hosts.
        let routes = has(NodeKind::Router).then(|| Routes::compute(topology));
        let mut forwarding = has(NodeKind::Switch).then(|| segment::forwarding(topology));
        for (i, node) in topology.nodes.iter().enumerate() {
            let id = NodeId(i as u32);
            let kind = match (&node.kind, &routes, &mut forwarding) {
                (NodeKind::Router, Some(routes), _) => {
                    StationKind::Router(Box::new(Router::new(topology, id, routes)))
                }
                (NodeKind::Switch, _, Some(forwarding)) => {
                    StationKind::Switch(Bridge::new(std::mem::take(&mut forwarding[i])))
                }
                (NodeKind::OpenFlow { lines, .. }, _, _) => {
                    let tables = Tables::new(lines, node.interfaces.len(), executors);
                    StationKind::OpenFlow(Box::new(tables))
                }
                _ => {
                    wiring.add_edges(topology, id, pipes);
                    continue;
                }
            };
            wiring.add_station(topology, Station { node: id, kind }, pipes);
        }
        wiring
    }

    fn add_edges(&mut self, topology: &Topology, node: NodeId, pipes: &mut Pipes<Frame>) {
        for interface in 0..topology.node(node).interfaces.len() {
            let away = outgoing(topology, node, interface);
            // The other pipe of the link ends where this one begins.
            pipes.set_label(away ^ 1, End::Edge(EdgeId(self.first_pipes.len() as u32)).label());
            self.first_pipes.push(away);
        }
    }

    fn add_station(&mut self, topology: &Topology, station: Station, pipes: &mut Pipes<Frame>) {
        for interface in 0..topology.node(station.node).interfaces.len() {
            let away = outgoing(topology, station.node, interface);
            pipes.set_label(away ^ 1, End::Inner(self.inner_ends.len()).label());
            self.inner_ends.push(InnerEnd { station: self.stations.len(), interface });
        }
        self.stations.push(station);
    }
}
