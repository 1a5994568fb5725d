//! Packets, and the results of pushing and popping them.

use crate::content::PacketContent;
use crate::cross::CrossSpec;
use crate::impairment::Corruption;
use fastpath_units::Time;

/// A frame as a pipe sees it. `P` identifies the bytes for the caller: a handle in the engine, a
/// descriptor in the simulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<P> {
    /// Bytes of the frame from destination MAC to end of payload, without FCS and framing overhead.
    pub len: u32,
    /// Hash of the flow's five-tuple, for disciplines that separate flows; 0 if it is not needed.
    pub flow: u32,
    /// IPv4 TOS or IPv6 traffic class (DSCP « 2 | ECN); 0 for frames that are not IP.
    pub traffic_class: u8,
    /// What it carries, for laws that concern only some packets.
    pub content: PacketContent,
    /// The caller's data.
    pub data: P,
}

impl<P> Packet<P> {
    /// Creates a packet of which only the length in bytes is known.
    #[inline]
    pub fn new(len: u32, data: P) -> Packet<P> {
        Packet { len, flow: 0, traffic_class: 0, content: PacketContent::Other, data }
    }

    /// The ECN codepoint "congestion experienced" in `traffic_class` (RFC 3168 §5).
    pub const CE: u8 = 0b11;

    /// Returns true if the packet is ECN-capable: ECT(0), ECT(1), or CE already (RFC 3168 §5).
    #[inline]
    pub fn is_ect(&self) -> bool {
        self.traffic_class & Self::CE != 0
    }

    /// Returns what admission policies and loss laws read.
    #[inline]
    pub(crate) fn header(&self) -> Packet<()> {
        let Packet { len, flow, traffic_class, content, data: _ } = *self;
        Packet { len, flow, traffic_class, content, data: () }
    }
}

/// The result of a push. A refused packet is returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a dropped packet must be counted and its frame freed"]
pub enum Verdict<P> {
    /// The packet is in the pipe. `pop` will return it, delivered or dropped.
    Queued,
    /// The packet was refused.
    Dropped(DropReason, P),
}

/// A packet leaving a pipe at `at`, in logical time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exit<P> {
    /// The exact time of its exit, never later than the `now` of the `pop` that returned it.
    pub at: Time,
    /// The packet. Its `traffic_class` may have been changed to ECN CE.
    pub packet: Packet<P>,
    /// Whether it was delivered.
    pub fate: Fate,
}

/// The fate of a packet that was queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It reached the far end. `marked`: the discipline set ECN CE (RFC 3168), which the caller
    /// writes into the bytes.
    Delivered {
        /// True if this pipe set ECN CE.
        marked: bool,
    },
    /// It reached the far end, but not as it was sent.
    Altered(Alteration),
    /// It was discarded after it had been queued.
    Dropped(DropReason),
}

/// Changes to a delivered packet, to be carried out on its bytes by the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Alteration {
    /// True if this pipe set ECN CE.
    pub marked: bool,
    /// Bits to flip. Checksums are left as they are.
    pub corruption: Option<Corruption>,
    /// Number of additional copies of the packet, corrupted or not. They leave at the same instant,
    /// or at [`Pipe::copies_at`](crate::Pipe::copies_at). The pipe counts the packet once.
    pub copies: u8,
}

/// A packet inside a pipe: the fields of [`Packet`] and of its fate, flattened to be small.
#[derive(Debug)]
pub(crate) struct Held<P> {
    /// The arrival.
    pub(crate) time: Time,
    pub(crate) len: u32,
    pub(crate) flow: u32,
    pub(crate) traffic_class: u8,
    pub(crate) content: PacketContent,
    pub(crate) marked: bool,
    /// `None` for a packet of cross traffic.
    pub(crate) data: Option<P>,
}

impl<P> Held<P> {
    /// `packet` arrived at `time`. Sets ECN CE if `marked`.
    pub(crate) fn new(time: Time, packet: Packet<P>, marked: bool) -> Held<P> {
        let Packet { len, flow, mut traffic_class, content, data } = packet;
        if marked {
            traffic_class |= Packet::<P>::CE;
        }
        Held { time, len, flow, traffic_class, content, marked, data: Some(data) }
    }

    /// A packet of cross traffic that arrived at `time`.
    pub(crate) fn cross(time: Time, len: u32) -> Held<P> {
        let (flow, content) = (CrossSpec::FLOW, PacketContent::Other);
        Held { time, len, flow, traffic_class: 0, content, marked: false, data: None }
    }

    /// Returns true for a packet of cross traffic.
    #[inline]
    pub(crate) fn is_cross(&self) -> bool {
        self.data.is_none()
    }

    /// Returns true if the packet is ECN-capable.
    pub(crate) fn is_ect(&self) -> bool {
        self.traffic_class & Packet::<P>::CE != 0
    }

    /// Sets ECN CE.
    pub(crate) fn mark(&mut self) {
        self.traffic_class |= Packet::<P>::CE;
        self.marked = true;
    }

    /// Returns what admission policies read.
    #[inline]
    pub(crate) fn header(&self) -> Packet<()> {
        let Held { len, flow, traffic_class, content, .. } = *self;
        Packet { len, flow, traffic_class, content, data: () }
    }

    /// Returns the packet. Panics for one of cross traffic: it leaves no pipe.
    pub(crate) fn into_packet(self) -> Packet<P> {
        let Held { len, flow, traffic_class, content, data, .. } = self;
        let data = data.expect("a packet of cross traffic leaves no pipe");
        Packet { len, flow, traffic_class, content, data }
    }
}

/// Why a packet was discarded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum DropReason {
    /// The link's random loss.
    Loss,
    /// The queue was full.
    QueueFull,
    /// Active queue management dropped it (RED, CoDel, PIE and others).
    Early,
    /// It had waited longer than the limit of the queue in time.
    Expired,
    /// Jitter would have delivered it after a packet sent later, and such packets are dropped.
    Late,
    /// The link was down.
    Down,
}

impl DropReason {
    /// All reasons, in the order of reports.
    pub const ALL: [DropReason; 6] = [
        DropReason::Loss,
        DropReason::QueueFull,
        DropReason::Early,
        DropReason::Expired,
        DropReason::Late,
        DropReason::Down,
    ];

    /// Returns the name used in reports and `--times` files.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::Loss => "loss",
            DropReason::QueueFull => "queue-full",
            DropReason::Early => "early",
            DropReason::Expired => "expired",
            DropReason::Late => "late",
            DropReason::Down => "down",
        }
    }
}
