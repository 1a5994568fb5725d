//! One direction of a PCI Express link between a NIC and the memory of a host, with direct cache
//! access (DDIO).
//!
//! ```text
//! packet ─▶ TLPs of at most `payload` bytes and `header` more ─▶ link at `rate` ─▶ `latency` ─▶
//!                                       writes: cache, or memory if its ways are full
//! ```
//!
//! ```toml
//! [[pcie]]
//! name = "pcie-in"
//! rate = "126Gbit"                  # of this direction, after line coding
//! payload = 256                     # bytes of data in one TLP, at most
//! header = 24                       # bytes of each TLP beside its data
//! per_packet = 40                   # bytes of other TLPs of each packet: descriptors, doorbells
//! latency = "450ns"                 # from the last byte on the link until the packet is there
//! outstanding = 64                  # packets on the link and in the latency, at most
//! writes = true                     # false: packets go from the host to the NIC
//! ddio = { cache = "caches", ways = 12, share = 2, buffers = "4MiB", memory = "dram" }
//! queue = { limit = 64, full = "block" }
//! ```
//!
//! With `ddio` a write goes to `share` of the `ways` of the last cache level before the memory. The
//! buffers are written in turn, so a write finds its buffer there with the probability (that part
//! of the cache) ÷ `buffers`, at most 1. Otherwise it takes time and bandwidth of `memory` in
//! addition, and a program that reads the packet finds it behind the cache. Without `ddio` every
//! packet is behind the cache, and the latency is all that a write takes.
//!
//! TLP overheads: pcie-bench/pcie-model, model/pcie.py, the model of Neugebauer et al.,
//! "Understanding PCIe performance for end host networking", SIGCOMM 2018. Two ways of
//! the cache by default: A. Farshin in tbarbette/fastclick issue 392, and aliireza/ddio-bench, the
//! code of Farshin et al., "Reexamining Direct Cache Access to Optimize I/O Intensive Applications
//! for Multi-hundred-gigabit Networks", USENIX ATC 2020.

use super::behaviour::{Setup, Surroundings, UnitModel, UnitType, check_servers, put_servers};
use crate::environment::{Environment, What};
use crate::keys::read_table;
use crate::memory::Access;
use crate::outcome::Use;
use crate::ports::PortsSpec;
use crate::queue::{Full, Queue, QueueSpec};
use crate::route::OpGroup;
use crate::spec::{Name, find, out_of_range};
use fastpath_text::mistake::Remarks;
use fastpath_units::{Bytes, Duration, Fraction, Rate, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Debug)]
pub(crate) struct PcieSpec {
    name: Name,
    rate: Rate,
    payload: u32,
    header: u32,
    per_packet: u32,
    latency: Duration,
    outstanding: u32,
    writes: bool,
    ddio: Option<DdioSpec>,
    queue: QueueSpec,
}

/// Writes to a part of a cache instead of the memory.
#[derive(Clone, Debug)]
struct DdioSpec {
    cache: Name,
    ways: u32,
    share: u32,
    /// Bytes of all buffers that are written in turn.
    buffers: Bytes,
    /// The memory that takes what the cache does not.
    memory: Name,
}

read_table!(PcieSpec as "pcie", "{ name = \"pcie-in\", rate = \"126Gbit\" }": {
    name,
    rate,
    payload = 256,
    header = 24,
    per_packet = 0,
    latency = Duration::ZERO,
    outstanding = 64,
    writes = true,
    ddio = None,
    queue = QueueSpec::default(),
});

read_table!(DdioSpec as "ddio", "{ cache = \"caches\", ways = 12, share = 2, buffers = \"4MiB\", memory = \"dram\" }": {
    cache,
    ways,
    share = 2,
    buffers,
    memory,
});

impl UnitType for PcieSpec {
    fn name(&self) -> &Name {
        &self.name
    }

    fn check(&mut self, machine: &Surroundings, remarks: &mut Remarks) {
        check_servers(&self.name, "outstanding", self.outstanding, remarks);
        if !(1..=4096).contains(&self.payload) {
            out_of_range(&self.name, "payload", "from 1 to 4096", remarks);
        }
        if self.header.max(self.per_packet) > 65_535 {
            out_of_range(&self.name, "header or per_packet", "at most 65535", remarks);
        }
        let Some(ddio) = &self.ddio else { return };
        find(&ddio.memory, "memory", machine.memories, remarks);
        let caches: Vec<String> = machine.caches.iter().map(|cache| cache.name.text.clone()).collect();
        let cache = find(&ddio.cache, "cache", &caches, remarks);
        if cache.is_some_and(|cache| machine.caches[cache].last_size().is_none()) {
            out_of_range(&ddio.cache, "level", "at least two: a cache and the memory behind it", remarks);
        }
        if !(1..=ddio.ways).contains(&ddio.share) || ddio.buffers.0 == 0 {
            out_of_range(&self.name, "ddio", "share from 1 to ways, and buffers above 0", remarks);
        }
        if !self.writes {
            let what = format!("ddio of {} has no effect: packets leave the host", self.name);
            remarks.mistake(self.name.at, what, "remove it, or write writes = true");
        }
    }

    fn servers(&self) -> Option<u32> {
        Some(self.outstanding)
    }

    fn set_servers(&mut self, servers: u32, _ports: &PortsSpec) -> bool {
        put_servers(&mut self.outstanding, servers)
    }

    fn widen(&mut self, _ports: &PortsSpec) -> Option<String> {
        let before = self.rate;
        self.rate = Rate::from_bps(2 * before.as_bps())?;
        self.outstanding = (2 * self.outstanding).min(super::behaviour::SERVERS_MAX);
        Some(format!("{before} → {}", self.rate))
    }

    fn writes_packets(&self) -> bool {
        self.writes
    }

    fn shares(&self, _work: &[OpGroup]) -> bool {
        self.ddio.is_some()
    }
}

pub(crate) struct Pcie {
    spec: PcieSpec,
    ddio: Option<Ddio>,
    queue: Queue,
    /// The packet of each transaction in progress, and the transactions that are free.
    held: Vec<Option<u32>>,
    free: BinaryHeap<Reverse<u32>>,
    /// When the link is free, and the remainder of the last division.
    link_free: Time,
    carried: Fraction,
    last_done: Time,
    busy: Duration,
}

/// Where writes go.
struct Ddio {
    memory: usize,
    /// The probability that a write finds its buffer in the cache.
    hit: f64,
}

impl Ddio {
    fn new(spec: &DdioSpec, setup: &Setup) -> Ddio {
        let cache = setup.caches.iter().find(|cache| cache.name.text == spec.cache.text).expect("checked");
        let all = cache.last_size().expect("checked").0 as f64;
        let own = all * f64::from(spec.share) / f64::from(spec.ways);
        let memory = setup.memories.iter().position(|memory| *memory == spec.memory.text).expect("checked");
        Ddio { memory, hit: (own / spec.buffers.0 as f64).min(1.0) }
    }
}

impl Pcie {
    /// The bytes of a packet of `size` bytes on the link.
    fn bytes(&self, size: u32) -> u64 {
        let headers = size.div_ceil(self.spec.payload) * self.spec.header;
        u64::from(size) + u64::from(headers) + u64::from(self.spec.per_packet)
    }

    fn serve(&mut self, env: &mut Environment, number: u32, packet: u32) {
        self.held[number as usize] = Some(packet);
        env.start(packet);
        let (now, size) = (env.now(), env.packets[packet as usize].size);
        let carried = if now > self.link_free { Fraction::ZERO } else { self.carried };
        let (span, left) = self.spec.rate.transmission(Bytes(self.bytes(size)), carried);
        self.link_free = self.link_free.max(now) + span;
        self.carried = left;
        self.busy += span;
        let mut done = self.link_free + self.spec.latency;
        let mut is_cached = false;
        if let Some(ddio) = &self.ddio {
            is_cached = ddio.hit >= 1.0 || env.rng.unit_f64() < ddio.hit;
            if !is_cached {
                let written = env.memories[ddio.memory].request(now, Access::Write, size, &mut env.rng);
                done = done.max(written + self.spec.latency);
            }
        }
        env.packets[packet as usize].is_cached = is_cached;
        // Writes stay in order, and completions are put in order.
        self.last_done = self.last_done.max(done);
        env.at(self.last_done, What::Done, number);
    }
}

impl UnitModel for Pcie {
    type Spec = PcieSpec;

    fn new(spec: &PcieSpec, setup: &Setup) -> Pcie {
        Pcie {
            ddio: spec.ddio.as_ref().map(|ddio| Ddio::new(ddio, setup)),
            queue: Queue::new(&spec.queue),
            held: vec![None; spec.outstanding as usize],
            free: (0..spec.outstanding).map(Reverse).collect(),
            link_free: Time::ZERO,
            carried: Fraction::ZERO,
            last_done: Time::ZERO,
            busy: Duration::ZERO,
            spec: spec.clone(),
        }
    }

    fn offer(&mut self, env: &mut Environment, packet: u32) -> bool {
        match self.free.pop() {
            Some(Reverse(number)) => {
                self.serve(env, number, packet);
                true
            }
            None => self.queue.push(env.now(), packet, env.class(packet)),
        }
    }

    fn handle(&mut self, env: &mut Environment, _what: What, number: u32) {
        let packet = self.held[number as usize].expect("a transaction has a packet");
        env.end_leg(packet, number);
        env.pass_on(packet, Some(number));
    }

    fn release(&mut self, env: &mut Environment, number: u32) {
        self.held[number as usize] = None;
        match self.queue.pop(env.now()) {
            Some(packet) => self.serve(env, number, packet),
            None => self.free.push(Reverse(number)),
        }
    }

    fn full(&self) -> Full {
        self.queue.full
    }

    fn usage(&self, end: Time) -> Use {
        let end_s = end.since(Time::ZERO).as_secs_f64().max(1e-12);
        Use {
            busy: (self.busy.as_secs_f64() / end_s).min(1.0),
            queue_mean: self.queue.length.mean(end),
            queue_max: self.queue.length.max(),
            ..Use::default()
        }
    }
}
