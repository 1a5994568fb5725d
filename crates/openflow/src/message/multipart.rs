//! Multipart requests and replies: descriptions and statistics (§7.3.5).
//!
//! A reply that does not fit one message is sent as several messages: see `pages.rs`.

use super::action::{FLOWS, UPDATES, read_buckets, write_buckets};
use super::bytes::{ByteReader, Write, measured};
use super::fault::Fault;
use super::flow_form::FlowForm;
use super::flow_update::{self, FlowUpdate, MonitorRequest};
use super::modify::{group_kind, read_bands, write_band};
use super::nx_bits::NICIRA;
use super::oxm;
use super::packet::{PortDescription, read_age, read_port, write_age, write_port};
use super::table::{self, TableFeatures};
use super::table_config::TableConfig;
use fastpath_switch::{
    Band, Bucket, Counters, FlowFilter, GroupKind, Instructions, Match, PortCounters, Refusal, group, port,
};
use fastpath_units::Duration;

/// OFPMPF_REPLY_MORE and OFPMPF_REQ_MORE.
pub const MORE: u16 = 1;

/// OFPMP_EXPERIMENTER; in OpenFlow 1.0 OFPST_VENDOR.
pub(crate) const VENDOR: u16 = 0xffff;
/// OFPMP_FLOW_MONITOR.
pub(crate) const FLOW_MONITOR: u16 = 16;
/// NXST_FLOW: flows as Nicira describes them in OpenFlow 1.0.
pub(crate) const NXST_FLOW: u32 = 0;
/// NXST_AGGREGATE.
pub(crate) const NXST_AGGREGATE: u32 = 1;
/// NXST_FLOW_MONITOR.
pub(crate) const NXST_FLOW_MONITOR: u32 = 2;

/// A multipart request.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the specification names them")]
pub enum Request {
    Desc,
    Flow(FlowFilter),
    Aggregate(FlowFilter),
    Table,
    PortStats(u32),
    Queue {
        port: u32,
        queue: u32,
    },
    Group(u32),
    /// A group, or all. Before OpenFlow 1.5 always all.
    GroupDesc(u32),
    GroupFeatures,
    Meter(u32),
    MeterConfig(u32),
    MeterFeatures,
    TableFeatures(Vec<TableFeatures>),
    /// A port, or all. Before OpenFlow 1.5 always all.
    PortDesc(u32),
    /// OpenFlow 1.4.
    TableDesc,
    /// OpenFlow 1.4.
    QueueDesc {
        port: u32,
        queue: u32,
    },
    /// In OpenFlow 1.0 a message of Nicira, in 1.3 one of the ONF.
    FlowMonitor(Vec<MonitorRequest>),
    /// The counters of flows alone. OpenFlow 1.5.
    FlowStats(FlowFilter),
    /// NXST_FLOW. OpenFlow 1.0 only.
    NxFlow(FlowFilter),
    /// NXST_AGGREGATE. OpenFlow 1.0 only.
    NxAggregate(FlowFilter),
    Experimenter {
        experimenter: u32,
        kind: u32,
        data: Vec<u8>,
    },
}

/// A multipart reply.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the specification names them")]
pub enum Reply {
    Desc(Description),
    Flow(Vec<FlowStats>),
    Aggregate {
        counters: Counters,
        flows: u32,
    },
    Table(Vec<TableStats>),
    PortStats(Vec<PortStats>),
    Queue(Vec<QueueStats>),
    Group(Vec<GroupStats>),
    GroupDesc(Vec<GroupDescription>),
    GroupFeatures(GroupFeatures),
    Meter(Vec<MeterStats>),
    MeterConfig(Vec<MeterDescription>),
    MeterFeatures(MeterFeatures),
    TableFeatures(Vec<TableFeatures>),
    PortDesc(Vec<PortDescription>),
    /// OpenFlow 1.4.
    TableDesc(Vec<TableConfig>),
    /// OpenFlow 1.4.
    QueueDesc(Vec<PacketQueue>),
    /// In OpenFlow 1.0 a message of Nicira, in 1.3 one of the ONF.
    FlowMonitor(Vec<FlowUpdate>),
    /// Flows with their counters, without timeouts, cookies and instructions. OpenFlow 1.5.
    FlowStats(Vec<FlowStats>),
    /// NXST_FLOW. OpenFlow 1.0 only.
    NxFlow(Vec<NxFlowStats>),
    /// NXST_AGGREGATE. OpenFlow 1.0 only.
    NxAggregate {
        counters: Counters,
        flows: u32,
    },
    Experimenter {
        experimenter: u32,
        kind: u32,
        data: Vec<u8>,
    },
}

/// The description of the switch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "the specification names them")]
pub struct Description {
    pub manufacturer: String,
    pub hardware: String,
    pub software: String,
    pub serial: String,
    pub datapath: String,
}

/// A flow and its counters.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the specification names them")]
pub struct FlowStats {
    pub table_id: u8,
    pub age: Duration,
    pub priority: u16,
    pub idle_timeout: u16,
    pub hard_timeout: u16,
    /// 0 before OpenFlow 1.4.
    pub importance: u16,
    /// The time since it last matched a packet. OpenFlow 1.5 only.
    pub idle: Option<Duration>,
    pub flags: u16,
    pub cookie: u64,
    pub counters: Counters,
    pub matching: Match,
    pub instructions: Instructions,
}

/// A flow, its counters and ages in seconds, as Nicira describes it. An age is `None` if it is not
/// known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NxFlowStats {
    /// What OpenFlow says of it.
    pub flow: FlowStats,
    /// The time since it last matched a packet, at most 65534.
    pub idle_age: Option<u16>,
    /// The time since it was added or last learned, at most 65534.
    pub hard_age: Option<u16>,
}

/// A table's counters.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the specification names them")]
pub struct TableStats {
    pub table_id: u8,
    /// OpenFlow 1.0 only.
    pub name: String,
    /// The most flows that it holds. OpenFlow 1.0 only.
    pub entries: u32,
    pub active: u32,
    pub lookups: u64,
    pub matched: u64,
}

/// A port's counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the specification names them")]
pub struct PortStats {
    pub port: u32,
    pub counters: PortCounters,
    pub age: Duration,
}

/// A queue of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the specification names them")]
pub struct PacketQueue {
    pub port: u32,
    pub number: u32,
}

/// A queue's counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the specification names them")]
pub struct QueueStats {
    pub port: u32,
    pub queue: u32,
    pub sent: Counters,
    pub errors: u64,
    pub age: Duration,
}

/// A group's counters.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the specification names them")]
pub struct GroupStats {
    pub id: u32,
    pub references: u32,
    pub counters: Counters,
    pub age: Duration,
    pub buckets: Vec<Counters>,
}

/// The description of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the specification names them")]
pub struct GroupDescription {
    pub id: u32,
    pub kind: GroupKind,
    pub buckets: Vec<Bucket>,
}

/// The features of groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the specification names them")]
pub struct GroupFeatures {
    pub kinds: u32,
    pub capabilities: u32,
    pub most: [u32; 4],
    pub actions: [u32; 4],
}

/// A meter's counters.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the specification names them")]
pub struct MeterStats {
    pub id: u32,
    pub references: u32,
    pub counters: Counters,
    pub age: Duration,
    pub bands: Vec<Counters>,
}

/// The configuration of a meter.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the specification names them")]
pub struct MeterDescription {
    pub id: u32,
    pub flags: u16,
    pub bands: Vec<Band>,
}

/// The features of meters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the specification names them")]
pub struct MeterFeatures {
    pub most: u32,
    pub band_kinds: u32,
    pub capabilities: u32,
    pub bands: u8,
    pub colors: u8,
}

impl Request {
    /// Returns the type (OFPMP_).
    pub fn number(&self) -> u16 {
        match self {
            Request::Desc => 0,
            Request::Flow(_) => 1,
            Request::Aggregate(_) => 2,
            Request::Table => 3,
            Request::PortStats(_) => 4,
            Request::Queue { .. } => 5,
            Request::Group(_) => 6,
            Request::GroupDesc(_) => 7,
            Request::GroupFeatures => 8,
            Request::Meter(_) => 9,
            Request::MeterConfig(_) => 10,
            Request::MeterFeatures => 11,
            Request::TableFeatures(_) => 12,
            Request::PortDesc(_) => 13,
            Request::TableDesc => 14,
            Request::QueueDesc { .. } => 15,
            Request::FlowMonitor(_) => FLOW_MONITOR,
            Request::FlowStats(_) => 17,
            Request::NxFlow(_) | Request::NxAggregate(_) | Request::Experimenter { .. } => VENDOR,
        }
    }

    pub(crate) fn read(kind: u16, mut r: ByteReader<'_>) -> Result<Request, Fault> {
        let request = match kind {
            0 => Request::Desc,
            1 => Request::Flow(read_filter(&mut r)?),
            2 => Request::Aggregate(read_filter(&mut r)?),
            3 => Request::Table,
            4 => Request::PortStats(read_padded(&mut r)?),
            5 => Request::Queue { port: r.u32()?, queue: r.u32()? },
            6 => Request::Group(read_padded(&mut r)?),
            7 => Request::GroupDesc(group::ALL),
            8 => Request::GroupFeatures,
            9 => Request::Meter(read_padded(&mut r)?),
            10 => Request::MeterConfig(read_padded(&mut r)?),
            11 => Request::MeterFeatures,
            12 => Request::TableFeatures(table::read(&mut r)?),
            13 => Request::PortDesc(port::ANY),
            VENDOR if flow_update::is_of_onf(&mut r) => {
                Request::FlowMonitor(items(&mut r, MonitorRequest::read_13)?)
            }
            VENDOR => {
                Request::Experimenter { experimenter: r.u32()?, kind: r.u32()?, data: r.rest().to_vec() }
            }
            _ => return Err(Fault::BadMultipart(kind)),
        };
        r.end()?;
        Ok(request)
    }

    /// Writes the body.
    ///
    /// # Panics
    /// If OpenFlow 1.3 has no such request.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Request::NxFlow(_)
            | Request::NxAggregate(_)
            | Request::TableDesc
            | Request::QueueDesc { .. }
            | Request::FlowStats(_) => panic!("OpenFlow 1.3 has no such request: {self:?}"),
            Request::FlowMonitor(requests) => requests.iter().for_each(|one| one.write_13(out)),
            Request::Flow(filter) | Request::Aggregate(filter) => write_filter(out, filter),
            Request::PortStats(number)
            | Request::Group(number)
            | Request::Meter(number)
            | Request::MeterConfig(number) => {
                out.u32(*number);
                out.u32(0);
            }
            Request::Queue { port, queue } => {
                out.u32(*port);
                out.u32(*queue);
            }
            Request::TableFeatures(tables) => tables.iter().for_each(|table| table.write(out)),
            Request::Experimenter { experimenter, kind, data } => {
                out.u32(*experimenter);
                out.u32(*kind);
                out.extend_from_slice(data);
            }
            Request::Desc
            | Request::Table
            | Request::GroupDesc(_)
            | Request::GroupFeatures
            | Request::MeterFeatures
            | Request::PortDesc(_) => {}
        }
    }
}

/// A number and four bytes of padding.
pub(crate) fn read_padded(r: &mut ByteReader<'_>) -> Result<u32, Fault> {
    let number = r.u32()?;
    r.skip(4)?;
    Ok(number)
}

pub(crate) fn read_filter(r: &mut ByteReader<'_>) -> Result<FlowFilter, Fault> {
    let table_id = r.u8()?;
    r.skip(3)?;
    let (out_port, out_group) = (r.u32()?, r.u32()?);
    r.skip(4)?;
    let (cookie, cookie_mask) = (r.u64()?, r.u64()?);
    Ok(FlowFilter { table_id, out_port, out_group, cookie, cookie_mask, matching: oxm::read_match(r)? })
}

pub(crate) fn write_filter(out: &mut Vec<u8>, filter: &FlowFilter) {
    out.u8(filter.table_id);
    out.zeros(3);
    out.u32(filter.out_port);
    out.u32(filter.out_group);
    out.u32(0);
    out.u64(filter.cookie);
    out.u64(filter.cookie_mask);
    oxm::write_match(out, &filter.matching);
}

impl Reply {
    /// Returns the type (OFPMP_).
    pub fn number(&self) -> u16 {
        match self {
            Reply::Desc(_) => 0,
            Reply::Flow(_) => 1,
            Reply::Aggregate { .. } => 2,
            Reply::Table(_) => 3,
            Reply::PortStats(_) => 4,
            Reply::Queue(_) => 5,
            Reply::Group(_) => 6,
            Reply::GroupDesc(_) => 7,
            Reply::GroupFeatures(_) => 8,
            Reply::Meter(_) => 9,
            Reply::MeterConfig(_) => 10,
            Reply::MeterFeatures(_) => 11,
            Reply::TableFeatures(_) => 12,
            Reply::PortDesc(_) => 13,
            Reply::TableDesc(_) => 14,
            Reply::QueueDesc(_) => 15,
            Reply::FlowMonitor(_) => FLOW_MONITOR,
            Reply::FlowStats(_) => 17,
            Reply::NxFlow(_) | Reply::NxAggregate { .. } | Reply::Experimenter { .. } => VENDOR,
        }
    }

    pub(crate) fn read(kind: u16, mut r: ByteReader<'_>) -> Result<Reply, Fault> {
        let reply = match kind {
            0 => Reply::Desc(Description {
                manufacturer: r.text(256)?,
                hardware: r.text(256)?,
                software: r.text(256)?,
                serial: r.text(32)?,
                datapath: r.text(256)?,
            }),
            1 => Reply::Flow(items(&mut r, |r| FlowStats::read(r, &FLOWS))?),
            2 => {
                let counters = read_counters(&mut r)?;
                Reply::Aggregate { counters, flows: read_padded(&mut r)? }
            }
            3 => Reply::Table(items(&mut r, TableStats::read)?),
            4 => Reply::PortStats(items(&mut r, PortStats::read)?),
            5 => Reply::Queue(items(&mut r, QueueStats::read)?),
            6 => Reply::Group(items(&mut r, GroupStats::read)?),
            7 => Reply::GroupDesc(items(&mut r, GroupDescription::read)?),
            8 => Reply::GroupFeatures(GroupFeatures {
                kinds: r.u32()?,
                capabilities: r.u32()?,
                most: read_four(&mut r)?,
                actions: read_four(&mut r)?,
            }),
            9 => Reply::Meter(items(&mut r, MeterStats::read)?),
            10 => Reply::MeterConfig(items(&mut r, MeterDescription::read)?),
            11 => Reply::MeterFeatures(MeterFeatures::read(&mut r)?),
            12 => Reply::TableFeatures(table::read(&mut r)?),
            13 => Reply::PortDesc(items(&mut r, read_port)?),
            VENDOR if flow_update::is_of_onf(&mut r) => {
                Reply::FlowMonitor(items(&mut r, |r| FlowUpdate::read_old(r, &UPDATES))?)
            }
            VENDOR => Reply::Experimenter { experimenter: r.u32()?, kind: r.u32()?, data: r.rest().to_vec() },
            _ => return Err(Fault::BadMultipart(kind)),
        };
        r.end()?;
        Ok(reply)
    }

    /// Returns the type of a reply of Nicira (NXST_).
    pub(crate) fn nicira_subtype(&self) -> Option<u32> {
        match self {
            Reply::NxFlow(_) => Some(NXST_FLOW),
            Reply::NxAggregate { .. } => Some(NXST_AGGREGATE),
            Reply::FlowMonitor(_) => Some(NXST_FLOW_MONITOR),
            _ => None,
        }
    }

    /// Writes the body. The caller ensures that it fits (see [`super::Pages`]).
    ///
    /// # Panics
    /// If OpenFlow 1.3 has no such reply.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Reply::NxFlow(_)
            | Reply::NxAggregate { .. }
            | Reply::TableDesc(_)
            | Reply::QueueDesc(_)
            | Reply::FlowStats(_) => panic!("OpenFlow 1.3 has no replies of type {}", self.number()),
            Reply::Desc(desc) => {
                let texts = [&desc.manufacturer, &desc.hardware, &desc.software];
                texts.into_iter().for_each(|text| out.text(text, 256));
                out.text(&desc.serial, 32);
                out.text(&desc.datapath, 256);
            }
            Reply::FlowMonitor(updates) => updates.iter().for_each(|one| one.write_old(out, &UPDATES)),
            Reply::Flow(flows) => flows.iter().for_each(|flow| flow.write(out, &FLOWS)),
            Reply::Aggregate { counters, flows } => {
                write_counters(out, counters);
                out.u32(*flows);
                out.u32(0);
            }
            Reply::Table(tables) => tables.iter().for_each(|table| table.write(out)),
            Reply::PortStats(ports) => ports.iter().for_each(|one| one.write(out)),
            Reply::Queue(queues) => queues.iter().for_each(|queue| queue.write(out)),
            Reply::Group(groups) => groups.iter().for_each(|group| group.write(out)),
            Reply::GroupDesc(groups) => groups.iter().for_each(|group| group.write(out)),
            Reply::GroupFeatures(features) => {
                out.u32(features.kinds);
                out.u32(features.capabilities);
                features.most.iter().chain(&features.actions).for_each(|number| out.u32(*number));
            }
            Reply::Meter(meters) => meters.iter().for_each(|meter| meter.write(out)),
            Reply::MeterConfig(meters) => meters.iter().for_each(|meter| meter.write(out)),
            Reply::MeterFeatures(features) => {
                features.write(out);
            }
            Reply::TableFeatures(tables) => tables.iter().for_each(|table| table.write(out)),
            Reply::PortDesc(ports) => ports.iter().for_each(|one| write_port(out, one)),
            Reply::Experimenter { experimenter, kind, data } => {
                out.u32(*experimenter);
                out.u32(*kind);
                out.extend_from_slice(data);
            }
        }
    }
}

/// Writes what precedes statistics of Nicira in OpenFlow 1.0.
pub(crate) fn write_nicira(out: &mut Vec<u8>, subtype: u32) {
    out.u32(NICIRA);
    out.u32(subtype);
    out.u32(0);
}

/// Reads items until the end.
pub(crate) fn items<T>(
    r: &mut ByteReader<'_>,
    mut read: impl FnMut(&mut ByteReader<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut items = Vec::new();
    while !r.is_empty() {
        items.push(read(r)?);
    }
    Ok(items)
}

pub(crate) fn read_counters(r: &mut ByteReader<'_>) -> Result<Counters, Fault> {
    Ok(Counters { packets: r.u64()?, bytes: r.u64()? })
}

pub(crate) fn write_counters(out: &mut Vec<u8>, counters: &Counters) {
    out.u64(counters.packets);
    out.u64(counters.bytes);
}

fn read_four(r: &mut ByteReader<'_>) -> Result<[u32; 4], Fault> {
    Ok([r.u32()?, r.u32()?, r.u32()?, r.u32()?])
}

impl FlowStats {
    pub(crate) fn read(r: &mut ByteReader<'_>, form: &FlowForm) -> Result<FlowStats, Fault> {
        let mut r = measured(r)?;
        let table_id = r.u8()?;
        r.skip(1)?;
        let (age, priority) = (read_age(&mut r)?, r.u16()?);
        let (idle_timeout, hard_timeout, flags) = (r.u16()?, r.u16()?, r.u16()?);
        let importance = Some(r.u16()?).filter(|_| form.has_importance).unwrap_or(0);
        r.skip(2)?;
        let (cookie, counters) = (r.u64()?, read_counters(&mut r)?);
        let matching = oxm::read_match(&mut r)?;
        let instructions = (form.read)(r)?;
        Ok(FlowStats {
            table_id,
            age,
            priority,
            idle_timeout,
            hard_timeout,
            importance,
            idle: None,
            flags,
            cookie,
            counters,
            matching,
            instructions,
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>, form: &FlowForm) {
        let start = out.len();
        out.u16(0);
        out.u8(self.table_id);
        out.u8(0);
        write_age(out, self.age);
        [self.priority, self.idle_timeout, self.hard_timeout, self.flags]
            .into_iter()
            .for_each(|number| out.u16(number));
        out.u16(if form.has_importance { self.importance } else { 0 });
        out.u16(0);
        out.u64(self.cookie);
        write_counters(out, &self.counters);
        oxm::write_match(out, &self.matching);
        (form.write)(out, &self.instructions);
        out.length(start, start);
    }
}

impl TableStats {
    fn read(r: &mut ByteReader<'_>) -> Result<TableStats, Fault> {
        let table_id = r.u8()?;
        r.skip(3)?;
        let active = r.u32()?;
        Ok(TableStats {
            table_id,
            name: String::new(),
            entries: 0,
            active,
            lookups: r.u64()?,
            matched: r.u64()?,
        })
    }

    /// Writes the item.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.u8(self.table_id);
        out.zeros(3);
        out.u32(self.active);
        out.u64(self.lookups);
        out.u64(self.matched);
    }
}

impl PortStats {
    fn read(r: &mut ByteReader<'_>) -> Result<PortStats, Fault> {
        let port = read_padded(r)?;
        let counters = PortCounters {
            rx_packets: r.u64()?,
            tx_packets: r.u64()?,
            rx_bytes: r.u64()?,
            tx_bytes: r.u64()?,
            rx_dropped: r.u64()?,
            tx_dropped: r.u64()?,
        };
        r.skip(6 * 8)?;
        Ok(PortStats { port, counters, age: read_age(r)? })
    }

    /// Writes the item. The error counters are 0.
    pub fn write(&self, out: &mut Vec<u8>) {
        let c = &self.counters;
        out.u32(self.port);
        out.u32(0);
        let counts = [c.rx_packets, c.tx_packets, c.rx_bytes, c.tx_bytes, c.rx_dropped, c.tx_dropped];
        counts.into_iter().for_each(|count| out.u64(count));
        out.zeros(6 * 8);
        write_age(out, self.age);
    }
}

impl PacketQueue {
    /// Reads items until the end.
    pub(crate) fn read_all(r: &mut ByteReader<'_>) -> Result<Vec<PacketQueue>, Fault> {
        items(r, PacketQueue::read)
    }

    /// Reads an item; its properties are skipped.
    fn read(r: &mut ByteReader<'_>) -> Result<PacketQueue, Fault> {
        let (number, port, len) = (r.u32()?, r.u32()?, r.u16()?);
        r.skip(6)?;
        r.skip(usize::from(len).checked_sub(16).ok_or(Fault::BadLen)?)?;
        Ok(PacketQueue { port, number })
    }

    /// Writes the item.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.u32(self.number);
        out.u32(self.port);
        out.u16(16);
        out.zeros(6);
    }
}

impl QueueStats {
    pub(crate) fn read(r: &mut ByteReader<'_>) -> Result<QueueStats, Fault> {
        let (port, queue, bytes, packets) = (r.u32()?, r.u32()?, r.u64()?, r.u64()?);
        Ok(QueueStats { port, queue, sent: Counters { packets, bytes }, errors: r.u64()?, age: read_age(r)? })
    }

    /// Writes the item.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.u32(self.port);
        out.u32(self.queue);
        [self.sent.bytes, self.sent.packets, self.errors].into_iter().for_each(|count| out.u64(count));
        write_age(out, self.age);
    }
}

impl GroupStats {
    fn read(r: &mut ByteReader<'_>) -> Result<GroupStats, Fault> {
        let mut r = measured(r)?;
        r.skip(2)?;
        let (id, references) = (r.u32()?, r.u32()?);
        r.skip(4)?;
        let (counters, age) = (read_counters(&mut r)?, read_age(&mut r)?);
        Ok(GroupStats { id, references, counters, age, buckets: items(&mut r, read_counters)? })
    }

    /// Writes the item.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.u32(0);
        out.u32(self.id);
        out.u32(self.references);
        out.u32(0);
        write_counters(out, &self.counters);
        write_age(out, self.age);
        self.buckets.iter().for_each(|counters| write_counters(out, counters));
        out.length(start, start);
    }
}

impl GroupDescription {
    fn read(r: &mut ByteReader<'_>) -> Result<GroupDescription, Fault> {
        let mut r = measured(r)?;
        let kind = r.u8()?;
        r.skip(1)?;
        let kind = group_kind(kind).ok_or(Refusal::GroupBadType(kind))?;
        Ok(GroupDescription { id: r.u32()?, kind, buckets: read_buckets(r)? })
    }

    /// Writes the item.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.u16(0);
        out.u8(self.kind as u8);
        out.u8(0);
        out.u32(self.id);
        write_buckets(out, &self.buckets);
        out.length(start, start);
    }
}

impl MeterFeatures {
    pub(crate) fn read(r: &mut ByteReader<'_>) -> Result<MeterFeatures, Fault> {
        let (most, band_kinds, capabilities) = (r.u32()?, r.u32()?, r.u32()?);
        let (bands, colors) = (r.u8()?, r.u8()?);
        r.skip(2)?;
        Ok(MeterFeatures { most, band_kinds, capabilities, bands, colors })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        [self.most, self.band_kinds, self.capabilities].into_iter().for_each(|number| out.u32(number));
        out.u8(self.bands);
        out.u8(self.colors);
        out.u16(0);
    }
}

impl MeterStats {
    fn read(r: &mut ByteReader<'_>) -> Result<MeterStats, Fault> {
        let (id, len) = (r.u32()?, usize::from(r.u16()?));
        let mut r = r.part(len.checked_sub(6).ok_or(Fault::BadLen)?, Fault::BadLen)?;
        r.skip(6)?;
        let (references, counters, age) = (r.u32()?, read_counters(&mut r)?, read_age(&mut r)?);
        Ok(MeterStats { id, references, counters, age, bands: items(&mut r, read_counters)? })
    }

    /// Writes the item.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.u32(self.id);
        out.u16(0);
        out.zeros(6);
        out.u32(self.references);
        write_counters(out, &self.counters);
        write_age(out, self.age);
        self.bands.iter().for_each(|counters| write_counters(out, counters));
        out.length(start, start + 4);
    }
}

impl MeterDescription {
    fn read(r: &mut ByteReader<'_>) -> Result<MeterDescription, Fault> {
        let mut r = measured(r)?;
        let (flags, id) = (r.u16()?, r.u32()?);
        Ok(MeterDescription { id, flags, bands: read_bands(r)? })
    }

    /// Writes the item.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.u16(0);
        out.u16(self.flags);
        out.u32(self.id);
        self.bands.iter().for_each(|band| write_band(out, band));
        out.length(start, start);
    }
}
