//! A running topology: frames enter at edges, cross pipes and nodes hop by hop, and leave at edges.
//!
//! ```text
//!  push(now, edge, frame)                           pop(now) ─▶ Delivery { at, edge, frame }
//!        │                                                                 ▲
//!        ▼                                                                 │
//!      pipe ──exit at t──▶ router or switch ──same t──▶ pipe ──exit──▶ host edge
//!        └──────────── one wheel of pipe heads finds the next exit ────────┘
//! ```
//!
//! Each hop starts at the time when the frame was due there, so delays of the caller do not
//! accumulate. Nothing in this file reads a clock: the engine drives a network in real time,
//! `replay` in virtual time.
//!
//! At one instant the order of events is fixed, which makes runs repeatable: pipe exits in the
//! order of links, then frames that expire in routers, then scheduled changes, then frames that
//! enter.
//!
//! Read first: `wiring.rs`, `accounting.rs`.

use crate::accounting::{FrameAccounting, FrameCounters};
use crate::cut_pipes::CutPipes;
use crate::fate::{NodeAction, Reason};
use crate::id::{Edge, EdgeId, Location, PipeId};
use crate::nat::{NatCounters, NatSession};
use crate::observer::{Observer, Passage, Turn};
use crate::options::Options;
use crate::pool::{Frame, FramePool};
use crate::route::LiveLinks;
use crate::schedule::{LinkChange, Schedule, ScheduleFull, ScheduledChange};
use crate::wiring::{NodePort, NodeState, PipeEnd, RunningNode, Wiring, outgoing};
use fastpath_link::{
    Alteration, ByteChange, Change, Corruption, Exit, Fate, LinkState, Packet, PacketContent, PipeInit,
    PipeRef, Pipes, PopLimit, QueueState, Verdict,
};
use fastpath_spec::{Direction, LinkId, NodeId, Rebinding, Topology, TraceAction, TraceEvent};
use fastpath_units::{Duration, Rng, Time};
use fastpath_wire::{Headers, ecn, udp};
use std::collections::{BTreeSet, VecDeque};

/// Pipes are prefetched in networks with more edges; the pipes of fewer edges stay in the cache.
const PREFETCH_EDGES_MIN: usize = 1024;
/// Prefetching is ahead of the current frame by this number of frames.
const PREFETCH_DISTANCE: usize = 8;

/// A frame that has reached an edge.
#[derive(PartialEq, Eq, Debug)]
pub struct Delivery {
    /// The exact time at which the frame is due.
    pub at: Time,
    /// The edge.
    pub edge: EdgeId,
    /// The frame. The caller returns it to the pool after sending it.
    pub frame: Frame,
}

/// A running network. See the head of this file.
#[derive(Debug)]
pub struct Network<O = ()> {
    pub(crate) topology: Topology,
    pub(crate) pool: FramePool,
    pub(crate) observer: O,
    /// Two per link: forward at `2 × link`, backward at `2 × link + 1`. The label of a pipe is its
    /// [`PipeEnd`].
    pub(crate) pipes: Pipes<Frame>,
    pub(crate) nodes: Vec<RunningNode>,
    pub(crate) node_ports: Vec<NodePort>,
    /// By edge: the pipe that leads away from it.
    pub(crate) first_pipes: Vec<u32>,
    pub(crate) schedule: Schedule,
    /// Links whose state has been set since [`Network::take_state_changes`].
    pub(crate) state_changes: BTreeSet<LinkId>,
    /// How often link states have changed. The routes of routers follow if they are dynamic.
    pub(crate) state_version: u64,
    /// What the links join in their current states; `None` until a router needs it.
    pub(crate) live_links: Option<LiveLinks>,
    /// A lower bound of the time at which the next frame expires that waits for a neighbor of a
    /// router.
    pub(crate) expires_at: Option<Time>,
    pub(crate) now: Time,
    pub(crate) due: VecDeque<Delivery>,
    /// The actions of the current node; empty between frames, kept to reuse the memory.
    actions: Vec<NodeAction>,
    pub(crate) counters: FrameCounters,
    /// What passes on to other parts, if this is a part of a network.
    pub(crate) cut: Option<Box<CutPipes>>,
}

impl Network {
    /// Creates an idle network without an observer.
    pub fn new(topology: Topology, options: Options) -> Network {
        Network::observed(topology, options, ())
    }
}

impl<O: Observer> Network<O> {
    /// Creates an idle network with an observer.
    pub fn observed(topology: Topology, options: Options, observer: O) -> Network<O> {
        let init = |id: usize| {
            let (link, end) = (&topology.links[id / 2], id % 2);
            let rng = Rng::stream(options.seed, 2 * u64::from(link.stream) + end as u64);
            PipeInit { spec: &link.pipes[end], rng }
        };
        let frames_max = options.pool_limit.get() / FramePool::SMALLEST;
        let inits = (0..2 * topology.links.len()).map(init);
        let mut pipes = match observer.records_departures() {
            true => Pipes::recording_departures(inits, frames_max),
            false => Pipes::new(inits, frames_max),
        };
        let Wiring { nodes, node_ports, first_pipes } = Wiring::of(&topology, &options, &mut pipes);
        Network {
            pipes,
            pool: FramePool::new(options.pool_limit),
            observer,
            nodes,
            node_ports,
            first_pipes,
            schedule: Schedule::new(&topology),
            state_changes: BTreeSet::new(),
            state_version: 0,
            live_links: None,
            expires_at: None,
            now: Time::ZERO,
            due: VecDeque::new(),
            actions: Vec::new(),
            counters: FrameCounters::default(),
            cut: None,
            topology,
        }
    }

    /// Returns the topology.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns the edges: the interfaces of hosts, in the order of hosts.
    pub fn edges(&self) -> impl ExactSizeIterator<Item = Edge> {
        self.first_pipes.iter().map(|&pipe| {
            let (node, interface) = self.topology.links[pipe as usize / 2].ends[pipe as usize % 2];
            Edge { node, interface }
        })
    }

    /// Returns the edge at an interface of a host, or `None` for routers and switches.
    pub fn edge_of(&self, node: NodeId, interface: usize) -> Option<EdgeId> {
        let index = self.edges().position(|edge| (edge.node, edge.interface) == (node, interface));
        index.map(|i| EdgeId(i as u32))
    }

    /// Returns the pool of all frames in the network.
    pub fn pool(&self) -> &FramePool {
        &self.pool
    }

    /// Returns the pool, to allocate a frame for a push or to free a delivered frame.
    pub fn pool_mut(&mut self) -> &mut FramePool {
        &mut self.pool
    }

    /// Returns the observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Returns the observer, to drain its records.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Returns the observer at the end of the run.
    pub fn into_observer(self) -> O {
        self.observer
    }

    /// Returns a pipe of a link. Index 0 leads from end 0 to end 1, index 1 leads back.
    pub fn pipe(&self, link: LinkId, index: usize) -> PipeRef<'_, Frame> {
        self.pipes.pipe(2 * link.0 + index as u32)
    }

    /// Returns the queue of a pipe of a link at the current time, that of the latest
    /// [`Network::advance`].
    pub fn queue(&mut self, link: LinkId, index: usize) -> QueueState {
        self.pipes.queue(self.now, 2 * link.0 + index as u32)
    }

    /// Bounds the packets of cross traffic with which a pipe catches up that was idle, for a run in
    /// real time. See [`Pipes::bound_cross`].
    pub fn bound_cross(&mut self, packets_max: u64) {
        self.pipes.bound_cross(packets_max);
    }

    /// Sends a frame from a host onto its link at `now`. Time does not run backwards: a `now`
    /// before the latest one counts as the latest one. With an observer that
    /// [tracks frames](Observer::TRACKS_FRAMES), each frame must have its own bytes
    /// ([`Frame::has_own_bytes`]).
    pub fn push(&mut self, now: Time, edge: EdgeId, frame: Frame) {
        self.advance(now);
        self.counters.entered += 1;
        self.observer.entered(self.now, edge, &frame, &self.pool);
        self.enter(self.now, self.first_pipes[edge.0 as usize], frame);
    }

    /// Sends several frames from their hosts at `now`, in order, and leaves `frames` empty. In a
    /// network with many links the memory accesses of the frames overlap.
    pub fn push_burst(&mut self, now: Time, frames: &mut Vec<(EdgeId, Frame)>) {
        let prefetches = self.first_pipes.len() > PREFETCH_EDGES_MIN;
        if prefetches {
            for (edge, _) in frames.iter().take(PREFETCH_DISTANCE) {
                self.pipes.prefetch(self.first_pipes[edge.0 as usize]);
            }
        }
        let mut frames = frames.drain(..);
        // True while everything due by `now` has been processed. `push_run` preserves this, because
        // a frame does not leave its pipe at the instant it enters, and `pass_run` lets it leave.
        let mut is_current = false;
        while let Some(&(edge, _)) = frames.as_slice().first() {
            if !is_current {
                self.advance(now);
                is_current = true;
            }
            if prefetches && let Some(&(later, _)) = frames.as_slice().get(PREFETCH_DISTANCE) {
                self.pipes.prefetch(self.first_pipes[later.0 as usize]);
            }
            let id = self.first_pipes[edge.0 as usize];
            let is_plain = !self.observer.is_active() && !self.schedule.awaits_packet();
            let run = || frames.as_slice().iter().take_while(|(next, _)| *next == edge).count();
            if is_plain && self.pipes.takes_runs(id) {
                let run = run();
                self.push_run(id, frames.by_ref().take(run).map(|(_, frame)| frame));
            } else if is_plain
                && self.pipes.passes(self.now, id)
                && let PipeEnd::Edge(to) = PipeEnd::of_label(self.pipes.label(id))
            {
                let run = run();
                let lens = frames.as_slice()[..run].iter().map(|(_, frame)| frame.len() as u32);
                self.counters.entered += run as u64;
                self.pipes.pass_run(self.now, id, lens);
                let at = self.now;
                let passed = frames.by_ref().take(run);
                self.due.extend(passed.map(|(_, frame)| Delivery { at, edge: to, frame }));
            } else if let Some((edge, frame)) = frames.next() {
                self.push(now, edge, frame);
                is_current = false;
            }
        }
    }

    /// Pushes frames from a host to one pipe at the current time. Only this pipe changes.
    #[inline]
    fn push_run(&mut self, id: u32, frames: impl ExactSizeIterator<Item = Frame>) {
        self.counters.entered += frames.len() as u64;
        if let Some(cut) = &mut self.cut {
            cut.note_entry(id);
        }
        let packet = |frame: Frame| Packet::new(frame.len() as u32, frame);
        self.pipes.push_run(self.now, id, frames.map(packet), |reason, frame| {
            self.counters.count_drop(Reason::Link(reason));
            self.pool.free(frame);
        });
    }

    /// Returns the next frame due at an edge at or before `now`, in order of time.
    pub fn pop(&mut self, now: Time) -> Option<Delivery> {
        if self.due.is_empty() {
            if let Some(delivery) = self.pop_direct(now) {
                return Some(delivery);
            }
            self.advance(now);
        }
        let delivery = self.due.pop_front_if(|delivery| delivery.at <= now)?;
        self.counters.delivered += 1;
        Some(delivery)
    }

    /// Appends the next frames due at edges at or before `now` to `out`, in order of time, until
    /// `out` has `len_max` frames.
    pub fn pop_burst(&mut self, now: Time, len_max: usize, out: &mut Vec<Delivery>) {
        while out.len() < len_max {
            let taken = match self.due.is_empty() {
                true => self.pop_run(now, len_max, out),
                false => self.pop_due(now, len_max, out),
            };
            if taken == 0 {
                let Some(delivery) = self.pop(now) else { return };
                out.push(delivery);
            }
        }
    }

    /// Appends the next frames of those that have reached their edges, and returns their number.
    fn pop_due(&mut self, now: Time, len_max: usize, out: &mut Vec<Delivery>) -> usize {
        let is_next = |delivery: &&Delivery| delivery.at <= now;
        let count = self.due.iter().take(len_max - out.len()).take_while(is_next).count();
        out.extend(self.due.drain(..count));
        self.counters.delivered += count as u64;
        count
    }

    /// Appends the next frames if they go directly from one pipe to an edge, and returns their
    /// number. It is 0 if another event comes first.
    #[inline]
    fn pop_run(&mut self, now: Time, len_max: usize, out: &mut Vec<Delivery>) -> usize {
        if self.observer.is_active() || !self.due.is_empty() || now < self.now || self.has_event_by(now) {
            return 0;
        }
        let left = len_max - out.len();
        let taken = self.pipes.pop_run(
            PopLimit { until: now, packets_max: left },
            PipeEnd::is_edge,
            |label, at, frame| {
                out.push(Delivery { at, edge: EdgeId(label), frame });
            },
        );
        if let (true, Some(last)) = (taken > 0, out.last()) {
            self.now = self.now.max(last.at);
            self.counters.delivered += taken as u64;
        }
        taken
    }

    /// Returns the next frame if it goes directly from a pipe to an edge, as most frames do in a
    /// network of hosts. `None` if another event comes first.
    #[inline]
    fn pop_direct(&mut self, now: Time) -> Option<Delivery> {
        if self.observer.is_active() || now < self.now {
            return None;
        }
        while self.due.is_empty() && !self.has_event_by(now) {
            let (id, exit) = self.pipes.pop(now)?;
            self.now = self.now.max(exit.at);
            match (exit.fate, PipeEnd::of_label(self.pipes.label(id))) {
                (Fate::Delivered { marked: false }, PipeEnd::Edge(edge)) => {
                    self.counters.delivered += 1;
                    return Some(Delivery { at: exit.at, edge, frame: exit.packet.data });
                }
                _ => self.exit(id, exit),
            }
        }
        None
    }

    /// Returns whether a scheduled change or an expiry is due by `now`.
    #[inline]
    fn has_event_by(&self, now: Time) -> bool {
        self.schedule.next_at().is_some_and(|at| at <= now) || self.expires_at.is_some_and(|at| at <= now)
    }

    /// Returns the time of the next event inside the network, or `None` if no event is pending.
    pub fn next_at(&self) -> Option<Time> {
        let due = self.due.front().map(|delivery| delivery.at);
        [self.pipes.next_at(), self.schedule.next_at(), self.expires_at, due].into_iter().flatten().min()
    }

    /// Returns whether the interfaces of a link have a carrier: they lose it while both directions
    /// are down.
    pub fn has_carrier(&self, link: LinkId) -> bool {
        [0, 1].into_iter().any(|index| self.pipe(link, index).spec().state == LinkState::Up)
    }

    /// Returns the edges at the ends of a link.
    pub fn edges_of(&self, link: LinkId) -> impl Iterator<Item = EdgeId> {
        let labels = [0, 1].map(|index| self.pipes.label(2 * link.0 + index));
        labels.into_iter().filter(|label| PipeEnd::is_edge(*label)).map(EdgeId)
    }

    /// Returns the links that have been set up or down since the last call, in order.
    #[inline]
    pub fn take_state_changes(&mut self) -> BTreeSet<LinkId> {
        std::mem::take(&mut self.state_changes)
    }

    /// Changes parameters of a link at `now`. Frames in the link remain.
    pub fn apply(&mut self, now: Time, link: LinkId, direction: Direction, change: &Change) {
        self.advance(now);
        self.change(self.now, link, direction, change);
    }

    /// Schedules changes of links for `at`, or for the current time if `at` has passed. Either all
    /// changes are scheduled or none.
    pub fn apply_at(&mut self, at: Time, changes: Vec<LinkChange>) -> Result<(), ScheduleFull> {
        self.schedule.add(at.max(self.now), changes, &self.topology)
    }

    /// Starts or stops the traces of a group at `now`.
    pub fn start_or_stop_group(&mut self, now: Time, group: usize, action: TraceAction) {
        self.advance(now);
        match action {
            TraceAction::Start => self.schedule.start(self.now, group, &self.topology),
            TraceAction::Stop => self.schedule.stop(self.now, group, &self.topology),
        }
        self.apply_scheduled(self.now);
    }

    /// Starts or stops the traces of a group at a time, or at the current one if that has passed.
    pub fn schedule_traces(&mut self, event: TraceEvent) {
        let event = TraceEvent { at: event.at.max(self.now), ..event };
        self.schedule.add_trace_event(event, &self.topology);
    }

    /// Returns the next or latest start of each trace of the topology; `None` for a trace that
    /// waits for a packet or a command.
    pub fn trace_starts(&self) -> impl Iterator<Item = Option<Time>> {
        self.schedule.starts()
    }

    /// Returns the longest period of the running traces that repeat for ever, or `None` if
    /// [`Network::next_at`] becomes `None` without further frames.
    pub fn repeat_period_max(&self) -> Option<Duration> {
        self.schedule.repeat_period_max(&self.topology)
    }

    /// Returns whether no frame moves before the next scheduled change: the network is empty, or
    /// all its frames wait for a change.
    pub fn is_quiescent(&self) -> bool {
        self.due.is_empty() && self.pipes.next_at().is_none()
    }

    /// Returns the counters and the sessions of a NAT at `now`, in the order in which its mappings
    /// were made; `None` if the node is not a NAT.
    pub fn nat(&mut self, now: Time, node: NodeId) -> Option<(NatCounters, Vec<NatSession>)> {
        let now = now.max(self.now);
        let is_its = |running: &&mut RunningNode| running.id == node;
        let NodeState::Router(router) = &mut self.nodes.iter_mut().find(is_its)?.state else { return None };
        let nat = router.nat.as_mut()?;
        Some((nat.counters(now), nat.sessions(now)))
    }

    /// Gives the mappings of a NAT other outside endpoints at `now`. Returns whether the node is a
    /// NAT of this network.
    pub fn rebind_nat(&mut self, now: Time, node: NodeId, rebinding: Rebinding) -> bool {
        self.advance(now);
        self.rebind(self.now, node, rebinding)
    }

    fn rebind(&mut self, at: Time, node: NodeId, rebinding: Rebinding) -> bool {
        let running = self.nodes.iter_mut().find(|running| running.id == node);
        let Some(RunningNode { state: NodeState::Router(router), .. }) = running else { return false };
        router.nat.as_mut().map(|nat| nat.rebind(at, rebinding)).is_some()
    }

    /// Returns the frame accounting at the current time.
    pub fn accounting(&self) -> FrameAccounting {
        let in_nodes: usize = self.nodes.iter().map(RunningNode::held).sum();
        self.counters.accounting(self.pipes.held() + (in_nodes + self.due.len()) as u64)
    }

    /// Processes all events up to `now`. Frames that reach an edge wait for `pop`.
    pub fn advance(&mut self, now: Time) {
        let now = now.max(self.now);
        while let Some(at) = self.schedule.next_at().filter(|at| *at <= now) {
            self.run_until(at);
            self.observer.turned(at, Turn::Changes);
            self.apply_scheduled(at);
        }
        self.run_until(now);
    }

    fn run_until(&mut self, until: Time) {
        loop {
            let expiry = self.expires_at.filter(|at| *at <= until);
            if let Some((id, exit)) = self.pipes.pop(expiry.unwrap_or(until)) {
                self.now = self.now.max(exit.at);
                self.exit(id, exit);
            } else if let Some(at) = expiry {
                self.now = self.now.max(at);
                self.expire_neighbors(at);
            } else {
                break;
            }
        }
        self.now = self.now.max(until);
    }

    /// Drops the frames whose neighbor has not answered by `at`.
    #[cold]
    fn expire_neighbors(&mut self, at: Time) {
        for index in 0..self.nodes.len() {
            let RunningNode { id, state } = &mut self.nodes[index];
            let id = *id;
            if let NodeState::Router(router) = state {
                self.observer.turned(at, Turn::Expiry(id));
                router.expire_neighbors(at, &mut self.pool, &mut self.actions);
                self.perform(at, id);
            }
        }
        self.expires_at = self.nodes.iter().filter_map(RunningNode::expires_at).min();
    }

    /// Applies all scheduled changes due at `at`.
    pub(crate) fn apply_scheduled(&mut self, at: Time) {
        while let Some(due) = self.schedule.pop(at, &self.topology) {
            match due {
                ScheduledChange::Link(due) => {
                    let (link, direction, change) = *due;
                    self.change(at, link, direction, &change);
                }
                ScheduledChange::Rebind(node, rebinding) => _ = self.rebind(at, node, rebinding),
            }
        }
    }

    /// Starts the traces that wait for the first packet on `link`.
    #[cold]
    fn on_first_packet(&mut self, at: Time, link: LinkId) {
        self.schedule.on_packet(at, link, &self.topology);
        self.apply_scheduled(at);
    }

    pub(crate) fn change(&mut self, at: Time, link: LinkId, direction: Direction, change: &Change) {
        for index in direction.pipes() {
            let pipe = 2 * link.0 + index as u32;
            self.note_change(pipe, change);
            self.pipes.change(at, pipe, change);
        }
        if change.state.is_some() {
            self.state_changes.insert(link);
            self.state_version += 1;
            self.live_links = None;
        }
    }

    /// Sends a frame from a node on one of its interfaces.
    fn send(&mut self, at: Time, node: NodeId, interface: usize, frame: Frame) {
        let id = outgoing(&self.topology, node, interface);
        self.enter(at, id, frame);
    }

    /// Pushes a frame to a pipe.
    fn enter(&mut self, at: Time, id: u32, frame: Frame) {
        if self.schedule.awaits_packet() {
            self.on_first_packet(at, LinkId(id / 2));
        }
        let packet = match self.pipes.reads_headers(id) {
            true => self.read_headers(frame),
            false => Packet::new(frame.len() as u32, frame),
        };
        let pipe = PipeId { link: LinkId(id / 2), index: (id % 2) as usize };
        if let Some(cut) = &mut self.cut {
            cut.note_entry(id);
        }
        // The observer comes first, because the push moves the frame.
        self.observer.arrived(at, pipe, &packet.data);
        if let Verdict::Dropped(reason, frame) = self.pipes.push(at, id, packet) {
            self.refuse(at, Location::Pipe(pipe), frame, Reason::Link(reason));
        }
    }

    /// Returns a frame with the input of queue disciplines and laws of loss.
    #[inline(never)]
    fn read_headers(&self, frame: Frame) -> Packet<Frame> {
        let bytes = self.pool.headers(&frame);
        let headers = Headers::parse(bytes);
        let content = match udp::payload(bytes, &headers) {
            Some(payload) if payload.is_empty() => PacketContent::Other,
            Some(payload) if udp::is_version_negotiation(&bytes[payload.clone()]) => {
                PacketContent::VersionNegotiation
            }
            Some(_) => PacketContent::Udp,
            None => PacketContent::Other,
        };
        let (flow, traffic_class) = (headers.flow_hash(), headers.traffic_class());
        Packet { len: frame.len() as u32, flow, traffic_class, content, data: frame }
    }

    /// Processes a frame that leaves a pipe and reaches the node at its end.
    fn exit(&mut self, id: u32, exit: Exit<Frame>) {
        let end = PipeEnd::of_label(self.pipes.label(id));
        if matches!(end, PipeEnd::Away) && CutPipes::passes_on(exit.fate) {
            return self.pass_on(id, exit);
        }
        let Exit { at, packet: Packet { len, flow, traffic_class, content, data: mut frame }, fate } = exit;
        let pipe = PipeId { link: LinkId(id / 2), index: (id % 2) as usize };
        if let (PipeEnd::Node(_), Some(next)) = (end, self.pipes.head(id)) {
            // Other pipes come before it, while its headers come into the cache.
            self.pool.prefetch(next);
        }
        let is_watched = self.observer.watches(pipe);
        if !is_watched && matches!(fate, Fate::Delivered { marked: false }) {
            return self.arrive(at, end, frame);
        }
        let departed = self.pipes.departed(id);
        let alteration = match fate {
            Fate::Dropped(reason) => {
                let pool = &self.pool;
                self.observer.left(Passage { at, departed, pipe, frame: &frame, pool, fate });
                return self.discard(at, frame, Reason::Link(reason));
            }
            Fate::Delivered { marked } => Alteration { marked, ..Alteration::default() },
            Fate::Altered(alteration) => alteration,
        };
        // The bytes are changed or copied.
        if alteration != Alteration::default() && !self.pool.copy_out(&mut frame) {
            return self.refuse(at, Location::Pipe(pipe), frame, Reason::PoolFull);
        }
        if alteration.marked {
            let bytes = self.pool.bytes_mut(&mut frame);
            let headers = Headers::parse(bytes);
            ecn::set_ce(bytes, &headers);
        }
        if let Some(corruption) = alteration.corruption {
            corrupt(self.pool.bytes_mut(&mut frame), &corruption);
        }
        let pool = &self.pool;
        self.observer.left(Passage { at, departed, pipe, frame: &frame, pool, fate });
        for _ in 0..alteration.copies {
            self.counters.generated += 1;
            match (self.pool.duplicate(&frame), self.pipes.copies_at(id)) {
                (Some(copy), None) => {
                    let pool = &self.pool;
                    self.observer.copied(Passage { at, departed, pipe, frame: &copy, pool, fate });
                    self.arrive(at, end, copy);
                }
                (Some(copy), Some(later)) => {
                    self.observer.arrived(at, pipe, &copy);
                    self.pipes.put_copy(id, later, Packet { len, flow, traffic_class, content, data: copy });
                }
                (None, _) => self.counters.count_drop(Reason::PoolFull),
            }
        }
        self.arrive(at, end, frame);
    }

    /// Passes a frame to the end of its pipe.
    #[inline]
    fn arrive(&mut self, at: Time, end: PipeEnd, frame: Frame) {
        match end {
            PipeEnd::Edge(edge) => {
                self.observer.delivered(at, edge, &frame, &self.pool);
                self.due.push_back(Delivery { at, edge, frame });
            }
            PipeEnd::Node(port) => self.forward(at, self.node_ports[port], frame),
            PipeEnd::Away => unreachable!("what leaves for another part is passed on whole"),
        }
    }

    /// Lets the executor of an OpenFlow node take over what has changed, and sends frames by ports
    /// of the node at `now`. A node of another kind sends none.
    pub fn originate(&mut self, now: Time, node: NodeId, frames: impl IntoIterator<Item = (u32, Vec<u8>)>) {
        self.advance(now);
        let running = self.nodes.iter_mut().find(|running| running.id == node);
        let Some(RunningNode { state: NodeState::OpenFlow(running), .. }) = running else { return };
        running.tend();
        for (port, bytes) in frames {
            self.actions.push(match self.pool.insert(&bytes) {
                Some(frame) => NodeAction::Originate { interface: port as usize - 1, frame },
                None => NodeAction::NoBuffer,
            });
        }
        self.perform(self.now, node);
    }

    /// Returns the switch of the OpenFlow node with this name, with its counters up to date. A node
    /// with controllers has another one: see the executor that it was given.
    pub fn switch(&mut self, node: &str) -> Option<&fastpath_switch::Switch> {
        let topology = &self.topology;
        let running = self.nodes.iter_mut().find(|running| topology.node(running.id).name == node)?;
        match &mut running.state {
            NodeState::OpenFlow(running) => Some(running.switch()),
            NodeState::Router(_) | NodeState::Switch(_) => None,
        }
    }

    /// Passes a frame to a router or switch and performs its actions.
    fn forward(&mut self, at: Time, NodePort { node, interface }: NodePort, mut frame: Frame) {
        if !self.pool.copy_out(&mut frame) {
            return self.discard(at, frame, Reason::PoolFull);
        }
        let RunningNode { id, state } = &mut self.nodes[node];
        let id = *id;
        match state {
            NodeState::Router(router) => {
                router.update_routes(self.state_version, || {
                    let (topology, pipes) = (&self.topology, &self.pipes);
                    let is_up = |link: LinkId| {
                        let states = [0, 1].map(|index| pipes.pipe(2 * link.0 + index).spec().state);
                        states == [LinkState::Up; 2]
                    };
                    let links = self.live_links.get_or_insert_with(|| LiveLinks::new(topology, &is_up));
                    links.fib(topology, id)
                });
                router.receive(at, interface, frame, &mut self.pool, &mut self.actions);
                if let Some(at) = router.expires_at() {
                    self.expires_at = Some(self.expires_at.map_or(at, |earliest| earliest.min(at)));
                }
            }
            NodeState::Switch(bridge) => {
                bridge.receive(at, interface, frame, &mut self.pool, &mut self.actions)
            }
            NodeState::OpenFlow(node) => {
                node.receive(at, interface, frame, &mut self.pool, &mut self.actions)
            }
        }
        self.perform(at, id);
    }

    /// Performs the actions of a node.
    fn perform(&mut self, at: Time, node: NodeId) {
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                NodeAction::Forward { interface, frame } => self.send(at, node, interface, frame),
                NodeAction::Originate { interface, frame } => {
                    self.counters.generated += 1;
                    self.send(at, node, interface, frame);
                }
                NodeAction::CountGenerated => self.counters.generated += 1,
                NodeAction::NoBuffer => {
                    self.counters.generated += 1;
                    self.counters.count_drop(Reason::PoolFull);
                }
                NodeAction::Consume(frame) => {
                    self.counters.delivered += 1;
                    self.observer.ended(at, &frame, None);
                    self.pool.free(frame);
                }
                NodeAction::Drop(frame, reason) => self.refuse(at, Location::Node(node), frame, reason),
            }
        }
        self.actions = actions;
    }

    /// Drops a frame that a pipe or node did not accept.
    #[cold]
    fn refuse(&mut self, at: Time, location: Location, frame: Frame, reason: Reason) {
        self.observer.refused(at, location, &frame, &self.pool, reason);
        self.discard(at, frame, reason);
    }

    pub(crate) fn discard(&mut self, at: Time, frame: Frame, reason: Reason) {
        self.counters.count_drop(reason);
        self.observer.ended(at, &frame, Some(reason));
        self.pool.free(frame);
    }
}

/// Carries out a corruption on the bytes of a frame.
fn corrupt(bytes: &mut [u8], corruption: &Corruption) {
    if !corruption.is_of_payload() {
        return corruption.apply(bytes);
    }
    let headers = Headers::parse(bytes);
    let len = udp::payload(bytes, &headers).map_or(0, |payload| payload.len());
    if let Some(ByteChange { offset, flips }) = corruption.payload_byte(len) {
        udp::flip(bytes, &headers, offset, flips);
    }
}
