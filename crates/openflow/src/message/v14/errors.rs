//! The numbers of errors, where OpenFlow 1.4 has others than 1.3.

use crate::message::fault::Fault;

/// OFPET_BAD_PROPERTY.
const BAD_PROPERTY: u16 = 14;
/// OFPET_BUNDLE_FAILED.
const BUNDLE_FAILED: u16 = 17;

/// Returns the `type` and `code` of the error message (OpenFlow 1.4 §7.5.4).
pub(crate) fn numbers(fault: &Fault) -> (u16, u16) {
    match fault {
        Fault::Bundle(fault) => (BUNDLE_FAILED, fault.code()),
        _ => match fault.numbers() {
            // Errors in properties of table features are those of all properties.
            (13, code @ 2..=4) => (BAD_PROPERTY, code - 2),
            same => same,
        },
    }
}
