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
    events: VecDeque<Event>,
    /// The bytes of memory of the events, and how many there may be.
    bytes: usize,
    most: usize,
}

impl Default for AsyncMessages {
    fn default() -> AsyncMessages {
        AsyncMessages { first: 0, events: VecDeque::new(), bytes: 0, most: WAITING_MAX }
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

    /// Delivers the events for which a connection has room. `encode` returns the bytes of an event,
    /// or `None` if there is nothing to send. A connection that receives no asynchronous messages,
    /// or is stalled, misses them.
    pub(super) fn deliver(
        &self,
        connection: &mut Connection,
        now: Instant,
        mut encode: impl FnMut(u64, EventForm, &Event) -> Option<Vec<u8>>,
    ) {
        if !connection.receives_async() {
            connection.delivered = self.end();
        }
        let is_reading = connection.is_reading(now);
        while connection.delivered < self.end() && (connection.has_room_for_async() || !is_reading) {
            let event = &self.events[(connection.delivered - self.first) as usize];
            if connection.wants(event) {
                if connection.has_room_for_async() {
                    if let Some(bytes) = encode(connection.delivered, connection.event_form(event), event) {
                        connection.send_event(&bytes);
                    }
                } else {
                    connection.missed += 1;
                }
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
mod tests {
    use super::*;
    use crate::agent::connection::{Kind, State};
    use crate::agent::local::ControlSocket;
    use crate::agent::stream::Stream;
    use crate::message::{Codec, Message, Versions};
    use fastpath_switch::{Action, Bucket, GroupCommand, GroupKind, GroupMod, Version};
    use mio::net::UnixStream;

    /// A connection of OpenFlow 1.4 whose controller wants the group mods of others.
    fn connection() -> (Connection, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        let stream = Stream::new(ControlSocket::Unix(near), None);
        let versions = Versions::only(Version::V14);
        let mut connection =
            Connection::new(stream, "peer".to_owned(), Kind::Answered, State::Greeting, versions);
        connection.state = State::Up;
        connection.codec = Codec::new(Version::V14);
        connection.masks.request_forward = [1, 1];
        (connection, far)
    }

    fn group_mod(id: u32, actions: usize) -> Event {
        let bucket = Bucket::new(vec![Action::DecNwTtl; actions]);
        let (command, kind) = (GroupCommand::Add, GroupKind::All);
        let request = GroupMod { command, id, kind, buckets: vec![bucket] };
        Event::of_request(99, id, &Message::GroupMod(request)).unwrap()
    }

    #[test]
    fn events_that_wait_are_bounded_in_bytes_and_those_that_are_dropped_are_counted() {
        let most = 1 << 20;
        let mut messages = AsyncMessages { most, ..AsyncMessages::default() };
        let ((mut slow, _slow_end), (mut quick, _quick_end)) = (connection(), connection());
        let (count, actions) = (100, 4000);
        let mut to_quick = Vec::new();
        for id in 0..count {
            messages.push(group_mod(id, actions));
            messages.deliver(&mut quick, Instant::now(), |_, _, event| {
                let Event::Request(request) = event else { panic!("{event:?}") };
                to_quick.push(request.xid);
                None
            });
            messages.tidy([&mut slow, &mut quick].into_iter());
            let memory: usize = messages.events.iter().map(Event::bytes).sum();
            assert_eq!(memory, messages.bytes);
            assert!(messages.bytes <= most && messages.end() == u64::from(id) + 1);
        }
        assert!(group_mod(0, actions).bytes() > actions * size_of::<Action>());
        assert_eq!((to_quick, quick.take_missed()), ((0..count).collect(), 0));
        let left = messages.events.len() as u64;
        assert!((2..20).contains(&left), "{left}");
        assert_eq!(slow.take_missed(), u64::from(count) - left);
        assert_eq!(slow.take_missed(), 0, "each is counted once");
        // The newest are those that are left.
        let mut to_slow = Vec::new();
        messages.deliver(&mut slow, Instant::now(), |number, _, _| {
            to_slow.push(number);
            None
        });
        assert_eq!(to_slow, (u64::from(count) - left..u64::from(count)).collect::<Vec<_>>());
        messages.tidy([&mut slow, &mut quick].into_iter());
        assert_eq!((messages.events.len(), messages.bytes), (0, 0));
    }
}
