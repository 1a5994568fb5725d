//! The loop that turns: frames from ports into the network, frames that are due out of it.
//!
//! ```text
//!   port ──rx_burst──▶ stamp ──▶ Network::push            Network::pop ──▶ backlog ──tx_burst──▶ port
//!          (after looking: a stamp taken before              (what the port does not take now waits,
//!           would let frames out early)                       bounded; beyond that it is counted)
//! ```
//!
//! One worker is one thread that runs each frame to completion; it owns its network, frame pool and ports, so
//! nothing on this path locks or allocates after start. Requests from outside come as [`Command`]s, looked at
//! once a turn.

use crate::clock::Clock;
use crate::port::{BURST, Burst, Port, PortCounters, PortError};
use crate::sys::poll::{Bell, PollSet};
use crate::sys::thread::be_punctual;
use fastpath_link::{Change, Counters, PipeSpec, Tally};
use fastpath_net::{Conservation, Direction, EdgeId, Frame, LinkId, Network, Observer};
use fastpath_units::{Duration, Time};
use hdrhistogram::Histogram;
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Frames that wait at an edge while its port pushes back.
const BACKLOG_MAX: usize = 1024;
/// Frames released in a turn before ports are looked at again.
const RELEASE_MAX: usize = 4 * BURST;
/// After the last frame came or went, sleep is put off this long: traffic comes in flights.
const LINGER: Duration = Duration::from_us(50);
/// The longest sleep while a port has to be asked, having no descriptor to wait on.
const ASK_EVERY: Duration = Duration::from_us(200);
/// The longest sleep of all: a TAP that is deleted does not wake who waits for it (drivers/net/tun.c rings before it
/// marks the end, so the waiter sees nothing and sleeps on), but reading from it fails.
const HEARTBEAT: Duration = Duration::from_ms(500);
/// Commands that may wait for the worker.
const MAIL_MAX: usize = 16;

/// What the worker does when nothing is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Idle {
    /// Looks again at once: the most exact where it has a core to itself, which it takes whole.
    Busy,
    /// Sleeps until frames arrive or shortly before the next is due, then looks again and again.
    #[default]
    Save,
}

/// A request to the worker. Answers go to channels with room for one, so that answering never waits.
pub(crate) enum Command {
    /// Says how things stand.
    Look { answer: SyncSender<Snapshot> },
    /// Changes a link at the instant it is read.
    Change { link: LinkId, direction: Direction, change: Box<Change>, answer: SyncSender<()> },
}

/// How things stand, copied at one instant.
pub(crate) struct Snapshot {
    pub(crate) at: Time,
    pub(crate) conservation: Conservation,
    /// Two per link: forward, backward.
    pub(crate) pipes: Vec<PipeState>,
    /// One per edge.
    pub(crate) edges: Vec<EdgeState>,
}

pub(crate) struct PipeState {
    pub(crate) spec: PipeSpec,
    pub(crate) counters: Counters,
    pub(crate) held: Tally,
}

pub(crate) struct EdgeState {
    pub(crate) name: String,
    pub(crate) counters: PortCounters,
    pub(crate) waiting: usize,
    pub(crate) lateness: Histogram<u32>,
    pub(crate) failure: Option<String>,
}

/// The worker's letter box: commands, the stop sign, and the bell that wakes it.
#[derive(Clone)]
pub(crate) struct Mailbox {
    commands: SyncSender<Command>,
    shared: Arc<Shared>,
}

struct Shared {
    bell: Bell,
    has_mail: AtomicBool,
    stop: AtomicBool,
}

impl Mailbox {
    pub(crate) fn new() -> std::io::Result<(Mailbox, Inbox)> {
        let (commands, receiver) = sync_channel(MAIL_MAX);
        let shared = Arc::new(Shared {
            bell: Bell::new()?,
            has_mail: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        Ok((Mailbox { commands, shared: Arc::clone(&shared) }, Inbox { receiver, shared }))
    }

    /// How things stand; `None` if the worker has ended.
    pub(crate) fn look(&self) -> Option<Snapshot> {
        self.ask(|answer| Command::Look { answer })
    }

    /// Changes a link; `None` if the worker has ended.
    pub(crate) fn change(&self, link: LinkId, direction: Direction, change: Change) -> Option<()> {
        self.ask(|answer| Command::Change { link, direction, change: Box::new(change), answer })
    }

    fn ask<T>(&self, command: impl FnOnce(SyncSender<T>) -> Command) -> Option<T> {
        let (answer, answered) = sync_channel(1);
        self.commands.send(command(answer)).ok()?;
        self.shared.has_mail.store(true, Ordering::Release);
        self.shared.bell.ring();
        answered.recv().ok()
    }

    /// Asks the worker to end.
    pub(crate) fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.bell.ring();
    }
}

/// The worker's side of a [`Mailbox`].
pub(crate) struct Inbox {
    receiver: Receiver<Command>,
    shared: Arc<Shared>,
}

/// See the head of this file.
pub(crate) struct Worker<O> {
    clock: Clock,
    network: Network<O>,
    /// By [`EdgeId`].
    edges: Vec<EdgePort>,
    /// Edges with frames in their backlog.
    active: Vec<usize>,
    burst: Burst,
    inbox: Inbox,
    idle: Idle,
    poll: PollSet,
    slack: Slack,
    /// When a frame last came or went.
    moved_at: Time,
    notice: fn(&str),
}

/// An edge of the network and its port.
struct EdgePort {
    /// `None` once it has failed.
    port: Option<Box<dyn Port>>,
    name: String,
    failure: Option<String>,
    /// Of the port when it failed, and of what the worker itself drops.
    counters: PortCounters,
    backlog: VecDeque<Frame>,
    /// Nanoseconds from when a frame was due to when it was handed to the port.
    lateness: Histogram<u32>,
}

impl<O: Observer> Worker<O> {
    /// A worker for a network whose every edge has a port, in the order of the edges.
    pub(crate) fn new(
        clock: Clock,
        network: Network<O>,
        ports: Vec<Box<dyn Port>>,
        idle: Idle,
        inbox: Inbox,
        notice: fn(&str),
    ) -> Worker<O> {
        let active = Vec::with_capacity(ports.len());
        let edges = ports.into_iter().map(EdgePort::new).collect();
        let (burst, poll, slack) = (Burst::new(), PollSet::default(), Slack::default());
        let moved_at = clock.now();
        let mut worker =
            Worker { clock, network, edges, active, burst, inbox, idle, poll, slack, moved_at, notice };
        worker.watch_ports();
        worker
    }

    /// Works until it is stopped or every port has failed.
    pub(crate) fn run(&mut self) {
        // A spinning thread that goes before all others would keep its core from the very hosts it serves.
        if self.idle == Idle::Save {
            be_punctual();
        }
        while !self.inbox.shared.stop.load(Ordering::Acquire) && self.edges.iter().any(|e| e.port.is_some()) {
            let received = self.receive();
            let released = self.release();
            self.read_mail();
            if received || released {
                self.moved_at = self.clock.now();
            } else {
                self.wait();
            }
        }
    }

    /// Takes a burst from each port into the network. True if there was any.
    fn receive(&mut self) -> bool {
        let mut received = false;
        let mut looked_at = self.clock.now();
        for index in 0..self.edges.len() {
            let Some(port) = &mut self.edges[index].port else { continue };
            let result = port.rx_burst(looked_at, self.network.pool_mut(), &mut self.burst);
            if !self.burst.is_empty() {
                received = true;
                let now = self.clock.now();
                looked_at = now;
                for frame in self.burst.drain() {
                    self.network.push(now, EdgeId(index as u32), frame);
                }
            }
            if let Err(error) = result {
                self.fail(index, &error);
            }
        }
        received
    }

    /// Hands frames that are due to their ports. True if there were any.
    fn release(&mut self) -> bool {
        let mut released = 0;
        while released < RELEASE_MAX {
            let now = self.clock.now();
            let before = released;
            while released < before + BURST {
                let Some(delivery) = self.network.pop(now) else { break };
                released += 1;
                let edge = &mut self.edges[delivery.edge.0 as usize];
                edge.lateness.saturating_record(now.since(delivery.at).as_ns());
                if edge.backlog.is_empty() {
                    self.active.push(delivery.edge.0 as usize);
                }
                if edge.backlog.len() < BACKLOG_MAX {
                    edge.backlog.push_back(delivery.frame);
                } else {
                    edge.counters.tx_full += 1;
                    self.network.pool_mut().free(delivery.frame);
                }
            }
            self.send(now);
            if released < before + BURST {
                break;
            }
        }
        released > 0
    }

    /// Offers each backlog to its port.
    fn send(&mut self, now: Time) {
        let mut place = 0;
        while let Some(&index) = self.active.get(place) {
            let edge = &mut self.edges[index];
            let pool = self.network.pool_mut();
            let result = match &mut edge.port {
                Some(port) => port.tx_burst(now, pool, &mut edge.backlog),
                None => {
                    edge.counters.tx_down += edge.backlog.len() as u64;
                    edge.backlog.drain(..).for_each(|frame| pool.free(frame));
                    Ok(())
                }
            };
            match result {
                Err(error) => self.fail(index, &error),
                Ok(()) if edge.backlog.is_empty() => drop(self.active.swap_remove(place)),
                Ok(()) => place += 1,
            }
        }
    }

    /// Goes on without a port.
    fn fail(&mut self, index: usize, error: &PortError) {
        let edge = &mut self.edges[index];
        if let Some(mut port) = edge.port.take() {
            edge.counters += port.counters();
            edge.failure = Some(error.to_string());
            (self.notice)(&format!("{error}; going on without it"));
        }
        self.watch_ports();
    }

    fn read_mail(&mut self) {
        if !self.inbox.shared.has_mail.swap(false, Ordering::AcqRel) {
            return;
        }
        while let Ok(command) = self.inbox.receiver.try_recv() {
            // Whoever asked may have gone; then nobody wants the answer.
            match command {
                Command::Look { answer } => {
                    let _ = answer.try_send(self.look());
                }
                Command::Change { link, direction, change, answer } => {
                    self.network.apply(self.clock.now(), link, direction, &change);
                    let _ = answer.try_send(());
                }
            }
        }
    }

    /// How things stand.
    pub(crate) fn look(&mut self) -> Snapshot {
        let network = &self.network;
        let links = (0..network.topology().links.len()).map(|link| LinkId(link as u32));
        let pipes = links.flat_map(|link| [0, 1].map(|index| network.pipe(link, index)));
        Snapshot {
            at: self.clock.now(),
            conservation: network.conservation(),
            pipes: pipes
                .map(|pipe| PipeState { spec: pipe.spec(), counters: *pipe.counters(), held: pipe.held() })
                .collect(),
            edges: self.edges.iter_mut().map(EdgePort::look).collect(),
        }
    }

    /// Passes the time when nothing moved in this turn.
    fn wait(&mut self) {
        let now = self.clock.now();
        let Some(until) = self.sleep_until(now) else {
            std::hint::spin_loop();
            return;
        };
        if self.poll.wait(until.since(now).to_std()) {
            self.inbox.shared.bell.silence();
        } else {
            self.slack.learn(self.clock.now().since(until));
        }
    }

    /// Until when to sleep at most, if at all.
    fn sleep_until(&self, now: Time) -> Option<Time> {
        if self.idle == Idle::Busy || now.since(self.moved_at) < LINGER {
            return None;
        }
        let ports = || self.edges.iter().filter_map(|edge| edge.port.as_deref());
        let due = ports().filter_map(Port::next_at).chain(self.network.next_at()).min();
        let must_ask = !self.active.is_empty() || ports().any(|port| port.fd().is_none());
        let longest = now.saturating_add(if must_ask { ASK_EVERY } else { HEARTBEAT });
        let until = due.map_or(longest, |at| at.saturating_sub(self.slack.get()).min(longest));
        (until > now).then_some(until)
    }

    fn watch_ports(&mut self) {
        self.poll.clear();
        self.poll.add(self.inbox.shared.bell.as_fd());
        for port in self.edges.iter().filter_map(|edge| edge.port.as_deref()) {
            if let Some(fd) = port.fd() {
                self.poll.add(fd);
            }
        }
    }
}

impl EdgePort {
    fn new(port: Box<dyn Port>) -> EdgePort {
        EdgePort {
            name: port.name().to_owned(),
            port: Some(port),
            failure: None,
            counters: PortCounters::default(),
            backlog: VecDeque::with_capacity(BACKLOG_MAX),
            // 1 ns to 10 s, later ones counted as 10 s, to 1 %.
            lateness: Histogram::new_with_bounds(1, 10_000_000_000, 2).expect("bounds in order"),
        }
    }

    fn look(&mut self) -> EdgeState {
        let mut counters = self.counters;
        if let Some(port) = &mut self.port {
            counters += port.counters();
        }
        EdgeState {
            name: self.name.clone(),
            counters,
            waiting: self.backlog.len(),
            lateness: self.lateness.clone(),
            failure: self.failure.clone(),
        }
    }
}

/// How long before a deadline to wake up, learned from how late this machine's sleeps end.
#[derive(Clone, Copy, Debug)]
struct Slack(Duration);

impl Default for Slack {
    fn default() -> Slack {
        Slack(Duration::from_us(250))
    }
}

impl Slack {
    const LEAST: Duration = Duration::from_us(50);
    const MOST: Duration = Duration::from_ms(1);

    fn get(self) -> Duration {
        self.0
    }

    /// Follows the late end of sleeps: half-way up to a later one, a 64th down to an earlier one, which settles
    /// where about one sleep in 33 is later. A pause of the whole machine counts as [`Slack::MOST`].
    fn learn(&mut self, late: Duration) {
        let late = late.min(Slack::MOST);
        self.0 = if late > self.0 {
            self.0 + Duration::from_ps((late - self.0).as_ps() / 2)
        } else {
            self.0 - Duration::from_ps((self.0 - late).as_ps() / 64)
        };
        self.0 = self.0.max(Slack::LEAST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_follows_late_wake_ups_quickly_and_early_ones_slowly() {
        let mut slack = Slack::default();
        for _ in 0..20 {
            slack.learn(Duration::from_us(400));
        }
        assert!(slack.get() > Duration::from_us(399), "{:?}", slack.get());
        slack.learn(Duration::from_us(80));
        assert!(slack.get() > Duration::from_us(390), "{:?}", slack.get());
        for _ in 0..1000 {
            slack.learn(Duration::from_us(1));
        }
        assert_eq!(slack.get(), Slack::LEAST);
        for _ in 0..100 {
            slack.learn(Duration::from_secs(2));
        }
        assert!(slack.get() <= Slack::MOST);
    }
}
