//! Ports: 16 bits in OpenFlow 1.0, 32 bits in this crate. Reserved ports are the highest numbers of
//! both.

use crate::message::bytes::{ByteReader, Write};
use crate::message::fault::Fault;

/// The first number that is not an ordinary port (OFPP_MAX).
const MAX: u16 = 0xff00;
/// What the upper half of a reserved port is in 32 bits.
const RESERVED: u32 = 0xffff_0000;

/// Returns the port of a number of OpenFlow 1.0.
pub(crate) fn widen(number: u16) -> u32 {
    if number < MAX { number.into() } else { RESERVED | u32::from(number) }
}

/// Returns the number in OpenFlow 1.0; `None` for a port that it cannot name.
pub(crate) fn narrow(port: u32) -> Option<u16> {
    let number = port as u16;
    (widen(number) == port).then_some(number)
}

/// Returns whether it is an ordinary port.
pub(crate) fn is_ordinary(port: u32) -> bool {
    port < MAX.into()
}

pub(crate) fn read(r: &mut ByteReader<'_>) -> Result<u32, Fault> {
    r.u16().map(widen)
}

/// Writes a port; OFPP_NONE for one that OpenFlow 1.0 cannot name.
pub(crate) fn write(out: &mut Vec<u8>, port: u32) {
    out.u16(narrow(port).unwrap_or(u16::MAX));
}
