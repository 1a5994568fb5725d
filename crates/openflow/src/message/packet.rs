//! Messages about packets, removed flows and changed ports (§7.3.7, §7.4).

use super::action::{read_actions, write_actions};
use super::bytes::{ByteReader, Write};
use super::fault::Fault;
use super::oxm;
use fastpath_switch::{Action, FieldMatch, Match};
use fastpath_units::Duration;
use fastpath_wire::MacAddr;

/// OFPT_PACKET_IN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketIn {
    /// The buffer that holds the packet, or [`super::NO_BUFFER`].
    pub buffer_id: u32,
    /// Length of the whole frame.
    pub total_len: u16,
    /// OFPR_: 0 no match, 1 action, 2 invalid TTL.
    pub reason: u8,
    /// The table that sent it.
    pub table_id: u8,
    /// The cookie of the flow that sent it.
    pub cookie: u64,
    /// Port of entry, metadata, tunnel id.
    pub matching: Match,
    /// Bytes that the action has for the controller. Only NXT_PACKET_IN2 has them.
    pub userdata: Vec<u8>,
    /// What is left to do for a paused packet, for the switch alone. Only NXT_PACKET_IN2 has it.
    pub continuation: Vec<u8>,
    /// The frame, or its beginning.
    pub data: Vec<u8>,
}

/// OFPT_PACKET_OUT.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketOut {
    /// The buffer that holds the packet, or [`super::NO_BUFFER`] for the one in `data`.
    pub buffer_id: u32,
    /// The input port of the packet.
    pub in_port: u32,
    /// Its other fields that are not in the frame. OpenFlow 1.5 only.
    pub fields: Vec<FieldMatch>,
    /// The actions.
    pub actions: Vec<Action>,
    /// The frame.
    pub data: Vec<u8>,
}

/// OFPT_FLOW_REMOVED.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowRemoved {
    /// The cookie of the flow.
    pub cookie: u64,
    /// Its priority.
    pub priority: u16,
    /// OFPRR_.
    pub reason: u8,
    /// The table of the flow.
    pub table_id: u8,
    /// How long the flow was installed, in whole nanoseconds.
    pub age: Duration,
    /// Seconds.
    pub idle_timeout: u16,
    /// Seconds.
    pub hard_timeout: u16,
    /// Packets it matched.
    pub packets: u64,
    /// Bytes it matched.
    pub bytes: u64,
    /// Its match.
    pub matching: Match,
}

/// OFPT_PORT_STATUS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortStatus {
    /// OFPPR_: 0 added, 1 deleted, 2 modified.
    pub reason: u8,
    /// The port.
    pub port: PortDescription,
}

/// `struct ofp_port`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortDescription {
    /// Its number.
    pub number: u32,
    /// Its hardware address.
    pub hw_addr: MacAddr,
    /// Its name, at most 15 bytes.
    pub name: String,
    /// OFPPC_ bits.
    pub config: u32,
    /// OFPPS_ bits.
    pub state: u32,
    /// OFPPF_ bits: current, advertised, supported, advertised by the peer.
    pub features: [u32; 4],
    /// Current and maximum speed in kbit/s.
    pub speeds: [u32; 2],
}

/// Reads seconds and nanoseconds.
pub(crate) fn write_age(out: &mut Vec<u8>, age: Duration) {
    let ns = age.as_ns();
    out.u32((ns / 1_000_000_000) as u32);
    out.u32((ns % 1_000_000_000) as u32);
}

pub(crate) fn read_age(r: &mut ByteReader<'_>) -> Result<Duration, Fault> {
    let (seconds, ns) = (r.u32()?, r.u32()?);
    // A duration holds at most 213 days.
    let total = (u128::from(seconds) * 1_000_000_000 + u128::from(ns)) * 1000;
    // Limited to the last whole nanosecond, which can be written again.
    Ok(Duration::from_ps(u64::try_from(total).unwrap_or(u64::MAX / 1000 * 1000)))
}

pub(crate) fn read_packet_in(mut r: ByteReader<'_>) -> Result<PacketIn, Fault> {
    let (buffer_id, total_len, reason, table_id, cookie) = (r.u32()?, r.u16()?, r.u8()?, r.u8()?, r.u64()?);
    let matching = oxm::read_match(&mut r)?;
    r.skip(2)?;
    let (userdata, continuation, data) = (Vec::new(), Vec::new(), r.rest().to_vec());
    Ok(PacketIn { buffer_id, total_len, reason, table_id, cookie, matching, userdata, continuation, data })
}

pub(crate) fn write_packet_in(out: &mut Vec<u8>, packet: &PacketIn) {
    out.u32(packet.buffer_id);
    out.u16(packet.total_len);
    out.u8(packet.reason);
    out.u8(packet.table_id);
    out.u64(packet.cookie);
    oxm::write_match(out, &packet.matching);
    out.u16(0);
    out.extend_from_slice(&packet.data);
}

pub(crate) fn read_packet_out(mut r: ByteReader<'_>) -> Result<PacketOut, Fault> {
    let (buffer_id, in_port, actions_len) = (r.u32()?, r.u32()?, usize::from(r.u16()?));
    r.skip(6)?;
    let actions = read_actions(r.part(actions_len, Fault::ActionBadLen)?)?;
    Ok(PacketOut { buffer_id, in_port, fields: Vec::new(), actions, data: r.rest().to_vec() })
}

pub(crate) fn write_packet_out(out: &mut Vec<u8>, packet: &PacketOut) {
    out.u32(packet.buffer_id);
    out.u32(packet.in_port);
    let at = out.len();
    out.u16(0);
    out.zeros(6);
    let start = out.len();
    write_actions(out, &packet.actions);
    out.length(start, at);
    out.extend_from_slice(&packet.data);
}

pub(crate) fn read_flow_removed(mut r: ByteReader<'_>) -> Result<FlowRemoved, Fault> {
    let (cookie, priority, reason, table_id) = (r.u64()?, r.u16()?, r.u8()?, r.u8()?);
    let (age, idle_timeout, hard_timeout) = (read_age(&mut r)?, r.u16()?, r.u16()?);
    let (packets, bytes, matching) = (r.u64()?, r.u64()?, oxm::read_match(&mut r)?);
    r.end()?;
    Ok(FlowRemoved {
        cookie,
        priority,
        reason,
        table_id,
        age,
        idle_timeout,
        hard_timeout,
        packets,
        bytes,
        matching,
    })
}

pub(crate) fn write_flow_removed(out: &mut Vec<u8>, flow: &FlowRemoved) {
    out.u64(flow.cookie);
    out.u16(flow.priority);
    out.u8(flow.reason);
    out.u8(flow.table_id);
    write_age(out, flow.age);
    out.u16(flow.idle_timeout);
    out.u16(flow.hard_timeout);
    out.u64(flow.packets);
    out.u64(flow.bytes);
    oxm::write_match(out, &flow.matching);
}

/// Reads a port status, whose port has the form of a version.
pub(crate) fn read_port_status(
    mut r: ByteReader<'_>,
    read_port: impl FnOnce(&mut ByteReader<'_>) -> Result<PortDescription, Fault>,
) -> Result<PortStatus, Fault> {
    let reason = r.u8()?;
    r.skip(7)?;
    let port = read_port(&mut r)?;
    r.end()?;
    Ok(PortStatus { reason, port })
}

/// Writes a port status, whose port has the form of a version.
pub(crate) fn write_port_status(
    out: &mut Vec<u8>,
    status: &PortStatus,
    write_port: impl FnOnce(&mut Vec<u8>, &PortDescription),
) {
    out.u8(status.reason);
    out.zeros(7);
    write_port(out, &status.port);
}

pub(crate) fn read_port(r: &mut ByteReader<'_>) -> Result<PortDescription, Fault> {
    let number = r.u32()?;
    r.skip(4)?;
    let hw_addr = MacAddr(r.array()?);
    r.skip(2)?;
    let name = r.text(16)?;
    let (config, state) = (r.u32()?, r.u32()?);
    let features = [r.u32()?, r.u32()?, r.u32()?, r.u32()?];
    let speeds = [r.u32()?, r.u32()?];
    Ok(PortDescription { number, hw_addr, name, config, state, features, speeds })
}

pub(crate) fn write_port(out: &mut Vec<u8>, port: &PortDescription) {
    out.u32(port.number);
    out.u32(0);
    out.extend_from_slice(&port.hw_addr.0);
    out.u16(0);
    out.text(&port.name, 16);
    out.u32(port.config);
    out.u32(port.state);
    port.features.iter().chain(&port.speeds).for_each(|number| out.u32(*number));
}
