//! Reads fields of a packet as it is now.

use super::bits::Bits;
use crate::execute::effects::Packet;
use crate::key::Key;
use fastpath_wire::Headers;

/// Returns the key of a packet as it is now.
pub(super) fn key_of(packet: &Packet) -> Key {
    Key::extract(&packet.frame, &Headers::parse(&packet.frame), packet.context)
}

/// Returns the value of bits of a packet; `None` if it does not have the field.
pub(super) fn read(packet: &Packet, bits: Bits) -> Option<u128> {
    bits.of(&key_of(packet))
}
