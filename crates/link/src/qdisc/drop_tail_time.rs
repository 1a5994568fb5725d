//! Drop-tail by time: a newcomer joins unless what is before it takes the link longer than a limit,
//! at the rate as it is when it comes. It is the byte limit that follows a rate that changes;
//! [`SojournSpec`](super::SojournSpec) instead lets packets in and drops them once they have waited
//! too long.

use super::{Admission, Backlog};
use crate::packet::DropReason;
use fastpath_units::Duration;

const PS_PER_S: u128 = 1_000_000_000_000;

/// Takes the packet if the frames before it, without framing overhead and with the packet on the
/// wire counted whole, are sent within `longest`. Without a rate nothing takes any time.
pub(crate) fn admit(longest: Duration, backlog: Backlog) -> Admission {
    let Some(rate) = backlog.rate else { return Admission::Take };
    let needed = u128::from(backlog.queued.bytes) * 8 * PS_PER_S;
    match needed <= u128::from(longest.as_ps()) * u128::from(rate.as_bps()) {
        true => Admission::Take,
        false => Admission::Drop(DropReason::QueueFull),
    }
}
