//! The agent: connects controllers to a running switch.
//!
//! ```text
//!  controllers ═ TCP, TLS ═▶ Connection ─ batch of messages ─▶ requests, statistics ─▶ Control ─▶ (data path)
//!              ◀═ bounded output ═════════ replies ◀───────────┘        packet-ins ◀──┘
//!              ◀═ when there is room ══ AsyncMessages: flow-removed, port-status
//! ```
//!
//! One thread serves all connections in turn, at most a batch of messages each, with sockets that
//! never block. It also does what a switch does without a request: flows expire, links change. Only
//! packets for controllers pass through it.
//!
//! Read first: `connection.rs`, then `requests.rs`.

mod async_messages;
mod bundle_store;
mod bundles;
mod changes;
mod connection;
mod event;
mod event_loop;
mod features;
mod flow_events;
mod local;
mod monitors;
mod nicira;
mod order;
mod remotes;
mod requests;
mod standalone;
mod statistics;
mod stream;
mod switch_state;
mod table_mods;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod tls;
mod tls_files;

pub use crate::message::{ParseVersionsError, Versions};
pub use fastpath_ofctl::controller::{Listen, ParseAddressError, Security, Target};
pub use local::LocalService;
pub use order::{AgentState, Dial, DialledState, Remotes};
pub use switch_state::PortInfo;
pub use tls::TlsError;
pub use tls_files::TlsFiles;

use event_loop::{EventLoop, WAKE};
use fastpath_engine::Notice;
use fastpath_engine::switching::{Control, LinkWatch};
use mio::{Poll, Waker};
use order::{Order, SharedWithAgent};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What the switch does while none of the controllers that it dials can be reached (§6.3.2), or if
/// it dials none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FailMode {
    /// Forward by the installed flows.
    #[default]
    Secure,
    /// Learn addresses and forward by them until a controller is back. A switch that dials no
    /// controller forwards in this way every packet that matches no other flow.
    Standalone,
}

/// The settings of an agent.
pub struct Options {
    /// The versions of OpenFlow that controllers may use.
    pub versions: Versions,
    /// The datapath id of the switch.
    pub datapath_id: u64,
    /// The ports of the switch, by number.
    pub ports: BTreeMap<u32, PortInfo>,
    /// Addresses on which controllers may connect.
    pub listen: Vec<Listen>,
    /// Addresses on which to serve a copy of all messages to and from controllers (`ovs-ofctl
    /// snoop`).
    pub snoop: Vec<Listen>,
    /// Controllers to dial.
    pub connect: Vec<Target>,
    /// Keys and certificates for connections with TLS.
    pub tls: Option<TlsFiles>,
    /// The behaviour without controllers.
    pub fail_mode: FailMode,
    /// After this long without a message, an echo request is sent to the controller; zero for
    /// never.
    pub probe_every: Duration,
    /// The longest wait before a controller is dialled again.
    pub backoff_max: Duration,
    /// The interfaces with a link state to watch.
    pub links: Option<LinkWatch>,
    /// Receives events: controllers that connect and disconnect.
    pub notice: Notice,
}

/// Why an agent did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("{listen}: {source}")]
    Listen {
        /// The address.
        listen: Listen,
        /// The reason.
        source: io::Error,
    },
    /// Keys and certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// An address needs TLS, and keys or certificates are missing.
    #[error("{address}: TLS needs a private key, a certificate and a CA certificate")]
    NoTls {
        /// The address.
        address: String,
    },
    /// The operating system refused a thread or a descriptor.
    #[error("starting the agent: {0}")]
    System(#[from] io::Error),
}

/// Begins a session of TLS with a server, over a socket that blocks, and returns after the
/// handshake. The certificate of the server must be for `host`, a name or an address.
///
/// # Errors
/// A file cannot be read, or the handshake failed.
pub fn connect_tls(
    files: &TlsFiles,
    socket: TcpStream,
    host: &str,
) -> io::Result<impl Read + Write + Send + use<>> {
    tls::Tls::load(files).map_err(io::Error::other)?.over(socket, host)
}

/// Wakes an agent when packet-ins wait. It is created before the [`Control`] that needs it.
pub struct Doorbell {
    poll: Poll,
    waker: Arc<Waker>,
}

impl Doorbell {
    /// Creates a doorbell.
    ///
    /// The operating system refuses a descriptor.
    pub fn new() -> io::Result<Doorbell> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE)?);
        Ok(Doorbell { poll, waker })
    }

    /// Returns a function that rings it.
    pub fn ringer(&self) -> impl Fn() + Send + Sync + 'static {
        let waker = Arc::clone(&self.waker);
        // It fails when the agent has ended.
        move || drop(waker.wake())
    }
}

/// A running agent. Dropping it ends the agent.
#[derive(Debug)]
pub struct Agent {
    thread: Option<JoinHandle<()>>,
    orders: Sender<Order>,
    state: Arc<Mutex<AgentState>>,
    stop: Arc<AtomicBool>,
    waker: Arc<Waker>,
    listening: Vec<SocketAddr>,
}

impl Agent {
    /// Starts serving controllers.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(control: &Control, doorbell: Doorbell, options: Options) -> Result<Agent, StartError> {
        let stop = Arc::new(AtomicBool::new(false));
        let waker = Arc::clone(&doorbell.waker);
        let (sender, orders) = mpsc::channel();
        let state = Arc::new(Mutex::new(AgentState::default()));
        let shared = SharedWithAgent {
            orders,
            state: Arc::clone(&state),
            stop: Arc::clone(&stop),
            waker: Arc::clone(&waker),
        };
        let mut event_loop = EventLoop::new(control.clone(), doorbell.poll, options, shared)?;
        let listening = event_loop.listening()?;
        let thread =
            std::thread::Builder::new().name("fastpath-agent".to_owned()).spawn(move || event_loop.run())?;
        Ok(Agent { thread: Some(thread), orders: sender, state, stop, waker, listening })
    }

    /// Tells controllers of a port that the switch has got.
    pub fn add_port(&self, number: u32, info: PortInfo) {
        self.order(Order::AddPort(number, info));
    }

    /// Tells controllers of a port that the switch loses.
    pub fn remove_port(&self, number: u32) {
        self.order(Order::RemovePort(number));
    }

    /// Serves programs of this machine at a socket of the file system, until the agent ends. The
    /// socket is removed then.
    pub fn serve_at(&self, path: PathBuf, service: LocalService) {
        self.order(Order::ServeAt(path, service));
    }

    /// Serves these controllers from now on. Those that it has already keep their connections.
    pub fn follow(&self, remotes: Remotes) {
        self.order(Order::Follow(Box::new(remotes)));
    }

    /// Returns how its controllers are.
    pub fn state(&self) -> AgentState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn order(&self, order: Order) {
        // It fails when the agent has ended.
        let _ = self.orders.send(order);
        let _ = self.waker.wake();
    }

    /// Returns the addresses on which it listens: those of [`Options::listen`], then those of
    /// [`Options::snoop`].
    pub fn listening(&self) -> &[SocketAddr] {
        &self.listening
    }

    /// Returns whether it has ended by itself, which is a defect.
    pub fn has_failed(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has written so to standard error.
            let _ = thread.join();
        }
    }
}
