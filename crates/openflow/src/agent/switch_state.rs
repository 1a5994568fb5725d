//! What all connections of an agent share: the switch, its identity, elections, and asynchronous
//! messages not yet delivered.

use super::async_messages::AsyncMessages;
use super::event::{Event, EventForm};
use super::flow_events::{self, Author, removed_reason};
use super::fullness::Fullness;
use super::misses;
use crate::message::continuation;
use crate::message::{
    Config, FlowRemoved, Message, NO_BUFFER, PacketIn, PortDescription, PortStatus, has_port,
};
use fastpath_engine::switching::{Control, QueuedPacketIn};
use fastpath_switch::field::REGISTERS;
use fastpath_switch::port::LinkState;
use fastpath_switch::{Field, FieldMatch, GroupCommand, Match, PipelineFields, Port, Removed, Version, flow};
use fastpath_units::Time;
use fastpath_wire::MacAddr;
use std::collections::BTreeMap;
use std::hash::RandomState;
use std::sync::Arc;

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
            started: control.now(),
            control,
        }
    }

    /// Records removed flows. Those with the flag OFPFF_SEND_FLOW_REM will be sent to controllers.
    pub(super) fn note_removed(&mut self, removed: Vec<Removed>) {
        self.note_removed_by(None, removed);
    }

    /// As [`SwitchState::note_removed`], by the request of a controller.
    pub(super) fn note_removed_by(&mut self, author: Author, removed: Vec<Removed>) {
        if self.are_flows_monitored {
            removed.iter().for_each(|one| self.async_messages.push(Event::of_removed(one, author)));
        }
        self.report_removed(removed);
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
        let message = self.message(form, event)?;
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

    fn message(&self, form: EventForm, event: &Event) -> Option<Message> {
        let version = form.codec.version();
        Some(match event {
            Event::PacketIn(packet) => Message::PacketIn(packet_in(&self.key, packet)),
            Event::FlowRemoved(removed) => Message::FlowRemoved(flow_removed(version, removed)),
            Event::PortAdded(number) => self.port_status(0, *number)?,
            Event::PortStatus(number) => self.port_status(2, *number)?,
            Event::FlowChange(change) => flow_events::message(version, change, form.telling?),
            Event::Request(request) => {
                if !has_request(version, &request.message) {
                    return None;
                }
                Message::RequestForward(form.codec.encoded(request.xid, &request.message)?)
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
            self.forms.push((form, state.encode(form, self.event)));
            self.forms.len() - 1
        });
        self.forms[place].1.as_deref()
    }

    /// Returns the bytes in the first form that there are any in.
    pub(super) fn first(self) -> Option<Vec<u8>> {
        self.forms.into_iter().find_map(|(_, bytes)| bytes)
    }
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
fn packet_in(key: &RandomState, packet: &QueuedPacketIn) -> PacketIn {
    let fields = pipeline_fields(&packet.head.context);
    let frame = &packet.frame;
    PacketIn {
        buffer_id: NO_BUFFER,
        total_len: u16::try_from(frame.len()).unwrap_or(u16::MAX),
        reason: packet.head.reason as u8,
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

/// Returns the port of entry, and what is not 0 of the fields that are not in the frame (§7.4.1;
/// those of Open vSwitch as it does).
fn pipeline_fields(context: &PipelineFields) -> Vec<FieldMatch> {
    let PipelineFields { metadata, tunnel_id, registers, mark, tunnel, connection, .. } = *context;
    let others: [(Field, u128); 9] = [
        (Field::Metadata, metadata.into()),
        (Field::TunnelId, tunnel_id.into()),
        (Field::PktMark, mark.into()),
        (Field::TunSrc, tunnel.0.into()),
        (Field::TunDst, tunnel.1.into()),
        (Field::CtState, connection.state.bits().into()),
        (Field::CtZone, connection.zone.into()),
        (Field::CtMark, connection.mark.into()),
        (Field::CtLabel, connection.label),
    ];
    let mut fields = vec![FieldMatch::exact(Field::InPort, context.in_port.into())];
    let set = others.into_iter().filter(|(_, value)| *value != 0);
    fields.extend(set.map(|(field, value)| FieldMatch::exact(field, value)));
    for (field, value) in REGISTERS.into_iter().zip(registers) {
        // Four registers of 32 bits.
        let parts = (0..4).map(|place| u128::from(u32::MAX) << (32 * place));
        let mask = parts.filter(|part| value & part != 0).fold(0, |mask, part| mask | part);
        if mask != 0 {
            fields.push(FieldMatch::masked(field, value, mask));
        }
    }
    fields
}

fn flow_removed(version: Version, removed: &Removed) -> FlowRemoved {
    let flow = &removed.flow;
    FlowRemoved {
        cookie: flow.cookie,
        priority: removed.rank.priority(),
        reason: removed_reason(version, removed.reason),
        table_id: removed.table_id,
        age: removed.at.since(flow.added),
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        packets: flow.counters.packets,
        bytes: flow.counters.bytes,
        matching: removed.rank.matching().clone(),
    }
}
