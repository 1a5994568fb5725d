//! Multipart requests and replies that differ from those of OpenFlow 1.3 (OpenFlow 1.4 §7.3.5).

use super::{port, queue, table};
use crate::message::action::{read_instructions, write_instructions};
use crate::message::bytes::{ByteReader, Write};
use crate::message::fault::Fault;
use crate::message::flow_form::FlowForm;
use crate::message::flow_update::{FlowUpdate, MonitorRequest};
use crate::message::multipart::{FlowStats, Reply, Request, items};

/// How flows are said in OpenFlow 1.4.
pub(crate) const FLOWS: FlowForm =
    FlowForm { has_importance: true, read: read_instructions, write: write_instructions };

pub(crate) fn read_request(kind: u16, mut r: ByteReader<'_>) -> Result<Request, Fault> {
    let request = match kind {
        14 => Request::TableDesc,
        15 => Request::QueueDesc { port: r.u32()?, queue: r.u32()? },
        16 => Request::FlowMonitor(items(&mut r, MonitorRequest::read)?),
        _ => return Request::read(kind, r),
    };
    r.end()?;
    Ok(request)
}

pub(crate) fn write_request(out: &mut Vec<u8>, request: &Request) {
    match request {
        Request::TableDesc => {}
        Request::QueueDesc { port, queue } => {
            out.u32(*port);
            out.u32(*queue);
        }
        Request::FlowMonitor(requests) => requests.iter().for_each(|one| one.write(out)),
        other => other.write(out),
    }
}

pub(crate) fn read_reply(kind: u16, mut r: ByteReader<'_>) -> Result<Reply, Fault> {
    let reply = match kind {
        1 => Reply::Flow(items(&mut r, |r| FlowStats::read(r, &FLOWS))?),
        4 => Reply::PortStats(items(&mut r, port::read_stats)?),
        5 => Reply::Queue(items(&mut r, queue::read_stats)?),
        13 => Reply::PortDesc(items(&mut r, port::read)?),
        14 => Reply::TableDesc(items(&mut r, table::read_config)?),
        15 => Reply::QueueDesc(items(&mut r, queue::read)?),
        16 => Reply::FlowMonitor(items(&mut r, |r| FlowUpdate::read(r, &FLOWS))?),
        _ => return Reply::read(kind, r),
    };
    r.end()?;
    Ok(reply)
}

pub(crate) fn write_reply(out: &mut Vec<u8>, reply: &Reply) {
    match reply {
        Reply::Flow(flows) => flows.iter().for_each(|flow| flow.write(out, &FLOWS)),
        Reply::PortStats(ports) => ports.iter().for_each(|one| port::write_stats(out, one)),
        Reply::Queue(queues) => queues.iter().for_each(|one| queue::write_stats(out, one)),
        Reply::PortDesc(ports) => ports.iter().for_each(|one| port::write(out, one)),
        Reply::TableDesc(tables) => tables.iter().for_each(|one| table::write_config(out, one)),
        Reply::FlowMonitor(updates) => updates.iter().for_each(|one| one.write(out, &FLOWS)),
        Reply::QueueDesc(queues) => queues.iter().for_each(|one| queue::write(out, one)),
        other => other.write(out),
    }
}
