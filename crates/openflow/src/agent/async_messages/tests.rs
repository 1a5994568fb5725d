//! Events that wait have bounded memory.

use super::*;
use crate::agent::connection::{ASYNC_MAX, Kind, State};
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
        messages.deliver(&mut quick, Instant::now(), ASYNC_MAX, |_, _, event| {
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
    messages.deliver(&mut slow, Instant::now(), ASYNC_MAX, |number, _, _| {
        to_slow.push(number);
        None
    });
    assert_eq!(to_slow, (u64::from(count) - left..u64::from(count)).collect::<Vec<_>>());
    messages.tidy([&mut slow, &mut quick].into_iter());
    assert_eq!((messages.events.len(), messages.bytes), (0, 0));
}
