//! One connection, and what packets do to it.
//!
//! What every packet needs is one cache line, [`TrackedConnection`]. What few connections have is
//! apart, in [`ConnectionRest`]: addresses of IPv6, NAT, a label, helpers.

use crate::alg::Alg;
use crate::expect::ExpectKey;
use crate::nat::NatSide;
use crate::sequence::SequenceShifts;
use crate::tcp::{TcpPhase, TcpTracker, TcpVerdict};
use crate::timeouts::TimeoutKind;
use crate::tuple::FlowTuple;
use crate::view::{PacketKind, PacketView};
use fastpath_units::Time;

/// What every packet of a connection needs.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct TrackedConnection {
    /// The tuple of its first packet, if it has no rest.
    src: u32,
    dst: u32,
    src_port: u16,
    dst_port: u16,
    pub(crate) zone: u16,
    protocol: u8,
    flags: Flags,
    /// It is over from this time on.
    pub(crate) deadline: Time,
    /// When it is looked at: not after the deadline.
    pub(crate) looked_at: Time,
    tcp: TcpTracker,
    /// The number of its rest, or its mark if it has none.
    word: u32,
}

const _: () = assert!(size_of::<TrackedConnection>() == 64);

/// What few connections have.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionRest {
    /// The tuple of its first packet, and that of replies.
    pub(crate) tuples: [FlowTuple; 2],
    pub(crate) nat: Option<NatSide>,
    pub(crate) mark: u32,
    pub(crate) label: u128,
    pub(crate) alg: Option<Alg>,
    /// The first tuple of the connection that expected this one.
    pub(crate) parent: Option<FlowTuple>,
    /// The connections that this one expects, the oldest first.
    pub(crate) expected: Vec<ExpectKey>,
    /// How its payload was moved.
    pub(crate) shifts: SequenceShifts,
}

impl ConnectionRest {
    /// Returns whether the line is enough for it.
    pub(crate) fn is_plain(&self) -> bool {
        let [original, reply] = self.tuples;
        let is_other = original.is_v6 || reply != original.reversed() || self.label != 0;
        !is_other && self.nat.is_none() && self.alg.is_none() && self.parent.is_none()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Flags(u8);

/// It is in use.
const LIVE: u8 = 1;
/// It has a rest.
const REST: u8 = 2;
/// It is one of TCP.
const IS_TCP: u8 = 4;
/// Without TCP: there were several packets of the side that began.
const MULTIPLE: u8 = 8;
/// Without TCP: there were packets of the other side.
const BOTH: u8 = 16;

impl Flags {
    fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }
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
    /// The protocol whose further connections are expected.
    pub alg: Option<Alg>,
    /// The first tuple of the connection that expected this one.
    pub parent: Option<FlowTuple>,
    /// When it ends if no packet comes.
    pub deadline: Time,
}

impl TrackedConnection {
    /// Returns the connection that a packet begins, and its first timeout. The deadline is not set
    /// yet.
    pub(crate) fn new(zone: u16, packet: &PacketView<'_>) -> (TrackedConnection, TimeoutKind) {
        let (tcp, flags, timeout) = match packet.kind {
            PacketKind::Tcp(segment) => (TcpTracker::new(&segment), IS_TCP, TimeoutKind::TcpFirst),
            _ if packet.tuple.is_icmp() => (TcpTracker::default(), 0, TimeoutKind::IcmpFirst),
            _ => (TcpTracker::default(), 0, TimeoutKind::OtherFirst),
        };
        let FlowTuple { src, dst, src_port, dst_port, protocol, .. } = packet.tuple;
        let connection = TrackedConnection {
            src: src as u32,
            dst: dst as u32,
            src_port,
            dst_port,
            zone,
            protocol,
            flags: Flags(LIVE | flags),
            deadline: Time::ZERO,
            looked_at: Time::ZERO,
            tcp,
            word: 0,
        };
        (connection, timeout)
    }

    pub(crate) fn is_live(&self) -> bool {
        self.flags.has(LIVE)
    }

    pub(crate) fn end(&mut self) {
        self.flags = Flags(0);
    }

    /// Returns the number of its rest.
    pub(crate) fn rest(&self) -> Option<u32> {
        self.flags.has(REST).then_some(self.word)
    }

    pub(crate) fn set_rest(&mut self, rest: u32) {
        self.flags.0 |= REST;
        self.word = rest;
    }

    /// Returns the mark of a connection without a rest.
    pub(crate) fn plain_mark(&self) -> u32 {
        self.word
    }

    /// Sets the mark of a connection without a rest.
    pub(crate) fn set_plain_mark(&mut self, mark: u32) {
        self.word = mark;
    }

    /// Returns the tuple of the first packet of a connection without a rest.
    pub(crate) fn plain_tuple(&self) -> FlowTuple {
        let TrackedConnection { src, dst, src_port, dst_port, protocol, .. } = *self;
        FlowTuple { src: src.into(), dst: dst.into(), src_port, dst_port, protocol, is_v6: false }
    }

    /// Returns whether a connection without a rest has a tuple, and whether as that of replies.
    #[inline]
    pub(crate) fn plain_direction(&self, tuple: &FlowTuple) -> Option<bool> {
        if self.protocol != tuple.protocol || tuple.is_v6 {
            return None;
        }
        let ends = (tuple.src as u32, tuple.dst as u32);
        let ports = (tuple.src_port, tuple.dst_port);
        if (self.src, self.dst) == ends && (self.src_port, self.dst_port) == ports {
            return Some(false);
        }
        let is_reply = match tuple.is_icmp() {
            true => self.plain_tuple() == tuple.reversed(),
            false => (self.dst, self.src) == ends && (self.dst_port, self.src_port) == ports,
        };
        is_reply.then_some(true)
    }

    /// Takes over a packet that is not an error. Returns the timeout from now on; `None` leaves the
    /// deadline as it is.
    #[inline]
    pub(crate) fn update(
        &mut self,
        packet: &PacketView<'_>,
        is_reply: bool,
    ) -> (TcpVerdict, Option<TimeoutKind>) {
        if self.flags.has(IS_TCP) {
            return match packet.kind {
                PacketKind::Tcp(segment) => self.tcp.update(&segment, is_reply),
                _ => (TcpVerdict::Invalid, None),
            };
        }
        self.flags.0 |= if is_reply { BOTH } else { MULTIPLE };
        match (packet.tuple.is_icmp(), self.flags.has(BOTH)) {
            (true, true) => (TcpVerdict::Valid, Some(TimeoutKind::IcmpReply)),
            (true, false) => (TcpVerdict::StillNew, Some(TimeoutKind::IcmpFirst)),
            (false, true) => (TcpVerdict::Valid, Some(TimeoutKind::OtherBoth)),
            (false, false) => (TcpVerdict::StillNew, Some(TimeoutKind::OtherMultiple)),
        }
    }

    /// Returns the phases of the peers of TCP.
    pub(crate) fn phases(&self) -> Option<(TcpPhase, TcpPhase)> {
        self.flags.has(IS_TCP).then(|| self.tcp.phases())
    }

    /// Returns whether packets of both sides were seen.
    pub(crate) fn has_reply(&self) -> bool {
        self.phases().map_or(self.flags.has(BOTH), |(_, other)| other > TcpPhase::Closed)
    }
}
