//! A station: servers that hold each packet for a fixed time and a time per byte, without a program. Examples are a bus, a DMA engine, a packet input or output unit, and a filter in a NIC.
//!
//! ```toml
//! [[station]]
//! name = "pci"
//! servers = 1                       # the default
//! fixed = "5ns"                     # per packet
//! per_byte = "0.9ns"                # per byte
//! rate = "636Mbit"                  # or per bit
//! framing = { add = 50 }            # of the rate: bytes beside the frame, and cells; see framing.rs
//! law = { kind = "exponential" }    # the times above are means of this law
//! leave = "arrival"                 # or "service": each packet leaves at the end of its service
//! outliers = { probability = "0.1%", mean = "1.66us" }
//! queue = { limit = 64, full = "block" }
//! ```
//!
//! Several servers form a pipeline with that many packets in flight. Packets leave in the order of
//! arrival, so a small packet behind a large one waits for it: hardware that moves packets does not
//! reorder them. With `leave = "service"` they are independent servers: with exponential times the
//! queue is M/M/c.

use super::behaviour::{STATION_SERVERS_MAX, Setup, Surroundings, UnitModel, UnitType};
use crate::environment::{Environment, What};
use crate::framing::Framing;
use crate::keys::{read_table, read_word};
use crate::law::Law;
use crate::outcome::Use;
use crate::ports::PortsSpec;
use crate::queue::{Full, Queue, QueueSpec};
use crate::random::exponential;
use crate::route::OpGroup;
use crate::spec::{Name, PerByte, out_of_range};
use crate::stats::TimeWeighted;
use fastpath_text::mistake::Remarks;
use fastpath_units::{Bytes, Duration, Fraction, Probability, Rate, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Debug)]
pub(crate) struct StationSpec {
    name: Name,
    servers: u32,
    fixed: Duration,
    per_byte: PerByte,
    rate: Option<Rate>,
    framing: Option<Framing>,
    law: Law,
    leave: Leave,
    outliers: Option<OutlierSpec>,
    queue: QueueSpec,
}

/// When packets leave a station of several servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Leave {
    /// In the order in which they came.
    #[default]
    Arrival,
    /// Each at the end of its service.
    Service,
}

read_word!(Leave as "an order of leaving": ["arrival" => Leave::Arrival, "service" => Leave::Service]);

/// Rare extra delay: an exponential variate of this mean, with this probability.
#[derive(Clone, Debug)]
struct OutlierSpec {
    probability: Probability,
    mean: Duration,
}

read_table!(StationSpec as "station", "{ name = \"pci\" }": {
    name,
    servers = 1,
    fixed = Duration::ZERO,
    per_byte = PerByte::default(),
    rate = None,
    framing = None,
    law = Law::Constant,
    leave = Leave::Arrival,
    outliers = None,
    queue = QueueSpec::default(),
});

read_table!(OutlierSpec as "outliers", "{ probability = \"0.1%\", mean = \"1.66us\" }": { probability, mean });

impl UnitType for StationSpec {
    fn name(&self) -> &Name {
        &self.name
    }

    fn check(&mut self, _machine: &Surroundings, remarks: &mut Remarks) {
        if !(1..=STATION_SERVERS_MAX).contains(&self.servers) {
            out_of_range(&self.name, "servers", "from 1 to 65536", remarks);
        }
        let mut useless = |key: &str, why: &str, instead: &str| {
            let what = format!("{key} of {} has no effect{why}", self.name);
            remarks.mistake(self.name.at, what, instead);
        };
        if self.leave == Leave::Service && self.servers == 1 {
            useless("leave", ": it has one server", "remove it, or write servers = 2");
        }
        if self.framing.is_some() && self.rate.is_none() {
            useless("framing", " without a rate", "write rate = \"10Gbit\", or remove framing");
        }
        if self.law != Law::Constant && self.mean(1518).is_zero() {
            useless("law", " without a time", "write fixed, per_byte or rate");
        }
        if let Some(framing) = &self.framing {
            framing.check(self.name.at, remarks);
        }
    }

    fn servers(&self) -> Option<u32> {
        Some(self.servers)
    }

    fn set_servers(&mut self, servers: u32, _ports: &PortsSpec) -> bool {
        let is_possible = (1..=STATION_SERVERS_MAX).contains(&servers);
        if is_possible {
            self.servers = servers;
        }
        is_possible
    }

    fn shares(&self, _work: &[OpGroup]) -> bool {
        self.outliers.is_some() || self.law != Law::Constant
    }
}

impl StationSpec {
    /// The mean time of the service of a packet of `size` bytes, without outliers.
    fn mean(&self, size: u32) -> Duration {
        let mut span = self.fixed + self.per_byte.times(size);
        if let Some(rate) = self.rate {
            let bytes = self.framing.map_or(u64::from(size), |framing| framing.with_gap(size));
            span += rate.transmission(Bytes(bytes), Fraction::ZERO).0;
        }
        span
    }
}

pub(crate) struct Station {
    spec: StationSpec,
    queue: Queue,
    /// The packet each server holds.
    servers: Vec<Option<u32>>,
    /// The servers without a packet: the lowest is next.
    free: BinaryHeap<Reverse<u32>>,
    /// When the service of the last packet taken ends.
    last_done: Time,
    busy: TimeWeighted,
}

impl Station {
    fn serve(&mut self, env: &mut Environment, server: u32, packet: u32) {
        self.servers[server as usize] = Some(packet);
        self.busy.set(env.now(), self.busy.level() + 1);
        env.start(packet);
        let size = env.packets[packet as usize].size;
        let mut span = self.spec.law.draw(self.spec.mean(size), &mut env.rng);
        if let Some(outliers) = &self.spec.outliers
            && outliers.probability.draw(&mut env.rng)
        {
            span += exponential(&mut env.rng, outliers.mean);
        }
        let done = env.now() + span;
        self.last_done = if self.spec.leave == Leave::Arrival { self.last_done.max(done) } else { done };
        env.at(self.last_done, What::Done, server);
    }
}

impl UnitModel for Station {
    type Spec = StationSpec;

    fn new(spec: &StationSpec, _setup: &Setup) -> Station {
        Station {
            spec: spec.clone(),
            queue: Queue::new(&spec.queue),
            free: (0..spec.servers).map(Reverse).collect(),
            servers: vec![None; spec.servers as usize],
            last_done: Time::ZERO,
            busy: TimeWeighted::default(),
        }
    }

    fn offer(&mut self, env: &mut Environment, packet: u32) -> bool {
        match self.free.pop() {
            Some(Reverse(server)) => {
                self.serve(env, server, packet);
                true
            }
            None => self.queue.push(env.now(), packet, env.class(packet)),
        }
    }

    fn handle(&mut self, env: &mut Environment, _what: What, server: u32) {
        let packet = self.servers[server as usize].expect("a busy server has a packet");
        env.end_leg(packet, server);
        env.pass_on(packet, Some(server));
    }

    fn release(&mut self, env: &mut Environment, server: u32) {
        self.servers[server as usize] = None;
        self.busy.set(env.now(), self.busy.level() - 1);
        if let Some(packet) = self.queue.pop(env.now()) {
            self.serve(env, server, packet);
        } else {
            self.free.push(Reverse(server));
        }
    }

    fn full(&self) -> Full {
        self.queue.full
    }

    fn usage(&self, end: Time) -> Use {
        let busy = self.busy.mean(end) / self.servers.len() as f64;
        Use {
            busy,
            queue_mean: self.queue.length.mean(end),
            queue_max: self.queue.length.max(),
            ..Use::default()
        }
    }
}
