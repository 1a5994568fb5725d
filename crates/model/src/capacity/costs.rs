//! What the engine costs on a machine: time of a worker by packet, lateness, memory, start, TCP.

use super::{CapacityError, Demand};
use crate::Estimate;
use crate::model::Model;
use crate::scaling::ScalingCosts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The columns of the model of a packet beside those of queues (`q_KIND`), in the order of
/// [`PacketShape`].
pub const COLUMNS: [&str; 6] = ["bytes", "pipes", "routers", "spread", "calls", "log"];

/// What a packet passes on its way from host to host: counts per delivered packet.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PacketShape {
    /// The kind of the ports at both ends: `memory`, `tap`, `AF_PACKET`, `kernel`.
    pub port: String,
    /// Length of the frame, without FCS.
    pub bytes: f64,
    /// Pipes on the way.
    pub pipes: f64,
    /// Routers and switches on the way.
    pub routers: f64,
    /// `pipes` times the binary logarithm of the number of links that carry load: how far apart the
    /// memory lies that a packet touches.
    pub spread: f64,
    /// Calls of ports per packet that a busy worker makes: the inverse of frames per call.
    pub calls: f64,
    /// Entries of the per-packet log.
    pub log: f64,
    /// Pipes on the way by queue discipline, without drop-tail.
    pub queues: BTreeMap<String, f64>,
    /// Share of packets that belong to bulk connections: kernels hand those over many at a time.
    #[serde(default)]
    pub bulk: f64,
}

impl PacketShape {
    /// Returns the value of a column of the model; `None` for a name that is not a column.
    pub fn column(&self, name: &str) -> Option<f64> {
        if let Some(kind) = name.strip_prefix("q_") {
            // Terms are words of letters, digits and `_`.
            let is_it = |name: &str| name.len() == kind.len() && name.replace('-', "_") == kind;
            return Some(self.queues.iter().find(|(name, _)| is_it(name)).map_or(0.0, |(_, count)| *count));
        }
        let values = [self.bytes, self.pipes, self.routers, self.spread, self.calls, self.log];
        COLUMNS.iter().position(|column| *column == name).map(|place| values[place])
    }
}

/// What the engine costs on a machine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct EngineCosts {
    /// Nanoseconds of a worker for a packet between ports in memory, over the columns of
    /// [`PacketShape`].
    pub packet: Model,
    /// Disciplines that were measured, besides drop-tail.
    pub queues: Vec<String>,
    /// What running side by side costs.
    pub scaling: ScalingCosts,
    /// How late frames are.
    pub lateness: LatenessCosts,
    /// What takes memory.
    pub memory: MemoryCosts,
    /// What takes time at the start.
    pub start: StartCosts,
    /// What labs cost; none where they are not permitted.
    #[serde(default)]
    pub lab: Option<LabCosts>,
}

impl EngineCosts {
    /// Returns the time of a worker for a packet, in nanoseconds, with the interval of one further
    /// measurement.
    ///
    /// # Errors
    /// [`CapacityError`] for a kind of port or a column that was not measured.
    pub fn packet_ns(&self, shape: &PacketShape) -> Result<Estimate, CapacityError> {
        let in_memory = self.packet.predict(|name| shape.column(name))?.single;
        match (shape.port.as_str(), &self.lab) {
            ("memory", _) => Ok(believed(in_memory)),
            ("tap", Some(lab)) => lab.packet_ns(in_memory.value, shape),
            (kind, lab) => Err(CapacityError::NoPort {
                kind: kind.to_owned(),
                have: if lab.is_some() { "memory, tap" } else { "memory" },
            }),
        }
    }

    /// Returns the payload of one bulk TCP connection in a lab, bits per second, as far as the
    /// machine limits it; `None` where labs were not measured.
    ///
    /// # Errors
    /// [`CapacityError`] for a column that was not measured.
    pub fn tcp_bits_per_second(&self, way: &PacketShape) -> Result<Option<Estimate>, CapacityError> {
        let Some(lab) = &self.lab else { return Ok(None) };
        let in_memory = self.packet.predict(|name| way.column(name))?.single;
        let ns = lab.of_engine(&lab.tcp_bit, in_memory.value, way)?;
        Ok(Some(ns.map(|ns| 1e9 / ns)))
    }

    /// Returns the disciplines of a shape that were not measured: their cost is taken as that of
    /// drop-tail.
    pub fn unmeasured<'s>(&self, shape: &'s PacketShape) -> Vec<&'s str> {
        let unknown = |kind: &&String| !self.queues.contains(kind);
        shape.queues.keys().filter(unknown).map(String::as_str).collect()
    }
}

/// How late frames are on a machine: idle, and what a busy worker adds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct LatenessCosts {
    /// Median with a worker that has little to do, in microseconds.
    pub idle_p50_us: Estimate,
    /// 99th percentile with such a worker.
    pub idle_p99_us: Estimate,
    /// What the median grows by for each unit of ρ/(1 − ρ).
    pub waiting_p50_us: Estimate,
    /// What the 99th percentile grows by for each unit of ρ/(1 − ρ).
    pub waiting_p99_us: Estimate,
}

impl LatenessCosts {
    /// Returns median and 99th percentile at a load of the busiest worker; infinite from a load of
    /// 1 on.
    pub fn at(&self, load: Estimate) -> [Estimate; 2] {
        let waiting = load.map(|load| if load < 1.0 { load.max(0.0) / (1.0 - load) } else { f64::INFINITY });
        let sum = |idle: Estimate, step: Estimate| Estimate {
            value: added(idle.value, step.value, waiting.value),
            low: added(idle.low, step.low, waiting.low),
            high: added(idle.high, step.high, waiting.high),
        };
        let p50 = sum(self.idle_p50_us, self.waiting_p50_us);
        let p99 = sum(self.idle_p99_us, self.waiting_p99_us);
        [p50, p99]
    }
}

/// `idle + step · waiting`, where waiting may be infinite and the step 0.
fn added(idle: f64, step: f64, waiting: f64) -> f64 {
    if waiting.is_infinite() { f64::INFINITY } else { idle.max(0.0) + step.max(0.0) * waiting }
}

/// What takes memory.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct MemoryCosts {
    /// The program without a network, in bytes.
    pub program_bytes: Estimate,
    /// The threads and the frames of a small network.
    pub engine_bytes: Estimate,
    /// A link (two pipes) with its part of the description.
    pub link_bytes: Estimate,
    /// A port with its host.
    pub port_bytes: Estimate,
    /// Bytes of memory for each byte of a held frame.
    pub per_held_byte: Estimate,
}

impl MemoryCosts {
    /// Returns the resident memory of a network at its load. The upper end has full queues.
    pub fn of(&self, demand: &Demand) -> Estimate {
        let sum = |of: fn(&Estimate) -> f64, held: f64| {
            of(&self.program_bytes)
                + of(&self.engine_bytes)
                + of(&self.link_bytes) * demand.links as f64
                + of(&self.port_bytes) * demand.ports as f64
                + (of(&self.per_held_byte) * held).min(demand.memory_limit)
        };
        let value = sum(|e| e.value, demand.held_bytes);
        Estimate {
            value,
            low: sum(|e| e.low, demand.held_bytes).min(value),
            high: sum(|e| e.high, demand.held_bytes + demand.queue_bytes_max).max(value),
        }
    }
}

/// What takes time at the start.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct StartCosts {
    /// Threads and sockets of the engine, in seconds.
    pub engine_s: Estimate,
    /// A link of the engine.
    pub link_s: Estimate,
    /// A pair of links: the routes of all nodes grow with the square of the network.
    pub pair_s: Estimate,
    /// A lab besides its hosts; none where labs are not permitted.
    #[serde(default)]
    pub lab_s: Option<Estimate>,
    /// A host of a lab; none where labs are not permitted.
    pub host_s: Option<Estimate>,
}

impl StartCosts {
    /// Returns the seconds until a network runs; `None` for a lab where labs were not measured.
    pub fn of(&self, demand: &Demand) -> Option<Estimate> {
        let nothing = Estimate::exact(0.0);
        let (lab, host) = match demand.lab_hosts {
            0 => (nothing, nothing),
            _ => (self.lab_s?, self.host_s?),
        };
        let sum = |of: fn(&Estimate) -> f64| {
            let links = demand.links as f64;
            of(&self.engine_s)
                + of(&self.link_s) * links
                + of(&self.pair_s) * links * links
                + of(&lab)
                + of(&host) * demand.lab_hosts as f64
        };
        let value = sum(|e| e.value);
        Some(Estimate { value, low: sum(|e| e.low).clamp(0.0, value), high: sum(|e| e.high).max(value) })
    }
}

/// What labs cost: hosts as namespaces with TAP ports, which send and receive. Times are those
/// from one packet or bit to the next, whether the workers or the hosts limit them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LabCosts {
    /// Nanoseconds for a datagram, over `engine_ns`, those of a worker between ports in memory, and
    /// the columns of [`PacketShape`].
    pub packet: Model,
    /// How late frames are.
    pub lateness: LatenessCosts,
    /// Nanoseconds for a bit of payload of one bulk connection over the same columns, for packets
    /// of full size.
    pub tcp_bit: Model,
    /// Which share of the payload that its slowest link carries a connection reaches, where the
    /// machine carries more.
    pub tcp_fill: Estimate,
}

impl LabCosts {
    fn packet_ns(&self, engine_ns: f64, shape: &PacketShape) -> Result<Estimate, CapacityError> {
        let bit = self.of_engine(&self.tcp_bit, engine_ns, shape)?;
        // A data packet, with its part of an acknowledgement.
        let bulk = bit.map(|ns| ns * TCP_PAYLOAD_BITS / (1.0 + ACKS));
        match shape.bulk {
            bulk_share if bulk_share >= 1.0 => Ok(bulk),
            0.0 => self.of_engine(&self.packet, engine_ns, shape),
            share => {
                let datagram = self.of_engine(&self.packet, engine_ns, shape)?;
                let at = |of: fn(Estimate) -> f64| share * of(bulk) + (1.0 - share) * of(datagram);
                Ok(Estimate { value: at(|e| e.value), low: at(|e| e.low), high: at(|e| e.high) })
            }
        }
    }

    /// The value of a model of this lab.
    fn of_engine(
        &self,
        model: &Model,
        engine_ns: f64,
        shape: &PacketShape,
    ) -> Result<Estimate, CapacityError> {
        let column = |name: &str| if name == ENGINE_NS { Some(engine_ns) } else { shape.column(name) };
        Ok(believed(model.predict(column)?.single))
    }
}

/// Bits of payload in a full packet, and acknowledgements for each.
const TCP_PAYLOAD_BITS: f64 = 8.0 * 1448.0;
/// Acknowledgements for each data packet of a bulk connection.
pub const ACKS: f64 = 0.5;

/// The column of models of labs that has the nanoseconds of a worker between ports in memory.
pub const ENGINE_NS: &str = "engine_ns";

/// Below the shortest time no fit is to be believed.
fn believed(ns: Estimate) -> Estimate {
    let value = ns.value.max(1e-6);
    Estimate { value, low: ns.low.clamp(0.2 * value, value), high: ns.high.max(value) }
}

/// Payload in a full Ethernet frame with the headers of IPv4 and TCP with timestamps: 1448 of 1514
/// bytes.
pub const TCP_GOODPUT: f64 = 1448.0 / 1514.0;
