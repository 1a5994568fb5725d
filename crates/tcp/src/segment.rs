//! What two ends of a connection send each other: the fields of a TCP header, without payload.

/// Ranges of a SACK option with timestamps beside it (RFC 2018 §3).
pub const SACK_BLOCKS: usize = 3;

/// Bytes from the first to before the second, in positions of the stream.
pub type StreamRange = (u64, u64);

/// A segment. Positions of the stream are not reduced to 32 bits: a SYN is position 0, the first
/// byte of data position 1, and a FIN follows the last byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// The position of its first byte, or of its SYN or FIN.
    pub seq: u64,
    /// Bytes of data.
    pub len: u32,
    /// Opens the connection.
    pub syn: bool,
    /// Ends the stream.
    pub fin: bool,
    /// The next position that its sender expects; `None` in the first SYN.
    pub ack: Option<u64>,
    /// Bytes that its sender can take from `ack` on.
    pub window: u64,
    /// Ranges that have arrived above `ack`, the latest first; a range at or below `ack` has
    /// arrived twice (RFC 2883). Unused places are empty ranges.
    pub sack: [StreamRange; SACK_BLOCKS],
    /// ECN echo; in a SYN the wish for ECN (RFC 3168 §6.1.1).
    pub ece: bool,
    /// Congestion window reduced; in a SYN the wish for ECN.
    pub cwr: bool,
    /// The ECN field of its IP header: 0 not capable, 2 ECT(0), 3 marked.
    pub ecn: u8,
    /// Timestamp, ms (RFC 7323 §3).
    pub timestamp: u32,
    /// The timestamp that is echoed.
    pub echo: u32,
}

impl Segment {
    /// Returns the position after it: a SYN and a FIN count as a byte.
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len) + u64::from(self.syn) + u64::from(self.fin)
    }

    /// Returns the ranges of its SACK option.
    pub fn sacked(&self) -> impl Iterator<Item = StreamRange> {
        self.sack.into_iter().filter(|(from, to)| from < to)
    }
}
