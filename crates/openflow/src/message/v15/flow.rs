//! Flows with their counters, and removed flows (OpenFlow 1.5.1 §7.3.5.2, §7.3.5.3, §7.4.3).

use super::action::FLOWS;
use super::oxs::{self, Statistics};
use crate::message::bytes::{ByteReader, Write, measured};
use crate::message::fault::Fault;
use crate::message::multipart::FlowStats;
use crate::message::oxm;
use crate::message::packet::FlowRemoved;
use fastpath_switch::{Instructions, Match, nxm};
use fastpath_units::Duration;

/// OFPXMT_OFB_ACTSET_OUTPUT.
const ACTSET_OUTPUT: u8 = 43;

/// Reads a flow of OFPMP_FLOW_DESC.
pub(crate) fn read(r: &mut ByteReader<'_>) -> Result<FlowStats, Fault> {
    let mut r = measured(r)?;
    r.skip(2)?;
    let table_id = r.u8()?;
    r.skip(1)?;
    let (priority, idle_timeout, hard_timeout) = (r.u16()?, r.u16()?, r.u16()?);
    let (flags, importance, cookie) = (r.u16()?, r.u16()?, r.u64()?);
    let (matching, statistics) = (oxm::read_match(&mut r)?, oxs::read(&mut r)?);
    Ok(FlowStats {
        table_id,
        age: statistics.age.unwrap_or(Duration::ZERO),
        priority,
        idle_timeout,
        hard_timeout,
        importance,
        idle: statistics.idle,
        flags,
        cookie,
        counters: statistics.counters,
        matching,
        instructions: (FLOWS.read)(r)?,
    })
}

pub(crate) fn write(out: &mut Vec<u8>, flow: &FlowStats) {
    let start = out.len();
    out.u32(0);
    out.u8(flow.table_id);
    out.u8(0);
    [flow.priority, flow.idle_timeout, flow.hard_timeout, flow.flags, flow.importance]
        .into_iter()
        .for_each(|number| out.u16(number));
    out.u64(flow.cookie);
    write_match(out, &flow.matching);
    oxs::write(out, &statistics(flow));
    (FLOWS.write)(out, &flow.instructions);
    out.length(start, start);
}

/// Writes a match. The output of the action set has a number of OpenFlow 1.5 itself, which earlier
/// versions have from the ONF as an experimenter.
fn write_match(out: &mut Vec<u8>, matching: &Match) {
    let start = out.len();
    out.u16(1);
    out.u16(0);
    for one in matching.fields() {
        let own = nxm::by_number(nxm::OXM_OF, ACTSET_OUTPUT).filter(|named| named.bits.field == one.field);
        match own {
            Some(named) => oxm::write_named(out, named, one.value, one.mask),
            None => oxm::write_list(out, std::iter::once(one)),
        }
    }
    out.length(start, start + 2);
    out.pad(start);
}

fn statistics(flow: &FlowStats) -> Statistics {
    Statistics { age: Some(flow.age), idle: flow.idle, flows: None, counters: flow.counters }
}

/// Reads a flow of OFPMP_FLOW_STATS.
pub(crate) fn read_stats(r: &mut ByteReader<'_>) -> Result<FlowStats, Fault> {
    let mut r = measured(r)?;
    r.skip(2)?;
    let table_id = r.u8()?;
    r.skip(1)?;
    let priority = r.u16()?;
    let (matching, statistics) = (oxm::read_match(&mut r)?, oxs::read(&mut r)?);
    r.end()?;
    Ok(FlowStats {
        table_id,
        age: statistics.age.unwrap_or(Duration::ZERO),
        priority,
        idle_timeout: 0,
        hard_timeout: 0,
        importance: 0,
        idle: statistics.idle,
        flags: 0,
        cookie: 0,
        counters: statistics.counters,
        matching,
        instructions: Instructions::default(),
    })
}

/// Writes a flow of OFPMP_FLOW_STATS, as the answer to a request (OFPFSR_STATS_REQUEST).
pub(crate) fn write_stats(out: &mut Vec<u8>, flow: &FlowStats) {
    let start = out.len();
    out.u32(0);
    out.u8(flow.table_id);
    out.u8(0);
    out.u16(flow.priority);
    write_match(out, &flow.matching);
    oxs::write(out, &statistics(flow));
    out.length(start, start);
}

pub(crate) fn read_removed(mut r: ByteReader<'_>) -> Result<FlowRemoved, Fault> {
    let (table_id, reason, priority) = (r.u8()?, r.u8()?, r.u16()?);
    let (idle_timeout, hard_timeout, cookie) = (r.u16()?, r.u16()?, r.u64()?);
    let (matching, statistics) = (oxm::read_match(&mut r)?, oxs::read(&mut r)?);
    r.end()?;
    Ok(FlowRemoved {
        cookie,
        priority,
        reason,
        table_id,
        age: statistics.age.unwrap_or(Duration::ZERO),
        idle_timeout,
        hard_timeout,
        packets: statistics.counters.packets,
        bytes: statistics.counters.bytes,
        matching,
    })
}

pub(crate) fn write_removed(out: &mut Vec<u8>, flow: &FlowRemoved) {
    out.u8(flow.table_id);
    out.u8(flow.reason);
    [flow.priority, flow.idle_timeout, flow.hard_timeout].into_iter().for_each(|number| out.u16(number));
    out.u64(flow.cookie);
    write_match(out, &flow.matching);
    let counters = fastpath_switch::Counters { packets: flow.packets, bytes: flow.bytes };
    oxs::write(out, &Statistics { age: Some(flow.age), counters, ..Statistics::default() });
}
