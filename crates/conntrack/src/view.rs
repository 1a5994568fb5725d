//! What tracking needs to know of a packet.

use crate::tuple::FlowTuple;

/// A packet, parsed by the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketView<'a> {
    /// Its tuple. For an error of ICMP: the reverse of the tuple of the packet that it reports, so
    /// that its direction is that of the error.
    pub tuple: FlowTuple,
    /// What else matters.
    pub kind: PacketKind,
    /// Its payload above TCP or UDP, for helpers.
    pub payload: &'a [u8],
}

/// The kind of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketKind {
    /// A segment of TCP.
    Tcp(TcpSegment),
    /// An error of ICMP about another packet.
    IcmpError,
    /// Any other packet.
    Other,
}

/// A segment of TCP (RFC 9293 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpSegment {
    /// Its flags; see [`tcp_flags`].
    pub flags: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Window as the header has it.
    pub window: u16,
    /// Bytes of payload.
    pub len: u32,
    /// The shift of the window scale option (RFC 7323 §2), if there is one.
    pub scale: Option<u8>,
}

/// Flags of TCP.
pub mod tcp_flags {
    /// No more data from the sender.
    pub const FIN: u16 = 1;
    /// Synchronise sequence numbers.
    pub const SYN: u16 = 2;
    /// Reset the connection.
    pub const RST: u16 = 4;
    /// Push.
    pub const PSH: u16 = 8;
    /// The acknowledgement number counts.
    pub const ACK: u16 = 16;
    /// The urgent pointer counts.
    pub const URG: u16 = 32;
}

impl TcpSegment {
    /// Returns whether all of some flags are set.
    pub(crate) fn has(&self, flags: u16) -> bool {
        self.flags & flags == flags
    }

    /// Returns the sequence number after the segment: SYN and FIN take one each (RFC 9293 §3.4).
    pub(crate) fn end(&self) -> u32 {
        let control = u32::from(self.has(tcp_flags::SYN)) + u32::from(self.has(tcp_flags::FIN));
        self.seq.wrapping_add(self.len).wrapping_add(control)
    }

    /// Returns whether the flags are possible together.
    pub(crate) fn has_valid_flags(&self) -> bool {
        use tcp_flags::{ACK, FIN, PSH, RST, SYN, URG};
        let begins_or_answers = match self.has(SYN) {
            true => self.flags & (RST | FIN) == 0,
            false => self.flags & (ACK | RST) != 0,
        };
        begins_or_answers && (self.has(ACK) || self.flags & (FIN | PSH | URG) == 0)
    }
}
