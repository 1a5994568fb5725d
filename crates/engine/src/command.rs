//! Commands sent to a worker by other threads, and their replies.

use crate::pulse::Pulse;
use crate::snapshot::Snapshot;
use crate::switch_report::SwitchCopy;
use crate::worker_change::WorkerChange;
use fastpath_net::capture::CaptureOrder;
use fastpath_net::sample::Sample;
use fastpath_net::{BelowLookahead, LinkChange, ScheduleFull};
use fastpath_spec::TraceAction;
use fastpath_sys::poll::Bell;
use fastpath_units::Time;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Commands that may wait for the worker.
const COMMANDS_MAX: usize = 16;

/// A request to the worker. The channel of an answer has room for one, so that answering never
/// blocks.
pub(crate) enum Command {
    /// Copies the state.
    Snapshot { answer: SyncSender<Snapshot> },
    /// Changes links, all at one instant. The answer is that instant.
    Change { when: When, changes: Vec<LinkChange>, answer: SyncSender<Result<Time, Refusal>> },
    /// Changes the topology. The answer is what is left of the change, to be freed.
    Rearrange { change: Box<WorkerChange>, answer: SyncSender<Box<WorkerChange>> },
    /// Starts or stops the traces of a group: at `at`, or when the worker reads the command.
    Traces { group: usize, action: TraceAction, at: Option<Time>, answer: SyncSender<Time> },
    /// Copies the tables of an OpenFlow node.
    Switch { node: String, answer: SyncSender<Option<SwitchCopy>> },
    /// Copies counters, queues and flows.
    Sample { answer: SyncSender<Sample> },
    /// Says how busy the worker is.
    Pulse { answer: SyncSender<Pulse> },
    /// Starts a capture when the worker reads the command. The answer is that instant.
    StartCapture { order: CaptureOrder, answer: SyncSender<Time> },
    /// Ends a capture.
    EndCapture { id: u64, answer: SyncSender<()> },
}

/// The instant at which links are changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    /// At the time at which the worker reads the command.
    Now,
    /// At this time; refused if it has passed.
    At(Time),
    /// At the time that all workers have agreed on; at once if it has passed, because the other
    /// workers have made the change.
    Agreed(Time),
}

/// Why a change of links was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// The time has passed.
    Past {
        /// The current time.
        now: Time,
    },
    /// Too many changes wait for their time.
    Full(ScheduleFull),
    /// A link where the network is cut would become too short.
    BelowLookahead(BelowLookahead),
}

/// The sending side of a worker's command queue, with the stop flag and the doorbell that wakes the
/// worker.
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

    /// Returns a snapshot; `None` if the worker has ended.
    pub(crate) fn snapshot(&self) -> Option<Snapshot> {
        self.ask(|answer| Command::Snapshot { answer })
    }

    /// Changes links, all at one instant; `None` if the worker has ended.
    pub(crate) fn change(&self, when: When, changes: Vec<LinkChange>) -> Option<Result<Time, Refusal>> {
        self.ask(|answer| Command::Change { when, changes, answer })
    }

    /// Changes the topology; `None` if the worker has ended.
    pub(crate) fn rearrange(&self, change: Box<WorkerChange>) -> Option<Box<WorkerChange>> {
        self.ask(|answer| Command::Rearrange { change, answer })
    }

    /// Starts or stops the traces of a group, at `at` or now; `None` if the worker has ended.
    pub(crate) fn traces(&self, group: usize, action: TraceAction, at: Option<Time>) -> Option<Time> {
        self.ask(|answer| Command::Traces { group, action, at, answer })
    }

    /// Copies the tables of an OpenFlow node; `None` if the worker does not run it, or has ended.
    pub(crate) fn switch(&self, node: &str) -> Option<SwitchCopy> {
        self.ask(|answer| Command::Switch { node: node.to_owned(), answer })?
    }

    /// Returns a sample; `None` if the worker has ended.
    pub(crate) fn sample(&self) -> Option<Sample> {
        self.ask(|answer| Command::Sample { answer })
    }

    /// Returns how busy the worker is; `None` if it has ended.
    pub(crate) fn pulse(&self) -> Option<Pulse> {
        self.ask(|answer| Command::Pulse { answer })
    }

    /// Starts a capture; `None` if the worker has ended.
    pub(crate) fn start_capture(&self, order: CaptureOrder) -> Option<Time> {
        self.ask(|answer| Command::StartCapture { order, answer })
    }

    /// Ends a capture after all frames up to now; `None` if the worker has ended.
    pub(crate) fn end_capture(&self, id: u64) -> Option<()> {
        self.ask(|answer| Command::EndCapture { id, answer })
    }

    fn ask<T>(&self, command: impl FnOnce(SyncSender<T>) -> Command) -> Option<T> {
        let (answer, answered) = sync_channel(1);
        self.commands.send(command(answer)).ok()?;
        self.shared.has_commands.store(true, Ordering::Release);
        self.shared.bell.ring();
        answered.recv().ok()
    }

    /// Tells the worker to end.
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
    /// Returns true once the worker must end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Acquire)
    }

    /// Returns true if there may be commands, and clears the flag.
    pub(crate) fn has_commands(&self) -> bool {
        // A load alone leaves the cache line shared.
        self.shared.has_commands.load(Ordering::Relaxed)
            && self.shared.has_commands.swap(false, Ordering::AcqRel)
    }

    /// Takes the oldest command.
    pub(crate) fn next(&self) -> Option<Command> {
        self.receiver.try_recv().ok()
    }

    /// Returns the descriptor that is readable while a command or the stop flag has not been seen.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.shared.bell.as_fd()
    }

    /// Returns what makes the doorbell ring.
    pub(crate) fn waker(&self) -> impl Fn() + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || shared.bell.ring()
    }

    /// Makes the doorbell unreadable until it rings again.
    pub(crate) fn silence(&self) {
        self.shared.bell.silence();
    }
}
