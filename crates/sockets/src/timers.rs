//! Timers: what is due first, in the order of setting at one instant.

use fastpath_units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Timers by their time.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Time, u64, u64)>>,
    set: u64,
}

impl Timers {
    pub(crate) fn set(&mut self, at: Time, key: u64) {
        self.heap.push(Reverse((at, self.set, key)));
        self.set += 1;
    }

    pub(crate) fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Removes the next timer that is due by `now`. Returns its key.
    pub(crate) fn pop(&mut self, now: Time) -> Option<u64> {
        self.next_at().filter(|at| *at <= now)?;
        self.heap.pop().map(|Reverse((_, _, key))| key)
    }
}
