//! Deadlines, the earliest first.
//!
//! A packet usually moves the deadline of its connection to a later time. That costs nothing here:
//! the entry stays, and when its time comes it is put back with the present deadline. Only an
//! earlier deadline makes another entry. So there are at most as many entries of a connection as
//! there are kinds of timeouts.

use fastpath_units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The times at which connections are looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expiry {
    entries: BinaryHeap<Reverse<(Time, u32)>>,
}

impl Expiry {
    /// Looks at a connection at a time.
    pub(crate) fn add(&mut self, at: Time, id: u32) {
        self.entries.push(Reverse((at, id)));
    }

    /// Returns the next connection whose time has come.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<(Time, u32)> {
        let Reverse((at, _)) = self.entries.peek()?;
        if *at > now {
            return None;
        }
        self.entries.pop().map(|Reverse(entry)| entry)
    }

    pub(crate) fn next_at(&self) -> Option<Time> {
        self.entries.peek().map(|Reverse((at, _))| *at)
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}
