//! A runtime of futures whose clock is a [`VirtualNetwork`]: when no task can go on, time moves
//! to the next event of the network.
//!
//! ```text
//!   block_on ─▶ polls tasks until none is ready ─▶ advance(next_at) ─▶ wakes who waited ─┐
//!                      ▲                                                                 │
//!                      └─────────────────────────────────────────────────────────────────┘
//! ```
//!
//! One thread runs everything, in the order in which tasks were woken. So a run is a function of
//! the seed and the programs.

use crate::{Datagram, Event, SocketId, VirtualNetwork};
use fastpath_units::{Duration, Time};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;
use thiserror::Error;

/// Polls at one instant, after which a program is taken not to let time pass.
const POLLS_MAX: u64 = 1_000_000;

/// Why a run came to no end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Stalled {
    /// The program waits, and nothing is on its way: no packet and no timer.
    #[error("nothing happens after {at}, and the program waits for it")]
    NothingHappens {
        /// The time of the last event.
        at: Time,
    },
    /// Tasks wake one another without an end, so that time cannot move.
    #[error("time stands at {at}: tasks were polled {POLLS_MAX} times there, the last one was task {task}")]
    TimeStands {
        /// The time at which it stands.
        at: Time,
        /// The number of a task, in the order of [`VirtualRuntime::spawn`] from 1; 0 is the future
        /// of [`VirtualRuntime::block_on`].
        task: usize,
    },
}

type Background = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The runtime. Clones are the same one.
#[derive(Clone)]
pub struct VirtualRuntime(Arc<RuntimeCore>);

struct RuntimeCore {
    state: Mutex<State>,
    tasks: Mutex<Vec<Option<Background>>>,
    /// Tasks that were woken, in order.
    ready: Mutex<VecDeque<usize>>,
    /// The instant of time 0.
    zero: Instant,
}

struct State {
    network: VirtualNetwork,
    readers: BTreeMap<SocketId, Waker>,
    sleepers: BTreeMap<u64, Waker>,
    timers: u64,
}

struct TaskWaker {
    shared: Arc<RuntimeCore>,
    task: usize,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        lock(&self.shared.ready).push_back(self.task);
    }
}

impl fmt::Debug for VirtualRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualRuntime").field("now", &self.now()).finish_non_exhaustive()
    }
}

impl VirtualRuntime {
    /// Creates a runtime on a network.
    pub fn new(network: VirtualNetwork) -> VirtualRuntime {
        let state = State { network, readers: BTreeMap::new(), sleepers: BTreeMap::new(), timers: 0 };
        VirtualRuntime(Arc::new(RuntimeCore {
            state: Mutex::new(state),
            // The first is that of `block_on`.
            tasks: Mutex::new(vec![None]),
            ready: Mutex::default(),
            zero: Instant::now(),
        }))
    }

    /// Calls `with` with the network: to bind sockets, change links, read counters.
    pub fn with_network<R>(&self, with: impl FnOnce(&mut VirtualNetwork) -> R) -> R {
        with(&mut lock(&self.0.state).network)
    }

    /// Returns the time.
    pub fn now(&self) -> Time {
        lock(&self.0.state).network.now()
    }

    /// Returns the time as an `Instant`, for stacks that count in them.
    pub fn instant(&self) -> Instant {
        let now = self.now();
        self.0.zero + std::time::Duration::from_nanos(now.as_ps() / 1000)
    }

    /// Returns the time of an `Instant`; an earlier one than time 0 counts as 0.
    pub fn time_of(&self, instant: Instant) -> Time {
        let since = instant.saturating_duration_since(self.0.zero);
        Time::ZERO + Duration::from_ns(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX / 1000))
    }

    /// Runs a future in the background, until it is complete or the last clone of the runtime is
    /// gone.
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.0.tasks);
        tasks.push(Some(Box::pin(future)));
        lock(&self.0.ready).push_back(tasks.len() - 1);
    }

    /// Waits until `at`.
    pub async fn sleep_until(&self, at: Time) {
        let mut key = None;
        poll_fn(|cx| self.poll_until(at, &mut key, cx)).await;
    }

    /// Waits for `span`.
    pub async fn sleep(&self, span: Duration) {
        self.sleep_until(self.now().saturating_add(span)).await;
    }

    /// Waits for a datagram of a socket.
    pub async fn receive(&self, socket: SocketId) -> Datagram {
        poll_fn(|cx| self.poll_receive(socket, cx)).await
    }

    /// Returns the next datagram of a socket, or wakes the task of `cx` when there is one.
    pub fn poll_receive(&self, socket: SocketId, cx: &Context<'_>) -> Poll<Datagram> {
        let mut state = lock(&self.0.state);
        match state.network.receive(socket) {
            Some(datagram) => Poll::Ready(datagram),
            None => {
                state.readers.insert(socket, cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Is ready from `at` on; before it wakes the task of `cx` then. `key` belongs to one waiting,
    /// and is `None` at its beginning.
    pub fn poll_until(&self, at: Time, key: &mut Option<u64>, cx: &Context<'_>) -> Poll<()> {
        let mut state = lock(&self.0.state);
        if state.network.now() >= at {
            if let Some(key) = key.take() {
                state.sleepers.remove(&key);
            }
            return Poll::Ready(());
        }
        let key = *key.get_or_insert_with(|| {
            state.timers += 1;
            let key = state.timers;
            state.network.set_timer(at, key);
            key
        });
        state.sleepers.insert(key, cx.waker().clone());
        Poll::Pending
    }

    /// Ends a waiting of [`VirtualRuntime::poll_until`] before its time.
    pub fn forget(&self, key: &mut Option<u64>) {
        if let Some(key) = key.take() {
            let mut state = lock(&self.0.state);
            state.sleepers.remove(&key);
            state.network.cancel_timer(key);
        }
    }

    /// Runs a future to its end, and what was spawned meanwhile beside it.
    ///
    /// # Errors
    /// See [`Stalled`]. The runtime can go on with another future.
    pub fn block_on<F: Future>(&self, future: F) -> Result<F::Output, Stalled> {
        let mut future = pin!(future);
        lock(&self.0.ready).push_back(0);
        let mut polls = 0;
        loop {
            let Some(task) = lock(&self.0.ready).pop_front() else {
                self.advance()?;
                polls = 0;
                continue;
            };
            polls += 1;
            if polls > POLLS_MAX {
                return Err(Stalled::TimeStands { at: self.now(), task });
            }
            let waker = Waker::from(Arc::new(TaskWaker { shared: Arc::clone(&self.0), task }));
            let mut cx = Context::from_waker(&waker);
            if task == 0 {
                if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                    return Ok(output);
                }
                continue;
            }
            // The task is out of the list while it runs: it may spawn others.
            let Some(mut running) = lock(&self.0.tasks)[task].take() else { continue };
            if running.as_mut().poll(&mut cx).is_pending() {
                lock(&self.0.tasks)[task] = Some(running);
            }
        }
    }

    /// Moves time to the next event, and wakes who waits for it.
    fn advance(&self) -> Result<(), Stalled> {
        let mut state = lock(&self.0.state);
        let now = state.network.now();
        let at = state.network.next_at().ok_or(Stalled::NothingHappens { at: now })?;
        state.network.advance(at).expect("the next event is not over");
        let mut woken = Vec::new();
        while let Some(event) = state.network.next_event() {
            woken.extend(match event {
                Event::Arrived { socket } => state.readers.remove(&socket),
                Event::Timer { key } => state.sleepers.remove(&key),
                Event::Frame { .. } => None,
            });
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        Ok(())
    }
}

/// What another thread left behind when it panicked is still whole: no lock is held over a poll.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
