//! What a pipe is given and what it gives back.

use crate::impairment::Corruption;
use fastpath_units::Time;

/// A frame as a pipe sees it. `P` is whatever the caller keeps the bytes by: a handle in the
/// engine, a descriptor in the simulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<P> {
    /// Bytes of the frame from destination MAC to end of payload, without FCS and framing overhead.
    pub len: u32,
    /// Hash of the flow's five-tuple, for disciplines that separate flows; 0 where nobody asked.
    pub flow: u32,
    /// IPv4 TOS or IPv6 traffic class (DSCP « 2 | ECN); 0 for anything that is not IP.
    pub traffic_class: u8,
    /// The caller's own.
    pub data: P,
}

impl<P> Packet<P> {
    /// The ECN field of `traffic_class` as "congestion experienced" (RFC 3168 §5).
    pub const CE: u8 = 0b11;

    /// True if the sender can be told of congestion by a mark: ECT(0), ECT(1), or CE already (RFC
    /// 3168 §5).
    pub fn is_ect(&self) -> bool {
        self.traffic_class & Self::CE != 0
    }

    /// What disciplines and laws that decide at arrival look at.
    #[inline]
    pub(crate) fn header(&self) -> Packet<()> {
        Packet { len: self.len, flow: self.flow, traffic_class: self.traffic_class, data: () }
    }
}

/// The answer to a push. A packet that is not taken comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a dropped packet must be counted and its frame freed"]
pub enum Verdict<P> {
    /// Taken; it will come out of `pop`, delivered or dropped.
    Queued,
    /// Not taken.
    Dropped(DropReason, P),
}

/// A packet leaving a pipe at `at`, in logical time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exit<P> {
    /// When it leaves, exactly; never later than the `now` of the `pop` that returned it.
    pub at: Time,
    /// The packet, its `traffic_class` as the pipe left it (ECN may have become CE).
    pub packet: Packet<P>,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a packet that was queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It reached the far end. `marked`: the discipline set ECN CE (RFC 3168), which the caller
    /// writes into the bytes.
    Delivered {
        /// ECN CE was set by this pipe.
        marked: bool,
    },
    /// It reached the far end, but not as it was sent.
    Altered(Alteration),
    /// It was discarded after it had been queued.
    Dropped(DropReason),
}

/// What the pipe did to a packet that it delivered, to be carried out on its bytes by the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Alteration {
    /// ECN CE was set by this pipe.
    pub marked: bool,
    /// Bits flipped on the way, checksums left as they are.
    pub corruption: Option<Corruption>,
    /// How many more times the packet, corrupted or not, leaves: at the same instant, unless
    /// [`Pipe::copies_at`](crate::Pipe::copies_at) says later. The pipe counts it once.
    pub copies: u8,
}

/// A packet as it waits inside a pipe: the fields of [`Packet`] and of its fate, laid flat to be
/// small.
#[derive(Debug)]
pub(crate) struct Held<P> {
    /// Arrival while queued, exit once in a delay line that is a ring.
    pub(crate) time: Time,
    pub(crate) len: u32,
    pub(crate) flow: u32,
    pub(crate) traffic_class: u8,
    pub(crate) marked: bool,
    pub(crate) data: P,
}

impl<P> Held<P> {
    /// `packet`, arrived at `time`, with ECN CE set if `marked`.
    pub(crate) fn new(time: Time, packet: Packet<P>, marked: bool) -> Held<P> {
        let Packet { len, flow, mut traffic_class, data } = packet;
        if marked {
            traffic_class |= Packet::<P>::CE;
        }
        Held { time, len, flow, traffic_class, marked, data }
    }

    /// True if the sender can be told of congestion by a mark.
    pub(crate) fn is_ect(&self) -> bool {
        self.traffic_class & Packet::<P>::CE != 0
    }

    /// Sets ECN CE.
    pub(crate) fn mark(&mut self) {
        self.traffic_class |= Packet::<P>::CE;
        self.marked = true;
    }

    /// What disciplines and laws that decide at arrival look at.
    pub(crate) fn header(&self) -> Packet<()> {
        Packet { len: self.len, flow: self.flow, traffic_class: self.traffic_class, data: () }
    }

    pub(crate) fn into_packet(self) -> Packet<P> {
        let Held { len, flow, traffic_class, data, .. } = self;
        Packet { len, flow, traffic_class, data }
    }
}

/// Why a packet was discarded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DropReason {
    /// The link's random loss.
    Loss,
    /// The queue was full.
    QueueFull,
    /// Active queue management dropped it early (RED, CoDel and their kin).
    Early,
    /// It had waited longer than the queue's limit in time.
    Expired,
    /// It would have left after a packet sent later, where order is kept by dropping.
    Late,
    /// The link was down.
    Down,
}

impl DropReason {
    /// Every reason, in the order of reports.
    pub const ALL: [DropReason; 6] = [
        DropReason::Loss,
        DropReason::QueueFull,
        DropReason::Early,
        DropReason::Expired,
        DropReason::Late,
        DropReason::Down,
    ];

    /// The word used in reports and `--times` files.
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
