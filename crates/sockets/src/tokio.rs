//! tokio's paused time, advanced by the network: sockets for programs whose timers are tokio's
//! (`#[tokio::test(start_paused = true)]`).
//!
//! The timers of tokio are whole milliseconds, rounded up. So a task sees a datagram at most 1 ms
//! after its arrival; the time of arrival in the datagram is exact. What a task sends leaves at the
//! time that tokio shows.

use crate::{BindError, Datagram, Event, SendError, SocketId, VirtualNetwork};
use fastpath_units::{Duration, Time};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use tokio::sync::Notify;
use tokio::time::Instant;

/// A network on tokio's clock. Clones are the same one.
#[derive(Clone)]
pub struct TokioNetwork(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Something was sent: the next event may be earlier.
    changed: Notify,
    zero: Instant,
}

struct State {
    network: VirtualNetwork,
    readers: BTreeMap<SocketId, Waker>,
}

impl State {
    /// Moves the network to the time of tokio's clock.
    fn catch_up(&mut self, zero: Instant) {
        let now = Time::ZERO + Duration::from_ns(zero.elapsed().as_nanos() as u64);
        // The clock of tokio does not run back.
        let _ = self.network.advance(now.max(self.network.now()));
        while let Some(event) = self.network.next_event() {
            if let Event::Arrived { socket } = event
                && let Some(reader) = self.readers.remove(&socket)
            {
                reader.wake();
            }
        }
    }
}

/// A UDP socket of a [`TokioNetwork`]. It is closed when it is dropped.
pub struct TokioSocket {
    shared: Arc<Shared>,
    id: SocketId,
}

impl TokioNetwork {
    /// Starts a network at the time that tokio shows. Its time must be paused
    /// ([`tokio::time::pause`]), or the network runs in real time.
    ///
    /// # Panics
    /// There is no runtime of tokio.
    pub fn start(network: VirtualNetwork) -> TokioNetwork {
        let state = Mutex::new(State { network, readers: BTreeMap::new() });
        let shared = Arc::new(Shared { state, changed: Notify::new(), zero: Instant::now() });
        let driven = Arc::downgrade(&shared);
        tokio::spawn(async move {
            while let Some(shared) = driven.upgrade() {
                let next = {
                    let mut state = shared.lock();
                    state.catch_up(shared.zero);
                    state.network.next_at()
                };
                let changed = shared.changed.notified();
                match next {
                    Some(at) => {
                        let at = shared.zero + std::time::Duration::from_nanos(at.as_ps().div_ceil(1000));
                        let _ = tokio::time::timeout_at(at, changed).await;
                    }
                    None => changed.await,
                }
            }
        });
        TokioNetwork(shared)
    }

    /// Binds a socket to a port of a host; port 0: one that is free.
    ///
    /// # Errors
    /// See [`BindError`].
    pub fn bind(&self, host: &str, port: u16) -> Result<TokioSocket, BindError> {
        let id = self.with_network(|network| network.bind(host, port))?;
        Ok(TokioSocket { shared: Arc::clone(&self.0), id })
    }

    /// Calls `with` with the network, at the time that tokio shows.
    pub fn with_network<R>(&self, with: impl FnOnce(&mut VirtualNetwork) -> R) -> R {
        let mut state = self.0.lock();
        state.catch_up(self.0.zero);
        let result = with(&mut state.network);
        self.0.changed.notify_one();
        result
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TokioSocket {
    /// Returns the address by which others reach it.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.lock().network.address(self.id)
    }

    /// Sends a datagram now.
    ///
    /// # Errors
    /// See [`SendError`].
    pub fn send_to(&self, payload: &[u8], to: SocketAddr) -> Result<(), SendError> {
        let mut state = self.shared.lock();
        state.catch_up(self.shared.zero);
        let sent = state.network.send(self.id, to, payload);
        self.shared.changed.notify_one();
        sent
    }

    /// Waits for a datagram.
    pub async fn receive(&self) -> Datagram {
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            match state.network.receive(self.id) {
                Some(datagram) => Poll::Ready(datagram),
                None => {
                    state.readers.insert(self.id, cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Drop for TokioSocket {
    fn drop(&mut self) {
        self.shared.lock().network.close(self.id);
    }
}
