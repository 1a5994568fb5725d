//! One connection to a controller: bytes in and out, where the conversation stands, what it may be
//! told.
//!
//! Everything is bounded: at most [`INPUT_MAX`] bytes wait to be understood, and [`BATCH_MAX`]
//! messages to be done; a connection whose controller does not read is not served further when
//! [`REPLIES_MAX`] bytes wait, and gets no packet-ins when [`EVENTS_MAX`] do.

use super::event::Event;
use super::stream::{Moved, Stream};
use crate::message::{Async, Fault, HEADER_LEN, Hello, MORE, Message, Role, decode, frame_len};
use crate::message::{ErrorMessage, TableFeatures};
use fastpath_switch::{FlowFilter, Rank};
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

/// Bytes read at a time, and the most that wait beyond an unfinished message.
const READ_MAX: usize = 64 << 10;
/// Bytes that wait to be understood: a message that is not whole, and what one read brought.
pub(super) const INPUT_MAX: usize = 2 * READ_MAX;
/// Bytes of replies that wait to be sent before further requests are looked at.
const REPLIES_MAX: usize = 256 << 10;
/// Bytes that wait to be sent before packet-ins are dropped.
const EVENTS_MAX: usize = 2 << 20;
/// Bytes that wait to be sent before news wait: half of what replies may take, so that those go on.
const ASYNC_MAX: usize = REPLIES_MAX / 2;
/// Who takes nothing for so long while that much waits does not read.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of a request in several parts.
const PARTS_MAX: usize = 1 << 20;
/// Bytes of a request that an error message repeats (§7.4.4: at least 64).
const ERROR_DATA: usize = 64;
/// Messages understood at a time.
pub(super) const BATCH_MAX: usize = 128;
/// The hello must come within this.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection.
pub(super) struct Connection {
    pub(super) stream: Stream,
    /// What messages call it.
    pub(super) peer: String,
    pub(super) kind: Kind,
    pub(super) state: State,
    pub(super) role: Role,
    pub(super) masks: Async,
    input: Vec<u8>,
    /// Messages understood and still to be done.
    pub(super) waiting: VecDeque<Incoming>,
    output: Vec<u8>,
    /// Replies under way: while there are some, no further request is looked at.
    pub(super) dump: Option<Dump>,
    /// Of a table features request whose last part has not come.
    parts: Option<Parts>,
    /// Whether it has changed flows, groups or meters.
    pub(super) has_changed: bool,
    readable: bool,
    writable: bool,
    /// Nothing more will be read.
    has_ended: bool,
    since: Instant,
    heard_at: Instant,
    /// When it last took bytes.
    accepted_at: Instant,
    probed: bool,
    /// The number of the first of the [news](super::async_messages::AsyncMessages) not yet delivered to it.
    pub(super) delivered: u64,
    /// Events this controller was not told because it does not read.
    pub(super) missed: u64,
}

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// This switch dialled it: number of the target.
    Dialled(usize),
    /// A controller dialled this switch.
    Answered,
    /// It is shown what others say and hear.
    Snoop,
}

/// Where the conversation stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// TCP is not yet connected.
    Connecting,
    /// Our hello is out.
    Greeting,
    /// Hellos were exchanged.
    Up,
}

/// A reply that is given page by page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Dump {
    pub(super) xid: u32,
    pub(super) of: DumpOf,
}

/// What is dumped, and where to go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum DumpOf {
    Flows { filter: Box<FlowFilter>, next: Option<(u8, Rank)> },
    Groups { only: Option<u32>, next: u32 },
    GroupDescriptions { next: u32 },
    Meters { only: Option<u32>, next: u32 },
    MeterDescriptions { only: Option<u32>, next: u32 },
    Tables { next: u8 },
}

/// The parts of a request that have come.
struct Parts {
    xid: u32,
    bytes: usize,
    tables: Vec<TableFeatures>,
}

/// A message as it came.
pub(super) struct Incoming {
    pub(super) xid: u32,
    /// Bytes of it.
    pub(super) len: usize,
    /// Its beginning, for an error message.
    pub(super) head: Vec<u8>,
    pub(super) content: Result<Message, Fault>,
}

impl Connection {
    pub(super) fn new(stream: Stream, peer: String, kind: Kind, state: State) -> Connection {
        let now = Instant::now();
        let mut connection = Connection {
            stream,
            peer,
            kind,
            state,
            role: Role::Equal,
            masks: Async::DEFAULT,
            input: Vec::new(),
            waiting: VecDeque::new(),
            output: Vec::new(),
            dump: None,
            parts: None,
            has_changed: false,
            readable: true,
            writable: true,
            has_ended: false,
            since: now,
            heard_at: now,
            accepted_at: now,
            probed: false,
            delivered: 0,
            missed: 0,
        };
        if state != State::Connecting {
            connection.greet();
        }
        connection
    }

    /// Connected: says hello.
    pub(super) fn greet(&mut self) {
        self.state = State::Greeting;
        self.say(0, &Message::Hello(Hello::ours()));
    }

    pub(super) fn ready(&mut self, readable: bool, writable: bool) {
        self.readable |= readable && !self.has_ended;
        self.writable |= writable;
    }

    /// Adds a message to what is to be sent.
    pub(super) fn say(&mut self, xid: u32, message: &Message) {
        message.encode(xid, &mut self.output);
    }

    /// Where encoded replies go.
    pub(super) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Adds an error message about a request, all of whose parts are refused with one.
    pub(super) fn refuse(&mut self, xid: u32, fault: &Fault, request: &[u8]) {
        self.parts.take_if(|parts| parts.xid == xid);
        let (kind, code) = fault.numbers();
        self.say(xid, &Message::Error(ErrorMessage { kind, code, data: request.to_vec() }));
    }

    /// Takes the part of a request, of so many bytes, in which these tables are; answers with all
    /// of them once that is the last. There is one such request at a time.
    pub(super) fn collect(
        &mut self,
        (xid, bytes): (u32, usize),
        flags: u16,
        wanted: Vec<TableFeatures>,
    ) -> Result<Option<Vec<TableFeatures>>, Fault> {
        let before = self.parts.take().filter(|parts| parts.xid == xid);
        let mut parts = before.unwrap_or(Parts { xid, bytes: 0, tables: Vec::new() });
        parts.bytes += bytes;
        parts.tables.extend(wanted);
        if parts.bytes > PARTS_MAX {
            return Err(Fault::MultipartOverflow);
        }
        if flags & MORE != 0 {
            self.parts = Some(parts);
            return Ok(None);
        }
        Ok(Some(parts.tables))
    }

    /// What it may do from now on.
    pub(super) fn take_role(&mut self, role: Role) {
        self.role = role;
        if role == Role::Slave {
            self.parts = None;
        }
    }

    /// Whether it is to be told an event.
    pub(super) fn wants(&self, event: &Event) -> bool {
        self.receives_async() && event.passes(&self.masks, self.is_slave())
    }

    /// Whether it is one that events are for.
    pub(super) fn receives_async(&self) -> bool {
        self.state == State::Up && self.kind != Kind::Snoop
    }

    /// Whether news may be added.
    pub(super) fn has_room_for_async(&self) -> bool {
        self.output.len() <= ASYNC_MAX
    }

    /// Whether news are kept until there is room for them.
    pub(super) fn is_reading(&self, now: Instant) -> bool {
        self.has_room_for_async() || now.duration_since(self.accepted_at) < STALL_TIMEOUT
    }

    /// Adds bytes of an event, unless too much waits already.
    pub(super) fn tell(&mut self, bytes: &[u8]) {
        if self.output.len() > EVENTS_MAX {
            self.missed += 1;
        } else {
            self.output.extend_from_slice(bytes);
        }
    }

    /// Whether there is something to do now, without waiting for the socket.
    pub(super) fn has_work(&self) -> bool {
        let may_serve = self.output.len() <= REPLIES_MAX;
        self.state != State::Connecting
            && ((self.writable && (!self.output.is_empty() || self.stream.wants_write()))
                || may_serve
                    && (self.readable
                        || self.dump.is_some()
                        || !self.waiting.is_empty()
                        || self.has_message()))
    }

    /// Whether nothing more will come of it.
    pub(super) fn is_finished(&self) -> bool {
        self.has_ended && self.waiting.is_empty() && self.dump.is_none() && !self.has_message()
    }

    fn has_message(&self) -> bool {
        !matches!(frame_len(&self.input), Ok(None))
            && frame_len(&self.input).map_or(true, |len| len.unwrap_or(0) <= self.input.len())
    }

    /// Whether replies may be added.
    pub(super) fn may_serve(&self) -> bool {
        self.output.len() <= REPLIES_MAX
    }

    /// Reads nothing for now: what may have been said counts as heard.
    pub(super) fn defer_reading(&mut self) {
        if self.readable {
            self.heard_at = Instant::now();
        }
    }

    /// Reads what there is and understands up to [`BATCH_MAX`] messages of it, once those before
    /// are done.
    pub(super) fn receive(&mut self, mut show: impl FnMut(&[u8])) -> io::Result<()> {
        if self.readable && self.may_serve() && self.input.len() < INPUT_MAX - READ_MAX + 1 {
            match self.stream.read(&mut self.input, READ_MAX)? {
                Moved::Some => {
                    self.heard_at = Instant::now();
                    self.probed = false;
                }
                Moved::Blocked => self.readable = false,
                Moved::Closed => (self.readable, self.has_ended) = (false, true),
            }
        }
        if !self.waiting.is_empty() || self.dump.is_some() || !self.may_serve() {
            return Ok(());
        }
        let mut used = 0;
        while self.waiting.len() < BATCH_MAX {
            let rest = &self.input[used..];
            match frame_len(rest) {
                Ok(Some(len)) if len <= rest.len() => {
                    let bytes = &rest[..len];
                    show(bytes);
                    self.waiting.push_back(Incoming::read(bytes));
                    used += len;
                }
                Ok(_) => break,
                Err(fault) => {
                    // Where the next message begins cannot be known.
                    let head = rest[..HEADER_LEN].to_vec();
                    self.waiting.push_back(Incoming { xid: 0, len: HEADER_LEN, head, content: Err(fault) });
                    used = self.input.len();
                    (self.readable, self.has_ended) = (false, true);
                    break;
                }
            }
        }
        self.input.drain(..used);
        Ok(())
    }

    /// Sends what the socket takes.
    pub(super) fn send(&mut self) -> io::Result<()> {
        if self.writable && (!self.output.is_empty() || self.stream.wants_write()) {
            let before = self.output.len();
            let moved = self.stream.write(&mut self.output)?;
            if self.output.len() < before {
                self.accepted_at = Instant::now();
            }
            self.writable = moved == Moved::Some || self.output.is_empty();
        }
        Ok(())
    }

    /// Says nothing for too long: asks, then gives up. `Err` says why the connection is over.
    pub(super) fn check(&mut self, now: Instant, probe_every: Duration) -> Result<(), &'static str> {
        let silent = now.duration_since(self.heard_at);
        if self.state != State::Up && now.duration_since(self.since) > HELLO_TIMEOUT {
            return Err("no hello came");
        }
        let is_stuck = !self.writable && now.duration_since(self.accepted_at) > STALL_TIMEOUT;
        if self.has_ended && is_stuck {
            return Err("closed");
        }
        if probe_every.is_zero() || self.kind == Kind::Snoop || self.state != State::Up {
            return Ok(());
        }
        if self.probed && silent > 2 * probe_every {
            return Err("it does not answer");
        }
        if !self.probed && silent > probe_every && self.dump.is_none() && self.may_serve() {
            self.probed = true;
            self.say(0, &Message::EchoRequest(Vec::new()));
        }
        Ok(())
    }

    /// Whether this controller may change the switch.
    pub(super) fn is_slave(&self) -> bool {
        self.role == Role::Slave
    }
}

impl Incoming {
    fn read(bytes: &[u8]) -> Incoming {
        let xid = bytes.get(4..8).and_then(|xid| xid.try_into().ok()).map_or(0, u32::from_be_bytes);
        let content = decode(bytes).map(|(_, message)| message);
        let head = bytes[..bytes.len().min(ERROR_DATA)].to_vec();
        Incoming { xid, len: bytes.len(), head, content }
    }
}
