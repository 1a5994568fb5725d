//! Whether congestion is signalled by ECN.

/// Whether a discipline signals congestion by ECN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// Packets are dropped.
    #[default]
    Off,
    /// ECN-capable packets are marked instead (RFC 3168 §5).
    Mark,
}
