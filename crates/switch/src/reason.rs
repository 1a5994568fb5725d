//! Why packets are sent to controllers.

/// Why a packet is sent to the controllers (OFPR_; the numbers are the protocol's).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum PacketInReason {
    /// A table-miss flow sent it.
    NoMatch = 0,
    /// An action of another flow, a group or a packet-out sent it.
    Action = 1,
    /// Its TTL was invalid (0 or 1).
    InvalidTtl = 2,
}
