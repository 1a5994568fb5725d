//! Timers: what is due first, in the order of setting at one instant.

use fastpath_units::Time;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Timers by their time.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Time, u64, u64)>>,
    /// The keys of timers that will go off, and of those in the heap that will not.
    pending: BTreeSet<u64>,
    cancelled: BTreeSet<u64>,
    set: u64,
}

impl Timers {
    pub(crate) fn set(&mut self, at: Time, key: u64) {
        self.heap.push(Reverse((at, self.set, key)));
        self.pending.insert(key);
        self.set += 1;
    }

    /// Cancels the timer with a key that only one timer has.
    pub(crate) fn cancel(&mut self, key: u64) {
        if self.pending.remove(&key) {
            self.cancelled.insert(key);
            self.prune();
        }
    }

    /// Removes cancelled timers from the front.
    fn prune(&mut self) {
        while let Some(Reverse((.., key))) = self.heap.peek()
            && self.cancelled.remove(key)
        {
            self.heap.pop();
        }
    }

    pub(crate) fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Removes the next timer that is due by `now`. Returns its key.
    pub(crate) fn pop(&mut self, now: Time) -> Option<u64> {
        self.next_at().filter(|at| *at <= now)?;
        let popped = self.heap.pop().map(|Reverse((.., key))| key);
        if let Some(key) = popped {
            self.pending.remove(&key);
        }
        self.prune();
        popped
    }
}
