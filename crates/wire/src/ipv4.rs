//! Changing IPv4 packets: one hop's work, and ECN marks.

use crate::bytes::{be16, put16};
use crate::checksum;

/// What a router does with a packet after counting the hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hop {
    /// Forward it; the field has been decremented.
    Forward,
    /// Its life ends here; the packet is as it was, to be quoted in a time-exceeded message.
    Expired,
}

/// Counts one hop in the TTL of the header at `offset` ([`crate::Ipv4::offset`]) and updates its checksum
/// incrementally, so that a wrong checksum stays wrong. Panics when the frame has no header there.
pub fn decrement_ttl(frame: &mut [u8], offset: usize) -> Hop {
    let header = &mut frame[offset..offset + 20];
    if header[8] <= 1 {
        return Hop::Expired;
    }
    rewrite(header, 8, |word| word - 0x0100);
    Hop::Forward
}

/// Sets the ECN field of the header at `offset` to Congestion Experienced (RFC 3168 §5).
pub(crate) fn set_ce(frame: &mut [u8], offset: usize) {
    rewrite(&mut frame[offset..offset + 20], 0, |word| word | 0b11);
}

/// Changes the 16-bit field at `at` of an IPv4 header and its checksum with it.
fn rewrite(header: &mut [u8], at: usize, change: impl FnOnce(u16) -> u16) {
    let old = u16::from_be_bytes([header[at], header[at + 1]]);
    let new = change(old);
    put16(header, at, new);
    let sum = be16(header, 10).unwrap_or(0);
    put16(header, 10, checksum::update(sum, old, new));
}
