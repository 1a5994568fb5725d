//! A line: output ports that send whole frames at the port rate, with preamble before each frame
//! and gap after it.
//!
//! ```toml
//! [[line]]
//! name = "wire"
//! queue = { limit = 1024, full = "drop" }   # of each port; these are the defaults
//! ```

use super::behaviour::{Setup, Surroundings, UnitModel, UnitType};
use crate::environment::{Environment, What};
use crate::keys::read_table;
use crate::outcome::Use;
use crate::ports::PortsSpec;
use crate::queue::{Full, Queue, QueueSpec};
use crate::route::OpGroup;
use crate::spec::Name;
use crate::stats::TimeWeighted;
use fastpath_text::mistake::Remarks;
use fastpath_units::{Bytes, Fraction, Rate, Time};

/// Preamble with start delimiter, and the gap after a frame, in bytes (IEEE 802.3).
const PREAMBLE: u64 = 8;
const GAP: u64 = 12;

#[derive(Clone, Debug)]
pub(crate) struct LineSpec {
    name: Name,
    /// The queue of each port.
    queue: QueueSpec,
    /// The rate in place of the ports': only a trial of a wider line sets it.
    rate: Option<Rate>,
}

read_table!(LineSpec as "line", "{ name = \"wire\" }": {
    name,
    queue = QueueSpec::default(),
} with { rate: None });

impl UnitType for LineSpec {
    fn name(&self) -> &Name {
        &self.name
    }

    fn check(&mut self, _machine: &Surroundings, _remarks: &mut Remarks) {}

    fn widen(&mut self, ports: &PortsSpec) -> Option<String> {
        let before = self.rate.unwrap_or(ports.rate);
        let after = Rate::from_bps(2 * before.as_bps())?;
        self.rate = Some(after);
        Some(format!("{before} → {after}"))
    }

    fn shares(&self, _work: &[OpGroup]) -> bool {
        false
    }
}

pub(crate) struct Line {
    full: Full,
    rate: Rate,
    ports: Vec<Port>,
    busy: TimeWeighted,
}

struct Port {
    queue: Queue,
    sending: Option<u32>,
    /// The end of the gap after the last frame, and the remainder of its division.
    ready: Time,
    carried: Fraction,
}

impl Line {
    fn send(&mut self, env: &mut Environment, number: u32, packet: u32) {
        let port = &mut self.ports[number as usize];
        port.sending = Some(packet);
        self.busy.set(env.now(), self.busy.level() + 1);
        env.start(packet);
        let size = u64::from(env.packets[packet as usize].size);
        let start = env.now().max(port.ready);
        // The remainder is carried over frame and gap together, so a busy port never drifts.
        let carried = if start > port.ready { Fraction::ZERO } else { port.carried };
        let (frame, _) = self.rate.transmission(Bytes(PREAMBLE + size), carried);
        let (with_gap, left) = self.rate.transmission(Bytes(PREAMBLE + size + GAP), carried);
        port.ready = start + with_gap;
        port.carried = left;
        env.at(start + frame, What::Done, number);
    }
}

impl UnitModel for Line {
    type Spec = LineSpec;

    fn new(spec: &LineSpec, setup: &Setup) -> Line {
        let port = || Port {
            queue: Queue::new(spec.queue.limit, spec.queue.full),
            sending: None,
            ready: Time::ZERO,
            carried: Fraction::ZERO,
        };
        Line {
            full: spec.queue.full,
            rate: spec.rate.unwrap_or(setup.ports.rate),
            ports: (0..setup.ports.count).map(|_| port()).collect(),
            busy: TimeWeighted::default(),
        }
    }

    fn offer(&mut self, env: &mut Environment, packet: u32) -> bool {
        let number = env.packets[packet as usize].port_out;
        let port = &mut self.ports[number as usize];
        if port.sending.is_some() {
            return port.queue.push(env.now(), packet);
        }
        self.send(env, number, packet);
        true
    }

    fn handle(&mut self, env: &mut Environment, _what: What, number: u32) {
        let packet = self.ports[number as usize].sending.expect("a sending port has a packet");
        env.end_leg(packet, number);
        env.pass_on(packet, Some(number));
    }

    fn release(&mut self, env: &mut Environment, number: u32) {
        self.ports[number as usize].sending = None;
        self.busy.set(env.now(), self.busy.level() - 1);
        if let Some(packet) = self.ports[number as usize].queue.pop(env.now()) {
            self.send(env, number, packet);
        }
    }

    fn full(&self) -> Full {
        self.full
    }

    fn usage(&self, end: Time) -> Use {
        let queue_max = self.ports.iter().map(|p| p.queue.length.max()).max().unwrap_or(0);
        let queue_mean = self.ports.iter().map(|p| p.queue.length.mean(end)).sum();
        Use { busy: self.busy.mean(end) / self.ports.len() as f64, queue_mean, queue_max, ..Use::default() }
    }
}
