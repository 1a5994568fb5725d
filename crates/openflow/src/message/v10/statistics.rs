//! Requests for statistics and their replies (OpenFlow 1.0.0 §5.3.5).

use super::{action, matching, nx_statistics, port, port_number};
use crate::message::bytes::{ByteReader, Write, measured};
use crate::message::fault::Fault;
use crate::message::multipart::{
    FlowStats, NXST_AGGREGATE, NXST_FLOW, PacketQueue, PortStats, QueueStats, Reply, Request, TableStats,
    items, read_counters, write_counters,
};
use crate::message::packet::{read_age, write_age};
use fastpath_switch::flow::ANY_GROUP;
use fastpath_switch::{FlowFilter, Instructions, PortCounters, port as ports};
use fastpath_units::Duration;

/// In requests for queues: all ports (OFPP_ALL).
const ALL_PORTS: u32 = ports::ALL;

/// Reads a request of type `kind` (OFPST_).
pub(crate) fn read_request(kind: u16, mut r: ByteReader<'_>) -> Result<Request, Fault> {
    let request = match kind {
        0 => Request::Desc,
        1 => Request::Flow(read_filter(&mut r)?),
        2 => Request::Aggregate(read_filter(&mut r)?),
        3 => Request::Table,
        4 => {
            let port = port_number::read(&mut r)?;
            r.skip(6)?;
            Request::PortStats(port)
        }
        5 => {
            let port = port_number::read(&mut r)?;
            r.skip(2)?;
            let port = if port == ALL_PORTS { ports::ANY } else { port };
            Request::Queue { port, queue: r.u32()? }
        }
        // An extension of Open vSwitch: the features reply may not hold all ports.
        13 => Request::PortDesc(ports::ANY),
        0xffff => Request::Experimenter { experimenter: r.u32()?, kind: r.u32()?, data: r.rest().to_vec() },
        _ => return Err(Fault::BadMultipart(kind)),
    };
    r.end()?;
    Ok(request)
}

/// Writes a request.
///
/// # Panics
/// If OpenFlow 1.0 has no such request.
pub(crate) fn write_request(out: &mut Vec<u8>, request: &Request) {
    match request {
        Request::Desc | Request::Table | Request::PortDesc(_) => {}
        Request::Flow(filter) | Request::Aggregate(filter) => write_filter(out, filter),
        Request::FlowMonitor(requests) => nx_statistics::write_monitors(out, requests),
        Request::NxFlow(filter) => nx_statistics::write_request(out, NXST_FLOW, filter),
        Request::NxAggregate(filter) => nx_statistics::write_request(out, NXST_AGGREGATE, filter),
        Request::PortStats(port) => {
            port_number::write(out, *port);
            out.zeros(6);
        }
        Request::Queue { port, queue } => {
            port_number::write(out, if *port == ports::ANY { ALL_PORTS } else { *port });
            out.u16(0);
            out.u32(*queue);
        }
        Request::Experimenter { experimenter, kind, data } => {
            out.u32(*experimenter);
            out.u32(*kind);
            out.extend_from_slice(data);
        }
        other => panic!("OpenFlow 1.0 has no statistics of type {}", other.number()),
    }
}

fn read_filter(r: &mut ByteReader<'_>) -> Result<FlowFilter, Fault> {
    let (matching, table_id) = (matching::read(r)?.matching, r.u8()?);
    r.skip(1)?;
    let out_port = port_number::read(r)?;
    Ok(FlowFilter { table_id, out_port, out_group: ANY_GROUP, cookie: 0, cookie_mask: 0, matching })
}

fn write_filter(out: &mut Vec<u8>, filter: &FlowFilter) {
    matching::write(out, &filter.matching);
    out.u8(filter.table_id);
    out.u8(0);
    port_number::write(out, filter.out_port);
}

/// Reads a reply of type `kind` (OFPST_).
pub(crate) fn read_reply(kind: u16, mut r: ByteReader<'_>) -> Result<Reply, Fault> {
    let reply = match kind {
        1 => Reply::Flow(items(&mut r, read_flow)?),
        3 => Reply::Table(items(&mut r, read_table)?),
        4 => Reply::PortStats(items(&mut r, read_port)?),
        5 => Reply::Queue(items(&mut r, read_queue)?),
        13 => Reply::PortDesc(items(&mut r, port::read)?),
        // The same as in OpenFlow 1.3.
        0 | 2 | 0xffff => return Reply::read(kind, r),
        _ => return Err(Fault::BadMultipart(kind)),
    };
    r.end()?;
    Ok(reply)
}

/// Writes the body of a reply.
///
/// # Panics
/// If OpenFlow 1.0 has no such reply.
pub(crate) fn write_reply(out: &mut Vec<u8>, reply: &Reply) {
    match reply {
        Reply::Flow(flows) => flows.iter().for_each(|flow| write_flow(out, flow)),
        Reply::Table(tables) => tables.iter().for_each(|table| write_table(out, table)),
        Reply::PortStats(ports) => ports.iter().for_each(|port| write_port(out, port)),
        Reply::Queue(queues) => queues.iter().for_each(|queue| write_queue(out, queue)),
        Reply::PortDesc(ports) => ports.iter().for_each(|one| port::write(out, one)),
        Reply::FlowMonitor(updates) => {
            updates.iter().for_each(|one| one.write_old(out, &nx_statistics::UPDATES));
        }
        Reply::NxFlow(flows) => flows.iter().for_each(|flow| nx_statistics::write_flow(out, flow)),
        Reply::NxAggregate { counters, flows } => {
            Reply::Aggregate { counters: *counters, flows: *flows }.write(out);
        }
        Reply::Desc(_) | Reply::Aggregate { .. } | Reply::Experimenter { .. } => reply.write(out),
        other => panic!("OpenFlow 1.0 has no statistics of type {}", other.number()),
    }
}

/// Reads a flow. Its flags are not in the message.
fn read_flow(r: &mut ByteReader<'_>) -> Result<FlowStats, Fault> {
    let mut r = measured(r)?;
    let table_id = r.u8()?;
    r.skip(1)?;
    let (matching, age) = (matching::read(&mut r)?.matching, read_age(&mut r)?);
    let (priority, idle_timeout, hard_timeout) = (r.u16()?, r.u16()?, r.u16()?);
    r.skip(6)?;
    let (cookie, counters) = (r.u64()?, read_counters(&mut r)?);
    let instructions = Instructions::apply(action::read(r, &matching)?);
    let flags = 0;
    Ok(FlowStats {
        table_id,
        age,
        priority,
        idle_timeout,
        hard_timeout,
        importance: 0,
        idle: None,
        flags,
        cookie,
        counters,
        matching,
        instructions,
    })
}

/// Writes a flow. What OpenFlow 1.0 cannot say of its match and instructions is left out.
fn write_flow(out: &mut Vec<u8>, flow: &FlowStats) {
    let start = out.len();
    out.u16(0);
    out.u8(flow.table_id);
    out.u8(0);
    matching::write(out, &flow.matching);
    write_age(out, flow.age);
    [flow.priority, flow.idle_timeout, flow.hard_timeout].into_iter().for_each(|number| out.u16(number));
    out.zeros(6);
    out.u64(flow.cookie);
    write_counters(out, &flow.counters);
    action::write(out, &flow.instructions.apply);
    out.length(start, start);
}

fn read_table(r: &mut ByteReader<'_>) -> Result<TableStats, Fault> {
    let table_id = r.u8()?;
    r.skip(3)?;
    let name = r.text(32)?;
    // The fields that it can leave out: all.
    r.skip(4)?;
    let (entries, active) = (r.u32()?, r.u32()?);
    Ok(TableStats { table_id, name, entries, active, lookups: r.u64()?, matched: r.u64()? })
}

fn write_table(out: &mut Vec<u8>, table: &TableStats) {
    out.u8(table.table_id);
    out.zeros(3);
    out.text(&table.name, 32);
    [matching::ALL, table.entries, table.active].into_iter().for_each(|number| out.u32(number));
    out.u64(table.lookups);
    out.u64(table.matched);
}

/// Reads the counters of a port. Its age is not in the message.
fn read_port(r: &mut ByteReader<'_>) -> Result<PortStats, Fault> {
    let port = port_number::read(r)?;
    r.skip(6)?;
    let counters = PortCounters {
        rx_packets: r.u64()?,
        tx_packets: r.u64()?,
        rx_bytes: r.u64()?,
        tx_bytes: r.u64()?,
        rx_dropped: r.u64()?,
        tx_dropped: r.u64()?,
    };
    r.skip(6 * 8)?;
    Ok(PortStats { port, counters, age: Duration::ZERO })
}

/// Writes the counters of a port. The error counters are 0.
fn write_port(out: &mut Vec<u8>, stats: &PortStats) {
    let c = &stats.counters;
    port_number::write(out, stats.port);
    out.zeros(6);
    let counts = [c.rx_packets, c.tx_packets, c.rx_bytes, c.tx_bytes, c.rx_dropped, c.tx_dropped];
    counts.into_iter().for_each(|count| out.u64(count));
    out.zeros(6 * 8);
}

/// Reads the queues of a port until the end; their properties are skipped.
pub(super) fn read_queues(port: u32, r: &mut ByteReader<'_>) -> Result<Vec<PacketQueue>, Fault> {
    items(r, |r| {
        let (number, len) = (r.u32()?, r.u16()?);
        r.skip(2)?;
        r.skip(usize::from(len).checked_sub(8).ok_or(Fault::BadLen)?)?;
        Ok(PacketQueue { port, number })
    })
}

/// Reads the counters of a queue. Its age is not in the message.
fn read_queue(r: &mut ByteReader<'_>) -> Result<QueueStats, Fault> {
    let port = port_number::read(r)?;
    r.skip(2)?;
    let (queue, bytes, packets) = (r.u32()?, r.u64()?, r.u64()?);
    let sent = fastpath_switch::Counters { packets, bytes };
    Ok(QueueStats { port, queue, sent, errors: r.u64()?, age: Duration::ZERO })
}

fn write_queue(out: &mut Vec<u8>, stats: &QueueStats) {
    port_number::write(out, stats.port);
    out.u16(0);
    out.u32(stats.queue);
    [stats.sent.bytes, stats.sent.packets, stats.errors].into_iter().for_each(|count| out.u64(count));
}
