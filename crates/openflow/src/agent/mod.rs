//! The agent: controllers on one side, a running switch on the other.
//!
//! ```text
//!  controllers ═ TCP, TLS ═▶ Connection ─ batch of messages ─▶ requests, statistics ─▶ Control ─▶ (data path)
//!              ◀═ bounded output ═════════ replies ◀───────────┘        packet-ins ◀──┘
//!              ◀═ when there is room ══ AsyncMessages: flow-removed, port-status
//! ```
//!
//! One thread serves all connections, in turns of at most a batch each, with sockets that never
//! block; it also runs what a switch does by itself: flows expire, links change. No packet passes
//! here that does not concern controllers.
//!
//! Read first: `connection.rs`, then `requests.rs`.

mod address;
mod async_messages;
mod connection;
mod event;
mod event_loop;
mod features;
mod requests;
mod standalone;
mod statistics;
mod stream;
mod switch_state;
mod tls;

pub use address::{Listen, ParseAddressError, Security, Target};
pub use switch_state::PortInfo;
pub use tls::{TlsError, TlsFiles};

use event_loop::{EventLoop, WAKE};
use fastpath_engine::Notice;
use fastpath_engine::switching::{Control, LinkWatch};
use mio::{Poll, Waker};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// What the switch does while none of the controllers it dials can be reached (§6.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FailMode {
    /// Goes on with the flows it has.
    #[default]
    Secure,
    /// Learns addresses and forwards by them, until a controller is back.
    Standalone,
}

/// How to serve.
pub struct Options {
    /// What the switch is called.
    pub datapath_id: u64,
    /// Its ports by number.
    pub ports: BTreeMap<u32, PortInfo>,
    /// Where controllers may dial.
    pub listen: Vec<Listen>,
    /// Where to watch what is said to and by controllers.
    pub snoop: Vec<Listen>,
    /// Controllers to dial.
    pub connect: Vec<Target>,
    /// For connections with TLS.
    pub tls: Option<TlsFiles>,
    /// What to do without controllers.
    pub fail_mode: FailMode,
    /// After this much silence a controller is asked whether it is there; zero for never.
    pub probe_every: Duration,
    /// The longest wait before a controller is dialled again.
    pub backoff_max: Duration,
    /// The interfaces whose links are watched.
    pub links: Option<LinkWatch>,
    /// Told what happens by itself: controllers that come and go.
    pub notice: Notice,
}

/// Why an agent did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("{listen}: {source}")]
    Listen {
        /// Which.
        listen: Listen,
        /// Why.
        source: io::Error,
    },
    /// Keys and certificates do not do.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// They are missing.
    #[error("{address}: TLS needs a private key, a certificate and the authority's certificate")]
    NoTls {
        /// For what.
        address: String,
    },
    /// The operating system refused a thread or a descriptor.
    #[error("starting the agent: {0}")]
    System(#[from] io::Error),
}

/// What wakes an agent when packet-ins wait; made before the [`Control`] that needs it.
pub struct Doorbell {
    poll: Poll,
    waker: Arc<Waker>,
}

impl Doorbell {
    /// A doorbell.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new() -> io::Result<Doorbell> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE)?);
        Ok(Doorbell { poll, waker })
    }

    /// What rings it.
    pub fn ringer(&self) -> impl Fn() + Send + Sync + 'static {
        let waker = Arc::clone(&self.waker);
        // It fails when the agent has gone.
        move || drop(waker.wake())
    }
}

/// An agent that runs; it ends when this is dropped.
#[derive(Debug)]
pub struct Agent {
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    waker: Arc<Waker>,
    listening: Vec<SocketAddr>,
}

impl Agent {
    /// Serves controllers from now on.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(control: &Control, doorbell: Doorbell, options: Options) -> Result<Agent, StartError> {
        let stop = Arc::new(AtomicBool::new(false));
        let waker = Arc::clone(&doorbell.waker);
        let mut event_loop =
            EventLoop::new(control.clone(), doorbell.poll, options, Arc::clone(&stop), Arc::clone(&waker))?;
        let listening = event_loop.listening()?;
        let thread =
            std::thread::Builder::new().name("fastpath-agent".to_owned()).spawn(move || event_loop.run())?;
        Ok(Agent { thread: Some(thread), stop, waker, listening })
    }

    /// The addresses it listens on: those of [`Options::listen`], then those of [`Options::snoop`].
    pub fn listening(&self) -> &[SocketAddr] {
        &self.listening
    }

    /// Whether it has ended by itself, which is a defect.
    pub fn has_failed(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so on standard error.
            let _ = thread.join();
        }
    }
}
