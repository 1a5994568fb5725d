//! The protocols that a NAT translates.

/// The protocol of a mapping. An ICMP query has its identifier in place of the port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NatProtocol {
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
    /// Queries of ICMP.
    Icmp,
}
