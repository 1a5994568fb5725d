//! Letters to a worker from other threads, and its answers: how things stand, copied at one
//! instant.

use crate::lateness::{LatenessPolicy, Releases};
use crate::port::PortCounters;
use crate::sys::poll::Bell;
use crate::worker_clock::InterruptionTotals;
use fastpath_link::{Counters, Delays, PipeSpec, Volume};
use fastpath_net::{FrameAccounting, LinkChange, ScheduleFull};
use fastpath_units::{Duration, Time};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Commands that may wait for the worker.
const COMMANDS_MAX: usize = 16;

/// A request to the worker. Answers go to channels with room for one, so that answering never
/// waits.
pub(crate) enum Command {
    /// Says how things stand.
    Snapshot { answer: SyncSender<Snapshot> },
    /// Changes links, all at one instant. Answers when that is.
    Change { when: When, changes: Vec<LinkChange>, answer: SyncSender<Result<Time, Refusal>> },
    /// Starts the traces of a group at the instant it is read.
    Start { group: usize, answer: SyncSender<Time> },
}

/// The instant at which links are changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    /// When the command is read.
    Now,
    /// Then; refused if it is past.
    At(Time),
    /// Then, as other workers do; at once if it is past, for they have done it.
    Agreed(Time),
}

/// Why links are not changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// The time is past.
    Past {
        /// What time it is.
        now: Time,
    },
    /// Too many changes wait for their time.
    Full(ScheduleFull),
}

/// How things stand, copied at one instant.
pub(crate) struct Snapshot {
    pub(crate) at: Time,
    pub(crate) conservation: FrameAccounting,
    /// Two per link: forward, backward.
    pub(crate) pipes: Vec<PipeState>,
    /// One per edge.
    pub(crate) edges: Vec<EdgeState>,
    pub(crate) workers: Vec<WorkerState>,
    pub(crate) policy: LatenessPolicy,
}

pub(crate) struct PipeState {
    pub(crate) spec: PipeSpec,
    pub(crate) counters: Counters,
    pub(crate) held: Volume,
    /// Where there is jitter. What is made of it is worked out by who asks, and keeps no worker
    /// from its work.
    pub(crate) delays: Option<Delays>,
    /// When each of its traces starts or has started, in their order; `None`: it waits for a packet
    /// or a command.
    pub(crate) trace_starts: Vec<Option<Time>>,
}

pub(crate) struct EdgeState {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) counters: PortCounters,
    pub(crate) waiting: usize,
    pub(crate) releases: Releases,
    pub(crate) failure: Option<String>,
}

/// What a worker knows of itself.
pub(crate) struct WorkerState {
    /// The core it is bound to.
    pub(crate) core: Option<u32>,
    pub(crate) edges: usize,
    /// In turns that moved frames.
    pub(crate) busy: Duration,
    pub(crate) sleeps: u64,
    pub(crate) stalled: InterruptionTotals,
    pub(crate) preempted: InterruptionTotals,
    /// Bytes of the frame pool.
    pub(crate) pool_reserved: usize,
}

/// The worker's letter box: commands, the stop sign, and the bell that wakes it.
pub(crate) struct CommandSender {
    commands: SyncSender<Command>,
    shared: Arc<Shared>,
}

struct Shared {
    bell: Bell,
    has_commands: AtomicBool,
    stop: AtomicBool,
}

impl CommandSender {
    pub(crate) fn new() -> std::io::Result<(CommandSender, CommandReceiver)> {
        let (commands, receiver) = sync_channel(COMMANDS_MAX);
        let shared = Arc::new(Shared {
            bell: Bell::new()?,
            has_commands: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        Ok((CommandSender { commands, shared: Arc::clone(&shared) }, CommandReceiver { receiver, shared }))
    }

    /// How things stand; `None` if the worker has ended.
    pub(crate) fn snapshot(&self) -> Option<Snapshot> {
        self.ask(|answer| Command::Snapshot { answer })
    }

    /// Changes links, all at one instant; `None` if the worker has ended.
    pub(crate) fn change(&self, when: When, changes: Vec<LinkChange>) -> Option<Result<Time, Refusal>> {
        self.ask(|answer| Command::Change { when, changes, answer })
    }

    /// Starts the traces of a group; `None` if the worker has ended.
    pub(crate) fn start(&self, group: usize) -> Option<Time> {
        self.ask(|answer| Command::Start { group, answer })
    }

    fn ask<T>(&self, command: impl FnOnce(SyncSender<T>) -> Command) -> Option<T> {
        let (answer, answered) = sync_channel(1);
        self.commands.send(command(answer)).ok()?;
        self.shared.has_commands.store(true, Ordering::Release);
        self.shared.bell.ring();
        answered.recv().ok()
    }

    /// Asks the worker to end.
    pub(crate) fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.bell.ring();
    }
}

/// The worker's side of a [`CommandSender`].
pub(crate) struct CommandReceiver {
    receiver: Receiver<Command>,
    shared: Arc<Shared>,
}

impl CommandReceiver {
    /// True once the worker is to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Acquire)
    }

    /// True if there may be commands, once.
    pub(crate) fn has_commands(&self) -> bool {
        // A load alone leaves the line of memory shared.
        self.shared.has_commands.load(Ordering::Relaxed)
            && self.shared.has_commands.swap(false, Ordering::AcqRel)
    }

    /// The oldest command.
    pub(crate) fn next(&self) -> Option<Command> {
        self.receiver.try_recv().ok()
    }

    /// Becomes readable when there is something to read here.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.shared.bell.as_fd()
    }

    /// Lets the bell ring anew.
    pub(crate) fn silence(&self) {
        self.shared.bell.silence();
    }
}
