//! The tuple that identifies a direction of a connection.

/// Protocol numbers.
pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMPV6: u8 = 58;
pub(crate) const SCTP: u8 = 132;

/// Requests of ICMP and their replies (RFC 792).
const QUERIES: [(u8, u8); 3] = [(8, 0), (13, 14), (15, 16)];
/// Requests of ICMPv6 and their replies (RFC 4443).
const QUERIES_V6: [(u8, u8); 1] = [(128, 129)];

/// Addresses, protocol and ports of packets in one direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FlowTuple {
    /// The source; an IPv4 address is in the lower 32 bits.
    pub src: u128,
    /// The destination.
    pub dst: u128,
    /// The source port. Of ICMP the identifier; of protocols without ports 0.
    pub src_port: u16,
    /// The destination port. Of ICMP the type, in the upper eight bits, and the code.
    pub dst_port: u16,
    /// The protocol above IP.
    pub protocol: u8,
    /// Whether the addresses are those of IPv6.
    pub is_v6: bool,
}

impl FlowTuple {
    /// Returns the tuple of packets in the other direction.
    #[must_use]
    pub fn reversed(self) -> FlowTuple {
        let FlowTuple { src, dst, src_port, dst_port, .. } = self;
        let (src_port, dst_port) = match self.is_icmp() {
            true => (src_port, u16::from(self.opposite((dst_port >> 8) as u8)) << 8 | dst_port & 0xff),
            false => (dst_port, src_port),
        };
        FlowTuple { src: dst, dst: src, src_port, dst_port, ..self }
    }

    /// Returns source and destination port, or type and code of ICMP.
    pub fn ports(self) -> (u16, u16) {
        match self.is_icmp() {
            true => (self.dst_port >> 8, self.dst_port & 0xff),
            false => (self.src_port, self.dst_port),
        }
    }

    /// Returns whether the protocol is the ICMP of its addresses.
    pub fn is_icmp(self) -> bool {
        self.protocol == if self.is_v6 { ICMPV6 } else { ICMP }
    }

    /// Returns whether it has ports, or an identifier in their place.
    pub(crate) fn has_ports(self) -> bool {
        self.is_icmp() || matches!(self.protocol, TCP | UDP | SCTP)
    }

    /// Returns whether a packet of ICMP asks for a reply; only that begins a connection.
    pub(crate) fn is_request(self) -> bool {
        let kind = (self.dst_port >> 8) as u8;
        self.queries().iter().any(|(request, _)| *request == kind)
    }

    /// Returns whether a packet of ICMP is a request or a reply.
    pub fn is_query(self) -> bool {
        let kind = (self.dst_port >> 8) as u8;
        self.queries().iter().any(|(request, reply)| [*request, *reply].contains(&kind))
    }

    fn queries(self) -> &'static [(u8, u8)] {
        if self.is_v6 { &QUERIES_V6 } else { &QUERIES }
    }

    fn opposite(self, kind: u8) -> u8 {
        let opposite = |(request, reply): &(u8, u8)| match kind {
            _ if kind == *request => Some(*reply),
            _ if kind == *reply => Some(*request),
            _ => None,
        };
        self.queries().iter().find_map(opposite).unwrap_or(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reverse_of_the_reverse_is_the_tuple() {
        for protocol in [ICMP, TCP, UDP, ICMPV6, SCTP, 47] {
            for is_v6 in [false, true] {
                let tuple = FlowTuple { src: 1, dst: 2, src_port: 8, dst_port: 8 << 8, protocol, is_v6 };
                assert_eq!(tuple.reversed().reversed(), tuple);
                assert_ne!(tuple.reversed(), tuple);
            }
        }
    }

    #[test]
    fn an_echo_request_is_answered_by_an_echo_reply_of_its_identifier() {
        let request =
            FlowTuple { src: 1, dst: 2, src_port: 77, dst_port: 8 << 8, protocol: ICMP, is_v6: false };
        let reply = request.reversed();
        assert_eq!((reply.src, reply.src_port, reply.dst_port), (2, 77, 0));
        assert!(request.is_request() && !reply.is_request() && reply.is_query());
    }
}
