//! Changing IPv6 packets: one hop's work, and ECN marks. There is no header checksum.

use crate::ipv4::Hop;

/// Counts one hop in the header at `offset` ([`crate::Ipv6::offset`]). Panics when the frame has no header there.
pub fn decrement_hop_limit(frame: &mut [u8], offset: usize) -> Hop {
    let hop_limit = &mut frame[offset + 7];
    if *hop_limit <= 1 {
        return Hop::Expired;
    }
    *hop_limit -= 1;
    Hop::Forward
}

/// Sets the ECN field of the header at `offset` to Congestion Experienced (RFC 3168 §5).
pub(crate) fn set_ce(frame: &mut [u8], offset: usize) {
    // Version, eight bits of traffic class, flow label: ECN is bits 4 and 5 of the second byte.
    frame[offset + 1] |= 0b0011_0000;
}
