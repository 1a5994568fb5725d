//! A station: servers that hold each packet for a fixed time and a time per byte, without a
//! program. Examples are a bus, a DMA engine, a packet input or output unit, and a filter in a NIC.
//!
//! ```toml
//! [[station]]
//! name = "pci"
//! servers = 1                       # the default
//! fixed = "5ns"                     # per packet
//! per_byte = "0.9ns"                # per byte
//! rate = "636Mbit"                  # or per bit
//! outliers = { probability = "0.1%", mean = "1.66us" }
//! queue = { limit = 64, full = "block" }
//! ```
//!
//! Several servers form a pipeline with that many packets in flight. Packets leave in the order of
//! arrival, so a small packet behind a large one waits for it: hardware that moves packets does not
//! reorder them.

use super::behaviour::{Setup, Surroundings, UnitModel, UnitType, check_servers, put_servers};
use crate::environment::{Environment, What};
use crate::keys::read_table;
use crate::outcome::Use;
use crate::ports::PortsSpec;
use crate::queue::{Full, Queue, QueueSpec};
use crate::random::exponential;
use crate::route::OpGroup;
use crate::spec::{Name, PerByte};
use crate::stats::TimeWeighted;
use fastpath_text::mistake::Remarks;
use fastpath_units::{Bytes, Duration, Fraction, Probability, Rate, Time};

#[derive(Clone, Debug)]
pub(crate) struct StationSpec {
    name: Name,
    servers: u32,
    fixed: Duration,
    per_byte: PerByte,
    rate: Option<Rate>,
    outliers: Option<OutlierSpec>,
    queue: QueueSpec,
}

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
    outliers = None,
    queue = QueueSpec::default(),
});

read_table!(OutlierSpec as "outliers", "{ probability = \"0.1%\", mean = \"1.66us\" }": { probability, mean });

impl UnitType for StationSpec {
    fn name(&self) -> &Name {
        &self.name
    }

    fn check(&mut self, _machine: &Surroundings, remarks: &mut Remarks) {
        check_servers(&self.name, "servers", self.servers, remarks);
    }

    fn servers(&self) -> Option<u32> {
        Some(self.servers)
    }

    fn set_servers(&mut self, servers: u32, _ports: &PortsSpec) -> bool {
        put_servers(&mut self.servers, servers)
    }

    fn shares(&self, _work: &[OpGroup]) -> bool {
        self.outliers.is_some()
    }
}

pub(crate) struct Station {
    fixed: Duration,
    per_byte: PerByte,
    rate: Option<Rate>,
    outliers: Option<OutlierSpec>,
    queue: Queue,
    /// The packet each server holds.
    servers: Vec<Option<u32>>,
    /// When the service of the last packet taken ends.
    last_done: Time,
    busy: TimeWeighted,
}

impl Station {
    fn serve(&mut self, env: &mut Environment, server: usize, packet: u32) {
        self.servers[server] = Some(packet);
        self.busy.set(env.now(), self.busy.level() + 1);
        env.start(packet);
        let size = env.packets[packet as usize].size;
        let mut span = self.fixed + self.per_byte.times(size);
        if let Some(rate) = self.rate {
            span += rate.transmission(Bytes(u64::from(size)), Fraction::ZERO).0;
        }
        if let Some(outliers) = &self.outliers
            && outliers.probability.draw(&mut env.rng)
        {
            span += exponential(&mut env.rng, outliers.mean);
        }
        self.last_done = self.last_done.max(env.now() + span);
        env.at(self.last_done, What::Done, server as u32);
    }
}

impl UnitModel for Station {
    type Spec = StationSpec;

    fn new(spec: &StationSpec, _setup: &Setup) -> Station {
        Station {
            fixed: spec.fixed,
            per_byte: spec.per_byte,
            rate: spec.rate,
            outliers: spec.outliers.clone(),
            queue: Queue::new(spec.queue.limit, spec.queue.full),
            servers: vec![None; spec.servers as usize],
            last_done: Time::ZERO,
            busy: TimeWeighted::default(),
        }
    }

    fn offer(&mut self, env: &mut Environment, packet: u32) -> bool {
        match self.servers.iter().position(Option::is_none) {
            Some(server) => {
                self.serve(env, server, packet);
                true
            }
            None => self.queue.push(env.now(), packet),
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
            self.serve(env, server as usize, packet);
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
