//! What all connections of an agent share: the switch, its identity, elections, and asynchronous
//! messages not yet delivered.

use super::async_messages::AsyncMessages;
use super::event::Event;
use crate::message::{Config, FlowRemoved, Message, NO_BUFFER, PacketIn, PortDescription, PortStatus};
use fastpath_engine::switching::{Control, QueuedPacketIn};
use fastpath_switch::port::LinkState;
use fastpath_switch::{Field, FieldMatch, Match, Port, Removed, RemovedReason, flow};
use fastpath_units::Time;
use fastpath_wire::MacAddr;
use std::collections::BTreeMap;

/// OFPPS_ bits.
const LINK_DOWN: u32 = 1 << 0;
const LIVE: u32 = 1 << 2;
/// OFPPF_10GB_FD.
const TEN_GIGABIT: u32 = 1 << 6;
/// The longest frame that fits a packet-in. Header, fixed part and the longest match take less than
/// 128 bytes.
const PACKET_IN_MAX: usize = u16::MAX as usize - 128;

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
    /// The names that controllers gave to tables.
    pub(super) table_names: BTreeMap<u8, String>,
    /// The generation id of the last election (§6.3.6).
    pub(super) generation_id: Option<u64>,
    pub(super) async_messages: AsyncMessages,
    pub(super) started: Time,
}

impl SwitchState {
    /// Records removed flows. Those with the flag OFPFF_SEND_FLOW_REM will be sent to controllers.
    pub(super) fn note_removed(&mut self, removed: Vec<Removed>) {
        let reported = removed.into_iter().filter(|one| one.flow.flags & flow::flags::SEND_FLOW_REM != 0);
        reported.for_each(|one| self.async_messages.push(Event::FlowRemoved(Box::new(one))));
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

    /// Encodes an event; `None` when its subject is gone.
    pub(super) fn encode(&self, event: &Event) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.message(event)?.encode(0, &mut bytes);
        Some(bytes)
    }

    fn message(&self, event: &Event) -> Option<Message> {
        Some(match event {
            Event::PacketIn(packet) => Message::PacketIn(packet_in(packet)),
            Event::FlowRemoved(removed) => Message::FlowRemoved(flow_removed(removed)),
            Event::PortAdded(number) => self.port_status(0, *number)?,
            Event::PortStatus(number) => self.port_status(2, *number)?,
            Event::PortRemoved(port) => Message::PortStatus(PortStatus { reason: 1, port: (**port).clone() }),
        })
    }

    /// Returns the message on a port that is there (reasons OFPPR_ADD and OFPPR_MODIFY).
    fn port_status(&self, reason: u8, number: u32) -> Option<Message> {
        let port = self.control.peek(|switch| switch.port(number).copied())?;
        Some(Message::PortStatus(PortStatus { reason, port: self.describe(number, &port) }))
    }
}

/// This switch buffers no packets. It sends them whole, whatever length the action gives (§6.1.2).
fn packet_in(packet: &QueuedPacketIn) -> PacketIn {
    let context = packet.head.context;
    let mut fields = vec![FieldMatch::exact(Field::InPort, context.in_port.into())];
    if context.metadata != 0 {
        fields.push(FieldMatch::exact(Field::Metadata, context.metadata.into()));
    }
    if context.tunnel_id != 0 {
        fields.push(FieldMatch::exact(Field::TunnelId, context.tunnel_id.into()));
    }
    let frame = &packet.frame;
    PacketIn {
        buffer_id: NO_BUFFER,
        total_len: u16::try_from(frame.len()).unwrap_or(u16::MAX),
        reason: packet.head.reason as u8,
        table_id: packet.head.table_id,
        cookie: packet.head.cookie,
        matching: Match::new(&fields).unwrap_or_default(),
        data: frame[..frame.len().min(PACKET_IN_MAX)].to_vec(),
    }
}

fn flow_removed(removed: &Removed) -> FlowRemoved {
    let flow = &removed.flow;
    FlowRemoved {
        cookie: flow.cookie,
        priority: removed.rank.priority(),
        reason: match removed.reason {
            RemovedReason::IdleTimeout => 0,
            RemovedReason::HardTimeout => 1,
            RemovedReason::Delete => 2,
            RemovedReason::GroupDelete => 3,
        },
        table_id: removed.table_id,
        age: removed.at.since(flow.added),
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        packets: flow.counters.packets,
        bytes: flow.counters.bytes,
        matching: removed.rank.matching().clone(),
    }
}
