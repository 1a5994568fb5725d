//! Ports: where frames enter and leave the engine, and the mail between its workers.
//!
//! ```text
//!  memory  pcap  AF_PACKET  AF_XDP  TAP          one file each, all implement the trait Port
//!     └──────┴───────┴────────┴──────┘
//!        │ rx_burst     ▲ tx_burst
//!        ▼              │
//!      Burst      VecDeque<Frame>        frames are handles into the worker's FramePool
//! ```
//!
//! The holder of a frame owns it: `rx_burst` gives frames to the caller, `tx_burst` takes a prefix
//! of the caller's frames and frees it. Super-packets never pass this interface. A port delivers
//! the segments that they stand for (`offload.rs`), so that links handle every segment. The bytes
//! of the segments may stay in one piece in the pool.
//!
//! To add a kind that a [`PortName`] selects: a file here with a type that implements [`Port`] and
//! a constant `KINDS`, and one line in `port_kinds!` of `crates/spec/src/port_name.rs`.
//!
//! Linux only; the crate is empty elsewhere.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod base;
mod batches;
mod claim;
mod injector;
pub mod mail;
mod memory;
mod merging;
mod notice;
mod offload;
mod patch;
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
pub use notice::Notice;
pub use null::NullPort;
pub use patch::PatchPort;
pub use pcap::Pcap;
pub use tap::{TapInterface, TapPort};

use fastpath_net::{Frame, FramePool};
use fastpath_spec::PortName;
use fastpath_sys::interface;
use fastpath_units::Time;
use fastpath_wire::pcap::ReadError;
use std::collections::VecDeque;
use std::io;
use std::ops::AddAssign;
use std::os::fd::BorrowedFd;

/// Frames that a port receives or sends per call.
pub const BURST: usize = 64;

/// A kind of port: what a [`PortName`] selects.
pub struct PortKind {
    /// Its name before the colon: `xdp`.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// What it needs of the machine.
    pub needs: &'static str,
    open: OpenPort,
}

/// Opens a port of one kind.
type OpenPort = fn(&PortName, &mut OpenContext<'_>) -> Result<Box<dyn Port>, OpenError>;

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
    /// For ports of these names. `notice` receives a text where a port differs from its name, such
    /// as a packet socket in place of AF_XDP.
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

/// Opens a port as several channels, between which the kernel splits what arrives by flows: frames
/// of a flow arrive at one channel, in order, and may leave by any. `None` for kinds of ports that
/// have one channel.
///
/// # Errors
/// See [`OpenError`].
pub fn open_channels(name: &PortName, channels: usize) -> Result<Option<Vec<Box<dyn Port>>>, OpenError> {
    if !splits_flows(name) {
        return Ok(None);
    }
    let channels = AfPacket::open_channels(interface_of(name), channels)?;
    Ok(Some(channels.into_iter().map(|channel| Box::new(channel) as Box<dyn Port>).collect()))
}

/// Returns whether [`open_channels`] opens this kind of port.
pub fn splits_flows(name: &PortName) -> bool {
    name.kind() == "packet"
}

/// Opens a single port.
///
/// # Errors
/// See [`OpenError`].
pub fn open_one(name: &PortName, notice: &Notice) -> Result<Box<dyn Port>, OpenError> {
    open(name, &mut OpenContext::new([name.clone()], notice))
}

/// Returns the interface of a port, for kinds that have one.
fn interface_of(name: &PortName) -> &str {
    name.interface().unwrap_or_default()
}

/// An attachment to a network outside the engine.
///
/// The worker calls it repeatedly from one thread. A call never blocks.
pub trait Port: Send {
    /// Returns the name for messages: that of the interface.
    fn name(&self) -> &str;

    /// Returns the kind of port and what the kernel granted, for reports: `AF_PACKET`; empty for
    /// memory.
    fn kind(&self) -> String {
        String::new()
    }

    /// Moves frames that have arrived into `burst`, until it is full or none are left.
    fn rx_burst(&mut self, now: Time, pool: &mut FramePool, burst: &mut Burst) -> Result<(), PortError>;

    /// Sends frames from the front of `frames` and frees them. Frames that the port cannot accept
    /// now stay, in order. Frames that it can never send are freed and counted.
    fn tx_burst(
        &mut self,
        now: Time,
        pool: &mut FramePool,
        frames: &mut VecDeque<Frame>,
    ) -> Result<(), PortError>;

    /// Allows the port to deliver segments without bytes of their own ([`Frame::has_own_bytes`]),
    /// if it receives super-packets. Returns true if the port also sends such segments.
    fn allow_whole(&mut self) -> bool {
        false
    }

    /// Returns the descriptor that becomes readable when frames arrive; `None` if the port must be
    /// polled.
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns a descriptor that poll(2) reports as writable while the interface is up, in whatever
    /// network namespace the interface is. `None` if the port has none.
    fn link_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Shows the programs behind the port whether its link has a carrier. Returns false if the
    /// kernel has no means to do so for an interface of this kind.
    fn show_carrier(&mut self, _is_on: bool) -> bool {
        true
    }

    /// Returns when a port without a descriptor next has frames, if it knows.
    fn next_at(&self) -> Option<Time> {
        None
    }

    /// Returns the counters.
    fn counters(&mut self) -> PortCounters;
}

/// Counters of a port. Received: passed to the network. Sent: accepted by the network outside.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub struct PortCounters {
    /// Frames received; each segment of a super-packet counts as one.
    pub rx_frames: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Frames sent.
    pub tx_frames: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Arriving frames lost because the engine read too late and the port's ring was full.
    pub rx_overrun: u64,
    /// Arriving frames lost because the frame pool, or the burst of a super-packet's segments, was
    /// full.
    pub rx_no_memory: u64,
    /// Arriving frames lost because their offload header contradicts their content.
    pub rx_malformed: u64,
    /// Frames the device refused: longer than its MTU allows, or invalid for it.
    pub tx_refused: u64,
    /// Frames sent to an interface that is down or was removed.
    pub tx_down: u64,
    /// Frames lost because the port pushed back until the engine's backlog was full.
    pub tx_full: u64,
    /// Frames dropped because they were later than tolerated, where the spec wants that.
    #[serde(default)]
    pub tx_late: u64,
    /// Segments of super-packets lost because the frame pool was full when they had to be copied
    /// out for this port.
    #[serde(default)]
    pub tx_no_memory: u64,
}

impl PortCounters {
    /// Returns the number of frames that arrived and did not reach the network.
    pub fn rx_dropped(&self) -> u64 {
        self.rx_overrun + self.rx_no_memory + self.rx_malformed
    }

    /// Returns the number of frames that the network delivered and that were not sent.
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
    /// bytes, the smallest that Linux uses for TCP.
    pub const MAX: usize = BURST + 65536 / 48;

    /// Returns an empty burst.
    pub fn new() -> Burst {
        Burst { frames: Vec::with_capacity(Burst::MAX) }
    }

    /// Returns true when the port should stop receiving.
    pub fn is_full(&self) -> bool {
        self.frames.len() >= BURST
    }

    /// Returns true if it holds no frames.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns the number of frames.
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

    /// Returns all frames in order of arrival.
    pub fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter()
    }

    /// Removes and returns all frames in order of arrival.
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
#[non_exhaustive]
pub enum PortError {
    /// Its interface was removed.
    #[error("port {name}: the interface is gone")]
    Gone {
        /// The interface.
        name: String,
    },
    /// The file is damaged or not a capture.
    #[error("port {name}: {source}")]
    Capture {
        /// The port.
        name: String,
        /// The place and the kind of the damage.
        source: ReadError,
    },
    /// A system call failed in a way that no retry mends.
    #[error("port {name}: {operation}: {source}")]
    System {
        /// The port.
        name: String,
        /// The operation that failed.
        operation: &'static str,
        /// What it said.
        source: io::Error,
    },
}

/// Why a port cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No interface has this name.
    #[error("port {name}: no such interface (have: {})", have.join(", "))]
    NoSuchInterface {
        /// The name.
        name: String,
        /// The existing interfaces.
        have: Vec<String>,
    },
    /// The process lacks a privilege.
    #[error("port {name}: not permitted: run as root or inside `fastpath lab`")]
    NotPermitted {
        /// The port.
        name: String,
    },
    /// Another engine, or this one, uses the interface.
    #[error("port {name}: in use by another engine{}: stop that first", process.map_or(String::new(), |pid| format!(" (process {pid})")))]
    InUse {
        /// The interface.
        name: String,
        /// The process of the other engine, if it is visible from here.
        process: Option<i32>,
    },
    /// This user may not open the TAP driver.
    #[error(
        "port {name}: /dev/net/tun may not be opened: run as root, or `chmod a+rw /dev/net/tun` once as root"
    )]
    TapDriverClosed {
        /// The port.
        name: String,
    },
    /// The name is too long for an interface.
    #[error("port {name}: {} bytes is too long for an interface name: write up to 15", name.len())]
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
    /// The file is damaged or not a capture.
    #[error("port {name}: {source}")]
    Capture {
        /// The port.
        name: String,
        /// The place and the kind of the damage.
        source: ReadError,
    },
    /// AF_XDP does not carry frames of this length.
    #[error("port {name}: its MTU of {mtu} exceeds the {most} bytes that AF_XDP carries")]
    MtuTooLarge {
        /// The port.
        name: String,
        /// The MTU of the interface.
        mtu: usize,
        /// The largest MTU that AF_XDP carries.
        most: usize,
    },
    /// A system call failed for another reason.
    #[error("port {name}: {operation}: {source}")]
    System {
        /// The port.
        name: String,
        /// The operation that failed.
        operation: &'static str,
        /// What it said.
        source: io::Error,
    },
}

impl OpenError {
    /// Returns the error for a system call that failed during `operation` on the port `name`.
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
