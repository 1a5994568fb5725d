//! What all connections of an agent share: the switch, its identity, elections, and asynchronous
//! messages not yet delivered.

use super::async_messages::AsyncMessages;
use super::connection::{Connection, REPLIES_MAX};
use super::event::{Event, EventForm};
use super::flow_events::{self, Author, FlowChanges, Telling};
use crate::message::continuation;
use crate::message::{
    Codec, Config, FlowRemoved, FlowUpdate, Message, NO_BUFFER, PacketIn, Pages, PortDescription, PortStatus,
    Reply, has_port, write_items,
};
use fastpath_engine::switching::{Control, QueuedPacketIn};
use fastpath_switch::fullness::Fullness;
use fastpath_switch::misses;
use fastpath_switch::observe::{FlowEvent, FlowFate};
use fastpath_switch::port::LinkState;
use fastpath_switch::{Field, GroupCommand, Match, Port, Rank, Removed, Version, flow};
use fastpath_units::Time;
use fastpath_wire::MacAddr;
use std::collections::BTreeMap;
use std::hash::RandomState;
use std::sync::Arc;
use std::time::Instant;

/// OFPPS_ bits.
const LINK_DOWN: u32 = 1 << 0;
const LIVE: u32 = 1 << 2;
/// OFPPF_10GB_FD.
const TEN_GIGABIT: u32 = 1 << 6;

/// A port as controllers see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortInfo {
    /// Its name.
    pub name: String,
    /// Its hardware address.
    pub hw_addr: MacAddr,
}

/// See the head of this file.
pub(super) struct SwitchState {
    pub(super) control: Control,
    pub(super) datapath_id: u64,
    pub(super) ports: BTreeMap<u32, PortInfo>,
    pub(super) config: Config,
    /// What tables do when they are full or nearly so.
    pub(super) fullness: Fullness,
    /// The names that controllers gave to tables.
    pub(super) table_names: BTreeMap<u8, String>,
    /// The generation id of the last election (§6.3.6).
    pub(super) generation_id: Option<u64>,
    pub(super) async_messages: AsyncMessages,
    /// The key of what is left to do for paused packets.
    pub(super) key: RandomState,
    /// Whether a controller wants the packets that match no flow.
    pub(super) are_misses_wanted: bool,
    /// Whether a controller monitors flows.
    pub(super) are_flows_monitored: bool,
    /// The number of the next changes of flows.
    changes: u64,
    pub(super) started: Time,
}

/// An event in the forms that were asked for.
pub(super) struct EncodedEvent<'a> {
    event: &'a Event,
    /// `None`: there is nothing to send in this form.
    forms: Vec<(EventForm, Option<Vec<u8>>)>,
}

impl SwitchState {
    pub(super) fn new(control: Control, datapath_id: u64, ports: BTreeMap<u32, PortInfo>) -> SwitchState {
        SwitchState {
            datapath_id,
            ports,
            config: Config { flags: 0, miss_send_len: 128 },
            fullness: Fullness::default(),
            table_names: BTreeMap::new(),
            generation_id: None,
            async_messages: AsyncMessages::default(),
            key: RandomState::new(),
            are_misses_wanted: false,
            are_flows_monitored: false,
            changes: 0,
            started: control.now(),
            control,
        }
    }

    /// Records removed flows. Those with the flag OFPFF_SEND_FLOW_REM will be sent to controllers.
    pub(super) fn note_removed(&mut self, removed: Vec<Removed>) {
        for one in removed {
            let number = self.number_changes(1);
            self.note_removed_by(None, number, vec![one]);
        }
    }

    /// As [`SwitchState::note_removed`], by the request of a controller.
    pub(super) fn note_removed_by(&mut self, author: Author, number: u64, removed: Vec<Removed>) {
        if self.are_flows_monitored {
            let flows = removed.iter().map(FlowEvent::of_removed).collect();
            self.async_messages.push(Event::FlowChanges(FlowChanges { number, author, flows }));
        }
        self.report_removed(removed);
    }

    /// Returns the first of this many numbers of changes of flows.
    pub(super) fn number_changes(&mut self, count: usize) -> u64 {
        let first = self.changes;
        self.changes += count as u64;
        first
    }

    /// Sends a connection the asynchronous messages so far. Returns false if some find no room.
    pub(super) fn send_async_to(&mut self, connection: &mut Connection) -> bool {
        let (end, now) = (self.async_messages.end(), Instant::now());
        let encode = |_, form, event: &Event| self.encode(form, event);
        self.async_messages.deliver(connection, now, REPLIES_MAX, encode);
        self.async_messages.shown = self.async_messages.shown.max(connection.delivered);
        connection.delivered == end
    }

    /// Tells a controller that reads again of the changes of flows that were held back.
    pub(super) fn tell_held(&self, connection: &mut Connection) {
        let Some(held) = connection.monitors.held.take() else { return };
        let events = self.control.peek(|switch| {
            let event = |((table_id, rank), what): ((u8, Rank), FlowFate)| {
                let flow = switch.tables().get(usize::from(table_id))?.flow(&rank)?.clone();
                Some(FlowEvent { what, table_id, rank, flow, before: None })
            };
            held.into_iter().filter_map(event).collect::<Vec<_>>()
        });
        let changes = FlowChanges { number: u64::MAX, author: None, flows: events };
        let tellings = connection.monitors.after_hold(&changes);
        let bytes = encode_changes(connection.codec.version(), &changes, &tellings);
        connection.output().extend(bytes.unwrap_or_default());
        let reply = Reply::FlowMonitor(vec![FlowUpdate::Resumed]);
        connection.say(0, &Message::MultipartReply { flags: 0, reply });
    }

    /// Records removed flows of which monitors know already.
    pub(super) fn report_removed(&mut self, removed: Vec<Removed>) {
        let reported = removed.into_iter().filter(|one| one.flow.flags & flow::flags::SEND_FLOW_REM != 0);
        let nothing = Arc::default();
        reported.for_each(|one| self.async_messages.push(Event::of_reported(one, &nothing)));
    }

    /// Returns the description of a port in a message.
    pub(super) fn describe(&self, number: u32, port: &Port) -> PortDescription {
        let state = if port.link == LinkState::Down { LINK_DOWN } else { 0 };
        let state = state | if port.is_live() { LIVE } else { 0 };
        let info = self.ports.get(&number);
        PortDescription {
            number,
            hw_addr: info.map_or(MacAddr::ZERO, |info| info.hw_addr),
            name: info.map_or_else(|| format!("port{number}"), |info| info.name.clone()),
            config: port.config,
            state,
            features: [TEN_GIGABIT, 0, TEN_GIGABIT, 0],
            speeds: [10_000_000, 10_000_000],
        }
    }

    /// Wants packets that match no flow, or does not.
    pub(super) fn want_misses(&mut self, are_wanted: bool) {
        if self.are_misses_wanted != are_wanted {
            self.are_misses_wanted = are_wanted;
            let change = if are_wanted { misses::add } else { misses::remove };
            self.control.change_flows(&[], change);
        }
    }

    /// Sees to packets that match no flow after flows were removed.
    pub(super) fn keep_misses(&self) {
        if self.are_misses_wanted && self.control.peek(|switch| misses::hidden(switch).is_none()) {
            self.control.change_flows(&[], misses::add);
        }
    }

    /// Encodes an event; `None` when its subject is gone, or cannot be named or said in this form.
    pub(super) fn encode(&self, form: EventForm, event: &Event) -> Option<Vec<u8>> {
        if let Event::FlowChanges(changes) = event {
            return encode_changes(form.codec.version(), changes, &form.tellings);
        }
        let message = self.message(form.codec, event)?;
        let port = match &message {
            Message::PacketIn(packet) => packet.matching.field(Field::InPort).map(|field| field.value as u32),
            Message::PortStatus(status) => Some(status.port.number),
            _ => None,
        };
        if port.is_some_and(|port| !has_port(form.codec.version(), port)) {
            return None;
        }
        form.codec.encoded(0, &message).or_else(|| match message {
            // What is left to do finds no room: the packet ends with its packet-in.
            Message::PacketIn(packet) if !packet.continuation.is_empty() => {
                let short = Message::PacketIn(PacketIn { continuation: Vec::new(), ..packet });
                form.codec.encoded(0, &short)
            }
            _ => None,
        })
    }

    fn message(&self, codec: Codec, event: &Event) -> Option<Message> {
        let version = codec.version();
        Some(match event {
            Event::PacketIn(packet) => Message::PacketIn(packet_in(&self.key, version, packet)),
            Event::FlowRemoved(removed) => Message::FlowRemoved(flow_removed(version, removed)),
            Event::PortAdded(number) => self.port_status(0, *number)?,
            Event::PortStatus(number) => self.port_status(2, *number)?,
            Event::FlowChanges(_) => return None,
            Event::Request(request) => {
                if !has_request(version, &request.message) {
                    return None;
                }
                Message::RequestForward(codec.encoded(request.xid, &request.message)?)
            }
            Event::TableStatus(status) => Message::TableStatus(**status),
            Event::PortRemoved(port) => Message::PortStatus(PortStatus { reason: 1, port: (**port).clone() }),
        })
    }

    /// Returns the message on a port that is there (reasons OFPPR_ADD and OFPPR_MODIFY).
    fn port_status(&self, reason: u8, number: u32) -> Option<Message> {
        let port = self.control.peek(|switch| switch.port(number).copied())?;
        Some(Message::PortStatus(PortStatus { reason, port: self.describe(number, &port) }))
    }
}

impl<'a> EncodedEvent<'a> {
    pub(super) fn new(event: &'a Event) -> EncodedEvent<'a> {
        EncodedEvent { event, forms: Vec::new() }
    }

    /// Returns the bytes in a form.
    pub(super) fn bytes(&mut self, state: &SwitchState, form: EventForm) -> Option<&[u8]> {
        let place = self.forms.iter().position(|(known, _)| *known == form);
        let place = place.unwrap_or_else(|| {
            self.forms.push((form.clone(), state.encode(form, self.event)));
            self.forms.len() - 1
        });
        self.forms[place].1.as_deref()
    }

    /// Returns the bytes in the first form that there are any in.
    pub(super) fn first(self) -> Option<Vec<u8>> {
        self.forms.into_iter().find_map(|(_, bytes)| bytes)
    }
}

/// Encodes changes of flows as they are told; `None` if nothing is.
fn encode_changes(version: Version, changes: &FlowChanges, tellings: &[Option<Telling>]) -> Option<Vec<u8>> {
    /// OFPMP_FLOW_MONITOR.
    const KIND: u16 = 16;
    tellings.iter().flatten().next()?;
    let mut out = Vec::new();
    let mut pages = Pages::begin(version, &mut out, KIND, 0);
    for (event, telling) in changes.flows.iter().zip(tellings) {
        let Some(telling) = *telling else { continue };
        let reply = Reply::FlowMonitor(vec![flow_events::update(version, changes.author, event, telling)]);
        pages.item(&mut out, |out| write_items(version, out, &reply));
    }
    pages.end(&mut out, 0);
    Some(out)
}

/// Returns whether a version can say a change of groups or meters.
fn has_request(version: Version, request: &Message) -> bool {
    let changes_buckets = match request {
        Message::GroupMod(request) => {
            matches!(request.command, GroupCommand::InsertBuckets(_) | GroupCommand::RemoveBuckets(_))
        }
        _ => false,
    };
    version >= Version::V15 || !changes_buckets
}

/// This switch buffers no packets. It sends them whole, whatever length the action gives (§6.1.2),
/// or as much of them as fits the message.
fn packet_in(key: &RandomState, version: Version, packet: &QueuedPacketIn) -> PacketIn {
    let fields = packet.head.context.matches();
    let frame = &packet.frame;
    PacketIn {
        buffer_id: NO_BUFFER,
        total_len: u16::try_from(frame.len()).unwrap_or(u16::MAX),
        reason: packet.head.reason.number_in(version),
        table_id: packet.head.table_id,
        cookie: packet.head.cookie,
        matching: Match::new(&fields).unwrap_or_default(),
        userdata: packet.head.userdata.clone(),
        continuation: packet
            .head
            .continuation
            .as_ref()
            .map_or_else(Vec::new, |rest| continuation::seal(key, &packet.head.context, rest)),
        data: frame.clone(),
    }
}

fn flow_removed(version: Version, removed: &Removed) -> FlowRemoved {
    let flow = &removed.flow;
    FlowRemoved {
        cookie: flow.cookie,
        priority: removed.rank.priority(),
        reason: removed.reason.number_in(version),
        table_id: removed.table_id,
        age: removed.at.since(flow.added),
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        packets: flow.counters.packets,
        bytes: flow.counters.bytes,
        matching: removed.rank.matching().clone(),
    }
}
