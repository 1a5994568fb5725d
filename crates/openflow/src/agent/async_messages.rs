//! Asynchronous messages that each controller receives once: flow-removed and port-status.
//!
//! ```text
//!   push ─▶ │ n │ n+1 │ … │ ─▶ each connection at its own pace: `delivered` is the number of the next one for it
//! ```
//!
//! All connections share one list, so that a slow one delays no other. A message is removed when
//! all connections have received it, and beyond [`WAITING_MAX`] bytes the oldest are dropped: the
//! connections that have not received them miss them. Packet-ins are not in the list: those that
//! find no room are dropped at once.

use super::connection::Connection;
use super::event::{Event, EventForm};
use std::collections::VecDeque;
use std::time::Instant;

/// Most bytes of the events that wait: enough for the flow-removed messages of a full table, whose
/// flows may all expire at once (2^20, each of less than 400 bytes).
const WAITING_MAX: usize = 400 << 20;

/// See the head of this file.
pub(super) struct AsyncMessages {
    /// The number of the first event in the list.
    first: u64,
    /// The number of the first event that snoop connections have not received.
    pub(super) shown: u64,
    events: VecDeque<Event>,
    /// The bytes of memory of the events, and how many there may be.
    bytes: usize,
    most: usize,
}

impl Default for AsyncMessages {
    fn default() -> AsyncMessages {
        AsyncMessages { first: 0, shown: 0, events: VecDeque::new(), bytes: 0, most: WAITING_MAX }
    }
}

impl AsyncMessages {
    /// Adds an event.
    pub(super) fn push(&mut self, event: Event) {
        self.bytes += event.bytes();
        self.events.push_back(event);
    }

    /// Returns the number that the next event will have.
    pub(super) fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// Delivers the events for which a connection has room: while at most this many bytes wait.
    /// Changes of flows do not wait: they are held back. `encode` returns the bytes of an event,
    /// or `None` if there is nothing to send. A connection that receives no asynchronous messages,
    /// or is stalled, misses them.
    pub(super) fn deliver(
        &self,
        connection: &mut Connection,
        now: Instant,
        waits_at_most: usize,
        mut encode: impl FnMut(u64, EventForm, &Event) -> Option<Vec<u8>>,
    ) {
        if !connection.receives_async() {
            connection.delivered = self.end();
        }
        let is_reading = connection.is_reading(now);
        while connection.delivered < self.end() {
            let event = &self.events[(connection.delivered - self.first) as usize];
            let has_room = connection.output().len() <= waits_at_most;
            let form = match event {
                Event::FlowChanges(changes) if !has_room || connection.monitors.held.is_some() => {
                    Some(connection.hold(changes))
                }
                _ if !has_room && is_reading => return,
                _ if !connection.wants(event) => None,
                _ if has_room => Some(connection.event_form(event)),
                _ => {
                    connection.missed += 1;
                    None
                }
            };
            if let Some(bytes) = form.and_then(|form| encode(connection.delivered, form, event)) {
                connection.output().extend_from_slice(&bytes);
            }
            connection.delivered += 1;
        }
    }

    /// Removes the events that all these connections have received, and the oldest beyond the
    /// bound.
    pub(super) fn tidy<'a>(&mut self, connections: impl Iterator<Item = &'a mut Connection>) {
        let mut connections: Vec<_> = connections.collect();
        let delivered = connections.iter().map(|one| one.delivered).min().unwrap_or(self.end());
        let gone = self.events.drain(..(delivered - self.first) as usize);
        self.bytes -= gone.map(|event| event.bytes()).sum::<usize>();
        self.first = delivered;
        while self.bytes > self.most
            && let Some(event) = self.events.pop_front()
        {
            self.bytes -= event.bytes();
            for connection in connections.iter_mut().filter(|one| one.delivered == self.first) {
                connection.missed += u64::from(connection.wants(&event));
                connection.delivered += 1;
            }
            self.first += 1;
        }
        // A list that was long does not keep its memory.
        if self.events.capacity() > 1024 && self.events.len() < self.events.capacity() / 4 {
            self.events.shrink_to(self.events.capacity() / 2);
        }
    }
}

#[cfg(test)]
mod tests;
