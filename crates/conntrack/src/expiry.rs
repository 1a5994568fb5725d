//! Deadlines, the earliest first.
//!
//! A packet usually moves the deadline of its connection to a later time. That costs nothing here:
//! the entry stays, and when its time comes it is put back with the present deadline. Only an
//! earlier deadline makes another entry. Entries of connections that have gone stay too, until
//! they are the larger part: then all are made again ([`Expiry::is_stale`]).

use fastpath_units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Entries beyond two for each connection that may wait for their time.
const SLACK: usize = 1024;

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

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether most entries are of no use any more, with this many connections.
    pub(crate) fn is_stale(&self, connections: usize) -> bool {
        self.entries.len() > 2 * connections + SLACK
    }

    /// Looks at these connections, each at its time, and at no others.
    pub(crate) fn replace(&mut self, all: impl Iterator<Item = (Time, u32)>) {
        self.entries = all.map(Reverse).collect();
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
