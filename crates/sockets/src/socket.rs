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

/// The addresses of its host at which a socket receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bound {
    Any,
    AnyV4,
    One(IpAddr),
}

impl Bound {
    /// Returns what a socket is bound to by an address, as in Linux: `::` is every address of both
    /// families.
    pub(crate) fn of(address: Option<IpAddr>) -> Bound {
        match address {
            None => Bound::Any,
            Some(IpAddr::V4(own)) if own.is_unspecified() => Bound::AnyV4,
            Some(IpAddr::V6(own)) if own.is_unspecified() => Bound::Any,
            Some(own) => Bound::One(own),
        }
    }

    pub(crate) fn accepts(self, address: IpAddr) -> bool {
        match self {
            Bound::Any => true,
            Bound::AnyV4 => address.is_ipv4(),
            Bound::One(own) => own == address,
        }
    }

    /// Returns whether some address is in both.
    pub(crate) fn overlaps(self, other: Bound) -> bool {
        match (self, other) {
            (Bound::One(own), other) | (other, Bound::One(own)) => other.accepts(own),
            _ => true,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) host: NodeId,
    pub(crate) bound: Bound,
    /// The address by which others reach it.
    pub(crate) address: SocketAddr,
    pub(crate) waiting: VecDeque<Datagram>,
    pub(crate) bytes: usize,
    /// The ways to the addresses to which it has sent.
    pub(crate) paths: BTreeMap<IpAddr, (EdgeId, HostPath)>,
}
