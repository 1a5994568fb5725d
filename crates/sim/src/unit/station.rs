//! A station: servers that hold each packet for a fixed time and a time per byte.
//!
//! Several servers are a pipeline with that many packets in flight: packets leave in the order they
//! came, so a small one behind a large one waits for it. (Hardware that moves packets does not
//! reorder them.)

use super::{Queue, What, World};
use crate::machine::{OutlierSpec, StationSpec};
use crate::outcome::Use;
use crate::random::exponential;
use crate::spec::PerByte;
use crate::stats::TimeWeighted;
use fastpath_units::{Bytes, Duration, Fraction, Rate, Time};

pub(crate) struct Station {
    fixed: Duration,
    per_byte: PerByte,
    rate: Option<Rate>,
    outliers: Option<OutlierSpec>,
    pub(crate) queue: Queue,
    /// The packet each server holds.
    servers: Vec<Option<u32>>,
    /// When the packet taken last will be done.
    last_done: Time,
    busy: TimeWeighted,
}

impl Station {
    pub(crate) fn new(spec: &StationSpec) -> Station {
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

    pub(crate) fn offer(&mut self, world: &mut World, packet: u32) -> bool {
        match self.servers.iter().position(Option::is_none) {
            Some(server) => {
                self.serve(world, server, packet);
                true
            }
            None => self.queue.push(world.now(), packet),
        }
    }

    fn serve(&mut self, world: &mut World, server: usize, packet: u32) {
        self.servers[server] = Some(packet);
        self.busy.set(world.now(), self.busy.level() + 1);
        world.start(packet);
        let size = world.packets[packet as usize].size;
        let mut span = self.fixed + self.per_byte.times(size);
        if let Some(rate) = self.rate {
            span += rate.transmission(Bytes(u64::from(size)), Fraction::ZERO).0;
        }
        if let Some(outliers) = &self.outliers
            && outliers.probability.draw(&mut world.rng)
        {
            span += exponential(&mut world.rng, outliers.mean);
        }
        self.last_done = self.last_done.max(world.now() + span);
        world.at(self.last_done, What::Done, server as u32);
    }

    pub(crate) fn handle(&mut self, world: &mut World, server: u32) {
        let packet = self.servers[server as usize].expect("a busy server has a packet");
        world.end_leg(packet, server);
        world.hand_on(packet, Some(server));
    }

    pub(crate) fn release(&mut self, world: &mut World, server: u32) {
        self.servers[server as usize] = None;
        self.busy.set(world.now(), self.busy.level() - 1);
        if let Some(packet) = self.queue.pop(world.now()) {
            self.serve(world, server as usize, packet);
        }
    }

    pub(crate) fn usage(&self, end: Time) -> Use {
        let busy = self.busy.mean(end) / self.servers.len() as f64;
        Use {
            busy,
            queue_mean: self.queue.length.mean(end),
            queue_max: self.queue.length.max(),
            ..Use::default()
        }
    }
}
