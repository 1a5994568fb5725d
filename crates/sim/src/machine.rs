//! A machine as data: its ports, memories and units, read from TOML.
//!
//! ```toml
//! name = "example"
//! source = "where the numbers come from"
//! ports = { count = 2, rate = "1Gbit" }
//! [[station]]                       # a bus, a DMA engine, an input or output unit
//! name = "pci"
//! rate = "1.056Gbit"
//! [[cores]]
//! name = "cpu"
//! cores = 4
//! clock = "2GHz"
//! scheduler = { kind = "poll" }
//! [[line]]                          # output ports that send whole frames
//! name = "wire"
//! ```
//!
//! The shipped machines are in `machines/`, one file each; every number carries its source. A field
//! that no source prints says whether it is *calibrated* (fitted to a published result, which is
//! then no test) or *declared*.

use crate::cache::CacheSpec;
use crate::memory::MemorySpec;
use crate::scheduler::SchedulerSpec;
use crate::spec::{Clock, PerByte};
use crate::spec::{Name, Problem, Source, SpecError, optional, text};
use fastpath_units::{Duration, Probability, Rate};
use serde::Deserialize;

/// A machine: what runs packets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Where the description comes from.
    pub source: String,
    /// The Ethernet ports.
    pub ports: Ports,
    #[serde(default)]
    pub(crate) memory: Vec<MemorySpec>,
    #[serde(default)]
    pub(crate) cache: Vec<CacheSpec>,
    #[serde(default)]
    pub(crate) station: Vec<StationSpec>,
    #[serde(default)]
    pub(crate) cores: Vec<CoresSpec>,
    #[serde(default)]
    pub(crate) microengine: Vec<MicroengineSpec>,
    #[serde(default)]
    pub(crate) egress: Vec<EgressSpec>,
    #[serde(default)]
    pub(crate) line: Vec<LineSpec>,
}

/// The Ethernet ports of a machine, all alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ports {
    /// How many, 1 … 1024.
    pub count: u32,
    /// Bits per second of each, one direction.
    #[serde(deserialize_with = "text")]
    pub rate: Rate,
    /// Bytes a frame is cut into where the machine works in chunks.
    #[serde(default = "default_chunk")]
    pub chunk: u32,
    /// Where the numbers come from.
    #[serde(default)]
    pub source: String,
}

fn default_chunk() -> u32 {
    64
}

/// What a full queue does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Full {
    /// The packet is dropped and counted.
    #[default]
    Drop,
    /// The unit before holds the packet, and its server, until there is room.
    Block,
}

/// The queue before a unit.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// Packets that fit, not counting those being served.
    pub limit: usize,
    /// What happens to the next one.
    #[serde(default)]
    pub full: Full,
}

impl Default for QueueSpec {
    fn default() -> Self {
        QueueSpec { limit: 1024, full: Full::Drop }
    }
}

/// Servers that hold each packet for a fixed time and a time per byte, with no program: a bus, a
/// DMA engine, a packet input or output unit, a NIC's filter.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StationSpec {
    pub(crate) name: Name,
    #[serde(default = "one")]
    pub(crate) servers: u32,
    #[serde(default, deserialize_with = "text")]
    pub(crate) fixed: Duration,
    #[serde(default, deserialize_with = "text")]
    pub(crate) per_byte: PerByte,
    #[serde(default, deserialize_with = "optional")]
    pub(crate) rate: Option<Rate>,
    pub(crate) outliers: Option<OutlierSpec>,
    #[serde(default)]
    pub(crate) queue: QueueSpec,
    #[serde(default, rename = "source")]
    _source: String,
}

/// Rare extra delay: an exponential of this mean, with this probability.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutlierSpec {
    #[serde(deserialize_with = "text")]
    pub(crate) probability: Probability,
    #[serde(deserialize_with = "text")]
    pub(crate) mean: Duration,
}

/// Cores that run each packet's program to completion.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CoresSpec {
    pub(crate) name: Name,
    pub(crate) cores: u32,
    #[serde(deserialize_with = "text")]
    pub(crate) clock: Clock,
    #[serde(default)]
    pub(crate) scheduler: SchedulerSpec,
    /// What a packet costs for which there is no room: somebody has to look at it before it is
    /// dropped.
    #[serde(default, deserialize_with = "text")]
    pub(crate) refusal: Duration,
    /// Work beside the packets.
    pub(crate) tick: Option<TickSpec>,
    #[serde(default)]
    pub(crate) queue: QueueSpec,
    #[serde(default, rename = "source")]
    _source: String,
}

/// Periodic work of an emulator's cores: a look at every link of the workload (`links`) at each
/// timer tick.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TickSpec {
    #[serde(deserialize_with = "text")]
    pub(crate) every: Duration,
    #[serde(deserialize_with = "text")]
    pub(crate) per_link: Duration,
}

/// Which thread of a microengine takes a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Bind {
    /// Any free one, from one queue.
    #[default]
    Any,
    /// Thread `port mod threads`, each with a queue of its own.
    Port,
}

/// Microengines: several hardware threads that share an arithmetic unit and swap at memory
/// references.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MicroengineSpec {
    pub(crate) name: Name,
    #[serde(default = "one")]
    pub(crate) engines: u32,
    pub(crate) threads: u32,
    #[serde(deserialize_with = "text")]
    pub(crate) clock: Clock,
    /// Cycles lost at each swap.
    pub(crate) swap: u64,
    #[serde(default)]
    pub(crate) bind: Bind,
    /// What threads without a packet do.
    pub(crate) poll: Option<PollLoopSpec>,
    /// Packets are released to the threads only at ticks of this clock.
    #[serde(default, deserialize_with = "optional")]
    pub(crate) tick: Option<Clock>,
    #[serde(default)]
    pub(crate) queue: QueueSpec,
    #[serde(default, rename = "source")]
    _source: String,
}

/// A thread that waits for a packet looks for it: computes, refers to a memory or status register,
/// and again. While other threads of its engine are at work that costs them time; on an idle engine
/// nobody cares, and it is not simulated.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PollLoopSpec {
    /// Cycles of computation per look.
    pub(crate) compute: u64,
    /// The memory looked at.
    pub(crate) read: Name,
    /// Bytes read.
    #[serde(default = "word")]
    pub(crate) bytes: u32,
}

fn word() -> u32 {
    4
}

/// Transmission by microengine threads through a circular FIFO of chunks into ports that cannot
/// hold a frame.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EgressSpec {
    pub(crate) name: Name,
    pub(crate) engines: u32,
    /// Threads of each engine that fill slots; one more schedules.
    pub(crate) fill_threads: u32,
    #[serde(deserialize_with = "text")]
    pub(crate) clock: Clock,
    pub(crate) swap: u64,
    /// Slots of the circular FIFO; slot `s` belongs to port `s mod ports`.
    pub(crate) slots: u32,
    /// Chunks a port can hold.
    pub(crate) port_chunks: u32,
    /// The bus from the FIFO to the ports.
    #[serde(deserialize_with = "text")]
    pub(crate) bus: Rate,
    #[serde(default)]
    pub(crate) queue: QueueSpec,
    #[serde(default, rename = "source")]
    _source: String,
}

/// Output ports that send whole frames at the port rate.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LineSpec {
    pub(crate) name: Name,
    /// The queue of each port.
    #[serde(default)]
    pub(crate) queue: QueueSpec,
    #[serde(default, rename = "source")]
    _source: String,
}

fn one() -> u32 {
    1
}

/// The most servers, threads or cores of one unit.
pub(crate) const SERVERS_MAX: u32 = 1024;

impl Machine {
    /// Reads a machine from the text of `file` (the name is used in errors only).
    pub fn parse(file: &str, text: &str) -> Result<Machine, SpecError> {
        let source = Source { file, text };
        let machine: Machine = source.parse()?;
        machine.check(source)?;
        Ok(machine)
    }

    fn check(&self, source: Source) -> Result<(), SpecError> {
        if !(1..=1024).contains(&self.ports.count) || self.ports.chunk == 0 {
            let name = "ports".to_owned();
            let at = source.text.find("ports").unwrap_or(0);
            let problem = Problem::Range { what: "count or chunk", name, range: "1 … 1024" };
            return Err(source.error(at, problem));
        }
        let mut seen = std::collections::BTreeSet::new();
        let memories = self.memory.iter().map(|m| &m.name).chain(self.cache.iter().map(|c| &c.name));
        for name in memories.chain(self.names()) {
            if !seen.insert(name.as_ref()) {
                return Err(source.at(name, Problem::Duplicate(name.as_ref().clone())));
            }
        }
        if self.names().next().is_none() {
            return Err(source.error(0, Problem::Empty("a machine without units")));
        }
        let servers = |name: &Name, what, n: u32| match n {
            1..=SERVERS_MAX => Ok(()),
            _ => Err(source.range(name, what, "1 … 1024")),
        };
        self.station.iter().try_for_each(|s| servers(&s.name, "servers", s.servers))?;
        self.cores.iter().try_for_each(|c| servers(&c.name, "cores", c.cores))?;
        if let Some(c) = self.cores.iter().find(|c| c.queue.limit == 0) {
            return Err(source.range(&c.name, "queue.limit", "above 0: cores take packets out of it"));
        }
        if let Some(c) = self.cores.iter().find(|c| c.tick.as_ref().is_some_and(|t| t.every.is_zero())) {
            return Err(source.range(&c.name, "tick.every", "above 0"));
        }
        for m in &self.microengine {
            servers(&m.name, "engines", m.engines)?;
            servers(&m.name, "threads", m.threads)?;
            servers(&m.name, "engines × threads", m.threads.saturating_mul(m.engines))?;
            if let Some(poll) = &m.poll {
                source.find(&poll.read, "memory", &self.memories())?;
            }
        }
        for e in &self.egress {
            servers(&e.name, "engines", e.engines)?;
            servers(&e.name, "fill_threads", e.fill_threads)?;
            servers(&e.name, "port_chunks", e.port_chunks)?;
            if e.slots == 0 || e.slots % (self.ports.count * e.engines) != 0 {
                return Err(source.range(&e.name, "slots", "a multiple of ports × engines"));
            }
            if !self.ports.count.is_multiple_of(e.engines) {
                return Err(source.range(&e.name, "engines", "a divisor of the number of ports"));
            }
        }
        self.memory.iter().try_for_each(|m| m.check(source))?;
        self.cache.iter().try_for_each(|c| c.check(source))
    }

    fn names(&self) -> impl Iterator<Item = &Name> {
        let station = self.station.iter().map(|u| &u.name);
        let cores = self.cores.iter().map(|u| &u.name);
        let microengine = self.microengine.iter().map(|u| &u.name);
        let egress = self.egress.iter().map(|u| &u.name);
        let line = self.line.iter().map(|u| &u.name);
        station.chain(cores).chain(microengine).chain(egress).chain(line)
    }

    /// The names of the units, in the order the simulation numbers them.
    pub fn units(&self) -> Vec<String> {
        self.names().map(|name| name.as_ref().clone()).collect()
    }

    /// The names of the memories, in their order.
    pub(crate) fn memories(&self) -> Vec<String> {
        self.memory.iter().map(|m| m.name.as_ref().clone()).collect()
    }

    /// The clock programs on `unit` count in, if it runs programs.
    pub(crate) fn clock(&self, unit: &str) -> Option<Clock> {
        let cores = self.cores.iter().map(|u| (&u.name, u.clock));
        let microengine = self.microengine.iter().map(|u| (&u.name, u.clock));
        let egress = self.egress.iter().map(|u| (&u.name, u.clock));
        cores.chain(microengine).chain(egress).find(|(name, _)| name.as_ref() == unit).map(|(_, c)| c)
    }

    /// The servers, cores or engines of `unit`; `None` if the machine has no such unit, or it is a
    /// wire, which there is one of per port.
    pub fn servers(&self, unit: &str) -> Option<u32> {
        self.clone().servers_mut(unit).map(|n| *n)
    }

    /// The same machine with `n` servers, cores or engines in `unit`. `None` as for
    /// [`Machine::servers`], and for a number the unit cannot have.
    pub fn with_servers(&self, unit: &str, n: u32) -> Option<Machine> {
        let mut machine = self.clone();
        *machine.servers_mut(unit)? = n;
        let divides = |e: &EgressSpec| e.engines > 0 && self.ports.count.is_multiple_of(e.engines);
        ((1..=SERVERS_MAX).contains(&n) && machine.egress.iter().all(divides)).then_some(machine)
    }

    fn servers_mut(&mut self, unit: &str) -> Option<&mut u32> {
        let station = self.station.iter_mut().map(|s| (&s.name, &mut s.servers));
        let cores = self.cores.iter_mut().map(|c| (&c.name, &mut c.cores));
        let microengine = self.microengine.iter_mut().map(|m| (&m.name, &mut m.engines));
        let egress = self.egress.iter_mut().map(|e| (&e.name, &mut e.engines));
        let all = station.chain(cores).chain(microengine).chain(egress);
        all.into_iter().find(|(name, _)| name.as_ref() == unit).map(|(_, n)| n)
    }
}
