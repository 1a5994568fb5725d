//! Multipart requests and replies that differ from those of OpenFlow 1.4 (OpenFlow 1.5.1 §7.3.5).

use super::action::FLOWS;
use super::oxs::{self, Statistics};
use super::{flow, group};
use crate::message::bytes::{ByteReader, Write};
use crate::message::fault::Fault;
use crate::message::flow_update::FlowUpdate;
use crate::message::multipart::{
    MeterFeatures, Reply, Request, items, read_filter, read_padded, write_filter,
};
use crate::message::{table, v14};

pub(crate) fn read_request(kind: u16, mut r: ByteReader<'_>) -> Result<Request, Fault> {
    let request = match kind {
        7 => Request::GroupDesc(read_padded(&mut r)?),
        12 => Request::TableFeatures(table::read_replacing(&mut r)?),
        13 => Request::PortDesc(read_padded(&mut r)?),
        17 => Request::FlowStats(read_filter(&mut r)?),
        _ => return v14::read_request(kind, r),
    };
    r.end()?;
    Ok(request)
}

pub(crate) fn write_request(out: &mut Vec<u8>, request: &Request) {
    match request {
        Request::GroupDesc(number) | Request::PortDesc(number) => {
            out.u32(*number);
            out.u32(0);
        }
        Request::FlowStats(filter) => write_filter(out, filter),
        other => v14::write_request(out, other),
    }
}

pub(crate) fn read_reply(kind: u16, mut r: ByteReader<'_>) -> Result<Reply, Fault> {
    let reply = match kind {
        1 => Reply::Flow(items(&mut r, flow::read)?),
        2 => {
            let Statistics { flows, counters, .. } = oxs::read(&mut r)?;
            Reply::Aggregate { counters, flows: flows.unwrap_or(0) }
        }
        7 => Reply::GroupDesc(items(&mut r, group::read_description)?),
        11 => {
            let features = MeterFeatures::read(&mut r)?;
            // OFPMFF_: none of them.
            r.skip(8)?;
            Reply::MeterFeatures(features)
        }
        16 => Reply::FlowMonitor(items(&mut r, |r| FlowUpdate::read(r, &FLOWS))?),
        17 => Reply::FlowStats(items(&mut r, flow::read_stats)?),
        _ => return v14::read_reply(kind, r),
    };
    r.end()?;
    Ok(reply)
}

pub(crate) fn write_reply(out: &mut Vec<u8>, reply: &Reply) {
    match reply {
        Reply::Flow(flows) => flows.iter().for_each(|one| flow::write(out, one)),
        Reply::Aggregate { counters, flows } => {
            let sum = Statistics { flows: Some(*flows), counters: *counters, ..Statistics::default() };
            oxs::write(out, &sum);
        }
        Reply::GroupDesc(groups) => groups.iter().for_each(|one| group::write_description(out, one)),
        Reply::MeterFeatures(features) => {
            features.write(out);
            out.u64(0);
        }
        Reply::FlowMonitor(updates) => updates.iter().for_each(|one| one.write(out, &FLOWS)),
        Reply::FlowStats(flows) => flows.iter().for_each(|one| flow::write_stats(out, one)),
        other => v14::write_reply(out, other),
    }
}
