//! The first bytes of the payload of every datagram: which it is, and when it was sent.

use fastpath_units::Time;

/// The length of a header, bytes: the least payload of a datagram.
pub const HEADER_LEN: usize = 16;

/// Identifies a datagram of a flow. The receiver computes losses and delays from it. On the wire it
/// is two numbers of 64 bits, big endian.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowHeader {
    /// Counted from 0.
    pub sequence: u64,
    /// When it was sent, from the start of the run.
    pub sent: Time,
}

impl FlowHeader {
    /// Returns the bytes of the header.
    #[inline]
    pub fn to_bytes(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[8..].copy_from_slice(&self.sent.as_ps().to_be_bytes());
        bytes
    }

    /// Reads the header of a payload; `None` if the payload is shorter than a header.
    #[inline]
    pub fn parse(payload: &[u8]) -> Option<FlowHeader> {
        let (sequence, rest) = payload.split_first_chunk()?;
        let (sent, _) = rest.split_first_chunk()?;
        let sent = Time::from_ps(u64::from_be_bytes(*sent));
        Some(FlowHeader { sequence: u64::from_be_bytes(*sequence), sent })
    }
}
