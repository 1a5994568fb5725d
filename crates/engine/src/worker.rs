//! The worker loop: moves frames from ports into the network, and frames that are due out of it.
//!
//! ```text
//!   port ──rx_burst──▶ stamp ──▶ Network::push_burst
//!                        └ near the end of the poll: an earlier stamp lets frames out early
//!
//!   Network::pop_burst ──▶ backlog ──tx_burst──▶ port
//!                             └ what the port does not take now waits: at most BACKLOG_MAX frames,
//!                               others are dropped and counted
//! ```
//!
//! One worker is one thread that runs each frame to completion. It owns its network, frame pool and
//! ports, so nothing on this path locks. It allocates only until memory has grown to what the
//! traffic needs. Requests from outside arrive as [`Command`]s, which the worker answers once per
//! iteration.
//!
//! See also `ready.rs` (which ports are polled), `lateness.rs` (how late frames are) and
//! `worker_clock.rs` (when the thread did not run).

use crate::Notice;
use crate::clock::Clock;
use crate::command::{Command, CommandReceiver, Refusal, When};
use crate::cut_part::CutPart;
use crate::edge_port::{BACKLOG_MAX, Backlog, EdgePort};
use crate::lateness::LatenessPolicy;
use crate::node_switch::WorkerSwitch;
use crate::open_ports::OpenPorts;
use crate::port::{BURST, Burst, Port, PortCounters, PortError};
use crate::priority::take_worker_priority;
use crate::pulse::Pulse;
use crate::ready::Ready;
use crate::sleep_margin::SleepMargin;
use crate::snapshot::{PipeState, Snapshot, WorkerState};
use crate::switch_report::SwitchCopy;
use crate::worker_change::{ChangedCut, WorkerChange};
use crate::worker_clock::{WorkerClock, stamp};
use fastpath_link::QueueState;
use fastpath_net::capture::{CaptureTap, FLUSH_INTERVAL};
use fastpath_net::flows::FlowTable;
use fastpath_net::sample::{self, Sample};
use fastpath_net::{Delivery, Edge, EdgeId, Frame, LinkChange, Network, Observer, PipeId, Reason};
use fastpath_spec::{Idle, Late, LinkId, TraceEvent};
use fastpath_sys::thread::{has_virtual_time, minimise_timer_slack, release_heap, set_low_priority};
use fastpath_units::{Duration, Time};
use std::io;
use std::sync::Arc;

/// Backlogs allocated at the start. That many edges can have frames waiting at once without an
/// allocation.
const BACKLOGS: usize = BURST;
/// Frames taken out of the network at a time: enough that the segments of several super-packets are
/// joined again. After that many frames the ports are polled again. If more frames arrived, at
/// least twice as many are released, so that an overloaded engine loses frames at its ports and
/// does not hold them inside for ever longer.
const RELEASE: usize = 4 * BURST;
/// The worker spins for this long after the last frame moved, because traffic comes in bursts.
const LINGER: Duration = Duration::from_us(50);
/// The longest sleep while a port without a descriptor has to be polled.
const POLL_INTERVAL: Duration = Duration::from_us(200);
/// The longest sleep, and the interval at which silent ports are polled. A TAP that is deleted does
/// not wake its reader (drivers/net/tun.c wakes it before it marks the end, so the reader finds
/// nothing and sleeps on), but reading from it fails.
const HEARTBEAT: Duration = Duration::from_ms(100);
/// After this long without a frame, memory that no frame uses is returned to the system.
const RELEASED_AFTER: Duration = Duration::from_secs(10);
/// How often a worker offers others its last frames before the topology changes: they take what is
/// there once per iteration.
const HANDOVER_TRIES: usize = 10_000;
/// Silent ports polled per heartbeat.
const HEARTBEAT_PORTS: usize = 64;

/// The observers of a network besides its log: the tap of captures, and the flows if they are
/// recorded.
pub(crate) type Watchers = (CaptureTap, Option<FlowTable>);

/// The network of a worker, and its settings.
pub(crate) struct WorkerConfig {
    pub(crate) clock: Clock,
    /// One for each edge of the network, in their order.
    pub(crate) ports: Vec<Box<dyn Port>>,
    pub(crate) idle: Idle,
    pub(crate) policy: LatenessPolicy,
    pub(crate) commands: CommandReceiver,
    pub(crate) notice: Notice,
    /// The core its thread is bound to.
    pub(crate) core: Option<u32>,
    /// Ports of all workers that have not failed.
    pub(crate) open_ports: Arc<OpenPorts>,
    /// The switches of OpenFlow nodes with controllers.
    pub(crate) switches: Vec<WorkerSwitch>,
    /// The part of the network, where it is cut. Then `ports` has one for each edge of the part.
    pub(crate) cut: Option<CutPart>,
}

/// See the head of this file. `L` is the log of the network.
pub(crate) struct Worker<L> {
    clock: WorkerClock,
    network: Network<(L, Watchers)>,
    /// The port of each edge, by [`EdgeId`] or by the place in `cut`.
    edges: Vec<EdgePort>,
    cut: Option<CutPart>,
    /// Ports of all workers that have not failed.
    open_ports: Arc<OpenPorts>,
    /// Edges with frames in their backlog.
    waiting: Vec<usize>,
    /// Backlogs no edge needs now.
    spare: Vec<Backlog>,
    ready: Ready,
    /// Some port has no descriptor and must be polled, so that long sleeps are impossible.
    must_poll: bool,
    burst: Burst,
    /// A burst with its edge, and frames that are due. Both are empty between iterations and kept
    /// for their memory.
    arrived: Vec<(EdgeId, Frame)>,
    due: Vec<Delivery>,
    commands: CommandReceiver,
    switches: Vec<WorkerSwitch>,
    idle: Idle,
    policy: LatenessPolicy,
    core: Option<u32>,
    sleep_margin: SleepMargin,
    /// The last time at which a frame moved.
    moved_at: Time,
    /// Whether unused memory was released since then.
    has_released: bool,
    /// When silent ports are polled next.
    heartbeat_at: Time,
    /// How busy it was; the time in it is not used.
    pulse: Pulse,
    sleeps: u64,
    /// The counters of ports that were removed with their edges.
    removed_ports: PortCounters,
    notice: Notice,
    /// The notice was sent that a port keeps its carrier.
    keeps_carrier: bool,
}

impl<L: Observer> Worker<L> {
    /// Creates a worker for a network with a port for every edge. The thread that runs the worker
    /// must create it.
    pub(crate) fn new(network: Network<(L, Watchers)>, config: WorkerConfig) -> io::Result<Worker<L>> {
        let WorkerConfig {
            clock: time,
            ports,
            idle,
            policy,
            commands,
            notice,
            core,
            open_ports,
            switches,
            cut,
        } = config;
        for (_, control) in &switches {
            control.wake_by(commands.waker());
        }
        let clock = WorkerClock::new(time);
        if idle != Idle::Busy {
            minimise_timer_slack();
        }
        let idle = if idle == Idle::Save && has_virtual_time() { Idle::Sleep } else { idle };
        let fds: Vec<_> = ports.iter().map(|port| port.fd()).collect();
        let ready = Ready::new(&fds, commands.bell(), idle)?;
        let count = ports.len();
        let edges = ports.into_iter().map(|port| EdgePort::new(port, count, L::TRACKS_FRAMES)).collect();
        let now = time.now();
        let mut worker = Worker {
            clock,
            network,
            edges,
            cut,
            open_ports,
            waiting: Vec::with_capacity(count),
            spare: (0..BACKLOGS.min(count)).map(|_| Backlog::new()).collect(),
            ready,
            must_poll: false,
            burst: Burst::new(),
            arrived: Vec::with_capacity(Burst::MAX),
            due: Vec::with_capacity(RELEASE),
            commands,
            switches,
            idle,
            policy,
            core,
            sleep_margin: SleepMargin::default(),
            moved_at: now,
            has_released: false,
            heartbeat_at: now,
            pulse: Pulse::default(),
            sleeps: 0,
            removed_ports: PortCounters::default(),
            notice,
            keeps_carrier: false,
        };
        let links = (0..worker.network.topology().links.len() as u32).map(LinkId);
        let down: Vec<LinkId> = links.filter(|link| !worker.network.has_carrier(*link)).collect();
        down.into_iter().for_each(|link| worker.show_carrier(link));
        worker.update_must_poll();
        Ok(worker)
    }

    /// Runs until it is stopped or every port of every worker has failed.
    pub(crate) fn run(&mut self) {
        take_worker_priority(self.idle).iter().for_each(|text| self.notice.send(text));
        while !self.commands.is_stopped() && !self.open_ports.is_over() {
            self.iterate();
        }
        let now = self.clock.now();
        self.network.observer_mut().flush(now, true);
    }

    fn tap(&mut self) -> &mut CaptureTap {
        &mut self.network.observer_mut().1.0
    }

    /// Polls everything once, and waits if nothing moved.
    fn iterate(&mut self) {
        let start = self.clock.now();
        self.tap().set_now(start);
        let mailed = self.take_mail();
        let received = self.receive(start);
        let injected = self.inject();
        let released = self.release(RELEASE.max(2 * received));
        // Answering may take long and is not an interruption.
        let now = match self.answer_commands() | self.show_carriers() {
            true => self.clock.after_long_work(),
            false => self.clock.now(),
        };
        let has_moved = received > 0 || injected || released || mailed;
        // A worker that never polls waits for what comes next, and is woken if it is there already.
        let waits = !has_moved || self.idle == Idle::Sleep;
        // It sleeps after every frame, and little is to be passed on then.
        let is_quiet = waits && (self.idle != Idle::Sleep || self.rests_long(now));
        self.network.observer_mut().flush(now, is_quiet);
        self.clock.expect(has_moved);
        if has_moved {
            self.pulse.busy = self.pulse.busy.saturating_add(now.since(start));
            self.moved_at = now;
            self.has_released = false;
        }
        if waits {
            self.wait(now);
        }
    }

    /// Whether nothing is due in the network for as long as an observer may keep what it has.
    fn rests_long(&self, now: Time) -> bool {
        self.network.next_at().is_none_or(|at| at.since(now) >= FLUSH_INTERVAL)
    }

    /// Takes frames that come from other parts of the network. Returns true if there were any.
    fn take_mail(&mut self) -> bool {
        let Some(cut) = &mut self.cut else { return false };
        cut.take_mail(&mut self.network, &self.policy, &self.clock)
    }

    /// Sends frames to other parts of the network. Returns true if there were any.
    fn send_mail(&mut self) -> bool {
        let Some(cut) = &mut self.cut else { return false };
        let now = self.clock.now();
        self.network.observer_mut().1.0.set_now(now);
        cut.send_mail(&mut self.network, now)
    }

    /// Sends all that is ready, before the topology changes: it has the numbers of the former one.
    fn send_all_mail(&mut self) {
        for _ in 0..HANDOVER_TRIES {
            if !self.send_mail() || !self.network.has_crossings() {
                return;
            }
            std::thread::yield_now();
        }
        let parts = self.cut.as_ref().map_or(0, |cut| cut.post.count());
        (0..parts).for_each(|part| self.network.discard_crossings(part, Reason::Removed));
    }

    /// The edge of the network that the port at a place serves.
    #[inline]
    fn edge(&self, place: usize) -> EdgeId {
        self.cut.as_ref().map_or(EdgeId(place as u32), |cut| cut.edge(place))
    }

    /// The place of the port of an edge of the network.
    #[inline]
    fn place(&self, edge: EdgeId) -> usize {
        self.cut.as_ref().map_or(edge.0 as usize, |cut| cut.place(edge))
    }

    /// Moves a burst from each port that may have one into the network. Returns the number of
    /// frames.
    fn receive(&mut self, start: Time) -> usize {
        // Whoever never polls has learned it from the wait before.
        if self.idle != Idle::Sleep && self.ready.refresh() {
            self.commands.silence();
        }
        if start >= self.heartbeat_at {
            self.heartbeat_at = start.saturating_add(HEARTBEAT);
            (0..HEARTBEAT_PORTS).for_each(|_| self.ready.suspect());
        }
        let (mut received, mut place) = (0, 0);
        while let Some(index) = self.ready.at(place) {
            let edge = self.edge(index);
            let Some(port) = &mut self.edges[index].port else {
                place += 1;
                continue;
            };
            let polled_at = self.clock.now();
            let result = port.rx_burst(polled_at, self.network.pool_mut(), &mut self.burst);
            let is_full = self.burst.is_full();
            if !self.burst.is_empty() {
                let stamp = stamp(polled_at, self.clock.now(), self.burst.len());
                received += self.burst.len();
                self.arrived.extend(self.burst.drain().map(|frame| (edge, frame)));
                self.network.observer_mut().1.0.set_now(stamp);
                self.network.push_burst(stamp, &mut self.arrived);
                // A burst that is not full has emptied the port; more of it is reported.
                let is_empty = self.idle == Idle::Sleep && !is_full;
                if !(is_empty && self.ready.found_nothing(place)) {
                    place += 1;
                }
            } else if !self.ready.found_nothing(place) {
                place += 1;
            }
            if let Err(error) = result {
                self.fail(index, &error);
            }
        }
        received
    }

    /// Sends the frames of packet-outs by their nodes. Returns true if a switch had something to
    /// do.
    fn inject(&mut self) -> bool {
        let mut had_work = false;
        for (node, control) in &self.switches {
            if let Some(frames) = control.take_injected() {
                // In a network queues are those of links.
                let frames = frames.into_iter().map(|(port, _, frame)| (port, frame));
                self.network.originate(self.clock.now(), *node, frames);
                had_work = true;
            }
        }
        had_work
    }

    /// Hands about `most` frames that are due to their ports, and to other workers. Returns true if
    /// there were any.
    fn release(&mut self, most: usize) -> bool {
        let (mut released, mut has_sent) = (0, false);
        while released < most {
            let now = self.clock.now();
            let mut due = std::mem::take(&mut self.due);
            self.tap().set_now(now);
            self.network.pop_burst(now, RELEASE, &mut due);
            let count = due.len();
            due.drain(..).for_each(|delivery| self.queue(delivery));
            self.due = due;
            // First what others wait for: a port may take a while.
            has_sent |= self.send_mail();
            self.send(now);
            released += count;
            if count < RELEASE {
                break;
            }
        }
        released > 0 || has_sent
    }

    /// Puts a frame that is due into the backlog of its port.
    fn queue(&mut self, mut delivery: Delivery) {
        let index = self.place(delivery.edge);
        let edge = &mut self.edges[index];
        if !edge.takes_whole && !self.network.pool_mut().copy_out(&mut delivery.frame) {
            edge.counters.tx_no_memory += 1;
            self.network.pool_mut().free(delivery.frame);
            return;
        }
        let backlog = match &mut edge.backlog {
            Some(backlog) => backlog,
            none => {
                self.waiting.push(index);
                none.insert(self.spare.pop().unwrap_or_else(Backlog::new))
            }
        };
        if backlog.frames.len() < BACKLOG_MAX {
            backlog.frames.push_back(delivery.frame);
            backlog.due.push_back(delivery.at);
        } else {
            edge.counters.tx_full += 1;
            self.network.pool_mut().free(delivery.frame);
        }
    }

    /// Offers each backlog to its port.
    fn send(&mut self, mut now: Time) {
        let mut place = 0;
        while let Some(&index) = self.waiting.get(place) {
            let edge = &mut self.edges[index];
            let Some(backlog) = &mut edge.backlog else {
                unreachable!("edge {index} waits without a backlog")
            };
            let pool = self.network.pool_mut();
            if self.policy.late == Late::Drop {
                let dropped = backlog.drop_late(now, &self.policy, &mut edge.releases, &self.clock, pool);
                edge.counters.tx_late += dropped;
            }
            let offered = backlog.frames.len();
            let result = match &mut edge.port {
                Some(port) => port.tx_burst(now, pool, &mut backlog.frames),
                None => {
                    edge.counters.tx_down += backlog.frames.len() as u64;
                    backlog.frames.drain(..).for_each(|frame| pool.free(frame));
                    Ok(())
                }
            };
            let (from, taken) = (now, offered - backlog.frames.len());
            let near = edge.releases.near;
            now = self.clock.now();
            let step = Duration::from_ps(now.since(from).as_ps().checked_div(taken as u64).unwrap_or(0));
            let mut at = from;
            for due in backlog.due.drain(..taken) {
                edge.releases.record(due, at, &self.policy, &self.clock);
                at = at.saturating_add(step);
            }
            self.pulse.released += taken as u64;
            self.pulse.near += edge.releases.near - near;
            match result {
                Err(error) => self.fail(index, &error),
                Ok(()) if backlog.frames.is_empty() => {
                    self.spare.extend(edge.backlog.take());
                    self.waiting.swap_remove(place);
                }
                // It took a full burst and may take more.
                Ok(()) if taken >= BURST => {}
                Ok(()) => place += 1,
            }
        }
    }

    /// Removes a port that has failed; the others go on.
    fn fail(&mut self, index: usize, error: &PortError) {
        let edge = &mut self.edges[index];
        if let Some(mut port) = edge.port.take() {
            edge.counters += port.counters();
            edge.failure = Some(error.to_string());
            self.ready.remove(index, port.fd());
            self.open_ports.fail();
            self.notice.send(&format!("{error}; continuing without this port"));
        }
        self.update_must_poll();
    }

    /// Shows programs the carriers of links that went up or down. Returns true if there were any.
    fn show_carriers(&mut self) -> bool {
        let changed = self.network.take_state_changes();
        changed.iter().for_each(|link| self.show_carrier(*link));
        !changed.is_empty()
    }

    /// Shows the programs at the ends of a link whether it has a carrier.
    #[cold]
    fn show_carrier(&mut self, link: LinkId) {
        let is_on = self.network.has_carrier(link);
        let edges =
            self.network.edges_of(link).filter(|edge| self.cut.as_ref().is_none_or(|cut| cut.has(*edge)));
        for edge in edges.collect::<Vec<EdgeId>>() {
            let place = self.place(edge);
            let edge = &mut self.edges[place];
            let is_shown = edge.port.as_mut().is_none_or(|port| port.show_carrier(is_on));
            if !is_shown && !std::mem::replace(&mut self.keeps_carrier, true) {
                let (link, port) = (&self.network.topology().link(link).name, &edge.name);
                self.notice.send(&format!(
                    "link {link} is down and {port} keeps its carrier: only TAP interfaces can lose it"
                ));
            }
        }
    }

    /// Answers commands. Returns true if there were any.
    fn answer_commands(&mut self) -> bool {
        if !self.commands.has_commands() {
            return false;
        }
        while let Some(command) = self.commands.next() {
            // The sender may have gone; then the answer is dropped.
            match command {
                Command::Snapshot { answer } => {
                    let _ = answer.try_send(self.snapshot());
                }
                Command::Change { when, changes, answer } => {
                    let _ = answer.try_send(self.change(when, changes));
                }
                Command::Rearrange { change, answer } => {
                    let _ = answer.try_send(self.rearrange(change));
                }
                Command::Traces { group, action, at, answer } => {
                    let now = self.clock.now();
                    match at {
                        None => self.network.start_or_stop_group(now, group, action),
                        Some(at) => self.network.schedule_traces(TraceEvent { at, group, action }),
                    }
                    let _ = answer.try_send(at.unwrap_or(now));
                }
                Command::Switch { node, answer } => {
                    let (switch, now) = (self.network.switch(&node), self.clock.now());
                    let _ = answer.try_send(switch.map(|switch| SwitchCopy::of(switch, now)));
                }
                Command::Pulse { answer } => {
                    let _ = answer.try_send(Pulse { at: self.clock.now(), ..self.pulse });
                }
                Command::Sample { answer } => {
                    let _ = answer.try_send(self.sample());
                }
                Command::StartCapture { order, answer } => {
                    self.tap().start(order);
                    let _ = answer.try_send(self.clock.now());
                }
                Command::EndCapture { id, answer } => {
                    let now = self.clock.now();
                    self.tap().set_now(now);
                    self.network.advance(now);
                    self.tap().end(id);
                    let _ = answer.try_send(());
                }
            }
        }
        true
    }

    fn sample(&mut self) -> Sample {
        let at = self.clock.now();
        self.tap().set_now(at);
        let mut pipes = sample::pipes(&mut self.network, at);
        let interfaces = self.network.topology().hosts().flat_map(|(_, host)| &host.interfaces);
        let is_own = |edge: &u32| self.cut.as_ref().is_none_or(|cut| cut.has(EdgeId(*edge)));
        let own = interfaces.zip(0..).filter(|(_, edge)| is_own(edge)).map(|(interface, _)| interface);
        for (interface, edge) in own.zip(&mut self.edges) {
            // The pipe that leads to end 1 is the first of the two.
            let pipe = &mut pipes[2 * interface.link.0 as usize + 1 - interface.end];
            (pipe.late, pipe.lateness_max) = (edge.releases.late, edge.releases.take_max());
        }
        for (PipeId { link, index }, releases) in
            self.cut.iter_mut().flat_map(|cut| &mut cut.inbound.releases)
        {
            let pipe = &mut pipes[2 * link.0 as usize + *index];
            (pipe.late, pipe.lateness_max) = (releases.late, releases.take_max());
        }
        let flows = self.network.observer_mut().1.1.as_mut().map(|table| table.sample(at));
        Sample { at, pipes, flows: flows.unwrap_or_default() }
    }

    fn change(&mut self, when: When, changes: Vec<LinkChange>) -> Result<Time, Refusal> {
        let now = self.clock.now();
        match when {
            When::At(at) if at < now => Err(Refusal::Past { now }),
            When::At(at) | When::Agreed(at) => {
                self.network.apply_at(at, changes).map_err(Refusal::Full)?;
                Ok(at)
            }
            When::Now => {
                for (link, direction, change) in changes {
                    self.network.apply(now, link, direction, &change);
                }
                Ok(now)
            }
        }
    }

    /// Changes the topology: moves what stays, and returns the rest.
    fn rearrange(&mut self, mut change: Box<WorkerChange>) -> Box<WorkerChange> {
        let network = change.network.take().expect("a change has a network");
        // The former place of each edge that keeps its port.
        let stays = |(port, former): (&Option<_>, &Option<EdgeId>)| match port {
            Some(_) => None,
            None => former.map(|former| self.place(former)),
        };
        let edges_from = network.edges_from();
        let former = |place: usize| change.cut.as_ref().map_or(place, |cut| cut.edges[place].0 as usize);
        let former = (0..change.ports.len()).map(|place| &edges_from[former(place)]);
        let from: Vec<Option<usize>> = change.ports.iter().zip(former).map(stays).collect();
        let now = self.clock.now();
        let pipes = network.pipes_from().to_vec();
        self.send_all_mail();
        change.network = Some(self.network.rearrange(now, network));
        if let (Some(cut), Some(ChangedCut { partition, edges })) = (&mut self.cut, change.cut.take()) {
            cut.follow(self.network.topology(), &partition, edges, &pipes);
            self.network.cut(&partition, cut.post.part());
        }
        self.tap().rearrange(&pipes);
        change.former.extend(self.edges.drain(..).map(Some));
        let count = from.len();
        for (port, former) in change.ports.drain(..).zip(&from) {
            let edge = match (port, former) {
                (Some(port), _) => EdgePort::new(port, count, L::TRACKS_FRAMES),
                (None, Some(former)) => change.former[*former].take().expect("an edge stays once"),
                (None, None) => unreachable!("a new edge has a port"),
            };
            change.edges.push(edge);
        }
        std::mem::swap(&mut self.edges, &mut change.edges);
        let opened = from.iter().filter(|former| former.is_none()).count();
        self.open_ports.add(opened);
        for edge in change.former.iter_mut().flatten() {
            self.retire(edge);
        }
        let edges = self.edges.iter().enumerate();
        self.waiting.clear();
        self.waiting.extend(edges.filter(|(_, edge)| edge.backlog.is_some()).map(|(index, _)| index));
        let fds: Vec<_> = self.edges.iter().map(EdgePort::fd).collect();
        let removed: Vec<_> = change.former.iter().map(|edge| edge.as_ref().and_then(EdgePort::fd)).collect();
        self.ready.rearrange(&from, &fds, &removed, self.idle);
        self.update_must_poll();
        let all: Vec<Edge> = self.network.edges().collect();
        let topology = self.network.topology();
        let link = |Edge { node, interface }: Edge| topology.node(node).interfaces[interface].link;
        let opened = from.iter().enumerate().filter(|(_, former)| former.is_none());
        let links: Vec<LinkId> = opened.map(|(place, _)| link(all[self.edge(place).0 as usize])).collect();
        for link in links {
            if !self.network.has_carrier(link) {
                self.show_carrier(link);
            }
        }
        change
    }

    /// Counts what a port that is removed has done, and drops what waits for it.
    fn retire(&mut self, edge: &mut EdgePort) {
        if let Some(mut backlog) = edge.backlog.take() {
            edge.counters.tx_down += backlog.frames.len() as u64;
            backlog.due.clear();
            backlog.frames.drain(..).for_each(|frame| self.network.pool_mut().free(frame));
            self.spare.push(backlog);
        }
        if let Some(port) = &mut edge.port {
            edge.counters += port.counters();
            self.open_ports.remove();
        }
        self.removed_ports += edge.counters;
    }

    /// Copies the state of the network and of this worker.
    pub(crate) fn snapshot(&mut self) -> Snapshot {
        let now = self.clock.now();
        // Changes that are due have happened in a snapshot.
        self.tap().set_now(now);
        self.network.advance(now);
        let links = self.network.topology().links.len();
        let queues: Vec<QueueState> =
            (0..2 * links).map(|pipe| self.network.queue(LinkId((pipe / 2) as u32), pipe % 2)).collect();
        let network = &self.network;
        let links = (0..links).map(|link| LinkId(link as u32));
        let pipes = links.flat_map(|link| [0, 1].map(|index| (link, index)));
        // In the order of pipes, as tracks are.
        let mut starts = network.trace_starts();
        let worker = WorkerState {
            core: self.core,
            edges: self.edges.len(),
            busy: self.pulse.busy,
            cpu: self.clock.cpu(),
            sleeps: self.sleeps,
            stalled: self.clock.stalled,
            preempted: self.clock.preempted,
            pool_reserved: network.pool().reserved(),
            passed_on: network.crossed()[0],
            handover: self.cut.as_ref().map_or(Duration::ZERO, |cut| cut.spent),
        };
        Snapshot {
            at: now,
            accounting: network.accounting(),
            pipes: pipes
                .zip(queues)
                .map(|((link, index), queue)| {
                    let pipe = network.pipe(link, index);
                    let traces = network.topology().tracks_of(link, index).len();
                    PipeState {
                        spec: pipe.spec(),
                        counters: pipe.counters(),
                        held: pipe.held(),
                        queue,
                        delays: pipe.delays().cloned(),
                        trace_starts: starts.by_ref().take(traces).collect(),
                    }
                })
                .collect(),
            crossed: network.crossed(),
            handovers: self.cut.as_mut().map_or_else(Vec::new, |cut| cut.inbound.settled().to_vec()),
            edges: self.edges.iter_mut().map(EdgePort::snapshot).collect(),
            removed_ports: self.removed_ports,
            workers: vec![worker],
            packet_log: None,
            policy: self.policy,
            user_space: None,
        }
    }

    /// Returns memory that no frame uses to the system, on a thread of its own: this takes long
    /// where many frames were held.
    fn release_memory(&mut self) {
        self.has_released = true;
        let unused = self.network.pool_mut().take_unused();
        if !unused.is_empty() {
            let release = move || {
                set_low_priority();
                drop(unused);
                release_heap();
            };
            // Without a thread it is dropped here.
            let _ = std::thread::Builder::new().name("fastpath-free".to_owned()).spawn(release);
        }
    }

    /// Waits after an iteration in which nothing moved.
    fn wait(&mut self, now: Time) {
        if !self.has_released && now.since(self.moved_at) >= RELEASED_AFTER {
            self.release_memory();
        }
        let Some(until) = self.sleep_until(now) else {
            if self.idle == Idle::Sleep {
                // What has arrived must not wait for what is due. Reading the clock lets time pass.
                if self.ready.refresh() {
                    self.commands.silence();
                }
                self.clock.after_long_work();
                return;
            }
            std::hint::spin_loop();
            return;
        };
        if !self.cut.as_ref().is_none_or(|cut| cut.post.fall_asleep(until)) {
            // Whoever never polls learns here which ports may have frames.
            if self.idle == Idle::Sleep && self.ready.refresh() {
                self.commands.silence();
            }
            return;
        }
        self.sleeps += 1;
        let timeout = until.since(now).to_std();
        let (is_woken, is_ringing) = match self.idle {
            Idle::Sleep => self.ready.wait_and_refresh(timeout),
            _ => (self.ready.wait(timeout), true),
        };
        if let Some(cut) = &self.cut {
            cut.post.wake_up();
        }
        let now = self.clock.after_sleep(until);
        if is_woken && is_ringing {
            self.commands.silence();
        }
        if !is_woken {
            self.sleep_margin.learn(now.since(until));
        }
    }

    /// Returns when the sleep must end; `None` to spin.
    fn sleep_until(&self, now: Time) -> Option<Time> {
        let margin = match self.idle {
            Idle::Busy => return None,
            Idle::Save if now.since(self.moved_at) < LINGER => return None,
            Idle::Save => self.sleep_margin.get(),
            Idle::Sleep => Duration::ZERO,
        };
        let ports =
            self.ready.always().iter().filter_map(|&index| self.edges[index as usize].port.as_deref());
        let handover = self.network.next_handover();
        let due = ports.filter_map(Port::next_at).chain(self.network.next_at()).chain(handover).min();
        let longest = now.saturating_add(if self.must_poll || !self.waiting.is_empty() {
            POLL_INTERVAL
        } else {
            HEARTBEAT
        });
        let until = due.map_or(longest, |at| at.saturating_sub(margin).min(longest));
        (until > now).then_some(until)
    }

    fn update_must_poll(&mut self) {
        let has_no_fd = |edge: &EdgePort| edge.port.as_ref().is_some_and(|port| port.fd().is_none());
        self.must_poll = self.edges.iter().any(has_no_fd) || self.ready.has_refused();
    }
}

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;
