//! What packets carry, and which of them a law of loss or corruption concerns.

/// What a packet carries, as far as laws of loss and corruption ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PacketContent {
    /// Anything else, or a packet of which nothing is known.
    #[default]
    Other,
    /// A whole UDP datagram with at least one byte of payload.
    Udp,
    /// A QUIC Version Negotiation packet (RFC 8999 §6) in a UDP datagram.
    VersionNegotiation,
}

/// The packets that a law concerns. The others pass, and the law does not count them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PacketFilter {
    /// All packets.
    #[default]
    All,
    /// UDP datagrams.
    Udp,
}

impl PacketFilter {
    /// Returns true if the law concerns packets with this content.
    #[inline]
    pub fn takes(self, content: PacketContent) -> bool {
        match self {
            PacketFilter::All => true,
            PacketFilter::Udp => content != PacketContent::Other,
        }
    }
}
