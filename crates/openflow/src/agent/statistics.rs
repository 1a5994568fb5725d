//! Answers multipart requests: descriptions and statistics. Replies of any length are sent page by
//! page, so that the lock of the switch is held briefly and memory is used for one page only.

use super::connection::{Connection, Dump, DumpOf};
use super::features;
use super::flow_events;
use super::monitors;
use super::switch_state::SwitchState;
use crate::message::{
    Description, Fault, FlowFormat, FlowStats, GroupDescription, GroupFeatures, GroupStats, MORE, Message,
    MeterDescription, MeterFeatures, MeterStats, NxFlowStats, PacketQueue, Pages, PortDescription, PortStats,
    QueueStats, Reply, Request, TableFeatures, TableStats, has_port, write_items,
};
use fastpath_engine::switching::QUEUES_MAX;
use fastpath_switch::flow::ALL_TABLES;
use fastpath_switch::misses;
use fastpath_switch::{Counters, Flow, FlowFilter, Port, Rank, Refusal, Switch, Version, group, meter, port};
use fastpath_units::{Duration, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Flows examined for one page.
const FLOWS_PER_PAGE: usize = 2048;
/// Flows outside of a filter's match after which it is tried to go to the next within it.
const SKIPPED_AFTER: usize = 16;
/// Bytes after which a page ends.
const PAGE: usize = 48 << 10;
/// Groups, meters or tables on a page.
const ITEMS_PER_PAGE: usize = 256;
/// All queues of a port.
const ALL_QUEUES: u32 = u32::MAX;

/// Answers a request, given its transaction id and length in bytes, at once, or begins a dump.
pub(super) fn answer(
    state: &mut SwitchState,
    connection: &mut Connection,
    (xid, len): (u32, usize),
    flags: u16,
    request: Request,
) -> Result<(), Fault> {
    if let Some(of) = dump_of(state, &request)? {
        connection.dump = Some(Dump { xid, of });
        return Ok(());
    }
    let reply = match request {
        Request::Desc => Reply::Desc(description(state)),
        Request::Aggregate(filter) => {
            let (counters, flows) = aggregate(state, &filter)?;
            Reply::Aggregate { counters, flows }
        }
        Request::NxAggregate(filter) => {
            let (counters, flows) = aggregate(state, &filter)?;
            Reply::NxAggregate { counters, flows }
        }
        Request::Table => Reply::Table(state.control.read(|switch, _| tables(state, switch))),
        Request::PortStats(number) => {
            return port_statistics(state, connection, xid, number);
        }
        Request::Queue { port, queue } => {
            check_queue(state, port, queue)?;
            let all = queue_statistics(state, port, queue).into_iter();
            paged(connection, xid, 5, all.map(|one| Reply::Queue(vec![one])));
            return Ok(());
        }
        Request::QueueDesc { port, queue } => {
            check_queue(state, port, queue)?;
            let queues = queues_of(state, port).into_iter();
            let chosen = queues.filter(|one| queue == ALL_QUEUES || one.number == queue);
            paged(connection, xid, 15, chosen.map(|one| Reply::QueueDesc(vec![one])));
            return Ok(());
        }
        Request::GroupFeatures => Reply::GroupFeatures(group_features(state, connection.codec.version())),
        Request::MeterFeatures => Reply::MeterFeatures(meter_features(state)),
        Request::TableFeatures(wanted) => {
            return table_features(state, connection, (xid, len), flags, wanted);
        }
        Request::PortDesc(only) => return port_descriptions(state, connection, xid, only),
        Request::FlowMonitor(requests) => return monitors::answer(state, connection, xid, requests),
        Request::Experimenter { experimenter, .. } => return Err(Fault::BadExperimenter(experimenter)),
        other => unreachable!("a request of type {} begins a dump", other.number()),
    };
    connection.say(xid, &Message::MultipartReply { flags: 0, reply });
    Ok(())
}

/// Returns the dump that a request begins; `None` if it begins none.
fn dump_of(state: &SwitchState, request: &Request) -> Result<Option<DumpOf>, Fault> {
    let only_group = |id: u32| (id != group::ALL).then_some(id);
    let of = match *request {
        Request::Flow(ref filter) | Request::NxFlow(ref filter) | Request::FlowStats(ref filter) => {
            check_table(state, filter.table_id)?;
            let (filter, next) = (Box::new(filter.clone()), None);
            match request {
                Request::FlowStats(_) => DumpOf::FlowCounters { filter, next },
                Request::NxFlow(_) => DumpOf::Flows { filter, format: FlowFormat::Nxm, next },
                _ => DumpOf::Flows { filter, format: FlowFormat::Standard, next },
            }
        }
        Request::Group(id) => DumpOf::Groups { only: only_group(id), next: 0 },
        Request::GroupDesc(id) => DumpOf::GroupDescriptions { only: only_group(id), next: 0 },
        Request::Meter(id) => DumpOf::Meters { only: known_meter(state, id)?, next: 0 },
        Request::MeterConfig(id) => DumpOf::MeterDescriptions { only: known_meter(state, id)?, next: 0 },
        Request::TableDesc => DumpOf::TableConfigs { next: 0 },
        _ => return Ok(None),
    };
    // The counters are those at the start of the dump.
    state.control.credit();
    Ok(Some(of))
}

fn port_statistics(
    state: &SwitchState,
    connection: &mut Connection,
    xid: u32,
    number: u32,
) -> Result<(), Fault> {
    let stats = port_stats(state, number)?;
    let version = connection.codec.version();
    let known = stats.into_iter().filter(|stats| has_port(version, stats.port));
    paged(connection, xid, 4, known.map(|port| Reply::PortStats(vec![port])));
    Ok(())
}

/// Sends a reply of this type in as many parts as it takes. Each item is a reply with one.
fn paged(connection: &mut Connection, xid: u32, kind: u16, items: impl Iterator<Item = Reply>) {
    let version = connection.codec.version();
    let mut pages = Pages::begin(version, connection.output(), kind, xid);
    for item in items {
        pages.item(connection.output(), |out| write_items(version, out, &item));
    }
    pages.end(connection.output(), 0);
}

fn port_descriptions(
    state: &SwitchState,
    connection: &mut Connection,
    xid: u32,
    only: u32,
) -> Result<(), Fault> {
    let all = ports_of(state, connection.codec.version()).into_iter();
    let ports: Vec<_> = all.filter(|port| only == port::ANY || only == port.number).collect();
    if ports.is_empty() && only != port::ANY {
        return Err(Refusal::RequestBadPort(only).into());
    }
    let ports = ports.into_iter();
    paged(connection, xid, 13, ports.map(|port| Reply::PortDesc(vec![port])));
    Ok(())
}

/// Returns the ports that have a number in this version.
pub(super) fn ports_of(state: &SwitchState, version: Version) -> Vec<PortDescription> {
    let ports: Vec<(u32, Port)> =
        state.control.peek(|switch| switch.ports().map(|(number, port)| (number, *port)).collect());
    let ports = ports.into_iter().filter(|(number, _)| has_port(version, *number));
    ports.map(|(number, port)| state.describe(number, &port)).collect()
}

/// Refuses ports that do not exist.
pub(super) fn check_queue_port(state: &SwitchState, port: u32) -> Result<(), Fault> {
    let is_there = state.control.peek(|switch| switch.port(port).is_some());
    if port == port::ANY || is_there { Ok(()) } else { Err(Fault::QueueBadPort(port)) }
}

/// Refuses ports and queues that do not exist.
fn check_queue(state: &SwitchState, port: u32, queue: u32) -> Result<(), Fault> {
    check_queue_port(state, port)?;
    if queue != ALL_QUEUES && !queues_of(state, port).iter().any(|one| one.number == queue) {
        return Err(Fault::QueueBadQueue(queue));
    }
    Ok(())
}

/// Returns the queues of a port, or of all.
pub(super) fn queues_of(state: &SwitchState, port: u32) -> Vec<PacketQueue> {
    let specs = state.control.queue_specs();
    let specs = specs.iter().filter(|(number, _)| port == port::ANY || **number == port);
    let queues = specs.flat_map(|(port, (spec, _))| {
        // Queue 0 is there in any case.
        let numbers: BTreeSet<u32> = spec.queues.keys().copied().chain([0]).take(QUEUES_MAX).collect();
        numbers.into_iter().map(|number| PacketQueue { port: *port, number })
    });
    queues.collect()
}

fn queue_statistics(state: &SwitchState, port: u32, queue: u32) -> Vec<QueueStats> {
    let (specs, now) = (state.control.queue_specs(), state.control.now());
    let chosen = queues_of(state, port).into_iter();
    let chosen = chosen.filter(|one| queue == ALL_QUEUES || one.number == queue);
    let mut counters = BTreeMap::new();
    let statistics = |one: PacketQueue| {
        let of_port = counters.entry(one.port).or_insert_with(|| state.control.queue_counters(one.port));
        let counted = of_port.get(&one.number).copied().unwrap_or_default();
        let age = specs.get(&one.port).map_or(Duration::ZERO, |(_, since)| now.since(*since));
        let sent = Counters { packets: counted.tx_packets, bytes: counted.tx_bytes };
        QueueStats { port: one.port, queue: one.number, sent, errors: counted.tx_dropped, age }
    };
    chosen.map(statistics).collect()
}

/// Returns the only meter that a request names; `None` if it names all.
fn known_meter(state: &SwitchState, id: u32) -> Result<Option<u32>, Fault> {
    let only = (id != meter::ALL).then_some(id);
    if let Some(id) = only
        && state.control.peek(|switch| switch.meter(id).is_none())
    {
        return Err(Refusal::MeterUnknown(id).into());
    }
    Ok(only)
}

fn check_table(state: &SwitchState, table_id: u8) -> Result<(), Fault> {
    let tables = state.control.peek(|switch| switch.limits().tables);
    if table_id == ALL_TABLES || table_id < tables {
        Ok(())
    } else {
        Err(Refusal::RequestBadTable(table_id).into())
    }
}

fn description(state: &SwitchState) -> Description {
    Description {
        manufacturer: "fastpath".to_owned(),
        hardware: "software".to_owned(),
        software: env!("CARGO_PKG_VERSION").to_owned(),
        serial: "none".to_owned(),
        datapath: format!("{:016x}", state.datapath_id),
    }
}

/// Returns the sum of the counters of the selected flows, and their number.
fn aggregate(state: &SwitchState, filter: &FlowFilter) -> Result<(Counters, u32), Fault> {
    check_table(state, filter.table_id)?;
    let (mut counters, mut flows) = (Counters::default(), 0u32);
    let mut next: Option<(u8, Rank)> = None;
    state.control.credit();
    loop {
        let (seen, last) = state.control.peek(|switch| {
            scan(switch, filter, next.as_ref(), |_, _, flow| {
                counters.packets += flow.counters.packets;
                counters.bytes += flow.counters.bytes;
                flows += 1;
                true
            })
        });
        next = last;
        if seen < FLOWS_PER_PAGE || next.is_none() {
            return Ok((counters, flows));
        }
    }
}

/// Passes the selected ones of the next flows to `show` until it returns false. Returns how many
/// flows were examined, and the last of them.
pub(super) fn scan(
    switch: &Switch,
    filter: &FlowFilter,
    after: Option<&(u8, Rank)>,
    mut show: impl FnMut(u8, &Rank, &Flow) -> bool,
) -> (usize, Option<(u8, Rank)>) {
    let first = if filter.table_id == ALL_TABLES { 0 } else { filter.table_id };
    let (table, start) =
        after.map_or((first, Bound::Unbounded), |(table, rank)| (*table, Bound::Excluded(rank)));
    let in_tables = |table: u8| filter.table_id == ALL_TABLES || table == filter.table_id;
    let (mut seen, mut last, mut outside) = (0, None, 0);
    let mut flows = switch.flows_from(table, start);
    while let Some((table, rank, flow)) = flows.next().filter(|(table, ..)| in_tables(*table)) {
        seen += 1;
        let is_within = rank.matching().is_within(&filter.matching);
        outside = if is_within { 0 } else { outside + 1 };
        let is_shown = is_within && filter.selects(flow) && !flow.is_hidden();
        let goes_on = !is_shown || show(table, rank, flow);
        if seen == FLOWS_PER_PAGE || !goes_on {
            last = Some((table, rank.clone()));
            break;
        }
        if outside == SKIPPED_AFTER {
            outside = 0;
            if let Some(next) = rank.beyond(&filter.matching) {
                flows = switch.flows_from(table, Bound::Included(&next));
            }
        }
    }
    (seen, last)
}

fn tables(state: &SwitchState, switch: &Switch) -> Vec<TableStats> {
    let tables = (0..).zip(switch.tables());
    let entries = switch.limits().flows as u32;
    let mut stats: Vec<TableStats> = tables
        .map(|(table_id, table)| {
            let name = state.table_names.get(&table_id).cloned();
            let (lookups, matched) = table.hits();
            TableStats {
                table_id,
                name: name.unwrap_or_else(|| features::table_name(table_id)),
                entries,
                active: table.len() as u32,
                lookups,
                matched,
            }
        })
        .collect();
    // A packet that matches the hidden flow matches none.
    if let (Some(hidden), Some(first)) = (misses::hidden(switch), stats.first_mut()) {
        first.matched = first.matched.saturating_sub(hidden.counters.packets);
    }
    stats
}

fn port_stats(state: &SwitchState, wanted: u32) -> Result<Vec<PortStats>, Fault> {
    let stats: Vec<PortStats> = state.control.read(|switch, now| {
        let ports = switch.ports().filter(|(number, _)| wanted == port::ANY || *number == wanted);
        let age = now.since(state.started);
        ports.map(|(port, state)| PortStats { port, counters: state.counters, age }).collect()
    });
    if stats.is_empty() && wanted != port::ANY {
        return Err(Refusal::RequestBadPort(wanted).into());
    }
    Ok(stats)
}

fn group_features(state: &SwitchState, version: Version) -> GroupFeatures {
    let most = state.control.peek(|switch| switch.limits().groups) as u32;
    // All four types; weights, liveness, chaining and its checks.
    let actions = [features::action_bits(version); 4];
    GroupFeatures { kinds: 0xf, capabilities: 0xf, most: [most; 4], actions }
}

fn meter_features(state: &SwitchState) -> MeterFeatures {
    let limits = state.control.peek(|switch| *switch.limits());
    // Drop and dscp-remark; kbps, pktps, burst and statistics.
    MeterFeatures {
        most: limits.meters as u32,
        band_kinds: 0b110,
        capabilities: 0b1111,
        bands: limits.bands as u8,
        colors: 0,
    }
}

/// The features of tables are fixed. A request for these or fewer succeeds and changes nothing but
/// names. A request for more is refused as a whole. Tables that are not named stay.
fn table_features(
    state: &mut SwitchState,
    connection: &mut Connection,
    (xid, len): (u32, usize),
    flags: u16,
    wanted: Vec<TableFeatures>,
) -> Result<(), Fault> {
    if !wanted.is_empty() && connection.is_slave() {
        return Err(Fault::IsSlave);
    }
    let Some(parts) = connection.collect((xid, len), flags, wanted)? else { return Ok(()) };
    let limits = state.control.peek(|switch| *switch.limits());
    let version = connection.codec.version();
    for table in &parts {
        if table.table_id >= limits.tables {
            return Err(Fault::TableFeaturesBadTable);
        }
        features::check(&features::of_table(version, &limits, table.table_id), table)?;
    }
    let named = parts.into_iter().filter(|table| !table.name.is_empty());
    state.table_names.extend(named.map(|table| (table.table_id, table.name)));
    connection.dump = Some(Dump { xid, of: DumpOf::Tables { next: 0 } });
    Ok(())
}

/// Sends the next page of a dump, and ends the dump after the last.
pub(super) fn page(state: &SwitchState, connection: &mut Connection) {
    let Some(Dump { xid, of }) = connection.dump.take() else { return };
    let kind = match of {
        DumpOf::Flows { .. } => 1,
        DumpOf::Groups { .. } => 6,
        DumpOf::GroupDescriptions { .. } => 7,
        DumpOf::Meters { .. } => 9,
        DumpOf::MeterDescriptions { .. } => 10,
        DumpOf::Tables { .. } => 12,
        DumpOf::TableConfigs { .. } => 14,
        DumpOf::Monitored { .. } => 16,
        DumpOf::FlowCounters { .. } => 17,
    };
    let version = connection.codec.version();
    let pages = match of {
        DumpOf::Flows { format: FlowFormat::Nxm, .. } => Pages::begin_nx_flow(connection.output(), xid),
        _ => Pages::begin(version, connection.output(), kind, xid),
    };
    let mut page = Page { version, pages, out: connection.output(), items: 0 };
    // The counters are those at the start of the dump.
    let now = state.control.now();
    let rest = state.control.peek(|switch| fill(state, switch, now, of, &mut page));
    page.pages.end(page.out, if rest.is_some() { MORE } else { 0 });
    connection.dump = rest.map(|of| Dump { xid, of });
}

/// A page in progress.
struct Page<'a> {
    version: Version,
    pages: Pages,
    out: &'a mut Vec<u8>,
    items: usize,
}

impl Page<'_> {
    fn item(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.pages.item(self.out, write);
        self.items += 1;
    }
}

/// Adds items to a page. Returns where to continue.
fn fill(state: &SwitchState, switch: &Switch, now: Time, of: DumpOf, page: &mut Page<'_>) -> Option<DumpOf> {
    match of {
        DumpOf::Flows { filter, format, next } => {
            let next = flows(switch, (&filter, next), page, |table_id, rank, flow| {
                let stats = flow_stats(now, table_id, rank, flow);
                Some(match format {
                    FlowFormat::Standard => Reply::Flow(vec![stats]),
                    FlowFormat::Nxm => Reply::NxFlow(vec![with_ages(now, flow, stats)]),
                })
            });
            next.map(|next| DumpOf::Flows { filter, format, next: Some(next) })
        }
        DumpOf::Groups { only, next } => {
            groups(switch, now, only, next, page).map(|next| DumpOf::Groups { only, next })
        }
        DumpOf::Monitored { monitors, next } => {
            let next = flows(switch, (&FlowFilter::all(), next), page, |table_id, rank, flow| {
                flow_events::initial(&monitors, table_id, rank, flow)
            });
            next.map(|next| DumpOf::Monitored { monitors, next: Some(next) })
        }
        DumpOf::FlowCounters { filter, next } => {
            let next = flows(switch, (&filter, next), page, |table_id, rank, flow| {
                Some(Reply::FlowStats(vec![flow_stats(now, table_id, rank, flow)]))
            });
            next.map(|next| DumpOf::FlowCounters { filter, next: Some(next) })
        }
        DumpOf::GroupDescriptions { only, next } => {
            descriptions(switch, only, next, page).map(|next| DumpOf::GroupDescriptions { only, next })
        }
        DumpOf::Meters { only, next } => {
            meters(switch, now, only, next, page).map(|next| DumpOf::Meters { only, next })
        }
        DumpOf::MeterDescriptions { only, next } => {
            configurations(switch, only, next, page).map(|next| DumpOf::MeterDescriptions { only, next })
        }
        DumpOf::Tables { next } => {
            let (limits, version) = (switch.limits(), page.version);
            let end = next.saturating_add(16).min(limits.tables);
            for id in next..end {
                let mut table = features::of_table(version, limits, id);
                if let Some(name) = state.table_names.get(&id) {
                    table.name.clone_from(name);
                }
                page.item(|out| write_items(version, out, &Reply::TableFeatures(vec![table])));
            }
            (end < limits.tables).then_some(DumpOf::Tables { next: end })
        }
        DumpOf::TableConfigs { next } => {
            (next..switch.limits().tables).for_each(|id| {
                let (version, config) = (page.version, state.fullness.config(switch, id));
                page.item(|out| write_items(version, out, &Reply::TableDesc(vec![config])));
            });
            None
        }
    }
}

/// Adds the flows that a filter selects to a page, each in a reply with one. Returns the last that
/// was examined, if there are more.
fn flows(
    switch: &Switch,
    (filter, after): (&FlowFilter, Option<(u8, Rank)>),
    page: &mut Page<'_>,
    reply: impl Fn(u8, &Rank, &Flow) -> Option<Reply>,
) -> Option<(u8, Rank)> {
    let (start, version) = (page.out.len(), page.version);
    let (_, last) = scan(switch, filter, after.as_ref(), |table_id, rank, flow| {
        if let Some(reply) = reply(table_id, rank, flow) {
            page.item(|out| write_items(version, out, &reply));
        }
        page.out.len() - start < PAGE
    });
    last
}

fn descriptions(switch: &Switch, only: Option<u32>, next: u32, page: &mut Page<'_>) -> Option<u32> {
    let version = page.version;
    let groups = switch.groups().filter(|(id, _)| *id >= next && only.is_none_or(|only| only == *id));
    items(groups, page, |id, group| {
        let description = GroupDescription { id, kind: group.kind, buckets: group.buckets.to_vec() };
        let reply = Reply::GroupDesc(vec![description]);
        move |out: &mut Vec<u8>| write_items(version, out, &reply)
    })
}

fn configurations(switch: &Switch, only: Option<u32>, next: u32, page: &mut Page<'_>) -> Option<u32> {
    let meters = switch.meters().filter(|(id, _)| *id >= next && only.is_none_or(|only| only == *id));
    items(meters, page, |id, meter| {
        let bands = meter.bands().map(|(band, _)| *band).collect();
        let description = MeterDescription { id, flags: meter.flags, bands };
        move |out: &mut Vec<u8>| description.write(out)
    })
}

/// Adds numbered items to a page until it is full. Returns the first number that has no room.
fn items<T, W: FnOnce(&mut Vec<u8>)>(
    all: impl Iterator<Item = (u32, T)>,
    page: &mut Page<'_>,
    of: impl Fn(u32, T) -> W,
) -> Option<u32> {
    for (id, item) in all {
        if page.items == ITEMS_PER_PAGE {
            return Some(id);
        }
        page.item(of(id, item));
    }
    None
}

fn groups(switch: &Switch, now: Time, only: Option<u32>, next: u32, page: &mut Page<'_>) -> Option<u32> {
    let references = if only.is_none() { switch.all_group_references() } else { Default::default() };
    let groups = switch.groups().filter(|(id, _)| *id >= next && only.is_none_or(|only| only == *id));
    items(groups, page, |id, group| {
        let used = match only {
            Some(_) => switch.group_references(id),
            None => references.get(&id).copied().unwrap_or_default(),
        };
        let stats = GroupStats {
            id,
            references: used as u32,
            counters: group.counters,
            age: now.since(group.added),
            buckets: group.bucket_counters.clone(),
        };
        move |out: &mut Vec<u8>| stats.write(out)
    })
}

fn meters(switch: &Switch, now: Time, only: Option<u32>, next: u32, page: &mut Page<'_>) -> Option<u32> {
    let references = switch.all_meter_references();
    let meters = switch.meters().filter(|(id, _)| *id >= next && only.is_none_or(|only| only == *id));
    items(meters, page, |id, meter| {
        let stats = MeterStats {
            id,
            references: references.get(&id).copied().unwrap_or_default() as u32,
            counters: meter.counters,
            age: now.since(meter.added),
            bands: meter.bands().map(|(_, counters)| *counters).collect(),
        };
        move |out: &mut Vec<u8>| stats.write(out)
    })
}

fn with_ages(now: Time, flow: &Flow, stats: FlowStats) -> NxFlowStats {
    // The highest number stands for any longer age.
    let seconds = |since| {
        let seconds = now.since(since).as_ns() / 1_000_000_000;
        u16::try_from(seconds).unwrap_or(u16::MAX).min(u16::MAX - 1)
    };
    NxFlowStats {
        idle_age: Some(seconds(flow.last_used)),
        hard_age: Some(seconds(flow.renewed)),
        flow: stats,
    }
}

fn flow_stats(now: Time, table_id: u8, rank: &Rank, flow: &Flow) -> FlowStats {
    FlowStats {
        table_id,
        age: now.since(flow.added),
        priority: rank.priority(),
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        importance: flow.importance,
        idle: Some(now.since(flow.last_used)),
        flags: flow.flags,
        cookie: flow.cookie,
        counters: flow.counters,
        matching: rank.matching().clone(),
        instructions: (*flow.instructions).clone(),
    }
}

#[cfg(test)]
mod tests;
