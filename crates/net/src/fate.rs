//! What becomes of frames: the reasons to drop one, the answers of a node, and the books of a run.

use crate::pool::Frame;
use fastpath_link::DropReason;
use std::collections::BTreeMap;

/// Why a frame was discarded, anywhere in a network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// A pipe dropped it.
    Link(DropReason),
    /// A router found no route to its destination.
    NoRoute,
    /// Its TTL or hop limit ran out at a router.
    TtlExpired,
    /// It exceeded the MTU of the next link and may not be fragmented.
    TooBig,
    /// A router could not make sense of its headers.
    Malformed,
    /// It reached a node that has no use for it: another's MAC address, not IP, or multicast.
    NotAddressed,
    /// A router learned no hardware address for the next hop.
    Unresolved,
    /// A switch saw that its destination is on the side it came from, or that its port is blocked.
    Filtered,
    /// The frame store was full.
    PoolFull,
    /// An OpenFlow switch found no way out for it.
    Switch(fastpath_switch::interp::DropReason),
    /// An OpenFlow switch sent it to its controllers, and has none.
    NoController,
}

impl Reason {
    /// The word used in reports and `--times` files.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Link(reason) => reason.name(),
            Reason::NoRoute => "no-route",
            Reason::TtlExpired => "ttl-expired",
            Reason::TooBig => "too-big",
            Reason::Malformed => "malformed",
            Reason::NotAddressed => "not-addressed",
            Reason::Unresolved => "unresolved",
            Reason::Filtered => "filtered",
            Reason::PoolFull => "pool-full",
            Reason::Switch(reason) => reason.name(),
            Reason::NoController => "no-controller",
        }
    }
}

/// One thing a node does in answer to a frame.
#[derive(Debug)]
pub(crate) enum Act {
    /// Sends the frame it was given out of an interface.
    Forward { interface: usize, frame: Frame },
    /// Sends a frame of its own making: a copy, an answer.
    Originate { interface: usize, frame: Frame },
    /// Made a frame that another act takes further: a fragment.
    Count,
    /// Would have made a frame, but the store was full.
    Starve,
    /// Keeps the frame: it was meant for the node itself.
    Absorb(Frame),
    /// Discards it.
    Drop(Frame, Reason),
}

/// The books of a run: every frame is accounted for once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Conservation {
    /// Frames that entered at an edge.
    pub entered: u64,
    /// Frames made inside: copies by switches, fragments, ARP, ND and ICMP answers by routers.
    pub generated: u64,
    /// Frames that reached an edge, or the router they were addressed to.
    pub delivered: u64,
    /// Frames discarded, by [`Reason::name`].
    pub dropped: BTreeMap<&'static str, u64>,
    /// Frames still inside.
    pub held: u64,
}

impl Conservation {
    /// Everything that came to exist: entered and generated.
    pub fn total_in(&self) -> u64 {
        self.entered + self.generated
    }

    /// All discarded frames.
    pub fn total_dropped(&self) -> u64 {
        self.dropped.values().sum()
    }

    /// in = delivered + dropped + held.
    pub fn holds(&self) -> bool {
        self.total_in() == self.delivered + self.total_dropped() + self.held
    }
}
