//! Output ports: each sends whole frames at its rate, with preamble before and gap between them.

use super::{Queue, What, World};
use crate::machine::{Full, LineSpec, Ports};
use crate::outcome::Use;
use crate::stats::TimeWeighted;
use fastpath_units::{Bytes, Fraction, Rate, Time};

/// Preamble and start delimiter, and the gap after a frame, in bytes (IEEE 802.3).
const PREAMBLE: u64 = 8;
const GAP: u64 = 12;

pub(crate) struct Line {
    pub(crate) full: Full,
    rate: Rate,
    ports: Vec<Port>,
    busy: TimeWeighted,
}

struct Port {
    queue: Queue,
    sending: Option<u32>,
    /// When the gap after the last frame is over, and what its division left.
    ready: Time,
    carried: Fraction,
}

impl Line {
    pub(crate) fn new(spec: &LineSpec, ports: &Ports) -> Line {
        let port = || Port {
            queue: Queue::new(spec.queue.limit, spec.queue.full),
            sending: None,
            ready: Time::ZERO,
            carried: Fraction::ZERO,
        };
        let ports_at_work = (0..ports.count).map(|_| port()).collect();
        Line { full: spec.queue.full, rate: ports.rate, ports: ports_at_work, busy: TimeWeighted::default() }
    }

    pub(crate) fn offer(&mut self, world: &mut World, packet: u32) -> bool {
        let number = world.packets[packet as usize].port_out;
        let port = &mut self.ports[number as usize];
        if port.sending.is_some() {
            return port.queue.push(world.now(), packet);
        }
        self.send(world, number, packet);
        true
    }

    fn send(&mut self, world: &mut World, number: u32, packet: u32) {
        let port = &mut self.ports[number as usize];
        port.sending = Some(packet);
        self.busy.set(world.now(), self.busy.level() + 1);
        world.start(packet);
        let size = u64::from(world.packets[packet as usize].size);
        let start = world.now().max(port.ready);
        // The remainder is carried over frame and gap together: a busy port never drifts.
        let carried = if start > port.ready { Fraction::ZERO } else { port.carried };
        let (frame, _) = self.rate.transmission(Bytes(PREAMBLE + size), carried);
        let (with_gap, left) = self.rate.transmission(Bytes(PREAMBLE + size + GAP), carried);
        port.ready = start + with_gap;
        port.carried = left;
        world.at(start + frame, What::Done, number);
    }

    pub(crate) fn handle(&mut self, world: &mut World, number: u32) {
        let packet = self.ports[number as usize].sending.expect("a sending port has a packet");
        world.end_leg(packet, number);
        world.hand_on(packet, Some(number));
    }

    pub(crate) fn release(&mut self, world: &mut World, number: u32) {
        self.ports[number as usize].sending = None;
        self.busy.set(world.now(), self.busy.level() - 1);
        if let Some(packet) = self.ports[number as usize].queue.pop(world.now()) {
            self.send(world, number, packet);
        }
    }

    pub(crate) fn usage(&self, end: Time) -> Use {
        let queue_max = self.ports.iter().map(|p| p.queue.length.max()).max().unwrap_or(0);
        let queue_mean = self.ports.iter().map(|p| p.queue.length.mean(end)).sum();
        Use { busy: self.busy.mean(end) / self.ports.len() as f64, queue_mean, queue_max, ..Use::default() }
    }
}
