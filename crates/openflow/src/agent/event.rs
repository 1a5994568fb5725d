//! Events that controllers learn without a request, by asynchronous messages (OpenFlow 1.3.5
//! §6.1.2).

use super::flow_events::{FlowChanges, Telling};
use crate::message::{Async, Codec, Message, PortDescription, TableStatus};
use fastpath_engine::switching::QueuedPacketIn;
use fastpath_switch::observe::FlowEvent;
use fastpath_switch::{Action, Bucket, Flow, Instructions, Rank, Removed, Version};
use std::sync::Arc;

/// Something that controllers learn by an asynchronous message.
#[derive(Debug)]
pub(super) enum Event {
    PacketIn(Box<QueuedPacketIn>),
    FlowRemoved(Box<Removed>),
    PortStatus(u32),
    PortAdded(u32),
    PortRemoved(Box<PortDescription>),
    TableStatus(Box<TableStatus>),
    FlowChanges(FlowChanges),
    /// A change of groups or meters by a controller.
    Request(Box<ForwardedRequest>),
}

/// A request that is forwarded to the other controllers.
#[derive(Debug)]
pub(super) struct ForwardedRequest {
    /// The connection of the controller that made it.
    pub(super) connection: usize,
    pub(super) xid: u32,
    pub(super) message: Message,
}

/// The form of an event in the messages of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct EventForm {
    pub(super) codec: Codec,
    /// What is told of changes of flows.
    pub(super) tellings: Vec<Option<Telling>>,
}

impl Event {
    /// Returns the event of a flow that has gone, for controllers that are told of each.
    pub(super) fn of_reported(removed: Removed, nothing: &Arc<Instructions>) -> Event {
        // The message does not have the instructions: they do not wait for it.
        let flow = Flow { instructions: Arc::clone(nothing), ..removed.flow };
        Event::FlowRemoved(Box::new(Removed { flow, ..removed }))
    }

    /// Returns the event of a change of groups or meters by a controller; `None` for another
    /// change.
    pub(super) fn of_request(connection: usize, xid: u32, request: &Message) -> Option<Event> {
        let is_forwarded = matches!(request, Message::GroupMod(_) | Message::MeterMod(_));
        let request = || ForwardedRequest { connection, xid, message: request.clone() };
        is_forwarded.then(|| Event::Request(Box::new(request())))
    }

    /// Returns about how much memory it takes while it waits. What several events share counts for
    /// each.
    pub(super) fn bytes(&self) -> usize {
        let matched = |rank: &Rank| size_of_val(rank.matching().terms());
        let more = match self {
            Event::PacketIn(packet) => {
                size_of::<QueuedPacketIn>() + packet.frame.len() + packet.head.userdata.len()
            }
            Event::FlowRemoved(removed) => size_of::<Removed>() + matched(&removed.rank),
            Event::FlowChanges(changes) => {
                let of_flow = |one: &FlowEvent| {
                    size_of::<FlowEvent>() + matched(&one.rank) + one.flow.instructions.bytes()
                };
                changes.flows.iter().map(of_flow).sum()
            }
            Event::Request(request) => size_of::<ForwardedRequest>() + request.bytes(),
            Event::PortRemoved(_) => size_of::<PortDescription>(),
            Event::TableStatus(_) => size_of::<TableStatus>(),
            Event::PortStatus(_) | Event::PortAdded(_) => 0,
        };
        size_of::<Event>() + more
    }

    /// Returns whether `masks` let the event pass to a controller, which is a slave or is not
    /// (§7.3.10).
    pub(super) fn passes(&self, version: Version, masks: &Async, is_slave: bool) -> bool {
        let side = usize::from(is_slave);
        let (word, bit) = match self {
            // Monitors select them.
            Event::FlowChanges(_) => return true,
            Event::Request(request) => {
                (masks.request_forward[side], u8::from(matches!(request.message, Message::MeterMod(_))))
            }
            Event::PacketIn(packet) => (masks.packet_in[side], packet.head.reason.number_in(version)),
            Event::FlowRemoved(removed) => (masks.flow_removed[side], removed.reason.number_in(version)),
            Event::PortAdded(_) => (masks.port_status[side], 0),
            Event::PortRemoved(_) => (masks.port_status[side], 1),
            Event::PortStatus(_) => (masks.port_status[side], 2),
            Event::TableStatus(status) => (masks.table_status[side], status.reason),
        };
        word & 1 << bit != 0
    }
}

impl ForwardedRequest {
    /// Returns how much memory its parts take.
    fn bytes(&self) -> usize {
        match &self.message {
            Message::GroupMod(request) => {
                let of_bucket = |one: &Bucket| one.actions.iter().map(Action::bytes).sum::<usize>();
                size_of_val(&request.buckets[..]) + request.buckets.iter().map(of_bucket).sum::<usize>()
            }
            Message::MeterMod(request) => size_of_val(&request.bands[..]),
            _ => 0,
        }
    }
}
