//! One connection to a controller: input, output, and the state of the conversation.
//!
//! Everything is bounded: at most [`INPUT_MAX`] bytes wait to be decoded, and [`BATCH_MAX`]
//! messages to be handled. A connection with a slow controller is not served further while
//! [`REPLIES_MAX`] bytes wait, and receives no packet-ins while [`EVENTS_MAX`] do.

use super::bundle_store::BundleStore;
use super::event::{self, EventForm};
use super::flow_events::{FlowChanges, Monitor, Monitors};
use super::stream::{Moved, READ_MAX, Stream};
use crate::message::{
    Async, AsyncMask, Codec, Fault, FlowFormat, FlowUpdate, HEADER_LEN, Hello, MORE, Message, Reply, Role,
    RoleMessage, RoleStatus, TableFeatures, Versions, frame_len,
};
use fastpath_switch::misses;
use fastpath_switch::outcome::PacketInReason;
use fastpath_switch::{FlowFilter, Rank, Version};
use mio::event::Event;
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

/// Bytes that wait to be decoded: an incomplete message, and the bytes of one read.
pub(super) const INPUT_MAX: usize = 2 * READ_MAX;
/// Bytes of replies that may wait to be sent before no further requests are handled.
pub(super) const REPLIES_MAX: usize = 256 << 10;
/// Bytes that may wait to be sent before packet-ins are dropped.
const EVENTS_MAX: usize = 2 << 20;
/// Bytes that may wait to be sent before asynchronous messages wait: half the bound of replies, so
/// that requests go on.
pub(super) const ASYNC_MAX: usize = REPLIES_MAX / 2;
/// A peer that accepts no bytes for this long while output is queued is treated as stalled.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Most bytes of a request in several parts.
const PARTS_MAX: usize = 1 << 20;
/// Bytes of a request that an error message repeats (§7.4.4: at least 64).
const ERROR_DATA: usize = 64;
/// Messages decoded at a time.
pub(super) const BATCH_MAX: usize = 128;
/// The time within which the hello must arrive.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection.
pub(super) struct Connection {
    /// Tells it from others.
    pub(super) id: usize,
    pub(super) stream: Stream,
    /// Its name in notices.
    pub(super) peer: String,
    pub(super) kind: Kind,
    pub(super) state: State,
    /// The versions that may be used.
    versions: Versions,
    /// The codec of the version in use, which is chosen when the hello arrives.
    pub(super) codec: Codec,
    pub(super) role: Role,
    pub(super) masks: Async,
    /// OpenFlow 1.0: the controller has asked for packets that match no flow (OFPT_SET_CONFIG).
    pub(super) has_asked_for_misses: bool,
    /// The number by which actions name the controller. Outputs are for number 0 (Nicira).
    pub(super) controller_id: u16,
    input: Vec<u8>,
    /// Messages decoded and not yet handled.
    pub(super) waiting: VecDeque<Incoming>,
    output: Vec<u8>,
    /// A reply of several pages in progress. No further request is handled until it is complete.
    pub(super) dump: Option<Dump>,
    /// The parts of a table features request that is not complete.
    parts: Option<Parts>,
    pub(super) bundles: BundleStore,
    pub(super) monitors: Monitors,
    /// Whether it has changed flows, groups or meters.
    pub(super) has_changed: bool,
    readable: bool,
    writable: bool,
    /// The system has reported that the peer sends no more.
    has_peer_ended: bool,
    /// The peer has closed, or its bytes cannot be decoded: nothing more will be read.
    has_ended: bool,
    since: Instant,
    heard_at: Instant,
    /// When the peer last accepted bytes.
    accepted_at: Instant,
    probed: bool,
    /// The number of the first of the asynchronous messages not yet delivered to it.
    pub(super) delivered: u64,
    /// Events that this controller missed because it did not read, or packet-ins that fit no
    /// message of its version, and how many of them the switch has counted.
    pub(super) missed: u64,
    counted: u64,
}

/// The purpose of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The switch dialled a controller: index of the target.
    Dialled(usize),
    /// A controller dialled the switch.
    Answered,
    /// The peer receives a copy of all messages of other connections.
    Snoop,
}

/// The state of the conversation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// TCP is not connected yet.
    Connecting,
    /// The hello of the switch is queued.
    Greeting,
    /// Hellos were exchanged.
    Up,
}

/// A reply that is sent page by page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Dump {
    pub(super) xid: u32,
    pub(super) of: DumpOf,
}

/// The subject of a dump, and where to continue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum DumpOf {
    Flows {
        filter: Box<FlowFilter>,
        format: FlowFormat,
        next: Option<(u8, Rank)>,
    },
    /// Of OpenFlow 1.5: without what counts nothing.
    FlowCounters {
        filter: Box<FlowFilter>,
        next: Option<(u8, Rank)>,
    },
    Groups {
        only: Option<u32>,
        next: u32,
    },
    GroupDescriptions {
        only: Option<u32>,
        next: u32,
    },
    Meters {
        only: Option<u32>,
        next: u32,
    },
    MeterDescriptions {
        only: Option<u32>,
        next: u32,
    },
    TableConfigs {
        next: u8,
    },
    /// The flows that monitors select.
    Monitored {
        monitors: Vec<Monitor>,
        next: Option<(u8, Rank)>,
    },
    Tables {
        next: u8,
    },
}

/// The parts of a request that have arrived.
struct Parts {
    xid: u32,
    bytes: usize,
    tables: Vec<TableFeatures>,
}

/// A received message.
pub(super) struct Incoming {
    pub(super) xid: u32,
    /// Its length in bytes.
    pub(super) len: usize,
    /// Its beginning, for an error message.
    pub(super) head: Vec<u8>,
    pub(super) content: Result<Message, Fault>,
}

/// A controller has become master, and other masters become slaves.
pub(super) struct Election;

impl Connection {
    pub(super) fn new(
        stream: Stream,
        peer: String,
        kind: Kind,
        state: State,
        versions: Versions,
    ) -> Connection {
        let now = Instant::now();
        let mut connection = Connection {
            id: 0,
            stream,
            peer,
            kind,
            state,
            versions,
            codec: Codec::new(versions.highest()),
            role: Role::Equal,
            masks: Async::DEFAULT,
            has_asked_for_misses: false,
            controller_id: 0,
            input: Vec::new(),
            waiting: VecDeque::new(),
            output: Vec::new(),
            dump: None,
            parts: None,
            bundles: BundleStore::default(),
            monitors: Monitors::default(),
            has_changed: false,
            readable: true,
            writable: true,
            has_peer_ended: false,
            has_ended: false,
            since: now,
            heard_at: now,
            accepted_at: now,
            probed: false,
            delivered: 0,
            missed: 0,
            counted: 0,
        };
        if state != State::Connecting {
            connection.greet();
        }
        connection
    }

    /// Sends the hello after TCP has connected.
    pub(super) fn greet(&mut self) {
        self.state = State::Greeting;
        self.say(0, &Message::Hello(Hello::of(self.versions)));
    }

    /// Takes the first message of the peer, which must be a hello with a common version.
    ///
    /// # Errors
    /// It has been answered with an error, and the connection has ended.
    pub(super) fn take_hello(&mut self, first: &Incoming) -> Result<(), Fault> {
        let ours = self.versions;
        let version = match &first.content {
            Ok(Message::Hello(hello)) => hello.negotiate(ours).ok_or(Fault::Incompatible(ours)),
            Err(fault @ Fault::BadLen) => Err(*fault),
            // A peer without a common version may send an error first. All other messages come
            // after a hello.
            _ => Err(Fault::NoHello),
        };
        match version {
            Ok(version) => {
                self.codec = Codec::new(version);
                self.masks = Async::of(version);
            }
            Err(fault) => {
                // In a version that the peer reads.
                let is_old = first.head.first().is_some_and(|version| *version < Version::V13.number());
                self.codec = Codec::new(if is_old { Version::V10 } else { Version::V13 });
                self.refuse(first.xid, &fault, fault.to_string().as_bytes());
                return Err(fault);
            }
        }
        self.state = State::Up;
        Ok(())
    }

    /// Takes an event of its socket.
    pub(super) fn ready(&mut self, event: &Event) {
        self.readable |= event.is_readable() && !self.has_ended;
        self.writable |= event.is_writable();
        self.has_peer_ended |= event.is_read_closed();
    }

    /// Adds a message to the output.
    pub(super) fn say(&mut self, xid: u32, message: &Message) {
        self.codec.encode(xid, message, &mut self.output);
    }

    /// Returns the output, for encoded replies.
    pub(super) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Adds an error message about a request. It refuses all parts of the request.
    pub(super) fn refuse(&mut self, xid: u32, fault: &Fault, request: &[u8]) {
        self.parts.take_if(|parts| parts.xid == xid);
        let error = self.codec.error(fault, request);
        self.say(xid, &Message::Error(error));
    }

    /// Collects the part of a request, given its transaction id and length in bytes. Returns the
    /// tables of all parts once the last has arrived. There is one such request at a time.
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

    /// Sets the role of the controller.
    pub(super) fn take_role(&mut self, role: Role) {
        self.role = role;
        if role == Role::Slave {
            self.parts = None;
        }
    }

    /// Sets some of its masks.
    pub(super) fn change_masks(&mut self, changes: &[AsyncMask]) {
        changes.iter().for_each(|change| self.masks.set(*change));
        self.masks = self.masks.known(self.codec.version());
    }

    /// Makes a master a slave, because another controller has become master.
    pub(super) fn depose(&mut self, generation_id: u64) {
        /// OFPCRR_MASTER_REQUEST.
        const REASON: u8 = 0;
        self.take_role(Role::Slave);
        let [_, of_slaves] = self.masks.role_status;
        if self.codec.version() >= Version::V14 && of_slaves & 1 << REASON != 0 {
            let role = RoleMessage { role: self.role, generation_id };
            self.say(0, &Message::RoleStatus(RoleStatus { reason: REASON, role }));
        }
    }

    /// Returns whether an event is to be sent to it.
    pub(super) fn wants(&self, event: &event::Event) -> bool {
        let is_for_it = match event {
            event::Event::PacketIn(packet) if misses::is_miss(&packet.head) => self.wants_misses(),
            event::Event::PacketIn(packet) => self.controller_id == packet.head.controller,
            event::Event::FlowChanges(changes) => {
                self.monitors.tellings(self.id, changes).iter().any(Option::is_some)
            }
            event::Event::Request(request) => {
                self.codec.version() >= Version::V14 && request.connection != self.id
            }
            event::Event::TableStatus(_) => self.codec.version() >= Version::V14,
            event::Event::FlowRemoved(_)
            | event::Event::PortStatus(_)
            | event::Event::PortAdded(_)
            | event::Event::PortRemoved(_) => true,
        };
        let version = self.codec.version();
        is_for_it && self.receives_async() && event.passes(version, &self.masks, self.is_slave())
    }

    /// Returns whether it receives the packets that match no flow. In OpenFlow 1.0 they go to the
    /// controllers: to those that the switch dialled, and to those that have asked for it.
    pub(super) fn wants_misses(&self) -> bool {
        self.codec.version() == Version::V10
            && self.receives_async()
            && self.controller_id == 0
            && (matches!(self.kind, Kind::Dialled(_)) || self.has_asked_for_misses)
            && self.masks.packet_in[usize::from(self.is_slave())] & 1 << PacketInReason::NoMatch as u32 != 0
    }

    /// Returns the form of an event that it receives.
    pub(super) fn event_form(&mut self, event: &event::Event) -> EventForm {
        let mut tellings = Vec::new();
        if let event::Event::FlowChanges(changes) = event {
            tellings = self.monitors.tellings(self.id, changes);
            self.monitors.note(changes, &tellings);
        }
        EventForm { codec: self.codec, tellings }
    }

    /// Holds back changes of flows that find no room, and says so. Returns the form of what is told
    /// all the same.
    pub(super) fn hold(&mut self, changes: &FlowChanges) -> EventForm {
        let was_held = self.monitors.held.is_some();
        let tellings = self.monitors.hold(self.id, changes);
        if !was_held && self.monitors.held.is_some() {
            let reply = Reply::FlowMonitor(vec![FlowUpdate::Paused]);
            self.say(0, &Message::MultipartReply { flags: 0, reply });
        }
        EventForm { codec: self.codec, tellings }
    }

    /// Returns whether it receives asynchronous messages at all.
    pub(super) fn receives_async(&self) -> bool {
        self.state == State::Up && self.kind != Kind::Snoop
    }

    /// Returns whether an asynchronous message may be added to the output.
    pub(super) fn has_room_for_async(&self) -> bool {
        self.output.len() <= ASYNC_MAX
    }

    /// Returns whether asynchronous messages wait until there is room; false for a stalled peer.
    pub(super) fn is_reading(&self, now: Instant) -> bool {
        self.has_room_for_async() || now.duration_since(self.accepted_at) < STALL_TIMEOUT
    }

    /// Adds the bytes of an event, unless too many bytes wait already.
    pub(super) fn send_event(&mut self, bytes: &[u8]) {
        if self.output.len() > EVENTS_MAX {
            self.missed += 1;
        } else {
            self.output.extend_from_slice(bytes);
        }
    }

    /// Returns how many events the controller has missed since the last call. The peer of a snoop
    /// connection is none.
    pub(super) fn take_missed(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.counted, self.missed);
        if self.kind == Kind::Snoop { 0 } else { self.missed - before }
    }

    /// Returns whether there is work that does not wait for the socket.
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

    /// Returns whether it has ended and everything received was handled.
    pub(super) fn is_finished(&self) -> bool {
        self.has_ended && self.waiting.is_empty() && self.dump.is_none() && !self.has_message()
    }

    fn has_message(&self) -> bool {
        !matches!(frame_len(&self.input), Ok(None))
            && frame_len(&self.input).map_or(true, |len| len.unwrap_or(0) <= self.input.len())
    }

    /// Returns whether replies may be added to the output.
    pub(super) fn may_serve(&self) -> bool {
        self.output.len() <= REPLIES_MAX
    }

    /// Defers reading. Bytes that may have arrived count as a sign of life.
    pub(super) fn defer_reading(&mut self) {
        if self.readable {
            self.heard_at = Instant::now();
        }
    }

    /// Reads available bytes and decodes up to [`BATCH_MAX`] messages, once the messages before
    /// them were handled. `show` receives the bytes of each message.
    pub(super) fn receive(&mut self, mut show: impl FnMut(&[u8])) -> io::Result<()> {
        if self.readable && self.may_serve() && self.input.len() < INPUT_MAX - READ_MAX + 1 {
            match self.stream.read(&mut self.input)? {
                moved @ (Moved::Some | Moved::All) => {
                    self.heard_at = Instant::now();
                    self.probed = false;
                    // The end that the peer has sent is still to be read.
                    self.readable = moved == Moved::Some || self.has_peer_ended;
                }
                Moved::Blocked => self.readable = false,
                Moved::Closed => (self.readable, self.has_ended) = (false, true),
            }
        }
        if !self.waiting.is_empty() || self.dump.is_some() || !self.may_serve() {
            return Ok(());
        }
        let mut used = 0;
        // The hello alone: it decides the version of the messages behind it.
        let most = if self.state == State::Up { BATCH_MAX } else { 1 };
        while self.waiting.len() < most {
            let rest = &self.input[used..];
            match frame_len(rest) {
                Ok(Some(len)) if len <= rest.len() => {
                    let bytes = &rest[..len];
                    show(bytes);
                    self.waiting.push_back(Incoming::read(&mut self.codec, bytes));
                    used += len;
                }
                Ok(_) => break,
                Err(fault) => {
                    // The start of the next message is unknown.
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

    /// Sends as much as the socket accepts.
    pub(super) fn send(&mut self) -> io::Result<()> {
        if self.writable && (!self.output.is_empty() || self.stream.wants_write()) {
            let before = self.output.len();
            let moved = self.stream.write(&mut self.output)?;
            if self.output.len() < before {
                self.accepted_at = Instant::now();
            }
            self.writable = moved != Moved::Blocked || self.output.is_empty();
        }
        Ok(())
    }

    /// Checks for timeouts: sends an echo request after a silence, and gives up when it is not
    /// answered. `Err` says why the connection has ended.
    pub(super) fn check(&mut self, now: Instant, probe_every: Duration) -> Result<(), &'static str> {
        let silent = now.duration_since(self.heard_at);
        if self.state != State::Up && now.duration_since(self.since) > HELLO_TIMEOUT {
            return Err("no hello arrived");
        }
        let is_stuck = !self.writable && now.duration_since(self.accepted_at) > STALL_TIMEOUT;
        if self.has_ended && is_stuck {
            return Err("closed");
        }
        if probe_every.is_zero() || self.kind == Kind::Snoop || self.state != State::Up {
            return Ok(());
        }
        if self.probed && silent > 2 * probe_every {
            return Err("no answer to an echo request");
        }
        if !self.probed && silent > probe_every && self.dump.is_none() && self.may_serve() {
            self.probed = true;
            self.say(0, &Message::EchoRequest(Vec::new()));
        }
        Ok(())
    }

    /// Returns whether this controller is a slave, which may not change the switch.
    pub(super) fn is_slave(&self) -> bool {
        self.role == Role::Slave
    }
}

impl Incoming {
    fn read(codec: &mut Codec, bytes: &[u8]) -> Incoming {
        let xid = bytes.get(4..8).and_then(|xid| xid.try_into().ok()).map_or(0, u32::from_be_bytes);
        let content = codec.decode(bytes).map(|(_, message)| message);
        let head = bytes[..bytes.len().min(ERROR_DATA)].to_vec();
        Incoming { xid, len: bytes.len(), head, content }
    }
}
