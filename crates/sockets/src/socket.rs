//! Sockets, and the datagrams that wait in them.

use fastpath_net::{EdgeId, HostPath};
use fastpath_spec::NodeId;
use fastpath_units::Time;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// A socket of a [`VirtualNetwork`](crate::VirtualNetwork).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SocketId(pub(crate) u32);

/// A datagram that has arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// When it arrived at the host.
    pub at: Time,
    /// Who sent it, as the host sees it.
    pub from: SocketAddr,
    /// The address of this host to which it came.
    pub to: SocketAddr,
    /// The ECN field of its IP header, 0 to 3 (RFC 3168 §5).
    pub ecn: u8,
    /// What was sent.
    pub payload: Vec<u8>,
}

/// The memory of datagrams that wait in a socket, in bytes of payload; what does not fit is lost.
pub(crate) const WAITING_MAX: usize = 16 << 20;

#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) host: NodeId,
    /// What it is bound to; `None`: every address of the host.
    pub(crate) bound: Option<IpAddr>,
    /// The address by which others reach it.
    pub(crate) address: SocketAddr,
    pub(crate) waiting: VecDeque<Datagram>,
    pub(crate) bytes: usize,
    /// The ways to the addresses to which it has sent.
    pub(crate) paths: BTreeMap<IpAddr, (EdgeId, HostPath)>,
}
