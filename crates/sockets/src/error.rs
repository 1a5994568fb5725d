//! What can be wrong with a socket, a datagram or a time.

use fastpath_units::Time;
use std::net::IpAddr;
use thiserror::Error;

/// Why a socket could not be bound.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// The topology has no such host.
    #[error("no host {host} (have: {have})")]
    NoHost {
        /// What was asked for.
        host: String,
        /// The hosts of the topology.
        have: String,
    },
    /// The host has no address, or none that was asked for.
    #[error("host {host} has no address {wanted} (has: {has})")]
    NoAddress {
        /// The host.
        host: String,
        /// What was asked for.
        wanted: String,
        /// The addresses of the host.
        has: String,
    },
    /// Another socket of the host has the port.
    #[error("port {port} of host {host} is in use")]
    InUse {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },
    /// All ports of the host from 49152 on are in use.
    #[error("host {host} has no free port")]
    NoPort {
        /// The host.
        host: String,
    },
}

/// Why a datagram could not be sent.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The payload does not fit a packet of the interface: datagrams are not fragmented.
    #[error("a payload of {len} bytes does not fit: at most {max} over {interface}")]
    TooLong {
        /// Bytes of payload.
        len: usize,
        /// The most that fit.
        max: usize,
        /// The interface of the host.
        interface: String,
    },
    /// The host has no route to the address, or no address of its family.
    #[error("host {host} has no route to {to}")]
    NoRoute {
        /// The host.
        host: String,
        /// The address.
        to: IpAddr,
    },
    /// The next hop is on a link of the host, and no interface there has its address.
    #[error("on the way to {to}, no neighbor of host {host} has the address of the next hop")]
    NoNeighbor {
        /// The host.
        host: String,
        /// The address.
        to: IpAddr,
    },
    /// The memory for packets in flight is full.
    #[error("the memory for packets in flight is full")]
    PoolFull,
}

/// Why a link could not be changed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum LinkChangeError {
    /// The topology has no such link.
    #[error("no link {link} (have: {have})")]
    NoLink {
        /// What was asked for.
        link: String,
        /// The links of the topology.
        have: String,
    },
    /// No direction of the link begins at the node.
    #[error("link {link} has no end at {from} (has: {ends})")]
    NoEnd {
        /// The link.
        link: String,
        /// What was asked for.
        from: String,
        /// The nodes at its ends.
        ends: String,
    },
    /// A trace sets the value at this time.
    #[error("{traced}")]
    Traced {
        /// What sets which value, and what to write.
        traced: String,
    },
}

/// The network cannot go back in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("time runs back: the network is at {now} and was asked for {asked}")]
pub struct TimeRunsBack {
    /// Where it is.
    pub now: Time,
    /// What was asked for.
    pub asked: Time,
}
