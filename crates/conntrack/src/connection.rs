//! One connection, and what packets do to it.

use crate::nat::NatSide;
use crate::tcp::{TcpPhase, TcpTracker, TcpVerdict};
use crate::timeouts::TimeoutKind;
use crate::tuple::FlowTuple;
use crate::view::{PacketKind, PacketView};
use fastpath_units::Time;

/// A connection.
#[derive(Clone, Debug)]
pub(crate) struct TrackedConnection {
    /// The tuple of its first packet, and that of replies.
    pub(crate) tuples: [FlowTuple; 2],
    pub(crate) zone: u16,
    /// It is over from this time on.
    pub(crate) deadline: Time,
    /// When it is looked at: not after the deadline.
    pub(crate) looked_at: Time,
    pub(crate) tracker: Tracker,
    pub(crate) nat: Option<NatSide>,
    pub(crate) mark: u32,
    pub(crate) label: u128,
}

/// What is known of the packets so far.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tracker {
    /// TCP.
    Tcp(TcpTracker),
    /// ICMP: whether a reply was seen.
    Icmp { has_reply: bool },
    /// Any other protocol.
    Other(OtherState),
}

/// The progress of a connection that is not one of TCP.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OtherState {
    /// One packet.
    First,
    /// Several packets of the side that began.
    Multiple,
    /// Packets of both sides.
    Both,
}

/// A connection as lists show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectionInfo {
    /// The zone.
    pub zone: u16,
    /// The tuple of its first packet.
    pub original: FlowTuple,
    /// The tuple of replies.
    pub reply: FlowTuple,
    /// The phases of the peers of TCP: of the one that began, and of the other.
    pub tcp: Option<(TcpPhase, TcpPhase)>,
    /// Whether packets of both sides were seen.
    pub has_reply: bool,
    /// The mark.
    pub mark: u32,
    /// The label.
    pub label: u128,
    /// When it ends if no packet comes.
    pub deadline: Time,
}

impl TrackedConnection {
    /// Returns the connection that a packet begins, and its first timeout. The deadline is not set
    /// yet.
    pub(crate) fn new(zone: u16, packet: &PacketView) -> (TrackedConnection, TimeoutKind) {
        let (tracker, timeout) = match packet.kind {
            PacketKind::Tcp(segment) => (Tracker::Tcp(TcpTracker::new(&segment)), TimeoutKind::TcpFirst),
            _ if packet.tuple.is_icmp() => (Tracker::Icmp { has_reply: false }, TimeoutKind::IcmpFirst),
            _ => (Tracker::Other(OtherState::First), TimeoutKind::OtherFirst),
        };
        let connection = TrackedConnection {
            tuples: [packet.tuple, packet.tuple.reversed()],
            zone,
            deadline: Time::ZERO,
            looked_at: Time::ZERO,
            tracker,
            nat: None,
            mark: 0,
            label: 0,
        };
        (connection, timeout)
    }

    /// Takes over a packet that is not an error. Returns the timeout from now on; `None` leaves the
    /// deadline as it is.
    pub(crate) fn update(
        &mut self,
        packet: &PacketView,
        is_reply: bool,
    ) -> (TcpVerdict, Option<TimeoutKind>) {
        match &mut self.tracker {
            Tracker::Tcp(tracker) => match packet.kind {
                PacketKind::Tcp(segment) => tracker.update(&segment, is_reply),
                _ => (TcpVerdict::Invalid, None),
            },
            Tracker::Icmp { has_reply } => {
                *has_reply |= is_reply;
                match *has_reply {
                    true => (TcpVerdict::Valid, Some(TimeoutKind::IcmpReply)),
                    false => (TcpVerdict::StillNew, Some(TimeoutKind::IcmpFirst)),
                }
            }
            Tracker::Other(progress) => {
                if is_reply {
                    *progress = OtherState::Both;
                } else if *progress == OtherState::First {
                    *progress = OtherState::Multiple;
                }
                match *progress {
                    OtherState::Both => (TcpVerdict::Valid, Some(TimeoutKind::OtherBoth)),
                    _ => (TcpVerdict::StillNew, Some(TimeoutKind::OtherMultiple)),
                }
            }
        }
    }

    pub(crate) fn info(&self) -> ConnectionInfo {
        let (tcp, has_reply) = match self.tracker {
            Tracker::Tcp(tracker) => {
                let phases = tracker.phases();
                (Some(phases), phases.1 > TcpPhase::Closed)
            }
            Tracker::Icmp { has_reply } => (None, has_reply),
            Tracker::Other(progress) => (None, progress == OtherState::Both),
        };
        let [original, reply] = self.tuples;
        let TrackedConnection { zone, mark, label, deadline, .. } = *self;
        ConnectionInfo { zone, original, reply, tcp, has_reply, mark, label, deadline }
    }
}
