//! When packets leave whose sender cannot run at each of their times.
//!
//! A sender that sleeps too long finds packets that were due in the past. If all of them left at
//! once, a short queue would drop some, which no description asks for. A pacer lets them leave in
//! the gaps of the model, shortened by a constant factor, until the sender has caught up:
//!
//! ```text
//!  due       | | | | | | | | | | | | |
//!  sender    ■■■■■       stall       ■■■■■■■■■■■■
//!  leave     | | |                   ||||||| | |
//! ```

use crate::Packets;
use fastpath_units::{Duration, Time};

/// Packets that are overdue leave in two thirds of the gaps of their model: a link that carries 1.5
/// times the rate of the flow queues none of them.
const GAP_NUMERATOR: u128 = 2;
const GAP_DENOMINATOR: u128 = 3;
/// A sender that runs this long after the time of a packet is not behind. A sleep of Linux takes
/// about this much longer than asked for.
const SLACK: Duration = Duration::from_us(100);

/// The packets of a source, each with the time at which it may leave.
#[derive(Clone, Debug)]
pub struct Pacer {
    packets: Packets,
    /// When the packet before was due, and when it left: not earlier than [`SLACK`] before then.
    before: Option<(Time, Time)>,
}

impl Pacer {
    /// Paces the packets of a source.
    pub fn new(packets: Packets) -> Pacer {
        Pacer { packets, before: None }
    }

    /// Returns when the next packet may leave; `None` if there is none before the stop.
    pub fn next_at(&self) -> Option<Time> {
        let due = self.packets.next_at()?;
        let leaves = match self.before {
            None => due,
            Some((due_before, left)) => {
                let gap = u128::from(due.since(due_before).as_ps()) * GAP_NUMERATOR / GAP_DENOMINATOR;
                due.max(left.saturating_add(Duration::from_ps(gap as u64)))
            }
        };
        (leaves < self.packets.stop).then_some(leaves)
    }

    /// Takes the next packet if it may leave at `now`: its payload in bytes. Nothing leaves at the
    /// stop or later.
    pub fn take(&mut self, now: Time) -> Option<u32> {
        let leaves = self.next_at().filter(|at| *at <= now && now < self.packets.stop)?;
        let (due, size) = self.packets.next()?;
        self.before = Some((due, leaves.max(now.saturating_sub(SLACK))));
        Some(size)
    }

    /// Whether the next packet is overdue at `now`.
    pub fn is_behind(&self, now: Time) -> bool {
        self.packets.next_at().is_some_and(|due| due < now.saturating_sub(SLACK))
    }

    /// When the source stops.
    pub fn stop(&self) -> Time {
        self.packets.stop
    }
}
