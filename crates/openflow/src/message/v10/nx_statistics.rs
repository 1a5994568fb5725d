//! Statistics of Nicira: NXST_FLOW, NXST_AGGREGATE and NXST_FLOW_MONITOR, with `nx_match` in the
//! place of `ofp_match`.
//!
//! ```text
//!  type 0xffff │ flags │ NICIRA │ NXST_ │ 4 zeros │ request, or items of the reply
//! ```
//!
//! Read first: `nicira-ext.h` of Open vSwitch.

use super::{action, nx_match, port_number};
use crate::message::bytes::{ByteReader, Write, measured};
use crate::message::fault::Fault;
use crate::message::flow_update::{FlowUpdate, MonitorRequest, OldForm};
use crate::message::multipart::{
    FlowStats, NXST_AGGREGATE, NXST_FLOW, NXST_FLOW_MONITOR, NxFlowStats, Reply, Request, items,
    read_counters, write_counters, write_nicira,
};
use crate::message::nx_bits::NICIRA;
use crate::message::packet::{read_age, write_age};
use fastpath_switch::flow::ANY_GROUP;
use fastpath_switch::{FlowFilter, Instructions};

/// Returns the type of statistics of Nicira (NXST_) and what follows it; `None` if these are
/// statistics of another author.
fn read_kind(mut r: ByteReader<'_>) -> Option<(u32, ByteReader<'_>)> {
    let (Ok(NICIRA), Ok(kind)) = (r.u32(), r.u32()) else { return None };
    Some((kind, r))
}

/// Reads a request for statistics of Nicira; `None` if it is one to another author.
pub(super) fn read_request(r: ByteReader<'_>) -> Result<Option<Request>, Fault> {
    let Some((kind, mut r)) = read_kind(r) else { return Ok(None) };
    if !matches!(kind, NXST_FLOW | NXST_AGGREGATE | NXST_FLOW_MONITOR) {
        return Err(Fault::BadSubtype(kind));
    }
    r.skip(4)?;
    if kind == NXST_FLOW_MONITOR {
        return Ok(Some(Request::FlowMonitor(items(&mut r, read_monitor)?)));
    }
    let filter = read_filter(&mut r)?;
    r.end()?;
    Ok(Some(if kind == NXST_FLOW { Request::NxFlow(filter) } else { Request::NxAggregate(filter) }))
}

/// How updates of monitored flows say a flow.
pub(super) const UPDATES: OldForm = OldForm {
    read: |mut r, match_len| {
        let matching = nx_match::read_matching(&mut r, match_len)?;
        let instructions = Instructions::apply(action::read(r, &matching)?);
        Ok((matching, instructions))
    },
    write: |out, at, update| {
        nx_match::write(out, at, &update.matching);
        action::write(out, &update.instructions.apply);
    },
};

fn read_monitor(r: &mut ByteReader<'_>) -> Result<MonitorRequest, Fault> {
    let (id, flags, out_port, match_len, table_id) =
        (r.u32()?, r.u16()?, port_number::read(r)?, usize::from(r.u16()?), r.u8()?);
    r.skip(5)?;
    let matching = nx_match::read_matching(r, match_len)?;
    let filter = FlowFilter { table_id, out_port, matching, ..FlowFilter::all() };
    Ok(MonitorRequest { id, command: 0, flags, filter })
}

/// Writes monitors after the type and flags of all statistics.
pub(super) fn write_monitors(out: &mut Vec<u8>, requests: &[MonitorRequest]) {
    write_nicira(out, NXST_FLOW_MONITOR);
    for MonitorRequest { id, flags, filter, .. } in requests {
        out.u32(*id);
        out.u16(*flags);
        port_number::write(out, filter.out_port);
        let at = out.len();
        out.u16(0);
        out.u8(filter.table_id);
        out.zeros(5);
        nx_match::write(out, at, &filter.matching);
    }
}

/// Writes a request after the type and flags of all statistics.
pub(super) fn write_request(out: &mut Vec<u8>, kind: u32, filter: &FlowFilter) {
    write_nicira(out, kind);
    port_number::write(out, filter.out_port);
    let at = out.len();
    out.u16(0);
    out.u8(filter.table_id);
    out.zeros(3);
    nx_match::write_restricted(out, at, &filter.matching, (filter.cookie, filter.cookie_mask));
}

fn read_filter(r: &mut ByteReader<'_>) -> Result<FlowFilter, Fault> {
    let (out_port, match_len, table_id) = (port_number::read(r)?, usize::from(r.u16()?), r.u8()?);
    r.skip(3)?;
    let nx_match::NxMatch { matching, cookie, cookie_mask } = nx_match::read(r, match_len)?;
    Ok(FlowFilter { table_id, out_port, out_group: ANY_GROUP, cookie, cookie_mask, matching })
}

/// Reads a reply with statistics of Nicira; `None` if they are of another author.
pub(super) fn read_reply(r: ByteReader<'_>) -> Result<Option<Reply>, Fault> {
    let Some((kind, mut r)) = read_kind(r) else { return Ok(None) };
    r.skip(4)?;
    let reply = match kind {
        NXST_FLOW => Reply::NxFlow(items(&mut r, read_flow)?),
        NXST_FLOW_MONITOR => Reply::FlowMonitor(items(&mut r, |r| FlowUpdate::read_old(r, &UPDATES))?),
        NXST_AGGREGATE => {
            let (counters, flows) = (read_counters(&mut r)?, r.u32()?);
            r.skip(4)?;
            Reply::NxAggregate { counters, flows }
        }
        _ => return Err(Fault::BadSubtype(kind)),
    };
    r.end()?;
    Ok(Some(reply))
}

/// Reads a flow. Its flags are not in the message.
fn read_flow(r: &mut ByteReader<'_>) -> Result<NxFlowStats, Fault> {
    let mut r = measured(r)?;
    let table_id = r.u8()?;
    r.skip(1)?;
    let (age, priority) = (read_age(&mut r)?, r.u16()?);
    let (idle_timeout, hard_timeout, match_len) = (r.u16()?, r.u16()?, usize::from(r.u16()?));
    let (idle_age, hard_age) = (r.u16()?.checked_sub(1), r.u16()?.checked_sub(1));
    let (cookie, counters) = (r.u64()?, read_counters(&mut r)?);
    let matching = nx_match::read_matching(&mut r, match_len)?;
    let instructions = Instructions::apply(action::read(r, &matching)?);
    let flags = 0;
    let flow = FlowStats {
        importance: 0,
        idle: None,
        table_id,
        age,
        priority,
        idle_timeout,
        hard_timeout,
        flags,
        cookie,
        counters,
        matching,
        instructions,
    };
    Ok(NxFlowStats { flow, idle_age, hard_age })
}

/// Writes a flow. Instructions other than apply-actions are left out.
pub(super) fn write_flow(out: &mut Vec<u8>, stats: &NxFlowStats) {
    let (start, flow) = (out.len(), &stats.flow);
    out.u16(0);
    out.u8(flow.table_id);
    out.u8(0);
    write_age(out, flow.age);
    [flow.priority, flow.idle_timeout, flow.hard_timeout].into_iter().for_each(|number| out.u16(number));
    let at = out.len();
    out.u16(0);
    for age in [stats.idle_age, stats.hard_age] {
        out.u16(age.map_or(0, |seconds| seconds.saturating_add(1)));
    }
    out.u64(flow.cookie);
    write_counters(out, &flow.counters);
    nx_match::write(out, at, &flow.matching);
    action::write(out, &flow.instructions.apply);
    out.length(start, start);
}
