//! What a running agent is told, and what it says of its controllers.

use super::{FailMode, Listen, LocalService, PortInfo, Target, TlsFiles};
use crate::message::{Role, Versions};
use mio::Waker;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A controller to dial.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dial {
    /// Its address.
    pub target: Target,
    /// Silence after which it gets an echo request; zero for never.
    pub probe_every: Duration,
    /// The longest wait before it is dialled again.
    pub backoff_max: Duration,
}

impl Dial {
    /// A controller with the usual times.
    pub fn new(target: Target) -> Dial {
        Dial { target, probe_every: Duration::from_secs(5), backoff_max: Duration::from_secs(8) }
    }

    /// Sets the silence after which it gets an echo request.
    #[must_use]
    pub fn probe_every(self, probe_every: Duration) -> Dial {
        Dial { probe_every, ..self }
    }

    /// Sets the longest wait before it is dialled again.
    #[must_use]
    pub fn backoff_max(self, backoff_max: Duration) -> Dial {
        Dial { backoff_max, ..self }
    }
}

/// All controllers of a switch, and what the switch is to them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remotes {
    /// The datapath id of the switch.
    pub datapath_id: u64,
    /// The versions of OpenFlow that they may use.
    pub versions: Versions,
    /// Those to dial, each target once.
    pub dial: Vec<Dial>,
    /// Addresses on which others may connect.
    pub listen: Vec<Listen>,
    /// Keys and certificates for TLS.
    pub tls: Option<TlsFiles>,
    /// What the switch does without controllers.
    pub fail_mode: FailMode,
}

/// What an agent knows of its controllers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AgentState {
    /// Those that it dials.
    pub dialled: Vec<DialledState>,
    /// The addresses on which it should listen and cannot, with the reason.
    pub deaf: Vec<(Listen, String)>,
    /// The paths at which it should serve programs of this machine and cannot, with the reason. It
    /// tries again.
    pub unserved: Vec<(PathBuf, String)>,
    /// Why keys and certificates cannot be used.
    pub tls: Option<String>,
}

/// The state of a controller that is dialled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DialledState {
    /// Its address.
    pub target: Target,
    /// Its role, while it is connected.
    pub role: Option<Role>,
    /// Why the last connection ended, or could not be made.
    pub failure: Option<String>,
}

/// An order to a running agent.
#[derive(Debug)]
pub(super) enum Order {
    /// The switch has got a port.
    AddPort(u32, PortInfo),
    /// The switch has lost a port.
    RemovePort(u32),
    /// The controllers are these from now on.
    Follow(Box<Remotes>),
    /// Serve programs of this machine at a path.
    ServeAt(PathBuf, LocalService),
}

/// What an agent and its thread share.
pub(super) struct SharedWithAgent {
    pub(super) orders: Receiver<Order>,
    pub(super) state: Arc<Mutex<AgentState>>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) waker: Arc<Waker>,
}
