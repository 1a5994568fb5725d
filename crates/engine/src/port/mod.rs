//! Ports: where frames enter and leave the machine.
//!
//! ```text
//!  memory  pcap  AF_PACKET  AF_XDP  TAP          one file each, all behind the trait Port
//!     └──────┴───────┴────────┴──────┘
//!        │ rx_burst     ▲ tx_burst
//!        ▼              │
//!      Burst      VecDeque<Frame>        frames are handles into the worker's FramePool
//! ```
//!
//! Who holds a frame owns it: `rx_burst` gives frames to the caller, `tx_burst` takes a prefix of
//! the caller's and frees it. Super-packets never pass this door: a port gives the segments they
//! stand for (`offload.rs`), so the links see every segment; their bytes may stay in one piece in
//! the pool.
//!
//! To add a kind: a file here with a type that implements [`Port`]; nothing else needs to know.

mod base;
mod claim;
mod injector;
mod memory;
mod merging;
mod offload;
mod pcap;

/// Declares the file of every kind and collects its constant `KINDS`.
macro_rules! registry {
    ($($file:ident: [$($pattern:literal),+],)+) => {
        $(mod $file;)+
        static KINDS: &[&[PortKind]] = &[$($file::KINDS),+];
    };
}

fastpath_spec::port_kinds!(registry);

pub use af_packet::AfPacket;
pub use af_xdp::{AfXdp, XdpMemory, XdpMode};
pub use injector::Injector;
pub use memory::{Memory, MemoryEnd};
pub use null::NullPort;
pub use pcap::Pcap;
pub use tap::TapPort;

use crate::notice::Notice;
use crate::sys::interface;
use fastpath_net::{Frame, FramePool};
use fastpath_spec::PortName;
use fastpath_units::Time;
use fastpath_wire::pcap::ReadError;
use std::collections::VecDeque;
use std::io;
use std::ops::AddAssign;
use std::os::fd::BorrowedFd;

/// Frames a port is asked for, or given, at a time.
pub const BURST: usize = 64;

/// A kind of port: what a [`PortName`] selects.
pub struct PortKind {
    /// Its name before the colon: `xdp`.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// What it needs of the machine.
    pub needs: &'static str,
    open: fn(&PortName, &mut OpenContext<'_>) -> Result<Box<dyn Port>, OpenError>,
}

impl std::fmt::Debug for PortKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Returns every kind of port.
pub fn kinds() -> impl Iterator<Item = &'static PortKind> {
    KINDS.iter().copied().flatten()
}

/// What ports that are opened for one engine share.
#[derive(Debug)]
pub struct OpenContext<'n> {
    notice: &'n Notice,
    /// All ports that will be opened.
    names: Vec<PortName>,
    /// Memory of the AF_XDP sockets, once the first of them was opened.
    xdp: Option<XdpMemory>,
}

impl<'n> OpenContext<'n> {
    /// For ports of these names. `notice` receives what differs from what a name says.
    pub fn new(names: impl IntoIterator<Item = PortName>, notice: &'n Notice) -> OpenContext<'n> {
        OpenContext { notice, names: names.into_iter().collect(), xdp: None }
    }
}

/// Opens a port on an interface of the thread's network namespace.
///
/// # Errors
/// See [`OpenError`].
pub fn open(name: &PortName, context: &mut OpenContext<'_>) -> Result<Box<dyn Port>, OpenError> {
    let kind = kinds().find(|kind| kind.name == name.kind()).expect("a kind for every name");
    (kind.open)(name, context)
}

/// Opens a single port.
///
/// # Errors
/// See [`OpenError`].
pub fn open_one(name: &PortName, notice: &Notice) -> Result<Box<dyn Port>, OpenError> {
    open(name, &mut OpenContext::new([name.clone()], notice))
}

/// The interface of a port whose kind has one.
fn interface_of(name: &PortName) -> &str {
    name.interface().unwrap_or_default()
}

/// One attachment to the world outside.
///
/// The worker calls it from one thread, again and again; a call never waits.
pub trait Port: Send {
    /// What messages call it: the interface's name.
    fn name(&self) -> &str;

    /// What it is and what it got, for reports: `AF_PACKET`; empty for memory.
    fn kind(&self) -> String {
        String::new()
    }

    /// Moves frames that have arrived into `burst`, until it is full or there are none.
    fn rx_burst(&mut self, now: Time, pool: &mut FramePool, burst: &mut Burst) -> Result<(), PortError>;

    /// Sends frames from the front of `frames` and frees them. What the port cannot take now stays,
    /// in order; what it can never send is freed and counted.
    fn tx_burst(
        &mut self,
        now: Time,
        pool: &mut FramePool,
        frames: &mut VecDeque<Frame>,
    ) -> Result<(), PortError>;

    /// From now on segments may come that are not cut ([`Frame::is_cut`]), if the port receives
    /// super-packets. True if it also sends them.
    fn allow_whole(&mut self) -> bool {
        false
    }

    /// The descriptor that becomes readable when frames arrive; `None` if the port must be asked.
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// When a port without a descriptor next has frames, if it knows.
    fn next_at(&self) -> Option<Time> {
        None
    }

    /// What has passed so far.
    fn counters(&mut self) -> PortCounters;
}

/// What passed through a port. Received = given to the network; sent = taken by the world outside.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub struct PortCounters {
    /// Frames received, segments counted singly.
    pub rx_frames: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Frames sent.
    pub tx_frames: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Arriving frames lost because the engine came too late and the port's ring was full.
    pub rx_overrun: u64,
    /// Arriving frames lost because the frame pool, or the burst of a super-packet's segments, was
    /// full.
    pub rx_no_memory: u64,
    /// Arriving frames lost because their offload header contradicts their content.
    pub rx_malformed: u64,
    /// Frames the device refused: longer than its MTU allows, or not a frame to it.
    pub tx_refused: u64,
    /// Frames sent into an interface that is down, or gone.
    pub tx_down: u64,
    /// Frames lost because the port pushed back for longer than the engine's backlog lasts.
    pub tx_full: u64,
    /// Frames dropped because the engine came to them later than tolerated, where the spec wants
    /// that.
    #[serde(default)]
    pub tx_late: u64,
    /// Segments of super-packets lost because the frame pool was full when they were to be cut for
    /// this port.
    #[serde(default)]
    pub tx_no_memory: u64,
}

impl PortCounters {
    /// Frames that arrived and did not reach the network.
    pub fn rx_dropped(&self) -> u64 {
        self.rx_overrun + self.rx_no_memory + self.rx_malformed
    }

    /// Frames the network delivered that were not sent.
    pub fn tx_dropped(&self) -> u64 {
        self.tx_refused + self.tx_down + self.tx_full + self.tx_late + self.tx_no_memory
    }
}

impl AddAssign for PortCounters {
    fn add_assign(&mut self, other: PortCounters) {
        self.rx_frames += other.rx_frames;
        self.rx_bytes += other.rx_bytes;
        self.tx_frames += other.tx_frames;
        self.tx_bytes += other.tx_bytes;
        self.rx_overrun += other.rx_overrun;
        self.rx_no_memory += other.rx_no_memory;
        self.rx_malformed += other.rx_malformed;
        self.tx_refused += other.tx_refused;
        self.tx_down += other.tx_down;
        self.tx_full += other.tx_full;
        self.tx_late += other.tx_late;
        self.tx_no_memory += other.tx_no_memory;
    }
}

/// Frames received together, at most [`Burst::MAX`].
#[derive(Debug)]
pub struct Burst {
    frames: Vec<Frame>,
}

impl Burst {
    /// Room beyond [`BURST`] for the segments of the last super-packet: 64 KiB in segments of 48
    /// bytes, the least that Linux uses for TCP.
    pub const MAX: usize = BURST + 65536 / 48;

    /// An empty burst.
    pub fn new() -> Burst {
        Burst { frames: Vec::with_capacity(Burst::MAX) }
    }

    /// True when the port should stop looking for more.
    pub fn is_full(&self) -> bool {
        self.frames.len() >= BURST
    }

    /// True without frames.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Frames in it.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Adds a frame, or gives it back if there is no room.
    pub fn push(&mut self, frame: Frame) -> Result<(), Frame> {
        if self.frames.len() == Burst::MAX {
            return Err(frame);
        }
        self.frames.push(frame);
        Ok(())
    }

    /// Looks at all frames, in order of arrival.
    pub fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter()
    }

    /// Takes all frames out, in order of arrival.
    pub fn drain(&mut self) -> impl Iterator<Item = Frame> + '_ {
        self.frames.drain(..)
    }
}

impl Default for Burst {
    fn default() -> Burst {
        Burst::new()
    }
}

/// Why a port stopped working.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// Its interface was removed.
    #[error("port {name}: the interface is gone")]
    Gone {
        /// The interface.
        name: String,
    },
    /// The capture is damaged, or none.
    #[error("port {name}: {source}")]
    Capture {
        /// The port.
        name: String,
        /// Where and how.
        source: ReadError,
    },
    /// The operating system failed in a way no retry mends.
    #[error("port {name}: {operation}: {source}")]
    System {
        /// The port.
        name: String,
        /// What was being done.
        operation: &'static str,
        /// What it said.
        source: io::Error,
    },
}

/// Why a port cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No interface has this name.
    #[error("port {name}: no such interface (have: {})", have.join(", "))]
    NoSuchInterface {
        /// What was asked for.
        name: String,
        /// What there is.
        have: Vec<String>,
    },
    /// The privilege is missing.
    #[error("port {name}: not permitted: run as root or inside `fastpath lab`")]
    NotPermitted {
        /// The port.
        name: String,
    },
    /// Another engine, or this one, works on the interface.
    #[error("port {name}: in use by another engine{}: stop that first", process.map_or(String::new(), |pid| format!(" (process {pid})")))]
    InUse {
        /// The interface.
        name: String,
        /// The other's process, if it can be seen from here.
        process: Option<i32>,
    },
    /// The TAP driver is not for this user.
    #[error(
        "port {name}: /dev/net/tun may not be opened: run as root, or `chmod a+rw /dev/net/tun` once as root"
    )]
    TapDriverClosed {
        /// The port.
        name: String,
    },
    /// The kernel has no room for the name.
    #[error("port {name}: {} bytes are too many for the name of an interface: write up to 15", name.len())]
    NameTooLong {
        /// The port.
        name: String,
    },
    /// There is no TAP driver.
    #[error("port {name}: no /dev/net/tun: load the driver with `modprobe tun`")]
    NoTapDriver {
        /// The port.
        name: String,
    },
    /// The capture is damaged, or none.
    #[error("port {name}: {source}")]
    Capture {
        /// The port.
        name: String,
        /// Where and how.
        source: ReadError,
    },
    /// AF_XDP does not carry frames of this length.
    #[error("port {name}: its MTU of {mtu} is more than the {most} that AF_XDP carries")]
    MtuTooLarge {
        /// The port.
        name: String,
        /// Its MTU.
        mtu: usize,
        /// The largest.
        most: usize,
    },
    /// The operating system refused otherwise.
    #[error("port {name}: {operation}: {source}")]
    System {
        /// The port.
        name: String,
        /// What was being done.
        operation: &'static str,
        /// What it said.
        source: io::Error,
    },
}

impl OpenError {
    /// The error for a system call that failed while `operation` was being done for the port
    /// `name`.
    fn from_os(name: &str, operation: &'static str, source: io::Error) -> OpenError {
        let name = name.to_owned();
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => OpenError::NotPermitted { name },
            Some(libc::ENODEV | libc::ENXIO) => OpenError::NoSuchInterface { name, have: interface::names() },
            Some(libc::EBUSY) => OpenError::InUse { name, process: None },
            _ => OpenError::System { name, operation, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_that_a_name_may_have_is_in_the_registry_and_described() {
        assert_eq!(kinds().map(|kind| kind.name).collect::<Vec<_>>(), PortName::kinds().collect::<Vec<_>>());
        assert!(kinds().all(|kind| !kind.about.is_empty() && !kind.needs.is_empty()));
    }

    #[test]
    fn a_port_of_the_kind_memory_counts_and_discards_what_is_sent() {
        let mut port = open_one(&"memory".parse().unwrap(), &Notice::none()).unwrap();
        let mut pool = FramePool::new(std::num::NonZeroUsize::new(1 << 16).unwrap());
        let mut frames: VecDeque<Frame> = pool.insert(&[0; 60]).into_iter().collect();
        port.tx_burst(Time::ZERO, &mut pool, &mut frames).unwrap();
        assert_eq!((port.counters().tx_frames, port.counters().tx_bytes, pool.live()), (1, 60, 0));
    }
}
