//! The state of a frame on its way through the program, on the stack of the program's entry: what
//! its functions share.

/// Its number, and that of a copy; 0: it is not a copy. Only with a log.
pub(crate) const ENTERED: i16 = 0;
pub(crate) const MADE: i16 = 8;
/// How many frames it counts for, and their bytes.
pub(crate) const FRAMES: i16 = 16;
pub(crate) const BYTES: i16 = 24;
/// The packet, for functions that a helper calls. In front of the rest: memory that is passed to a
/// shared function holds no addresses.
pub(crate) const PACKET: i16 = -8;
/// The index of the interface that it came from.
pub(crate) const FROM: i16 = 32;
/// The switch, its first member, and their number.
pub(crate) const NODE: i16 = 36;
pub(crate) const FIRST: i16 = 40;
pub(crate) const COUNT: i16 = 44;
/// Not 0: it was flooded to a member.
pub(crate) const FLOODED: i16 = 48;
/// The offset of the IP header, what decides its ECN field, and the two bytes before and after a
/// mark.
pub(crate) const ECN_AT: i16 = 52;
pub(crate) const ECN_KIND: i16 = 56;
pub(crate) const ECN_OLD: i16 = 60;
pub(crate) const ECN_NEW: i16 = 64;
/// What the pipe passed last did to the bytes: `outcome` bits.
pub(crate) const DONE: i16 = 68;
/// The byte of a flipped bit, and the bit.
pub(crate) const FLIP_AT: i16 = 72;
pub(crate) const FLIP_MASK: i16 = 76;
/// Not 0: the switch takes nothing from the interface.
pub(crate) const IS_BLOCKED: i16 = 80;
/// The number of the copy that it was, while a copy of it passes the switch.
pub(crate) const BEFORE: i16 = 88;
pub(crate) const SIZE: i16 = 96;
