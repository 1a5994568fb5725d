//! What happened and is told once: flows that went, ports that changed.
//!
//! ```text
//!   push ─▶ │ n │ n+1 │ … │ ─▶ each connection at its own pace: `told` is the number of the first it has not been told
//! ```
//!
//! All connections share one list, so that one that reads slowly holds up no other; what all have
//! been told is forgotten, and beyond [`WAITING_MAX`] the oldest are. Packet-ins are not here:
//! those that find no room are dropped at once.

use super::connection::Connection;
use super::event::Event;
use std::collections::VecDeque;
use std::time::Instant;

/// Events that wait at most: as many as there may be flows in a table, which may all go at once.
const WAITING_MAX: usize = 1 << 20;

/// See the head of this file.
#[derive(Default)]
pub(super) struct AsyncMessages {
    /// The number of the first that is here.
    first: u64,
    events: VecDeque<Event>,
}

impl AsyncMessages {
    /// Something has happened.
    pub(super) fn push(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// The number that the next event will have.
    pub(super) fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// Tells a connection what it has room for; `encode` gives the bytes of an event, unless there
    /// is nothing to say. Who is not there for events, or does not read, misses them.
    pub(super) fn tell(
        &self,
        connection: &mut Connection,
        now: Instant,
        mut encode: impl FnMut(u64, &Event) -> Option<Vec<u8>>,
    ) {
        if !connection.receives_async() {
            connection.delivered = self.end();
        }
        let is_reading = connection.is_reading(now);
        while connection.delivered < self.end() && (connection.has_room_for_async() || !is_reading) {
            let event = &self.events[(connection.delivered - self.first) as usize];
            if connection.wants(event) {
                if connection.has_room_for_async() {
                    if let Some(bytes) = encode(connection.delivered, event) {
                        connection.tell(&bytes);
                    }
                } else {
                    connection.missed += 1;
                }
            }
            connection.delivered += 1;
        }
    }

    /// Forgets what all these connections have been told, and the oldest of what is too much.
    pub(super) fn tidy<'a>(&mut self, connections: impl Iterator<Item = &'a mut Connection>) {
        let mut connections: Vec<_> = connections.collect();
        let told = connections.iter().map(|one| one.delivered).min().unwrap_or(self.end());
        self.events.drain(..(told - self.first) as usize);
        self.first = told;
        while self.events.len() > WAITING_MAX
            && let Some(event) = self.events.pop_front()
        {
            for connection in connections.iter_mut().filter(|one| one.delivered == self.first) {
                connection.missed += u64::from(connection.wants(&event));
                connection.delivered += 1;
            }
            self.first += 1;
        }
        // A list that has been long does not keep its memory.
        if self.events.capacity() > 1024 && self.events.len() < self.events.capacity() / 4 {
            self.events.shrink_to(self.events.capacity() / 2);
        }
    }
}
