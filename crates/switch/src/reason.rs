//! Why packets are sent to controllers.

use crate::version::Version;

/// Why a packet is sent to the controllers (OFPR_; the numbers are the protocol's).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum PacketInReason {
    /// A table-miss flow sent it.
    NoMatch = 0,
    /// An action of another flow sent it.
    Action = 1,
    /// Its TTL was invalid (0 or 1).
    InvalidTtl = 2,
    /// The action set sent it.
    ActionSet = 3,
    /// A bucket of a group sent it.
    Group = 4,
    /// A packet-out sent it.
    PacketOut = 5,
}

impl PacketInReason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [PacketInReason; 6] = [
        PacketInReason::NoMatch,
        PacketInReason::Action,
        PacketInReason::InvalidTtl,
        PacketInReason::ActionSet,
        PacketInReason::Group,
        PacketInReason::PacketOut,
    ];

    /// Returns the number (OFPR_). Versions before OpenFlow 1.4 have the first three reasons.
    pub fn number_in(self, version: Version) -> u8 {
        match self {
            PacketInReason::ActionSet | PacketInReason::Group | PacketInReason::PacketOut
                if version < Version::V14 =>
            {
                PacketInReason::Action as u8
            }
            other => other as u8,
        }
    }
}

/// What the actions that are executed now are part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ActionsIn {
    /// A flow.
    #[default]
    Flow,
    /// The action set.
    Set,
    /// A bucket.
    Bucket,
    /// A packet-out, and the flows that it leads to.
    PacketOut,
}

impl ActionsIn {
    /// Returns the reason of packet-ins for which an action gives none, in a flow with this one.
    pub fn reason(self, of_flow: PacketInReason) -> PacketInReason {
        match self {
            ActionsIn::Flow => of_flow,
            ActionsIn::Set => PacketInReason::ActionSet,
            ActionsIn::Bucket => PacketInReason::Group,
            ActionsIn::PacketOut => PacketInReason::PacketOut,
        }
    }

    /// Returns what actions of a part are in, inside these.
    #[must_use]
    pub fn inner(self, part: ActionsIn) -> ActionsIn {
        if self == ActionsIn::PacketOut { self } else { part }
    }
}
