//! What tracking says of a packet.

use std::ops::{BitOr, BitOrAssign};

/// The state of a packet: bits as in `ct_state` of Open vSwitch (ovs-fields(7)).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct CtState(u8);

impl CtState {
    /// It begins a connection, or no reply has been seen yet.
    pub const NEW: CtState = CtState(1 << 0);
    /// It belongs to a connection with packets in both directions.
    pub const ESTABLISHED: CtState = CtState(1 << 1);
    /// It is about a connection: an error of ICMP.
    pub const RELATED: CtState = CtState(1 << 2);
    /// It is in the direction of replies.
    pub const REPLY: CtState = CtState(1 << 3);
    /// It cannot be tracked, or does not fit its connection.
    pub const INVALID: CtState = CtState(1 << 4);
    /// It has been tracked.
    pub const TRACKED: CtState = CtState(1 << 5);
    /// Its source was translated.
    pub const SRC_NAT: CtState = CtState(1 << 6);
    /// Its destination was translated.
    pub const DST_NAT: CtState = CtState(1 << 7);

    /// The names of the bits, from the lowest.
    pub const NAMES: [&'static str; 8] = ["new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"];

    /// Returns the bits.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns the state with these bits.
    pub const fn from_bits(bits: u8) -> CtState {
        CtState(bits)
    }

    /// Returns whether all bits of `other` are set.
    pub const fn has(self, other: CtState) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether a translation has been done.
    pub const fn is_translated(self) -> bool {
        self.0 & (CtState::SRC_NAT.0 | CtState::DST_NAT.0) != 0
    }

    /// Returns the bits that say how it was translated.
    pub const fn translation(self) -> CtState {
        CtState(self.0 & (CtState::SRC_NAT.0 | CtState::DST_NAT.0))
    }
}

impl BitOr for CtState {
    type Output = CtState;

    fn bitor(self, other: CtState) -> CtState {
        CtState(self.0 | other.0)
    }
}

impl BitOrAssign for CtState {
    fn bitor_assign(&mut self, other: CtState) {
        self.0 |= other.0;
    }
}
