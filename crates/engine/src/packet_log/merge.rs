//! Puts the log entries of several workers in the order of their times. Each worker sends its own
//! in order, and passes them on well within [`MERGE_INTERVAL`]; an entry of a worker that was kept
//! from its core for longer than that comes where it comes.

use super::LoggedFrame;
use crate::capture::MERGE_INTERVAL;
use fastpath_units::{Duration, Time};
use std::time::Instant;

/// Entries held back at most, 40 MiB. Beyond them they are written as they come.
const HELD_MAX: usize = 1 << 17;

/// Entries that wait for those of other workers.
pub(super) struct LogMerge {
    entries: Vec<LoggedFrame>,
    /// Entries with the numbers of the next topology.
    next: Vec<LoggedFrame>,
    /// By worker: whether it has changed to the next topology.
    has_next: Vec<bool>,
    /// A time of the run that has passed, and when.
    known: Option<(Time, Instant)>,
    /// The latest look: entries before it have come by the next one.
    looked: (Time, Instant),
}

impl LogMerge {
    pub(super) fn new(workers: usize) -> LogMerge {
        let (entries, next, has_next) = (Vec::new(), Vec::new(), vec![false; workers]);
        LogMerge { entries, next, has_next, known: None, looked: (Time::ZERO, Instant::now()) }
    }

    pub(super) fn add(&mut self, worker: usize, mut entries: Vec<LoggedFrame>) {
        if let (None, Some(last)) = (self.known, entries.last()) {
            self.known = Some((last.entry.at, Instant::now()));
        }
        if self.has_next[worker] { &mut self.next } else { &mut self.entries }.append(&mut entries);
    }

    /// A worker changes to the next topology. Returns whether all have.
    pub(super) fn rearranged(&mut self, worker: usize) -> bool {
        self.has_next[worker] = true;
        self.has_next.iter().all(|has_next| *has_next)
    }

    /// The entries of the next topology are those to be written.
    pub(super) fn follow(&mut self) {
        self.entries.append(&mut self.next);
        self.has_next.fill(false);
    }

    /// Whether entries wait.
    pub(super) fn has_entries(&self) -> bool {
        !self.entries.is_empty() || !self.next.is_empty()
    }

    /// Takes the entries that are in order.
    pub(super) fn take(&mut self) -> Vec<LoggedFrame> {
        if self.has_next.len() == 1 {
            return std::mem::take(&mut self.entries);
        }
        if self.entries.len() > HELD_MAX {
            return self.take_until(Time::MAX);
        }
        let (until, at) = self.looked;
        if at.elapsed() < MERGE_INTERVAL {
            return Vec::new();
        }
        let now = self.known.map(|(time, at)| time.saturating_add(Duration::from(at.elapsed())));
        self.looked = (now.unwrap_or(Time::ZERO), Instant::now());
        self.take_until(until)
    }

    /// Takes all entries of the topology.
    pub(super) fn take_all(&mut self) -> Vec<LoggedFrame> {
        self.take_until(Time::MAX)
    }

    fn take_until(&mut self, until: Time) -> Vec<LoggedFrame> {
        if self.has_next.len() > 1 {
            self.entries.sort_by_key(|logged| logged.entry.at);
        }
        let count = self.entries.partition_point(|logged| logged.entry.at <= until);
        let rest = self.entries.split_off(count);
        std::mem::replace(&mut self.entries, rest)
    }
}
