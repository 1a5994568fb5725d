//! The numbers of errors. OpenFlow 1.0 has fewer than 1.3, and others. Errors that it does not have
//! are those of Nicira, as in Open vSwitch.

use crate::message::bytes::Write;
use crate::message::control::ErrorMessage;
use crate::message::fault::Fault;
use crate::message::nx_bits::NICIRA;

/// NXET_VENDOR, the type of errors of an experimenter. Their code is 0 (NXVC_VENDOR_ERROR).
const NXET_VENDOR: u16 = 0xb0c2;

/// An error in a message of OpenFlow 1.0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Number {
    /// Type and code of the specification.
    Standard(u16, u16),
    /// Type and code of Nicira.
    Nicira(u16, u16),
}

/// Returns the error message for a request that begins with `data`.
pub(crate) fn message(fault: &Fault, data: &[u8]) -> ErrorMessage {
    match number(fault) {
        Number::Standard(kind, code) => ErrorMessage { kind, code, data: data.to_vec() },
        Number::Nicira(kind, code) => {
            let mut inside = Vec::with_capacity(8 + data.len());
            inside.u32(NICIRA);
            inside.u16(kind);
            inside.u16(code);
            inside.extend_from_slice(data);
            ErrorMessage { kind: NXET_VENDOR, code: 0, data: inside }
        }
    }
}

fn number(fault: &Fault) -> Number {
    use Number::{Nicira, Standard};
    match fault {
        Fault::EmergencyTimeout => return Standard(3, 3),
        Fault::EmergencyFlow => return Standard(3, 0),
        // NXBRC_NXM_INVALID.
        Fault::AdditionToCookies => return Nicira(1, 256),
        // NXR_STALE.
        Fault::ContinuationStale => return Nicira(1, 534),
        _ => {}
    }
    // By the numbers of OpenFlow 1.3.
    match fault.numbers() {
        same @ ((0, 0 | 1) | (1, 0..=8) | (2, 0..=8)) => Standard(same.0, same.1),
        // A slave has no permission.
        (1, 10) => Standard(1, 5),
        (5, 1) => Standard(3, 0),
        (5, 3) => Standard(3, 1),
        (5, 6) => Standard(3, 4),
        (7, 0) => Standard(4, 0),
        (7, 1) => Standard(4, 1),
        (9, 0) => Standard(5, 0),
        (9, 1) => Standard(5, 1),
        (1, 9) => Nicira(1, 512),
        (1, 11) => Nicira(1, 514),
        (2, 9) => Nicira(2, 9),
        (2, 10) => Nicira(1, 522),
        (2, 13) => Nicira(1, 523),
        (2, 14) => Nicira(1, 524),
        (2, 15) => Nicira(1, 525),
        (4, 5) => Nicira(1, 262),
        (4, 6) => Nicira(0, 263),
        (4, 7) => Nicira(1, 258),
        (4, 8) => Nicira(1, 259),
        (4, 9) => Nicira(1, 260),
        (4, 10) => Nicira(1, 261),
        (5, 2) => Nicira(5, 257),
        (5, 7) => Nicira(3, 258),
        (11, 2) => Nicira(1, 513),
        // NXBRC_UNENCODABLE_ERROR.
        _ => Nicira(1, 521),
    }
}
