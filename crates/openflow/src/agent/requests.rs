//! Handles all requests except statistics.

use super::bundles;
use super::changes::{change_observed, change_one};
use super::connection::{Connection, Election, Incoming};
use super::event::Event;
use super::flow_events::{Author, FlowChanges};
use super::nicira;
use super::statistics;
use super::switch_state::SwitchState;
use super::table_mods;
use crate::message::continuation;
use crate::message::{
    ACTIONS_10, Config, Fault, Features, Message, NO_BUFFER, ONF, PacketIn, PacketOut, PortMod, Request,
    Role, RoleMessage,
};
use fastpath_switch::flow::ALL_TABLES;
use fastpath_switch::key::PipelineFields;
use fastpath_switch::misses;
use fastpath_switch::port::config;
use fastpath_switch::{
    FlowCommand, FlowFilter, FlowMod, GroupCommand, MeterCommand, Rank, Refusal, Switch, Table, Version,
};

/// OFPC_: statistics of flows, tables, ports, groups and queues.
const CAPABILITIES: u32 = 0b100_1111;
/// OFPC_ since OpenFlow 1.4: also bundles and flow monitoring.
const CAPABILITIES_14: u32 = CAPABILITIES | 0b11 << 9;
/// OFPC_ of OpenFlow 1.0: statistics of flows, tables, ports and queues; addresses in ARP packets
/// are matched.
const CAPABILITIES_10: u32 = 0b1100_0111;
/// The OFPPC_ bits that a port-mod can set.
const PORT_CONFIG: u32 = config::PORT_DOWN | config::NO_RECV | config::NO_FWD | config::NO_PACKET_IN;
/// Queues that a reply to a request for their configuration has at most (16 bytes each).
const QUEUES_MAX: usize = 4000;
/// Flows that are deleted while the data path waits.
const DELETED_AT_ONCE: usize = 256;

/// Handles the requests that wait, in order, until one has a reply of several pages, which is sent
/// before any other reply. Consecutive changes are applied under one lock.
pub(super) fn handle(state: &mut SwitchState, connection: &mut Connection) -> Vec<Election> {
    let mut elections = Vec::new();
    while connection.dump.is_none() && connection.may_serve() {
        // What was changed before is told before the reply, and before there are other monitors.
        let is_ordered = |one: &Incoming| {
            let monitor =
                matches!(one.content, Ok(Message::MultipartRequest { request: Request::FlowMonitor(_), .. }));
            monitor || matches!(one.content, Ok(Message::BarrierRequest))
        };
        if connection.waiting.front().is_some_and(is_ordered) && !state.send_async_to(connection) {
            break;
        }
        let is_of_run = |one: &&Incoming| is_change(&one.content);
        let changes = connection.waiting.iter().take_while(is_of_run).count();
        if changes > 0 {
            let run = connection.waiting.drain(..changes).collect();
            change(state, connection, run);
            continue;
        }
        let Some(incoming) = connection.waiting.pop_front() else { break };
        elections.extend(handle_one(state, connection, incoming));
    }
    elections
}

/// Returns whether it changes a bounded number of flows, or groups or meters.
fn is_change(content: &Result<Message, Fault>) -> bool {
    match content {
        Ok(Message::FlowMod { request, .. }) => request.command != FlowCommand::Delete,
        Ok(Message::GroupMod(_) | Message::MeterMod(_)) => true,
        _ => false,
    }
}

/// Applies flow, group and meter mods.
fn change(state: &mut SwitchState, connection: &mut Connection, run: Vec<Incoming>) {
    if connection.is_slave() {
        run.iter().for_each(|one| connection.refuse(one.xid, &Fault::IsSlave, &one.head));
        return;
    }
    connection.has_changed = true;
    let mut removed = Vec::new();
    // With flows that teach others, or a table that evicts, more may go than the requests name.
    let evicts = |switch: &Switch| switch.tables().iter().any(Table::evicts);
    let is_exact = !state.control.peek(|switch| switch.has_learners() || evicts(switch));
    let flows_removed: Option<Vec<_>> =
        run.iter().map(|one| flows_removed(&one.content).filter(|_| is_exact)).collect();
    let are_misses_wanted = state.are_misses_wanted;
    let (id, is_monitored, mut events) = (connection.id, state.are_flows_monitored, Vec::new());
    let number = state.number_changes(run.len());
    let change = |switch: &mut Switch, now| {
        let sees_misses = |one: &Incoming| match &one.content {
            Ok(Message::FlowMod { request, .. }) => misses::is_seen_by(request),
            _ => false,
        };
        if are_misses_wanted && run.iter().any(sees_misses) {
            misses::remove(switch, now);
        }
        for (number, one) in (number..).zip(&run) {
            let (author, mut flows) = (Some((id, one.xid)), Vec::new());
            let changed = match &one.content {
                Ok(message) if is_monitored => change_observed(switch, now, message, &mut flows),
                Ok(message) => change_one(switch, now, message),
                Err(fault) => Err(*fault),
            };
            match changed {
                Ok(gone) => {
                    removed.extend(gone);
                    events.push(Event::FlowChanges(FlowChanges { number, author, flows }));
                    let message = one.content.as_ref().ok();
                    events.extend(message.and_then(|message| Event::of_request(id, one.xid, message)));
                }
                Err(fault) => connection.refuse(one.xid, &fault, &one.head),
            }
        }
        if are_misses_wanted {
            misses::add(switch, now);
        }
    };
    match flows_removed {
        Some(flows) => state.control.change_flows(&flows.concat(), change),
        None => state.control.change(change),
    }
    let is_told = |event: &Event| !matches!(event, Event::FlowChanges(changes) if changes.flows.is_empty());
    events.into_iter().filter(is_told).for_each(|event| state.async_messages.push(event));
    state.report_removed(removed);
}

/// Returns the flows that a change removes at most; `None` for any number of flows.
fn flows_removed(change: &Result<Message, Fault>) -> Option<Vec<(u8, Rank)>> {
    match change {
        Ok(Message::FlowMod { request, .. }) => match request.command {
            FlowCommand::Add | FlowCommand::Modify | FlowCommand::ModifyStrict => Some(Vec::new()),
            FlowCommand::DeleteStrict if request.table_id != ALL_TABLES => {
                Some(vec![(request.table_id, Rank::new(request.priority, request.matching.clone()))])
            }
            FlowCommand::Delete | FlowCommand::DeleteStrict => None,
        },
        Ok(Message::GroupMod(request)) => (request.command == GroupCommand::Add).then(Vec::new),
        Ok(Message::MeterMod(request)) => (request.command == MeterCommand::Add).then(Vec::new),
        // It changes nothing.
        _ => Some(Vec::new()),
    }
}

/// Deletes any number of flows, some at a time: packets pass in between.
fn delete(state: &mut SwitchState, author: Author, request: &FlowMod) -> Result<(), Fault> {
    state.control.peek(|switch| switch.check_flow_mod(request))?;
    let are_misses_wanted = state.are_misses_wanted;
    let is_monitored = state.are_flows_monitored;
    let cleared = state.control.change_flows(&[], |switch, now| {
        let cleared = if is_monitored { Vec::new() } else { switch.clear(request) };
        if are_misses_wanted {
            misses::add(switch, now);
        }
        cleared
    });
    if !cleared.is_empty() {
        // Freeing the flows takes long, and needs no lock.
        drop(cleared);
        state.control.release_memory();
    }
    let (filter, number) = (FlowFilter::of(request), state.number_changes(1));
    let mut next = None;
    loop {
        let mut selected = Vec::with_capacity(DELETED_AT_ONCE);
        let (_, last) = state.control.peek(|switch| {
            statistics::scan(switch, &filter, next.as_ref(), |table_id, rank, _| {
                selected.push((table_id, rank.clone()));
                selected.len() < DELETED_AT_ONCE
            })
        });
        let removed = state.control.change_flows(&selected, |switch, now| switch.delete(now, &selected));
        state.note_removed_by(author, number, removed);
        next = last;
        if next.is_none() {
            state.keep_misses();
            return Ok(());
        }
    }
}

fn handle_one(state: &mut SwitchState, connection: &mut Connection, incoming: Incoming) -> Option<Election> {
    let Incoming { xid, len, head, content } = incoming;
    let message = match content {
        Ok(message) => message,
        Err(fault) => {
            connection.refuse(xid, &fault, &head);
            return None;
        }
    };
    let answered = match message {
        Message::RoleRequest(request) => return elect(state, connection, xid, request, &head),
        Message::Nicira(message) => match nicira::answer(connection, xid, message) {
            Ok(election) => return election,
            Err(fault) => Err(fault),
        },
        Message::MultipartRequest { flags, request } => {
            statistics::answer(state, connection, (xid, len), flags, request)
        }
        message => answer(state, connection, xid, message),
    };
    if let Err(fault) = answered {
        connection.refuse(xid, &fault, &head);
    }
    None
}

fn answer(
    state: &mut SwitchState,
    connection: &mut Connection,
    xid: u32,
    message: Message,
) -> Result<(), Fault> {
    let is_slave = connection.is_slave();
    let only_masters = move || if is_slave { Err(Fault::IsSlave) } else { Ok(()) };
    match message {
        // Messages without an effect.
        Message::Hello(_) | Message::EchoReply(_) | Message::Error(_) => {}
        Message::EchoRequest(data) => connection.say(xid, &Message::EchoReply(data)),
        Message::FeaturesRequest => {
            let features = features(state, connection.codec.version());
            connection.say(xid, &Message::FeaturesReply(features));
        }
        Message::GetConfigRequest => connection.say(xid, &Message::GetConfigReply(state.config)),
        Message::SetConfig(config) => {
            only_masters()?;
            set_config(state, connection, config)?;
        }
        Message::PacketOut(packet) => {
            only_masters()?;
            packet_out(state, &packet)?;
        }
        Message::Resume(packet) => resume(state, &packet)?,
        // A deletion of one flow is a change like others.
        Message::FlowMod { request, .. } => {
            only_masters()?;
            connection.has_changed = true;
            delete(state, Some((connection.id, xid)), &request)?;
        }
        Message::PortMod(request) => {
            only_masters()?;
            port_mod(state, &request)?;
        }
        Message::TableMod(request) => {
            only_masters()?;
            table_mods::table_mod(state, connection.codec.version(), &request)?;
        }
        Message::BarrierRequest => {
            // Changes before the barrier are in force: each is when its call returns. Frames that
            // were received before may still be on their way to a port.
            state.control.wait_for_burst();
            connection.say(xid, &Message::BarrierReply);
        }
        Message::QueueGetConfigRequest { port } => connection.say(xid, &queue_config(state, port)?),
        Message::GetAsyncRequest => connection.say(xid, &Message::GetAsyncReply(connection.masks)),
        Message::SetAsync(masks) => connection.masks = masks.known(connection.codec.version()),
        Message::ChangeAsync(changes) => connection.change_masks(&changes),

        Message::Experimenter { experimenter: ONF, kind, data } => {
            bundles::answer(state, connection, xid, kind, &data)?;
        }
        Message::Experimenter { experimenter, .. } => return Err(Fault::BadExperimenter(experimenter)),
        other => return Err(Fault::BadType(other.kind())),
    }
    Ok(())
}

/// Returns the queues of a port. The reply has no parts.
fn queue_config(state: &SwitchState, port: u32) -> Result<Message, Fault> {
    statistics::check_queue_port(state, port)?;
    let mut queues = statistics::queues_of(state, port);
    queues.truncate(QUEUES_MAX);
    Ok(Message::QueueGetConfigReply { port, queues })
}

fn features(state: &SwitchState, version: Version) -> Features {
    let tables = state.control.peek(|switch| switch.limits().tables);
    let (capabilities, actions, ports) = match version {
        Version::V10 => (CAPABILITIES_10, ACTIONS_10, statistics::ports_of(state, version)),
        Version::V13 => (CAPABILITIES, 0, Vec::new()),
        Version::V14 | Version::V15 => (CAPABILITIES_14, 0, Vec::new()),
    };
    let datapath_id = state.datapath_id;
    Features { datapath_id, buffers: 0, tables, auxiliary_id: 0, capabilities, actions, ports }
}

/// Fragments are handled as ordinary packets; no other mode is supported.
fn set_config(state: &mut SwitchState, connection: &mut Connection, config: Config) -> Result<(), Fault> {
    if config.flags != 0 {
        return Err(Fault::ConfigBadFlags(config.flags));
    }
    state.config = config;
    connection.has_asked_for_misses = config.miss_send_len != 0;
    // Before the answer to a barrier.
    if connection.wants_misses() {
        state.want_misses(true);
    }
    Ok(())
}

fn packet_out(state: &SwitchState, packet: &PacketOut) -> Result<(), Fault> {
    if packet.buffer_id != NO_BUFFER {
        return Err(Fault::BufferUnknown(packet.buffer_id));
    }
    // A packet-out without data sends nothing, but is checked. As in Open vSwitch, it is not an
    // error: controllers answer a packet-in with it to drop the packet.
    if (1..14).contains(&packet.data.len()) {
        return Err(Fault::BadPacket);
    }
    let mut fields = PipelineFields::of_port(packet.in_port);
    fields.set_all(packet.fields.iter().copied());
    Ok(state.control.packet_out_with(&fields, &packet.actions, &packet.data)?)
}

/// Resumes a packet that was paused. Controllers may have changed it, and its fields.
fn resume(state: &SwitchState, packet: &PacketIn) -> Result<(), Fault> {
    if packet.data.is_empty() {
        return Err(Fault::BadLen);
    }
    let (mut fields, continuation) = continuation::open(&state.key, &packet.continuation)?;
    fields.set_all(packet.matching.fields());
    state.control.resume(&fields, &continuation, &packet.data);
    Ok(())
}

fn port_mod(state: &mut SwitchState, request: &PortMod) -> Result<(), Fault> {
    let number = request.port;
    let is_there = state.control.peek(|switch| switch.port(number).is_some());
    if !is_there {
        return Err(Refusal::PortUnknown(number).into());
    }
    if state.ports.get(&number).is_some_and(|info| info.hw_addr != request.hw_addr) {
        return Err(Fault::PortBadHwAddr(number));
    }
    if request.mask & !PORT_CONFIG != 0 {
        return Err(Fault::PortBadConfig(request.mask));
    }
    if request.advertise != 0 {
        return Err(Fault::PortBadAdvertise(request.advertise));
    }
    state.control.change_flows(&[], |switch, _| switch.port_mod(number, request.config, request.mask))?;
    state.async_messages.push(Event::PortStatus(number));
    Ok(())
}

/// Changes the role of a controller. The generation id orders the elections of masters (§6.3.6).
fn elect(
    state: &mut SwitchState,
    connection: &mut Connection,
    xid: u32,
    request: RoleMessage,
    head: &[u8],
) -> Option<Election> {
    let RoleMessage { role, generation_id } = request;
    if matches!(role, Role::Master | Role::Slave) {
        let is_stale = |last: u64| generation_id.wrapping_sub(last) as i64 <= -1;
        if state.generation_id.is_some_and(is_stale) {
            connection.refuse(xid, &Fault::RoleStale, head);
            return None;
        }
        state.generation_id = Some(generation_id);
    }
    if role != Role::NoChange {
        connection.take_role(role);
    }
    // All ones mean that there was no election yet (§7.3.9).
    let generation_id = state.generation_id.unwrap_or(u64::MAX);
    connection.say(xid, &Message::RoleReply(RoleMessage { role: connection.role, generation_id }));
    (role == Role::Master).then_some(Election)
}
